// What of a fenced node is to be freed, and whether all of it is gone. Only what is seen now counts; that a pod was freed
// before tells nothing but who it was.
import type { Brake } from './brake.ts'
import type { Incident } from './incident.ts'
import type { Ms, NodeSeen, PodSeen, Taint, VolumeSeen } from './model.ts'

export const quarantineKey = 'holdfast.dev/quarantine'
export const outOfServiceKey = 'node.kubernetes.io/out-of-service'
/** Kubernetes' controllers look at the key of out-of-service alone; by this value ours is known from a person's. */
export const ownValue = 'holdfast'

/** Pods of one batch: with two writes a pod it ends well before a machine could boot. */
const batchSize = 25
/** A list of the node's pods older than this is asked for again before anything follows from it. */
const podsFreshFor: Ms = 2_000
/** A successor that the scheduler sends back to the fenced node is freed so often. */
const sentBackLimit = 3
/** A ReplicaSet's successors bear new names, so they cannot be told from the pods that ran here; but so many of one owner no
 *  kubelet ever ran, and then they come back as fast as they are freed. */
const siblingLimit = 256

export interface Left {
  /** Still to be freed, the first batch of them, in order. */
  readonly batch: readonly PodSeen[]
  /** How many more are to be freed, once this batch is through and the rate allows. */
  readonly waiting: number
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
  if (incident.policy.nodeDownPodDeletionPolicy === 'DoNothing') return { batch: [], waiting: 0, kept: [], returning: [], volumes: [] }
  const freed = new Set(incident.status.pods.filter((pod) => pod.fate === 'freed').map((pod) => pod.uid))
  const chosen = pods.items.filter((pod) => pod.exempt === undefined)
  const kept = chosen.filter((pod) => freed.has(pod.uid) && pod.finalizers.length > 0 && pod.terminating)
  const wanted = chosen.filter((pod) => !kept.includes(pod))
  const returning = wanted.filter((pod) => sentBack(incident, pod))
  const due = wanted.filter((pod) => !returning.includes(pod)).toSorted(order)
  const batch = due.slice(0, Math.max(0, Math.min(batchSize, budget)))
  return { batch, waiting: due.length - batch.length, kept, returning, volumes: node.volumes }
}

export function nothingLeft(rest: Left): boolean {
  return rest.batch.length === 0 && rest.waiting === 0 && rest.kept.length === 0 && rest.volumes.length === 0
}

/** Doomed, and nobody made the second write, the deletion. Its owner has replaced it; where the fenced boot runs on, so does the
 *  pod, until its object is gone or its kubelet looks at it. Undefined: the pods must be listed (again) first. */
export function unburied({ status }: Incident, node: NodeSeen): readonly PodSeen[] | undefined {
  const doomed = new Set(status.pods.filter((pod) => pod.fate === 'freed').map((pod) => pod.uid))
  if (doomed.size === 0) return []
  return node.pods?.items.filter((pod) => doomed.has(pod.uid) && isOver(pod) && !pod.terminating).slice(0, batchSize)
}

/** The record comes before the touch: what stands on it and is not over was never touched, and belongs. */
export function isOver({ phase }: PodSeen): boolean {
  return phase === 'Failed' || phase === 'Succeeded'
}

/** The first of a name may have run here; the others were sent back. */
function sentBack(incident: Incident, pod: PodSeen): boolean {
  const others = incident.status.pods.filter((fate) => fate.fate === 'freed' && fate.namespace === pod.namespace && fate.uid !== pod.uid)
  if (others.filter((fate) => fate.name === pod.name).length > sentBackLimit) return true
  return pod.owner === 'ReplicaSet' && others.filter((fate) => stem(fate.name) === stem(pod.name)).length > siblingLimit
}

/** A ReplicaSet names its pods after itself and a random word. */
function stem(name: string): string {
  return name.slice(0, Math.max(0, name.lastIndexOf('-')))
}

/** Priority first; then StatefulSets, whose successors cannot start before their predecessor's object is gone. */
function order(one: PodSeen, other: PodSeen): number {
  return other.priority - one.priority || rank(one) - rank(other) || `${one.namespace}/${one.name}`.localeCompare(`${other.namespace}/${other.name}`)
}

const rank = (pod: PodSeen): number => (pod.owner === 'StatefulSet' ? 0 : 1)

/** Anybody's: to Kubernetes they are one. */
export function hasTaint(node: NodeSeen, key: string): boolean {
  return node.taints.some((taint) => taint.key === key)
}

/** Ours, which is ours to take off. */
export function hasOurs(node: NodeSeen, key: string): boolean {
  return node.taints.some((taint) => taint.key === key && isOurs(taint))
}

export function isOurs({ key, value }: Taint): boolean {
  return key === quarantineKey || (key === outOfServiceKey && value === ownValue)
}

/** Out-of-service that somebody else put there. A machine that runs under it may have its volumes taken away while it writes,
 *  so nothing of ours switches it on or lets workloads back; and it is not ours to take off. */
export function foreignTaint(node: NodeSeen): Brake | undefined {
  const taint = node.taints.find((one) => one.key === outOfServiceKey && !isOurs(one))
  if (taint === undefined) return undefined
  const { key, value = '', effect } = taint
  return {
    because: 'foreign-taint',
    detail: `another's ${key}${value === '' ? '' : `=${value}`}:${effect} is on ${node.name}: under it Kubernetes detaches volumes by force, also from a machine that runs`,
    lifts: 'its removal by whoever put it there',
  }
}
