// How far the word of a path is trusted: by its audit in this boot, by the identity that its device tells, by the marks on it.
import type { IncidentStatus } from './incident.ts'
import { kubeletsLastWord } from './judge.ts'
import { sameMachine } from './machine-id.ts'
import { kubeletsBootKey, sameBoot, type Boot, type Method, type Ms, type NodeSeen, type PathAudit, type Reading } from './model.ts'
import { readingsOf } from './reading.ts'

/** Asked of five thousand nodes at a tick, so it leaves nothing behind. */
export function auditOf(node: NodeSeen, method: Method, boot: Boot): PathAudit | undefined {
  for (const path of node.record?.paths ?? none) {
    if (path.method !== method.name || path.digest !== method.digest || !sameBoot(path.boot, boot)) continue
    // A twin that came after the audit takes away what it proved.
    return path.identity === 'proven' && node.twin !== undefined ? { ...path, identity: 'unproven' } : path
  }
  return undefined
}

const none: readonly PathAudit[] = []

/** What its audits said was too old already when the node was last heard: since then none can have been made. */
export function isStale(node: NodeSeen): boolean {
  return heardAt(node) > (node.auditedUntil ?? Infinity)
}

/** The last word of its agent or, where it has none, of its kubelet. */
export function heardAt(node: NodeSeen): Ms {
  return node.beat?.at ?? Math.max(node.seenAt, kubeletsLastWord(node))
}

/** How a path stands, by its audit in the present boot. */
export function pathState(node: NodeSeen, method: Method): PathAudit['state'] | 'stale' | 'unaudited' {
  const audit = auditOf(node, method, node.beat?.boot ?? node.record?.boot ?? '')
  return audit?.state === 'verified' && isStale(node) ? 'stale' : audit?.state ?? 'unaudited'
}

/** Whether the path is known to lead to this machine: by its audit or, where nobody has one of this boot any more, by what its device
 *  tells now. */
export function isIdentified(node: NodeSeen, method: Method, boot: Boot): boolean {
  const audit = auditOf(node, method, boot)
  if (audit !== undefined) return audit.identity === 'proven'
  if (method.claimed === true || node.machine === '' || node.twin !== undefined) return false
  const told = readingsOf(node, method).findLast((reading) => toldMachine(reading, node) !== undefined)
  return told !== undefined && sameMachine(toldMachine(told, node) ?? '', node.machine)
}

/** The machine that its device speaks of. A controller's own GUID is the machine's UUID on many boards, and on others one that its firmware
 *  made up: so one that is this machine's tells it, and any other tells nothing. */
export function toldMachine({ machine, controller = '' }: Pick<Reading, 'machine' | 'controller'>, node: Pick<NodeSeen, 'machine'>): string | undefined {
  return machine ?? (node.machine !== '' && sameMachine(controller, node.machine) ? controller : undefined)
}

/** It outlives the boot in which the path was found wrong. */
function markOf(node: NodeSeen, method: Method): PathAudit | undefined {
  return node.record?.paths.find((path) => path.state === 'marked' && path.method === method.name && path.digest === method.digest)
}

/** Where a path is refused whose identity is not proven. */
export function unidentified({ twin }: NodeSeen, method: Method): string {
  return `nothing proves that ${method.name} leads to this machine${twin === undefined ? '' : `: ${twin} bears the same machine id`}`
}

/** Whether the device said in it that it speaks of another machine: two cables were swapped, or a slot holds another board. */
export function isStrange({ machine }: Pick<Reading, 'machine'>, node: Pick<NodeSeen, 'machine'>): boolean {
  return machine !== undefined && node.machine !== '' && !sameMachine(machine, node.machine)
}

export const strangeness = (method: string): string => `${method} answers for another machine`

/** Of `firstSeen`: when a method's device, configured so, was last read off. */
export const lastOffKey = (method: string, digest: string): string => `last off ${method} ${digest}`

/** Of `firstSeen`: since when it has read nothing but off, or nothing at all. */
export const offSinceKey = (method: string, digest: string): string => `off since ${method} ${digest}`

/** Why the method's word is none on this node's power, whatever it says. Undefined: it once said on of this very boot, and
 *  speaks of this machine still. `of`: the record of an incident of that boot. An *off* by this very configuration stands on it
 *  only because whoever led then had read that *on*, and this outlives him where nothing else does that he knew it by. */
export function untrusted(node: NodeSeen, method: Method, audit: PathAudit | undefined, of: OnRecord = bare): string | undefined {
  return misled(node, method, audit) ?? (saidOn(node, method, audit, of) ? undefined : `${method.name} was never read on in this boot`)
}

/** What is known of the paths by whoever led before. */
type OnRecord = Pick<IncidentStatus, 'attempts' | 'offAtFirst'>
const bare: OnRecord = { attempts: [] }

/** It leads elsewhere, or has lied. */
function misled(node: NodeSeen, method: Method, audit: PathAudit | undefined): string | undefined {
  const mark = markOf(node, method)
  if (mark !== undefined) return `${method.name} is marked: ${mark.identity === 'mismatch' ? 'an off by it struck another machine' : 'a proof made by it was shown false'}`
  if (audit?.state === 'mismatch') return `${method.name} said off while this boot was beating`
  if (method.claimed === true && (audit === undefined || audit.identity === 'mismatch')) return `${method.name} is the Node's own claim, and no record of the cloud was seen to bear the address of its beats`
  const last = readingsOf(node, method).at(-1)
  // Whatever it was at its audit: an order would strike whom it leads to now.
  return audit?.identity === 'mismatch' || (last !== undefined && isStrange(last, node)) ? strangeness(method.name) : undefined
}

function saidOn(node: NodeSeen, method: Method, audit: PathAudit | undefined, of: OnRecord): boolean {
  if (audit?.state === 'verified' || of.attempts.some(({ action, method: name, digest }) => action === 'off' && name === method.name && digest === method.digest)) return true
  const since = bootSince(node)
  const offAt = offInThisBoot(node, method) ?? Infinity
  // What says on after it said off was switched on meanwhile: it is another boot that has power, and it is still coming up. Or it was
  // another machine's all the time. Where another leader heard the off nobody here can tell which was first, but what was said while
  // the boot was heard.
  const until = isNoted(method, of) ? Math.min(offAt, node.beat?.at ?? -Infinity) : offAt
  return readingsOf(node, method).some(({ state, startedAt }) => state === 'on' && startedAt >= since && startedAt < until)
}

/** Its device said off before anybody had read it on in this boot, as far as is known here, and the record does not say so yet. */
export function isOffAtFirst(node: NodeSeen, method: Method, audit: PathAudit | undefined, of: OnRecord): boolean {
  return offInThisBoot(node, method) !== undefined && !isNoted(method, of) && misled(node, method, audit) === undefined && !saidOn(node, method, audit, of)
}

function isNoted({ name, digest }: Method, { offAtFirst = [] }: OnRecord): boolean {
  return offAtFirst.some((one) => one.method === name && one.digest === digest)
}

function bootSince(node: NodeSeen): Ms {
  return node.beat?.since ?? node.firstSeen.get(kubeletsBootKey) ?? -Infinity
}

function offInThisBoot(node: NodeSeen, { name, digest }: Method): Ms | undefined {
  const offAt = node.firstSeen.get(lastOffKey(name, digest))
  return offAt !== undefined && offAt >= bootSince(node) ? offAt : undefined
}
