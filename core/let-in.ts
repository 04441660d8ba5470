// A proof by isolation stands on a port that is shut, and the machine behind it may run. Once that was heard again its port was perhaps ordered
// on, or a neighbour's was, where nothing proves which port is whose. Should the machine fall silent then, a port that reads off says nothing:
// the *on* may still land, or has let it in by the other one. What was not freed by then is freed by its power, or not at all.
import type { Brake } from './brake.ts'
import { mayStrike } from './device.ts'
import { given, isOf, type Attempt, type Incident } from './incident.ts'
import type { Method, Ms, NodeSeen } from './model.ts'
import { isIdentified } from './path.ts'
import { landsBy, type Proof } from './proof.ts'
import { readingsOf } from './reading.ts'
import type { Situation } from './situation.ts'
import { beganAt } from './struck.ts'

/** Why what it was cut off from may be in its reach again, whatever its port reads: by its own *on*, which may still land, or by a neighbour's. */
export function letIn(at: Situation, proof: Proof): Brake | undefined {
  if (proof.kind !== 'isolated') return undefined
  const methods = at.node.path.levels.flat().filter(({ name }) => proof.methods.includes(name))
  return letInItself(at, methods) ?? letInBeside(at, methods)
}

function letInItself({ on, node, status }: Situation, methods: readonly Method[]): Brake | undefined {
  const method = methods.find((one) => given(status).some((attempt) => attempt.action === 'on' && isOf(attempt, one) && !readingsOf(node, one).some(({ startedAt }) => startedAt >= overAt(node, attempt, on.now))))
  return method && { because: 'proof-doubted', detail: `nothing more is freed: ${method.name} was ordered on since, which may still land`, lifts: 'that time over, and off read after it, or a new boot' }
}

/** From then on a reading tells what came of it. */
function overAt(node: NodeSeen, order: Attempt, now: Ms): Ms {
  return order.result === 'on' ? node.firstSeen.get(`ended ${order.id}`) ?? now : landsBy(node, order, now)
}

function letInBeside({ on, incident, node, status }: Situation, methods: readonly Method[]): Brake | undefined {
  if (methods.every((method) => isIdentified(node, method, incident.boot))) return undefined
  const cutAt = Math.min(...methods.map((method) => {
    const off = given(status).findLast((attempt) => attempt.action === 'off' && isOf(attempt, method))
    return off === undefined ? -Infinity : beganAt(incident, node, off)
  }))
  for (const beside of on.seen.incidents.values()) {
    const other = on.seen.nodes.get(beside.nodeName)
    // Also where its Node was made anew: the port is what it was, and is given back just then.
    if (other === undefined || other.name === node.name) continue
    const method = other.path.levels.flat().find((one) => one.isolates !== undefined && !isIdentified(other, one, beside.boot) && mayStrike(node, other, one) && orderedOn(other, beside, one, cutAt, on.now))
    if (method === undefined) continue
    const detail = `nothing more is freed: ${method.name} of ${other.name} was ordered on since, and nothing proves that it does not let ${node.name} in`
    return { because: 'proof-doubted', detail, lifts: 'a beat of the node, a proof that the machine is off, or a new boot' }
  }
  return undefined
}

/** An *on* that is being written down stands on no record yet. */
function orderedOn({ name, busy, firstSeen }: NodeSeen, { status }: Incident, method: Method, since: Ms, now: Ms): boolean {
  const orders = given(status).filter((attempt) => isOf(attempt, method))
  if (orders.some(({ action, id }) => action === 'on' && (firstSeen.get(`began ${id}`) ?? now) >= since)) return true
  return orders.at(-1)?.result === 'off' && busy.has(`order ${name} ${method.name}`)
}
