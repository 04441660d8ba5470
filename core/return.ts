// When may a node that was fenced, or rebooted by itself, have workloads again? Only on its own word, checked against
// Kubernetes': its agent found nothing left of pods that no longer belong to it, its kubelet has posted a status since this
// boot, no VolumeAttachment of a freed volume names it, and the taints whose absence controllers may not have noticed yet
// have been gone for a while. A node that has no agent says less: a new boot has mounted nothing that was mounted before it, and
// its kubelet tells what it uses; of an old boot nobody can tell.
import type { Leftover } from './beat.ts'
import { unlistable, type Brake } from './brake.ts'
import { given, lastProvenAt, type Incident } from './incident.ts'
import { foreignTaint, hasTaint, outOfServiceKey } from './clear.ts'
import { isWithoutAgent, seconds } from './judge.ts'
import { sameBoot, type BeatSeen, type CleanSeen, type Ms, type NodeSeen } from './model.ts'

/** Controllers act on their caches for so long after a taint is gone. */
const cachesOutlive: Ms = 30_000

/** It beats once a second; one beat may be lost, and one late. */
const beatsWithin: Ms = 3_000

/** What still keeps the quarantine on. Undefined: it may be lifted. No incident: the one that put it on is not kept any more. */
export function awaiting(incident: Incident | undefined, node: NodeSeen, now: Ms): Brake | undefined {
  return (isWithoutAgent(node) ? kubeletsWord(incident, node, now) : agentsWord(incident, node, now)) ?? controllers(incident, node, now)
}

/** An agent that comes up in a new boot is heard within this span of its kubelet's first word. */
const agentComesWithin: Ms = 120_000

function kubeletsWord(incident: Incident | undefined, node: NodeSeen, now: Ms): Brake | undefined {
  const { name, ready } = node
  if (incident === undefined) return { because: 'waiting-for-boot', detail: `${name} has no agent, and nothing on record says what was freed of it`, lifts: 'a person who takes the quarantine off' }
  if (ready.status !== 'True' || ready.bootId === '' || !sameBoot(ready.bootId, node.bootId)) {
    return { because: 'waiting-for-kubelet', detail: `kubelet on ${name} has not posted Ready since this boot`, lifts: 'Ready posted in this boot' }
  }
  if (sameBoot(ready.bootId, incident.boot)) {
    if (incident.status.proof === undefined && incident.status.voided.length === 0) return undefined
    return { because: 'waiting-for-boot', detail: `${name} has no agent, and in its old boot nobody can tell what is left over of what was freed`, lifts: 'its next boot' }
  }
  const wait = Math.max(ready.since, provenAt(incident, node) ?? -Infinity) + agentComesWithin - now
  if (wait > 0) return { because: 'waiting-for-boot', detail: `no agent of ${name} is heard in its new boot; for another ${seconds(wait)} one may come`, lifts: 'that time over, or a beat of its agent' }
  const used = incident.status.volumes.filter(({ attachment }) => node.inUse.has(attachment) && !node.volumes.some((volume) => volume.attachment === attachment && !volume.deleting))
  return used.length === 0 ? undefined : { because: 'waiting-for-volumes', detail: `kubelet on ${name} says that it uses ${used.length} volumes that were freed`, lifts: 'its word that it does not' }
}

function agentsWord(incident: Incident | undefined, node: NodeSeen, now: Ms): Brake | undefined {
  const beat = node.beat
  if (beat === undefined) return { because: 'waiting-for-boot', detail: `${node.name} has not been heard`, lifts: 'a beat of its agent' }
  // A Lease or a status may keep a node alive whose agent is silent; what its agent said of it is old by then.
  if (now - beat.at > beatsWithin) return { because: 'waiting-for-boot', detail: `the agent of ${node.name} is silent for ${seconds(now - beat.at)}`, lifts: 'a beat of its agent' }
  if (!kubeletBack(incident, node, beat)) {
    return { because: 'waiting-for-kubelet', detail: `kubelet on ${node.name} has not posted Ready since this boot`, lifts: 'Ready posted in this boot' }
  }
  return lacksClean(incident, node, beat)
}

function controllers(incident: Incident | undefined, node: NodeSeen, now: Ms): Brake | undefined {
  const held = node.volumes.filter((volume) => volume.deleting && incident?.status.volumes.some((freed) => freed.attachment === volume.attachment))
  if (held.length > 0) return { because: 'waiting-for-volumes', detail: `${held.length} freed volumes are still being detached from ${node.name}`, lifts: 'their VolumeAttachments gone' }
  const kubernetes = node.taints.find((taint) => taint.key === 'node.kubernetes.io/not-ready' || taint.key === 'node.kubernetes.io/unreachable')
  if (kubernetes !== undefined) return { because: 'waiting-for-controllers', detail: `Kubernetes' own ${kubernetes.key} is still on ${node.name}`, lifts: 'its removal by the node controller' }
  const foreign = foreignTaint(node)
  if (foreign !== undefined) return foreign
  const gone = hasTaint(node, outOfServiceKey) ? undefined : node.firstSeen.get(`gone ${outOfServiceKey}`)
  if (freedByForce(incident) && (gone === undefined || now - gone < cachesOutlive)) {
    const since = gone === undefined ? 'still on' : `off for ${seconds(now - gone)} of ${seconds(cachesOutlive)}`
    return { because: 'waiting-for-controllers', detail: `out-of-service is ${since}: controllers' caches outlive a taint`, lifts: `${seconds(cachesOutlive)} without it` }
  }
  return undefined
}

/** Undefined: its agent has found nothing left over since anything was cut or freed. */
export function lacksClean(incident: Incident | undefined, node: NodeSeen, beat: BeatSeen): Brake | undefined {
  const { clean } = beat
  if (clean === undefined || asOf(clean) < worldStoodStill(incident, node, beat) || clean.report.state === 'unknown') {
    // Without a list of what belongs there its agent is asked nothing.
    const refused = unlistable(node)
    if (refused !== undefined) return { ...refused, because: 'waiting-for-clean', detail: `${node.name} is not asked whether it is clean: ${refused.detail}` }
    const why = clean?.report.state === 'unknown' ? `: ${clean.report.reason}` : ''
    return { because: 'waiting-for-clean', detail: `${node.name} cannot tell yet whether it is clean${why}`, lifts: 'a clean report of its agent' }
  }
  if (clean.report.state === 'dirty') {
    const found = clean.report.leftovers
    return { because: 'waiting-for-clean', detail: `${found.length} left over on ${node.name}: ${found.slice(0, 3).map(leftover).join('; ')}`, lifts: 'a clean report of its agent' }
  }
  return undefined
}

/** Since when it could have become clean, and did not: nothing was cut, freed or silent any more. Undefined: it is clean, or nobody hears it. */
export function uncleanSince(incident: Incident | undefined, node: NodeSeen): Ms | undefined {
  const { beat } = node
  if (beat === undefined || lacksClean(incident, node, beat) === undefined) return undefined
  return Math.max(worldStoodStill(incident, node, beat), beat.lapse?.to ?? -Infinity, beat.clean?.uncleanSince ?? -Infinity)
}

/** It is asked every five seconds, and tells at once or that it cannot. */
const wordHolds: Ms = 30_000

/** By a word of its agent that is of now, and of after the last thing that was cut or freed. That nobody could ask it is none. */
export function isToldUnclean(incident: Incident | undefined, node: NodeSeen, now: Ms): boolean {
  const { beat } = node
  const clean = beat?.clean
  return beat !== undefined && clean !== undefined && clean.report.state !== 'clean' && now - clean.at < wordHolds && asOf(clean) >= worldStoodStill(incident, node, beat)
}

/** For people. An instant and no age: it says the same for as long as it is so. */
function leftover({ kind, path, driver, since, fault }: Leftover): string {
  const whose = driver === undefined ? '' : ` of ${driver}`
  return `${kind} ${path}${whose}${since === undefined ? '' : ` since ${new Date(since).toISOString().slice(0, 19)}Z`}${fault === undefined ? '' : ` (${fault})`}`
}

/** What was freed after that it may call its own. */
export function asOf(clean: CleanSeen): Ms {
  return clean.asOf ?? clean.at
}

/** Whether out-of-service may have stood: it goes with a proof, and a proof that was shown false had it too. */
function freedByForce(incident: Incident | undefined): boolean {
  return incident === undefined || incident.status.proof !== undefined || incident.status.voided.length > 0
}

/** A clean report counts from when nothing was cut or freed any more: what was freed after it may be left over. */
function worldStoodStill(incident: Incident | undefined, node: NodeSeen, beat: BeatSeen): Ms {
  const orders = (incident === undefined ? [] : given(incident.status)).map((attempt) => node.firstSeen.get(`ended ${attempt.id}`))
  const freed = freedByForce(incident) ? [provenAt(incident, node), node.firstSeen.get(`gone ${outOfServiceKey}`)] : []
  return Math.max(beat.since, ...[...orders, ...freed].filter((at) => at !== undefined))
}

/** When this replica first saw the latest proof, standing or void. */
function provenAt(incident: Incident | undefined, node: NodeSeen): Ms | undefined {
  return incident && lastProvenAt(incident, node.firstSeen)
}

/** In a new boot a status that bears its boot id is of that boot; where machines share the kernel's, one that was posted after
 *  the old boot was proven off. In the old one Ready may be a word from before: the agent beside the kubelet must hear it. */
function kubeletBack(incident: Incident | undefined, node: NodeSeen, beat: BeatSeen): boolean {
  const { ready } = node
  if (ready.status !== 'True' || !sameBoot(ready.bootId, beat.boot)) return false
  // Where its health is told elsewhere than usual, a status that came after the agent's first beat is as good.
  if (incident === undefined) return beat.kubelet === 'ok' || (beat.kubelet === 'unknown' && ready.postedAt >= beat.since)
  if (sameBoot(beat.boot, incident.boot)) return beat.kubelet === 'ok'
  return !sameBoot(ready.bootId, incident.boot) || ready.postedAt >= (provenAt(incident, node) ?? beat.since)
}
