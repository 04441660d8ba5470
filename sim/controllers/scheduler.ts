// The scheduler: it binds a pod to a node that the pod may run on, and spreads the rest.
//
// Kept: NoSchedule and NoExecute taints against tolerations, cordons, nodeSelector, affinity to one node's name; the binding
// carries the pod's uid; what fits nowhere waits for a change of the nodes and is tried again. Of several nodes the one with
// the fewest pods of the same owner wins, then the fewest pods, then chance. Left out: resources, priorities and preemption,
// volumes' own affinity (a ReadWriteOnce volume binds no pod to a node, as with a driver that attaches anywhere).
import { isFinished, tolerates, type NodeObject, type PodObject } from '../objects.ts'
import type { ControllerGround } from './cache.ts'
import { turns } from './turn.ts'

export function startScheduler({ clock, api, caches, chance }: Omit<ControllerGround, 'caches'> & { caches: Pick<ControllerGround['caches'], 'nodes' | 'pods'> }): void {
  // Pods bound by this process and not yet shown so by the cache.
  const assumed = new Map<string, string>()
  const ask = turns(clock, schedule, 5)
  caches.pods.listen(({ type, object }) => {
    if (type === 'deleted' || object.spec.nodeName !== undefined) assumed.delete(object.metadata.uid ?? '')
    else ask()
  })
  caches.nodes.listen(({ type, object, previous }) => {
    const same = type === 'modified' && JSON.stringify(object.spec) === JSON.stringify(previous?.spec)
    if (!same) ask()
  })
  void again()

  async function again(): Promise<void> {
    for (;;) {
      await clock.wait(30_000)
      assumed.clear()
      ask()
    }
  }

  async function schedule(): Promise<void> {
    const waiting = [...caches.pods.items.values()].filter((pod) =>
      pod.spec.nodeName === undefined && pod.metadata.deletionTimestamp === undefined && !isFinished(pod) && !assumed.has(pod.metadata.uid ?? ''))
    for (const pod of waiting) {
      const node = choose(pod)
      if (node !== undefined) await bind(pod, node)
    }
  }

  function choose(pod: PodObject): string | undefined {
    const fitting = [...caches.nodes.items.values()].filter((node) => fits(pod, node)).map(({ metadata: { name } }) => name)
    if (fitting.length === 0) return undefined
    const owner = pod.metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid
    const bound = [...caches.pods.items.values()].filter((other) => !isFinished(other))
    const load = (name: string) => {
      const here = bound.filter((other) => (other.spec.nodeName ?? assumed.get(other.metadata.uid ?? '')) === name)
      const siblings = here.filter((other) => owner !== undefined && other.metadata.ownerReferences?.some(({ uid }) => uid === owner))
      return siblings.length * 1_000 + here.length
    }
    const least = Math.min(...fitting.map(load))
    return chance.pick(fitting.filter((name) => load(name) === least).toSorted())
  }

  async function bind({ metadata: { namespace, name, uid = '' } }: PodObject, node: string): Promise<void> {
    assumed.set(uid, node)
    const bound = await api.create(`/api/v1/namespaces/${namespace}/pods/${name}/binding`, {
      apiVersion: 'v1', kind: 'Binding', metadata: { name, namespace, uid }, target: { apiVersion: 'v1', kind: 'Node', name: node },
    })
    if (!bound.ok) assumed.delete(uid)
  }
}

function fits(pod: PodObject, { metadata: { name, labels = {} }, spec }: NodeObject): boolean {
  const { tolerations, nodeSelector = {}, affinity } = pod.spec
  const cordon = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' } as const
  if (spec?.unschedulable === true && !tolerates(tolerations, cordon)) return false
  if ((spec?.taints ?? []).some((taint) => taint.effect !== 'PreferNoSchedule' && !tolerates(tolerations, taint))) return false
  if (Object.entries(nodeSelector).some(([key, value]) => labels[key] !== value)) return false
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  return terms.length === 0 || terms.some(({ matchFields = [] }) => matchFields.every(({ values }) => values.includes(name)))
}
