// What of a fenced node is to be freed, and whether all of it is gone. Only what is seen now counts; that a pod was freed
// before tells nothing but who it was.
import type { Brake } from './brake.ts'
import { forceEvictionKey } from './acknowledge.ts'
import { choose, freesEverything, type Extent } from './choice.ts'
import type { Incident } from './incident.ts'
import type { Ms, NodeSeen, PodSeen, Taint, VolumeSeen } from './model.ts'
import { extentOf, type Extended } from './proof.ts'

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
  /** To be told that nothing of them runs, so that their volumes go; their objects stay. */
  readonly release: readonly PodSeen[]
  /** Chosen, and not due yet. */
  readonly later: readonly Spared[]
  /** Left alone by the policy. */
  readonly alone: readonly Spared[]
  /** Freed already, object still there: a finalizer keeps it. */
  readonly kept: readonly PodSeen[]
  /** Sent back too often by their scheduler. */
  readonly returning: readonly PodSeen[]
  /** Of freed pods, attached still. */
  readonly volumes: readonly VolumeSeen[]
  /** Of these, what kubelet's last word keeps attached; of a Node that is gone, what nobody uses any more. */
  readonly strike: readonly VolumeSeen[]
}

export interface Spared {
  readonly pod: PodSeen
  readonly because: string
}

/** Undefined: the pods must be listed (again) first. */
export function left(incident: Incident, node: NodeSeen, budget: number, since: Ms, now: Ms, extent: Extent = {}): Left | undefined {
  const pods = node.pods
  if (pods === undefined || pods.askedAt < since || now - pods.listedAt > podsFreshFor) return undefined
  const choices = pods.items.map((pod) => ({ pod, choice: choose(pod, incident.policy, node, now, extent) }))
  const freed = new Set(incident.status.pods.filter((pod) => pod.fate === 'freed').map((pod) => pod.uid))
  const chosen = choices.filter(({ choice }) => choice.is === 'free').map(({ pod }) => pod)
  const kept = chosen.filter((pod) => freed.has(pod.uid) && pod.finalizers.length > 0 && pod.terminating)
  const wanted = chosen.filter((pod) => !kept.includes(pod))
  const returning = wanted.filter((pod) => sentBack(incident, pod))
  const due = wanted.filter((pod) => !returning.includes(pod)).toSorted(order)
  // What is over nobody replaces on another node: it goes past the rate, behind what somebody waits for.
  const living = due.filter((pod) => !isOver(pod)).slice(0, Math.max(0, Math.min(batchSize, budget)))
  const batch = [...living, ...due.filter(isOver).slice(0, batchSize - living.length)]
  const release = choices.filter(({ choice }) => choice.is === 'release').map(({ pod }) => pod).toSorted(order)
  return {
    batch, waiting: due.length - batch.length, release: release.slice(0, batchSize), later: spared('later'), alone: spared('left'), kept, returning,
    ...volumesLeft(incident, node, pods.items, new Set(chosen), extent),
  }

  function spared(is: 'later' | 'left'): readonly Spared[] {
    return choices.flatMap(({ pod, choice }) => (choice.is === is ? [{ pod, because: choice.because }] : []))
  }
}

/** The volumes of pods that are left alone keep nothing waiting, and one that such a pod shares with a freed one stays with it. */
function volumesLeft(incident: Incident, node: NodeSeen, pods: readonly PodSeen[], chosen: ReadonlySet<PodSeen>, extent: Extent): Pick<Left, 'volumes' | 'strike'> {
  const using = pods.filter((pod) => !isOver(pod) && !(pod.terminating && pod.ended))
  // Of a Node that is gone Kubernetes deletes what is left alone here, too.
  const stays = (pod: PodSeen): boolean => node.gone !== true && !chosen.has(pod)
  const volumes = concerned(incident, node, extent).filter((volume) => !using.some((pod) => stays(pod) && uses(pod, volume)))
  const kept = ({ attachment }: VolumeSeen): boolean => node.gone === true || node.inUse.has(attachment)
  return { volumes, strike: volumes.filter((volume) => !volume.deleting && kept(volume) && !using.some((pod) => uses(pod, volume))) }
}

const uses = (pod: PodSeen, { volume }: VolumeSeen): boolean => pod.volumes.some((one) => one.volume === volume)

/** The volumes that an incident is about: every one of the node, or those of pods that it has freed. Where its Node is gone no pod of it is spared,
 *  so it is every one that the proof covers, unless its policy wants hands kept off some. */
function concerned({ policy, status }: Incident, { volumes, gone }: NodeSeen, extent: Extent): readonly VolumeSeen[] {
  if (freesEverything(policy) && isWhole(extent)) return volumes
  // What no driver of the proof answers for is not touched, whatever the record says of it.
  const within = volumes.filter(({ driver }) => extent.drivers?.includes(driver) !== false)
  if (gone === true && policy.nodeDownPodDeletionPolicy !== 'DoNothing' && policy.provisioners.length === 0) return within
  return within.filter(({ attachment }) => status.volumes.some((fate) => fate.attachment === attachment && fate.fate === 'attached'))
}

/** What is to be written down as attached when these pods are freed. */
export function volumesOf({ policy, status }: Incident, { volumes }: NodeSeen, pods: readonly PodSeen[], proof: Extended | undefined = status.proof): readonly VolumeSeen[] {
  if (freesEverything(policy) && (proof === undefined || isWhole(extentOf(proof)))) return volumes
  return volumes.filter((volume) => pods.some((pod) => uses(pod, volume)))
}

const isWhole = ({ drivers, tolerated }: Extent): boolean => drivers === undefined && tolerated === undefined

/** To Kubernetes the node is out of service as a whole: that takes a proof that its machine is off, and a policy that spares nothing. */
export function goesOutOfService({ policy }: Incident, proof: Extended): boolean {
  return isWhole(extentOf(proof)) && freesEverything(policy) && policy.release === 'outOfService'
}

export function nothingLeft(rest: Left): boolean {
  return [rest.batch, rest.release, rest.later, rest.kept, rest.volumes].every((some) => some.length === 0) && rest.waiting === 0
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
  return key === quarantineKey || key === forceEvictionKey || (key === outOfServiceKey && value === ownValue)
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
