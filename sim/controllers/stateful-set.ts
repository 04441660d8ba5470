// The StatefulSet controller, in the order of ordinals.
//
// Kept: it never creates ordinal N while an object of that name exists; a pod in phase Failed or Succeeded it deletes itself at
// once (which is why a status patch to Failed is the lethal write: milliseconds later the pod is gone) and creates it anew;
// a Terminating pod it waits for, for ever; the next ordinal only once the one before it is Running and Ready; claims are named
// after template and pod; scaled down, the highest ordinal goes first, and the next one once that is gone. Left out: making the
// claims, updates of the template, partitions.
import { isActive, isFinished, isReady, ownedBy, type PodObject, type StatefulSetObject } from '../objects.ts'
import type { ControllerGround } from './cache.ts'
import { some, tellStatus } from './owner-status.ts'
import { podFrom, podsPath } from './pod-template.ts'
import { turnsByKey } from './turn.ts'

export function startStatefulSets({ clock, api, caches }: ControllerGround): void {
  const ask = turnsByKey(clock, reconcile, 5)
  caches.statefulSets.listen(({ key }) => ask(key))
  caches.pods.listen(({ object }) => {
    const owner = object.metadata.ownerReferences?.find(({ controller, kind }) => controller === true && kind === 'StatefulSet')
    if (owner !== undefined) ask(`${object.metadata.namespace}/${owner.name}`)
  })
  void again()

  /** What failed to be written is not told by any change: every owner is looked at again now and then. */
  async function again(): Promise<void> {
    for (;;) {
      await clock.wait(10_000)
      for (const key of caches.statefulSets.items.keys()) ask(key)
    }
  }

  async function reconcile(key: string): Promise<void> {
    const set = caches.statefulSets.items.get(key)
    if (set === undefined || set.metadata.deletionTimestamp !== undefined) return
    const { namespace, name, uid } = set.metadata
    for (let ordinal = 0; ordinal < (set.spec.replicas ?? 1); ordinal++) {
      const pod = caches.pods.items.get(`${namespace}/${name}-${ordinal}`)
      if (pod === undefined) await api.create(podsPath(namespace), make(set, ordinal))
      else if (isFinished(pod) && ownedBy(pod, uid) && pod.metadata.deletionTimestamp === undefined) await remove(pod)
      if (pod === undefined || !isActive(pod) || !isReady(pod)) break
    }
    const pods = [...caches.pods.items.values()].filter((pod) => ownedBy(pod, uid))
    const [condemned] = pods.filter((pod) => ordinalOf(pod) >= (set.spec.replicas ?? 1)).toSorted((one, other) => ordinalOf(other) - ordinalOf(one))
    if (condemned !== undefined && condemned.metadata.deletionTimestamp === undefined) await remove(condemned)
    const ready = pods.filter(isReady).length
    await tellStatus(api, 'statefulsets', set, {
      replicas: pods.length, currentReplicas: some(pods.length), updatedReplicas: some(pods.length), readyReplicas: some(ready), availableReplicas: ready,
    })
  }

  async function remove({ metadata: { namespace, name, uid } }: PodObject): Promise<void> {
    await api.remove(`${podsPath(namespace)}/${name}`, { preconditions: uid === undefined ? {} : { uid } })
  }
}

const ordinalOf = (pod: PodObject): number => Number(pod.metadata.name.slice(pod.metadata.name.lastIndexOf('-') + 1))

function make(set: StatefulSetObject, ordinal: number): PodObject {
  const name = `${set.metadata.name}-${ordinal}`
  const pod = podFrom(set.spec.template, { ...set, kind: 'StatefulSet', apiVersion: 'apps/v1' }, name)
  const claims = (set.spec.volumeClaimTemplates ?? []).map((template) => ({
    name: template.metadata.name, persistentVolumeClaim: { claimName: `${template.metadata.name}-${name}` },
  }))
  pod.metadata.labels = { ...pod.metadata.labels, 'statefulset.kubernetes.io/pod-name': name, 'apps.kubernetes.io/pod-index': String(ordinal) }
  pod.spec = { ...pod.spec, hostname: name, volumes: [...(pod.spec.volumes ?? []), ...claims] }
  return pod
}
