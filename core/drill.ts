// The one full proof that a path points where it should: off, while everybody listens. On a node that is cordoned, drained and
// well one level is ordered off, method by method. It passes if the devices then read off twice, this node falls silent, and every
// other node that was heard before goes on being heard. Whatever comes of it, what was switched off is switched on again, by the way
// that each withdrawal goes; the machine's next boot makes it a proof. Nothing is freed by a drill.
import type { Action } from './action.ts'
import { noOrders, type Brake } from './brake.ts'
import { levelOf, undrained, unfit } from './drill-fit.ts'
import { given, isOf, type Attempt, type Incident } from './incident.ts'
import { askDevices, askPods, challenge } from './look.ts'
import { sameBoot, type Drill, type Method, type Ms, type NodeName, type NodeSeen, type Observed } from './model.ts'
import { isIdentified } from './path.ts'
import { readingsOf, twoOffs } from './reading.ts'
import { hold, type Situation } from './situation.ts'
import { spareNoMore } from './spare.ts'
import { awayWithin } from './struck.ts'

/** The list of pods that an order rests on is no older. */
const listedWithin: Ms = 5_000
/** Nor is the reading that its devices answer. */
const answersWithin: Ms = 10_000
/** From the end of the last order until it must have come out. */
const judgedWithin: Ms = 30_000
/** Silence that is no lost beat. */
const silentFor: Ms = 5_000
/** A beat that was on its way when the power went. */
const onItsWay: Ms = 2_500
/** A node counts as heard before an order if it beat so shortly before it. */
const heardBefore: Ms = 2_500
/** An order of another node that ended so shortly before may have landed with it. */
const landedBefore: Ms = 5_000

export function drill(at: Situation): Action[] {
  const { incident, status } = at
  if (incident.abort) return over(at, 'a person aborted it')
  const orders = given(status).filter(({ action }) => action === 'off')
  const level = orders.length === 0 ? levelOf(at.node, incident.boot) : status.level
  const methods = at.node.path.levels[level] ?? []
  if (status.attempts.length === 0) return begin(at, methods, level)
  if (orders.some(({ term }) => term !== status.term)) return over(at, 'another replica leads since, and nobody has listened all the while')
  const failed = status.attempts.find(({ result }) => result !== 'off' && result !== 'running')
  if (failed !== undefined) return over(at, `${failed.method} did not end off: ${failed.reason ?? failed.result}`)
  if (status.attempts.some(({ result }) => result === 'running')) return []
  const next = methods.find((method) => !orders.some((one) => isOf(one, method)))
  // Between two feeds somebody may have put the node to use.
  return next === undefined ? judge(at, methods, orders) : leftOn(at) ?? order(at, next, level)
}

function begin(at: Situation, methods: readonly Method[], level: number): Action[] {
  const { on, incident, node } = at
  const scheduled = incident.cause === 'scheduled-drill'
  const never = unfit(node, incident.boot, incident.policy, methods, on.now) ?? (scheduled ? spareNoMore(at)?.detail : undefined)
  if (never !== undefined) return over(at, never)
  const left = leftOn(at)
  if (left !== undefined) return left
  const brake = withheld(at)
  if (brake !== undefined) return scheduled ? over(at, brake.detail) : [hold(node.name, brake, incident)]
  const mute = methods.find((method) => {
    const last = readingsOf(node, method).at(-1)
    return last === undefined || on.now - last.endedAt > answersWithin
  })
  const [first] = methods
  if (mute !== undefined || first === undefined) return askDevices(node, on.now)
  const silent = methods.find((method) => readingsOf(node, method).at(-1)?.state !== 'on')
  return silent === undefined ? order(at, first, level) : over(at, `${silent.name} does not say on now`)
}

/** Undefined: nothing is left on it, by a list that is new. */
function leftOn(at: Situation): Action[] | undefined {
  const { on, node } = at
  if (node.pods === undefined || on.now - node.pods.askedAt > listedWithin) return [...askPods(node), ...askDevices(node, on.now)]
  const left = undrained(node)
  return left === undefined ? undefined : over(at, left)
}

/** The same limits as for a fence: two machines off are two machines off. */
function withheld({ on, incident, node }: Situation): Brake | undefined {
  return noOrders(on.seen.nodes, node, { ...incident, policy: { ...incident.policy, identity: 'warn' } }, on.storms, on.fencing, on.now, on.verdicts)
}

function order({ on, incident, node, status }: Situation, method: Method, level: number): Action[] {
  if (node.busy.has(`order ${node.name} ${method.name}`)) return []
  on.fencing.add(node.name)
  return [{ do: 'fence', node: node.name, incident: incident.name, method, level, round: status.round }]
}

function judge(at: Situation, methods: readonly Method[], orders: readonly Attempt[]): Action[] {
  const { on, incident, node } = at
  const seenAt = (what: 'began' | 'ended', { id }: Attempt): Ms => node.firstSeen.get(`${what} ${id}`) ?? on.now
  const began = Math.min(...orders.map((one) => seenAt('began', one)))
  const settled = Math.max(...orders.map((one) => seenAt('ended', one)))
  const beside = orderedBeside(at, began, ['off'])
  if (beside !== undefined) return over(at, beside)
  const lacks = notOff(node, methods, settled, on.now) ?? notSilent(at, settled) ?? otherSilent(at, began, settled)
  if (lacks === undefined) {
    const because = `${namesOf(methods)} off, ${node.name} silent with it, and every other node heard since`
    return [{ do: 'withdraw', node: node.name, incident: incident.name, because, drill: { passed: true, detail: because } }]
  }
  // A boot that answers since the off marks the path as another machine's.
  const answers = sameBoot(node.beat?.boot ?? '', incident.boot) ? challenge(node, on.now) : []
  return on.now - settled < judgedWithin ? [...askDevices(node, on.now), ...answers] : over(at, lacks)
}

function notOff(node: NodeSeen, methods: readonly Method[], settled: Ms, now: Ms): string | undefined {
  const method = methods.find((one) => twoOffs(readingsOf(node, one), settled, now) === undefined)
  return method === undefined ? undefined : `${method.name} was not read off twice since its order`
}

function notSilent({ on, node }: Situation, settled: Ms): string | undefined {
  const last = node.beat?.at ?? -Infinity
  if (node.beat?.goodbye !== undefined) return `${node.name} said goodbye, and an outlet is not announced`
  if (last > settled + onItsWay) return `${node.name} beats on: the path leads to another machine, or does not switch all that feeds this one`
  return on.now - Math.max(last, settled) < silentFor ? `${node.name} is not silent long enough yet` : undefined
}

function otherSilent({ on, node }: Situation, began: Ms, settled: Ms): string | undefined {
  for (const other of on.seen.nodes.values()) {
    if (other.name === node.name || other.gone === true || other.beat === undefined) continue
    const { at, goodbye } = other.beat
    // Who is away for a moment would not be missed.
    const lived = goodbye === undefined ? at >= began - heardBefore : goodbye.at >= began - awayWithin
    if (lived && at <= settled + onItsWay) return `${other.name} fell silent with it`
  }
  return undefined
}

/** What silenced it, or started it, may have been another's order: two cables in each other's sockets, and each of the machines is switched by the
 *  other's outlet. */
export function orderedBeside({ on, node }: Situation, began: Ms, actions: readonly Attempt['action'][]): string | undefined {
  for (const incident of on.seen.incidents.values()) {
    const other = on.seen.nodes.get(incident.nodeName)
    if (other === undefined || other.name === node.name) continue
    const beside = given(incident.status).find(({ id, action }) => actions.includes(action) && (other.firstSeen.get(`ended ${id}`) ?? Infinity) >= began - landedBefore)
    if (beside !== undefined && !isIdentifiedBy(other, beside, incident)) return `${other.name} was ordered ${beside.action} beside it by ${beside.method}, and nothing proves that this did not strike ${node.name}`
  }
  return undefined
}

function isIdentifiedBy(node: NodeSeen, attempt: Attempt, { boot }: Incident): boolean {
  return node.path.levels.flat().some((method) => isOf(attempt, method) && isIdentified(node, method, boot))
}

function over({ incident, node }: Situation, because: string): Action[] {
  return [{ do: 'withdraw', node: node.name, incident: incident.name, because, drill: { passed: false, detail: because } }]
}

const namesOf = (methods: readonly Method[]): string => methods.map(({ name }) => name).join(', ')

/** What drills, and fences, have proven of each node that is still the machine of then. */
export function drillsOf(seen: Observed): ReadonlyMap<NodeName, readonly Drill[]> {
  const drills = new Map<NodeName, Drill[]>()
  for (const incident of seen.incidents.values()) {
    const node = seen.nodes.get(incident.nodeName)
    const digests = provenBy(incident)
    if (digests === undefined || node === undefined || node.uid !== incident.nodeUid) continue
    drills.set(node.name, [...drills.get(node.name) ?? [], { at: incident.status.timeline.at(-1)?.at ?? '', machine: incident.machine, digests }])
  }
  return drills
}

function provenBy({ status }: Incident): readonly string[] | undefined {
  if (status.identity?.proven === true) return status.identity.digests
  if (status.outcome !== 'Drilled') return undefined
  return [...new Set(given(status).flatMap(({ action, digest }) => (action === 'off' && digest !== undefined ? digest : [])))]
}

/** Which of them still proves this method's identity: of the same machine, and its level is what was off together then, no more and no
 *  less. */
export function drilled(node: NodeSeen, method: Method, drills: readonly Drill[]): Drill | undefined {
  const level = node.path.levels.find((methods) => methods.includes(method)) ?? []
  return drills.find(({ machine, digests }) => node.machine !== '' && machine === node.machine && digests.includes(method.digest)
    && level.every(({ digest }) => digests.includes(digest)) && digests.every((digest) => level.some((other) => other.digest === digest)))
}
