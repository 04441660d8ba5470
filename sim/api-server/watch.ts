// One open watch: a queue of lines between the store's changes and a reader who takes them when he can. An object that
// starts or stops matching the selector is ADDED or DELETED for this watch, whatever happened to it.
import type { Ms } from '../../core/model.ts'
import type { Clock } from '../../edge/clock.ts'
import { matchesFields, matchesLabels } from './selector.ts'
import type { FieldSelector, LabelSelector } from './selector.ts'
import type { Change, Collection, Version } from './store.ts'

export interface Filter {
  readonly prefix: string
  readonly labels: LabelSelector
  readonly fields: FieldSelector
}

export interface WatchOptions {
  readonly filter: Filter
  readonly bookmarks: boolean
  /** How long until the server ends it. */
  readonly span: Ms
  /** The line for one change under the type that this watch sees. */
  readonly line: (type: Change['type'], version: Version) => string
  readonly bookmark: (initialEnd: number | undefined) => string
  readonly signal: AbortSignal
  /** How far behind the server is that it stands on. */
  readonly lag: Ms
}

/** Lines that a reader may leave untaken before the watch is ended, as the real server ends watches that do not keep up. */
const queueLimit = 100_000

/** About what the real server keeps to. */
const bookmarkEvery: Ms = 60_000

export interface Watch {
  readonly body: AsyncIterable<string>
  /** A line that stands before anything live; it does not count as a reader's delay. */
  begin(line: string): void
  /** From now on the collection's changes after this revision. */
  follow(collection: Collection, after: number): void
  /** Open and silent: no change and no bookmark passes until it is let go, when everything held back comes at once. */
  stall(silent: boolean): void
  /** Ends the stream as if the connection broke (`broken`), or politely. */
  end(how: 'politely' | 'broken'): void
}

export function matches(filter: Filter, version: Version): boolean {
  return version.key.startsWith(filter.prefix) && matchesFields(filter.fields, version.fields) && matchesLabels(filter.labels, version.labels)
}

const nothing = () => {}

export function openWatch(clock: Clock, options: WatchOptions, closed: (watch: Watch) => void): Watch {
  let queue: string[] = []
  let taken = 0
  let most = queueLimit
  let state: 'open' | 'politely' | 'broken' = 'open'
  let stalled = false
  let wake: (() => void) | undefined
  let unlisten = nothing
  let cancelBookmark = nothing
  let finished = false

  const send = (line: string) => {
    if (state !== 'open') return
    queue.push(line)
    if (queue.length - taken > most) end('politely')
    if (!stalled) wake?.()
  }
  const take = (): string | undefined => {
    if (stalled) return undefined
    const line = queue[taken]
    if (line === undefined) return undefined
    taken += 1
    if (taken === queue.length) {
      queue = []
      taken = 0
    }
    return line
  }
  const end = (how: 'politely' | 'broken') => {
    if (state === 'broken' || state === how) return
    state = how
    unlisten()
    cancelBookmark()
    cancelSpan()
    // A stalled reader does not see a polite end either; he may still break off himself.
    if (how === 'broken' || !stalled) finish()
  }
  const finish = () => {
    if (finished) return
    finished = true
    options.signal.removeEventListener('abort', abort)
    wake?.()
    closed(watch)
  }
  const abort = () => end('broken')
  const cancelSpan = clock.after(options.span, () => end('politely'))
  options.signal.addEventListener('abort', abort, { once: true })

  const see = (change: Change) => {
    const seen = typeFor(options.filter, change)
    if (seen === undefined) return
    const dueIn = change.at + options.lag - clock.now()
    if (options.lag === 0 || dueIn <= 0) send(options.line(seen.type, seen.version))
    else clock.after(dueIn, () => send(options.line(seen.type, seen.version)))
  }
  const bookmarkLater = () => {
    cancelBookmark = clock.after(bookmarkEvery, () => {
      send(options.bookmark(undefined))
      bookmarkLater()
    })
  }

  async function* body(): AsyncGenerator<string> {
    try {
      while (true) {
        const line = take()
        if (line !== undefined) yield line
        else if (state === 'politely' && !stalled) return
        else if (state === 'broken') throw new Error('the watch was broken off')
        else {
          await new Promise<void>((resolve) => { wake = resolve })
          wake = undefined
        }
      }
    } finally {
      end('politely')
      finish()
    }
  }

  const watch: Watch = {
    body: body(),
    begin(line) {
      most += 1
      send(line)
    },
    follow(collection, after) {
      if (state !== 'open') return
      // A change later than `after` that the caller has not seen lies in the history; the rest comes live.
      const missed = collection.changesAfter(after) ?? []
      for (const change of missed) see(change)
      const only = options.filter.fields.find((requirement) => requirement.equal)
      unlisten = collection.listen((change) => {
        if (change.revision > after) see(change)
      }, only)
      // A bookmark would speak of what is not seen yet.
      if (options.bookmarks && options.lag === 0) bookmarkLater()
    },
    stall(silent) {
      stalled = silent
      if (!silent && state === 'politely') finish()
      wake?.()
    },
    end,
  }
  if (options.signal.aborted) end('broken')
  return watch
}

function typeFor(filter: Filter, change: Change): { type: Change['type']; version: Version } | undefined {
  const before = change.previous !== undefined && matches(filter, change.previous)
  const after = change.type !== 'DELETED' && matches(filter, change.version)
  if (before && after) return { type: 'MODIFIED', version: change.version }
  if (after) return { type: 'ADDED', version: change.version }
  if (!before) return undefined
  if (change.type === 'DELETED') return { type: 'DELETED', version: change.version }
  return { type: 'DELETED', version: leaving(change) }
}

/** An object that stops matching is shown as it last matched, under the revision at which it stopped. */
function leaving(change: Change): Version {
  const previous = change.previous ?? change.version
  const text = previous.text.replace(`"resourceVersion":"${previous.revision}"`, `"resourceVersion":"${change.revision}"`)
  return { ...previous, revision: change.revision, text }
}
