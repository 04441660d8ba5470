// A machine whose crash kernel writes its memory down. It announces itself by a word that names no boot and that anybody could send who can send from
// its address. So it is good for two things. Power waits for it, as long as the operator allows. And where the policy accepts it, it is the one piece
// that silence alone lacks: that the kernel which ran the node's pods is dead.
//
// A crash kernel has an address, since it sends; and nothing listens on it, so that it refuses the kubelet port, as a kernel does whose
// kubelet and agent are dead and whose containers write on (`docs/decisions/0022-kdump.md`). What tells them apart is what came before: a
// machine that crashes is silent first, for as long as its crash kernel needs to come up. So a word counts only behind a silence in which an
// audited port did not even refuse, and that came straight after the last beat.
import { sealedSince } from './acknowledge.ts'
import type { Brake } from './brake.ts'
import type { Found, Incident } from './incident.ts'
import { lastBeat, onItsWay, seconds } from './judge.ts'
import { sameBoot, seenAs, type Ms, type NodeSeen, type Self } from './model.ts'

/** Two questions nearer than this are one. */
const apart: Ms = 1_000

/** Of `firstSeen`: when a crash kernel's word was first seen on the record. */
export const dumpKey = (incident: string): string => `dump ${incident}`

/** Undefined: its power need not wait, or not any more. `wanted`: it is to be fenced though it is heard. */
export function dumping(incident: Incident, node: NodeSeen, self: Self, now: Ms, wanted: boolean): Brake | undefined {
  const { dumpsWithin, announcesWithin = 0 } = node.path
  if (dumpsWithin === undefined) return undefined
  const since = announcedAt(incident, node)
  const left = since === undefined ? lastBeat(node, self) + announcesWithin - now : since + dumpsWithin - now
  // It may beat all the while: the time after its last beat would never be over.
  if (left <= 0 || (since === undefined && wanted)) return undefined
  return since === undefined
    ? { because: 'dumping', detail: `a crash kernel of it has another ${seconds(left)} to announce itself (kdump_within=)`, lifts: 'its word, that time over, or a beat of the node' }
    : { because: 'dumping', detail: `its crash kernel announced itself ${seconds(now - since)} ago, and has ${seconds(dumpsWithin)} for its dump (kdump=)`, lifts: 'that time over, or its next boot' }
}

/** By its word as it was heard here, or by whoever wrote it on the record. Whoever beats since is no crash kernel, whatever the word was. */
function announcedAt({ name }: Incident, { dump, beat, firstSeen }: NodeSeen): Ms | undefined {
  const words = [dump?.since, firstSeen.get(dumpKey(name))].filter((at) => at !== undefined && at > (beat?.at ?? -Infinity))
  return words.length === 0 ? undefined : Math.min(...words as Ms[])
}

/** Why what was heard is not taken for this boot's crash kernel. Undefined: it is. */
export function doubtOfDump(node: NodeSeen, self: Self, incident?: Incident): string | undefined {
  const { beat, dump, path, probe, witnesses } = node
  if (path.dumpsWithin === undefined) return 'no crash kernel of it is waited for (kdump=)'
  if (dump === undefined) return 'no crash kernel was heard from its address'
  if (beat === undefined) return 'this replica never heard the node itself'
  if (incident !== undefined && !sameBoot(beat.boot, incident.boot)) return 'another boot of it was heard last'
  if (dump.at <= beat.at) return 'the node was heard after its crash kernel'
  if (dump.at <= self.awakeSince + onItsWay) return 'its crash kernel was heard as this replica woke from a stall, and nobody knows how old that word was'
  const doubt = isTold(node, incident) ? undefined : doubtOfSilence(node)
  if (doubt !== undefined) return doubt
  const since = beat.at + onItsWay
  if ((probe?.acceptedAt ?? -Infinity) > since) return 'the kubelet port accepts, as no crash kernel does'
  const hears = witnesses.find(({ word, proven, answeredAt }) => word === 'hears' && proven && answeredAt > since)
  return hears === undefined ? undefined : `${hears.witness} has heard the node itself since its last beat`
}

/** Whether what its port refuses is the answer of its crash kernel, by what was heard here or, to a leader that began after the crash, by what stands
 *  on record. That is no proof; but one that hangs would keep its node *ill* for ever, whatever the policy makes of its word. */
export function hasCrashed(node: NodeSeen, self: Self, incident?: Incident): boolean {
  const { path, dump, probe, beat, firstSeen } = node
  if (path.dumpsWithin === undefined) return false
  if (dump !== undefined && doubtOfDump(node, self, incident) === undefined) return true
  if (incident === undefined || !isTold(node, incident) || (beat !== undefined && !sameBoot(beat.boot, incident.boot))) return false
  const since = firstSeen.get(dumpKey(incident.name)) ?? self.awakeSince
  return (probe?.acceptedAt ?? -Infinity) <= since && sealedSince(node, since) === undefined
}

/** Why the machine may have gone on after its last beat, under the kernel that ran. Undefined: it fell silent first, and then came the word. */
export function doubtOfSilence({ beat, dump, probe, record }: NodeSeen): string | undefined {
  const fell = probe?.fell
  if (beat === undefined || dump === undefined || fell === undefined || fell.at <= beat.at) return unsilenced
  if (record?.probe?.answered !== true || !sameBoot(record.probe.boot, beat.boot)) return 'the kubelet port was not heard to answer at its last audit in this boot, so its silence proves nothing'
  if (fell.spokeAt > beat.at + onItsWay) return 'the kubelet port spoke after its last beat, and fell silent only then'
  // One question alone may have been lost on its way.
  return Math.min(fell.until, dump.at) - fell.at < apart ? unsilenced : undefined
}

const unsilenced = 'the kubelet port was not silent between its last beat and the word: what refuses may be the kernel that ran'

/** Whoever led then saw the silence, and this replica has heard no beat since that stands on record. */
function isTold({ firstSeen, beat }: NodeSeen, incident: Incident | undefined): boolean {
  return incident?.status.dump?.afterSilence === true && (firstSeen.get(dumpKey(incident.name)) ?? -Infinity) > (beat?.at ?? -Infinity)
}

/** What the word rests on, for the record. */
export function evidenceOfDump({ beat, dump, probe }: NodeSeen, self: Self, { status }: Incident): readonly Found[] {
  const fellAt = probe?.fell?.at ?? -Infinity
  const own = fellAt > (beat?.at ?? -Infinity)
  return [
    { source: 'crash kernel', word: `announced itself from ${dump?.from ?? ''}, heard by ${self.replica}`, at: dump?.at ?? -Infinity },
    { source: 'beat', word: 'the last one', at: beat?.at ?? -Infinity },
    { source: 'probe', word: own ? 'silent, not even refused' : `silent before the word, as ${status.dump?.by} wrote it down`, at: own ? fellAt : status.dump?.at ?? '' },
  ]
}

/** The node as it is to be judged once its crash kernel is believed: what that refuses is no word of the node's. */
export function withoutRefusals(node: NodeSeen): NodeSeen {
  if (node.probe === undefined) return node
  const { spokeAt: _, ...probe } = node.probe
  const { acceptedAt, word } = probe
  return seenAs(node, { probe: { ...probe, word: word === 'refused' ? 'silent' : word, ...(acceptedAt === undefined ? {} : { spokeAt: acceptedAt }) } })
}
