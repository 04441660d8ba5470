// Which order to a device comes next, and which orders already given may still land. An order that was sent cannot be taken
// back: a program that failed, timed out or died with its leader may have left an *off* on its way, and until it cannot
// land any more nobody powers the node on or ends the incident.
import type { Attempt, Incident } from './incident.ts'
import type { Method, Ms, NodeSeen } from './model.ts'
import { auditOf, landsBy, ordersOf, readingsOf, untrusted } from './proof.ts'
import { seconds } from './judge.ts'

export type Next =
  | { readonly next: 'order'; readonly method: Method; readonly level: number; readonly round: number }
  /** Every method of the level was ordered off: what counts now is what the devices say. */
  | { readonly next: 'verify'; readonly level: number }
  | { readonly next: 'wait'; readonly detail: string; readonly overdue: boolean }
  /** No level is left in this round. */
  | { readonly next: 'rest'; readonly until: Ms; readonly detail: string }
  | { readonly next: 'none'; readonly detail: string }

/** A reading older than this no longer tells that a device answers. */
const answersFor: Ms = 10_000
/** A program is ended at its deadline, as a group, and that takes a moment. */
const endsWithin: Ms = 10_000
/** A level that was ordered off and does not read off twice within this span has failed. */
const verifyWithin: Ms = 30_000

export function nextOrder(incident: Incident, node: NodeSeen, now: Ms): Next {
  const levels = node.path.levels
  if (levels.length === 0) return { next: 'none', detail: node.path.faults[0] ?? 'no fence path is configured' }
  const running = incident.status.attempts.find((attempt) => attempt.result === 'running')
  if (running !== undefined) {
    const span = now - (node.firstSeen.get(`began ${running.id}`) ?? now)
    return { next: 'wait', detail: `${running.method} is being asked ${running.action} for ${seconds(span)}`, overdue: span > running.within + endsWithin }
  }
  const reasons: string[] = []
  for (let level = firstLevel(incident); level < levels.length; level += 1) {
    const step = nextOnLevel(incident, node, level, now)
    if (typeof step !== 'string') return step
    reasons.push(`level ${level + 1}: ${step}`)
  }
  return afterRound(incident, node, reasons.join('; ') || 'every level was shown false', now)
}

/** A level whose proof was shown false, and all before it, are not tried again in this incident. */
function firstLevel(incident: Incident): number {
  return Math.max(-1, ...incident.status.voided.map((voided) => voided.proof.level)) + 1
}

/** The next step on the level, or why the level cannot serve (any more) in this round. */
function nextOnLevel(incident: Incident, node: NodeSeen, level: number, now: Ms): Next | string {
  const methods = node.path.levels[level] ?? []
  const orders = ordersOf(incident, level)
  const exhausted = methods.find((method) => tries(orders, method) >= incident.policy.retries && !ended(orders, method))
  if (exhausted !== undefined) return `${exhausted.name} failed ${tries(orders, exhausted)} times`
  const doubt = orders.length === 0 ? unfitLevel(incident, node, level, now) : undefined
  if (doubt !== undefined) return doubt
  const due = methods.find((method) => !ended(orders, method))
  if (due !== undefined) return { next: 'order', method: due, level, round: incident.status.round }
  const since = Math.max(...orders.map((attempt) => node.firstSeen.get(`ended ${attempt.id}`) ?? now))
  if (now - since > verifyWithin) return 'ordered off, and not read off twice since'
  return { next: 'verify', level }
}

/** Nothing is ordered on a level unless every method of it answers now and was heard to say on while this boot was beating. */
function unfitLevel(incident: Incident, node: NodeSeen, level: number, now: Ms): string | undefined {
  const methods = node.path.levels[level] ?? []
  if (methods.length === 0) return 'it has no methods'
  return methods.map((method) => unfit(incident, node, method, now)).find((why) => why !== undefined)
}

function unfit(incident: Incident, node: NodeSeen, method: Method, now: Ms): string | undefined {
  const audit = auditOf(node, method, incident.boot)
  const wrong = untrusted(node, method, audit)
  if (wrong !== undefined) return wrong
  if (incident.policy.identity === 'require' && audit?.identity !== 'proven') return `nothing proves that ${method.name} is wired to ${node.name}`
  const last = readingsOf(node, method).at(-1)
  if (last === undefined || now - last.endedAt > answersFor) return `${method.name} was not asked since the silence began`
  if (last.state === 'unknown') return `${method.name} does not answer: ${last.evidence}`
  return undefined
}

function afterRound(incident: Incident, node: NodeSeen, detail: string, now: Ms): Next {
  const orders = incident.status.attempts.filter((attempt) => attempt.action === 'off' && attempt.round === incident.status.round)
  if (orders.length === 0) return { next: 'none', detail }
  const endedAt = Math.max(...orders.map((attempt) => node.firstSeen.get(`ended ${attempt.id}`) ?? now))
  const until = endedAt + incident.policy.restAfter
  if (now < until) return { next: 'rest', until, detail }
  const doubts: string[] = []
  for (let level = firstLevel(incident); level < node.path.levels.length; level += 1) {
    const doubt = unfitLevel(incident, node, level, now)
    const method = node.path.levels[level]?.[0]
    if (doubt === undefined && method !== undefined) return { next: 'order', method, level, round: incident.status.round + 1 }
    doubts.push(`level ${level + 1}: ${doubt}`)
  }
  return { next: 'none', detail: doubts.join('; ') || detail }
}

const tries = (orders: readonly Attempt[], method: Method): number => orders.filter((attempt) => attempt.method === method.name).length

/** The program said that the device is off. Whether it is, the readings tell. */
const ended = (orders: readonly Attempt[], method: Method): boolean => orders.some((attempt) => attempt.method === method.name && attempt.result === 'off')

export interface Pending {
  readonly until: Ms
  readonly detail: string
}

/** The latest instant at which an *off* of this incident may still land. Undefined: none is on its way. */
export function mayLand(incident: Incident, node: NodeSeen, now: Ms): Pending | undefined {
  const loose = incident.status.attempts.filter((attempt) => attempt.action === 'off' && attempt.result !== 'off')
  const ends = loose.map((attempt) => ({ attempt, until: landsBy(node, attempt, now) }))
  const last = ends.toSorted((one, other) => other.until - one.until)[0]
  if (last === undefined || last.until <= now) return undefined
  return { until: last.until, detail: `the order to ${last.attempt.method} did not end verified and may land for another ${seconds(last.until - now)}` }
}

/** Methods that were ordered off in this incident and not, since, ordered on with success. */
export function cut(incident: Incident, node: NodeSeen): readonly { method: Method; level: number }[] {
  return node.path.levels.flatMap((methods, level) => methods.flatMap((method) => {
    const last = incident.status.attempts.filter((attempt) => attempt.method === method.name).at(-1)
    if (last === undefined || (last.action === 'on' && last.result === 'on')) return []
    return [{ method, level }]
  }))
}
