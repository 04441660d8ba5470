// Who else has hands on a node: people, who say so by annotations of its Node, and other remediators, who leave signs of their own. Two
// who act on one machine at once undo each other's work, so whoever has it in hand has it alone.
import { handsOff, type Brake } from './brake.ts'
import type { Incident } from './incident.ts'
import type { NodeSeen, Self } from './model.ts'
import { policyOf, type Policy } from './policy.ts'

const annotation = { exclude: 'holdfast.dev/exclude', maintenance: 'holdfast.dev/maintenance', keepOff: 'holdfast.dev/keep-off' } as const

/** Set to anything but `false`: what is written there is the reason. */
function said({ annotations }: NodeSeen, key: string): string | undefined {
  const value = annotations[key]
  return value === undefined || value === 'false' ? undefined : value
}

/** A person keeps us off this node, or another remediator works on it. */
export function othersHands(node: NodeSeen): Brake | undefined {
  const because = (['exclude', 'maintenance'] as const).find((word) => said(node, annotation[word]) !== undefined)
  if (because !== undefined) {
    const why = said(node, annotation[because])
    return { because, detail: `${annotation[because]} stands on ${node.name}${why === '' || why === 'true' ? '' : `: ${why}`}`, lifts: 'the annotation removed' }
  }
  const sign = signOf(node)
  return sign && { because: 'remediator', detail: `${sign.whose} has ${node.name} in hand: ${sign.shown} stands on it`, lifts: 'its removal by whoever put it there' }
}

/**
 * An incident keeps its policy by value, but whether we act at all says the one that means its node now: a dry run that is over must not
 * hold for ever what was opened under it, nor one that began late let it go on.
 */
export function handsOffIncident({ seen: { self }, policies }: { readonly seen: { readonly self: Self }; readonly policies: readonly Policy[] }, { policy }: Incident, node: NodeSeen): Brake | undefined {
  const now = policyOf(node, policies)
  return handsOff(self, 'policy' in now ? now.policy : policy) ?? othersHands(node)
}

/** A person wants the machine to stay off: nothing is ordered that would make it ours to switch on, and nothing is switched on. */
export function keptOff(node: NodeSeen): Brake | undefined {
  const why = said(node, annotation.keepOff)
  if (why === undefined) return undefined
  return { because: 'kept-off', detail: `${annotation.keepOff} stands on ${node.name}${why === '' || why === 'true' ? '' : `: ${why}`}`, lifts: 'the annotation removed, or the machine booting' }
}

interface Sign {
  readonly whose: string
  readonly shown: string
}

/** Keys of taints by which others say that they are at work, from their own sources. */
const taintSigns: readonly (readonly [whose: string, key: RegExp])[] = [
  ['medik8s', /^(remediation\.)?medik8s\.io\//],
  ['Dell CSM for Resiliency', /\.podmon\.storage\.dell\.com$/],
  ['the Piraeus High Availability Controller', /^drbd\.linbit\.com\/(lost-quorum|force-io-error)$/],
  ['the cluster autoscaler', /^ToBeDeletedByClusterAutoscaler$/],
  ['Karpenter', /^karpenter\.sh\/disrupt(ed|ion)$/],
]
export const kuredAnnotation = 'weave.works/kured-reboot-in-progress'

function signOf({ taints, annotations }: NodeSeen): Sign | undefined {
  for (const [whose, key] of taintSigns) {
    const taint = taints.find((one) => key.test(one.key))
    if (taint !== undefined) return { whose, shown: `the taint ${taint.key}` }
  }
  return annotations[kuredAnnotation] === undefined ? undefined : { whose: 'kured', shown: `the annotation ${kuredAnnotation}` }
}
