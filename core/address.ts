// A machine's addresses, put on record while it is well: what its storage is told to refuse once nobody can ask the node any more. They are
// those that its Node names. The one that its beats come from will not do: it is one of several, and another one at each replica
// where an overlay lies between. A Node may name anything, though, and a fence would strike whoever has it: what another Node names, or has
// on record, is taken by neither, and what a node has on record already no other takes from it.
import { sameBoot, unkeptOf, type Boot, type NodeName, type NodeSeen } from './model.ts'
import type { Survey } from './survey.ts'

/** More than a machine has: what every cluster writes on each of its records has its bounds. */
export const mostAddresses = 16

const none: readonly string[] = []

/** Those on record. A record of another Node of this name tells of another machine. */
export function addressesOf({ record, uid }: Pick<NodeSeen, 'record' | 'uid'>): readonly string[] | undefined {
  return record?.nodeUid === uid ? record.addresses : undefined
}

/** All of them or none: a machine that is cut off by some of its addresses writes by the others. */
export function addressesKept(node: NodeSeen, boot: Boot, { open, seen: { nodes } }: Pick<Survey, 'open' | 'seen'>): readonly string[] | undefined {
  const before = addressesOf(node)
  if (!isTakenNow(node, boot, open)) return before
  const { addresses = none } = node
  const fresh = addresses.filter((address) => before?.includes(address) !== true)
  return addresses.length === 0 || (fresh.length > 0 && areAnothers(node, fresh, nodes)) ? undefined : addresses
}

/** Asked of five thousand nodes at a tick. A record that bears none is not written at once for that: a new version would write them all. */
export function addressesStand(node: NodeSeen, boot: Boot, open: Survey['open']): boolean {
  const { record, addresses = none } = node
  return record?.addresses === undefined || sameAddresses(record.addresses, addresses) || !isTakenNow(node, boot, open)
}

/** That the record bears some, where there are any; and where the API server is of a version that drops them, it is left at that for a while. */
export function addressesTold(node: NodeSeen, boot: Boot, { open, now }: Pick<Survey, 'open' | 'now'>): boolean {
  const { record, addresses = none } = node
  return record?.addresses !== undefined || addresses.length === 0 || !isTakenNow(node, boot, open) || unkeptOf(node, now).record !== undefined
}

export function sameAddresses(one: readonly string[] = none, other: readonly string[] = none): boolean {
  if (one.length !== other.length) return false
  for (let index = 0; index < one.length; index += 1) if (one[index] !== other[index]) return false
  return true
}

/** What was cut off in an incident is given back by the words that cut it off, though the machine may have others in its next boot; and
 *  what its kubelet has not posted in this boot yet is the former one's. */
function isTakenNow({ name, bootId }: NodeSeen, boot: Boot, open: Survey['open']): boolean {
  return !open.has(name) && bootId !== '' && sameBoot(bootId, boot)
}

function areAnothers(node: NodeSeen, addresses: readonly string[], nodes: ReadonlyMap<NodeName, NodeSeen>): boolean {
  for (const other of nodes.values()) {
    if (other.name === node.name) continue
    if (addresses.some((address) => other.addresses?.includes(address) === true || addressesOf(other)?.includes(address) === true)) return true
  }
  return false
}
