// The boot that was proven off speaks after its proof. A beat may have been on its way; what it answers to a challenge issued after the proof
// shows that false.
import type { Action } from './action.ts'
import { lapsed, lastProvenAt } from './incident.ts'
import { answerAfterProof } from './lie.ts'
import { challenge } from './look.ts'
import { sameBoot, type Ms } from './model.ts'
import { restsOnSilence, type Proof } from './proof.ts'
import { hold, type Situation } from './situation.ts'

/** Nothing is freed meanwhile. */
export function challenged(at: Situation): Action[] {
  const { on, incident, node } = at
  const evidence = answerAfterProof(incident, node)
  if (evidence !== undefined) return [{ do: 'void', node: node.name, incident: incident.name, evidence }]
  return [...challenge(node, on.now), hold(node.name, { because: 'proof-doubted', detail: 'the fenced boot beats after the proof', lifts: 'its answer to a challenge, or its silence' }, incident)]
}

/** Whether anything of the fenced boot was heard that the proof must not stand against. What was heard while the proof was being written down was
 *  spoken after the silence that it rests on. */
export function speaksAgainstProof(at: Situation, proof: Proof): boolean {
  return beatsSinceProof(at) || answerAfterProof(at.incident, at.node) !== undefined || (restsOnSilence(proof) && at.heard === 'old boot')
}

export function beatsSinceProof(at: Situation): boolean {
  const { on, incident, node } = at
  return node.beat !== undefined && node.beat.at > (provenAt(at) ?? -Infinity) && !on.verdicts.has(node.name) && sameBoot(node.beat.boot, incident.boot)
}

/** When this replica first saw the proof that stands, or the one that has lapsed. */
export function provenAt({ incident, node, status }: Situation): Ms | undefined {
  return status.proof === undefined && lapsed(status) === undefined ? undefined : lastProvenAt(incident, node.firstSeen)
}
