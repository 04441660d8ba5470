// Makes holds visible: on the NodeFence while one is open, as an Event when one begins, in the log when it begins and ends.
// A hold is wanted anew at each tick; what is written is that it began, that it is over, and, unhurriedly, that its sentence has
// become another one: who reads the record must not go and mend what was mended long ago.
import { keyOf, type HoldAction } from '../core/action.ts'
import type { Hold, Incident } from '../core/incident.ts'
import type { Ms } from '../core/model.ts'
import { held, refused, sameHolds } from '../core/timeline.ts'
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
  readonly incidents: Pick<IncidentWriter, 'change'>
  readonly recorder: Pick<Recorder, 'say'>
  leads(): number | undefined
}

/** A hold that lasts shorter than this is the ordinary course of things and is not written. */
const worthWriting: Ms = 1_000
/** Writes of holds of one incident keep this distance; those that only put another sentence there, this one. */
const writeEvery: Ms = 1_000
const rewordEvery: Ms = 10_000
/** Of the faults of an unreadable NodeFence, so that what lifts the hold still fits an Event. */
const mostFaults = 500

export function holdKeeper({ clock, log, observation, incidents, recorder, leads }: HoldKeeperOptions): HoldKeeper {
  let standing = new Map<string, Standing>()
  /** By incident, while it is open. */
  let writtenAt = new Map<string, Ms>()

  return {
    standing: () => [...standing.values()].map((one) => one.hold),
    now(holds) {
      const now = clock.now()
      const next: typeof standing = new Map()
      for (const hold of [...holds, ...leftAlone()]) {
        const key = keyOf(hold)
        const before = standing.get(key)
        const one = { hold, since: before?.since ?? now, told: before?.told ?? false, said: before?.said ?? false }
        if (!one.told && now - one.since >= worthWriting) one.told = tell(hold)
        // Whoever leads says it, also of what stood before it led: the leader of then may be gone.
        if (one.told && !one.said && leads() !== undefined) one.said = say(hold)
        next.set(key, one)
      }
      for (const [key, one] of standing) {
        if (one.told && !next.has(key)) log.info({ node: one.hold.node, because: one.hold.because, lasted: now - one.since }, 'hold over')
      }
      standing = next
      if (leads() !== undefined) write(now)
    },
  }

  /** No decision of the core's, which goes on with the last copy that could be read: its deeds on such a node are not done. */
  function leftAlone(): HoldAction[] {
    return [...observation.unreadables()].map(({ name, node, faults }) => ({
      do: 'hold', node, because: 'unreadable', detail: `nothing is done on ${node}: NodeFence ${name} cannot be read (${faults.slice(0, mostFaults)})`,
      lifts: 'a release that knows what stands there, or a person who mends or deletes it',
    }))
  }

  function tell(hold: HoldAction): true {
    log.warn({ node: hold.node, incident: hold.incident, because: hold.because, detail: hold.detail, lifts: hold.lifts }, 'held')
    return true
  }

  function say(hold: HoldAction): boolean {
    const row = observation.row(hold.node)
    if (row === undefined) return false
    recorder.say({
      regarding: { apiVersion: 'v1', kind: 'Node', name: hold.node, uid: row.uid }, reason: 'Held', action: 'Hold',
      note: `${hold.because}: ${hold.detail}. Lifted by: ${hold.lifts}`, type: 'Warning',
    })
    return true
  }

  function write(now: Ms): void {
    const own = ofIncidents(standing.values())
    const written = new Map<string, Ms>()
    for (const incident of observation.seen.incidents.values()) {
      if (incident.status.phase === 'Final') continue
      const { name } = incident
      const before = writtenAt.get(name)
      if (before !== undefined) written.set(name, before)
      // What the leader before us wrote, and we hold to, goes on from when it began.
      const wanted = (own.get(name) ?? []).filter((one) => one.told || incident.status.holds.some((other) => other.because === one.hold.because)).map((one) => one.hold)
      const after = distance(wanted, incident)
      if (after === undefined || now - (before ?? -Infinity) < after || observation.row(incident.nodeName)?.busy.has(`deed ${incident.nodeName}`) === true) continue
      written.set(name, now)
      const change = held(wanted, new Date(clock.wall()).toISOString())
      const quoted = refused(observation.row(incident.nodeName)?.volumes ?? [])
      incidents.change(name, (status) => change(quoted(status)))
        .catch((error: unknown) => log.error({ incident: name, error }, 'the holds of an incident could not be written')) // they are wanted again at the next tick
    }
    writtenAt = written
  }
}

interface Standing {
  readonly hold: HoldAction
  readonly since: Ms
  /** In the log. */
  told: boolean
  /** As an Event. */
  said: boolean
}

function ofIncidents(standing: Iterable<Standing>): ReadonlyMap<string, readonly Standing[]> {
  const own = new Map<string, Standing[]>()
  for (const one of standing) {
    const { incident } = one.hold
    if (incident === undefined) continue
    const others = own.get(incident)
    if (others === undefined) own.set(incident, [one])
    else others.push(one)
  }
  return own
}

/** From the last write to the next. Undefined: the record says what is so. */
function distance(wanted: readonly HoldAction[], { status }: Incident): Ms | undefined {
  if (wanted.length === 0 && status.holds.length === 0) return undefined
  if (!sameHolds(wanted, status)) return writeEvery
  return wanted.every((one) => status.holds.some((other) => sameSentence(one, other))) ? undefined : rewordEvery
}

/** But for its numbers, which count on, and for what the record has no room for. */
function sameSentence(one: HoldAction, other: Hold): boolean {
  return one.because === other.because && plain(one.detail) === plain(other.detail) && plain(one.lifts) === plain(other.lifts)
}

const plain = (sentence: string): string => sentence.slice(0, 500).replaceAll(/\d+(\.\d+)?/g, '#')
