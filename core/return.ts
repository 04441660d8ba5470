// When may a node that was fenced, or rebooted by itself, have workloads again? Only on its own word, checked against
// Kubernetes': its agent found nothing left of pods that no longer belong to it, its kubelet has posted a status since this
// boot, no VolumeAttachment of a freed volume names it, and the taints whose absence controllers may not have noticed yet
// have been gone for a while.
import type { Brake } from './brake.ts'
import type { Incident } from './incident.ts'
import { hasTaint, outOfServiceKey } from './clear.ts'
import { seconds } from './judge.ts'
import { sameBoot, type Boot, type Ms, type NodeSeen } from './model.ts'

/** Controllers act on their caches for so long after a taint is gone. */
const cachesOutlive: Ms = 30_000

/** What still keeps the quarantine on. Undefined: it may be lifted. */
export function awaiting(incident: Incident, node: NodeSeen, now: Ms): Brake | undefined {
  const beat = node.beat
  if (beat === undefined) return { because: 'waiting-for-boot', detail: `${node.name} has not been heard`, lifts: 'a beat of its agent' }
  if (!postedSince(node, beat.boot, beat.since)) {
    return { because: 'waiting-for-kubelet', detail: `kubelet on ${node.name} has not posted Ready since this boot`, lifts: 'Ready posted in this boot' }
  }
  const clean = beat.clean
  if (clean === undefined || clean.at < beat.since || clean.report.state === 'unknown') {
    const why = clean?.report.state === 'unknown' ? `: ${clean.report.reason}` : ''
    return { because: 'waiting-for-clean', detail: `${node.name} cannot tell yet whether it is clean${why}`, lifts: 'a clean report of its agent' }
  }
  if (clean.report.state === 'dirty') {
    const found = clean.report.leftovers
    return { because: 'waiting-for-clean', detail: `${found.length} left over on ${node.name}: ${found.slice(0, 3).map((one) => `${one.kind} ${one.path}`).join('; ')}`, lifts: 'a clean report of its agent' }
  }
  const held = node.volumes.filter((volume) => incident.status.volumes.some((freed) => freed.attachment === volume.attachment && volume.deleting))
  if (held.length > 0) return { because: 'waiting-for-volumes', detail: `${held.length} freed volumes are still being detached from ${node.name}`, lifts: 'their VolumeAttachments gone' }
  const kubernetes = node.taints.find((taint) => taint.key === 'node.kubernetes.io/not-ready' || taint.key === 'node.kubernetes.io/unreachable')
  if (kubernetes !== undefined) return { because: 'waiting-for-kubelet', detail: `Kubernetes' own ${kubernetes.key} is still on ${node.name}`, lifts: 'its removal by the node controller' }
  const gone = hasTaint(node, outOfServiceKey) ? undefined : node.firstSeen.get(`gone ${outOfServiceKey}`)
  if (incident.status.proof !== undefined && (gone === undefined || now - gone < cachesOutlive)) {
    const since = gone === undefined ? 'still on' : `off for ${seconds(now - gone)} of ${seconds(cachesOutlive)}`
    return { because: 'waiting-for-kubelet', detail: `out-of-service is ${since}: controllers' caches outlive a taint`, lifts: `${seconds(cachesOutlive)} without it` }
  }
  return undefined
}

function postedSince(node: NodeSeen, boot: Boot, since: Ms): boolean {
  return node.ready.status === 'True' && node.ready.postedAt >= since && sameBoot(node.ready.bootId, boot)
}
