// The audit's turns. In each, every path of every node that is heard is asked once more; the core says which, here it is kept when a
// turn began, whether it is over, and what of it outlives the leader: its number and its times, once, on the Lease, which is written
// each second anyway. So a NodeRecord that says nothing new is as old as the latest turn, and nobody writes that on it.
import * as v from 'valibot'
import { turnSoFar } from '../core/audit.ts'
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import type { Allowance } from './allowance.ts'
import { allowance } from './allowance.ts'
import type { Observation } from './observe.ts'

/** A turn that came to its end, as it stands on the Lease. */
export interface AuditTurn {
  readonly turn: number
  readonly began: string
  readonly ended: string
  /** Who is not audited again until then is audited too seldom. */
  readonly stale: string
  /** Nodes of which no path was asked in it: silent all the while, or in an incident. */
  readonly missed: readonly string[]
}

export const auditTurnKey = 'holdfast.dev/audit-turn'

/** Programs cost a tenth of a second of a core each. What begins anew, as a cluster of a few nodes does, is asked at once. */
export const auditRate = (clock: Clock): Allowance => allowance(clock, { burst: 30, perMinute: 120 })

const lookEvery: Ms = 1_000
/** The Lease is written each second, and read by whoever stands for election. */
const mostMissed = 100
const longestText = 32_768

const instant = v.pipe(v.string(), v.maxLength(40), v.check((text) => Number.isFinite(Date.parse(text))))
const shape = v.object({
  turn: v.pipe(v.number(), v.safeInteger(), v.minValue(1)), began: instant, ended: instant, stale: instant,
  missed: v.pipe(v.array(v.pipe(v.string(), v.maxLength(253))), v.maxLength(mostMissed)),
})

const written = (wall: number): string => new Date(wall).toISOString()

/** What cannot be read is as good as no turn: the next one writes it anew. */
export function readAuditTurn(annotations: Readonly<Record<string, string>> | undefined): AuditTurn | undefined {
  const text = annotations?.[auditTurnKey] ?? ''
  if (text.length > longestText) return undefined
  const read = v.safeParse(v.pipe(v.string(), v.parseJson(), shape), text)
  return read.success ? read.output : undefined
}

export interface AuditTurns {
  /** False: this replica does not lead, or the turn before is not over. `period`: from the beginning of a turn to that of the next. */
  begin(period: Ms): boolean
  /** This replica leads from now on, and finds this on the Lease. */
  led(annotations: Readonly<Record<string, string>>): void
  lost(): void
  /** After each decision. */
  now(): void
  /** What the Lease is to bear. */
  note(): Readonly<Record<string, string>>
  last(): AuditTurn | undefined
}

export interface AuditTurnsOptions {
  readonly clock: Clock
  readonly log: Log
  readonly observation: Observation
  leads(): number | undefined
}

export function auditTurns({ clock, log, observation, leads }: AuditTurnsOptions): AuditTurns {
  const { self } = observation.seen
  let open: { readonly beganAt: Ms; readonly period: Ms } | undefined
  let lookedAt: Ms = -Infinity
  let last: AuditTurn | undefined

  return {
    begin(period) {
      if (leads() === undefined || open !== undefined) return false
      open = { beganAt: clock.now(), period }
      self.turnAt = open.beganAt
      return true
    },
    led(annotations) {
      last = readAuditTurn(annotations)
      if (last !== undefined) show(last, last.missed)
    },
    lost() {
      open = undefined
      last = undefined
      delete self.turnAt
    },
    now() {
      if (open === undefined || leads() === undefined || clock.now() - lookedAt < lookEvery) return
      lookedAt = clock.now()
      const { left, missed, asked } = turnSoFar(observation.seen, lookedAt)
      // Whoever hears nobody has asked nobody.
      if (left === 0 && (asked > 0 || missed.length === 0)) end(open, missed)
    },
    note: () => (last === undefined ? {} : { [auditTurnKey]: JSON.stringify(last) }),
    last: () => last,
  }

  function end({ beganAt, period }: { readonly beganAt: Ms; readonly period: Ms }, missed: readonly string[]): void {
    const took = clock.now() - beganAt
    const began = clock.wall() - took
    // The next one begins at the first beginning of a period after this end, and may take as long; one period more is grace.
    const holds = (Math.floor(took / period) + 2) * period + took
    last = { turn: (last?.turn ?? 0) + 1, began: written(began), ended: written(clock.wall()), stale: written(began + holds), missed: missed.toSorted().slice(0, mostMissed) }
    open = undefined
    show(last, missed)
    log.info({ turn: last.turn, took, missed: missed.length }, 'every fence path was audited again')
  }

  /** Its times become instants of ours as soon as they are seen. */
  function show({ began, stale }: AuditTurn, missed: readonly string[]): void {
    observation.audited({ beganAt: clock.now() - (clock.wall() - Date.parse(began)), holds: Date.parse(stale) - Date.parse(began), missed: new Set(missed) })
  }
}
