// What every deed is carried out with.
import type { Incident } from '../core/incident.ts'
import type { NodeName, VolumeSeen } from '../core/model.ts'
import type { Proof } from '../core/proof.ts'
import type { Clock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import type { Api, CallOptions } from './api.ts'
import type { IncidentWriter } from './incident.ts'
import type { Observation } from './observe.ts'
import type { Row } from './row.ts'

export interface DeedMeans {
  readonly api: Api
  readonly clock: Clock
  readonly observation: Observation
  readonly incidents: IncidentWriter
  readonly log: Log
  /** Our term, while we lead. */
  leads(): number | undefined
  /** Aborts when the lease is lost. */
  signal(): AbortSignal
  how(): CallOptions
  /** Why nothing is to be done about the incident at this moment: who has the node in hand, or says that all is to rest. */
  handsOff(incident: Incident, row: Row): string | undefined
  /** Now, as it is written down. */
  at(): string
  say(node: NodeName, incident: string | undefined, reason: string, action: string, note: string, type: 'Normal' | 'Warning'): void
  /** What comes onto the record where nothing is being freed just now. */
  concern(incident: string, row: Row, proof?: Proof): readonly VolumeSeen[]
}
