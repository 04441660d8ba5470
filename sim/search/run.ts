// One schedule, run: the whole product in a world of its own, what goes wrong in it, and what the judges say.
import type { KubeObject } from '../../coordinator/api.ts'
import type { Ms } from '../../core/model.ts'
import { settled, stage, type Stage } from '../stage.ts'
import type { World } from '../world.ts'
import { markOf } from './coverage.ts'
import { onCue } from './cue.ts'
import { effectsOf } from './effects.ts'
import { convene, progress, unfinished, type Court, type Excuse, type Violation } from './judgement.ts'
import type { Struck } from './judges/excuses.ts'
import { stageOf, type Scene } from './scene.ts'
import { calm, isPlain, kinds, type Schedule } from './schedule.ts'
import { createApiTroubles, type Ground, type Trouble } from './trouble.ts'

export interface Outcome {
  readonly schedule: Schedule
  readonly violations: readonly Violation[]
  readonly excused: readonly Excuse[]
  /** Kinds of trouble that took effect. */
  readonly struck: readonly string[]
  /** What of its scene came into play. */
  readonly effects: readonly string[]
  readonly incidents: number
  /** Times that a node which was well was kept from new pods for a while. */
  readonly quarantined: number
  readonly marks: readonly string[]
  readonly simulated: Ms
  /** The world's truth, a line an entry; asked for only where somebody will read it. */
  transcript(): string
}

/** Whatever waits for a time-out, a rest or a late order is over after so long. */
const usualPatience: Ms = 1_800_000
/** What nobody of us switched off, a person switches on after so long. */
const personComes: Ms = 420_000
/** A machine that a person switched on boots, and what it lacks still is given back. */
const settlesWithin: Ms = 120_000

export async function run(schedule: Schedule): Promise<Outcome> {
  const { scene, seed, troubles, reliefAt, shortest, patience = usualPatience } = schedule
  const on = await stage(stageOf(scene, seed))
  await on.run(calm)
  const victim = await victimOf(on)
  const struck: Struck[] = []
  const ground = groundOf(on, victim, struck)
  const court = convene(on)
  const began = on.world.clock.now()
  const ends = troubles.map((trouble) => arm(ground, trouble))
  await on.run(reliefAt)
  for (const end of ends) end()
  relieve(on, scene)
  court.relieved()
  const left = await quiet(on, court, patience)
  await on.run(Math.max(0, began + shortest - on.world.clock.now()))
  const violations: Violation[] = [
    ...court.close(), ...left,
    ...(isPlain(schedule) ? progress(on.world, victim, began) : []),
  ]
  const excused = court.excuses(violations, struck)
  const outcome: Outcome = {
    schedule, excused, struck: [...new Set(struck.map(({ does }) => does))], quarantined: court.quarantined(), incidents: on.world.server?.peek('nodefences.holdfast.dev').length ?? 0,
    violations: violations.filter((violation) => excused.every((excuse) => excuse.of !== violation)),
    effects: effectsOf(on), marks: marksOf(on, court.turns()), simulated: on.world.clock.now(), transcript: () => on.world.truth.text(),
  }
  on.world.stop()
  return outcome
}

async function victimOf(on: Stage): Promise<string> {
  const answer = await settled(on.world, on.world.api.get<KubeObject & { spec: { nodeName?: string } }>('/api/v1/namespaces/work/pods/db-0'))
  return (answer.ok ? answer.value.spec.nodeName : undefined) ?? 'node-1'
}

function groundOf(on: Stage, victim: string, struck: Struck[]): Ground {
  const node = ({ on: whose }: Trouble): string => (whose === 'victim' || !on.world.nodes.has(whose) ? victim : whose)
  return {
    on, api: createApiTroubles(on), node,
    strikes: (trouble) => void struck.push({ at: on.world.clock.now(), does: trouble.does, node: node(trouble) }),
    replica(trouble) {
      const number = trouble.on === 'leader' ? on.leader() : Number(trouble.on)
      return number !== undefined && on.world.replicas.running.has(number) ? number : undefined
    },
  }
}

/** The answer ends it, if it has begun. */
function arm(ground: Ground, trouble: Trouble): () => void {
  const { clock, truth } = ground.on.world
  let end: (() => void) | undefined
  let forget: (() => void) | undefined
  const begin = (): (() => void) => clock.after(trouble.at, () => {
    end = kinds[trouble.does]?.begin(ground, trouble)
    if (end === undefined) return
    truth.note('trouble', { does: trouble.does, on: trouble.on, how: trouble.how ?? '' })
    if (kinds[trouble.does]?.waits !== true) ground.strikes(trouble)
    clock.after(trouble.span, () => {
      end?.()
      truth.note('trouble ends', { does: trouble.does, on: trouble.on })
    })
  })
  if (trouble.after === undefined) begin()
  else forget = onCue(truth, trouble.after, () => { forget = begin() })
  return () => {
    forget?.()
    end?.()
  }
}

/** Nothing goes wrong any more. A frozen kernel that was frozen for good stays so: it is for us to end that. */
function relieve({ world }: Stage, { bare }: Scene): void {
  world.heal()
  world.server?.faults.clear()
  for (const device of world.devices.values()) device.heal()
  for (let number = 0; number < world.settings.replicas; number += 1) world.startReplica(number)
  for (const name of world.nodes.keys()) {
    if (name !== bare) world.startAgent(name)
    world.startKubelet(name)
  }
  world.truth.note('relief', {})
}

/** What is left when patience ends, and what was left for a person to do that was ours. */
async function quiet(on: Stage, court: Court, patience: Ms): Promise<readonly Violation[]> {
  const relieved = on.world.clock.now()
  let ours: readonly Violation[] | undefined
  let left = unfinished(on)
  let settles = relieved
  while ((left.length > 0 || on.world.clock.now() < settles) && on.world.clock.now() < relieved + patience) {
    await on.run(5_000)
    left = unfinished(on)
    if (on.world.clock.now() <= relieved + personComes) continue
    ours ??= court.leftInTheDark()
    if (person(on)) settles = on.world.clock.now() + settlesWithin
  }
  return [...ours ?? [], ...left.map((what): Violation => ({ judge: 'liveness', what }))]
}

/** Somebody comes and switches on what is off, resets what is frozen and nobody had a word about, or what runs though its watchdog was to end it, and
 *  lets in to its storage what an incident has left to them by its last word. Whether there was any. */
function person({ world }: Stage): boolean {
  const theirs = leftToAPerson(world)
  const still = [...world.nodes].filter(([name, { machine }]) => machine.state() === 'off' || machine.frozen() || outlivesItsWatchdog(name, world))
  for (const { plugs, turn, kind } of new Set(world.devices.values())) {
    for (const [plug, { machine, switched }] of plugs) if (switched === 'off' && machine !== undefined && (kind === 'port' ? theirs.has(machine.name) : machine.state() === 'off')) turn(plug, 'on')
  }
  for (const [name, { machine }] of still) {
    if (machine.state() === 'off') world.powerOn(name)
    else if (machine.frozen() || outlivesItsWatchdog(name, world)) world.reboot(name, 1_000)
  }
  return still.length > 0
}

/** It runs in the boot that its watchdog should have ended: whatever waits for that waits for ever. */
function outlivesItsWatchdog(name: string, { nodes, truth }: World): boolean {
  const bootedAt = nodes.get(name)?.machine.boot()?.at ?? Infinity
  return truth.entries.some(({ at, what, facts }) => what === 'watchdog does not fire' && facts['node'] === name && at >= bootedAt)
}

/** Nodes under whose name another machine came, where the one before was cut off. */
function leftToAPerson({ server }: World): ReadonlySet<string> {
  const over = (server?.peek('nodefences.holdfast.dev') ?? []) as readonly (KubeObject & { spec: { nodeName: string }; status?: { timeline?: readonly { detail: string }[] } })[] // a NodeFence
  return new Set(over.filter(({ status }) => status?.timeline?.at(-1)?.detail.endsWith('until a person knows what is behind it') === true).map(({ spec }) => spec.nodeName))
}

/** Which of its own words the product has said: coverage is read off what it writes and logs, not built into it. */
function marksOf({ world }: Stage, turns: ReadonlySet<string>): readonly string[] {
  const marks = new Set([...turns].map((turn) => `phase ${turn}`))
  for (const fence of world.server?.peek('nodefences.holdfast.dev') ?? []) {
    const { status } = fence as KubeObject & { status?: { outcome?: string; proof?: { kind: string }; voided?: readonly object[]; timeline?: readonly { what: string }[] } } // a NodeFence
    if (status?.outcome !== undefined) marks.add(`outcome ${status.outcome}`)
    if (status?.proof !== undefined) marks.add(`proof ${status.proof.kind}`)
    for (const { what } of status?.timeline ?? []) marks.add(`moment ${what}`)
  }
  for (const { what, facts } of world.truth.entries) {
    const mark = what === 'log' ? markOf(facts) : undefined
    if (mark !== undefined) marks.add(mark)
  }
  return [...marks].toSorted()
}
