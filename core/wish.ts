// A person has a node fenced that has an open incident already. One node is fenced for one reason at a time, so theirs waits beside it; but
// what they want counts at once: the open incident goes on as theirs would, though the node be heard or nobody take it for dead. Nothing of it
// is written down: their NodeFence is the fact, for as long as it stands.
import { close, hold, laterBoot, type Situation } from './situation.ts'
import type { Action } from './action.ts'
import { isDrill, isPartial, type Incident } from './incident.ts'
import { sameBoot, type NodeSeen } from './model.ts'
import type { Survey } from './survey.ts'

/** By a person, not begun, and not taken back. `others`: open ones. Of another boot, or another Node of the name, it is none on this one. */
export function wishBeside(others: Iterable<Incident>, { name, nodeName, nodeUid, boot }: Pick<Incident, 'name' | 'nodeName' | 'nodeUid' | 'boot'>): Incident | undefined {
  for (const other of others) {
    if (waits(other, name, nodeName) && (other.boot === '' || sameBoot(other.boot, boot)) && (other.nodeUid === '' || other.nodeUid === nodeUid)) return other
  }
  return undefined
}

function waits({ name, nodeName, cause, abort, status }: Incident, beside: string, node: string): boolean {
  return nodeName === node && name !== beside && cause === 'by-hand' && !abort && status.phase === 'New' && status.attempts.length === 0
}

/** As the core goes on with it. A drill, and what gives back what is owed, are nothing that a fence could be made of: theirs waits for the end. */
export function asWished(incident: Incident, beside: readonly Incident[]): Incident {
  if (incident.cause === 'by-hand' || isDrill(incident) || incident.cause === 'owed') return incident
  return wishBeside(beside, incident) === undefined ? incident : { ...incident, cause: 'by-hand' }
}

/** It only waits for its node to be well again, and a person wants that node fenced: theirs goes on. */
export function yieldsTo({ on, incident }: Situation): Incident | undefined {
  return on.beside.find((other) => waits(other, incident.name, incident.nodeName))
}

/** One node is fenced for one reason at a time. */
export function waitsBeside(on: Survey, incident: Incident, other: Incident | undefined, node: NodeSeen | undefined): Action {
  const byHand = incident.cause === 'by-hand' && incident.status.attempts.length === 0
  if (byHand && incident.status.term !== on.seen.self.term) return { do: 'adopt', node: incident.nodeName, incident: incident.name }
  if (byHand && incident.abort) return close(incident, 'Withdrawn', 'a person aborted it')
  if (byHand && other !== undefined && isDone(other, node)) {
    return close(incident, 'Refused', `a duplicate: ${other.name} of the same node is open and has it fenced already, and one incident of a node at a time`)
  }
  const wished = byHand && other !== undefined && asWished(other, [incident]) !== other ? ', and goes on as this one asks' : ''
  return hold(incident.nodeName, { because: 'concurrency', detail: `${other?.name} of the same node is open${wished}`, lifts: 'its end' }, incident)
}

/** What the person wants is so. One whose next boot is heard is over but for the node's return. */
function isDone({ cause, boot, status: { phase, proof } }: Incident, node: NodeSeen | undefined): boolean {
  const returns = phase === 'Done' || (proof !== undefined && node !== undefined && laterBoot(node, boot))
  return !returns && (cause === 'by-hand' || (proof !== undefined && !isPartial(proof)))
}
