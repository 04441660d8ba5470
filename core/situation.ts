// One open incident and its node, as the snapshot shows them, and the ways to say what is wanted of them.
import type { Deed, HoldAction } from './action.ts'
import type { Brake } from './brake.ts'
import type { IdentitySeen, Incident, IncidentStatus, Outcome } from './incident.ts'
import { isWithoutAgent, lastBeat, lastWord, onItsWay } from './judge.ts'
import { sameBoot, type Boot, type NodeName, type NodeSeen } from './model.ts'
import { isStrange } from './path.ts'
import type { Survey } from './survey.ts'

export interface Situation {
  readonly on: Survey
  readonly incident: Incident
  readonly node: NodeSeen
  readonly status: IncidentStatus
  /** What speaks now: nothing, the boot the incident is about, or another one. */
  readonly heard: 'nothing' | 'old boot' | 'new boot'
}

export function situationOf(on: Survey, incident: Incident, node: NodeSeen): Situation {
  return { on, incident, node, status: incident.status, heard: heard(on, incident, node) }
}

function heard(on: Survey, incident: Incident, node: NodeSeen): Situation['heard'] {
  const { beat } = node
  const beats = beat !== undefined && beat.at >= on.seen.self.awakeSince && !on.verdicts.has(node.name)
  if (beats && !sameBoot(beat.boot, incident.boot)) return 'new boot'
  // The agent is a pod: kubelet is there before it, and mounts.
  if (postedLast(node) && !sameBoot(node.ready.bootId, incident.boot)) return 'new boot'
  if (!beats && !speaksWithoutAgent(on, incident, node)) return 'nothing'
  // A word counts only if it was spoken after what it would refute: a verified off is not refuted by a beat from before it. One that was
  // on its way to us then is none either; no proof is made before the devices have said off after it.
  const last = incident.status.attempts.findLast((attempt) => attempt.action === 'off' && attempt.result === 'off')
  const offAt = last === undefined ? -Infinity : node.firstSeen.get(`ended ${last.id}`) ?? on.now
  // Of a node without an agent its Lease is all that speaks, and is read too seldom to be that exact.
  const word = lastWord(node, on.seen.self, isWithoutAgent(node) ? -Infinity : offAt)
  return word > offAt && (word > offAt + onItsWay || word > (beat?.at ?? -Infinity)) ? 'old boot' : 'nothing'
}

/** Its Lease has moved, or its kubelet has posted, since this process listens. That it woke just now is no word of the node's. */
function speaksWithoutAgent({ seen: { self }, verdicts }: Survey, incident: Incident, node: NodeSeen): boolean {
  return isWithoutAgent(node) && !verdicts.has(node.name) && sameBoot(latestBoot(node), incident.boot) && lastWord(node, self) > lastBeat(node, self)
}

/** One that has told of itself. A Node that was made anew for the same machine, or whose kubelet has posted nothing yet, is none. */
export function isAnotherMachine({ machine }: Incident, node: Pick<NodeSeen, 'machine'>): boolean {
  return machine !== '' && isStrange({ machine }, node)
}

/** Whether anything told of a boot after this one, be it silent now. */
export function laterBoot(node: NodeSeen, than: Boot): boolean {
  const latest = latestBoot(node)
  return latest !== '' && !sameBoot(latest, than)
}

/** The latest boot that anything told of: the agent's word, or a status that kubelet posted since. */
export function latestBoot(node: NodeSeen): Boot {
  const { beat, record } = node
  const posted = kubeletsBoot(node)
  if (beat !== undefined) return postedLast(node) && !sameBoot(posted, beat.boot) ? posted : beat.boot
  return record !== undefined && (posted === '' || sameBoot(record.boot, posted)) ? record.boot : posted
}

/** Before this replica saw kubelet post anything, what the Node object says. */
function kubeletsBoot({ ready, bootId }: NodeSeen): Boot {
  return ready.postedAt === -Infinity || ready.bootId === '' ? bootId : ready.bootId
}

function postedLast({ ready, beat }: NodeSeen): boolean {
  return ready.bootId !== '' && ready.postedAt > (beat?.at ?? -Infinity)
}

export function hold(node: NodeName, brake: Brake, incident?: Incident): HoldAction {
  return { do: 'hold', node, ...brake, ...(incident === undefined ? {} : { incident: incident.name }) }
}

/** `recovers`: with this taint the clear ends, and what follows brings the node back. */
export function untaint(node: NodeSeen, key: string, because: string, incident?: Incident, recovers = false): Extract<Deed, { do: 'untaint' }> {
  return { do: 'untaint', node: node.name, key, because, recovers, ...(incident === undefined ? {} : { incident: incident.name }) }
}

export function quarantine({ node, incident }: Situation): Deed {
  return { do: 'taint', node: node.name, incident: incident.name, outOfService: false }
}

export function withdraw(incident: Incident, because: string): Deed {
  return { do: 'withdraw', node: incident.nodeName, incident: incident.name, because }
}

export function close(incident: Incident, outcome: Outcome, because: string, identity?: IdentitySeen): Deed {
  return { do: 'close', node: incident.nodeName, incident: incident.name, outcome, because, ...(identity === undefined ? {} : { identity }) }
}
