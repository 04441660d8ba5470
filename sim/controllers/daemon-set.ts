// The DaemonSet controller: one pod on each node that it may run on.
//
// Kept: pods are bound by the scheduler, through an affinity to one node's name; they tolerate not-ready and unreachable
// (NoExecute), pressures and unschedulable for ever, and not out-of-service nor a product's own keys unless the template does;
// a node with an untolerated NoExecute taint loses its pod and gets no new one; a finished pod is deleted and created anew.
// Left out: rolling updates, surge, the back-off for failed pods.
import { isFinished, isReady, ownedBy, tolerates, type DaemonSetObject, type NodeObject, type PodObject, type Toleration } from '../objects.ts'
import type { ControllerGround } from './cache.ts'
import { some, tellStatus } from './owner-status.ts'
import { podFrom, podsPath, randomSuffix } from './pod-template.ts'
import { turnsByKey } from './turn.ts'

const own: readonly Toleration[] = [
  { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/disk-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/memory-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/pid-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
]

export function startDaemonSets({ clock, api, caches, chance }: ControllerGround): void {
  const made = new Set<string>()
  const ask = turnsByKey(clock, reconcile, 20)
  caches.daemonSets.listen(({ key }) => ask(key))
  caches.nodes.listen(({ type, object, previous }) => {
    const same = type === 'modified' && JSON.stringify(object.spec) === JSON.stringify(previous?.spec)
    if (!same) for (const key of caches.daemonSets.items.keys()) ask(key)
  })
  caches.pods.listen(({ object }) => {
    const owner = object.metadata.ownerReferences?.find(({ controller, kind }) => controller === true && kind === 'DaemonSet')
    if (owner !== undefined) ask(`${object.metadata.namespace}/${owner.name}`)
  })
  void again()

  async function again(): Promise<void> {
    for (;;) {
      await clock.wait(10_000)
      made.clear()
      for (const key of caches.daemonSets.items.keys()) ask(key)
    }
  }

  async function reconcile(key: string): Promise<void> {
    const set = caches.daemonSets.items.get(key)
    if (set === undefined || set.metadata.deletionTimestamp !== undefined) return
    const pods = [...caches.pods.items.values()].filter((pod) => ownedBy(pod, set.metadata.uid))
    for (const pod of pods) if (isFinished(pod) && pod.metadata.deletionTimestamp === undefined) await remove(pod)
    const on = { desired: 0, current: 0, misscheduled: 0, ready: 0 }
    for (const node of caches.nodes.items.values()) {
      const here = pods.filter((pod) => nodeOf(pod) === node.metadata.name)
      const tolerations = [...(set.spec.template.spec.tolerations ?? []), ...own]
      const bad = (effect: string) => (node.spec?.taints ?? []).some((taint) => taint.effect === effect && !tolerates(tolerations, taint))
      if (bad('NoExecute')) for (const pod of here.filter((one) => one.metadata.deletionTimestamp === undefined)) await remove(pod)
      else if (here.length === 0 && !bad('NoSchedule') && !made.has(`${key} ${node.metadata.uid}`)) await create(set, node, tolerations)
      if (bad('NoSchedule') || bad('NoExecute')) {
        on.misscheduled += here.length > 0 ? 1 : 0
        continue
      }
      on.desired += 1
      on.current += here.length > 0 ? 1 : 0
      on.ready += here.some((pod) => isReady(pod)) ? 1 : 0
    }
    await tellStatus(api, 'daemonsets', set, {
      desiredNumberScheduled: on.desired, currentNumberScheduled: on.current, numberMisscheduled: on.misscheduled, updatedNumberScheduled: some(on.current),
      numberReady: on.ready, numberAvailable: some(on.ready), numberUnavailable: some(on.desired - on.ready),
    })
  }

  async function create(set: DaemonSetObject, node: NodeObject, tolerations: readonly Toleration[]): Promise<void> {
    const { namespace, name } = set.metadata
    const pod = podFrom(set.spec.template, { ...set, kind: 'DaemonSet', apiVersion: 'apps/v1' }, `${name}-${randomSuffix(chance)}`)
    pod.spec.tolerations = [...tolerations]
    const matchFields = [{ key: 'metadata.name', operator: 'In', values: [node.metadata.name] }]
    pod.spec.affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields }] } } }
    const created = await api.create(podsPath(namespace), pod)
    // Once a node until the next look of ten seconds, by when the cache shows it: two at once would fight for the node.
    if (created.ok) made.add(`${namespace}/${name} ${node.metadata.uid}`)
  }

  async function remove({ metadata: { namespace, name, uid } }: PodObject): Promise<void> {
    made.clear()
    await api.remove(`${podsPath(namespace)}/${name}`, { preconditions: uid === undefined ? {} : { uid } })
  }
}

function nodeOf(pod: PodObject): string | undefined {
  const [term] = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  return pod.spec.nodeName ?? term?.matchFields?.[0]?.values[0]
}
