// What the real cluster's controllers do for a namespace at once: the default ServiceAccount when it is made, and emptying it
// when it is deleted. It is the only controller work in here, because nothing can be written without it.
import type { Ground } from './ground.ts'
import { collectionOf, newUid, stamp } from './ground.ts'
import type { Resource } from './json.ts'
import { objectAt } from './json.ts'
import type { KindDefinition } from './kind.ts'

export function furnish(ground: Ground, namespace: string): void {
  const accounts = ground.store.collection('serviceaccounts', { selectable: {} })
  if (accounts.has(`${namespace}/default`)) return
  ground.store.put(accounts, { metadata: { name: 'default', namespace, uid: newUid(ground), creationTimestamp: stamp(ground) } })
}

/** Marks the namespace and hands out what stands in it, each of which its own rules must remove. */
export function beginEnd(ground: Ground, kind: KindDefinition, namespace: Resource): readonly { kind: KindDefinition; name: string }[] {
  namespace.metadata.deletionTimestamp ??= stamp(ground)
  namespace['status'] = { ...objectAt(namespace, 'status'), phase: 'Terminating' }
  ground.store.put(collectionOf(ground, kind), namespace)
  return contents(ground, namespace.metadata.name ?? '')
}

function contents(ground: Ground, namespace: string): { kind: KindDefinition; name: string }[] {
  const kinds = new Map(ground.kinds.all().filter((one) => one.namespaced && one.review === undefined).map((one) => [one.collection, one]))
  return [...kinds.values()].flatMap((kind) => {
    const keys = ground.store.find(kind.collection)?.keys() ?? []
    return keys.filter((key) => key.startsWith(`${namespace}/`)).map((key) => ({ kind, name: key.slice(namespace.length + 1) }))
  })
}

/** Gone once it is empty and nothing of its own holds it. */
export function endIfEmpty(ground: Ground, namespace: string): void {
  const namespaces = ground.store.find('namespaces')
  const home = namespaces?.read(namespace)
  if (namespaces === undefined || home?.metadata.deletionTimestamp === undefined) return
  if ((home.metadata.finalizers ?? []).length > 0 || contents(ground, namespace).length > 0) return
  ground.store.delete(namespaces, namespace)
}
