// May workloads start on a node in the boot that is heard there? Every replica forms this word of what it sees and tells it to the node's
// gate, which goes by those that lead. Nothing of it is remembered: a quarantine, an open incident and the NodeRecord are in the cluster.
import type { Look } from './action.ts'
import { hasTaint, quarantineKey } from './clear.ts'
import { othersHands } from './hands.ts'
import type { Incident } from './incident.ts'
import { askClean, askPods, beatsWithin } from './look.ts'
import { sameBoot, type BeatSeen, type Boot, type Ms, type NodeSeen, type PodsSeen } from './model.ts'
import { awaiting } from './return.ts'
import type { Policy } from './policy.ts'
import type { Survey } from './survey.ts'
import { isGuarded, isUnclean } from './unclean.ts'

export interface Acceptance {
  readonly accepted: boolean
  /** The end of a sentence for people that begins with "NODE is quarantined: ". */
  readonly reason: string
}

const accepts: Acceptance = { accepted: true, reason: '' }

/** `incident`: the open one of this node. `policies`: none while it is paused, when nothing new is held against anybody. */
export function acceptance(node: NodeSeen, boot: Boot, incident: Incident | undefined, policies: readonly Policy[], now: Ms): Acceptance {
  if (hasTaint(node, quarantineKey)) return refuses(awaiting(incident, node, now)?.detail ?? 'nothing is left over any more, and its taint comes off')
  // What ran in the boot before may be given to others just now, and its quarantine comes with the first order or with the proof.
  if (incident !== undefined && !sameBoot(incident.boot, boot)) return refuses(`the incident ${incident.name} of an earlier boot is not over`)
  if (isUnclean(node) && isGuarded(node, policies) && othersHands(node) === undefined) return refuses('the boot before this one was cut off, or nobody knows how it ended; and nobody has looked yet what it left')
  return accepts
}

function refuses(reason: string): Acceptance {
  return { accepted: false, reason }
}

/** Pods that tolerate their node's quarantine, by the names that kubelet and the runtime know them by. */
export function tolerating(pods: PodsSeen | undefined): readonly string[] {
  return (pods?.items ?? []).filter(({ tolerates }) => tolerates === true).map(({ folder, uid }) => folder ?? uid)
}

/** A whole cluster may boot at once, and each of these lists the pods of a node. */
const asksAtOnce = 16

/** A gate opens by its agent's own finding, and for that the agent must be told what belongs on the node. One whose node is quarantined
 *  is told by whoever waits to lift that, and may wait for long; until then its pods are listed for those that tolerate it. */
export function askShut(on: Survey): Look[] {
  const asks = on.shut.flatMap((node) => (on.open.has(node.name) || hasTaint(node, quarantineKey) ? askBound(node, on.now) : askFirst(node, on.now)))
  return asks.slice(0, Math.max(0, asksAtOnce - on.running.lists))
}

/** Another pod may have been bound, of the node's own network or storage. */
const boundEvery: Ms = 5_000

function askBound(node: NodeSeen, now: Ms): Look[] {
  return node.pods !== undefined && now - node.pods.listedAt < boundEvery ? [] : askPods(node)
}

/** What an agent says before it was told anything is no answer that would be worth a wait. */
function askFirst(node: NodeSeen, now: Ms): Look[] {
  const asked = node.pods !== undefined && node.pods.askedAt >= (node.beat?.since ?? now)
  if (asked || node.busy.has(`askClean ${node.name}`)) return askClean(node, now)
  return [{ do: 'askClean', node: node.name }]
}

/** Its agent beats, and its gate keeps pods from starting. */
export function isShut(beat: BeatSeen | undefined, now: Ms): boolean {
  return beat?.gate === 'shut' && now - beat.at < beatsWithin
}
