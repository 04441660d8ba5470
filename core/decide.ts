// From what is seen to what is wanted. Nothing is remembered between two calls and nothing is done "because the step before
// was done": each call starts from the snapshot alone, so that a leader that has just taken over, or one that was killed
// between any two lines, wants the same things from the same facts.
//
// The order of questions on an incident is the order of the promises. Is this still the machine the incident is about? Are
// we allowed to act at all? Was the proof shown false? Is there one? Only then: what would free something, what would cut
// something off, what gives it back.
import { askShut } from './acceptance.ts'
import { forceEvictionKey } from './acknowledge.ts'
import { keyOf, type Action } from './action.ts'
import { audits } from './audit.ts'
import { blind, handsOff, type Brake } from './brake.ts'
import { hasOurs, hasTaint, outOfServiceKey, quarantineKey, unburied } from './clear.ts'
import { clearing } from './clearing.ts'
import { freesNothing } from './choice.ts'
import { drill } from './drill.ts'
import { handsOffIncident, keptOff, othersHands } from './hands.ts'
import { headStart } from './head-start.ts'
import { isDrill, isPartial, kindsOf, lapsed, type Incident } from './incident.ts'
import { powerOrdered } from './isolation.ts'
import { shutsDown } from './judge.ts'
import { beatsSinceProof, challenged, provenAt, speaksAgainstProof } from './challenge.ts'
import { answerAfterProof } from './lie.ts'
import { askPods, askWhoHears, illness, suspicion } from './look.ts'
import type { Boot, Ms, NodeSeen, Observed } from './model.ts'
import { incidentName } from './name.ts'
import { declareMaintenance } from './maintenance.ts'
import { owing } from './owed.ts'
import { isCleanAgain, mustLosePower } from './patience.ts'
import { policyOf, type Policy } from './policy.ts'
import { foundOff, recall, unconfigured, type Proof } from './proof.ts'
import { readingsOf } from './reading.ts'
import { readRenewals, renewed } from './renewed.ts'
import { isCured, isWanted, seekRemedies } from './remedy.ts'
import { bringBack, cutOtherwise, giveBack, repay, returning } from './restore.ts'
import { close, hold, isAnotherMachine, laterBoot, latestBoot, quarantine, situationOf, untaint, withdraw, type Situation } from './situation.ts'
import { withCleanUp } from './clean-up.ts'
import { withStop } from './strangers.ts'
import { survey, type Survey } from './survey.ts'
import { quarantineUnclean } from './unclean.ts'
import { pursue, unvouched } from './pursue.ts'
import { asWished, waitsBeside } from './wish.ts'
import { wellAgain, isEvicted, speaksAgainst, refutedWords } from './force-eviction.ts'
import { strays } from './stray.ts'
import { replaced, madeAnew } from './outlived.ts'
import { deleted } from './deleted.ts'
import { settle } from './settle.ts'
import { scheduledDrills } from './spare.ts'

export function decide(seen: Observed, now: Ms, policies: readonly Policy[]): readonly Action[] {
  if (seen.self.term === undefined) return []
  const on = survey(seen, now, policies)
  const dark = blind(seen.self, now)
  if (dark !== undefined) return [...on.open.values()].map((incident) => hold(incident.nodeName, dark, incident))
  const actions: Action[] = []
  for (const incident of on.open.values()) actions.push(...proceed(on, incident))
  for (const incident of on.beside) actions.push(aside(on, incident, seen.nodes.get(incident.nodeName)))
  for (const name of on.verdicts.keys()) {
    const node = seen.nodes.get(name)
    if (node !== undefined && !on.open.has(name)) actions.push(...begin(on, node))
  }
  actions.push(...owing(on), ...headStart(on), ...askShut(on), ...quarantineUnclean(on), ...seekRemedies(on), ...scheduledDrills(on))
  const asked = new Set(actions.map(keyOf))
  // Where an incident is to be opened, that one sees to what it finds.
  actions.push(...strays(on).filter((action) => !asked.has(keyOf(action))), ...refutedWords(on))
  // A device that an incident asks is not asked by an audit beside it: the answer is the same.
  if (seen.self.calm !== true) actions.push(...audits(on).filter((action) => !asked.has(keyOf(action))))
  actions.push(...declareMaintenance(on, actions))
  return bounded(on, withCleanUp(on, actions))
}

/** Programs running at once, orders and audits included; what is not asked now is unknown a little longer. */
const programLimit = 32

function bounded(on: Survey, actions: readonly Action[]): readonly Action[] {
  const asks = actions.filter((action) => action.do === 'askDevice')
  if (asks.length === 0) return actions
  const free = programLimit - on.running.programs
  if (asks.length <= free) return actions
  const chosen = new Set<Action>(asks.toSorted((one, other) => askedAt(on, one) - askedAt(on, other)).slice(0, Math.max(0, free)))
  return actions.filter((action) => action.do !== 'askDevice' || chosen.has(action))
}

function askedAt(on: Survey, ask: Extract<Action, { do: 'askDevice' }>): Ms {
  const node = on.seen.nodes.get(ask.node)
  return (node === undefined ? undefined : readingsOf(node, ask.method).at(-1)?.endedAt) ?? -Infinity
}

/** A node without an incident that is not plainly alive. */
function begin(on: Survey, node: NodeSeen): Action[] {
  const verdict = on.verdicts.get(node.name)
  if (verdict === undefined || verdict.is === 'unknown') return []
  if (verdict.is === 'ill') return illness(on, node)
  if ((shutsDown(node) || keptOff(node) !== undefined) && !leftSomething(node, on.now)) return leftToAsk(node, on.now) ? askPods(node) : []
  const chosen = policyOf(node, on.policies)
  const looks = suspicion(on, node)
  const boot = latestBoot(node)
  const level = foundOffLevel(boot, node, on.now)
  const word = isEvicted(node)
  if (verdict.is !== 'dead' && level === undefined && !word) return looks
  if (!('policy' in chosen)) return [...looks, hold(node.name, unchosen(chosen))]
  const off = handsOff(on.seen.self, chosen.policy) ?? othersHands(node)
  if (off !== undefined) return [...looks, hold(node.name, off.because === 'dry-run' ? wouldDo(off, node, chosen.policy, level) : off)]
  const storm = level === undefined ? on.storms.cluster ?? on.storms.zones.get(node.zone) : undefined
  if (storm !== undefined) return [...looks, hold(node.name, storm)]
  const evidence = verdict.is === 'dead' ? verdict.evidence : [level === undefined ? { source: forceEvictionKey, word: 'off' } : { source: 'devices', word: 'off' }]
  return [...looks, {
    do: 'open', node: node.name, boot, policy: chosen.policy, cause: level !== undefined ? 'found-off' : verdict.is !== 'dead' ? 'by-word' : verdict.hung === true ? 'hung' : 'silence',
    evidence: evidence.map((one) => ({ ...one, at: '' })), name: incidentName(on.seen, node, boot),
  }]
}

/** A dry run makes no incident, so what would follow is told at once. */
function wouldDo(brake: Brake, node: NodeSeen, policy: Policy, level: number | undefined): Brake {
  const frees = freesNothing(policy) ? 'nothing would be freed' : `its pods would be freed as ${policy.nodeDownPodDeletionPolicy} has it, and their volumes released`
  const orders = policy.nodeDownPodDeletionPolicy === 'DoNothing' ? 'no device would be ordered'
    : `${node.path.levels.map((methods, index) => `${index === 0 ? '' : 'then '}${methods.map(({ name }) => name).join(' and ')}`).join(', ') || 'nothing'} would be ordered off under quarantine`
  const opens = `an incident would be opened (${level === undefined ? 'silence' : 'found-off'})`
  return { ...brake, detail: `${brake.detail}: ${[opens, level === undefined ? orders : `its devices prove it off already`, frees].join('; ')}` }
}

/** A machine that said it shuts down and left nothing behind needs nothing from us: it is not even asked about. */
function leftSomething(node: NodeSeen, now: Ms): boolean {
  return node.volumes.length > 0 || (!leftToAsk(node, now) && node.pods?.items.some((pod) => pod.exempt === undefined) === true)
}

const podsAgain: Ms = 30_000

/** Pods go on being deleted for a while after such a goodbye, and others may be bound. */
function leftToAsk(node: NodeSeen, now: Ms): boolean {
  return node.pods === undefined || node.pods.askedAt < (node.beat?.at ?? -Infinity) || now - node.pods.listedAt > podsAgain
}

function unchosen(chosen: Exclude<ReturnType<typeof policyOf>, { policy: Policy }>): Brake {
  return chosen.none === 'unselected'
    ? { because: 'unselected', detail: 'no policy selects this node: it is only watched', lifts: 'a HoldfastPolicy that selects it' }
    : { because: 'policy-conflict', detail: `${chosen.names.join(' and ')} select this node with one priority`, lifts: 'different priorities' }
}

function foundOffLevel(boot: Boot, node: NodeSeen, now: Ms): number | undefined {
  const level = node.path.levels.findIndex((_, index) => 'proof' in foundOff(boot, node, index, now))
  return level === -1 ? undefined : level
}

/** One open incident. */
function proceed(on: Survey, incident: Incident): Action[] {
  const node = on.seen.nodes.get(incident.nodeName)
  if (incident.status.term !== on.seen.self.term) return [{ do: 'adopt', node: incident.nodeName, incident: incident.name }]
  if (incident.incomplete === true) return [complete(on, incident, node)]
  if (node === undefined) return [hold(incident.nodeName, { because: 'blind', detail: 'nothing is known of its node yet', lifts: 'the list of nodes' }, incident)]
  const at = situationOf(on, asWished(incident, on.beside), node)
  if (node.gone === true) return deleted(at)
  const off = handsOffIncident(on, incident, node)
  if (off !== undefined) return [...takenOff(at), hold(node.name, off, incident)]
  if (isAnotherMachine(incident, node)) return replaced(at, anotherMachine)
  return withStop(at, advance(at))
}

function advance(at: Situation): Action[] {
  const { incident, node } = at
  const orphan = settle(at)
  if (orphan !== undefined) return [orphan]
  if (incident.status.phase === 'Done') return withBurial(at, giveBack(at))
  if (node.uid !== incident.nodeUid) return madeAnew(at)
  if (isDrill(incident)) return drill(at)
  if (incident.cause === 'owed') return repay(at)
  if (incident.status.proof === undefined) return withBurial(at, [...unproven(at), ...unvouched(at)])
  const proof = recall(incident.status.proof)
  if (proof.boot !== incident.boot || proof.nodeUid !== incident.nodeUid) {
    return [hold(node.name, { because: 'proof-doubted', detail: `the proof on record is of ${proof.boot} on ${proof.nodeUid}`, lifts: 'a person' }, incident)]
  }
  return [...proven(at, proof), ...refusedAbort(at)]
}

/** What a person did not write is of the boot in which theirs was first seen, not of the one that comes while it waits. */
function aside(on: Survey, incident: Incident, node: NodeSeen | undefined): Action {
  const waits = waitsBeside(on, incident, on.open.get(incident.nodeName), node)
  const bare = incident.incomplete === true && incident.cause === 'by-hand' && incident.status.term === on.seen.self.term
  return waits.do === 'hold' && bare && node !== undefined && node.gone !== true ? complete(on, incident, node) : waits
}

/** A person named a node, and the rest is taken from what is known of it. */
function complete(on: Survey, incident: Incident, node: NodeSeen | undefined): Action {
  if (node === undefined || node.gone === true) return close(incident, 'Refused', `there is no Node ${incident.nodeName}: spec.nodeName must be the name of one, as kubectl get nodes lists it`)
  const chosen = policyOf(node, on.policies)
  if (!('policy' in chosen)) return hold(node.name, unchosen(chosen), incident)
  const { uid: nodeUid, machine } = node
  return { do: 'complete', node: node.name, incident: incident.name, taken: { nodeUid, boot: latestBoot(node), machine, policy: chosen.policy } }
}

/** After every other deed: a deletion that is refused again and again must not stand in the way. */
function withBurial({ incident, node }: Situation, actions: readonly Action[]): Action[] {
  const pods = unburied(incident, node)
  if (pods?.length === 0) return [...actions]
  const next: Action[] = pods === undefined ? askPods(node) : [{ do: 'bury', node: node.name, incident: incident.name, pods }]
  const wished = new Set(actions.map(keyOf))
  return [...actions, ...next.filter((action) => !wished.has(keyOf(action)))]
}

const anotherMachine = 'another machine bears the name'

/** Whoever has it in hand: out-of-service that stands, and no proof does, or something speaks that a proof must not stand against. */
function takenOff(at: Situation): Action[] {
  const { incident, node, status } = at
  if (!hasOurs(node, outOfServiceKey)) return []
  const because = isAnotherMachine(incident, node) ? anotherMachine : status.proof === undefined ? 'no proof stands' : at.heard === 'new boot' || beatsSinceProof(at) ? 'the node is heard' : undefined
  return because === undefined ? [] : [untaint(node, outOfServiceKey, because, incident)]
}

/** No proof yet: look, prove what is there, order what is allowed. */
function unproven(at: Situation): Action[] {
  const { incident, node, status } = at
  const before = lapsed(status)
  // What went on with a proof comes off with it, before anything else; and so does what an incident has left that is not kept any more.
  if (hasOurs(node, outOfServiceKey)) return [untaint(node, outOfServiceKey, before !== undefined ? 'the proof has lapsed' : status.voided.length > 0 ? 'the proof was shown false' : 'no proof of this incident stands', incident)]
  // What was freed by it is free: the incident ends like one that is proven, or by the fenced boot's own word.
  if (before !== undefined && (at.heard === 'new boot' || laterBoot(node, incident.boot))) return returning(at)
  // That the machine runs shows nothing of volumes that are out of its reach to be false.
  if (before !== undefined && isPartial(before.proof) && at.heard === 'old boot') return returning(at)
  if (before !== undefined && !isPartial(before.proof) && (beatsSinceProof(at) || answerAfterProof(incident, node) !== undefined)) return challenged(at)
  if (at.heard === 'new boot') return [withdraw(incident, 'a new boot is heard: the old one is dead, and frees nothing by force')]
  if (incident.abort) return [withdraw(incident, 'a person aborted it')]
  if (isCured(at)) return [withdraw(incident, 'what ailed it is over, or is not told any more, and nothing was ordered yet')]
  if (isCleanAgain(at)) return [withdraw(incident, 'it is clean, and nothing was ordered yet')]
  if (at.heard === 'old boot' && !isWanted(at)) {
    const running = status.attempts.find((attempt) => attempt.result === 'running')
    if (running !== undefined) return [hold(node.name, { because: 'order-may-land', detail: `heard again while ${running.method} is being asked ${running.action}`, lifts: 'the end of that run' }, incident)]
    return [withdraw(incident, 'the node is heard again')]
  }
  // The kubelet has posted that it is well since it was said to be off, and nothing was freed by that word.
  if (before === undefined && hasTaint(node, forceEvictionKey) && speaksAgainst(node)) return [untaint(node, forceEvictionKey, wellAgain, incident)]
  return pursue(at)
}

/** A proof stands. */
function proven(at: Situation, proof: Proof): Action[] {
  const { on, incident, node, status } = at
  if (at.heard === 'new boot' || laterBoot(node, incident.boot)) return withBurial(at, returning(at))
  const since = provenAt(at) ?? on.now
  if (isPartial(proof)) return provenInPart(at, proof, since)
  if (speaksAgainstProof(at, proof)) return challenged(at)
  const doubted = renewed(at, since)
  if (doubted !== undefined) return doubted
  const follows = fromProof(at, proof, since)
  const asks = [...readRenewals(at), ...askWhoHears(on, node, since, status.step === 'recovery' ? hearsayLater : hearsayEvery)]
  return [...follows, ...asks.filter((look) => !follows.some((other) => keyOf(other) === keyOf(look)))]
}

/** So often others are asked whether they hear what was proven off: while it is cleared, and while it is only waited for. */
const hearsayEvery: Ms = 2_000
const hearsayLater: Ms = 10_000

function fromProof(at: Situation, proof: Proof, since: Ms): Action[] {
  if (proof.kind === 'kdump' && !at.incident.abort) return provenByDump(at, proof, since)
  if (at.status.step === 'recovery') return withBurial(at, bringBack(at))
  return [...clearing(at, proof, since), ...(unconfigured(proof, at.node) === undefined ? [] : cutOtherwise(at))]
}

/** Its pods go at once, and its power when its dump had its time: a crash kernel that ends by itself boots before that, and one that hangs
 *  is brought back only so. Once it is read off, it is an incident like any other. */
function provenByDump(at: Situation, proof: Proof, since: Ms): Action[] {
  const { incident, node, status } = at
  if (status.step !== 'recovery') return [...pursue(at), ...clearing(at, proof, since)]
  if (hasOurs(node, outOfServiceKey)) return [untaint(node, outOfServiceKey, 'the node is cleared', incident)]
  return withBurial(at, hasTaint(node, quarantineKey) ? pursue(at) : [quarantine(at)])
}

/** It never said that the machine is off: a partitioned node comes back like any other, unless a person wants it off, or its policy does. What
 *  it does not cover is freed by the machine's power. */
function provenInPart(at: Situation, proof: Proof, since: Ms): Action[] {
  const { abort } = at.incident
  if (at.heard === 'old boot' && !isWanted(at) && !abort && proof.kind === 'isolated' && mustLosePower(at)) return withBurial(at, losePower(at))
  if (at.heard === 'old boot' && (!isWanted(at) || abort)) return withBurial(at, returning(at))
  // What its power was ordered off for goes on: nobody else would prove it off, and give it back.
  return [...(abort && !powerOrdered(at.incident, at.node) ? [] : pursue(at)), ...(at.heard === 'old boot' ? [] : clearing(at, proof, since))]
}

/** As a node is fenced that is back and does not become clean. Its agent is asked on, since it is told to end what it must not run (`withStop`). */
function losePower(at: Situation): Action[] {
  return pursue({ ...at, incident: { ...at.incident, cause: 'leftover' } }).map((action) => (action.do === 'fence' ? { ...action, alive: true as const } : action))
}

/** Beside what the sequence waits for: it finishes, since what is free already cannot be taken back. */
function refusedAbort({ incident, node, status }: Situation): Action[] {
  if (!incident.abort) return []
  const detail = `the abort came too late: the node was proven unable to write (${status.proof && kindsOf(status.proof)}), and what follows from that is finished`
  return [hold(node.name, { because: 'abort-refused', detail, lifts: 'the end of the incident' }, incident)]
}
