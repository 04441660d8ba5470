// Whether a node can be drilled: what is asked before anybody chooses it, just before each order, and once more after that was written down.
import { isIsolation } from './isolation.ts'
import { beatsWithin } from './look.ts'
import { sameBoot, type Boot, type Method, type Ms, type NodeSeen } from './model.ts'
import { auditOf, isIdentified, untrusted } from './path.ts'
import type { Policy } from './policy.ts'

const cordonKey = 'node.kubernetes.io/unschedulable'

export const isCordoned = ({ taints }: Pick<NodeSeen, 'taints'>): boolean => taints.some(({ key }) => key === cordonKey)

/** What could be drilled: a machine that is isolated does not fall silent, and one that is ended for good does not come back. */
export function isDrillable(methods: readonly Method[]): boolean {
  return !isIsolation(methods) && !methods.some(({ ends }) => ends === true)
}

/** What is not proven yet, before what is; then what was drilled longest ago. */
export function levelOf(node: NodeSeen, boot: Boot): number {
  const power = node.path.levels.map((methods, level) => ({ methods, level })).filter(({ methods }) => isDrillable(methods))
  const unproven = power.find(({ methods }) => methods.some((method) => !isIdentified(node, method, boot)))
  const drilledAt = ({ methods }: { readonly methods: readonly Method[] }): number => Math.min(...methods.map((method) => Date.parse(auditOf(node, method, boot)?.drill?.at ?? '') || Infinity))
  const [first, ...others] = power
  return (unproven ?? others.reduce((oldest, one) => (oldest !== undefined && drilledAt(one) < drilledAt(oldest) ? one : oldest), first))?.level ?? node.path.levels.length
}

/** A person who stands by is told at once: a drill that began by itself once the node is drained would come as a surprise. */
export function unfit(node: NodeSeen, boot: Boot, policy: Policy, methods: readonly Method[], now: Ms): string | undefined {
  if (!isCordoned(node)) return notCordoned
  if (methods.length === 0) return node.path.faults[0] ?? (node.path.levels.length === 0 ? 'no fence path is configured' : 'none of its levels switches the machine off and on')
  if (!isDrillable(methods)) return `${methods.map(({ name }) => name).join(', ')} is not tried on a machine that is well`
  if (node.beat === undefined || now - node.beat.at >= beatsWithin) return 'its agent is not heard: whether it falls silent could not be told'
  if (!sameBoot(node.beat.boot, boot)) return 'the node is in another boot'
  const doubt = methods.map((method) => untrusted(node, method, auditOf(node, method, boot))).find((one) => one !== undefined)
  if (doubt !== undefined) return doubt
  return policy.nodeDownPodDeletionPolicy === 'DoNothing' ? 'nodeDownPodDeletionPolicy is DoNothing: no order is given' : undefined
}

const notCordoned = 'the node is not cordoned'

/** What would go down with it, as far as was read. Pods of DaemonSets and static ones belong to the node itself. */
export function undrained(node: NodeSeen): string | undefined {
  if (!isCordoned(node)) return notCordoned
  const stays = node.pods?.items.find(({ exempt, phase }) => exempt === undefined && phase !== 'Succeeded' && phase !== 'Failed')
  if (stays !== undefined) return `${stays.namespace}/${stays.name} is on the node still: drain it first`
  const [volume] = node.volumes
  return volume === undefined ? undefined : `${volume.volume} is attached to the node still: drain it first`
}
