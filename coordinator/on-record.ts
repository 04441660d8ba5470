// What every write that frees asks of its proof once more.
import type { Incident, ProofRecord } from '../core/incident.ts'
import type { Ms } from '../core/model.ts'
import { borneOut, partsOf, recall, type Proof } from '../core/proof.ts'
import type { Row } from './row.ts'

/** The proof once more, before the call leaves: of this node, on this record, and still what the devices say. */
export function holds(proof: Proof | undefined, incident: Incident, row: Row, since?: Ms): boolean {
  const recorded = incident.status.proof
  if (proof === undefined || recorded === undefined || !isOnRecord(proof, recorded) || recorded.nodeUid !== row.uid) return false
  return since === undefined || borneOut(proof, incident, row, since)
}

/** The whole of it, or a part that was joined. */
function isOnRecord(proof: Proof, record: ProofRecord): boolean {
  const recorded = partsOf(recall(record))
  return partsOf(proof).every((part) => recorded.some((other) => sameProof(part, other)))
}

function sameProof(one: Proof, other: Proof): boolean {
  return one.kind === other.kind && one.boot === other.boot && one.nodeUid === other.nodeUid && one.level === other.level
    && one.methods.join() === other.methods.join() && one.digests?.join() === other.digests?.join()
}
