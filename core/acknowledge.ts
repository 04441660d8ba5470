// A person's word that a machine is off: of one boot, and good until an hour that the person named. It stands in for a device that
// cannot tell, so nothing that can tell may speak against it: not the node itself, not its kubelet, not one of its devices. What
// the person could not know is looked at once more, live, before each thing that follows from the word.
import type { Incident } from './incident.ts'
import { powerMethods } from './isolation.ts'
import { evictionKey, sameBoot, type Boot, type Method, type Ms, type NodeSeen, type Reading } from './model.ts'

/** Nobody can promise for longer what becomes of a machine. */
const longest: Ms = 24 * 3_600_000
/** kubelet renews every 10 s; the margin covers a slow API server. */
const leaseInterval: Ms = 12_500

/** A person's word, or that of a taint, which stands for as long as the taint does. */
export interface Word {
  readonly boot: Boot
  readonly by: string
  readonly reason: string
  readonly until?: string
}

/** A taint by which somebody says that a machine is off. */
export const forceEvictionKey = 'holdfast.dev/force-eviction'
/** Who set the taint, as the API server wrote it down beside it. */
export const evictedByKey = 'holdfast.dev/force-eviction-by'
export const cloudShutdownKey = 'node.cloudprovider.kubernetes.io/shutdown'

/** The word on record counts before the taint's: it names more. */
export function wordOf({ acknowledge, boot, policy }: Incident, node: NodeSeen): Word | undefined {
  if (acknowledge !== undefined) return acknowledge
  if (node.taints.some(({ key }) => key === forceEvictionKey)) return { boot, by: node.annotations[evictedByKey] ?? '', reason: forceEvictionKey }
  if (policy.cloudShutdown === 'trust' && node.taints.some(({ key }) => key === cloudShutdownKey)) return { boot, by: 'the cloud controller', reason: cloudShutdownKey }
  return undefined
}

/** How a proof names it: one that was shown false takes this very word with it. */
export function sourceOf({ by, reason, until }: Word): string {
  return until === undefined ? `${reason} by ${by}` : `acknowledged by ${by} until ${until}`
}

/** Why the word counts for nothing, or for nothing any more. Undefined: nothing speaks against it. */
export function doubtOfWord(incident: Incident, node: NodeSeen, now: Ms): string | undefined {
  const { boot, status } = incident
  const word = wordOf(incident, node)
  if (word === undefined) return 'nobody says any more that the machine is off'
  if (word.by === '') return `nobody is named who set ${word.reason}`
  if (word.boot !== boot) return `it is of boot ${word.boot}, and this incident is of boot ${boot}`
  if (status.voided.some(({ proof }) => proof.evidence.some(({ source }) => source === sourceOf(word)))) return 'it was shown false: the node was heard after it'
  const over = overdue(incident, word, node, now)
  if (over !== undefined) return over
  const since = saidAt(incident, node, now)
  const byCloud = word.reason === cloudShutdownKey && word.until === undefined
  if (byCloud && !powerMethods(node).some((method) => saidSince(node, method, since).at(-1)?.state === 'off')) return 'no device of the node says off too'
  // A proof that it made stands by what whoever led then had heard, and a cloud's word by what its device says now.
  const proves = status.proof?.evidence.some(({ source }) => source === sourceOf(word)) === true
  if (since === -Infinity && !proves && !byCloud) return 'it was said before this replica began, and nobody here knows what was heard after it'
  const on = powerMethods(node).find((method) => saidSince(node, method, since).findLast(({ state }) => state !== 'unknown')?.state === 'on')
  return spokenAfterWord(incident, node, now) ?? (on === undefined ? undefined : `${on.name} says on`)
}

/** What the node itself, or its kubelet, has said after it. */
export function spokenAfterWord(incident: Incident, node: NodeSeen, now: Ms): string | undefined {
  const since = saidAt(incident, node, now)
  return spokenSince(node, incident.boot, since) ?? sealedSince(node, since)
}

function overdue({ name }: Incident, { until }: Word, node: NodeSeen, now: Ms): string | undefined {
  if (until === undefined) return undefined
  const expiresAt = node.firstSeen.get(`expires ${name} ${until}`) ?? -Infinity
  if (now >= expiresAt) return `it ran out at ${until}`
  return expiresAt - now > longest ? `it would last until ${until}, and a word lasts a day at most` : undefined
}

/** What the node itself said, or its kubelet. Only words after `since`: what was said before may be why the person went to look. */
export function spokenSince(node: NodeSeen, boot: Boot, since: Ms): string | undefined {
  if (node.bootId !== '' && !sameBoot(node.bootId, boot)) return `its Node tells of boot ${node.bootId}`
  if ((node.beat?.at ?? -Infinity) > since) return 'the node was heard after it'
  if ((node.probe?.spokeAt ?? -Infinity) > since) return 'the kubelet port has answered after it'
  // Not only what was posted after it: who acknowledges within the first minute can wait for the rest of it.
  if (node.ready.status === 'True') return 'Ready has not left True'
  return node.lease?.moved === true && (node.lease.movedAfter ?? -Infinity) >= since ? 'kubelet has renewed its Lease after it' : undefined
}

/** What the node itself said to others, by its own seal: whoever asks may be the only one that does not hear it. */
export function sealedSince({ witnesses }: NodeSeen, since: Ms): string | undefined {
  const hears = witnesses.find(({ word, proven, answeredAt }) => word === 'hears' && proven && answeredAt > since)
  return hears && `${hears.witness} has heard the node itself after it`
}

/** When somebody last asked for a seal that the node then gave. */
export function sealAskedAt({ witnesses }: NodeSeen): Ms {
  return Math.max(-Infinity, ...witnesses.filter(({ word, proven }) => word === 'hears' && proven).map(({ askedAt }) => askedAt))
}

/** Who brought the seal of this very boot, on a challenge of after that. */
export function sealBroughtBy({ witnesses }: NodeSeen, boot: Boot, since: Ms): string | undefined {
  return witnesses.find(({ word, proven, boot: of, askedAt }) => word === 'hears' && proven && of !== undefined && sameBoot(of, boot) && askedAt > since)?.witness
}

/** What has not been looked at since, or too long ago. Undefined: everything that could speak was asked. */
export function unasked(incident: Incident, node: NodeSeen, now: Ms, within: Ms): string | undefined {
  const silent = unread(node, now, within)
  if (silent !== undefined) return silent
  const mute = powerMethods(node).find((method) => saidSince(node, method, saidAt(incident, node, now)).length === 0)
  return mute === undefined ? undefined : `${mute.name} was not asked after it`
}

/** Of what speaks for a machine whose devices do not, or may not. */
export function unread({ readAt = -Infinity, lease }: NodeSeen, now: Ms, within: Ms): string | undefined {
  if (now - readAt > within) return 'its Node was not read just now'
  if (lease === undefined || now - lease.askedAt > within) return 'its Lease was not read just now'
  return lease.askedAt - lease.unmovedSince < leaseInterval ? 'its Lease was not yet watched for a whole interval' : undefined
}

/** When this process first saw the word: nobody's clock but ours tells what came after it. -Infinity: it stood there already when this process began. */
function saidAt({ name, acknowledge }: Incident, node: NodeSeen, now: Ms): Ms {
  return node.firstSeen.get(acknowledge === undefined ? evictionKey : `acknowledged ${name} ${acknowledge.until}`) ?? now
}

function saidSince(node: NodeSeen, method: Method, since: Ms): readonly Reading[] {
  return node.readings.filter((reading) => reading.method === method.name && reading.digest === method.digest && reading.startedAt >= since)
}
