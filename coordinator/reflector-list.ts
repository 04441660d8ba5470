// One full read of a collection: as a stream where the server can (it holds one object at a time in memory, and so do we),
// else in pages. Both are as new as the moment they were asked for: no resourceVersion is named, so the server must ask etcd.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Api, ApiError, KubeList, KubeObject, WatchStatus } from './api.ts'

export interface ListOptions<T> {
  readonly api: Api
  readonly clock: Clock
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly pageLimit?: number
  readonly watchLists: boolean
  readonly signal: AbortSignal
  /** Undefined: not to be kept. */
  keep(object: KubeObject): T | undefined
}

export interface Listing<T> {
  readonly ok: true
  readonly items: readonly T[]
  readonly version: string
  readonly watchListRefused?: boolean
}
export interface NoListing {
  readonly ok: false
  readonly because: string
  readonly retryAfter?: Ms
  readonly watchListRefused?: boolean
}

const initialEventsEnd = 'k8s.io/initial-events-end'
// Objects stream without a pause; a server that does not know the feature sends them, too, and then waits for news.
const streamIdle: Ms = 10_000
const pagesLimit = 10_000
const restarts = 3

export async function listAll<T>(options: ListOptions<T>): Promise<Listing<T> | NoListing> {
  if (!options.watchLists) return await inPages(options)
  const streamed = await asStream(options)
  if (streamed !== 'refused') return streamed
  return { ...(await inPages(options)), watchListRefused: true }
}

async function asStream<T>({ api, path, query, signal, keep }: ListOptions<T>): Promise<Listing<T> | NoListing | 'refused'> {
  const items: T[] = []
  const asked = new URLSearchParams({
    ...query, watch: '1', sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: 'true', timeoutSeconds: '120',
  })
  for await (const { type, object } of api.watch(`${path}?${asked}`, streamIdle, signal)) {
    const version = object.metadata?.resourceVersion
    if (type === 'ADDED') push(items, keep(object))
    else if (type === 'BOOKMARK' && object.metadata.annotations?.[initialEventsEnd] === 'true' && version) return { ok: true, items, version }
    else if (type === 'BOOKMARK') continue
    else if (type === 'ERROR') {
      const { code, reason, message, retryAfter } = object as WatchStatus // an ERROR's object is always one
      // Idle after objects came, or before: it is waiting for news, and does not know that we wait for an end.
      if (code === 400 || code === 422 || (code === 0 && reason === 'Idle')) return 'refused'
      return { ok: false, because: `${reason}: ${message}`, ...(retryAfter === undefined ? {} : { retryAfter }) }
    } else return 'refused' // news among the first objects: a server that ignores the question, and goes on watching
  }
  return { ok: false, because: 'the stream of a list ended before its end' }
}

async function inPages<T>(options: ListOptions<T>): Promise<Listing<T> | NoListing> {
  for (let attempt = 0; attempt < restarts; attempt++) {
    const read = await onePass(options)
    if (read !== 'expired') return read
  }
  return { ok: false, because: `the list expired between its pages ${restarts} times in a row` }
}

async function onePass<T>({ api, path, query, pageLimit = 500, signal, keep }: ListOptions<T>): Promise<Listing<T> | NoListing | 'expired'> {
  const items: T[] = []
  let next: string | undefined
  let version: string | undefined
  for (let page = 0; page < pagesLimit; page++) {
    const asked = new URLSearchParams({ ...query, limit: String(pageLimit), ...(next === undefined ? {} : { continue: next }) })
    const answer = await api.get<KubeList<KubeObject>>(`${path}?${asked}`, { signal })
    if (!answer.ok) return next !== undefined && answer.error.kind === 'gone' ? 'expired' : noListing(answer.error)
    for (const object of answer.value.items ?? []) push(items, keep(object))
    // The first page's: the pages are one snapshot, and should a server break that, the older version replays the difference.
    version ??= answer.value.metadata.resourceVersion
    next = answer.value.metadata.continue || undefined
    if (next === undefined) return { ok: true, items, version }
  }
  return { ok: false, because: `the list has more than ${pagesLimit} pages` }
}

function noListing({ message, retryAfter }: ApiError): NoListing {
  return { ok: false, because: message, ...(retryAfter === undefined ? {} : { retryAfter }) }
}

function push<T>(items: T[], item: T | undefined): void {
  if (item !== undefined) items.push(item)
}
