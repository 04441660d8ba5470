// Of a node that no device can prove off: its boot's permit is taken back, and once everybody who could still have given it one has said so, its
// own watchdog must have reset it by a certain instant. This is the one place where time proves anything, so each term of it is named, and
// whatever is not known is a reason to refuse.
//
// What the reckoning counts from is the latest of four: the revocation as this replica first saw it; for each membership that the node may hold,
// when more than half of it had said that they permit it no more; and this replica's own election, since whoever led before may have permitted it
// until then.
import type { Found, Incident } from './incident.ts'
import { seconds } from './judge.ts'
import { sameBoot, type Ms, type NodeName, type NodeRecord, type NodeSeen, type Self } from './model.ts'
import { distrusted, endedWithin, mostSince, type Membership, type WatchdogKept } from './watchdog.ts'

/** Of `firstSeen`: when the revocation was first seen on an incident. */
export const revokedKey = (incident: string): string => `revoked ${incident}`

/** Why its permit is not taken back for the sake of a proof. Undefined: its watchdog could make one. */
export function unfenceable({ boot, nodeUid, policy }: Pick<Incident, 'boot' | 'nodeUid' | 'policy'>, record: NodeRecord | undefined): string | undefined {
  if (policy.selfFenced !== 'accept') return 'its policy does not accept what a watchdog proves'
  if (record?.watchdog === undefined || record.nodeUid !== nodeUid || !sameBoot(record.watchdog.boot, boot)) return 'no watchdog of this boot is on record'
  return unusable(record.watchdog)
}

function unusable(watchdog: WatchdogKept): string | undefined {
  const { epoch, memberships } = watchdog
  return distrusted(watchdog) ?? (memberships.some((one) => one.epoch === epoch && epoch > 0) ? undefined : 'nobody knows by whose word it goes')
}

export type Ended = { readonly evidence: readonly Found[] } | { readonly lacks: string }

export function endedByWatchdog({ name, nodeName, boot, policy, status: { revoked } }: Incident, node: NodeSeen, nodes: ReadonlyMap<NodeName, NodeSeen>, self: Self, now: Ms): Ended {
  if (policy.selfFenced !== 'accept') return { lacks: 'its policy does not accept what a watchdog proves' }
  if (revoked === undefined || !sameBoot(revoked.boot, boot)) return { lacks: 'its permit was not taken back' }
  const { watchdog } = revoked
  const fault = unusable(watchdog)
  if (fault !== undefined) return { lacks: fault }
  const revokedAt = node.firstSeen.get(revokedKey(name))
  if (revokedAt === undefined || self.ledSince === undefined) return { lacks: 'this replica has not led since its permit was taken back' }
  const agreed = watchdog.memberships.map((membership) => ({ membership, at: mostSince(membership, (member) => ('agent' in member ? revokedBy(nodes.get(member.agent)) : member.replica === self.replica ? revokedAt : undefined)) }))
  const open = agreed.find(({ at }) => at === undefined)
  if (open !== undefined) return { lacks: `fewer than most of its members have said that they permit it no more: ${whoHas(open.membership)}` }
  const since = Math.max(revokedAt, self.ledSince, ...agreed.map(({ at }) => at ?? Infinity))
  const until = since + endedWithin(watchdog)
  const { identity, timeout } = watchdog
  const heardAt = Math.max(-Infinity, ...node.witnesses.filter(({ word, proven }) => word === 'hears' && proven).map(({ answeredAt }) => answeredAt))
  if (heardAt >= until) return { lacks: 'a witness has heard it since its watchdog must have reset it' }
  if (now < until) return { lacks: `its watchdog (${identity}, ${seconds(timeout)}) must have reset it in ${seconds(until - now)}` }
  return { evidence: [
    { source: 'watchdog', word: `${identity}, armed, fires after ${seconds(timeout)}`, at: revoked.at },
    { source: 'permit', word: 'revoked', at: revokedAt },
    ...agreed.map(({ membership: { epoch, agents, replicas }, at = since }): Found => ({ source: `membership ${epoch}`, word: `most of ${agents.length + replicas.length} permit it no more`, at })),
    { source: 'time', word: `${seconds(endedWithin(watchdog))} since nobody could permit it`, at: now },
  ] }

  function revokedBy(member: NodeSeen | undefined): Ms | undefined {
    return member?.beat?.revokes?.find((one) => one.node === nodeName && sameBoot(one.boot, boot))?.at
  }

  function whoHas({ agents, replicas }: Membership): string {
    const mute = agents.filter((agent) => revokedBy(nodes.get(agent)) === undefined)
    return `${mute.join(', ')} of ${[...agents, ...replicas].join(', ')} ${mute.length === 1 ? 'has' : 'have'} not`
  }
}
