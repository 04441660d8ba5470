// Which pods of a fenced node are freed, and which are left alone, as the policy has it. A proof says that a pod may be freed; whether
// it shall be is the operator's to say.
import { terminatingKey, type Ms, type NodeSeen, type PodSeen, type PodVolume } from './model.ts'
import type { DeletionPolicy, Policy } from './policy.ts'

export type Choice =
  | { readonly is: 'free' }
  /** Its object stays as it is, and its volumes go: its ReplicaSet has made another pod, which waits for them. */
  | { readonly is: 'release' }
  /** To be freed, or its volumes to be released, but not yet. */
  | { readonly is: 'later'; readonly because: string }
  | { readonly is: 'left'; readonly because: string }

const freedKinds: Readonly<Record<DeletionPolicy, readonly PodSeen['owner'][] | 'every kind'>> = {
  DoNothing: [],
  DeleteStatefulSetPod: ['StatefulSet'],
  DeleteDeploymentPod: ['ReplicaSet'],
  DeleteBothStatefulsetAndDeploymentPod: ['StatefulSet', 'ReplicaSet'],
  DeleteAllPods: 'every kind',
}

/** Nothing that could be chosen is left out, so that the whole node may be called out of service. */
export function freesEverything({ nodeDownPodDeletionPolicy, onlyTerminating, provisioners }: Policy): boolean {
  return freedKinds[nodeDownPodDeletionPolicy] === 'every kind' && !onlyTerminating && provisioners.length === 0
}

/** Nothing follows from a proof at all, whatever is seen on the node. */
export function freesNothing({ nodeDownPodDeletionPolicy, volumeAttachmentRecovery }: Policy): boolean {
  return nodeDownPodDeletionPolicy === 'DoNothing' && volumeAttachmentRecovery === 'never'
}

/** What a proof leaves out. Undefined: nothing. */
export interface Extent {
  /** Of a partial proof, the drivers whose volumes it is of. */
  readonly drivers?: readonly string[]
  /** Of these drivers' volumes nobody has to detach any, and who else writes them matters not: the machine cannot. */
  readonly outOfReach?: readonly string[]
  /** Who tolerates the taint that the proof rests on is excused. */
  readonly tolerated?: true
}

export function choose(pod: PodSeen, policy: Policy, node: NodeSeen, now: Ms, extent: Extent = {}): Choice {
  const choice = byPolicy(pod, policy, node, now)
  const beyond = choice.is === 'left' ? undefined : beyondExtent(pod, node, extent)
  return beyond === undefined ? choice : left(beyond)
}

function beyondExtent(pod: PodSeen, node: NodeSeen, { drivers, tolerated, outOfReach = [] }: Extent): string | undefined {
  if (tolerated === true && pod.toleratesEviction) return 'it tolerates holdfast.dev/force-eviction'
  if (drivers === undefined) return undefined
  if (pod.volumes.length === 0) return 'it has no volume, and nothing proves that it does not run'
  if (pod.beside !== undefined) return `its volume ${pod.beside} needs no attachment, and others may write it`
  const refusing = drivers.filter((driver) => !outOfReach.includes(driver))
  const bare = pod.volumes.find((volume) => !isBehind(volume, outOfReach) && !isCovered(volume, node, refusing))
  if (bare === undefined) return undefined
  const name = bare.volume || bare.claim
  if (refusing.length === 0) return `nothing shows that ${name} is out of the machine's reach`
  if (bare.shared && refusing.includes(bare.driver)) return `${bare.volume} is ReadWriteMany: others may write beside it`
  return outOfReach.length === 0 ? `${name} is not of a driver that refuses to detach what is in use` : `${name} is neither out of the machine's reach nor of a driver that refuses to detach what is in use`
}

function isBehind({ is, driver, local }: PodVolume, drivers: readonly string[]): boolean {
  return is === 'bound' && !local && drivers.includes(driver)
}

/** What is attached somewhere else than here nobody has to detach, so nobody would refuse to. */
function isCovered({ is, driver, shared, volume }: PodVolume, { volumes }: NodeSeen, drivers: readonly string[]): boolean {
  return is === 'bound' && !shared && drivers.includes(driver) && volumes.some((one) => one.volume === volume && one.driver === driver)
}

function byPolicy(pod: PodSeen, policy: Policy, node: NodeSeen, now: Ms): Choice {
  if (pod.exempt !== undefined) return left(pod.exempt)
  const kinds = freedKinds[policy.nodeDownPodDeletionPolicy]
  if (kinds !== 'every kind' && !kinds.includes(pod.owner)) return recovered(pod, policy, node, now)
  const apart = setApart(pod, policy)
  if (apart !== undefined) return apart
  const local = pod.volumes.find((volume) => volume.local)
  if (local !== undefined) return left(`${local.volume} can be used on this node alone: nothing is gained by another pod`)
  if (policy.onlyTerminating && !isOverdue(pod, node, now)) return later('onlyTerminating: Kubernetes has not evicted it, or its grace is not over')
  return { is: 'free' }
}

/** The volume attachment recovery policy: it is about ReplicaSet pods with a volume, which their owner replaces as soon as they are
 *  terminating. */
function recovered(pod: PodSeen, policy: Policy, node: NodeSeen, now: Ms): Choice {
  const alone = left(`nodeDownPodDeletionPolicy is ${policy.nodeDownPodDeletionPolicy}: a pod of ${pod.owner === 'none' ? 'nobody' : pod.owner} is left alone`)
  if (policy.volumeAttachmentRecovery === 'never' || pod.owner !== 'ReplicaSet' || !pod.volumes.some(isAttachable)) return alone
  const apart = setApart(pod, policy)
  if (apart !== undefined) return apart
  if (pod.terminating && pod.ended) return alone
  const due = policy.volumeAttachmentRecovery === 'immediate' ? pod.terminating : isOverdue(pod, node, now)
  return due ? { is: 'release' } : later(`volumeAttachmentRecovery is ${policy.volumeAttachmentRecovery}: Kubernetes has not evicted it${policy.volumeAttachmentRecovery === 'wait' ? ', or its grace is not over' : ''}`)
}

/** Drivers whose word counts under this policy. */
export function safeDriversOf({ safeDetach }: Policy, declared: readonly string[]): readonly string[] {
  return [...safeDetach, ...declared]
}

const isAttachable = (volume: PodVolume): boolean => volume.is !== 'unbound' && !volume.local

/** Where the policy names provisioners, of other pods hands are kept off. */
function setApart({ volumes }: PodSeen, { provisioners }: Policy): Choice | undefined {
  if (provisioners.length === 0 || volumes.some(({ driver, provisioner }) => provisioners.includes(driver) || provisioners.includes(provisioner))) return undefined
  if (volumes.some(({ is }) => is === 'unread')) return later('its volumes could not be read')
  return left(`it has no volume of ${provisioners.join(' or ')}`)
}

/** Its grace is counted from when it was first seen terminating: the time on the object is of another clock. */
function isOverdue({ terminating, uid, grace }: PodSeen, node: NodeSeen, now: Ms): boolean {
  return terminating && now >= (node.firstSeen.get(terminatingKey(uid)) ?? now) + grace
}

const left = (because: string): Choice => ({ is: 'left', because })
const later = (because: string): Choice => ({ is: 'later', because })
