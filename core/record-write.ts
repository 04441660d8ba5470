// When a NodeRecord may be written. Most of what changes on it somebody waits for: a boot, what an audit found, a watchdog that is to be let
// go of. The rest changes on thousands at once (a rollout renames every replica, and each of them is a member of every node): that keeps a
// distance on each record, and a rate over all. And what the API server has refused it will refuse again: it rests, longer each time, so
// that a few such records do not keep all others from being written.
import { sameAddresses } from './address.ts'
import type { Places } from './beat.ts'
import type { Ms, NodeRecord, NodeSeen, PathAudit } from './model.ts'
import type { Strain } from './vitals.ts'
import { sameWatchdog } from './watchdog.ts'

export type RecordFacts = Omit<NodeRecord, 'resourceVersion'>

/** This process's latest write of one record. */
export interface RecordWrite {
  readonly at: Ms
  /** Of a write that came to nothing: what was wanted, and for the how-manieth time in a row. */
  readonly refused?: { readonly wanted: RecordFacts; readonly times: number }
}

/** From one write of a record to the next, where nobody waits for it. */
const recordsApart: Ms = 30_000
const firstRest: Ms = 1_000
const longestRest: Ms = 300_000

/** Refused, and not rested since. */
export function rests({ recordWrite }: Pick<NodeSeen, 'recordWrite'>, wanted: RecordFacts, now: Ms): boolean {
  if (recordWrite?.refused === undefined) return false
  return now - recordWrite.at < restAfter(recordWrite.refused.times) && sameFacts(recordWrite.refused.wanted, wanted)
}

export function restAfter(times: number): Ms {
  return Math.min(longestRest, firstRest * 2 ** (times - 1))
}

export function isTooSoon({ recordWrite }: Pick<NodeSeen, 'recordWrite'>, now: Ms): boolean {
  return recordWrite !== undefined && now - recordWrite.at < recordsApart
}

/** Records without their times: one is written only when a fact changes. */
export function sameFacts(one: RecordFacts, other: RecordFacts): boolean {
  return one.nodeUid === other.nodeUid && (one.gate === undefined || one.gate === other.gate) && placesStand(one, other) && sameStrains(one.strains, other.strains) && sameWatchdog(one.watchdog, other.watchdog) && one.boot === other.boot && one.machine === other.machine
    && sameAddresses(one.addresses, other.addresses)
    && one.probe?.boot === other.probe?.boot && one.probe?.answered === other.probe?.answered
    && one.paths.length === other.paths.length && one.paths.every((path, index) => samePath(path, other.paths[index]))
}

function samePath(one: PathAudit, other: PathAudit | undefined): boolean {
  return one.method === other?.method && one.digest === other.digest && one.boot === other.boot && one.state === other.state && one.identity === other.identity && one.drill?.at === other.drill?.at
}

/** A record that tells of none is not written for that alone: an API server whose kinds are older would drop it each time. */
export function placesStand(one: { readonly places?: Places } | undefined, { places }: { readonly places?: Places }): boolean {
  const before = one?.places
  return before === undefined || places === undefined || (before.kubelet === places.kubelet && before.runtime === places.runtime && before.gate === places.gate)
}

/** That nothing is strained is no news where nothing was told: a new version does not write every record of a cluster for it. */
export function sameStrains(one: readonly Strain[] = [], other: readonly Strain[] = []): boolean {
  return one.join() === other.join()
}
