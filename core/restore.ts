// What was cut is given back, and an incident comes to its end: after the clear, after a new boot, after a withdrawal. Three
// things are never done here. A node is not switched on, nor its incident closed, while an *off* that was sent may still land.
// An incident is not closed while an order runs, nor while an *on* may still land: it would land on the proof of the next one.
// And workloads do not come back to a node that is not heard, well and clean.
import { forceEvictionKey } from './acknowledge.ts'
import { keyOf, type Action, type Look } from './action.ts'
import type { Brake } from './brake.ts'
import { foreignTaint, hasOurs, hasTaint, outOfServiceKey, quarantineKey, unburied } from './clear.ts'
import { secure } from './clearing.ts'
import { cutBy, cuts, endedForGood, isOpen, lost, portOf, staysCut, type Cut } from './cut.ts'
import { given, isDrill, isOf, shownFalse, type Attempt, type Incident, type Outcome, type ProofKind } from './incident.ts'
import { keptOff } from './hands.ts'
import { identityOfFence } from './identity.ts'
import { isPowerOrder, powerOrdered } from './isolation.ts'
import { seconds, shutsDown, type Verdict } from './judge.ts'
import { askClean, askDevices, suspicion } from './look.ts'
import { evictionKey, fencedKey, sameBoot, type Method, type Ms, type NodeSeen, type PodSeen } from './model.ts'
import { mustStayOff } from './neighbour.ts'
import { mayBeInUse, owedOf } from './owed.ts'
import { firstLevel, mayLand, underWay, untold, type Untold } from './plan.ts'
import { overdue } from './patience.ts'
import { landsBy, recall, type Lacking } from './proof.ts'
import { awaiting } from './return.ts'
import { yieldsTo } from './wish.ts'
import { close, hold, laterBoot, quarantine, untaint, type Situation } from './situation.ts'

/** Cleared. What we ordered off we order on, again every so often, as long as no new boot is heard. */
export function bringBack(at: Situation): Action[] {
  const { on, incident, node, status } = at
  if (hasOurs(node, outOfServiceKey)) return [untaint(node, outOfServiceKey, 'the node is cleared', incident)]
  if (!hasTaint(node, quarantineKey)) return [quarantine(at)]
  const rest = (detail: string): Action[] => [hold(node.name, { because: 'waiting-for-boot', detail, lifts: 'the machine booting' }, incident)]
  if (shutsDown(node)) return rest(shutDown)
  const ended = endedForGood(incident, node)
  if (ended !== undefined) return [hold(node.name, ended, incident)]
  const stays = keptOff(node) ?? fencedTooOften(at)
  if (stays !== undefined) return [hold(node.name, stays, incident), ...askDevices(node, on.now, bootsStill)]
  const level = status.proof?.level ?? 0
  const ours = powerOrdered(incident, node)
  const vouched = status.proof?.kind === 'vouched'
  if ((!ours || vouched) && !incident.policy.powerOnFoundOff) {
    // A brake may have kept the securing off back when the node was cleared.
    const secured = status.proof === undefined ? [] : secure(at, recall(status.proof))
    // What it was cut off from is not its power: whoever boots it needs that.
    const isolated = cuts(incident, node).filter(({ method, givenBack }) => method.isolates !== undefined && !givenBack)
    return [...secured, ...giveOn(at, isolated), ...askDevices(node, on.now, bootsStill), ...rest(whyOff(status.proof?.kind))]
  }
  const pending = offPending(at) ?? foreignTaint(node)
  if (pending !== undefined) return [hold(node.name, pending, incident)]
  const mute = untold(incident, node, on.now)
  const methods = (ours ? cuts(incident, node) : (node.path.levels[level] ?? []).map((method) => cutBy(incident, node, method, level))).filter(answered(mute))
  if (mute.some(({ asked }) => !asked)) return waitsForWord(at, mute)
  const held = [...waitsForWord(at, mute), ...stillCut(at, [], forgotten(at))]
  if (methods.length === 0 && held.length > 0) return held
  return [
    ...giveOn(at, methods), ...held, ...askDevices(node, on.now, bootsStill),
    hold(node.name, given(status).some(({ action }) => action === 'on') ? waitsForNewBoot : notYetOn(methods), incident),
  ]
}

const waitsForNewBoot: Brake = { because: 'waiting-for-boot', detail: 'ordered on, no new boot is heard yet', lifts: 'a beat of a new boot' }

/** Of what nobody here has ordered off a device may never have told anything: one that is fed with its machine, which its watchdog has ended. */
function notYetOn(methods: readonly Cut[]): Brake {
  const detail = methods.length === 0 ? 'nothing is configured that could switch it on' : `${namesOf(methods)} is to switch it on, once it says how it stands`
  return { because: 'waiting-for-boot', detail, lifts: 'its word, or the machine booting' }
}

function whyOff(kind: ProofKind | undefined): string {
  if (kind === 'self-fenced') return 'its watchdog has reset it: it boots by itself, or somebody must look'
  if (kind === 'kdump') return 'its crash kernel has the machine, and boots it when its dump is over, or somebody must look'
  return `${kind === 'vouched' ? 'a person says that it is off' : 'it was found off, and nobody here switched it off'}: there may be hands in the machine`
}

/** What dies again and again is not helped by being switched on again and again. */
function fencedTooOften({ on, incident, node }: Situation): Brake | undefined {
  const { repeatLimit, repeatWindow } = incident.policy.brakes
  if (repeatLimit === 0 || incident.cause === 'by-hand') return undefined
  const lately = [...node.firstSeen].filter(([key, at]) => key.startsWith(fencedKey('')) && on.now - at < repeatWindow)
  if (lately.length < repeatLimit) return undefined
  const until = Math.max(...lately.map(([, at]) => at).toSorted((one, other) => other - one).slice(repeatLimit - 1)) + repeatWindow
  return {
    because: 'repeat-limit', detail: `${node.name} was fenced ${lately.length} times in ${seconds(repeatWindow)}, and stays off for another ${seconds(until - on.now)}`,
    lifts: 'that time over, or the machine booting',
  }
}

/** A new boot after the proof: the old one is dead, and it ends by its agent's and its kubelet's own word. */
export function returning(at: Situation): Action[] {
  const { on, incident, node } = at
  if (hasOurs(node, outOfServiceKey)) return [untaint(node, outOfServiceKey, 'a new boot is heard', incident, true)]
  const verdict = on.verdicts.get(node.name)
  const speaks = at.heard !== 'nothing' && verdict === undefined
  const looks = speaks ? [] : suspicion(on, node)
  const pending = offPending(at)
  if (pending !== undefined) return [...looks, hold(node.name, pending, incident)]
  const mute = untold(incident, node, on.now)
  const waits = waitsForWord(at, mute, looks)
  if (mute.some(({ asked }) => !asked)) return [...looks, ...waits]
  // A boot is no word of what cuts a machine only in part, as one feed of two does; and one that is silent again was perhaps cut
  // by our own order, which landed on it: nobody else would switch it on.
  const dark = cuts(incident, node).filter((cut) => (cut.givenBack ? speaks && wasUndone(incident, cut) : isDark(cut, speaks))).filter(answered(mute))
  if (dark.length > 0 && shutsDown(node)) return [...looks, hold(node.name, { ...waitsForBoot, detail: shutDown }, incident)]
  if (dark.length > 0) return [...looks, ...asksOf(at, dark, looks), ...asksClean(at, dark), ...giveOn(at, dark.filter(({ says }) => says === 'off')), ...stillCut(at, dark, []), ...waits]
  const shut = forgotten(at).filter((name) => portOf(node, name) !== undefined)
  if (speaks && shut.length > 0) return [...looks, ...asksOf(at, portsOf(node, shut), looks), ...stillCut(at, [], shut), ...waits]
  if (mute.length > 0) return [...looks, ...waits]
  const next = yieldsTo(at)
  if (next !== undefined) return end(at, 'Recovered', `a person wants it fenced: ${next.name} takes over`)
  if (speaks) return settleDown(at, 'Recovered', at.heard === 'new boot' ? 'the node is back, clean, in a new boot' : 'the node is heard again, and clean')
  if (booting(at)) return [...looks, hold(node.name, waitsForBoot, incident)]
  if (verdict?.is === 'dead') return end(at, 'Recovered', 'its next boot fell silent: another incident takes over')
  return [...looks, hold(node.name, silentAgain(verdict, 'a new boot was heard, and is silent now'), incident)]
}

/** What runs has power, whatever a device that does not answer would say of it; but it may run behind a port that is shut. */
function isDark({ method, says }: Cut, runs: boolean): boolean {
  return says === 'off' || says === 'nothing yet' || (runs && method.isolates !== undefined && says === 'unknown')
}

const onsAtMost = 3

/** It called itself on at our order, and says off since. A device that goes on so of a machine that runs may be no feed of it: its
 *  audit tells of that, and the incident does not wait for it. */
function wasUndone(incident: Incident, { method, says }: Cut): boolean {
  const own = given(incident.status).filter((attempt) => isOf(attempt, method))
  return says === 'off' && own.length - 1 - own.findLastIndex(({ action }) => action === 'off') <= onsAtMost
}

/** The need is over. Orders that may still land are waited out, what was cut is switched on, the node proves itself clean. */
export function giveBack(at: Situation): Action[] {
  const { on, incident, node, status } = at
  if (hasOurs(node, outOfServiceKey)) return [untaint(node, outOfServiceKey, 'the incident is being withdrawn', incident, true)]
  const verdict = on.verdicts.get(node.name)
  const speaks = at.heard !== 'nothing' && verdict === undefined
  const looks = speaks ? [] : suspicion(on, node)
  const shut = hasTaint(node, quarantineKey) ? [] : [quarantine(at)]
  const pending = offPending(at)
  if (pending !== undefined) return [...looks, ...shut, hold(node.name, pending, incident)]
  const mute = untold(incident, node, on.now)
  const waits = waitsForWord(at, mute, looks)
  if (mute.some(({ asked }) => !asked)) return [...looks, ...shut, ...waits]
  // Switched on, and off since: an *off* that was thought to be over has landed.
  const owed = cuts(incident, node).filter(({ givenBack, says }) => !givenBack || (!speaks && says === 'off')).filter(answered(mute))
  const lacking = forgotten(at)
  if (owed.length + lacking.length > 0) return [...looks, ...shut, ...asksClean(at, owed), ...asksOf(at, portsOf(node, lacking), looks), ...giveOn(at, owed), ...waits, ...stillCut(at, owed, lacking)]
  if (mute.length > 0) return [...looks, ...shut, ...waits]
  // With a proof, where its Node was made anew after it; what was freed by one that has lapsed keeps the quarantine on as after any other.
  const freed = status.proof !== undefined || status.voided.length > 0
  const outcome = shownFalse(status).length > 0 ? 'Void' : freed ? 'Recovered' : hasDrilled(at) ? 'Drilled' : 'Withdrawn'
  const next = yieldsTo(at)
  if (next !== undefined) return end(at, outcome, `a person wants it fenced: ${next.name} takes over`)
  if (speaks) return settleDown(at, outcome, outcomeSays[outcome])
  if (booting(at)) return [...looks, hold(node.name, waitsForBoot, incident)]
  if (verdict !== undefined && spared(at)) return [...looks, hold(node.name, sparedSilence(verdict), incident)]
  if (verdict?.is === 'dead') return end(at, outcome, 'silent again: another incident takes over')
  if (outcome === 'Withdrawn' && !hasTaint(node, quarantineKey)) return end(at, outcome, 'nothing was cut, and nothing is held')
  return [...looks, hold(node.name, silentAgain(verdict, 'withdrawn, and silent again'), incident)]
}

/** What an earlier incident left off is switched on again, of a node that is well: it bears no quarantine for that. */
export function repay(at: Situation): Action[] {
  const { on, incident, node } = at
  const verdict = on.verdicts.get(node.name)
  if (incident.abort) return end(at, 'Withdrawn', 'a person aborted it')
  if (on.beside.some(({ nodeName }) => nodeName === node.name)) return end(at, 'Withdrawn', 'another incident of the node waits')
  if (at.heard === 'new boot' || shutsDown(node)) return end(at, 'Withdrawn', 'its boot is over, and what is off in the next one is seen then')
  if (verdict?.is === 'dead') return end(at, 'Withdrawn', 'it fell silent: another incident takes over')
  if (at.heard === 'nothing' || verdict !== undefined) return [...suspicion(on, node), hold(node.name, silentAgain(verdict, 'nothing is switched on for a node that is silent'), incident)]
  const all = owedOf(on.seen, node)
  const used = all.map((one) => mayBeInUse(node, one)).find((brake) => brake !== undefined)
  if (used !== undefined) return [...askClean(node, on.now), hold(node.name, used, incident)]
  const owed = all.map(({ method, level }) => cutBy(incident, node, method, level))
  if (owed.length === 0) return end(at, 'Withdrawn', 'what was off is not configured any more as it was then')
  const unread = owed.filter(({ givenBack, says }) => givenBack && says === 'nothing yet')
  const dark = owed.filter((cut) => !cut.givenBack || wasUndone(incident, cut))
  if (unread.length + dark.length === 0) return end(at, 'Recovered', `${namesOf(owed)} is switched on again`)
  return [...asksOf(at, [...unread, ...dark]), ...giveOn(at, dark), ...stillCut(at, dark, [])]
}

const outcomeSays = {
  Void: 'the node is well by its own word: the fence path was wrong', Drilled: 'the path switched this machine and no other, and it is back in a new boot', Recovered: 'the node is well', Withdrawn: 'the node is well',
} as const

/** Only a new boot says that it was off: a machine that goes on in its old one was not, or was not for good. */
function hasDrilled({ heard, status }: Situation): boolean {
  return status.drill?.passed === true && heard === 'new boot'
}

/** What we have just switched on is silent because it boots; once it was heard, it is silent for another reason. A next boot that beat while
 *  it was being switched on was up by then; and who only has its storage or its network back does not boot by that. */
function booting({ on, incident, node, status }: Situation): boolean {
  const last = status.attempts.findLast((attempt) => attempt.action === 'on' && attempt.result === 'on' && isPowerOrder(attempt, node))
  if (last === undefined) return false
  const { beat, firstSeen } = node
  const endedAt = firstSeen.get(`ended ${last.id}`) ?? on.now
  const upFrom = beat === undefined || sameBoot(beat.boot, incident.boot) ? endedAt : firstSeen.get(`began ${last.id}`) ?? endedAt
  return (beat?.at ?? -Infinity) <= upFrom && on.now - endedAt < incident.policy.bootWithin
}

const shutDown = 'it said that it shuts down, and stays so until somebody switches it on'
const waitsForBoot: Brake = { because: 'waiting-for-boot', detail: 'ordered on, no boot is heard yet', lifts: 'a beat of it' }

/** What is cut on a level whose orders may have struck another machine: now, or since something of it was switched on again. A
 *  machine that was struck by mistake is dark through us, and one that was meant boots anew: both want their power. */
export function giveStrayed(at: Situation, { lacks, astray }: Lacking): Action[] {
  const { incident, node, status } = at
  const back = given(status).filter((attempt) => attempt.action === 'on' && attempt.level >= firstLevel(incident)).map((attempt) => attempt.level)
  const levels = new Set(astray === true ? [...back, status.level] : back)
  const owed = cuts(incident, node).filter(({ level, givenBack, says }) => levels.has(level) && (!givenBack || says === 'off'))
  if (owed.length === 0) return []
  const pending = offPending(at)
  if (pending !== undefined) return [hold(node.name, pending, incident)]
  if (node.gone === true) {
    const detail = `${namesOf(owed)} may have struck another machine, and nothing is switched on for a Node object that is gone: ${lacks}`
    return [hold(node.name, { because: 'identity-unproven', detail, lifts: 'its Node made anew, or a person who switches it on' }, incident)]
  }
  const detail = `${namesOf(owed)} may have struck another machine, and is switched on again: ${lacks}`
  return [...asksOf(at, owed), ...giveOn(at, owed), hold(node.name, { because: 'identity-unproven', detail, lifts: 'a beat of the node, or whoever finds out which machine it leads to' }, incident)]
}

/** A person said that this silence is not to be answered. It is over once the node was heard and nothing of ours could have
 *  silenced it since; until then the incident stays, or the same silence would open the next one a second later. */
function spared({ on, incident, node, status }: Situation): boolean {
  const ends = given(status).map((attempt) => node.firstSeen.get(`ended ${attempt.id}`) ?? on.now)
  return incident.abort && (node.beat?.at ?? -Infinity) <= Math.max(node.firstSeen.get(`aborted ${incident.name}`) ?? on.now, ...ends)
}

function sparedSilence(verdict: Verdict): Brake {
  const how = verdict.is === 'dead' ? 'dead by all evidence' : silentAgain(verdict, '').detail.slice(2)
  return { because: 'aborted', detail: `a person aborted it, and the node's silence is left unanswered: ${how}`, lifts: 'a beat of its agent' }
}

function settleDown(at: Situation, outcome: 'Recovered' | 'Withdrawn' | 'Void' | 'Drilled', because: string): Action[] {
  const { on, incident, node } = at
  const lacks = awaiting(incident, node, on.now)
  if (!hasTaint(node, quarantineKey)) return lacks === undefined || outcome === 'Withdrawn' ? end(at, outcome, because) : [quarantine(at)]
  if (lacks !== undefined) {
    const next = overdue(on, node, incident, lacks)
    return next.is === 'fence' ? end(at, outcome, 'not clean within returnPatience: another incident takes over') : [...askClean(node, on.now), hold(node.name, next.brake, incident)]
  }
  // It goes last but one: as long as a word says that the node is off, nothing may come back to it.
  if (hasTaint(node, forceEvictionKey)) return [untaint(node, forceEvictionKey, because, incident)]
  const litter = unburied(incident, node) ?? []
  if (litter.length > 0) return [hold(node.name, littered(litter), incident)]
  // Without it pods come back at once, and a node on which one is just starting is not clean: as long as the incident stands it would
  // be put on again.
  const pending = inHand(at) ?? onPending(at)
  if (pending !== undefined) return [hold(node.name, pending, incident)]
  const lifted = untaint(node, quarantineKey, because, incident)
  return [node.path.cordons === true && !isDrill(incident) ? { ...lifted, because: `${because}; it is cordoned, as recovery= wants it`, cordons: true } : lifted]
}

function littered(pods: readonly PodSeen[]): Brake {
  return { because: 'waiting-for-clean', detail: `${pods.length} pods that were freed are over, and their objects are still there: ${pods.slice(0, 3).map((pod) => `${pod.namespace}/${pod.name}`).join(', ')}`, lifts: 'their deletion' }
}

/** The end, once no order of the incident is under way and none may land any more. */
export function end(at: Situation, outcome: Outcome, because: string): Action[] {
  const { on, incident, node } = at
  const pending = inHand(at) ?? offPending(at) ?? onPending(at)
  if (pending !== undefined) return [hold(node.name, pending, incident)]
  // Of a Node that is gone nobody needs to know how it stands: there is nothing to switch on, and nothing comes back to it.
  const mute = node.gone === true ? [] : untold(incident, node, on.now)
  if (mute.length > 0) return waitsForWord(at, mute)
  if (isWordOfBefore(at)) return [untaint(node, forceEvictionKey, 'a later boot was heard, and it was said of the one before', incident)]
  return [close(incident, outcome, because, outcome === 'Recovered' ? identityOfFence(at) : undefined)]
}

/** Somebody's word that the node is off stands on it, and its next boot was heard after that: of that one it says nothing, and whoever leads when that is
 *  silent may not have heard it. */
function isWordOfBefore({ incident, node }: Situation): boolean {
  if (node.gone === true || node.uid !== incident.nodeUid || !hasTaint(node, forceEvictionKey) || !laterBoot(node, incident.boot)) return false
  const heardAt = Math.max(node.beat?.at ?? -Infinity, node.ready.postedAt)
  return heardAt === -Infinity || (node.firstSeen.get(evictionKey) ?? -Infinity) <= heardAt
}

/** Asks them, as long as it takes. */
function waitsForWord(at: Situation, mute: readonly Untold[], looks: readonly Look[] = []): Action[] {
  if (mute.length === 0) return []
  const names = namesOf(mute)
  const back = laterBoot(at.node, at.incident.boot) ? `, or ${names} taken out of the configuration` : ''
  const detail = `an order off to ${names} did not end verified, and nothing has told since how the machine stands by it`
  return [...asksOf(at, mute, looks), hold(at.node.name, { because: 'order-may-land', detail, lifts: `on or off, read of ${names}${back}` }, at.incident)]
}

/** Beside looks that are wanted anyway. */
function asksOf({ on, node }: Situation, methods: readonly { readonly method: Method }[], looks: readonly Look[] = []): Look[] {
  return askDevices(node, on.now)
    .filter((look) => look.do === 'askDevice' && methods.some(({ method }) => method.name === look.method.name) && !looks.some((other) => keyOf(other) === keyOf(look)))
}

/** What it was cut off from is given back to the boot of then only once that is clean. */
function asksClean({ on, node, heard }: Situation, cut: readonly Cut[]): Look[] {
  return heard === 'old boot' && cut.some(({ method }) => method.isolates !== undefined) ? askClean(node, on.now) : []
}

const namesOf = (methods: readonly { readonly method: Method }[]): string => methods.map(({ method }) => method.name).join(', ')

/** What was cut by a configuration that is not there any more. The machine's next boot has power; but a port that was shut is shut for that one too, until
 *  it reads on. A boot that is silent again has other needs. */
function forgotten({ on, incident, node, heard }: Situation): readonly string[] {
  const booted = heard === 'new boot' || laterBoot(node, incident.boot)
  return lost(incident, node).filter((name) => {
    const port = portOf(node, name)
    if (booted && (port === undefined || heard === 'nothing' || on.verdicts.has(node.name))) return false
    return port === undefined || !isOpen(incident, node, port)
  })
}

function portsOf(node: NodeSeen, names: readonly string[]): readonly { readonly method: Method }[] {
  return names.flatMap((name) => portOf(node, name) ?? []).map((method) => ({ method }))
}

/** Before anything is proven, and where nothing can be: the machine may be dark through us, and no path that is configured now tells of it. */
export function cutOtherwise(at: Situation): Action[] {
  return stillCut(at, [], forgotten(at))
}

const onSays = { running: 'is being asked on', 'not yet': 'is not ordered on yet', tried: 'on without success so far' } as const

/** By the last order to it. */
function howFarOn({ status }: Incident, method: Method): keyof typeof onSays {
  const last = status.attempts.findLast((attempt) => isOf(attempt, method))
  if (last?.action !== 'on') return 'not yet'
  return last.result === 'running' ? 'running' : 'tried'
}

const lostLifts = { power: 'a new boot of the machine', port: 'on, read of it as it is configured now' } as const

function stillCut(at: Situation, owed: readonly Cut[], lacking: readonly string[]): Action[] {
  const { incident, node } = at
  const gone = Object.groupBy(lacking, (name) => (portOf(node, name) === undefined ? 'power' : 'port'))
  const ours = Object.groupBy(owed.filter(({ method }) => staysCut(at, method) === undefined), ({ method }) => howFarOn(incident, method))
  const parts = [
    ...(['running', 'not yet', 'tried'] as const).flatMap((how) => (ours[how] === undefined ? [] : [{ detail: `${namesOf(ours[how])} was ordered off, and ${onSays[how]}`, lifts: 'an order on that ends verified' }])),
    ...(['power', 'port'] as const).flatMap((what) => (gone[what] === undefined ? [] : [{
      detail: `${gone[what].join(', ')} was ordered off, and is not configured any more as it was then: nothing here can switch it on`, lifts: `that configuration, or ${lostLifts[what]}`,
    }])),
  ]
  if (parts.length === 0) return []
  return [hold(node.name, { because: 'still-cut', detail: parts.map(({ detail }) => detail).join('; '), lifts: [...new Set(parts.map(({ lifts }) => lifts))].join('; ') }, incident)]
}

/** What has not answered yet is not switched on; but it is no reason to leave other things off, which may be what feeds it. */
const answered = (mute: readonly Untold[]) => ({ method }: Cut): boolean => !mute.some((one) => one.method.name === method.name)

/** An order that is being written down stands on no record yet. */
function inHand({ incident, node }: Situation): Brake | undefined {
  const running = underWay(incident, node)
  return running === undefined ? undefined : { because: 'order-may-land', detail: `${running} is being asked`, lifts: 'the end of that program' }
}

function silentAgain(verdict: Verdict | undefined, what: string): Brake {
  const why = verdict?.is === 'suspect' ? verdict.lacks : verdict?.is === 'ill' ? verdict.detail : 'not heard yet since this replica listens'
  return { because: 'waiting-for-boot', detail: `${what}: ${why}`, lifts: 'a beat, or evidence that it is dead' }
}

function offPending({ on, incident, node }: Situation): Brake | undefined {
  const pending = mayLand(incident, node, on.now)
  return pending === undefined ? undefined : { because: 'order-may-land', detail: pending.detail, lifts: 'that time over' }
}

function onPending({ on, node, status }: Situation): Brake | undefined {
  const late = given(status).find((attempt) => attempt.action === 'on' && attempt.result !== 'on' && on.now < landsBy(node, attempt, on.now))
  if (late === undefined) return undefined
  const span = seconds(landsBy(node, late, on.now) - on.now)
  return { because: 'order-may-land', detail: `the order on to ${late.method} did not end verified and may land for another ${span}`, lifts: 'that time over' }
}

/** While a machine boots its devices are asked so often whether it still has power. */
const bootsStill: Ms = 10_000
/** An *on* that failed is given again after this, then after twice as long, and so on. */
const onAgain: Ms = 5_000

function giveOn(at: Situation, methods: readonly Cut[]): Action[] {
  const { on, incident, node, status } = at
  // Whoever is heard is not gone, whatever a path says.
  const ended = methods.length === 0 || at.heard !== 'nothing' ? undefined : endedForGood(incident, node)
  if (ended !== undefined) return [hold(node.name, ended, incident)]
  const foreign = methods.length === 0 ? undefined : keptOff(node) ?? foreignTaint(node)
  if (foreign !== undefined) return [hold(node.name, foreign, incident)]
  const due = methods.filter((one) => on.now >= onDue(incident, node, one, on.now)).toSorted((one, other) => placeOf(one) - placeOf(other))
  const waits = due.map(({ method }) => mustStayOff(at, method) ?? staysCut(at, method))
  const next = due[waits.indexOf(undefined)]
  if (next === undefined) return waits.slice(0, 1).flatMap((brake) => (brake === undefined ? [] : [hold(node.name, brake, incident)]))
  // One after the other, as it is written: a machine is not given back to its storage while its power is only being asked for.
  const asked = methods.filter(({ method }) => node.busy.has(`order ${node.name} ${method.name}`))
  if (asked.some((one) => one === next || placeOf(one) < placeOf(next))) return []
  return [{ do: 'restore', node: node.name, incident: incident.name, method: next.method, level: next.level, round: status.round }]
}

const placeOf = ({ method: { backAt = 0 } }: Cut): number => backAt

function onDue(incident: Incident, node: NodeSeen, { method, says }: Cut, now: Ms): Ms {
  // An *on* that was not given is tried again ever more rarely, as one that failed; an *off* that was not, changed nothing.
  const own = incident.status.attempts.filter((attempt) => isOf(attempt, method) && (attempt.action === 'on' || attempt.result !== 'not-given'))
  const last = own.at(-1)
  if (last === undefined || last.action === 'off') return -Infinity
  const ended = node.firstSeen.get(`ended ${last.id}`) ?? now
  const again = (times: number): Ms => ended + Math.min(onAgain * 2 ** (times - 1), incident.policy.bootWithin)
  const since = (over: (attempt: Attempt) => boolean): number => own.length - 1 - own.findLastIndex(over)
  // A late *off* of somebody deposed has landed, or the *on* has struck another machine: there is no boot to wait for.
  if (last.result === 'on' && says === 'off') return again(since((attempt) => attempt.action === 'off'))
  if (last.result === 'running' || last.result === 'on') return ended + incident.policy.bootWithin
  return again(since((attempt) => attempt.action === 'off' || attempt.result === 'on'))
}
