// Makes holds visible: on the NodeFence while one is open, as an Event when one begins, in the log when it begins and ends.
// A hold is wanted anew at each tick; what is written is only that it began, and that it is over.
import { keyOf, type HoldAction } from '../core/action.ts'
import type { Ms } from '../core/model.ts'
import { held, sameHolds } from '../core/timeline.ts'
import type { Clock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import type { Recorder } from './events.ts'
import type { IncidentWriter } from './incident.ts'
import type { Observation } from './observe.ts'

export interface HoldKeeper {
  /** All holds of this tick. */
  now(holds: readonly HoldAction[]): void
  standing(): readonly HoldAction[]
}

export interface HoldKeeperOptions {
  readonly clock: Clock
  readonly log: Log
  readonly observation: Observation
  readonly incidents: IncidentWriter
  readonly recorder: Recorder
  leads(): number | undefined
}

/** A hold that lasts shorter than this is the ordinary course of things and is not written. */
const worthWriting: Ms = 1_000
/** Writes of holds of one incident keep this distance. */
const writeEvery: Ms = 1_000

export function holdKeeper({ clock, log, observation, incidents, recorder, leads }: HoldKeeperOptions): HoldKeeper {
  let standing = new Map<string, { hold: HoldAction; since: Ms; told: boolean }>()
  const writtenAt = new Map<string, Ms>()

  return {
    standing: () => [...standing.values()].map((one) => one.hold),
    now(holds) {
      const now = clock.now()
      const next: typeof standing = new Map()
      for (const hold of holds) {
        const key = keyOf(hold)
        const before = standing.get(key)
        const one = { hold, since: before?.since ?? now, told: before?.told ?? false }
        if (!one.told && now - one.since >= worthWriting) one.told = tell(hold)
        next.set(key, one)
      }
      for (const [key, one] of standing) {
        if (one.told && !next.has(key)) log.info({ node: one.hold.node, because: one.hold.because, lasted: now - one.since }, 'hold over')
      }
      standing = next
      if (leads() !== undefined) write(now)
    },
  }

  function tell(hold: HoldAction): true {
    log.warn({ node: hold.node, incident: hold.incident, because: hold.because, detail: hold.detail, lifts: hold.lifts }, 'held')
    const row = observation.row(hold.node)
    if (row !== undefined && leads() !== undefined) {
      recorder.say({
        regarding: { apiVersion: 'v1', kind: 'Node', name: hold.node, uid: row.uid }, reason: 'Held', action: 'Hold',
        note: `${hold.because}: ${hold.detail}. Lifted by: ${hold.lifts}`, type: 'Warning',
      })
    }
    return true
  }

  function write(now: Ms): void {
    for (const incident of observation.seen.incidents.values()) {
      if (incident.status.phase === 'Final' || observation.row(incident.nodeName)?.busy.has(`deed ${incident.nodeName}`) === true) continue
      const told = [...standing.values()].filter((one) => one.told && one.hold.incident === incident.name).map((one) => one.hold)
      if (sameHolds(told, incident.status) || now - (writtenAt.get(incident.name) ?? -Infinity) < writeEvery) continue
      writtenAt.set(incident.name, now)
      void incidents.change(incident.name, held(told, new Date(clock.wall()).toISOString()))
    }
  }
}
