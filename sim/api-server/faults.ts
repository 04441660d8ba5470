// The ways in which an API server fails its clients, switched on for whom a predicate names.
import type { Ms } from '../../core/model.ts'
import type { ApiRequest } from '../../coordinator/transport.ts'
import type { Opened } from './answer.ts'
import type { Refusal } from './refusal.ts'
import type { User } from './user.ts'

export type Fault = {
  /** Whom and what it strikes; without it, everything. */
  readonly strikes?: (call: Call) => boolean
  /** Strikes so often and is then spent. */
  readonly times?: number
} & (
  | { readonly does: 'unreachable' }
  | { readonly does: 'slow'; readonly by: Ms }
  | { readonly does: 'answer'; readonly status: 403 | 409 | 410 | 429 | 500 | 502 | 503 | 504; readonly retryAfterSeconds?: number }
  /** The request is carried out, its answer is lost. */
  | { readonly does: 'lose answer' }
  /** Watches stay open and silent while all else works. */
  | { readonly does: 'stall watch' }
  /** Its watch cache is so far behind: watches opened now bring their news that late, in order, and so do the lists that are
   *  streamed from it, which may be older than what their reader has seen. What is asked of the store itself is right. */
  | { readonly does: 'lag'; readonly by: Ms }
)

export interface Call {
  readonly user: User
  readonly method: ApiRequest['method']
  /** Without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly watch: boolean
}

export interface Met {
  readonly call: Call
  readonly delay: Ms
  readonly unreachable: boolean
  readonly answer: Refusal | undefined
  readonly loseAnswer: boolean
}

export interface Faults {
  /** These, and no others. Watches stalled before and not named any more go on with what they missed. */
  set(faults: readonly Fault[]): void
  clear(): void
  /** Breaks the connection of every open watch it is true of. */
  breakWatches(strikes?: (call: Call) => boolean): void
  /** Forgets history: every watch and every later page begins anew at 410. Open watches end with it. */
  compact(): void
  before(request: ApiRequest, user: User): Met
  /** No fault keeps it any more, and it is carried out now: whoever listens stands in the way of this. */
  lands(request: ApiRequest, user: User): void
  stalls(opened: Opened): boolean
  /** How far behind a watch is that is opened now. */
  lag(call: Call): Ms
}

const unharmed: Omit<Met, 'call'> = { delay: 0, unreachable: false, answer: undefined, loseAnswer: false }

export function createFaults(world: { openWatches: () => readonly Opened[]; compact: () => void }): Faults {
  let live: { readonly fault: Fault; left: number }[] = []

  const stalls = (opened: Opened) => live.some(({ fault }) => fault.does === 'stall watch' && (fault.strikes?.(opened.call) ?? true))
  const set = (faults: readonly Fault[]) => {
    live = faults.map((fault) => ({ fault, left: fault.times ?? Infinity }))
    for (const opened of world.openWatches()) opened.watch.stall(stalls(opened))
  }
  return {
    set,
    clear: () => set([]),
    breakWatches(strikes) {
      for (const opened of world.openWatches()) if (strikes?.(opened.call) ?? true) opened.watch.end('broken')
    },
    compact() {
      world.compact()
      for (const opened of world.openWatches()) opened.watch.end('politely')
    },
    before(request, user) {
      const call = callOf(request, user)
      if (live.length === 0) return { call, ...unharmed }
      const struck = live.filter((one) => one.left > 0 && one.fault.does !== 'stall watch' && one.fault.does !== 'lag' && (one.fault.strikes?.(call) ?? true))
      for (const one of struck) one.left -= 1
      const faults = struck.map((one) => one.fault)
      return {
        call, delay: faults.reduce((sum, fault) => sum + (fault.does === 'slow' ? fault.by : 0), 0),
        unreachable: faults.some((fault) => fault.does === 'unreachable'),
        answer: faults.flatMap((fault) => (fault.does === 'answer' ? [answerOf(fault, call)] : []))[0],
        loseAnswer: faults.some((fault) => fault.does === 'lose answer'),
      }
    },
    lands: () => undefined,
    stalls,
    lag: (call) => Math.max(0, ...live.map(({ fault }) => (fault.does === 'lag' && (fault.strikes?.(call) ?? true) ? fault.by : 0))),
  }
}

/** Of all requests without a query; nobody writes into the query of a call. */
const nothingAsked = new URLSearchParams()

export function callOf(request: ApiRequest, user: User): Call {
  const from = request.path.indexOf('?')
  if (from === -1) return { user, method: request.method, path: request.path, query: nothingAsked, watch: false }
  const path = request.path.slice(0, from)
  const query = new URLSearchParams(request.path.slice(from + 1))
  return { user, method: request.method, path, query, watch: query.get('watch') === 'true' || query.get('watch') === '1' }
}

function answerOf(fault: Extract<Fault, { does: 'answer' }>, { user, method, path }: Call): Refusal {
  const wait = fault.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: fault.retryAfterSeconds }
  switch (fault.status) {
    case 403:
      return { code: 403, reason: 'Forbidden', message: `forbidden: User "${user.name}" cannot ${method.toLowerCase()} path "${path}"`, ...wait }
    case 409:
      return { code: 409, reason: 'Conflict', message: 'Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again', ...wait }
    case 410:
      return { code: 410, reason: 'Expired', message: 'too old resource version', ...wait }
    case 429:
      return { code: 429, reason: 'TooManyRequests', message: 'too many requests, please try again later', retryAfterSeconds: fault.retryAfterSeconds ?? 1 }
    case 500:
      return { code: 500, reason: 'InternalError', message: 'Internal error occurred: etcdserver: request timed out', ...wait }
    case 502:
    case 503:
      return { code: fault.status, reason: 'ServiceUnavailable', message: 'the server is currently unable to handle the request', ...wait }
    case 504:
      return { code: 504, reason: 'Timeout', message: 'Timeout: request did not complete within the requested timeout', ...wait }
  }
}
