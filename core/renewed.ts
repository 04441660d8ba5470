// Of a node without an agent nothing beats, and nobody can challenge it: while a proof stands its Lease is read live, and a renewal is what a
// beat is of the others. One may have been on its way as the machine went off, and only one: each bears the version that it is written over,
// so the API server takes no second one from before. A machine that was switched on since renews it too, and its kubelet has told of its boot
// by the third.
import type { Action } from './action.ts'
import { hasOurs, outOfServiceKey } from './clear.ts'
import { isWithoutAgent, leaseInterval, seconds } from './judge.ts'
import { readLive } from './look.ts'
import { sameBoot, type Ms, type NodeSeen } from './model.ts'
import { hold, untaint, type Situation } from './situation.ts'

export const movesToldApart = 3
const readEvery: Ms = 5_000
const doubtedEvery: Ms = 2_000

/** Nothing goes on while it is renewed, and the proof is shown false by the third time. Undefined: nothing speaks against it. */
export function renewed({ on, incident, node }: Situation, provenAt: Ms): Action[] | undefined {
  if (!isWithoutAgent(node)) return undefined
  const since = movesSince(node, provenAt)
  if (since === 0 || !goesOn(node)) return undefined
  const { lease, readAt = -Infinity } = node
  if (since === movesToldApart && readAt > (lease?.unmovedSince ?? Infinity) && sameBoot(node.bootId, incident.boot)) {
    return [{ do: 'void', node: node.name, incident: incident.name, evidence: `its kubelet renewed its Lease ${movesToldApart} times after the proof, and its Node, read live after that, tells of the same boot` }]
  }
  const detail = `kubelet on ${node.name} renewed its Lease after the proof`
  // It is Kubernetes' leave to detach by force, and the machine may run; it is put on again if the word was an old one.
  const off = hasOurs(node, outOfServiceKey) ? [untaint(node, outOfServiceKey, detail, incident)] : []
  return [...off, ...readLive(node, on.now, doubtedEvery), hold(node.name, { because: 'proof-doubted', detail, lifts: `its silence for ${seconds(leaseInterval)}; renewed again and again, and its Node telling of the same boot, it shows the proof false` }, incident)]
}

/** Beside what follows from the proof. */
export function readRenewals({ on, node }: Situation): Action[] {
  return isWithoutAgent(node) ? readLive(node, on.now, readEvery).filter((look) => look.do === 'readLease') : []
}

function movesSince({ lease }: NodeSeen, since: Ms): number {
  return lease?.moves?.filter((at) => at >= since).length ?? 0
}

/** Whether it goes on: it was not seen to stand still for a whole interval since. */
function goesOn({ lease }: NodeSeen): boolean {
  return lease !== undefined && lease.askedAt - lease.unmovedSince < leaseInterval
}
