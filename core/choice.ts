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

export function choose(pod: PodSeen, policy: Policy, node: NodeSeen, now: Ms): Choice {
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
