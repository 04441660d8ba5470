// The remedies in force, and since when nodes cross their thresholds. One with faults is not in force, nor is what stood there before: to do
// nothing is what it can do least harm by.
import type { Ms } from '../core/model.ts'
import { ailingSince, type Remedy } from '../core/remedy.ts'
import type { Log } from '../edge/log.ts'
import type { KubeObject } from './api.ts'
import type { Recorder } from './events.ts'
import { faultNote } from './fault-note.ts'
import { readRemedy } from './node-remedy.ts'
import type { Observation } from './observe.ts'
import { sentencesOf } from './schema.ts'
import { apiVersion } from './schema-kind.ts'

export interface Remedies {
  seen(object: KubeObject): void
  gone(name: string): void
  /** Every node is looked at. */
  now(at: Ms): void
}

export interface RemediesOptions {
  readonly log: Log
  readonly observation: Observation
  readonly recorder: Pick<Recorder, 'say'>
  leads(): number | undefined
  /** They were all read once. */
  ready(): boolean
}

export function keepRemedies({ log, observation, recorder, leads, ready }: RemediesOptions): Remedies {
  const good = new Map<string, Remedy>()
  /** Faults that nobody was told of yet, each with its object. */
  const untold = new Map<string, { readonly object: KubeObject; readonly faults: readonly string[] }>()

  return {
    seen(object) {
      const { name } = object.metadata
      const read = readRemedy(object)
      untold.delete(name)
      if (read.ok) good.set(name, read.remedy)
      else {
        good.delete(name)
        const faults = sentencesOf(read.faults)
        untold.set(name, { object, faults })
        log.warn({ remedy: name, faults: faults.join('; ') }, 'the remedy has faults and is not in force')
      }
      inForce()
    },
    gone(name) {
      good.delete(name)
      untold.delete(name)
      inForce()
    },
    now(at) {
      const { seen } = observation
      if (seen.remedies === undefined && ready()) inForce()
      for (const { name } of seen.nodes.values()) {
        const row = observation.row(name)
        if (row === undefined) continue
        row.ailing = ailingSince(row, seen.remedies ?? [], seen.self.awakeSince, at)
      }
      if (leads() !== undefined) tell()
    },
  }

  function inForce(): void {
    observation.remedies([...good.values()])
  }

  function tell(): void {
    for (const { object: { metadata: { name, uid = '' } }, faults } of untold.values()) {
      recorder.say({ regarding: { apiVersion, kind: 'NodeRemedy', name, uid }, reason: 'RemedyInvalid', action: 'Read', note: faultNote('this remedy is not in force', faults), type: 'Warning' })
    }
    untold.clear()
  }
}
