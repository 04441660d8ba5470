// A long run of random trouble, drawn from a seed, on a cluster that does its work all the while. The file judges as it goes on;
// what was cut off without cause, and what never ended, is read from the API server and the management controllers.
import { machineClock as clock, withDeadline } from '../../edge/clock.ts'
import { given, type Incident } from '../../core/incident.ts'
import type { Ms } from '../../core/model.ts'
import { profiles } from '../../core/policy.ts'
import { seededChance, type Chance } from '../../sim/chance.ts'
import { drawKind, type Kind } from './chaos-kinds.ts'
import { requestsIn, writing } from './api-journal.ts'
import { secondWriters } from './judge.ts'
import type { Machine } from './machine.ts'
import { disorder, type Stage } from './stage.ts'
import { transcript } from './story.ts'
import { volumes, workNamespace } from './workload.ts'

export interface Run {
  readonly faults: ReadonlyMap<string, number>
  /** Boots that ended. */
  readonly deaths: number
  readonly incidents: readonly Incident[]
  /** Promises that were broken, each in words. */
  readonly violations: readonly string[]
  /** Everything that was done, and when. */
  readonly log: readonly string[]
}

export interface RunSettings {
  readonly seed: number | string
  readonly span: Ms
  /** From one trouble to the next. */
  readonly pause: readonly [Ms, Ms]
}

/** At once: more would be a cluster in which nothing is true for long enough to be asked. */
const mostAtOnce = 2
const beginsWithin: Ms = 15_000
/** Patience is counted from the last beat, which comes once a second. */
const shortest: Ms = profiles.fast.deadAfter - 1_000
/** An agent that found nobody for long dials again after ten seconds, and until then its node is judged by what was seen before. */
const lingers: Ms = 20_000
/** Nobody speaks for a machine before that. */
const bootsWithin: Ms = 45_000
const endsWithin: Ms = 420_000
const looksEvery: Ms = 2_000

/** Of a machine, of the wall; without an end it goes on. */
export interface Trouble {
  readonly node: string
  readonly from: number
  to: number
  /** Whether it ended a boot. */
  readonly deadly: boolean
}

export async function runChaos(stage: Stage, { seed, span, pause }: RunSettings): Promise<Run> {
  const chance = seededChance(seed)
  const [began, beganWall] = [clock.now(), clock.wall()]
  const log: string[] = []
  const faults = new Map<string, number>()
  const troubles: Trouble[] = []
  const active = new Set<Promise<void>>()
  const before = new Set((await stage.incidents()).map(({ name }) => name))
  const machines = [...stage.cluster.machines.values()]
  const boots = new Set(machines.map((machine) => machine.bootId()))
  const note = (line: string): void => {
    log.push(`${new Date(clock.wall()).toISOString()} ${line}`)
  }

  const strike = async (kind: Kind, machine: Machine, lasts: Ms, own: Chance): Promise<void> => {
    const struck = kind.silences === 'any machine' ? machines : kind.silences === 'its machine' ? [machine] : []
    const mine = struck.map(({ name }): Trouble => ({ node: name, from: clock.wall(), to: Infinity, deadly: kind.deadly ?? false }))
    troubles.push(...mine)
    const beginning = kind.begin(stage, machine, own)
    const end = await withDeadline(clock, beginsWithin, 'late' as const, () => beginning).catch((error: unknown) => {
      note(`${machine.name} ${kind.what}: not now, ${String(error).slice(0, 120)}`)
      return undefined
    })
    // What begins at last, when nobody waits for it any more, ends at once.
    if (end === 'late') void beginning.then((over) => over()).catch(() => undefined)
    else if (end !== undefined) {
      faults.set(kind.what, (faults.get(kind.what) ?? 0) + 1)
      note(`${machine.name} ${kind.what} for ${(lasts / 1_000).toFixed(1)} s`)
      await clock.wait(lasts)
      await end().then(() => note(`${machine.name} ${kind.what}: over`), (error: unknown) => note(`${machine.name} ${kind.what}: not ended, ${String(error).slice(0, 120)}`))
    }
    for (const trouble of mine) trouble.to = clock.wall()
  }
  const look = (): void => {
    for (const machine of machines) {
      // Off for longer than the trouble lasted, until somebody gives the power back.
      const died = machine.power() === 'off' || !boots.has(machine.bootId())
      if (died) troubles.push({ node: machine.name, from: clock.wall(), to: clock.wall(), deadly: true })
      boots.add(machine.bootId())
    }
  }

  for (let count = 0; clock.now() - began < span && written(stage).length === 0; count += 1) {
    const own = chance.fork(`trouble ${count}`)
    const kind = drawKind(chance)
    const machine = await victim(stage, chance)
    const striking = strike(kind, machine, chance.between(...kind.span), own).finally(() => active.delete(striking))
    active.add(striking)
    for (const until = clock.now() + chance.between(...pause); clock.now() < until || active.size >= mostAtOnce; await clock.wait(looksEvery)) look()
  }
  await Promise.all(active)
  note('no more trouble')

  const violations: string[] = []
  let why: string | undefined
  for (const limit = clock.now() + endsWithin; (why = await disorder(stage)) !== undefined; await clock.wait(looksEvery)) {
    look()
    if (clock.now() < limit) continue
    violations.push(`liveness: not at peace ${endsWithin / 1_000} s after the last trouble: ${why}`)
    break
  }
  look()
  note(why ?? 'peace')
  const incidents = (await stage.incidents()).filter(({ name }) => !before.has(name))
  violations.push(...written(stage), ...requestsIn(stage.cluster.folder).filter(writing).map(({ node, verb, path }) => `rights: the agent of ${node} asked the API server to ${verb} ${path}`), ...incidents.flatMap((incident) => needless(incident, troubles)), ...unrecorded(stage, await stage.incidents(), beganWall))
  return { faults, deaths: boots.size - machines.length, incidents, violations, log: [...incidents.map(transcript), ...log] }
}

/** That of the workload more often than not: trouble elsewhere finds less. */
async function victim(stage: Stage, chance: Chance): Promise<Machine> {
  const machines = [...stage.cluster.machines.values()]
  const [ofTheWorkload, other] = [chance.yes(0.6), chance.pick(machines)]
  const pods = ofTheWorkload ? await stage.pods(workNamespace).catch(() => []) : [] // the API server may be away
  return machines.find(({ name }) => pods.some(({ spec }) => spec.nodeName === name)) ?? other
}

export function written(stage: Pick<Stage, 'turns'>): readonly string[] {
  return volumes.flatMap((volume) => secondWriters(stage.turns(volume)).map((line) => `two writers: ${volume}: ${line}`))
}

/** A machine that was ordered off when no trouble of its own had silenced it for as long as a death is waited for, or long after one. */
export function needless({ name, nodeName, status }: Incident, troubles: readonly Trouble[]): readonly string[] {
  const opened = Date.parse(status.timeline[0]?.at ?? '')
  const silenced = troubles.some(({ node, from, to, deadly }) => (
    node === nodeName && from <= opened && (deadly ? opened <= to + bootsWithin : opened <= to + lingers && Math.min(opened, to) - from >= shortest)
  ))
  return silenced || status.attempts.every(({ action }) => action === 'on') ? [] : [`restraint: ${nodeName} was taken for dead at ${status.timeline[0]?.at}, without such a trouble of its own, and ordered off: ${name}`]
}

/** A record's instants are in whole seconds. */
const recordedTo: Ms = 1_000

/** By the management controllers' own word, since then: each machine that was ordered off when no incident of its node had such an order on record, which is written first. */
export function unrecorded({ management }: Pick<Stage, 'management'>, incidents: readonly Incident[], since: number): readonly string[] {
  return [...management.of].flatMap(([node, { orders }]) => {
    const offs = incidents.filter(({ nodeName }) => nodeName === node).flatMap(({ status }) => given(status).filter(({ action }) => action === 'off'))
    const onRecord = (at: number): boolean => offs.some(({ startedAt, endedAt, within, late }) => {
      const began = Date.parse(startedAt)
      return began <= at && at <= (endedAt === undefined ? began + within : Date.parse(endedAt)) + late + recordedTo
    })
    return orders.filter(({ order, at }) => order === 'ForceOff' && at >= since && !onRecord(at))
      .map(({ at }) => `restraint: ${node} was ordered off at ${new Date(at).toISOString()}, and no incident has it on record`)
  })
}
