// Who hangs on one device: whom a wrong wire of a method would strike.
import { sameMachine } from './machine-id.ts'
import type { Method, NodeSeen } from './model.ts'

/** Whom a wrong wire of this node's method would strike: whoever hangs on its device, or is taken for the node. */
export function mayStrike(other: NodeSeen, node: NodeSeen, method: Method): boolean {
  return shares(other, method) || (node.twin !== undefined && sameMachine(other.machine, node.machine))
}

export function shares(node: NodeSeen, method: Method): boolean {
  return node.path.levels.some((level) => level.some((other) => reachOf(other) === reachOf(method)))
}

export function reachOf({ device, reach }: Method): string {
  return reach ?? device
}
