// A neighbour that was silent before another node of its device was ordered off: it runs perhaps, behind a switch that failed for both, and the
// outlet that was switched may be its own. It cannot say so; what its own outlets say, and what else proves it off, stands in for its word.
import { mayStrike, reachOf } from './device.ts'
import { given, isOf, isPartial, lastProvenAt, type Incident, type IncidentStatus } from './incident.ts'
import { powerMethods } from './isolation.ts'
import { sameBoot, type Boot, type Method, type Ms, type NodeSeen, type Reading } from './model.ts'
import { isIdentified, isStrange } from './path.ts'
import { readingsOf, twoOffs } from './reading.ts'
import { laterBoot, type Situation } from './situation.ts'

/** When everything of it that hangs on the device had said off, whoever switched it, if it says so still after the other's first off. */
export function saidOffBeside(other: NodeSeen, method: Method, first: Reading, now: Ms): Ms | undefined {
  const own = beside(other, method)
  const pairs = own.map((one) => twoOffs(readingsOf(other, one), other.beat?.at ?? -Infinity, now))
  if (own.length === 0 || !pairs.every((pair) => pair !== undefined && pair.last.startedAt >= first.endedAt && !isStrange(pair.last, other))) return undefined
  return Math.max(...pairs.map((pair) => pair?.first.endedAt ?? Infinity))
}

/** Of one that is taken for the node and hangs elsewhere: everything that switches it. */
function beside(other: NodeSeen, method: Method): readonly Method[] {
  const own = other.path.levels.flat().filter((one) => reachOf(one) === reachOf(method))
  return own.length > 0 ? own : powerMethods(other)
}

/** By a proof that stands and does not rest on a path like this one. One that does counts for a node that was heard in one boot before it and
 *  after it: what fed that was not what was off then. */
export function isProvenOff(other: NodeSeen, own: Incident | undefined, method: Method, node: NodeSeen, boot: Boot): boolean {
  const proof = own?.status.proof
  if (own === undefined || proof === undefined || isPartial(proof) || own.nodeUid !== other.uid || laterBoot(other, own.boot)) return false
  const methods = other.path.levels.flat().filter(({ name, digest }) => proof.methods.some((one, nth) => one === name && (proof.digests?.[nth] ?? digest) === digest))
  if (methods.length !== proof.methods.length) return false
  if (methods.every((one) => isIdentified(other, one, own.boot))) return true
  const provenAt = lastProvenAt(own, other.firstSeen)
  if (provenAt === undefined || node.beat === undefined || !beside(other, method).every((one) => methods.includes(one))) return false
  return sameBoot(node.beat.boot, boot) && node.beat.since < provenAt && node.beat.at > provenAt
}

/** Another node of the device was ordered off, and is not proven before this one reads off as well: who waits for its volumes waits for ever. */
export function isAwaited({ on, node }: Situation): boolean {
  for (const { nodeName, boot, status } of on.open.values()) {
    if (status.attempts.length === 0 || nodeName === node.name || (status.proof !== undefined && !isPartial(status.proof))) continue
    const other = on.seen.nodes.get(nodeName)
    if (other !== undefined && !laterBoot(other, boot) && other.path.levels.flat().some((method) => mayHaveStruck(node, other, method, boot, status))) return true
  }
  return false
}

function mayHaveStruck(node: NodeSeen, other: NodeSeen, method: Method, boot: Boot, status: IncidentStatus): boolean {
  const last = given(status).findLast((attempt) => isOf(attempt, method))
  return last?.action === 'off' && last.round === status.round && mayStrike(node, other, method) && !isIdentified(other, method, boot)
}
