// Writes on NodeFences. Each write carries the resourceVersion it was made from; on a conflict the newer copy is read, and
// the change is applied again only if that copy still bears our term: a leader that slept meets its successor's term here
// and touches nothing more.
import { isDeepStrictEqual } from 'node:util'
import type { Incident, IncidentStatus } from '../core/incident.ts'
import type { Ms } from '../core/model.ts'
import type { Change } from '../core/timeline.ts'
import type { Log } from '../edge/log.ts'
import type { Api, ApiError, KubeObject } from './api.ts'
import { incidentBody, readIncident, statusBody, fencesPath } from './node-fence.ts'
import type { From, Observation } from './observe.ts'
import { showFaults } from './schema.ts'

export interface IncidentWriter {
  /** False: it was not written, or nobody knows; what is true will be seen. */
  change(name: string, change: Change): Promise<boolean>
  /** As `change`, for the one write that puts our term there. */
  adopt(name: string, change: Change): Promise<boolean>
  open(draft: Parameters<typeof incidentBody>[0], change: Change): Promise<boolean>
}

export interface IncidentWriterOptions {
  readonly api: Api
  readonly observation: Observation
  readonly log: Log
  /** Our term, if we lead at this very instant. */
  leads(): number | undefined
  /** Aborts when the lease is lost: what still waits for its turn to be sent is not sent. */
  signal(): AbortSignal
  /** What a write has made of an incident, once it stands there. */
  wrote?(before: Incident, after: IncidentStatus): void
}

const triesPerWrite = 3
/** What the API server did is not known. */
const mayHaveLanded: ReadonlySet<ApiError['kind']> = new Set<ApiError['kind']>(['unreachable', 'late', 'server'])
/** The lease lapses within four seconds, and a change that comes later comes too late. */
const writeDeadline: Ms = 4_000

/** What this version cannot read it must not act on: another one wrote something about it that we do not understand. */
export function takeIncident(object: KubeObject, observation: Observation, log: Log, from: From): boolean {
  const read = readIncident(object)
  if (read.ok) {
    observation.incident(read.incident, from)
    return true
  }
  const { spec } = object as KubeObject & { spec?: { nodeName?: unknown } } // nothing of it is relied on
  log.error({ incident: object.metadata.name, node: spec?.nodeName, faults: read.faults }, 'a NodeFence cannot be read; nothing is done on its node')
  observation.incidentUnreadable({ name: object.metadata.name, node: String(spec?.nodeName ?? ''), faults: showFaults(read.faults) })
  return false
}

export function incidentWriter({ api, observation, log, leads, signal, wrote }: IncidentWriterOptions): IncidentWriter {
  const queues = new Map<string, Promise<unknown>>()
  const how = () => ({ deadline: writeDeadline, signal: signal() })

  return {
    change: (name, change) => inTurn(name, () => write(name, change, false)),
    adopt: (name, change) => inTurn(name, () => write(name, change, true)),
    async open(draft, change) {
      if (leads() === undefined) return false
      const created = await api.create<KubeObject>(fencesPath, incidentBody(draft), how())
      if (!created.ok) return refused(draft.name, created.error)
      take(created.value)
      return inTurn(draft.name, () => write(draft.name, change, true))
    },
  }

  /** Deeds and ends of attempts may want to write on one incident at once; one follows the other. */
  function inTurn(name: string, work: () => Promise<boolean>): Promise<boolean> {
    const before = queues.get(name) ?? Promise.resolve()
    // A fault of ours in one change is that change's own, and not the next one's.
    const turn = before.then(work, work)
    queues.set(name, turn)
    return turn.finally(() => {
      if (queues.get(name) === turn) queues.delete(name)
    })
  }

  async function write(name: string, change: Change, adopting: boolean): Promise<boolean> {
    for (let tries = 0; tries < triesPerWrite; tries += 1) {
      const term = leads()
      const incident = observation.seen.incidents.get(name)
      if (term === undefined || incident === undefined) return false
      const because = refuted(incident.status.term, term, adopting)
      if (because !== undefined) {
        log.info({ incident: name, because }, 'nothing is written on an incident')
        return false
      }
      const status = change(incident.status)
      if (status === incident.status) return true
      const { uid, resourceVersion } = incident
      const body = statusBody(name, resourceVersion, uid, status)
      const answer = await api.replace<KubeObject>(`${fencesPath}/${name}/status`, body, how())
      if (!answer.ok && answer.error.kind !== 'conflict') refused(name, answer.error)
      const written = answer.ok ? take(answer.value) : mayHaveLanded.has(answer.error.kind) && await landed(name, resourceVersion, body)
      if (written) wrote?.(incident, status)
      if (answer.ok || answer.error.kind !== 'conflict') return written
      const newer = await api.get<KubeObject>(`${fencesPath}/${name}`, how())
      if (!newer.ok || !take(newer.value)) return false
    }
    return false
  }

  /** The answer was lost. What was written all the same is seen by its standing there, whole; taken for unwritten, an order that nobody gave
   *  would be waited out. */
  async function landed(name: string, over: string, body: { readonly status: unknown }): Promise<boolean> {
    const now = await api.get<KubeObject>(`${fencesPath}/${name}`, how())
    if (!now.ok || now.value.metadata.resourceVersion === over || !take(now.value)) return false
    const [stands, ours] = [readIncident(now.value), readIncident({ ...now.value, ...body, metadata: now.value.metadata } as KubeObject)] // its status alone differs
    return stands.ok && ours.ok && isDeepStrictEqual(stands.incident.status, ours.incident.status)
  }

  function take(object: KubeObject): boolean {
    return takeIncident(object, observation, log, 'live')
  }

  function refused(name: string, error: ApiError): false {
    log.warn({ incident: name, kind: error.kind, message: error.message }, 'an incident could not be written')
    return false
  }
}

/** What an incident bears is the term of who wrote last. */
function refuted(bears: number, ours: number, adopting: boolean): string | undefined {
  if (bears > ours) return 'a later leader has written on it'
  return bears === ours || adopting ? undefined : 'it does not bear our term yet'
}
