// What of a fenced node is to be freed, and whether all of it is gone. Only what is seen now counts; that a pod was freed
// before tells nothing but who it was.
import type { Incident } from './incident.ts'
import type { Ms, NodeSeen, PodSeen, VolumeSeen } from './model.ts'

export const quarantineKey = 'holdfast.dev/quarantine'
export const outOfServiceKey = 'node.kubernetes.io/out-of-service'

/** Pods of one batch: with two writes a pod it ends well before a machine could boot. */
const batchSize = 25
/** A list of the node's pods older than this is asked for again before anything follows from it. */
const podsFreshFor: Ms = 2_000
/** A successor that the scheduler sends back to the fenced node is freed so often. */
const sentBackLimit = 3

export interface Left {
  /** Still to be freed, the first batch of them, in order. */
  readonly batch: readonly PodSeen[]
  /** Freed already, object still there: a finalizer keeps it. */
  readonly kept: readonly PodSeen[]
  /** Sent back too often by their scheduler. */
  readonly returning: readonly PodSeen[]
  readonly volumes: readonly VolumeSeen[]
}

/** Undefined: the pods must be listed (again) first. */
export function left(incident: Incident, node: NodeSeen, budget: number, since: Ms, now: Ms): Left | undefined {
  const pods = node.pods
  if (pods === undefined || pods.askedAt < since || now - pods.listedAt > podsFreshFor) return undefined
  if (incident.policy.nodeDownPodDeletionPolicy === 'DoNothing') return { batch: [], kept: [], returning: [], volumes: [] }
  const freed = new Set(incident.status.pods.filter((pod) => pod.fate === 'freed').map((pod) => pod.uid))
  const chosen = pods.items.filter((pod) => pod.exempt === undefined)
  const kept = chosen.filter((pod) => freed.has(pod.uid) && pod.finalizers.length > 0 && pod.terminating)
  const wanted = chosen.filter((pod) => !kept.includes(pod))
  const returning = wanted.filter((pod) => freedBefore(incident, pod) >= sentBackLimit)
  const batch = wanted.filter((pod) => !returning.includes(pod)).toSorted(order).slice(0, Math.max(0, Math.min(batchSize, budget)))
  return { batch, kept, returning, volumes: node.volumes }
}

export function nothingLeft(rest: Left): boolean {
  return rest.batch.length === 0 && rest.kept.length === 0 && rest.volumes.length === 0
}

function freedBefore(incident: Incident, pod: PodSeen): number {
  return incident.status.pods.filter((fate) => fate.fate === 'freed' && fate.namespace === pod.namespace && fate.name === pod.name && fate.uid !== pod.uid).length
}

/** Priority first; then StatefulSets, whose successors cannot start before their predecessor's object is gone. */
function order(one: PodSeen, other: PodSeen): number {
  return other.priority - one.priority || rank(one) - rank(other) || `${one.namespace}/${one.name}`.localeCompare(`${other.namespace}/${other.name}`)
}

const rank = (pod: PodSeen): number => (pod.owner === 'StatefulSet' ? 0 : 1)

export function hasTaint(node: NodeSeen, key: string): boolean {
  return node.taints.some((taint) => taint.key === key)
}
