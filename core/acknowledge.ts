// A person's word that a machine is off: of one boot, and good until an hour that the person named. It stands in for a device that
// cannot tell, so nothing that can tell may speak against it: not the node itself, not its kubelet, not one of its devices. What
// the person could not know is looked at once more, live, before each thing that follows from the word.
import type { Acknowledgement, Incident } from './incident.ts'
import { sameBoot, type Boot, type Method, type Ms, type NodeSeen, type Reading } from './model.ts'

/** Nobody can promise for longer what becomes of a machine. */
const longest: Ms = 24 * 3_600_000
/** kubelet renews every 10 s; the margin covers a slow API server. */
const leaseInterval: Ms = 12_500

/** How a proof names it: one that was shown false takes this very word with it. */
export function sourceOf({ by, until }: Acknowledgement): string {
  return `acknowledged by ${by} until ${until}`
}

/** Why the word counts for nothing, or for nothing any more. Undefined: nothing speaks against it. */
export function doubtOfWord(incident: Incident, node: NodeSeen, now: Ms): string | undefined {
  const { acknowledge: word, name, boot, status } = incident
  if (word === undefined) return 'nobody says any more that the machine is off'
  if (word.boot !== boot) return `it is of boot ${word.boot}, and this incident is of boot ${boot}`
  if (status.voided.some(({ proof }) => proof.evidence.some(({ source }) => source === sourceOf(word)))) return 'it was shown false: the node was heard after it'
  const expiresAt = node.firstSeen.get(`expires ${name} ${word.until}`) ?? -Infinity
  if (now >= expiresAt) return `it ran out at ${word.until}`
  if (expiresAt - now > longest) return `it would last until ${word.until}, and a word lasts a day at most`
  return spokenAgainst(node, boot, saidAt(incident, node, now))
}

/** Only words after it: what was said before may be why the person went to look. */
function spokenAgainst(node: NodeSeen, boot: Boot, since: Ms): string | undefined {
  if (node.bootId !== '' && !sameBoot(node.bootId, boot)) return `its Node tells of boot ${node.bootId}`
  if ((node.beat?.at ?? -Infinity) > since) return 'the node was heard after it'
  if ((node.probe?.spokeAt ?? -Infinity) > since) return 'the kubelet port has answered after it'
  // Not only what was posted after it: who acknowledges within the first minute can wait for the rest of it.
  if (node.ready.status === 'True') return 'Ready has not left True'
  if (node.lease?.moved === true && (node.lease.movedAfter ?? -Infinity) >= since) return 'kubelet has renewed its Lease after it'
  const on = node.path.levels.flat().find((method) => saidSince(node, method, since).findLast(({ state }) => state !== 'unknown')?.state === 'on')
  return on === undefined ? undefined : `${on.name} says on`
}

/** What has not been looked at since, or too long ago. Undefined: everything that could speak was asked. */
export function unasked(incident: Incident, node: NodeSeen, now: Ms, within: Ms): string | undefined {
  const { readAt = -Infinity, lease } = node
  if (now - readAt > within) return 'its Node was not read just now'
  if (lease === undefined || now - lease.askedAt > within) return 'its Lease was not read just now'
  if (lease.askedAt - lease.unmovedSince < leaseInterval) return 'its Lease was not yet watched for a whole interval'
  const mute = node.path.levels.flat().find((method) => saidSince(node, method, saidAt(incident, node, now)).length === 0)
  return mute === undefined ? undefined : `${mute.name} was not asked after it`
}

/** When this process first saw the word: nobody's clock but ours tells what came after it. */
function saidAt({ name, acknowledge }: Incident, node: NodeSeen, now: Ms): Ms {
  return node.firstSeen.get(`acknowledged ${name} ${acknowledge?.until}`) ?? now
}

function saidSince(node: NodeSeen, method: Method, since: Ms): readonly Reading[] {
  return node.readings.filter((reading) => reading.method === method.name && reading.digest === method.digest && reading.startedAt >= since)
}
