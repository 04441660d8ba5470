// One look over all nodes: who has which policy, what the verdict on each is, which incidents are open, what fell silent
// together, who holds a fencing slot. Five thousand nodes that beat cost a comparison each.
import { storm, type Silent, type Storm } from './brake.ts'
import type { Incident } from './incident.ts'
import { judge, lastBeat, type Peers, type Verdict } from './judge.ts'
import { sameBoot, type Ms, type NodeName, type NodeSeen, type Observed } from './model.ts'
import { policyOf, profiles, type Chosen, type Policy } from './policy.ts'

export interface Survey {
  readonly seen: Observed
  readonly now: Ms
  readonly peers: Peers
  readonly policies: readonly Policy[]
  /** Open incidents, by node; the oldest first. */
  readonly open: ReadonlyMap<NodeName, Incident>
  /** Every node that is not plainly alive. */
  readonly verdicts: ReadonlyMap<NodeName, Verdict>
  readonly storms: Storm
  /** Nodes that hold a slot: from the first order of a round to the last volume freed. */
  readonly fencing: Set<NodeName>
}

export function survey(seen: Observed, now: Ms, policies: readonly Policy[]): Survey {
  const open = new Map<NodeName, Incident>()
  for (const incident of seen.incidents.values()) if (incident.status.phase !== 'Final') open.set(incident.nodeName, incident)
  const peers = { agents: agentsHeard(seen, now), replicas: seen.self.replicas.length }
  const verdicts = new Map<NodeName, Verdict>()
  const silent: Silent[] = []
  const present: NodeSeen[] = []
  for (const node of seen.nodes.values()) {
    if (node.gone === true) continue
    present.push(node)
    const lapse = recentLapse(node, seen, policies, now)
    if (lapse !== undefined) silent.push({ node, since: lapse })
    if (plainlyAlive(node, now)) continue
    const verdict = judge(node, seen.self, profileOf(policyOf(node, policies), open.get(node.name)), peers, now)
    if (lapse === undefined && silentBeats(node, seen, verdict, now) && !explained(node, open.get(node.name))) {
      silent.push({ node, since: lastBeat(node, seen.self) })
    }
    if (verdict.is !== 'alive') verdicts.set(node.name, verdict)
  }
  return { seen, now, peers, policies, open, verdicts, storms: storm(present, silent, policies), fencing: slotHolders(seen, open) }
}

/** A node that has just come back from a silence still counts among those that fell silent together: when a common fault ends,
 *  they come back one by one, and the last of them must not look like the only one. Silences of our own making do not count. */
function recentLapse(node: NodeSeen, seen: Observed, policies: readonly Policy[], now: Ms): Ms | undefined {
  const lapse = node.beat?.lapse
  if (lapse === undefined || lapse.from < seen.self.awakeSince) return undefined
  const chosen = policyOf(node, policies)
  if (!('policy' in chosen)) return undefined
  const { profile, brakes } = chosen.policy
  return now - lapse.to < brakes.stormWindow && lapse.to - lapse.from >= profiles[profile].suspectAfter ? lapse.from : undefined
}

/** Its beats are silent. A Lease that moves again, or a port that answers again, makes it alive or ill, and no stranger to what
 *  it fell silent with. */
function silentBeats(node: NodeSeen, seen: Observed, verdict: Verdict, now: Ms): boolean {
  if (verdict.is === 'suspect' || verdict.is === 'dead') return true
  return node.beat !== undefined && node.beat.goodbye === undefined && now - lastBeat(node, seen.self) >= longestSuspicion
}

const longestSuspicion = Math.max(...Object.values(profiles).map((profile) => profile.suspectAfter))

/** Cheaper than a judgement: no profile is more impatient than this. */
function plainlyAlive(node: NodeSeen, now: Ms): boolean {
  return node.beat !== undefined && now - node.beat.at < 1_500
}

function profileOf(chosen: Chosen, incident: Incident | undefined): Policy['profile'] {
  return incident?.policy.profile ?? ('policy' in chosen ? chosen.policy.profile : 'balanced')
}

/** Proven off, its silence is no sign of a common fault. */
function explained(node: NodeSeen, incident: Incident | undefined): boolean {
  return incident?.status.proof !== undefined && incident.nodeUid === node.uid
}

function agentsHeard(seen: Observed, now: Ms): number {
  let count = 0
  for (const node of seen.nodes.values()) if (plainlyAlive(node, now)) count += 1
  return count
}

function slotHolders(seen: Observed, open: ReadonlyMap<NodeName, Incident>): Set<NodeName> {
  const holders = new Set<NodeName>()
  for (const incident of open.values()) {
    const { status } = incident
    const boot = seen.nodes.get(incident.nodeName)?.beat?.boot
    const ordered = status.attempts.some((attempt) => attempt.action === 'off' && attempt.round === status.round)
    const over = status.step === 'recovery' || status.phase === 'Done' || status.phase === 'Error' || (boot !== undefined && !sameBoot(boot, incident.boot))
    if (ordered && !over) holders.add(incident.nodeName)
  }
  return holders
}
