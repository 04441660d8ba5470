// Which order to a device comes next. Levels in order, every method of a level, one after the other; a method that fails is
// tried again, a level that fails gives way to the next, and after the last there is a rest and a new round. Nothing is
// ordered twice at once, and no level is begun while an order of another is under way here.
//
// Levels that isolate come first. Once one of them stands the others are passed over, in the rounds after it too, and the machine's power
// is left on for as long as the policy wants; where none can be had its power goes at once, since nothing else keeps it from writing.
//
// And which orders already given may still land. An order that was sent cannot be taken back: a program that failed, timed
// out or died with its leader may have left an *off* on its way, and until it cannot land any more nobody powers the node on
// or ends the incident.
import { given, isOf, isWish, shownFalse, type Attempt, type HoldReason, type Incident } from './incident.ts'
import { driversBehind, isIsolation, powerMethods, powerOrdered } from './isolation.ts'
import type { Method, Ms, NodeSeen, Reading } from './model.ts'
import { seconds } from './judge.ts'
import { auditOf, isIdentified, lastOffKey, offSinceKey, unidentified, untrusted } from './path.ts'
import { landsBy } from './proof.ts'
import { readingsOf } from './reading.ts'

export type Next =
  | { readonly next: 'order'; readonly method: Method; readonly level: number; readonly round: number }
  /** Every method of the level was ordered off, and no reading since says otherwise: what counts now is two readings. `detail`: where its
   *  own configuration lets a device take longer. */
  | { readonly next: 'verify'; readonly level: number; readonly detail?: string }
  /** `overdue`: a program runs past its deadline, which should have ended it. */
  | { readonly next: 'wait'; readonly detail: string; readonly overdue: boolean }
  /** It is isolated, and its power is left on for a while. */
  | { readonly next: 'spare'; readonly until: Ms; readonly detail: string }
  /** No level is left in this round. */
  | { readonly next: 'rest'; readonly until: Ms; readonly detail: string }
  /** Nothing can be ordered, round or no round. */
  | { readonly next: 'none'; readonly because: HoldReason; readonly detail: string }

/** A reading older than this no longer tells that a device answers. */
const answersFor: Ms = 10_000
/** A level that was ordered off and is not proven within this span has failed, unless a method of it may take longer. */
const verifyWithin: Ms = 30_000
/** Sooner where it isolates: the power, which proves more, waits for it. */
const isolatedWithin: Ms = 10_000
/** A program is ended at its deadline, as a group, and that takes a moment. */
const endsWithin: Ms = 10_000
/** One lost answer of a device that has answered before is no reason to give up what was begun. */
const silenceAfter = 3
/** The kubelet port is asked once a second while a node is silent; where it cannot be, nothing waits for it. */
const askedWithin: Ms = 5_000

export function nextOrder(incident: Incident, node: NodeSeen, now: Ms): Next {
  const { path } = node
  if (path.levels.length === 0) {
    const [fault] = path.faults
    return fault === undefined ? none('no-path', 'no fence path is configured') : none('config-invalid', fault)
  }
  const running = underWay(incident, node)
  if (running !== undefined) return { next: 'wait', detail: `${running} is being asked`, overdue: overdue(incident, node, running, now) }
  const round = walk(incident, node, incident.status.round, now)
  if ('step' in round) return round.step
  const orders = ordersIn(incident, incident.status.round)
  if (orders.length === 0) return round.left
  const until = Math.max(...orders.map((attempt) => endedAt(node, attempt, now))) + incident.policy.restAfter
  if (now < until) return { next: 'rest', until, detail: round.left.detail }
  const following = walk(incident, node, incident.status.round + 1, now)
  return 'step' in following ? following.step : following.left
}

export interface Pending {
  readonly until: Ms
  readonly detail: string
}

/** The latest instant at which an *off* of this incident may still land; undefined: none is on its way. It is counted from
 *  when we first saw the attempt on record, since the clock of whoever wrote it is not ours. */
export function mayLand(incident: Incident, node: NodeSeen, now: Ms): Pending | undefined {
  const last = loose(incident, node, now).toSorted((one, other) => other.until - one.until)[0]
  if (last === undefined || last.until <= now) return undefined
  return { until: last.until, detail: `the order to ${last.attempt.method} did not end verified and may land for another ${seconds(last.until - now)}` }
}

interface Loose {
  readonly attempt: Attempt
  readonly until: Ms
}

/** Each *off* that did not end verified, and until when it may land. */
function loose(incident: Incident, node: NodeSeen, now: Ms): readonly Loose[] {
  return given(incident.status).filter((attempt) => attempt.action === 'off' && attempt.result !== 'off').map((attempt) => {
    const until = landsBy(node, attempt, now)
    // What still runs here past its time can land while it runs, and then as late as every other.
    return { attempt, until: runsHere(attempt, node) ? Math.max(until, now + attempt.late) : until }
  })
}

/** `asked`: it was, since then, and told nothing. */
export interface Untold {
  readonly method: Method
  readonly asked: boolean
}

/** Methods with such an *off* that have not told, asked after it could land no more, whether they are on or off. That the time
 *  is over says only that nothing is on its way any more; how the node stands, its device alone can say. What was to end the machine for good
 *  tells neither of one that is only stopped, and has nothing to give back. */
export function untold(incident: Incident, node: NodeSeen, now: Ms): readonly Untold[] {
  const orders = loose(incident, node, now)
  return node.path.levels.flat().filter((method) => method.ends !== true).flatMap((method) => {
    const ends = orders.filter(({ attempt }) => isOf(attempt, method)).map(({ until }) => until)
    const since = readingsOf(node, method).filter((reading) => reading.startedAt >= Math.max(...ends))
    return ends.length === 0 || since.some((reading) => reading.state !== 'unknown') ? [] : [{ method, asked: since.length > 0 }]
  })
}

function none(because: HoldReason, detail: string): Extract<Next, { next: 'none' }> {
  return { next: 'none', because, detail }
}

/** The name of a method that is being asked for something right now, an attempt that is just being written included. */
export function underWay(incident: Incident, node: NodeSeen): string | undefined {
  const key = [...node.busy].find((busy) => busy.startsWith(`order ${node.name} `))
  if (key !== undefined) return key.slice(`order ${node.name} `.length)
  return incident.status.attempts.find((attempt) => attempt.result === 'running' && runsHere(attempt, node))?.method
}

function runsHere(attempt: Attempt, node: NodeSeen): boolean {
  return attempt.result === 'running' && node.busy.has(`order ${node.name} ${attempt.method}`)
}

function overdue(incident: Incident, node: NodeSeen, name: string, now: Ms): boolean {
  const attempt = incident.status.attempts.find((one) => one.method === name && one.result === 'running')
  return attempt !== undefined && now > landsBy(node, attempt, now) - attempt.late + endsWithin
}

type Walked = { readonly step: Next } | { readonly left: Extract<Next, { next: 'none' }> }

/** Through the levels of one round, never back: what could not serve when its turn came has its turn in the next round. */
function walk(incident: Incident, node: NodeSeen, round: number, now: Ms): Walked {
  const begun = ordersIn(incident, round).map((attempt) => attempt.level)
  const first = Math.max(firstLevel(incident), ...begun)
  const reasons: Unfit[] = []
  const isolated = isolatedBy(incident, node, now)
  const stays = isolated && staysOn(incident, node, isolated, now)
  if (stays !== undefined) return { step: stays }
  for (let level = first; level < node.path.levels.length; level += 1) {
    if (isolated !== undefined && isIsolation(node.path.levels[level] ?? [])) continue
    const step = onLevel(incident, node, level, round, now)
    if ('next' in step) return { step }
    reasons.push({ ...step, detail: `level ${level + 1}: ${step.detail}` })
  }
  const [only] = reasons
  if (only === undefined) return { left: none('out-of-levels', 'every level was shown false') }
  const because = reasons.every((reason) => reason.because === only.because) ? only.because : 'out-of-levels'
  return { left: none(because, reasons.map((reason) => reason.detail).join('; ')) }
}

interface Isolated {
  readonly methods: readonly Method[]
  readonly since: Ms
}

/** The level by which the machine is cut off, be it since an earlier round: to order it again would change nothing. One that could prove
 *  something counts once it has, and for as long as that stands. */
function isolatedBy(incident: Incident, node: NodeSeen, now: Ms): Isolated | undefined {
  for (const methods of node.path.levels.slice(firstLevel(incident))) {
    if (!isIsolation(methods) || (driversBehind(methods).length > 0 && incident.status.proof?.kind !== 'isolated')) continue
    const orders = methods.map((method) => given(incident.status).findLast((attempt) => isOf(attempt, method)))
    if (!methods.every((method, nth) => staysCut(node, method, orders[nth], now))) continue
    return { methods, since: Math.max(...orders.flatMap((order) => (order === undefined ? [] : [endedAt(node, order, now)]))) }
  }
  return undefined
}

interface Unfit {
  readonly because: HoldReason
  readonly detail: string
}

/** Why the power of a machine that is isolated stays on. One whose power was ordered off before, whose devices call it off, or that a person or a
 *  remedy wants off is not waited for. */
function staysOn(incident: Incident, node: NodeSeen, { methods, since }: Isolated, now: Ms): Next | undefined {
  const by = methods.map(({ name }) => name).join(', ')
  const power = powerMethods(node)
  if (power.length === 0) return none('still-cut', `${by} was ordered off, and no power_management= is configured: it stays so`)
  const until = since + incident.policy.powerAfter
  const saysOff = power.every((method) => readingsOf(node, method).at(-1)?.state === 'off')
  if (now >= until || saysOff || powerOrdered(incident, node) || isWish(incident)) return undefined
  return { next: 'spare', until, detail: `isolated by ${by}; its power stays on for another ${seconds(until - now)} (powerAfter)` }
}

/** A level whose proof was shown false, and all before it, are not tried again in this incident. One whose proof has lapsed may
 *  be, once its devices answer. */
export function firstLevel(incident: Incident): number {
  return Math.max(-1, ...shownFalse(incident.status).map((voided) => voided.proof.level)) + 1
}

function onLevel(incident: Incident, node: NodeSeen, level: number, round: number, now: Ms): Next | Unfit {
  const methods = node.path.levels[level] ?? []
  const orders = ordersIn(incident, round).filter((attempt) => attempt.level === level)
  const back = incident.status.attempts.find((attempt) => attempt.action === 'on' && attempt.level === level)
  if (back !== undefined) return { because: 'identity-unproven', detail: `${back.method} was switched on again, since it may have struck another machine` }
  const tries = (method: Method) => orders.filter((attempt) => isOf(attempt, method))
  const due = methods.filter((method) => !standsOff(node, method, tries(method).at(-1), now))
  const spent = due.find((method) => tries(method).length >= incident.policy.retries)
  if (spent !== undefined) return { because: 'out-of-levels', detail: `${spent.name} failed ${tries(spent).length} times: ${lastReason(tries(spent))}` }
  for (const method of methods) {
    const doubt = fitness(incident, node, method, orders.length > 0, now)
    if (doubt !== undefined && due.length > 0) return doubt
  }
  const [method] = due
  if (method !== undefined) return { next: 'order', method, level, round }
  const since = Math.max(...orders.map((attempt) => endedAt(node, attempt, now)))
  const usual = isIsolation(methods) ? isolatedWithin : verifyWithin
  if (now > Math.max(...methods.map((one) => provenBy(node, one, since, usual)))) return { because: 'out-of-levels', detail: 'ordered off, and not proven since' }
  const slow = methods.find((one) => one.verifyWithin !== undefined && saysOtherwise(node, one, tries(one).at(-1), now))
  if (slow?.verifyWithin === undefined) return { next: 'verify', level }
  return { next: 'verify', level, detail: `${slow.name} was ordered off, reads otherwise, and may take another ${seconds(Math.max(0, slow.verifyWithin - (now - since)))} to say so (verify)` }
}

/** What may take longer to say off is not given longer once it has: where another machine may have been struck, that one is dark meanwhile. */
function provenBy({ firstSeen }: NodeSeen, { name, digest, verifyWithin: within }: Method, since: Ms, usual: Ms): Ms {
  if (within === undefined) return since + usual
  // Not by its readings: of them only the latest are kept, and one that goes on saying off would be waited for without an end.
  const offSince = firstSeen.get(offSinceKey(name, digest))
  return offSince === undefined ? since + within : Math.max(since, offSince) + usual
}

function saysOtherwise(node: NodeSeen, method: Method, order: Attempt | undefined, now: Ms): boolean {
  const last = order === undefined ? undefined : readingsSince(node, method, order, now).at(-1)
  return last !== undefined && last.state !== 'off'
}

/** Its last order ended well, and nothing read since contradicts it: one *on*, or nothing but silence. */
function standsOff(node: NodeSeen, method: Method, order: Attempt | undefined, now: Ms): boolean {
  if (order?.result !== 'off') return false
  const since = readingsSince(node, method, order, now)
  return (since.at(-1)?.state !== 'on' || isOldWord(node, method, order, now)) && !silent(since)
}

/** A device that tells late what it did. Once it has told, an *on* is news. */
function isOldWord(node: NodeSeen, { name, digest, verifyWithin: within = 0 }: Method, order: Attempt, now: Ms): boolean {
  const ended = endedAt(node, order, now)
  return now - ended < within && (node.firstSeen.get(lastOffKey(name, digest)) ?? -Infinity) < ended
}

/** The same of what isolates, where silence contradicts nothing: a switch that is started anew lets nobody in by that, and the power would be
 *  gone long before `powerAfter`. A proof by it lapses by rules of its own. */
function staysCut(node: NodeSeen, method: Method, order: Attempt | undefined, now: Ms): boolean {
  return order?.result === 'off' && readingsSince(node, method, order, now).findLast(({ state }) => state !== 'unknown')?.state !== 'on'
}

function readingsSince(node: NodeSeen, method: Method, order: Attempt, now: Ms): readonly Reading[] {
  return readingsOf(node, method).filter((reading) => reading.startedAt >= endedAt(node, order, now))
}

function silent(readings: readonly Reading[]): boolean {
  const last = readings.slice(-silenceAfter)
  return last.length === silenceAfter && last.every((reading) => reading.state === 'unknown')
}

/** Nothing is ordered on a level unless every method of it answers now, was heard to say *on* while this boot was beating,
 *  and leads to this machine as surely as the policy wants. Undefined: it is fit. */
function fitness(incident: Incident, node: NodeSeen, method: Method, begun: boolean, now: Ms): Next | Unfit | undefined {
  const audit = auditOf(node, method, incident.boot)
  const readings = readingsOf(node, method)
  const last = readings.at(-1)
  const wrong = untrusted(node, method, audit, incident.status)
  if (wrong !== undefined) return { because: 'path-unverified', detail: wrong }
  if (incident.policy.identity === 'require' && !isIdentified(node, method, incident.boot)) {
    return { because: 'identity-unproven', detail: unidentified(node, method) }
  }
  // It is being asked, or will be in this very tick; its run has a deadline, so this does not last. That it does not answer is
  // known until the next question could have been missed as well: else it would be forgotten, and held, again and again.
  const known = answersFor + (last?.state === 'unknown' ? method.statusWithin : 0)
  if (last === undefined || now - last.endedAt > known) return { next: 'wait', detail: `${method.name} is asked first whether it answers`, overdue: false }
  if (!isMute(method, last)) return begun || askedSince(node, method, now) ? undefined : { next: 'wait', detail: `${method.name} answers again: so may ${node.name}, which is asked first`, overdue: false }
  if (begun && !silent(readings)) return { next: 'wait', detail: `${method.name} has just not answered: ${last.evidence}`, overdue: false }
  return { because: 'path-unverified', detail: `${method.name} does not answer: ${last.evidence}` }
}

/** Asked of what is to end a machine for good, one that hangs on its way down, or sleeps, is neither on nor off; where the device knows it, that is
 *  an answer all the same. */
function isMute({ ends }: Method, { state, machine, addresses }: Reading): boolean {
  return state === 'unknown' && !(ends === true && (machine ?? addresses) !== undefined)
}

/** What kept a device from answering may have kept the node from being heard: once the device answers again, only a word asked after that
 *  tells whether the node is silent still. An agent may take seconds to dial anew; the kubelet port answers at once. */
function askedSince(node: NodeSeen, method: Method, now: Ms): boolean {
  const readings = readingsOf(node, method)
  const muteLast = readings.findLastIndex((reading) => isMute(method, reading))
  const back = readings[muteLast + 1]
  return muteLast === -1 || back === undefined || now - back.endedAt > askedWithin || (node.probe !== undefined && node.probe.askedAt >= back.endedAt)
}

function ordersIn(incident: Incident, round: number): readonly Attempt[] {
  return incident.status.attempts.filter((attempt) => attempt.action === 'off' && attempt.round === round)
}

function endedAt(node: NodeSeen, attempt: Attempt, now: Ms): Ms {
  return node.firstSeen.get(`ended ${attempt.id}`) ?? now
}

function lastReason(tries: readonly Attempt[]): string {
  const last = tries.at(-1)
  return last?.reason ?? (last?.result === 'off' ? 'it said off, and reads otherwise' : 'no reason is known')
}
