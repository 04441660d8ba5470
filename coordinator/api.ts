// The client that everything in the coordinator (and in the simulated kubelets) speaks to the API server with. It knows
// HTTP's and Kubernetes' ways of saying no, and turns each into a value by what the caller can do about it; it retries
// nothing, because only the caller knows what a lost answer means.
import type { Ms } from '../core/model.ts'
import { withDeadline, type Clock } from '../edge/clock.ts'
import { badAnswer, failure, readStatus, tooLate } from './api-error.ts'
import { abandonable, readAll } from './api-body.ts'
import { watchOn } from './api-watch.ts'
import { bucket, type Rate } from './rate.ts'
import type { ApiRequest, ApiResponse, Transport } from './transport.ts'

export type Answer<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: ApiError }

/** What went wrong, by what the caller can do about it. `refused` is any other 4xx. `unreachable`: no status line, or the
 *  body broke off; the write may or may not have happened. `late`: our deadline; likewise. */
export interface ApiError {
  readonly kind:
    | 'unauthorized' | 'forbidden' | 'notFound' | 'conflict' | 'gone' | 'invalid' | 'throttled' | 'refused' | 'server' | 'unreachable' | 'late'
  readonly status?: number
  readonly message: string
  readonly retryAfter?: Ms
  /** The API server's own one-word reason, which tells apart what one status covers: 409 is `Conflict` or `AlreadyExists`,
   *  404 is `NotFound` or an unknown path, 410 is `Expired` or `Gone`. */
  readonly reason?: string
  /** What exactly was invalid, field by field (422), or what stood in the way (429 of an eviction). */
  readonly causes?: readonly ApiCause[]
}

export interface ApiCause {
  readonly reason: string
  readonly field: string
  readonly message: string
}

export interface KubeObject {
  apiVersion?: string
  kind?: string
  metadata: Meta
}

export interface Meta {
  name: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  generation?: number
  creationTimestamp?: string
  deletionTimestamp?: string
  deletionGracePeriodSeconds?: number
  labels?: Record<string, string>
  annotations?: Record<string, string>
  finalizers?: string[]
  ownerReferences?: { apiVersion: string; kind: string; name: string; uid: string; controller?: boolean }[]
}

export interface KubeList<T> {
  metadata: { resourceVersion: string; continue?: string }
  items: T[]
}

export type PatchKind = 'json' | 'merge' | 'strategic'

export interface DeleteOptions {
  gracePeriodSeconds?: number
  preconditions?: { uid?: string; resourceVersion?: string }
  propagationPolicy?: 'Orphan' | 'Background' | 'Foreground'
}

/** Paths are the API server's own (`/api/v1/nodes/n1/status`), query included. Every call has a deadline, every call passes
 *  the client-side rate limit, nothing is retried here: whoever asks decides what a lost answer means. */
export interface Api {
  get<T>(path: string, options?: CallOptions): Promise<Answer<T>>
  create<T>(path: string, body: unknown, options?: CallOptions): Promise<Answer<T>>
  replace<T>(path: string, body: unknown, options?: CallOptions): Promise<Answer<T>>
  patch<T>(path: string, kind: PatchKind, body: unknown, options?: CallOptions): Promise<Answer<T>>
  remove<T>(path: string, body?: DeleteOptions, options?: CallOptions): Promise<Answer<T>>
  /** The event stream of a watch, until it ends. Never throws: whatever ends it early is a last event of type ERROR whose
   *  object is a `WatchStatus`: the server's own words, or, with code 0, ours (nobody answered, the stream broke, nothing
   *  came for `idle`). An end without ERROR is the server's orderly end, or our own signal. */
  watch(path: string, idle: Ms, signal: AbortSignal): AsyncIterable<WatchEvent>
}

export interface CallOptions {
  readonly deadline?: Ms
  readonly signal?: AbortSignal
  /** Passes the rate limit without waiting: for the leader's renewal, and nothing that comes in numbers. */
  readonly urgent?: boolean
}

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: KubeObject
}

/** The object of an ERROR event. Reasons of ours, all with code 0: `Unreachable`, `Idle`, `TooLong`, `Malformed`. */
export interface WatchStatus extends KubeObject {
  code: number
  reason: string
  message: string
  retryAfter?: Ms
}

export interface ApiOptions {
  readonly transport: Transport
  readonly clock: Clock
  readonly deadline?: Ms
  readonly rate?: Rate
  readonly userAgent?: string
  /** The API server itself spoke (any status below 500, any piece of a watch): what the age of its last word counts from. */
  onAnswer?(at: Ms): void
  /** One finished call, for metrics. Status 0: none came. */
  observe?(verb: Verb, status: number, span: Ms): void
}

export type Verb = 'get' | 'create' | 'replace' | 'patch' | 'remove' | 'watch'

// A page of 500 nodes with full image lists is about 10 MB; an object is at most 3 MB by etcd's own limit.
const bodyLimit = 64 * 1024 * 1024
const usualDeadline = 10_000
const usualRate: Rate = { perSecond: 50, burst: 100 }

const patchTypes: Readonly<Record<PatchKind, string>> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
}

/** A write that failed so may have happened all the same: the answer was lost, or the server could not say. */
export function mayHaveHappened(error: ApiError): boolean {
  return error.kind === 'unreachable' || error.kind === 'late' || error.kind === 'server'
}

export function createApi(options: ApiOptions): Api {
  const { transport, clock, deadline = usualDeadline } = options
  const limit = bucket(clock, options.rate ?? usualRate)

  const call = async <T>(verb: Verb, asked: ApiRequest, wanted: CallOptions = {}): Promise<Answer<T>> => {
    const began = clock.now()
    const within = wanted.deadline ?? deadline
    const turn = wanted.urgent ? (limit.force(), 0) : limit.take(within)
    // No status: nothing was sent, which is what tells this from a server that is busy.
    if (turn === undefined) return { ok: false, error: { kind: 'throttled', message: 'our own rate limit: nothing was sent', retryAfter: within } }
    if (turn > 0) await clock.wait(turn, wanted.signal)
    if (wanted.signal?.aborted) return { ok: false, error: { kind: 'unreachable', message: 'given up before it was sent' } }
    let status = 0
    const answer = await withDeadline<Answer<T>, Answer<T>>(clock, within - turn, tooLate(asked, within), (late) =>
      untilEither(late, wanted.signal, async (signal) => {
        const response = await transport(asked, signal)
        status = response.status
        if (status < 500) options.onAnswer?.(clock.now())
        return await readAnswer<T>(asked, response, signal)
      }).catch((error: unknown) => failure(asked, error)))
    options.observe?.(verb, status, clock.now() - began)
    return answer
  }

  const request = (method: ApiRequest['method'], path: string, body?: unknown, type = 'application/json'): ApiRequest => {
    const headers = { accept: 'application/json', 'user-agent': options.userAgent ?? 'holdfast' }
    if (body === undefined) return { method, path, headers }
    return { method, path, headers: { ...headers, 'content-type': type }, body: JSON.stringify(body) }
  }

  return {
    get: (path, wanted) => call('get', request('GET', path), wanted),
    create: (path, body, wanted) => call('create', request('POST', path, body), wanted),
    replace: (path, body, wanted) => call('replace', request('PUT', path, body), wanted),
    patch: (path, kind, body, wanted) => call('patch', request('PATCH', path, body, patchTypes[kind]), wanted),
    remove: (path, body, wanted) => call('remove', request('DELETE', path, body), wanted),
    watch: (path, idle, signal) => watchOn({ ...options, deadline, limit, readAnswer }, request('GET', path), idle, signal),
  }
}

async function readAnswer<T>(asked: ApiRequest, response: ApiResponse, signal: AbortSignal): Promise<Answer<T>> {
  const text = await readAll(response.body, signal, bodyLimit)
  if (text === undefined) return { ok: false, error: badAnswer(asked, response, `its body is longer than ${bodyLimit} bytes`) }
  if (response.status >= 300) return { ok: false, error: readStatus(asked, response, text) }
  try {
    // The server's schema vouches for the shape of its own objects; the caller names the one it asked for.
    return { ok: true, value: JSON.parse(text) as T }
  } catch {
    return { ok: false, error: badAnswer(asked, response, 'its body is not JSON') }
  }
}

/** Runs under a signal that ends with either; leaves no listener on the caller's, which may live as long as the process.
 *  Without a second one the first is all: who gave it waits no longer than that. */
async function untilEither<T>(one: AbortSignal, other: AbortSignal | undefined, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  if (other === undefined) return await run(one)
  const stop = new AbortController()
  const relay = () => stop.abort()
  one.addEventListener('abort', relay, { once: true })
  other.addEventListener('abort', relay, { once: true })
  try {
    return await abandonable(run(stop.signal), stop.signal)
  } finally {
    one.removeEventListener('abort', relay)
    other.removeEventListener('abort', relay)
  }
}
