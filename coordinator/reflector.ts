// A reflector keeps a copy of one collection: a full read, then a watch from there, for ever. It is what decisions look at,
// so it must be right about two things: what it holds, and how old that is.
//
// What it holds. Watches resume where they ended; 410, or anything a stream says that is no event, leads to a new full read
// that is compared by UID. A server that has gone back in time (restored, or a stale replica behind a balancer) is not
// believed until it has insisted for a minute: until then nothing is applied and the copy grows old, which holds everything.
// After stop() nothing more is told, whatever was under way: one loop does everything, and it ends there.
//
// How old that is. An open watch proves nothing: a path that is up and carries nothing looks like a quiet cluster, and the
// server's own bookmarks come once a minute. Comparing with the version of a short list does not help either, because a list
// bears the version of the whole store, which moves with every write of anything. So a reflector that must be fresh within
// seconds (`freshWithin`) asks for *short watches*: the server ends each after that span, in order, and the next resumes where
// it ended. An orderly end says "that was all until now" (a server also sends a bookmark two seconds before it); a stream
// that outlives its span by more than `overrun` is stalled, is dropped, and the next one, a new request, brings what it kept
// back. One request each span on a connection that is there already, no second source to compare with, and a stalled watch
// is not only noticed but cured, in `freshWithin` + `overrun` at worst. (What it cannot see: a server whose own watch cache
// stands still while it answers. Against that, what must not be wrong is read live before the deed.)
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import type { Api, KubeObject, WatchEvent, WatchStatus } from './api.ts'
import { listAll, type Listing } from './reflector-list.ts'
import { compareVersions, createStore, keyOf, sameObject, type Change } from './reflector-store.ts'

export type { Change } from './reflector-store.ts'

export interface ReflectorOptions<T extends KubeObject> {
  readonly api: Api
  readonly clock: Clock
  chance(): number
  /** `/api/v1/nodes`. */
  readonly path: string
  /** Selectors. */
  readonly query?: Readonly<Record<string, string>>
  /** Keeps only what is needed; must keep name, namespace, uid and resourceVersion. Without it all is kept but managedFields. */
  project?(object: KubeObject): T
  changed(change: Change<T>): void
  readonly log: Log
  /** A watch on which not even a bookmark came for so long is dropped. Above the bookmarks' interval of a minute. */
  readonly idle?: Ms
  readonly pageLimit?: number
  /** Ask for short watches, so that `freshAt` is never older than this when all is well. At least 2 s. */
  readonly freshWithin?: Ms
}

export interface Reflector<T> {
  /** By `namespace/name`, or name. */
  readonly items: ReadonlyMap<string, T>
  /** The latest instant at which the copy was known to be whole. Undefined: not yet. */
  freshAt(): Ms | undefined
  /** A first full read is done. */
  readonly synced: boolean
  /** Full reads done: a rise means that something may have come and gone unseen. */
  readonly generation: number
  /** Keys whose handler threw; they are told again later. */
  readonly quarantined: ReadonlySet<string>
  /** Why it is not up to date at present, for people. */
  readonly trouble: string | undefined
  stop(): void
}

const usualIdle: Ms = 90_000
const overrun: Ms = 3_000
const firstPause: Ms = 400
const longestPause: Ms = 8_000
/** Refusals of one resumption in a row before the full read is tried instead. */
const resumptions = 3
/** How long a server must insist that the past is now. */
const pastPatience: Ms = 60_000

/** What follows an attempt. `well`: it got us somewhere, and failures are forgotten. */
interface Outcome { readonly from: string | undefined; readonly well: boolean; readonly because?: string; readonly retryAfter?: Ms }

export function reflect<T extends KubeObject>(options: ReflectorOptions<T>): Reflector<T> {
  const { api, clock, log, path } = options
  const store = createStore<T>(options)
  const stopped = new AbortController()
  let freshAt: Ms | undefined
  let newest: string | undefined
  let pastSince: Ms | undefined
  let generation = 0
  let trouble: string | undefined
  let watchLists = true

  void run()
  return {
    items: store.items,
    quarantined: store.quarantined,
    freshAt: () => freshAt,
    get synced() { return generation > 0 },
    get generation() { return generation },
    get trouble() { return trouble },
    stop() {
      store.close()
      stopped.abort()
    },
  }

  async function run(): Promise<void> {
    let failures = 0
    let from: string | undefined
    while (!stopped.signal.aborted) {
      const outcome = await (from === undefined ? sync() : follow(from, failures)).catch(stumbled)
      if (stopped.signal.aborted) return
      from = outcome.from
      if (outcome.well) failures = 0
      if (outcome.because === undefined) continue
      failures++
      if (trouble === undefined) log.warn({ path, because: outcome.because }, 'the copy of a collection is no longer kept up to date')
      trouble = outcome.because
      await clock.wait(Math.max(outcome.retryAfter ?? 0, pauseAfter(failures, options.chance())), stopped.signal)
    }
  }

  function stumbled(error: unknown): Outcome {
    // What no server should say, or a fault of ours. A reflector that silently ended would be worse than one that repeats.
    log.error({ path, error }, 'a reflector stumbled, and reads anew')
    return { from: undefined, well: false, because: error instanceof Error ? error.message : String(error) }
  }

  function current(at: Ms): void {
    freshAt = Math.max(freshAt ?? at, at)
    if (trouble !== undefined) log.info({ path }, 'the copy of a collection is up to date again')
    trouble = undefined
  }

  async function sync(): Promise<Outcome> {
    const askedAt = clock.now()
    const listed = await listAll({ ...options, watchLists, signal: stopped.signal, keep })
    if (stopped.signal.aborted) return { from: undefined, well: false }
    if (listed.ok && listed.watchListRefused) {
      watchLists = false
      log.info({ path }, 'the server has no streamed lists here; lists are read in pages')
    }
    if (!listed.ok) return { from: undefined, well: false, because: listed.because, ...(listed.retryAfter === undefined ? {} : { retryAfter: listed.retryAfter }) }
    const past = outOfThePast(listed)
    if (past !== undefined) return { from: undefined, well: false, because: past }
    store.replace(listed.items)
    if (stopped.signal.aborted) return { from: undefined, well: false } // a handler stopped us
    newest = listed.version
    generation++
    // As of when it was asked for, not of when it came: the pages are one snapshot, made after that.
    current(askedAt)
    return { from: listed.version, well: false }
  }

  function outOfThePast({ version }: Listing<T>): string | undefined {
    const order = compareVersions(version, newest)
    if (order === undefined || order >= 0) {
      pastSince = undefined
      return undefined
    }
    pastSince ??= clock.now()
    const because = `the server's list is of version ${version}, and ${newest} was seen before`
    if (clock.now() - pastSince < pastPatience) return because
    log.error({ path, because }, 'the server has gone back in time and insists; it is believed now')
    pastSince = undefined
    return undefined
  }

  async function follow(from: string, failures: number): Promise<Outcome> {
    const short = options.freshWithin !== undefined
    const seconds = Math.max(2, options.freshWithin === undefined ? 300 + Math.floor(options.chance() * 300) : Math.floor(options.freshWithin / 1000))
    const openedAt = clock.now()
    const stream = new AbortController()
    const relay = () => stream.abort()
    stopped.signal.addEventListener('abort', relay, { once: true })
    let overran = false
    const cancel = clock.after(seconds * 1000 + overrun, () => {
      overran = true
      stream.abort()
    })
    let heard = false
    try {
      const asked = query(options, { watch: '1', allowWatchBookmarks: 'true', resourceVersion: from, timeoutSeconds: String(seconds) })
      for await (const event of api.watch(asked, short ? seconds * 1000 + overrun : (options.idle ?? usualIdle), stream.signal)) {
        if (stopped.signal.aborted) return { from: newest, well: heard }
        // Only a server's ERROR and our own reach here as ERROR, and both bear a status.
        if (event.type === 'ERROR') return afterError(event.object as WatchStatus, heard, failures)
        const fault = take(event)
        if (fault !== undefined) return { from: undefined, well: heard, because: fault }
        heard = true
        current(clock.now())
      }
    } finally {
      cancel()
      stopped.signal.removeEventListener('abort', relay)
    }
    const lasted = clock.now() - openedAt
    if (overran) return heard || !short ? { from: newest, well: true } : { from: newest, well: false, because: 'a watch outlived its end in silence' }
    // Some servers end a watch as soon as it began (they are going down, or too busy): that must not become a spin.
    if (!heard && lasted < 1_000) return { from: newest, well: false, because: 'a watch ended as soon as it began' }
    if (lasted >= seconds * 1000 - 500) current(Math.min(clock.now(), openedAt + seconds * 1000))
    return { from: newest, well: true }
  }

  function afterError({ code, reason, message, retryAfter }: WatchStatus, heard: boolean, failures: number): Outcome {
    const because = `${reason}: ${message}`
    const ours = code === 0 && reason !== 'Malformed' && reason !== 'TooLong'
    const passing = (code === 401 || code === 429 || code >= 500) && failures < resumptions
    const after = retryAfter === undefined ? {} : { retryAfter }
    return { from: ours || passing ? newest : undefined, well: heard, because, ...after }
  }

  /** Undefined: taken in. Else why this stream cannot be trusted. */
  function take({ type, object }: WatchEvent): string | undefined {
    const version = object.metadata.resourceVersion
    const order = compareVersions(version, newest)
    if (type === 'BOOKMARK') {
      if (order !== undefined && order < 0) return `a bookmark of version ${version} came after ${newest}`
      newest = version ?? newest
      return undefined
    }
    const held = store.items.get(keyOf(object))
    if (type === 'DELETED') {
      if (held && sameObject(held, object)) store.drop(keyOf(object))
    } else {
      if (order !== undefined && order < 0) return `an event of version ${version} came after ${newest}`
      const known = held && sameObject(held, object) && held.metadata.resourceVersion === version
      const kept = known ? undefined : keep(object)
      if (kept && kept !== held) store.put(kept)
    }
    if (order === undefined || order > 0) newest = version ?? newest
    return undefined
  }

  function keep(object: KubeObject): T | undefined {
    try {
      if (options.project) return options.project(object)
    } catch (error) {
      // One object that nobody foresaw must not cost us all the others; what was known of it stays.
      log.error({ path, key: keyOf(object), error }, 'an object could not be read')
      return store.items.get(keyOf(object))
    }
    delete (object.metadata as { managedFields?: unknown }).managedFields // a third of many an object, and of no use here
    return object as T // without a projection the caller names the type of what its path holds
  }
}

function query(options: Pick<ReflectorOptions<KubeObject>, 'path' | 'query'>, more: Readonly<Record<string, string>>): string {
  return `${options.path}?${new URLSearchParams({ ...options.query, ...more })}`
}

function pauseAfter(failures: number, chance: number): Ms {
  return Math.min(firstPause * 2 ** Math.min(failures - 1, 10), longestPause) * (0.5 + chance / 2)
}
