// The Node object of an open incident was deleted. Kubernetes then deletes every pod of it within about a minute, proof or not, and their
// owners replace them, while the machine may run. So the fence goes on, from what is kept of the node; but nothing is written on
// a Node that is not there, and nothing is switched on for it.
import type { Action } from './action.ts'
import { handsOffIncident } from './hands.ts'
import { isDrill } from './incident.ts'
import { machineKey } from './machine-id.ts'
import { goneKey, type Ms, type NodeName, type NodeSeen } from './model.ts'
import { mayBeMadeAnew, outlived } from './outlived.ts'
import { pursue, unvouched } from './pursue.ts'
import { isWanted } from './remedy.ts'
import { settle } from './settle.ts'
import { hold, isAnotherMachine, laterBoot, type Situation } from './situation.ts'

/** By then Kubernetes has long deleted its pods (after 40 s, looked at each 20 s), so that an *off* comes too late for most of what it was to
 *  prevent; and a machine whose Node a person deleted may be taken for another purpose. */
export const fencedFor: Ms = 300_000

export function deleted(at: Situation): Action[] {
  const orphan = settle(at)
  if (orphan !== undefined) return [orphan]
  if (!goesOn(at)) return outlived(at, 'NodeDeleted', 'the Node object is gone', mayBeMadeAnew(at))
  return unproven(at).filter(({ do: what }) => what !== 'taint' && what !== 'untaint')
}

/** Not what only waited to be given back, nor what was no fence; nor once the node is heard, or its machine found elsewhere. */
function goesOn(at: Situation): boolean {
  const { on, incident, node, status } = at
  if (status.phase === 'Done' || status.proof !== undefined || incident.abort || isDrill(incident) || incident.cause === 'owed') return false
  if (node.uid !== incident.nodeUid || isAnotherMachine(incident, node) || isTaken(node, on.seen.nodes)) return false
  return at.heard !== 'new boot' && !laterBoot(node, incident.boot) && (at.heard === 'nothing' || isWanted(at))
}

/** Its machine bears another Node by now. */
export function isTaken({ name, machine }: Pick<NodeSeen, 'name' | 'machine'>, nodes: ReadonlyMap<NodeName, NodeSeen>): boolean {
  if (machine === '') return false
  const key = machineKey(machine)
  return [...nodes.values()].some((other) => other.name !== name && other.gone !== true && other.machine !== '' && machineKey(other.machine) === key)
}

function unproven(at: Situation): Action[] {
  const { on, incident, node } = at
  if (on.now - goneSince(at) >= fencedFor) return outlived(at, 'NodeDeleted', 'the Node object is gone, and Kubernetes has deleted the pods of a machine that nobody proved off')
  const off = handsOffIncident(on, incident, node)
  return off === undefined ? [...pursue(at), ...unvouched(at)] : [hold(node.name, off, incident)]
}

/** Of a Node that only its incident tells of, when this replica first read that. */
const goneSince = ({ on, node }: Situation): Ms => node.firstSeen.get(goneKey) ?? on.now
