// The sums of a search: what was tried, what took effect, what was reached, what was found.
import { effectNames } from './effects.ts'
import type { Judge } from './judgement.ts'
import { excuseReasons } from './judges/excuse-reasons.ts'
import type { Verdict } from './pool.ts'
import { isPlain, kinds, type Schedule } from './schedule.ts'

export interface Tally {
  add(verdict: Verdict): void
  readonly failed: readonly Failure[]
  /** Everything, as one JSON line has it. */
  sums(): Sums
  readonly marks: ReadonlyMap<string, number>
}

export interface Failure {
  readonly seed: number
  readonly schedule?: Schedule
  readonly judge: Judge | 'broke'
  readonly what: string
}

export interface Sums {
  readonly seeds: number
  readonly simulatedDays: number
  readonly incidents: number
  readonly faults: Readonly<Record<string, number>>
  readonly scenes: Readonly<Record<string, number>>
  /** Kinds of trouble, and parts of scenes, that took effect in fewer than one seed of a hundred. */
  readonly rare: readonly string[]
  /** `inTime`: the share of them in which the volumes were free in time. */
  readonly plain: { readonly seeds: number; readonly late: number; readonly inTime: number }
  /** Seeds in which something was excused, and for each reason those in which it was that. */
  readonly excused: number
  readonly excuses: Readonly<Record<string, number>>
  /** Times that a node which was well was quarantined. */
  readonly quarantined: number
  readonly violations: Readonly<Record<Judge, number>>
}

const day = 86_400_000
/** Of the seeds in which one machine died and nothing else went wrong, so many may take longer. */
const mayBeLate = 0.01

export function createTally(): Tally {
  /** As they came, so that who tells what is new can tell it by its place. */
  const failures: Failure[] = []
  let late = 0
  const faults = new Map<string, number>(Object.keys(kinds).map((name) => [name, 0]))
  const effects = new Map<string, number>(effectNames.map((name) => [name, 0]))
  const excuses = new Map<string, number>(excuseReasons.map((name) => [name, 0]))
  const marks = new Map<string, number>()
  let [seeds, simulated, incidents, plain, excused, quarantined] = [0, 0, 0, 0, 0, 0]

  const tooMany = () => late > Math.max(0, plain * mayBeLate)
  const count = (judge: Judge) => (judge === 'progress' ? (tooMany() ? late : 0) : failures.filter((one) => one.judge === judge).length)
  const rare = () => [...faults, ...effects].filter(([, times]) => times < seeds / 100).map(([name]) => name)
  return {
    get failed() { return tooMany() ? failures : failures.filter(({ judge }) => judge !== 'progress') },
    marks,
    add(verdict) {
      seeds += 1
      if ('broke' in verdict) {
        failures.push({ seed: verdict.seed, judge: 'broke', what: verdict.broke })
        return
      }
      const { said } = verdict
      simulated += said.simulated
      incidents += said.incidents
      if (isPlain(said.schedule)) plain += 1
      late += said.violations.filter(({ judge }) => judge === 'progress').length
      excused += said.excused.length > 0 ? 1 : 0
      quarantined += said.quarantined
      for (const name of new Set(said.excused.map(({ reason }) => reason))) excuses.set(name, (excuses.get(name) ?? 0) + 1)
      for (const name of said.struck) faults.set(name, (faults.get(name) ?? 0) + 1)
      for (const name of said.effects) effects.set(name, (effects.get(name) ?? 0) + 1)
      for (const mark of said.marks) marks.set(mark, (marks.get(mark) ?? 0) + 1)
      for (const { judge, what } of said.violations) failures.push({ seed: verdict.seed, schedule: said.schedule, judge, what })
    },
    sums: () => ({
      seeds, simulatedDays: Number((simulated / day).toFixed(2)), incidents, faults: Object.fromEntries(faults), scenes: Object.fromEntries(effects), rare: rare(), plain: { seeds: plain, late, inTime: plain === 0 ? 1 : Number((1 - late / plain).toFixed(4)) }, excused, excuses: Object.fromEntries(excuses), quarantined,
      violations: { safety: count('safety'), liveness: count('liveness'), restraint: count('restraint'), progress: count('progress') },
    }),
  }
}
