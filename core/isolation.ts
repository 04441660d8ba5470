// Isolation: a machine is cut off from its storage, or from a network, and goes on running. So its *off* is none of the machine: it
// proves nothing of what the machine does elsewhere, and a machine that is found off need not be isolated. What it may prove is that
// volumes of some CSI drivers are out of the machine's reach, where the operator has said which.
import { given, isOf, type Attempt, type Incident } from './incident.ts'
import type { Method, NodeSeen } from './model.ts'

/** Whether a level isolates. The levels that switch the machine's power come after all that do. */
export function isIsolation(methods: readonly Method[]): boolean {
  return methods.some(({ isolates }) => isolates !== undefined)
}

/** The methods that switch the machine's power: what they say is said of the machine. */
export function powerMethods({ path }: Pick<NodeSeen, 'path'>): readonly Method[] {
  return path.levels.filter((methods) => !isIsolation(methods)).flat()
}

/** A proof of the machine goes before one of some volumes. */
export function provingOrder({ path }: Pick<NodeSeen, 'path'>): readonly { readonly level: number; readonly isolates: boolean }[] {
  return path.levels.map((methods, level) => ({ level, isolates: isIsolation(methods) })).toSorted((one, other) => Number(one.isolates) - Number(other.isolates))
}

/** The CSI drivers whose volumes are out of reach once all of these are off. */
export function driversBehind(methods: readonly Method[]): readonly string[] {
  return [...new Set(methods.flatMap(({ isolates }) => isolates ?? []))]
}

/** Whether the machine's power was ordered off. An order by a configuration that is not there any more counts as one. */
export function powerOrdered({ status }: Pick<Incident, 'status'>, node: NodeSeen): boolean {
  return given(status).some((attempt) => attempt.action === 'off' && isPowerOrder(attempt, node))
}

export function isPowerOrder(attempt: Attempt, { path }: NodeSeen): boolean {
  return !path.levels.some((methods) => isIsolation(methods) && methods.some((method) => isOf(attempt, method)))
}
