// Every change of a collection, as the API server tells of it. Versions are of one sequence for all kinds, since one etcd counts them: they say what came
// before what, whatever clock a record was written by.
import type { KubeObject, WatchEvent } from '../../coordinator/api.ts'
import type { Ms } from '../../core/model.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import type { Lab } from './lab.ts'

export interface Told<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly version: bigint
  /** When we heard of it: not before it was so. */
  readonly at: Ms
  readonly object: T
}

export interface Watch<T> {
  /** In their order. Throws where something may have gone by unheard. */
  told(): readonly Told<T>[]
  stop(): void
}

/** A watch is as long as its server lets it be, half an hour at least; bookmarks come once a minute. */
const idle: Ms = 120_000

/** From now on. */
export async function watch<T extends KubeObject>({ api }: Lab, collection: string): Promise<Watch<T>> {
  const now = await api.get<{ metadata: { resourceVersion: string } }>(`${collection}?limit=1`)
  if (!now.ok) throw new Error(`${collection}: ${now.error.message}`)
  const [all, stopped]: [Told<T>[], AbortController] = [[], new AbortController()]
  let ended: string | undefined
  const take = ({ type, object }: WatchEvent): void => {
    if (type === 'ERROR') ended = JSON.stringify(object)
    else if (type !== 'BOOKMARK') all.push({ type, version: BigInt(object.metadata.resourceVersion ?? ''), at: clock.now(), object: object as T }) // the collection's own kind
  }
  const listen = async (): Promise<void> => {
    for await (const event of api.watch(`${collection}?watch=1&allowWatchBookmarks=true&resourceVersion=${now.value.metadata.resourceVersion}`, idle, stopped.signal)) take(event)
    ended ??= 'the server ended it'
  }
  void listen()
  return {
    told() {
      if (ended !== undefined) throw new Error(`the watch of ${collection} has ended: ${ended}`)
      return all
    },
    stop: () => stopped.abort(),
  }
}
