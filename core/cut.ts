// What was cut off in an incident, and how the machine stands by it now. Both are read off the record and the devices' own
// words, never remembered: an *on* that ended verified may have been undone since by an *off* that nobody could take back.
import type { Brake } from './brake.ts'
import { given, isOf, isPartial, type Attempt, type Incident } from './incident.ts'
import type { Method, Ms, NodeSeen, PowerState } from './model.ts'
import { isStrange } from './path.ts'
import { readingsOf } from './reading.ts'
import { lacksClean } from './return.ts'
import { laterBoot, type Situation } from './situation.ts'

export interface Cut {
  readonly method: Method
  readonly level: number
  /** The last order to it was *on*, and ended verified. */
  readonly givenBack: boolean
  readonly says: Says
}

/** What a device told of this machine since the end of its last order. `nothing yet`: it was not asked. */
type Says = PowerState | 'nothing yet'

/** Every method that was ordered off here, whether or not an *on* followed. What ends a machine for good gives nothing back. */
export function cuts(incident: Incident, node: NodeSeen): readonly Cut[] {
  const offs = given(incident.status).filter((attempt) => attempt.action === 'off')
  return node.path.levels.flatMap((methods, level) => methods
    .filter((method) => method.ends !== true && offs.some((attempt) => isOf(attempt, method))).map((method) => cutBy(incident, node, method, level)))
}

/** Whether the machine is gone for good. Whatever else was ordered off, nothing switches that on again. */
export function endedForGood(incident: Incident, node: NodeSeen): Brake | undefined {
  const by = endedBy(incident, node)
  if (by === undefined) return undefined
  return { because: 'waiting-for-boot', detail: `${by} has ended the machine for good, and nothing switches it on again`, lifts: 'its Node deleted, or another machine under its name' }
}

/** By the last word of a method that ends it, or by what stands on the record where that has told nothing since, as a cloud that forgets such a machine
 *  within the hour, or is configured no more. */
function endedBy({ status }: Incident, node: NodeSeen): string | undefined {
  const ending = node.path.levels.flat().filter(({ ends }) => ends === true)
  if (ending.length === 0) return given(status).find(({ ends, result }) => ends === true && result === 'off')?.method
  return ending.find((method) => {
    const last = readingsOf(node, method).findLast(({ state }) => state !== 'unknown')
    if (last !== undefined) return last.state === 'off' && !isStrange(last, node)
    return status.proof?.digests?.includes(method.digest) === true || given(status).findLast((attempt) => isOf(attempt, method))?.result === 'off'
  })?.name
}

/** As if it had been cut by this method; one that was never ordered has told nothing since. */
export function cutBy(incident: Incident, node: NodeSeen, method: Method, level: number): Cut {
  const orders = given(incident.status).filter((attempt) => isOf(attempt, method))
  const last = orders.at(-1)
  const endedAt = last === undefined ? undefined : node.firstSeen.get(`ended ${last.id}`)
  // While it is under way, nothing that the device says is its last word.
  return { method, level, givenBack: wasGivenBack(orders), says: endedAt === undefined ? 'unknown' : saysSince(node, method, endedAt) }
}

/** What it says of another machine tells nothing of this one. */
function saysSince(node: NodeSeen, method: Method, since: Ms): Says {
  const readings = readingsOf(node, method).filter((reading) => reading.startedAt >= since)
  if (readings.length === 0) return 'nothing yet'
  const last = readings.findLast((reading) => reading.state !== 'unknown')
  return last === undefined || isStrange(last, node) ? 'unknown' : last.state
}

/** Methods that were cut, and are not configured any more as they were then. Nothing is owed to a machine by what was to end it for good. */
export function lost(incident: Incident, node: NodeSeen): readonly string[] {
  const configured = node.path.levels.flat()
  const orders = given(incident.status).filter((attempt) => !configured.some((method) => isOf(attempt, method)))
  const offs = orders.filter(({ action, method, digest, ends }) => action === 'off' && ends !== true && !wasGivenBack(orders.filter((other) => other.method === method && other.digest === digest)))
  return [...new Set(offs.map(({ method }) => method))]
}

/** What cuts the machine off from something, under this name, as it is configured now. */
export function portOf({ path }: Pick<NodeSeen, 'path'>, name: string): Method | undefined {
  return path.levels.flat().find((method) => method.name === name && method.isolates !== undefined)
}

/** Read on since the last order to any device of its name, by the configuration that it has now. */
export function isOpen({ status }: Incident, node: NodeSeen, port: Method): boolean {
  const ends = given(status).filter(({ method }) => method === port.name).map(({ id }) => node.firstSeen.get(`ended ${id}`) ?? Infinity)
  return saysSince(node, port, Math.max(...ends)) === 'on'
}

/** What was freed stays out of the machine's reach while the boot of then may write it: until that is known dead, or its agent finds
 *  nothing of it left. */
export function staysCut({ incident, node, status, heard }: Situation, { name, isolates }: Method): Brake | undefined {
  if (isolates === undefined || (status.proof === undefined && status.voided.length === 0)) return undefined
  const isDead = heard === 'new boot' || laterBoot(node, incident.boot) || (status.proof !== undefined && !isPartial(status.proof))
  const isClean = heard === 'old boot' && node.beat !== undefined && lacksClean(incident, node, node.beat) === undefined
  if (isDead || isClean) return undefined
  return { because: 'still-cut', detail: `${name} was ordered off, and what was freed by that may be in use still on ${node.name}: it stays so`, lifts: 'a clean report of its agent, or its next boot' }
}

/** Orders by one method, oldest first. */
export function wasGivenBack(orders: readonly Attempt[]): boolean {
  const last = orders.at(-1)
  return last?.action === 'on' && last.result === 'on'
}
