// From what is seen to what is wanted. Nothing is remembered between two calls and nothing is done "because the step before
// was done": each call starts from the snapshot alone, so that a leader that has just taken over, or one that was killed
// between any two lines, wants the same things from the same facts.
//
// The order of questions on an incident is the order of the promises. Is this still the machine the incident is about? Are
// we allowed to act at all? Was the proof shown false? Is there one? Only then: what would free something, what would cut
// something off, what gives it back.
import { askShut } from './acceptance.ts'
import { forceEvictionKey, wordOf } from './acknowledge.ts'
import { keyOf, type Action, type Look } from './action.ts'
import { audits } from './audit.ts'
import { blind, handsOff, noOrders, paused, theirPause, type Brake } from './brake.ts'
import { hasOurs, hasTaint, outOfServiceKey, quarantineKey, unburied } from './clear.ts'
import { clearing } from './clearing.ts'
import { freesNothing, safeDriversOf } from './choice.ts'
import { cuts } from './cut.ts'
import { drill } from './drill.ts'
import { keptOff, othersHands } from './hands.ts'
import { dumping } from './dump.ts'
import { evictFirst } from './evict.ts'
import { headStart } from './head-start.ts'
import { given, isPartial, kindsOf, lapsed, lastProvenAt, shownFalse, type Incident, type IncidentStatus } from './incident.ts'
import { isIsolation, isPowerOrder, powerOrdered, provingOrder } from './isolation.ts'
import { lastBeat, seconds, shutsDown } from './judge.ts'
import { askClean, askPods, challenge, challengeNeighbours, illness, readLive, suspicion } from './look.ts'
import { evictionKey, goneKey, sameBoot, unkeptOf, type Boot, type Ms, type NodeSeen, type Observed } from './model.ts'
import { incidentName } from './name.ts'
import { declareMaintenance } from './maintenance.ts'
import { mayBeStruck } from './neighbour.ts'
import { owing } from './owed.ts'
import { nextOrder, type Next } from './plan.ts'
import { policyOf, type Policy } from './policy.ts'
import { foundOff, join, driversOf, proveByWord, proveOff, proveSafeDetach, proveSelfFenced, readingsOf, recall, saidOffAt, unconfigured, type Lacking, type Proof, type Proven } from './proof.ts'
import { bringBack, cutOtherwise, end, giveBack, giveStrayed, repay, returning } from './restore.ts'
import { awaiting } from './return.ts'
import { isFencingItself, selfFence } from './revoke.ts'
import { close, hold, isAnotherMachine, laterBoot, latestBoot, quarantine, situationOf, untaint, withdraw, type Situation } from './situation.ts'
import { withCleanUp } from './clean-up.ts'
import { withStop } from './strangers.ts'
import { survey, type Survey } from './survey.ts'
import { quarantineUnclean } from './unclean.ts'

export function decide(seen: Observed, now: Ms, policies: readonly Policy[]): readonly Action[] {
  if (seen.self.term === undefined) return []
  const on = survey(seen, now, policies)
  const dark = blind(seen.self, now)
  if (dark !== undefined) return [...on.open.values()].map((incident) => hold(incident.nodeName, dark, incident))
  const actions: Action[] = []
  for (const incident of on.open.values()) actions.push(...proceed(on, incident))
  for (const incident of on.beside) actions.push(waitsBeside(on, incident))
  for (const name of on.verdicts.keys()) {
    const node = seen.nodes.get(name)
    if (node !== undefined && !on.open.has(name)) actions.push(...begin(on, node))
  }
  actions.push(...owing(on), ...headStart(on), ...askShut(on), ...quarantineUnclean(on))
  const asked = new Set(actions.map(keyOf))
  actions.push(...strays(on), ...refutedWords(on))
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
  const at = situationOf(on, incident, node)
  if (node.gone === true) return outlived(at, 'NodeDeleted', 'the Node object is gone', mayBeMadeAnew(at))
  if (isAnotherMachine(incident, node)) return replaced(at, 'another machine bears the name')
  const now = policyOf(node, on.policies)
  // The incident keeps its policy by value, but who takes our hands off now means this one, too.
  const off = handsOff(on.seen.self, incident.policy) ?? ('policy' in now ? handsOff(on.seen.self, now.policy) : undefined) ?? othersHands(node)
  if (off !== undefined) return [...(refuted(at) ? [untaint(node, outOfServiceKey, at.status.proof === undefined ? 'no proof stands' : 'the node is heard', incident)] : []), hold(node.name, off, incident)]
  return withStop(at, advance(at))
}

function advance(at: Situation): Action[] {
  const { incident, node } = at
  const orphan = settle(at)
  if (orphan !== undefined) return [orphan]
  if (incident.status.phase === 'Done') return withBurial(at, giveBack(at))
  if (node.uid !== incident.nodeUid) return madeAnew(at)
  if (incident.cause === 'drill') return drill(at)
  if (incident.cause === 'owed') return repay(at)
  if (incident.status.proof === undefined) return withBurial(at, [...unproven(at), ...unvouched(at)])
  const proof = recall(incident.status.proof)
  if (proof.boot !== incident.boot || proof.nodeUid !== incident.nodeUid) {
    return [hold(node.name, { because: 'proof-doubted', detail: `the proof on record is of ${proof.boot} on ${proof.nodeUid}`, lifts: 'a person' }, incident)]
  }
  return [...proven(at, proof), ...refusedAbort(at)]
}

/** A person named a node, and the rest is taken from what is known of it. */
function complete(on: Survey, incident: Incident, node: NodeSeen | undefined): Action {
  if (node === undefined || node.gone === true) return close(incident, 'Refused', `there is no Node ${incident.nodeName}: spec.nodeName must be the name of one, as kubectl get nodes lists it`)
  const chosen = policyOf(node, on.policies)
  if (!('policy' in chosen)) return hold(node.name, unchosen(chosen), incident)
  const { uid: nodeUid, machine } = node
  return { do: 'complete', node: node.name, incident: incident.name, taken: { nodeUid, boot: latestBoot(node), machine, policy: chosen.policy } }
}

/** A leader that is gone left it running, and nobody knows its end. */
function settle({ incident, node, status }: Situation): Action | undefined {
  const orphan = status.attempts.find((attempt) => attempt.result === 'running' && !node.busy.has(`order ${node.name} ${attempt.method}`))
  return orphan === undefined ? undefined : { do: 'settle', node: node.name, incident: incident.name, attempt: orphan.id }
}

/** After every other deed: a deletion that is refused again and again must not stand in the way. */
function withBurial({ incident, node }: Situation, actions: readonly Action[]): Action[] {
  const pods = unburied(incident, node)
  if (pods?.length === 0) return [...actions]
  const next: Action[] = pods === undefined ? askPods(node) : [{ do: 'bury', node: node.name, incident: incident.name, pods }]
  const wished = new Set(actions.map(keyOf))
  return [...actions, ...next.filter((action) => !wished.has(keyOf(action)))]
}

/** Out-of-service stands, and no proof does, or something speaks that a proof must not stand against. */
function refuted(at: Situation): boolean {
  return hasOurs(at.node, outOfServiceKey) && (at.status.proof === undefined || at.heard === 'new boot' || beatsSinceProof(at))
}

function beatsSinceProof(at: Situation): boolean {
  const { on, incident, node } = at
  return node.beat !== undefined && node.beat.at > (provenAt(at) ?? -Infinity) && !on.verdicts.has(node.name) && sameBoot(node.beat.boot, incident.boot)
}

/** One node is fenced for one reason at a time. */
function waitsBeside(on: Survey, incident: Incident): Action {
  const other = on.open.get(incident.nodeName)
  // What is owed can wait: its incident ends for this one.
  if (incident.cause === 'by-hand' && incident.status.attempts.length === 0 && other?.cause !== 'owed') {
    if (incident.status.term !== on.seen.self.term) return { do: 'adopt', node: incident.nodeName, incident: incident.name }
    return close(incident, 'Refused', `a duplicate: ${other?.name} of the same node is open, and one incident of a node at a time`)
  }
  const detail = `${other?.name} of the same node is open`
  return hold(incident.nodeName, { because: 'concurrency', detail, lifts: 'its end' }, incident)
}

/** Another machine under the name: what we knew is of no use here. */
function replaced(at: Situation, because: string): Action[] {
  const { incident, node } = at
  const ours = [outOfServiceKey, quarantineKey].find((key) => hasOurs(node, key))
  if (ours !== undefined) return [untaint(node, ours, because, incident)]
  return outlived(at, 'Replaced', because)
}

/** No proof carries over to another Node object, but the machine is the one that we cut. */
function madeAnew(at: Situation): Action[] {
  if (at.status.proof?.kind === 'vouched') return replaced(at, 'its Node was made anew, and a person\'s word was of the one before: there may be hands in the machine')
  return [withdraw(at.incident, 'its Node was made anew: what was proven of the one before frees nothing more, and what was cut is given back')]
}

/** Nothing is freed or switched any more for a node that is not there, and nothing is buried: Kubernetes sweeps every pod of a Node
 *  that is gone within a minute or so, doomed ones among them. But what was sent for it may land on who bears its name
 *  next, or on the proof of that one's incident, so it is waited out. */
function outlived(at: Situation, outcome: 'NodeDeleted' | 'Replaced', because: string, brake?: Brake): Action[] {
  const orphan = settle(at)
  if (orphan !== undefined) return [orphan]
  if (brake !== undefined) return [hold(at.node.name, brake, at.incident)]
  // The machine that it was meant for may be behind it still.
  const shut = cuts(at.incident, at.node).filter(({ method, givenBack }) => method.isolates !== undefined && !givenBack).map(({ method }) => method.name)
  return end(at, outcome, shut.length === 0 ? because : `${because}; ${shut.join(', ')} was ordered off and stays so, until a person knows what is behind it`)
}

/** `kubectl replace --force` deletes first. */
const madeAnewWithin: Ms = 30_000

/** Once the incident is over nobody knows that the machine is dark through us. */
function mayBeMadeAnew({ on, incident, node }: Situation): Brake | undefined {
  const owed = cuts(incident, node).filter(({ givenBack }) => !givenBack).map(({ method }) => method.name)
  if (owed.length === 0 || on.now - (node.firstSeen.get(goneKey) ?? -Infinity) >= madeAnewWithin) return undefined
  const detail = `${owed.join(', ')} was ordered off, and nothing is switched on for a Node object that is gone`
  return { because: 'still-cut', detail, lifts: `its Node made anew, or ${seconds(madeAnewWithin)} without it` }
}

/** No proof yet: look, prove what is there, order what is allowed. */
function unproven(at: Situation): Action[] {
  const { incident, node, status } = at
  const before = lapsed(status)
  // What went on with a proof comes off with it, before anything else.
  if (status.voided.length > 0 && hasOurs(node, outOfServiceKey)) return [untaint(node, outOfServiceKey, before === undefined ? 'the proof was shown false' : 'the proof has lapsed', incident)]
  // What was freed by it is free: the incident ends like one that is proven, or by the fenced boot's own word.
  if (before !== undefined && (at.heard === 'new boot' || laterBoot(node, incident.boot))) return returning(at)
  // That the machine runs shows nothing of volumes that are out of its reach to be false.
  if (before !== undefined && isPartial(before.proof) && at.heard === 'old boot') return returning(at)
  if (before !== undefined && !isPartial(before.proof) && beatsSinceProof(at)) return challenged(at)
  if (at.heard === 'new boot') return [withdraw(incident, 'a new boot is heard: the old one is dead, and frees nothing by force')]
  if (incident.abort) return [withdraw(incident, 'a person aborted it')]
  if (at.heard === 'old boot' && incident.cause !== 'by-hand') {
    const running = status.attempts.find((attempt) => attempt.result === 'running')
    if (running !== undefined) return [hold(node.name, { because: 'order-may-land', detail: `heard again while ${running.method} is being asked ${running.action}`, lifts: 'the end of that run' }, incident)]
    return [withdraw(incident, 'the node is heard again')]
  }
  // The kubelet has posted that it is well since it was said to be off, and nothing was freed by that word.
  if (hasTaint(node, forceEvictionKey) && speaksAgainst(node)) return [untaint(node, forceEvictionKey, wellAgain, incident)]
  return pursue(at)
}

/** Look, prove what is there, order what is allowed. */
function pursue(at: Situation): Action[] {
  const { on, incident, node, status } = at
  const looks = [...suspicion(on, node), ...driverLooks(at)]
  const result = tryProof(at)
  if ('proof' in result) return [...looks, { do: 'prove', node: node.name, incident: incident.name, proof: result.proof }]
  const goesOn = status.eviction === undefined ? undefined : evictFirst(at)
  // While it answers nobody asks its devices each second for minutes.
  if (goesOn !== undefined) return [...(at.heard === 'nothing' ? looks : []), ...goesOn]
  // In one write with the first order, or as soon after it as the API server takes it.
  const shut = orderedOff(status) && !hasTaint(node, quarantineKey) ? [quarantine(at)] : []
  const step = nextOrder(incident, node, on.now)
  const back = step.next === 'verify' || step.next === 'wait' ? [] : giveStrayed(at, result)
  // Where its order failed, and the device says off all the same, nobody has asked them yet.
  if (back.length > 0) return [...looks, ...shut, ...challengeNeighbours(on, incident, node), ...back]
  const brake = step.next === 'spare' ? undefined : mayOrder(at, step)
  if (brake !== undefined) return [...looks, ...shut, hold(node.name, brake, incident)]
  const spent = restartsSpent(at, step)
  if (spent !== undefined) return [...looks, ...shut, ...(status.phase === 'Error' ? [] : [{ do: 'exhaust', node: node.name, incident: incident.name, because: spent.detail } as const]), hold(node.name, spent, incident), ...cutOtherwise(at)]
  return foundOffNear(at) ? looks : [...looks, ...shut, ...order(at, step, result)]
}

/** The policy in force now counts as well: who allows more of them means this incident. */
function restartsSpent({ on, incident, node, status }: Situation, step: Next): Brake | undefined {
  if (step.next !== 'rest' && !(step.next === 'order' && step.round > status.round)) return undefined
  const now = policyOf(node, on.policies)
  const restarts = Math.max(incident.policy.restarts ?? Infinity, 'policy' in now ? now.policy.restarts ?? Infinity : 0)
  if (status.round <= restarts) return undefined
  const last = step.next === 'rest' ? `: ${step.detail}` : ''
  return {
    because: 'exhausted', detail: `${status.round} rounds came to nothing, and restarts is ${restarts}${last}`,
    lifts: 'more restarts in its HoldfastPolicy, spec.acknowledge by a person who knows that the machine is off, spec.abort, or a beat of the node',
  }
}

const orderedOff = (status: IncidentStatus): boolean => given(status).some((attempt) => attempt.action === 'off')

/** The devices say off by themselves: the second word is a second away, and an order would only make it later. */
function foundOffNear(at: Situation): boolean {
  const { on, node, status } = at
  if (given(status).length > 0 || shownFalse(status).length > 0) return false
  const offAt = saidOffAt(node, lastBeat(node, on.seen.self), on.now)
  return offAt !== undefined && on.now - offAt < foundOffWithin
}

const foundOffWithin: Ms = 3_000

/** The first level that proves, or what the level under way lacks. */
function tryProof(at: Situation): Proven {
  const { on, incident, node, status } = at
  const ordered = orderedOff(status)
  const others = ordered ? [...on.seen.nodes.values()] : []
  let lacking: Lacking = { lacks: 'nothing was ordered' }
  for (const { level, isolates } of provingOrder(node)) {
    if (shownFalse(status).some((voided) => voided.proof.level >= level) || (isolates && status.proof?.kind === 'isolated')) continue
    const result = ordered ? proveOff(incident, node, level, others, on.now) : foundOff(incident.boot, node, level, on.now)
    if ('proof' in result) return joinedTo(at, result.proof)
    if (level === status.level) lacking = result
  }
  const byWord = isBeingRead(at) ? undefined : vouched(at)
  if (byWord !== undefined && 'proof' in byWord) return byWord
  const byWatchdog = isFencingItself(at) ? proveSelfFenced(incident, node, on.seen.nodes, on.seen.self, on.now) : lacking
  if ('proof' in byWatchdog) return byWatchdog
  const byDriver = restsOnDrivers(at) ? proveSafeDetach(incident, node, driversLeft(at), on.now) : lacking
  return 'proof' in byDriver ? joinedTo(at, byDriver.proof) : lacking
}

/** Another of some volumes does not take the place of the one that stands: it is of other drivers'. */
function joinedTo({ status }: Situation, proof: Proof): { readonly proof: Proof } {
  return { proof: status.proof !== undefined && isPartial(status.proof) && isPartial(proof) ? join(recall(status.proof), proof) : proof }
}

/** Those whose word counts, and whose volumes are not out of its reach as it is. */
function driversLeft({ on, incident: { policy }, status }: Situation): readonly string[] {
  const behind = status.proof === undefined ? [] : driversOf(status.proof)
  return safeDriversOf(policy, on.seen.self.safeDrivers).filter((driver) => !behind.includes(driver))
}

/** A word stands in for devices that cannot tell. Those that were just ordered off tell in seconds; and a machine that we have switched off
 *  is ours to give back, while by a person's word there may be hands in it, and it would stay dark through us. */
function isBeingRead({ on, incident, node, status }: Situation): boolean {
  return orderedOff(status) && nextOrder(incident, node, on.now).next === 'verify'
}

/** Only some volumes: so only where nothing proves the machine off, nor could soon. */
function restsOnDrivers({ on, incident, node, status }: Situation): boolean {
  if (status.proof !== undefined && unkeptOf(node, on.now).joined === incident.name) return false
  if ((status.proof !== undefined && (status.proof.kind !== 'isolated' || status.proof.joined !== undefined)) || on.verdicts.get(node.name)?.is !== 'dead' || (on.storms.cluster ?? on.storms.zones.get(node.zone)) !== undefined) return false
  if (incident.policy.nodeDownPodDeletionPolicy === 'DoNothing') return true
  const step = nextOrder(incident, node, on.now)
  return step.next === 'none' || step.next === 'rest' || step.next === 'spare' || status.phase === 'Error'
}

/** Its Lease is read as any suspect's is. */
function driverLooks(at: Situation): Look[] {
  const { on, node } = at
  const drivers = driversLeft(at)
  const covered = drivers.length > 0 && node.volumes.some(({ driver }) => drivers.includes(driver)) && restsOnDrivers(at)
  return covered ? readLive(node, on.now, liveEvery).filter((look) => look.do === 'readNode') : []
}

/** Undefined: nobody has acknowledged anything. */
function vouched({ on, incident, node }: Situation): Proven | undefined {
  if (wordOf(incident, node) === undefined) return undefined
  const verdict = on.verdicts.get(node.name)
  if (verdict?.is !== 'suspect' && verdict?.is !== 'dead') return { lacks: verdict?.is === 'ill' ? verdict.detail : 'the node is not known to be silent' }
  return proveByWord(incident, node, on.now)
}

/** What keeps an acknowledgement from being a proof, for whoever gave it. */
function unvouched(at: Situation): Action[] {
  const result = vouched(at)
  if (result === undefined || 'proof' in result) return []
  const word = wordOf(at.incident, at.node)
  const detail = `${word?.until === undefined ? word?.reason : `the acknowledgement by ${word.by}`} proves nothing: ${result.lacks}`
  // Its Lease is asked for as any suspect's is.
  const looks = readLive(at.node, at.on.now, liveEvery).filter((look) => look.do === 'readNode')
  return [...looks, hold(at.node.name, { because: 'unvouched', detail, lifts: 'that over, or another acknowledgement' }, at.incident)]
}

const liveEvery: Ms = 2_000

/** Whether a device may be ordered off now; the verdict is formed anew each time. */
function mayOrder(at: Situation, step: Next): Brake | undefined {
  const { on, incident, node, status } = at
  if (incident.policy.nodeDownPodDeletionPolicy === 'DoNothing') {
    return { because: 'do-nothing', detail: 'nodeDownPodDeletionPolicy is DoNothing: no order is given, nothing is freed', lifts: 'another nodeDownPodDeletionPolicy' }
  }
  const verdict = on.verdicts.get(node.name)
  // A round that was begun goes on, but not past a proof that was shown false: that was a word of life.
  // Nor does it go on over any other word of life, and a new one wants the verdict anew.
  // And one that isolated the machine has not begun with its power.
  const isolates = step.next === 'order' && isIsolation(node.path.levels[step.level] ?? [])
  const begun = verdict?.is === 'suspect' && (step.next !== 'order' || step.round === status.round) && given(status).some((attempt) => attempt.action === 'off'
    && attempt.round === status.round && (step.next !== 'order' || isPowerOrder(attempt, node) !== isolates) && status.voided.every((voided) => attempt.level > voided.proof.level))
  if (verdict?.is !== 'dead' && incident.cause !== 'by-hand' && !begun) {
    const detail = verdict?.is === 'suspect' ? verdict.lacks : verdict?.is === 'ill' ? verdict.detail : 'not heard by this replica yet'
    return { because: 'not-dead', detail, lifts: 'evidence, or a beat' }
  }
  const dump = powerOrdered(incident, node) ? undefined : dumping(node, on.now)
  return dump ?? noOrders(on.seen.nodes, node, incident, on.storms, on.fencing, on.verdicts) ?? (on.fencing.has(node.name) ? undefined : mayBeStruck(at))
}

function order(at: Situation, step: Next, { lacks, astray }: Lacking): Action[] {
  const { on, incident, node, status } = at
  switch (step.next) {
    case 'order': {
      const goes = evictFirst(at)
      if (goes !== undefined) return goes
      on.fencing.add(node.name)
      const first = !orderedOff(status) && !hasTaint(node, quarantineKey)
      return [
        ...(first ? [quarantine(at)] : []),
        ...(node.busy.has(`order ${node.name} ${step.method.name}`) ? [] : [{ do: 'fence', node: node.name, incident: incident.name, method: step.method, level: step.level, round: step.round } as const]),
      ]
    }
    case 'verify': return [...challengeNeighbours(on, incident, node), ...(astray === true ? [hold(node.name, { because: 'identity-unproven', detail: lacks, lifts: astrayLifts }, incident)] : [])]
    case 'wait': return step.overdue ? [hold(node.name, { because: 'order-may-land', detail: `${step.detail}, past its deadline`, lifts: 'the end of that program' }, incident)] : []
    case 'spare': return [hold(node.name, { because: 'power-after', detail: step.detail, lifts: 'that time over, or a beat of the node' }, incident)]
    case 'rest': return [hold(node.name, { because: 'resting', detail: `${step.detail}; no proof: ${lacks}`, lifts: 'the next round' }, incident), ...selfFence(at), ...cutOtherwise(at)]
    case 'none': return [hold(node.name, { because: step.because, detail: step.detail, lifts: 'a fence path that answers, or spec.acknowledge by a person who knows that the machine is off' }, incident), ...selfFence(at), ...cutOtherwise(at)]
  }
}

const astrayLifts = 'its answer; without one, what was ordered off is switched on again'

/** A proof stands. */
function proven(at: Situation, proof: Proof): Action[] {
  const { on, incident, node, status } = at
  if (at.heard === 'new boot' || laterBoot(node, incident.boot)) return withBurial(at, returning(at))
  const since = provenAt(at) ?? on.now
  if (isPartial(proof)) return provenInPart(at, proof, since)
  if (beatsSinceProof(at) || hasAnswered(at)) return challenged(at)
  if (status.step === 'recovery') return withBurial(at, bringBack(at))
  return [...clearing(at, proof, since), ...(unconfigured(proof, node) === undefined ? [] : cutOtherwise(at))]
}

/** It never said that the machine is off: a partitioned node comes back like any other, unless a person wants it off. What it does not
 *  cover is freed by the machine's power. */
function provenInPart(at: Situation, proof: Proof, since: Ms): Action[] {
  const { abort, cause } = at.incident
  if (at.heard === 'old boot' && (cause !== 'by-hand' || abort)) return withBurial(at, returning(at))
  return [...(abort ? [] : pursue(at)), ...(at.heard === 'old boot' ? [] : clearing(at, proof, since))]
}

/** The fenced boot beats after the proof: what it says to a challenge issued after it shows the proof false. */
function challenged(at: Situation): Action[] {
  const { on, incident, node } = at
  if (hasAnswered(at)) return [{ do: 'void', node: node.name, incident: incident.name, evidence: 'the fenced boot answered a challenge issued after the proof' }]
  return [...challenge(node, on.now), hold(node.name, { because: 'proof-doubted', detail: 'the fenced boot beats after the proof', lifts: 'its answer to a challenge, or its silence' }, incident)]
}

function hasAnswered(at: Situation): boolean {
  const answered = at.node.beat?.answered
  return answered !== undefined && answered.issuedAt > (provenAt(at) ?? at.on.now) && sameBoot(answered.boot, at.incident.boot)
}

/** Beside what the sequence waits for: it finishes, since what is free already cannot be taken back. */
function refusedAbort({ incident, node, status }: Situation): Action[] {
  if (!incident.abort) return []
  const detail = `the abort came too late: the node was proven unable to write (${status.proof && kindsOf(status.proof)}), and what follows from that is finished`
  return [hold(node.name, { because: 'abort-refused', detail, lifts: 'the end of the incident' }, incident)]
}

/** When this replica first saw the proof that stands, or the one that has lapsed. */
function provenAt({ incident, node, status }: Situation): Ms | undefined {
  return status.proof === undefined && lapsed(status) === undefined ? undefined : lastProvenAt(incident, node.firstSeen)
}

const wellAgain = 'the node was heard since, Ready is True, and nothing was freed by that word'

function isEvicted(node: NodeSeen): boolean {
  return hasTaint(node, forceEvictionKey) && node.ready.status !== 'True'
}

/** Ready, posted after the word, or with a beat after it: what was said before it may be why somebody went to look. */
function speaksAgainst({ ready, beat, firstSeen }: NodeSeen): boolean {
  return ready.status === 'True' && Math.max(ready.postedAt, beat?.at ?? -Infinity) > (firstSeen.get(evictionKey) ?? Infinity)
}

/** Somebody says that a node is off, and it is not: taken back before anything follows from it. */
function refutedWords(on: Survey): readonly Action[] {
  return on.evicted.filter((node) => !on.open.has(node.name) && !node.busy.has(`deed ${node.name}`) && speaksAgainst(node))
    .map((node) => {
      const off = on.seen.self.pause === undefined ? othersHands(node) : paused(on.seen.self.pause, theirPause)
      return off === undefined ? untaint(node, forceEvictionKey, 'the node is well: Ready is True') : hold(node.name, off)
    })
}

/** Our quarantine on a node that has no open incident: its owner is gone, its exit is the same as any return's. */
function strays(on: Survey): readonly Action[] {
  return on.quarantined.filter((node) => !on.open.has(node.name)).flatMap((node) => (on.verdicts.has(node.name) ? unheard(on, node) : stray(on, node)))
}

/** Its taint stays, and says for what: it may be silent for long before it is dead, and before an incident owns the taint. */
function unheard(on: Survey, node: NodeSeen): Action[] {
  const lacks = awaiting(undefined, node, on.now)
  return lacks === undefined ? [] : [hold(node.name, lacks)]
}

function stray(on: Survey, node: NodeSeen): Action[] {
  // While its boot is not on record the next tick would quarantine it again.
  if (node.busy.has(`deed ${node.name}`) || on.unclean.has(node)) return []
  const { pause } = on.seen.self
  const off = pause === undefined ? othersHands(node) : paused(pause, theirPause)
  if (off !== undefined && !hasOurs(node, outOfServiceKey)) return [hold(node.name, off)]
  // Nothing on record says why it should stand, and the node may be running.
  if (hasOurs(node, outOfServiceKey)) return [untaint(node, outOfServiceKey, 'no incident of this node is open')]
  const own = [...on.seen.incidents.values()].filter((incident) => incident.nodeName === node.name)
  const lacks = (own.length === 0 ? [undefined] : own).map((incident) => awaiting(incident, node, on.now)).find((brake) => brake !== undefined)
  if (lacks !== undefined) return [...askClean(node, on.now), hold(node.name, lacks)]
  return [untaint(node, quarantineKey, 'no incident of this node is open, and it is clean')]
}

export type { Look }
