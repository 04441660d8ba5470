// Writes a NodeRecord, whole, over the version that was seen. What came of it stands on the node's row, and the core says when it is tried
// again: what the API server refuses, and what it does not keep.
import { restAfter, sameFacts, type RecordFacts } from '../core/record-write.ts'
import type { NodeName, Unkept } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import { allowance, type Allowance } from './allowance.ts'
import type { Api, ApiError, CallOptions, KubeObject } from './api.ts'
import { readRecord, recordBody, recordsPath } from './node-record.ts'
import type { Observation } from './observe.ts'

/** A small cluster's all at once, then ten a second, which leaves deeds nine tenths of what this replica may ask of the API server. */
export const recordRate = (clock: Clock): Allowance => allowance(clock, { burst: 60, perMinute: 600 })

export interface RecordWriterOptions {
  readonly api: Pick<Api, 'get' | 'create' | 'replace'>
  readonly observation: Pick<Observation, 'row' | 'record'>
  readonly clock: Clock
  readonly log: Log
  readonly rate: Allowance
  how(): CallOptions
  say(node: NodeName, note: string): void
}

/** False: it is not known to stand there. */
export function recordWriter({ api, observation, clock, log, rate, how, say }: RecordWriterOptions): (node: NodeName, facts: RecordFacts) => Promise<boolean> {
  return async (node, facts) => {
    rate.take(1)
    const version = observation.row(node)?.record?.resourceVersion
    const body = recordBody(node, facts, clock.wall(), version)
    const answer = version === undefined
      ? await api.create<KubeObject>(recordsPath, body, how())
      : await api.replace<KubeObject>(`${recordsPath}/${node}`, body, how())
    const current = answer.ok ? answer : await api.get<KubeObject>(`${recordsPath}/${node}`, how())
    const read = current.ok ? readRecord(current.value) : undefined
    if (read?.ok === true) observation.record(node, read.record, 'live')
    if (!answer.ok) return refused(node, facts, answer.error, read?.ok === true)
    const row = observation.row(node)
    if (row === undefined || read?.ok !== true) return true
    row.recordWrite = { at: clock.now() }
    if (!sameFacts(read.record, facts)) notKept(row, { at: clock.now(), record: { wanted: facts, version: read.record.resourceVersion } }, log)
    return true
  }

  /** Another one wrote it: what was read since is gone by at once. What cannot be read stands in the way of every next write as well. */
  function refused(node: NodeName, wanted: RecordFacts, { kind, message }: ApiError, readSince: boolean): false {
    const row = observation.row(node)
    if (row === undefined || (kind === 'conflict' && readSince)) return false
    const times = (row.recordWrite?.refused?.times ?? 0) + 1
    row.recordWrite = { at: clock.now(), refused: { wanted, times } }
    log.warn({ node, kind, message, again: restAfter(times) }, 'its NodeRecord could not be written')
    if (kind === 'invalid' || kind === 'forbidden' || kind === 'refused') say(node, `its NodeRecord is not written, and no audit of it outlives this replica: ${message}`)
    return false
  }
}

export function notKept(row: { readonly name: NodeName; unkept?: Unkept | undefined }, unkept: Unkept, log: Log): void {
  row.unkept = { ...row.unkept, ...unkept }
  log.warn({ node: row.name, kind: unkept.record === undefined ? 'NodeFence' : 'NodeRecord' }, 'the API server did not keep all that was written: its kinds are older than this coordinator')
}
