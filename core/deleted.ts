// The Node object of an open incident was deleted. Kubernetes then deletes every pod of it within about a minute, proof or not, and their
// owners replace them, while the machine may run. So the fence goes on, from what is kept of the node; but nothing is written on
// a Node that is not there, and nothing is switched on for it. What is proven is freed sooner than Kubernetes would, which leaves the volumes
// for six minutes more where they are, or for ever.
import { keyOf, type Action } from './action.ts'
import { challenged, provenAt, speaksAgainstProof } from './challenge.ts'
import { freesNothing } from './choice.ts'
import { left, nothingLeft } from './clear.ts'
import { clearing } from './clearing.ts'
import { handsOffIncident, othersHands } from './hands.ts'
import { isDrill, isPartial } from './incident.ts'
import { askPods, askWhoHears } from './look.ts'
import { machineKey } from './machine-id.ts'
import { goneKey, type Ms, type NodeName, type NodeSeen } from './model.ts'
import { mayBeMadeAnew, outlived } from './outlived.ts'
import { extentOf, recall, type Proof } from './proof.ts'
import { pursue, unvouched } from './pursue.ts'
import { readRenewals, renewed } from './renewed.ts'
import { isWanted } from './remedy.ts'
import { settle } from './settle.ts'
import { hold, isAnotherMachine, laterBoot, type Situation } from './situation.ts'

/** By then Kubernetes has long deleted its pods (after 40 s, looked at each 20 s), so that an *off* comes too late for most of what it was to
 *  prevent; and a machine whose Node a person deleted may be taken for another purpose. */
export const fencedFor: Ms = 300_000

export function deleted(at: Situation): Action[] {
  const orphan = settle(at)
  if (orphan !== undefined) return [orphan]
  if (!goesOn(at)) return ended(at)
  const { proof } = at.status
  return proof === undefined ? unproven(at) : proven(at, recall(proof))
}

/** Nothing is written on a Node that is not there. */
function unwritten(actions: readonly Action[]): Action[] {
  return actions.filter(({ do: what }) => what !== 'taint' && what !== 'untaint')
}

function ended(at: Situation, because = 'the Node object is gone'): Action[] {
  return outlived(at, 'NodeDeleted', because, mayBeMadeAnew(at))
}

/** Not what only waited to be given back, nor what was no fence; nor once the node is heard and no proof stands against that, or its machine found elsewhere. Whoever had it in hand when
 *  its Node was deleted has it in hand still, and no sign is left by which he could say that he has done. */
function goesOn(at: Situation): boolean {
  const { on, incident, node, status: { phase, proof } } = at
  if (phase === 'Done' || isDrill(incident) || incident.cause === 'owed' || (incident.abort && proof === undefined)) return false
  if (proof !== undefined && (proof.boot !== incident.boot || proof.nodeUid !== incident.nodeUid)) return false
  if (node.uid !== incident.nodeUid || isAnotherMachine(incident, node) || isTaken(node, on.seen.nodes) || othersHands(node) !== undefined) return false
  return at.heard !== 'new boot' && !laterBoot(node, incident.boot) && (at.heard === 'nothing' || (proof === undefined ? isWanted(at) : !isPartial(proof)))
}

/** Its machine bears another Node by now. */
export function isTaken({ name, machine }: Pick<NodeSeen, 'name' | 'machine'>, nodes: ReadonlyMap<NodeName, NodeSeen>): boolean {
  if (machine === '') return false
  const key = machineKey(machine)
  return [...nodes.values()].some((other) => other.name !== name && other.gone !== true && other.machine !== '' && machineKey(other.machine) === key)
}

function unproven(at: Situation): Action[] {
  const { on, incident, node } = at
  if (on.now - goneSince(at) >= fencedFor) return ended(at, 'the Node object is gone, and Kubernetes has deleted the pods of a machine that nobody proved off')
  const off = handsOffIncident(on, incident, node)
  return off === undefined ? [...unwritten(pursue(at)), ...unvouched(at)] : [hold(node.name, off, incident)]
}

/** What is left is freed, with no out-of-service. What stays although it is (a driver refuses, a finalizer keeps it) is waited for as in every clear. */
function proven(at: Situation, proof: Proof): Action[] {
  const { on, incident, node } = at
  // That the machine runs shows nothing of volumes that are out of its reach to be false.
  if (!isPartial(proof) && speaksAgainstProof(at, proof)) return challenged(at)
  const made = provenAt(at) ?? on.now
  const since = Math.max(made, goneSince(at))
  const rest = left(incident, node, on.seen.self.podBudget, since, on.now, extentOf(proof))
  const free = freesNothing(incident.policy) || (rest !== undefined && nothingLeft(rest)) || on.now - since >= incident.policy.clearPatience
  // Of a part alone is proven what it covers: the machine is ordered off as long as that is worth anything.
  const cut = !isPartial(proof) || on.now - goneSince(at) >= fencedFor
  if (free && cut) return ended(at)
  const off = handsOffIncident(on, incident, node)
  const follows = off === undefined ? unwritten(renewed(at, made) ?? freeing(at, proof, since)) : [hold(node.name, off, incident)]
  const asks = [...readRenewals(at), ...askWhoHears(on, node, since, hearsayEvery), ...(rest === undefined ? askPods(node) : [])]
  return [...follows, ...asks.filter((look) => !follows.some((other) => keyOf(other) === keyOf(look)))]
}

/** Whether others hear what was proven off is asked so often. */
const hearsayEvery: Ms = 2_000

function freeing(at: Situation, proof: Proof, since: Ms): Action[] {
  const pursued = isPartial(proof) ? unwritten(pursue(at)) : []
  return [...pursued, ...clearing(at, proof, since).filter((action) => !pursued.some((other) => keyOf(other) === keyOf(action)))]
}

/** Of a Node that only its incident tells of, when this replica first read that. */
const goneSince = ({ on, node }: Situation): Ms => node.firstSeen.get(goneKey) ?? on.now
