// What a reflector holds, and the telling of it. One handler that throws must neither stop the stream nor lose the change:
// its key is quarantined, and told again later as what is true then.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import type { KubeObject } from './api.ts'

export interface Change<T> {
  readonly type: 'added' | 'modified' | 'deleted'
  readonly key: string
  /** As it is now; for `deleted`, as it was last known. */
  readonly object: T
  readonly previous?: T
}

export interface Store<T> {
  readonly items: ReadonlyMap<string, T>
  /** Keys whose handler threw and has not been told since. */
  readonly quarantined: ReadonlySet<string>
  put(object: T): void
  drop(key: string): void
  /** Makes the store equal to a full list, telling only what differs: by UID, so that an object deleted and created again
   *  under its name between two lists is told as both. */
  replace(objects: readonly T[]): void
  /** Nothing is told after this. */
  close(): void
}

interface Ill<T> { readonly told: T | undefined; readonly failures: number; cancel(): void }

const firstRetry: Ms = 10_000
const longestRetry: Ms = 300_000

export function createStore<T extends KubeObject>(
  { clock, log, changed }: { clock: Clock; log: Log; changed(change: Change<T>): void },
): Store<T> {
  const items = new Map<string, T>()
  const ill = new Map<string, Ill<T>>()
  const quarantined = new Set<string>()
  let closed = false

  /** Tells how `key` came from what was last told to what it is. */
  const tell = (key: string, told: T | undefined, object: T | undefined, failures: number) => {
    let last = told
    try {
      for (const change of changesBetween(key, told, object)) {
        if (closed) return
        changed(change)
        last = change.type === 'deleted' ? undefined : change.object
      }
      ill.delete(key)
      quarantined.delete(key)
    } catch (error) {
      if (closed) return
      const span = Math.min(firstRetry * 2 ** failures, longestRetry)
      log.error({ key, error, span }, 'a change could not be taken in; its key is left alone for a while')
      const cancel = clock.after(span, () => tell(key, last, items.get(key), failures + 1))
      ill.set(key, { told: last, failures, cancel })
      quarantined.add(key)
    }
  }

  const set = (key: string, object: T | undefined) => {
    if (closed) return
    const previous = items.get(key)
    if (object) items.set(key, object)
    else items.delete(key)
    if (!ill.has(key)) tell(key, previous, object, 0)
  }

  return {
    items,
    quarantined,
    put: (object) => set(keyOf(object), object),
    drop: (key) => set(key, undefined),
    replace(objects) {
      const listed = new Map(objects.map((object) => [keyOf(object), object]))
      for (const key of items.keys()) if (!listed.has(key)) set(key, undefined)
      for (const [key, object] of listed) {
        const held = items.get(key)
        if (!held || !sameObject(held, object) || held.metadata.resourceVersion !== object.metadata.resourceVersion) set(key, object)
      }
    },
    close() {
      closed = true
      for (const { cancel } of ill.values()) cancel()
      ill.clear()
    },
  }
}

export function keyOf({ metadata: { namespace, name } }: KubeObject): string {
  return namespace ? `${namespace}/${name}` : name
}

export function sameObject(one: KubeObject, other: KubeObject): boolean {
  return one.metadata.uid === other.metadata.uid
}

/** Below zero: `one` is older. Undefined: not comparable. Versions are decimal numbers of any length (promised since
 *  Kubernetes 1.35, true before), too long for a JavaScript number. */
export function compareVersions(one: string | undefined, other: string | undefined): number | undefined {
  if (one === undefined || other === undefined || !/^\d{1,40}$/.test(one) || !/^\d{1,40}$/.test(other)) return undefined
  const [left, right] = [one.replace(/^0+/, ''), other.replace(/^0+/, '')]
  if (left.length !== right.length) return left.length - right.length
  return left === right ? 0 : left < right ? -1 : 1
}

function changesBetween<T extends KubeObject>(key: string, told: T | undefined, object: T | undefined): Change<T>[] {
  if (!told) return object ? [{ type: 'added', key, object }] : []
  if (!object) return [{ type: 'deleted', key, object: told }]
  if (sameObject(told, object)) return [{ type: 'modified', key, object, previous: told }]
  return [{ type: 'deleted', key, object: told }, { type: 'added', key, object }]
}
