// Contract first: the client that everything in the coordinator (and in the simulated kubelets) speaks to the API with.
import type { Ms } from '../core/model.ts'

export type Answer<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: ApiError }

/** What went wrong, by what the caller can do about it. `refused` is any other 4xx. `unreachable`: no status line, or the
 *  body broke off; the write may or may not have happened. `late`: our deadline; likewise. */
export interface ApiError {
  readonly kind:
    | 'unauthorized' | 'forbidden' | 'notFound' | 'conflict' | 'gone' | 'invalid' | 'throttled' | 'refused' | 'server' | 'unreachable' | 'late'
  readonly status?: number
  readonly message: string
  readonly retryAfter?: Ms
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
  /** The raw event stream of a watch: one JSON value a line, until it ends. Idle longer than `idle`: ended by us. */
  watch(path: string, idle: Ms, signal: AbortSignal): AsyncIterable<WatchEvent>
}

export interface CallOptions {
  readonly deadline?: Ms
  readonly signal?: AbortSignal
}

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: KubeObject
}
