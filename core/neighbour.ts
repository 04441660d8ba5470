// What an order to one node may do to another one, where nothing proves which outlet feeds which: two cables in each
// other's sockets. An *off* may have cut the other, and an *on* may boot it.
import type { Brake } from './brake.ts'
import { hasOurs, outOfServiceKey } from './clear.ts'
import { staysCut } from './cut.ts'
import { given, isOf, isPartial, type Attempt, type Incident } from './incident.ts'
import { isWithoutAgent } from './judge.ts'
import type { Method, Ms, NodeName, NodeSeen } from './model.ts'
import { isIdentified } from './path.ts'
import { mayStrike } from './device.ts'
import { laterBoot, situationOf, type Situation } from './situation.ts'
import { beganAt } from './struck.ts'

/** What is being proven off or cleared must not boot meanwhile, nor reach what it was cut off from. */
export function mustStayOff(at: Situation, method: Method): Brake | undefined {
  const { on, incident, node } = at
  if (isIdentified(node, method, incident.boot)) return undefined
  const other = [...on.open.values()].find(({ nodeName }) => nodeName !== node.name && beingFreed(at, nodeName, method))
  if (other === undefined) return undefined
  return { because: 'concurrency', detail: `${other.nodeName} is being fenced, and nothing proves that ${method.name} does not switch it on`, lifts: `its last volume freed, ${method.isolates === undefined ? '' : 'a clean report of its agent, '}or its next boot` }
}

function beingFreed(at: Situation, name: NodeName, method: Method): boolean {
  const { on } = at
  const [node, incident] = [on.seen.nodes.get(name), on.open.get(name)]
  if (node === undefined || incident === undefined || !(mayStrike(node, at.node, method) || fellSilentWithAny(node, at, method))) return false
  const { proof, step } = incident.status
  if (on.fencing.has(name) || hasOurs(node, outOfServiceKey)) return true
  return proof !== undefined && step !== 'recovery' && !laterBoot(node, incident.boot) && !(isPartial(proof) && mayComeBack(situationOf(on, incident, node), method))
}

/** A proof of some volumes holds while the machine runs: two that are dark would wait for each other for ever, and whichever boots reaches nothing that was
 *  freed. What was only cut off, is heard and clean, may reach that again, by whichever port. Should it fall silent once more, nothing else of it is freed
 *  by what cut it off (`letIn`). */
function mayComeBack(there: Situation, method: Method): boolean {
  return method.isolates === undefined || staysCut(there, method) === undefined
}

/** On whatever device: a cable may lead to another strip. */
function fellSilentWithAny(node: NodeSeen, at: Situation, method: Method): boolean {
  const offs = given(at.incident.status).filter((attempt) => attempt.action === 'off' && isOf(attempt, method))
  return node.beat !== undefined && offs.some((attempt) => fellSilentWith(node, at.incident, at.node, attempt, at.on.now))
}

/** It fell silent with another's *off*, of which no proof came: then that one's *on* boots it, and an order of its own would be given,
 *  proven and followed by deletions while it does. Until that one is proven, or its own node has booted, or this one had time to. */
export function mayBeStruck(at: Situation): Brake | undefined {
  const { on, node } = at
  for (const incident of on.seen.incidents.values()) {
    const other = on.seen.nodes.get(incident.nodeName)
    if (other === undefined || other.name === node.name || incident.nodeUid !== other.uid) continue
    const method = struckBy(at, incident, other)
    if (method !== undefined) {
      const verb = incident.status.phase === 'Running' ? 'is being fenced' : 'was ordered off'
      const detail = `${other.name} ${verb} by ${method.name}, and that may be what silenced ${node.name}: nothing proves which of them it feeds`
      return { because: 'concurrency', detail, lifts: `a proof that ${other.name} is off, or its next boot, or time enough for ${node.name} to boot` }
    }
  }
  return undefined
}

function struckBy({ on, node }: Situation, incident: Incident, other: NodeSeen): Method | undefined {
  const { status, boot, policy } = incident
  if (status.proof !== undefined || laterBoot(other, boot)) return undefined
  const orders = given(status)
  return other.path.levels.flat().find((method) => {
    const own = orders.filter((attempt) => isOf(attempt, method))
    const last = own.at(-1)
    if (last === undefined || isIdentified(other, method, boot) || (node.beat === undefined && !mayStrike(node, other, method))) return false
    return own.some((attempt) => attempt.action === 'off' && fellSilentWith(node, incident, other, attempt, on.now)) && on.now - endOf(other, last, on.now) < policy.bootWithin
  })
}

/** It may have lost a beat before, and its last one may have been on its way. */
const around: Ms = 2_500

function fellSilentWith(node: NodeSeen, incident: Incident, other: NodeSeen, order: Attempt, now: Ms): boolean {
  if (node.beat === undefined) return order.term !== incident.status.term && incident.status.phase !== 'Final' && !isWithoutAgent(node)
  return node.beat.at >= beganAt(incident, other, order) - around && node.beat.at <= endOf(other, order, now) + around
}

function endOf(node: NodeSeen, { id }: Attempt, now: Ms): Ms {
  return node.firstSeen.get(`ended ${id}`) ?? now
}
