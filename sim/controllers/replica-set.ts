// The ReplicaSet controller, and as much of the Deployment controller as keeps one ReplicaSet a Deployment.
//
// Kept: a pod that is deleted or finished no longer counts, so its successor is created while it may still run; surplus pods go,
// the unscheduled and not ready first; what this process itself has just created or deleted counts before the cache shows it.
// Left out: rollouts, history, adoption of strangers, slow start.
import type { Ms } from '../../core/model.ts'
import { isActive, isReady, ownedBy, type PodObject, type ReplicaSetObject } from '../objects.ts'
import type { ControllerGround } from './cache.ts'
import { some, tellStatus } from './owner-status.ts'
import { podFrom, podsPath, randomSuffix } from './pod-template.ts'
import { turnsByKey } from './turn.ts'

/** A creation that the cache has not shown by then is thought lost. */
const expectation: Ms = 30_000

export function startReplicaSets({ clock, api, caches, chance }: ControllerGround): void {
  // By set: the pods that this process has made and the cache does not show yet, each with the end of its patience.
  const expected = new Map<string, Map<string, Ms>>()
  const askSet = turnsByKey(clock, reconcileSet, 5)
  const askDeployment = turnsByKey(clock, reconcileDeployment, 5)
  caches.replicaSets.listen(({ key, object }) => {
    askSet(key)
    const owner = object.metadata.ownerReferences?.find(({ kind }) => kind === 'Deployment')
    if (owner !== undefined) askDeployment(`${object.metadata.namespace}/${owner.name}`)
  })
  caches.deployments.listen(({ key }) => askDeployment(key))
  caches.pods.listen(({ type, object }) => {
    const owner = object.metadata.ownerReferences?.find(({ controller, kind }) => controller === true && kind === 'ReplicaSet')
    if (owner === undefined) return
    if (type === 'added') expected.get(owner.uid)?.delete(object.metadata.uid ?? '')
    askSet(`${object.metadata.namespace}/${owner.name}`)
  })
  void again()

  async function again(): Promise<void> {
    for (;;) {
      await clock.wait(10_000)
      for (const key of caches.deployments.items.keys()) askDeployment(key)
      for (const key of caches.replicaSets.items.keys()) askSet(key)
    }
  }

  async function reconcileSet(key: string): Promise<void> {
    const set = caches.replicaSets.items.get(key)
    if (set === undefined || set.metadata.deletionTimestamp !== undefined) return
    const own = expected.get(set.metadata.uid ?? '') ?? new Map<string, Ms>()
    for (const [uid, until] of own) if (until < clock.now()) own.delete(uid)
    // Until the cache shows what was just made, counting would make it twice.
    if (own.size > 0) return
    const pods = [...caches.pods.items.values()].filter((pod) => ownedBy(pod, set.metadata.uid) && isActive(pod))
    const wanted = set.spec.replicas ?? 1
    expected.set(set.metadata.uid ?? '', own)
    for (let missing = wanted - pods.length; missing > 0; missing--) await create(set, own)
    for (const pod of pods.toSorted(worstFirst).slice(0, Math.max(0, pods.length - wanted))) await remove(pod)
    // All made from the one template, and available as soon as they are ready: there is no minReadySeconds.
    const ready = some(pods.filter(isReady).length)
    await tellStatus(api, 'replicasets', set, { replicas: pods.length, fullyLabeledReplicas: some(pods.length), readyReplicas: ready, availableReplicas: ready })
  }

  async function create(set: ReplicaSetObject, own: Map<string, Ms>): Promise<void> {
    const { namespace, name } = set.metadata
    const pod = podFrom(set.spec.template, { ...set, kind: 'ReplicaSet', apiVersion: 'apps/v1' }, `${name}-${randomSuffix(chance)}`)
    const made = await api.create<PodObject>(podsPath(namespace), pod)
    if (made.ok && !caches.pods.items.has(`${namespace}/${pod.metadata.name}`)) own.set(made.value.metadata.uid ?? '', clock.now() + expectation)
  }

  async function remove({ metadata: { namespace, name, uid } }: PodObject): Promise<void> {
    await api.remove(`${podsPath(namespace)}/${name}`, { preconditions: uid === undefined ? {} : { uid } })
  }

  async function reconcileDeployment(key: string): Promise<void> {
    const deployment = caches.deployments.items.get(key)
    if (deployment === undefined || deployment.metadata.deletionTimestamp !== undefined) return
    const { namespace, name, uid = '' } = deployment.metadata
    const set = [...caches.replicaSets.items.values()].find((one) => ownedBy(one, uid))
    const path = `/apis/apps/v1/namespaces/${namespace}/replicasets`
    if (set === undefined) {
      const hash = { 'pod-template-hash': '5d4c6b7f88' }
      const template = { ...deployment.spec.template, metadata: { ...deployment.spec.template.metadata, labels: { ...deployment.spec.template.metadata?.labels, ...hash } } }
      await api.create(path, {
        apiVersion: 'apps/v1', kind: 'ReplicaSet',
        metadata: {
          name: `${name}-5d4c6b7f88`, namespace, labels: template.metadata.labels,
          ownerReferences: [{ apiVersion: 'apps/v1', kind: 'Deployment', name, uid, controller: true }],
        },
        spec: { replicas: deployment.spec.replicas ?? 1, selector: { matchLabels: { ...deployment.spec.selector.matchLabels, ...hash } }, template },
      })
    } else if ((set.spec.replicas ?? 1) !== (deployment.spec.replicas ?? 1)) {
      await api.patch(`${path}/${set.metadata.name}`, 'merge', { spec: { replicas: deployment.spec.replicas ?? 1 } })
    }
    const { replicas = 0, readyReplicas = 0 } = set?.status ?? {}
    await tellStatus(api, 'deployments', deployment, {
      replicas: some(replicas), updatedReplicas: some(replicas), readyReplicas: some(readyReplicas), availableReplicas: some(readyReplicas),
      unavailableReplicas: some(Math.max(0, (deployment.spec.replicas ?? 1) - readyReplicas)),
    })
  }
}

function worstFirst(one: PodObject, other: PodObject): number {
  return rank(one) - rank(other)
}

function rank(pod: PodObject): number {
  return pod.spec.nodeName === undefined ? 0 : isReady(pod) ? 2 : 1
}
