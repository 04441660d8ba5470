// May this boot go on running workloads? A permit is a word that says so for a while, and a node that nobody permits any more gives up:
// it stops its workloads by itself. That is the second line, for the day on which a device calls a machine off that is only cut off. It is
// never a proof: nobody frees anything because a node should have given up by now.
//
// A permit that runs out is replaced by another word of the leader, by the API server's own word on this node, or by most of the *members*:
// the witnesses and replicas that the leader named while it was heard. They are spread over the zones, and more than half of all of them
// must speak, or a zone that is cut off would keep itself alive. Replicas alone are never enough, and neither is a member that was told
// that the permit is revoked.
//
// A word counts from when it was asked for, since an answer may be long on its way, and only if that was after the latest revocation.
// A node that has given up takes workloads again by the leader's word or the API server's. Its members' is not enough for that: what it
// ran may have been given to others while nobody could tell it.
import { outOfServiceKey } from './clear.ts'
import type { ClusterSaid, FenceSaid } from './cold-start.ts'
import type { Exemptions } from './gate.ts'
import { isPartial, type Incident } from './incident.ts'
import { sameBoot, type Boot, type Ms, type NodeName } from './model.ts'
import { isOfTheApi, type ContainerSeen } from './mounts.ts'

/** What the policy has a node do that nobody permits to run workloads. */
export type GiveUp = 'never' | 'stop' | 'watchdog'

/** So long one word permits. The leader's comes with every fifth beat: three in a row may get lost. */
export const permitSpan: Ms = 20_000
/** From the last word that permits to the end of what runs: the permit, then time to find out that nobody gives another, and to stop. */
export const gaveUpWithin: Ms = permitSpan + 10_000
/** So long before the end others are asked. A leader that is killed is replaced in less. */
const askAhead: Ms = permitSpan / 2

export interface PermitHeard {
  readonly from: 'leader' | 'API server' | 'members'
  readonly askedAt: Ms
  readonly says: 'permitted' | 'revoked'
}

/** How it stands with the permit of one boot. */
export interface Standing {
  /** Until when it may run workloads. */
  readonly until: Ms
  /** When the latest word was asked for that took its permit back. */
  readonly revokedAt: Ms
  /** When the latest word was asked for that gave it one. An agent that begins has heard none. */
  readonly permittedAt: Ms
  readonly gaveUp?: { readonly at: Ms; readonly reason: string }
}

/** Of an agent that begins: whoever permitted before is not known, and has one span to speak. */
export function standingSince(now: Ms): Standing {
  return { until: now + permitSpan, revokedAt: -Infinity, permittedAt: -Infinity }
}

export function standingAfter(standing: Standing, { from, askedAt, says }: PermitHeard): Standing {
  const { until, revokedAt, permittedAt, gaveUp } = standing
  if (says === 'revoked') {
    // What was asked for after it speaks of later.
    const newer = until - permitSpan > askedAt
    return { ...standing, revokedAt: Math.max(revokedAt, askedAt), until: newer ? until : Math.min(until, askedAt) }
  }
  if (askedAt <= revokedAt) return standing
  if (gaveUp === undefined) return { ...standing, until: Math.max(until, askedAt + permitSpan), permittedAt: Math.max(permittedAt, askedAt) }
  return from === 'members' || askedAt <= gaveUp.at ? standing : { revokedAt, until: askedAt + permitSpan, permittedAt: askedAt }
}

export type SelfStop = 'run' | 'ask' | 'give up'

export function selfStop({ until, gaveUp }: Standing, now: Ms): SelfStop {
  if (gaveUp !== undefined || now >= until) return 'give up'
  return now >= until - askAhead ? 'ask' : 'run'
}

/** Whether its watchdog may be fed. Not by the span that an agent has when it begins: one that is started again and again would have it for
 *  ever. Past the permit there is time to stop what runs; then nobody feeds it any more, whatever came of that. */
export function mayFeed({ permittedAt, revokedAt }: Standing, now: Ms): boolean {
  return permittedAt > revokedAt && now < permittedAt + gaveUpWithin
}

/** Its permit was taken back, and not only left to run out. */
export function wasRevoked({ until, revokedAt }: Standing): boolean {
  return until <= revokedAt
}

/** Why, as a sentence's end. */
export function reasonToGiveUp(standing: Standing): string {
  return wasRevoked(standing) ? 'its permit was revoked: it counts as cut off, and its pods may run elsewhere'
    : 'neither a coordinator that leads, nor the API server, nor most of its members permit it to run workloads'
}

/** `revoked`: it was told so by the leader. `unknown`: no leader has told it anything since it began. */
export type MemberSays = 'permitted' | 'revoked' | 'unknown'

export interface MembersHeard {
  /** Agents, by how they answered; silent ones are not among them. */
  readonly agents: readonly MemberSays[]
  readonly replicas: readonly MemberSays[]
  /** All that were named. */
  readonly named: number
}

export function mostPermit({ agents, replicas, named }: MembersHeard): boolean {
  const all = [...agents, ...replicas]
  const permitting = all.filter((says) => says === 'permitted').length
  return !all.includes('revoked') && agents.includes('permitted') && permitting * 2 > named
}

/** A proof stands that this very boot cannot write, or is being made of its watchdog: others may write by now what it would. One of some volumes alone leaves the machine its
 *  permit: what it runs beside them is its own. */
export function isRevoked(boot: Boot, incident: Pick<Incident, 'status'> | undefined): boolean {
  return incident !== undefined && takesPermit(boot, incident.status)
}

/** The same by the API server's own word, of a node whose kubelet has told it of this boot. */
export function clusterSays(boot: Boot, { bootId, taints, fences }: ClusterSaid): MemberSays {
  if (bootId === '' || !sameBoot(boot, bootId)) return 'unknown'
  return taints.includes(outOfServiceKey) || fences.some((fence) => takesPermit(boot, fence)) ? 'revoked' : 'permitted'
}

function takesPermit(boot: Boot, { phase, proof, revoked }: Omit<FenceSaid, 'name'>): boolean {
  // Before a proof nothing was given away: once the need is over it may run again.
  if (revoked !== undefined && phase !== 'Final' && phase !== 'Done' && sameBoot(revoked.boot, boot)) return true
  return proof !== undefined && phase !== 'Final' && !isPartial(proof) && sameBoot(proof.boot, boot)
}

/** What a node that gives up stops: all but what its gate would let pass while it is shut. Sandboxes run nothing of anybody. */
export function workloads(seen: readonly ContainerSeen[], { namespaces, tolerating }: Exemptions): readonly ContainerSeen[] {
  return seen.filter(({ pod, name, sandbox, tolerates }) => sandbox !== true && tolerates !== true && isOfTheApi(pod)
    && !tolerating.has(pod) && !namespaces.has(name.slice(0, Math.max(0, name.indexOf('/')))))
}

/** Of a node at most. */
const mostMembers = 10

export interface Candidate {
  readonly name: NodeName
  readonly zone: string
}

/** Whom each node has as members: the same as before for most of them when one comes or goes, and no zone more than its share. */
export function membersAmong(candidates: readonly Candidate[]): (node: NodeName) => readonly NodeName[] {
  const zones = Object.values(Object.groupBy(candidates.map((one) => ({ ...one, place: placeOf(one.name) })), ({ zone }) => zone))
    .map((zone) => (zone ?? []).toSorted((one, other) => one.place - other.place || (one.name < other.name ? -1 : 1)))
  const share = Math.ceil(mostMembers / Math.max(1, zones.length))
  return (node) => {
    const members: NodeName[] = []
    for (let turn = 0; turn < share; turn += 1) for (const zone of zones) {
      const others = turn < zone.length ? zone[(firstAfter(zone, placeOf(node)) + turn) % zone.length] : undefined
      if (others !== undefined && others.name !== node && members.length < mostMembers) members.push(others.name)
    }
    return members
  }
}

/** The first in a row that is sorted by place whose place is beyond this one. */
function firstAfter(zone: readonly { readonly place: number }[], place: number): number {
  let [low, high] = [0, zone.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((zone[middle]?.place ?? 0) > place) high = middle
    else low = middle + 1
  }
  return low
}

/** Its place on a ring, spread evenly and the same in each replica. */
function placeOf(name: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < name.length; at += 1) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193)
  // Names that differ in their last digit alone lie side by side without this.
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (hash ^ (hash >>> 13)) >>> 0
}
