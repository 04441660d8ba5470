// An incident whose machine is not proven off, or whose volumes are proven only in part, or whose crash kernel has the machine: look,
// prove what is there, order what is allowed.
import { wordOf } from './acknowledge.ts'
import { keyOf, type Action, type Look } from './action.ts'
import { loosened, noOrders, type Brake } from './brake.ts'
import { hasTaint, quarantineKey } from './clear.ts'
import { safeDriversOf } from './choice.ts'
import { mayStrike } from './device.ts'
import { doubtOfSilence, dumping } from './dump.ts'
import { evictFirst } from './evict.ts'
import { handsOffIncident } from './hands.ts'
import { given, isDrill, isPartial, shownFalse, type IncidentStatus } from './incident.ts'
import { isIsolation, isPowerOrder, powerOrdered, provingOrder } from './isolation.ts'
import { lastBeat } from './judge.ts'
import { challengeNeighbours, readLive, suspicion } from './look.ts'
import { unkeptOf, type Method, type Ms, type NodeName, type NodeSeen } from './model.ts'
import { mayBeStruck } from './neighbour.ts'
import { auditOf, isOffAtFirst } from './path.ts'
import { nextOrder, type Next } from './plan.ts'
import { policyOf } from './policy.ts'
import { foundOff, join, driversOf, proveByWord, proveDumped, proveOff, proveSafeDetach, proveSelfFenced, recall, type Lacking, type Proof, type Proven } from './proof.ts'
import { saidOffAt } from './reading.ts'
import { cutOtherwise, giveStrayed } from './restore.ts'
import { isWanted } from './remedy.ts'
import { isFencingItself, selfFence } from './revoke.ts'
import { hold, quarantine, situationOf, type Situation } from './situation.ts'
import type { Survey } from './survey.ts'
import { isAwaited } from './unheard.ts'

/** Look, prove what is there, order what is allowed. */
export function pursue(at: Situation): Action[] {
  const { on, incident, node, status } = at
  const looks = [...suspicion(on, node), ...driverLooks(at), ...dumpLooks(at)]
  const result = tryProof(at)
  if ('proof' in result) return [...looks, { do: 'prove', node: node.name, incident: incident.name, proof: result.proof }]
  if (isAnnounced(at)) return [...looks, { do: 'announce', node: node.name, incident: incident.name, from: node.dump?.from ?? '', afterSilence: doubtOfSilence(node) === undefined }]
  const dark = offAtFirst(at)
  if (dark.length > 0) return [...looks, { do: 'noteOff', node: node.name, incident: incident.name, methods: dark }]
  const goesOn = status.eviction === undefined ? undefined : evictFirst(at)
  // While it answers nobody asks its devices each second for minutes.
  if (goesOn !== undefined) return [...(at.heard === 'nothing' ? looks : []), ...goesOn]
  // In one write with the first order, or as soon after it as the API server takes it.
  const shut = orderedOff(status) && !hasTaint(node, quarantineKey) ? [quarantine(at)] : []
  const step = nextOrder(incident, node, on.now)
  if (waitsForOthers(at, step, result)) return [...looks, ...shut, ...challengeNeighbours(on, incident, node), hold(node.name, { because: 'identity-unproven', detail: result.lacks, lifts: joinedLifts }, incident)]
  const back = step.next === 'verify' || step.next === 'wait' || goesOnWaiting(step, status, result) ? [] : giveStrayed(at, result).filter((action) => !looks.some((look) => keyOf(look) === keyOf(action)))
  // Where its order failed, and the device says off all the same, nobody has asked them yet.
  if (back.length > 0) return [...looks, ...shut, ...challengeNeighbours(on, incident, node), ...back]
  const brake = step.next === 'spare' ? undefined : mayOrder(at, step)
  if (brake !== undefined) return [...looks, ...shut, hold(node.name, brake, incident)]
  const spent = restartsSpent(at, step)
  if (spent !== undefined) return [...looks, ...shut, ...(status.phase === 'Error' ? [] : [{ do: 'exhaust', node: node.name, incident: incident.name, because: spent.detail } as const]), hold(node.name, spent, incident), ...cutOtherwise(at)]
  return foundOffNear(at) ? looks : [...looks, ...shut, ...order(at, step, result)]
}

/** The other feed of a level is ordered off all the same. */
function goesOnWaiting(step: Next, { level, round }: IncidentStatus, { waitsFor = [] }: Partial<Lacking>): boolean {
  return waitsFor.length > 0 && step.next === 'order' && step.level === level && step.round === round
}

/** What it lacks is an *off* that is to come: its own would be taken back for nothing. */
function waitsForOthers({ on, status }: Situation, step: Next, lacking: Lacking): boolean {
  if (step.next === 'verify' || step.next === 'wait' || goesOnWaiting(step, status, lacking)) return false
  return lacking.waitsFor !== undefined && lacking.waitsFor.length > 0 && lacking.waitsFor.every((name) => goesOff(on, name))
}

const joinedLifts = 'its own outlet off as well, or its answer; where neither is to come, what was ordered off is switched on again'

/** Whether its own order is under way, or to come as soon as others are done. */
function goesOff(on: Survey, name: NodeName): boolean {
  const [node, incident] = [on.seen.nodes.get(name), on.open.get(name)]
  if (node === undefined || incident === undefined || isDrill(incident) || incident.cause === 'owed' || incident.abort || incident.status.phase === 'Error') return false
  if (handsOffIncident(on, incident, node) !== undefined) return false
  const there = situationOf(on, incident, node)
  const step = nextOrder(incident, node, on.now)
  if (step.next !== 'order') return step.next === 'verify' || step.next === 'wait'
  const brake = restartsSpent(there, step) ?? mayOrder(there, step)
  return brake === undefined || brake.because === 'concurrency'
}

/** The policy in force now counts as well: who allows more of them means this incident. */
function restartsSpent(at: Situation, step: Next): Brake | undefined {
  const { on, incident, node, status } = at
  if (step.next !== 'rest' && !(step.next === 'order' && step.round > status.round)) return undefined
  const now = policyOf(node, on.policies)
  const restarts = Math.max(incident.policy.restarts ?? Infinity, 'policy' in now ? now.policy.restarts ?? Infinity : 0)
  if (status.round <= restarts) return undefined
  const last = step.next === 'rest' ? `: ${step.detail}` : ''
  return {
    because: 'exhausted', detail: `${status.round} rounds came to nothing, and restarts is ${restarts}${last}`,
    lifts: `more restarts in its HoldfastPolicy, spec.acknowledge by a person who knows that the machine is off, ${isWanted(at) ? 'or spec.abort' : 'spec.abort, or a beat of the node'}`,
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
  const others = ordered ? [...on.seen.nodes.values()].filter((other) => !isCutItself(on, other) || node.path.levels.flat().some((method) => mayStrike(other, node, method))) : []
  let lacking: Lacking = { lacks: 'nothing was ordered' }
  for (const { level, isolates } of provingOrder(node)) {
    if (shownFalse(status).some((voided) => voided.proof.level >= level) || (isolates && status.proof?.kind === 'isolated')) continue
    const result = ordered ? proveOff(incident, node, level, others, on.now, on.open) : foundOff(incident.boot, node, level, on.now)
    if ('proof' in result) return joinedTo(at, result.proof)
    if (level === status.level) lacking = result
  }
  const byWord = isBeingRead(at) ? undefined : vouched(at)
  if (byWord !== undefined && 'proof' in byWord) return byWord
  const byDump = mayHaveCrashed(at) ? proveDumped(incident, node, on.seen.self, on.now) : lacking
  if ('proof' in byDump) return byDump
  const byWatchdog = isFencingItself(at) ? proveSelfFenced(incident, node, on.seen.nodes, on.seen.self, on.now) : lacking
  if ('proof' in byWatchdog) return byWatchdog
  const byDriver = restsOnDrivers(at) ? proveSafeDetach(incident, node, driversLeft(at), on.now) : lacking
  return 'proof' in byDriver ? joinedTo(at, byDriver.proof) : lacking
}

/** By an order of its own, which says why it is silent. */
function isCutItself({ open }: Survey, { name }: NodeSeen): boolean {
  const own = open.get(name)
  return own !== undefined && given(own.status).some(({ action, result }) => action === 'off' && result === 'off')
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

/** Dead by all evidence, and a word was heard that its policy may accept. */
function mayHaveCrashed({ on, incident, node, status }: Situation): boolean {
  return node.dump !== undefined && incident.policy.kdump === 'accept' && (status.proof === undefined || isPartial(status.proof)) && on.verdicts.get(node.name)?.is === 'dead'
}

function dumpLooks(at: Situation): Look[] {
  return mayHaveCrashed(at) ? readLive(at.node, at.on.now, liveEvery).filter((look) => look.do === 'readNode') : []
}

/** Heard since its last beat, where it is waited for, and not on record yet. */
function isAnnounced({ on, incident, node, status }: Situation): boolean {
  const { dump, beat, path } = node
  return dump !== undefined && status.dump === undefined && path.dumpsWithin !== undefined && dump.since > (beat?.at ?? -Infinity) && unkeptOf(node, on.now).dump !== incident.name
}

/** What no leader after this one could know, and does not stand on record yet. */
function offAtFirst({ on, incident, node, status }: Situation): readonly Method[] {
  if (unkeptOf(node, on.now).offAtFirst === incident.name) return []
  return node.path.levels.flat().filter((method) => isOffAtFirst(node, method, auditOf(node, method, incident.boot), status))
}

/** Undefined: nobody has acknowledged anything. */
function vouched({ on, incident, node }: Situation): Proven | undefined {
  if (wordOf(incident, node) === undefined) return undefined
  const verdict = on.verdicts.get(node.name)
  if (verdict?.is !== 'suspect' && verdict?.is !== 'dead') return { lacks: verdict?.is === 'ill' ? verdict.detail : 'the node is not known to be silent' }
  return proveByWord(incident, node, on.now)
}

/** What keeps an acknowledgement from being a proof, for whoever gave it. */
export function unvouched(at: Situation): Action[] {
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
  // What a crash kernel answers does not bring back the one before it.
  if (verdict?.is !== 'dead' && !isWanted(at) && status.proof?.kind !== 'kdump' && !begun) {
    const detail = verdict?.is === 'suspect' ? verdict.lacks : verdict?.is === 'ill' ? verdict.detail : 'not heard by this replica yet'
    return { because: 'not-dead', detail, lifts: 'evidence, or a beat' }
  }
  const dump = powerOrdered(incident, node) ? undefined : dumping(incident, node, on.seen.self, on.now, isWanted(at))
  return dump ?? noOrders(on.seen.nodes, node, loosened(incident, node, on.policies), on.storms, on.fencing, on.now, on.verdicts, () => isAwaited(at)) ?? (on.fencing.has(node.name) ? undefined : mayBeStruck(at))
}

function order(at: Situation, step: Next, { lacks, astray, waitsFor = [] }: Lacking): Action[] {
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
    case 'verify': return [...challengeNeighbours(on, incident, node), ...verifying(at, step), ...(astray === true ? [hold(node.name, { because: 'identity-unproven', detail: lacks, lifts: waitsFor.length > 0 ? joinedLifts : astrayLifts }, incident)] : [])]
    case 'wait': return step.overdue ? [hold(node.name, { because: 'order-may-land', detail: `${step.detail}, past its deadline`, lifts: 'the end of that program' }, incident)] : []
    case 'spare': return [hold(node.name, { because: 'power-after', detail: step.detail, lifts: 'that time over, or a beat of the node' }, incident)]
    case 'rest': return [hold(node.name, { because: 'resting', detail: `${step.detail}; no proof: ${lacks}`, lifts: 'the next round' }, incident), ...selfFence(at), ...cutOtherwise(at)]
    case 'none': return [hold(node.name, { because: step.because, detail: step.detail, lifts: 'a fence path that answers, or spec.acknowledge by a person who knows that the machine is off' }, incident), ...selfFence(at), ...cutOtherwise(at)]
  }
}

/** Told only where it may last. */
function verifying({ incident, node }: Situation, { detail }: Extract<Next, { next: 'verify' }>): Action[] {
  return detail === undefined ? [] : [hold(node.name, { because: 'order-may-land', detail, lifts: 'off, read of it twice' }, incident)]
}

const astrayLifts = 'its answer; without one, what was ordered off is switched on again'
