// `npm run sim -- --seeds N [--from M]`: the story under random trouble, N times. Each seed draws one fault of a node and up to
// three troubles around it (replicas killed or paused, the API server away or losing answers, partitions, devices that refuse,
// hang or act late), lets all of it end, and asks four judges outside the product: did two write one volume (safety), did
// everything end (liveness), was only a node that had failed fenced (restraint), and did a true death get cleared (progress).
import { argv, exit } from 'node:process'
import type { Ms } from '../core/model.ts'
import type { DeviceFault } from './device.ts'
import { seededChance, type Chance } from './chance.ts'
import { settled, stage, type Stage } from './stage.ts'
import type { KubeObject } from '../coordinator/api.ts'

const nodes = ['node-1', 'node-2', 'node-3', 'node-4']
const calm: Ms = 20_000
const trouble: Ms = 120_000
/** Everything that waits for a time-out, a rest or a late order is over by then. */
const patience: Ms = 1_800_000

type Fault = 'power' | 'freeze' | 'isolate' | 'reboot' | 'agent' | 'none'

interface Run {
  readonly seed: number
  readonly schedule: readonly string[]
  readonly findings: readonly string[]
}

if (import.meta.main) {
  const seeds = numberOf('--seeds', 50)
  const from = numberOf('--from', 1)
  let failed = 0
  const began = performance.now()
  for (let seed = from; seed < from + seeds; seed += 1) {
    const run = await runSeed(seed)
    if (run.findings.length === 0) continue
    failed += 1
    console.log(`seed ${seed}: ${run.schedule.join(', ')}`)
    for (const finding of run.findings) console.log(`  ${finding}`)
  }
  console.log(`${(seeds / ((performance.now() - began) / 1_000)).toFixed(1)} seeds a second`)
  console.log(`${seeds - failed} passed, ${failed} failed`)
  exit(failed > 0 ? 1 : 0)
}

function numberOf(name: string, usual: number): number {
  const at = argv.indexOf(name)
  const value = at === -1 ? usual : Number(argv[at + 1])
  return Number.isInteger(value) && value > 0 ? value : usual
}

export async function runSeed(seed: number): Promise<Run> {
  const chance = seededChance(seed).fork('search')
  const on = await stage({ seed, nodes })
  await on.run(calm)
  const schedule: string[] = []
  const victim = await theVictim(on) ?? 'node-1'
  const fault = pick<Fault>(chance, ['power', 'power', 'freeze', 'freeze', 'isolate', 'isolate', 'reboot', 'agent', 'none'])
  plan(on, chance, schedule, `${fault} ${victim}`, 0, () => strike(on, fault, victim))
  const troubles = Math.floor(chance.between(0, 4))
  for (let count = 0; count < troubles; count += 1) addTrouble(on, chance, schedule, victim)
  await on.run(trouble)
  relieve(on, fault, victim)
  const ended = await quiet(on)
  return { seed, schedule, findings: [...broken(on), ...needless(on, fault, victim), ...(ended === undefined ? [] : [ended])] }
}

async function theVictim(on: Stage): Promise<string | undefined> {
  const answer = await settled(on.world, on.world.api.get<KubeObject & { spec: { nodeName?: string } }>('/api/v1/namespaces/work/pods/db-0'))
  return answer.ok ? answer.value.spec.nodeName : undefined
}

function plan(on: Stage, chance: Chance, schedule: string[], what: string, latest: Ms, act: () => void): void {
  const at = latest === 0 ? 0 : chance.between(0, latest)
  schedule.push(`${what} at ${(at / 1_000).toFixed(1)} s`)
  on.world.clock.after(at, act)
}

function strike({ world }: Stage, fault: Fault, victim: string): void {
  switch (fault) {
    case 'power': return world.cutPower(victim)
    case 'freeze': return world.freeze(victim)
    case 'isolate': return void world.isolate(victim)
    case 'reboot': return world.reboot(victim, 1_500)
    case 'agent': return world.killAgent(victim)
    case 'none': return undefined
  }
}

function addTrouble(on: Stage, chance: Chance, schedule: string[], victim: string): void {
  const { world } = on
  const soon: Ms = 15_000
  const span = chance.between(1_000, 45_000)
  const lasting = `${(span / 1_000).toFixed(1)} s`
  const replica = Math.floor(chance.between(0, 2))
  const then = (act: () => void): void => { world.clock.after(span, act) }
  const device = world.devices.get(`bmc-${victim}`)
  const kind = pick(chance, ['kill leader', 'kill replica', 'pause', 'api away', 'lose answers', 'stall watches', 'replica cut off', 'agents cut off', 'device', 'power button'])
  switch (kind) {
    case 'kill leader': case 'kill replica':
      return plan(on, chance, schedule, `${kind} for ${lasting}`, soon, () => {
        const number = kind === 'kill leader' ? on.leader() ?? replica : replica
        world.killReplica(number)
        then(() => world.startReplica(number))
      })
    case 'pause': {
      const clocks = pick(chance, ['standing', 'running'] as const)
      return plan(on, chance, schedule, `leader paused for ${lasting}, clocks ${clocks}`, soon, () => world.pauseReplica(on.leader() ?? replica, span, clocks))
    }
    case 'api away':
      return plan(on, chance, schedule, `api away for ${lasting}`, soon, () => {
        world.server?.faults.set([{ does: 'unreachable' }])
        world.server?.faults.breakWatches()
        then(() => world.server?.faults.clear())
      })
    case 'lose answers': {
      let writes = 0
      return plan(on, chance, schedule, `every other answer lost for ${lasting}`, soon, () => {
        world.server?.faults.set([{ does: 'lose answer', strikes: (call) => call.method !== 'GET' && call.user.name.includes('coordinator') && (writes += 1) % 2 === 0 }])
        then(() => world.server?.faults.clear())
      })
    }
    case 'stall watches':
      return plan(on, chance, schedule, `watches stalled for ${lasting}`, soon, () => {
        world.server?.faults.set([{ does: 'stall watch' }])
        then(() => world.server?.faults.clear())
      })
    case 'replica cut off':
      return plan(on, chance, schedule, `replica-${replica} cut off from the API for ${lasting}`, soon, () => then(world.partition({ from: [`replica-${replica}`], to: ['api'] })))
    case 'agents cut off':
      return plan(on, chance, schedule, `replica-${replica} cut off from all nodes for ${lasting}`, soon, () => then(world.partition({ from: [`replica-${replica}`], to: nodes })))
    case 'device': {
      const faults: readonly DeviceFault[] = [{ does: 'fail' }, { does: 'hang' }, { does: 'ignore' }, { does: 'late', by: span / 2 }, { does: 'bounce', after: 400 }, { does: 'say-off-once' }]
      const wrong = pick(chance, faults)
      return plan(on, chance, schedule, `device does ${wrong.does} for ${lasting}`, soon, () => {
        if (device === undefined) return
        device.fault = wrong
        then(() => { device.fault = undefined })
      })
    }
    case 'power button':
      return plan(on, chance, schedule, 'power comes back by itself', soon * 2, () => world.powerOn(victim))
  }
}

/** All faults end: the power is back, the cable is in, the agent runs. */
function relieve({ world }: Stage, fault: Fault, victim: string): void {
  world.heal()
  world.server?.faults.clear()
  for (const device of world.devices.values()) device.fault = undefined
  for (const number of [0, 1]) world.startReplica(number)
  if (fault === 'freeze') world.thaw(victim)
  if (fault === 'agent') world.startAgent(victim)
}

/** Undefined: everything ended. */
async function quiet(on: Stage): Promise<string | undefined> {
  const end = on.world.clock.now() + patience
  let left = ''
  while (on.world.clock.now() < end) {
    await on.run(5_000)
    left = unfinished(on)
    if (left === '') return undefined
    // A node that nobody here switched off rests until a person does it.
    for (const node of nodes) if (!on.world.judges.isPoweredOn(node) && on.world.clock.now() > end - patience + 600_000) on.world.powerOn(node)
  }
  return `liveness: ${left}`
}

function unfinished(on: Stage): string {
  const peek = (collection: string): readonly (KubeObject & { spec?: { taints?: { key: string }[] }; status?: { phase?: string; holds?: { because: string }[] } })[] => on.world.server?.peek(collection) ?? []
  const open = peek('nodefences.holdfast.dev').filter((fence) => fence.status?.phase !== 'Final')
  const taints = peek('nodes').filter((node) => node.spec?.taints?.some((taint) => taint.key.startsWith('holdfast.dev/') || taint.key.endsWith('out-of-service')))
  const pods = peek('pods').filter((pod) => pod.metadata.namespace === 'work')
  const idle = pods.filter((pod) => pod.status?.phase !== 'Running' || pod.metadata.deletionTimestamp !== undefined)
  return [
    ...open.map((fence) => `${fence.metadata.name} is ${fence.status?.phase} (${fence.status?.holds?.map((hold) => hold.because).join()})`),
    ...taints.map((node) => `${node.metadata.name} bears our taint`),
    ...(pods.length < 3 || idle.length > 0 ? [`the workload does not run: ${idle.map((pod) => `${pod.metadata.name} ${pod.status?.phase}`).join()}`] : []),
  ].join('; ')
}

function broken({ world: { judges } }: Stage): string[] {
  return [
    ...judges.twoWriters().map((one) => `safety: two writers on ${one.volume}: ${one.one}, ${one.other}`),
    ...judges.wroteAfterRelease().map((one) => `safety: ${one.writer} wrote ${one.volume} after its release`),
    ...judges.twins().map((one) => `safety: twins ${JSON.stringify(one)}`),
  ]
}

/** A node that was well all the time lost its power by our order. */
function needless({ world }: Stage, fault: Fault, victim: string): string[] {
  // A machine that reboots unannounced is silent for as long as it boots: nothing tells it from a dead one.
  const struck = fault === 'none' || fault === 'agent' ? undefined : victim
  const offs = world.truth.entries.filter((entry) => entry.what === 'device ordered' && entry.facts['to'] === 'off').map((entry) => String(entry.facts['device']))
  return [...new Set(offs)].filter((device) => device !== `bmc-${struck}`).map((device) => `restraint: ${device} was ordered off, its machine was well`)
}

function pick<T>(chance: Chance, among: readonly T[]): T {
  return among[Math.min(among.length - 1, Math.floor(chance.between(0, among.length)))] as T // the list is not empty
}
