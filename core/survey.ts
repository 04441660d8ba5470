// One look over all nodes: who has which policy, what the verdict on each is, which incidents are open, what fell silent
// together, who holds a fencing slot. Five thousand nodes that beat cost a comparison each.
import { isShut } from './acceptance.ts'
import { forceEvictionKey } from './acknowledge.ts'
import { storm, type Silent, type Storm } from './brake.ts'
import { hasOurs, hasTaint, outOfServiceKey, quarantineKey } from './clear.ts'
import { hasCrashed, withoutRefusals } from './dump.ts'
import { given, isPartial, type Incident } from './incident.ts'
import { isLate, isWithoutAgent, judge, lastBeat, shutsDown, soonestLate, type Peers, type Verdict } from './judge.ts'
import { sameBoot, type BeatSeen, type Ms, type NodeName, type NodeSeen, type Observed } from './model.ts'
import { beatsWithin, listenersOf } from './look.ts'
import { nextOrder } from './plan.ts'
import { recall, unconfigured } from './proof.ts'
import { isUnclean } from './unclean.ts'
import { revokedKey } from './self-fence.ts'
import { endedWithin } from './watchdog.ts'
import { policyOf, profiles, type Chosen, type Policy } from './policy.ts'

export interface Survey {
  readonly seen: Observed
  readonly now: Ms
  readonly peers: Peers
  readonly policies: readonly Policy[]
  /** The open incident of each node. */
  readonly open: ReadonlyMap<NodeName, Incident>
  /** Open as well, beside the one of their node that goes on. */
  readonly beside: readonly Incident[]
  /** Every node that is not plainly alive. */
  readonly verdicts: ReadonlyMap<NodeName, Verdict>
  /** Nodes without an incident whose beat is late, and that nobody suspects yet. */
  readonly late: readonly NodeSeen[]
  readonly storms: Storm
  /** Nodes that bear our quarantine. */
  readonly quarantined: readonly NodeSeen[]
  /** Nodes that bear an out-of-service of ours. */
  readonly outOfService: readonly NodeSeen[]
  /** Nodes of which we said that they are being worked on. */
  readonly maintained: readonly NodeSeen[]
  /** Nodes that beat while their gate keeps pods from starting. */
  readonly shut: readonly NodeSeen[]
  /** Nodes that beat in a boot which follows one that was cut off, and that nobody has quarantined for it yet. */
  readonly unclean: ReadonlySet<NodeSeen>
  /** Nodes that cross a threshold of a remedy. */
  readonly ailing: readonly NodeSeen[]
  /** Nodes of which a taint says that they are off. */
  readonly evicted: readonly NodeSeen[]
  /** What runs here: programs of every kind, those of audits among them, port probes and writes of records of nodes that beat. */
  readonly running: Running
  /** Nodes that beat, a few of each zone: whom to ask about another. */
  readonly listeners: () => readonly (readonly NodeSeen[])[]
  /** Nodes that hold a slot: from the first order of a round to the last volume freed. */
  readonly fencing: Set<NodeName>
}

export interface Running {
  programs: number
  devices: number
  probes: number
  records: number
  /** Lists of the pods of a node, and questions for a clean report, each of which makes one. */
  lists: number
}

export function survey(seen: Observed, now: Ms, policies: readonly Policy[]): Survey {
  const { open, beside } = openOf(seen)
  const verdicts = new Map<NodeName, Verdict>()
  const silent: Silent[] = []
  const lapsed = new Set<NodeSeen>()
  const quiet: NodeSeen[] = []
  const bereft: NodeSeen[] = []
  const late: NodeSeen[] = []
  const quarantined: NodeSeen[] = []
  const outOfService: NodeSeen[] = []
  const evicted: NodeSeen[] = []
  const maintained: NodeSeen[] = []
  const shut: NodeSeen[] = []
  const ailing: NodeSeen[] = []
  const unclean = new Set<NodeSeen>()
  const running: Running = { programs: 0, devices: 0, probes: 0, records: 0, lists: 0 }
  let agents = 0
  for (const node of seen.nodes.values()) {
    const { beat } = node
    const beating = plainlyAlive(beat, now)
    if (node.gone === true) {
      // Of one that is fenced still it must be known whether it speaks; to everybody else it is none any more.
      if (open.has(node.name) && !beating) bereft.push(node)
      continue
    }
    if (node.busy.size > 0) count(running, node.busy, beating)
    if (node.taints.length > 0 && hasTaint(node, quarantineKey)) quarantined.push(node)
    if (node.taints.length > 0 && hasOurs(node, outOfServiceKey)) outOfService.push(node)
    if (node.taints.length > 0 && hasTaint(node, forceEvictionKey)) evicted.push(node)
    if (node.maintenance === 'ours') maintained.push(node)
    if (beat?.lapse !== undefined && recentLapse(node, beat.lapse, seen, policies, now)) lapsed.add(node)
    if (isShut(beat, now)) shut.push(node)
    if (node.ailing !== undefined) ailing.push(node)
    if (beating && isUnclean(node)) unclean.add(node)
    if (beating) agents += 1
    else quiet.push(node)
    if (beat === undefined || now - beat.at < soonestLate || open.has(node.name)) continue
    if (isLate(node, seen.self, profileOf(policyOf(node, policies), undefined), now)) late.push(node)
  }
  const peers = { agents, replicas: seen.self.replicas.length }
  const judged = (node: NodeSeen): Verdict => {
    const chosen = policyOf(node, policies)
    const incident = open.get(node.name)
    const { hungAfter = 0 } = incident?.policy ?? ('policy' in chosen ? chosen.policy : {})
    const verdict = judge(hasCrashed(node, seen.self, incident) ? withoutRefusals(node) : node, seen.self, profileOf(chosen, incident), peers, now, hungAfter)
    if (verdict.is !== 'alive') verdicts.set(node.name, verdict)
    return verdict
  }
  for (const node of quiet) {
    if (silentBeats(node, seen, judged(node), now) && !explained(node, open.get(node.name)) && !lapsed.has(node)) {
      silent.push({ node, since: lastBeat(node, seen.self) })
    }
  }
  for (const node of bereft) judged(node)
  for (const node of lapsed) silent.push({ node, since: node.beat?.lapse?.from ?? now })
  const present = silent.length < 2 ? [] : [...seen.nodes.values()].filter((node) => node.gone !== true)
  let listeners: readonly (readonly NodeSeen[])[] | undefined
  return {
    seen, now, peers, policies, open, beside, verdicts, late, storms: storm(present, silent, policies), fencing: slotHolders(seen, open, now), quarantined, outOfService, evicted, maintained, shut, ailing, unclean, running,
    listeners: () => (listeners ??= listenersOf(seen.nodes.values(), now)),
  }
}

/** Of several open incidents of one node the one that has come furthest goes on. */
export function openOf(seen: Pick<Observed, 'incidents'>): { open: Map<NodeName, Incident>; beside: Incident[] } {
  const open = new Map<NodeName, Incident>()
  const beside: Incident[] = []
  for (const incident of seen.incidents.values()) {
    if (incident.status.phase === 'Final') continue
    const other = open.get(incident.nodeName)
    const first = other === undefined || further(incident, other)
    if (first) open.set(incident.nodeName, incident)
    if (other !== undefined) beside.push(first ? other : incident)
  }
  return { open, beside }
}

function further(one: Incident, other: Incident): boolean {
  const ahead = progress(one) - progress(other)
  return ahead > 0 || (ahead === 0 && one.name < other.name)
}

/** Its watchdog is given the time that it needs, and no longer: where its members do not answer the next one must not wait for them. */
function isSelfFencing({ name, boot, status: { proof, revoked } }: Incident, { beat, firstSeen }: NodeSeen, now: Ms): boolean {
  if (revoked === undefined || (proof !== undefined && !isPartial(proof)) || (beat !== undefined && !sameBoot(beat.boot, boot))) return false
  return now - (firstSeen.get(revokedKey(name)) ?? now) < endedWithin(revoked.watchdog) + membersWithin
}

const membersWithin: Ms = 60_000

function progress({ status, cause }: Incident): number {
  return (cause === 'by-hand' ? 0 : 0.5) + (status.proof === undefined ? 0 : 2) + (status.attempts.length > 0 ? 1 : 0)
}

/** A node that has just come back from a silence still counts among those that fell silent together: when a common fault ends,
 *  they come back one by one, and the last of them must not look like the only one. Silences of our own making do not count. */
function recentLapse(node: NodeSeen, lapse: NonNullable<BeatSeen['lapse']>, seen: Observed, policies: readonly Policy[], now: Ms): boolean {
  if (lapse.from < seen.self.awakeSince) return false
  const chosen = policyOf(node, policies)
  if (!('policy' in chosen)) return false
  const { profile, brakes } = chosen.policy
  return now - lapse.to < brakes.stormWindow && lapse.to - lapse.from >= profiles[profile].suspectAfter
}

/** Its beats are silent. A Lease that moves again, or a port that answers again, makes it alive or ill, and no stranger to what
 *  it fell silent with. A silence that was announced is no sign of anything. */
function silentBeats(node: NodeSeen, seen: Observed, verdict: Verdict, now: Ms): boolean {
  if (shutsDown(node)) return false
  if (verdict.is === 'suspect' || verdict.is === 'dead') return true
  // Never heard since this replica began, though it has an agent: what has silenced it may be what silences those that were.
  if (node.beat === undefined) return verdict.is === 'unknown' && !isWithoutAgent(node) && now - lastBeat(node, seen.self) >= unheardFor
  return node.beat !== undefined && node.beat.goodbye === undefined && now - lastBeat(node, seen.self) >= longestSuspicion
}

/** An agent that is there has found a replica by then. */
const unheardFor = Math.min(...Object.values(profiles).map((profile) => profile.suspectAfter))
const longestSuspicion = Math.max(...Object.values(profiles).map((profile) => profile.suspectAfter))

/** Cheaper than a judgement: no profile is more impatient than this. */
function plainlyAlive(beat: BeatSeen | undefined, now: Ms): boolean {
  return beat !== undefined && now - beat.at < beatsWithin
}

function count(running: Running, busy: ReadonlySet<string>, beating: boolean): void {
  for (const key of busy) {
    const asks = key.startsWith('askDevice ')
    if (asks || key.startsWith('order ')) running.programs += 1
    if (key.startsWith('askClean ') || key.startsWith('listPods ')) running.lists += 1
    if (!beating) continue
    if (asks) running.devices += 1
    else if (key.startsWith('probe ')) running.probes += 1
    else if (key.startsWith('record ')) running.records += 1
  }
}

function profileOf(chosen: Chosen, incident: Incident | undefined): Policy['profile'] {
  return incident?.policy.profile ?? ('policy' in chosen ? chosen.policy.profile : 'balanced')
}

/** Proven off, its silence is no sign of a common fault; the silence of the boot that came after is. */
function explained(node: NodeSeen, incident: Incident | undefined): boolean {
  return incident?.status.proof !== undefined && !isPartial(incident.status.proof) && incident.nodeUid === node.uid && (node.beat === undefined || sameBoot(node.beat.boot, incident.boot))
}

function slotHolders(seen: Observed, open: ReadonlyMap<NodeName, Incident>, now: Ms): Set<NodeName> {
  const holders = new Set<NodeName>()
  for (const incident of open.values()) {
    const node = seen.nodes.get(incident.nodeName)
    if (node !== undefined && holdsSlot(incident, node, now)) holders.add(incident.nodeName)
  }
  return holders
}

/** From the first order of a round to the last volume freed. One that rests, has no level left or can only hold, holds none. */
function holdsSlot(incident: Incident, node: NodeSeen, now: Ms): boolean {
  const { status } = incident
  // Of one whose crash kernel was heard the power is ordered off when its pods are free already.
  const dumped = status.proof?.kind === 'kdump'
  if ((status.step === 'recovery' && !dumped) || status.phase === 'Done' || status.phase === 'Error') return false
  // An order that is being written down stands on no record yet.
  if ([...node.busy].some((key) => key.startsWith('order '))) return true
  if (isSelfFencing(incident, node, now)) return true
  if (!given(status).some((attempt) => attempt.action === 'off' && attempt.round === status.round)) return false
  if (node.beat !== undefined && !sameBoot(node.beat.boot, incident.boot)) return false
  if (status.proof !== undefined && !isPartial(status.proof) && !dumped) return unconfigured(recall(status.proof), node) === undefined
  const step = nextOrder(incident, node, now)
  return step.next === 'wait' || step.next === 'verify' || (step.next === 'order' && step.round === status.round)
}
