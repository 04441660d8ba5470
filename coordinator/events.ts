// Events as people read them with kubectl: best effort, never in the way. What happens again is counted on the same Event,
// so that a hold that is said with every tick is one line with a number, not a flood.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import type { Answer, Api } from './api.ts'
import { microTime } from './api-time.ts'
import { noteLimit } from './fault-note.ts'

export interface Regarded {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly namespace?: string
}

export interface Occasion {
  readonly regarding: Regarded
  readonly related?: Regarded
  /** CamelCase, for machines: why. */
  readonly reason: string
  /** CamelCase, for machines: what was done, or was not. */
  readonly action: string
  /** A sentence for people. */
  readonly note: string
  readonly type: 'Normal' | 'Warning'
}

export interface Recorder {
  /** Returns at once and never throws. */
  say(occasion: Occasion): void
  /** Writes what is still to be written, for a short while, and nothing after. */
  close(): Promise<void>
}

export interface RecorderOptions {
  readonly api: Api
  readonly clock: Clock
  readonly log: Log
  /** Of this replica; stands as reportingInstance. */
  readonly identity: string
}

interface Series {
  readonly key: string
  occasion: Occasion
  count: number
  saidAt: Ms
  saidWall: number
  /** Chosen once: an answer that was lost is found again by it. */
  name?: string
  /** Where it stands on the server, and with which count. */
  path?: string
  written: number
  writtenAt: Ms
  cancel?: () => void
}

const controller = 'holdfast.dev/coordinator'
/** Silent for longer, and the next time is a new Event: the server keeps them for an hour. */
const window: Ms = 600_000
/** The count on the server is at most so old. */
const refresh: Ms = 60_000
const seriesLimit = 2_000
const queueLimit = 500
const tries = 4
const closingSpan: Ms = 2_000
const wordLimit = 128

export function recorder({ api, clock, log, identity }: RecorderOptions): Recorder {
  const known = new Map<string, Series>()
  const queue = new Set<Series>()
  const stop = new AbortController()
  let writing: Promise<void> | undefined
  let closed = false
  let dropped = 0
  let serial = 0

  return {
    say(occasion) {
      if (closed) return
      const series = seriesOf(occasion)
      series.occasion = occasion
      series.count++
      series.saidAt = clock.now()
      series.saidWall = clock.wall()
      enqueue(series)
    },
    async close() {
      closed = true
      for (const series of known.values()) {
        series.cancel?.()
        if (series.count > series.written && queue.size < queueLimit) queue.add(series)
      }
      const pump = writeOn()
      await Promise.race([pump, clock.wait(closingSpan, stop.signal)])
      stop.abort()
      await pump
    },
  }

  function seriesOf(occasion: Occasion): Series {
    const { regarding, related, reason, action, note, type } = occasion
    const key = JSON.stringify([regarding.uid, regarding.kind, regarding.name, regarding.namespace, related?.uid, reason, action, note, type])
    const found = known.get(key)
    if (found && clock.now() - found.saidAt <= window) return found
    found?.cancel?.()
    known.delete(key)
    // The oldest goes first; should it be said again it is a new Event, and nothing worse.
    const oldest = known.size >= seriesLimit ? known.values().next().value : undefined
    if (oldest) {
      oldest.cancel?.()
      known.delete(oldest.key)
    }
    const series: Series = { key, occasion, count: 0, saidAt: 0, saidWall: 0, written: 0, writtenAt: 0 }
    known.set(key, series)
    return series
  }

  function enqueue(series: Series): void {
    if (queue.has(series)) return
    if (series.written > 0) {
      const due = series.writtenAt + refresh - clock.now()
      if (due > 0) {
        series.cancel ??= clock.after(due, () => {
          delete series.cancel
          enqueue(series)
        })
        return
      }
    }
    if (queue.size >= queueLimit) {
      if (dropped++ === 0) log.warn({ reason: series.occasion.reason }, 'events are dropped: more are said than can be written')
      return
    }
    queue.add(series)
    void writeOn()
  }

  /** One writer at a time, in the order in which things were said. */
  function writeOn(): Promise<void> {
    writing ??= drain().catch((error: unknown) => log.error({ error }, 'an event could not be written')).finally(() => {
      writing = undefined
      if (queue.size > 0 && !stop.signal.aborted) void writeOn() // said while the last one was ending
    })
    return writing
  }

  async function drain(): Promise<void> {
    for (let [series] = queue; series && !stop.signal.aborted; [series] = queue) {
      queue.delete(series)
      await write(series)
    }
    if (queue.size === 0 && dropped > 0) {
      log.warn({ dropped }, 'events were dropped')
      dropped = 0
    }
  }

  async function write(series: Series): Promise<void> {
    for (let attempt = 0; attempt < tries && !stop.signal.aborted; attempt++) {
      const count = series.count
      const answer = series.path === undefined ? await create(series) : await update(series, series.path)
      if (answer.ok) {
        series.written = count
        series.writtenAt = clock.now()
        return
      }
      const { kind, message, retryAfter = 0 } = answer.error
      if (kind === 'notFound' && series.path !== undefined) {
        // The server keeps Events for an hour; ours is gone, and begins anew.
        delete series.path
        delete series.name
        continue
      }
      const passing = kind === 'unreachable' || kind === 'late' || kind === 'server' || kind === 'throttled' || kind === 'unauthorized'
      if (!passing || attempt === tries - 1) {
        log.warn({ because: message, reason: series.occasion.reason }, 'an event is lost')
        return
      }
      await clock.wait(Math.max(retryAfter, 1_000 * 2 ** attempt), stop.signal)
    }
  }

  async function create(series: Series): Promise<Answer<unknown>> {
    const { regarding, related, reason, action, note, type } = series.occasion
    // An Event of a cluster-scoped object must stand in `default`; the server refuses any other.
    const namespace = regarding.namespace ?? 'default'
    const at = series.saidWall
    if (series.name === undefined) serial = (serial + 1) % 0xffff
    series.name ??= `${regarding.name.slice(0, 220)}.${Math.floor(at).toString(16)}${serial.toString(16).padStart(4, '0')}`
    const name = series.name
    const collection = `/apis/events.k8s.io/v1/namespaces/${namespace}/events`
    const answer = await api.create(collection, {
      apiVersion: 'events.k8s.io/v1', kind: 'Event', metadata: { name, namespace }, eventTime: microTime(at),
      reportingController: controller, reportingInstance: identity.slice(0, wordLimit),
      reason: reason.slice(0, wordLimit), action: action.slice(0, wordLimit), note: shorten(note), type, regarding, ...(related ? { related } : {}),
    }, { signal: stop.signal })
    if (!answer.ok && answer.error.reason !== 'AlreadyExists') return answer
    series.path = `${collection}/${name}`
    return { ok: true, value: undefined }
  }

  /** A count of one needs no series: then only the creation was wanting. */
  async function update(series: Series, path: string): Promise<Answer<unknown>> {
    if (series.count < 2) return { ok: true, value: undefined }
    const lastObservedTime = microTime(series.saidWall)
    return await api.patch(path, 'merge', { series: { count: series.count, lastObservedTime } }, { signal: stop.signal })
  }
}

/** To the server's limit, which counts bytes. */
function shorten(note: string): string {
  if (Buffer.byteLength(note) <= noteLimit) return note
  const cut = new TextDecoder().decode(Buffer.from(note).subarray(0, noteLimit - 6))
  return `${cut.replace(/\uFFFD+$/, '')}…`
}
