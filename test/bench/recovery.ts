// How long until the volumes of a dead node are free, on a real control plane with Kubernetes' default timers and the product as
// real processes. Three spans of one run, so that the machine's mood divides out: what the control plane itself needs (taint
// and deletions by hand, at once), a power loss, a kernel freeze. Each begins with the fault and ends when the last
// VolumeAttachment of the node is gone; each cut comes at a random phase of the beat.
import { outOfServiceKey } from '../../core/clear.ts'
import type { Incident } from '../../core/incident.ts'
import type { Ms, Taint } from '../../core/model.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import type { Flag } from './run.ts'
import { startLab, type Lab } from '../control-plane/lab.ts'
import { incidents, nodesOf, settle, until, workload, workloadRuns, type Play } from '../control-plane/lab-play.ts'

const faults = ['floor', 'power loss', 'kernel freeze'] as const
type Fault = typeof faults[number]

interface Run {
  readonly fault: Fault
  readonly released: Ms
  /** Steps of the incident by name, after the fault. */
  readonly steps: Readonly<Record<string, Ms>>
}

interface Figures {
  readonly fault: Fault
  readonly runs: number
  readonly p50: Ms
  readonly p99: Ms
  readonly max: Ms
  readonly all: readonly Ms[]
  readonly steps: Readonly<Record<string, Ms>>
}

const usualRuns = 10
const calmWithin = 240_000
const releasedWithin = 120_000
const settings = { nodes: 4, zones: 2, bootTime: [1_000, 2_000], deviceStatus: 200, deviceOff: 2_000, detach: 500 } as const

export const flags: Readonly<Record<string, Flag>> = {
  runs: { wants: 'N', fits: /^[1-9]\d*$/ },
  only: { wants: `"${faults.join('"|"')}"`, fits: new RegExp(`^(${faults.join('|')})$`) },
  folder: { wants: 'PATH', fits: /^[^-]/ },
  log: { wants: 'LEVEL', fits: /^[a-z]+$/ },
}

export async function bench(json: boolean, options: ReadonlyMap<string, string>): Promise<void> {
  const runs = Number(options.get('runs') ?? usualRuns)
  const wanted = faults.filter((fault) => (options.get('only') ?? fault) === fault)
  const folder = options.get('folder')
  const lab = await startLab({ ...settings, logLevel: options.get('log') ?? 'info', ...(folder === undefined ? {} : { folder }) })
  const all: Run[] = []
  const told = (run: Run) => {
    all.push(run)
    if (!json) console.log(`${run.fault}: released ${seconds(run.released)}; ${Object.entries(run.steps).map(([what, at]) => `${what} ${seconds(at)}`).join(', ')}`)
  }
  try {
    if (wanted.includes('floor')) for (let run = 0; run < runs; run += 1) told(await floor(lab))
    await Promise.all([0, 1].map((number) => lab.replicas.start(number)))
    for (const fault of wanted) {
      if (fault !== 'floor') for (let run = 0; run < runs; run += 1) told(await recovery(lab, fault))
    }
  } finally {
    await lab.stop()
  }
  const figures = wanted.map((fault) => figuresOf(fault, all.filter((run) => run.fault === fault)))
  for (const one of figures) console.log(`${one.fault}: p50 ${seconds(one.p50)}, p99 ${seconds(one.p99)}, max ${seconds(one.max)} of ${one.runs} runs`)
  if (json) console.log(JSON.stringify({ benchmark: 'recovery', kubernetes: process.env['HOLDFAST_KUBERNETES'] ?? '1.36.4', ...settings, figures }))
}

/** A person who knows at once, does everything at once, and types as fast as a program. */
async function floor(lab: Lab): Promise<Run> {
  await until('the cluster is calm', async () => await calm(lab), calmWithin)
  const victim = (await workload(lab)).find((pod) => pod.metadata.name === 'db-0')?.spec.nodeName ?? ''
  const pods = (await workload(lab)).filter((pod) => pod.spec.nodeName === victim)
  await randomPhase()
  const gone = released(lab, victim)
  lab.world.cutPower(victim)
  await taints(lab, victim, (before) => [...before, { key: outOfServiceKey, value: 'nodeshutdown', effect: 'NoSchedule' }])
  await Promise.all(pods.map(({ metadata: { namespace, name } }) => lab.api.remove(`/api/v1/namespaces/${namespace}/pods/${name}`, { gracePeriodSeconds: 0 })))
  const run: Run = { fault: 'floor', released: await gone, steps: {} }
  await taints(lab, victim, (before) => before.filter(({ key }) => key !== outOfServiceKey))
  lab.world.powerOn(victim)
  return run
}

/** As `kubectl taint`: what was read, with one more or one less. */
async function taints(lab: Lab, node: string, change: (before: readonly Taint[]) => readonly Taint[]): Promise<void> {
  const read = await lab.api.get<{ metadata: { resourceVersion: string }; spec?: { taints?: Taint[] } }>(`/api/v1/nodes/${node}`)
  if (!read.ok) throw new Error(read.error.message)
  const { metadata: { resourceVersion }, spec } = read.value
  const written = await lab.api.patch(`/api/v1/nodes/${node}`, 'merge', { metadata: { resourceVersion }, spec: { taints: change(spec?.taints ?? []) } })
  if (!written.ok) throw new Error(written.error.message)
}

async function recovery(lab: Lab, fault: Exclude<Fault, 'floor'>): Promise<Run> {
  const settled = await settle(lab, calmWithin)
  if (settled === undefined) throw new Error('the cluster does not settle')
  await randomPhase()
  const play: Play = { ...settled, beganAt: clock.now(), beganWall: clock.wall() }
  const gone = released(lab, play.victim)
  if (fault === 'power loss') lab.world.cutPower(play.victim)
  else lab.world.freeze(play.victim)
  const span = await gone
  await until('the incident tells of it', () => incidents(play).some((incident) => incident.status.timeline.some(({ what }) => what === 'volumes released')), releasedWithin)
  const [incident] = incidents(play)
  return { fault, released: span, steps: incident === undefined ? {} : stepsOf(play, incident) }
}

/** From now until the node's last VolumeAttachment is gone. */
function released(lab: Lab, node: string): Promise<Ms> {
  const began = clock.now()
  if (lab.attachments(node).length === 0) throw new Error(`${node} has no volume to release`)
  return new Promise((resolve, reject) => {
    const late = clock.after(releasedWithin, () => reject(new Error(`the volumes of ${node} are not released`)))
    const deaf = lab.listen(() => {
      if (lab.attachments(node).length > 0) return
      late()
      deaf()
      resolve(clock.now() - began)
    })
  })
}

function stepsOf(play: Play, incident: Incident): Record<string, Ms> {
  const steps: Record<string, Ms> = {}
  for (const { what, at } of incident.status.timeline) steps[what] ??= Date.parse(at) - play.beganWall
  return steps
}

async function calm(lab: Lab): Promise<boolean> {
  const ready = (await nodesOf(lab)).every((node) => node.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True')
  return ready && await workloadRuns(lab) && [...lab.nodes.values()].every((node) => node.agent() !== undefined)
}

function randomPhase(): Promise<void> {
  return clock.wait(Math.random() * 1_000)
}

function figuresOf(fault: Fault, runs: readonly Run[]): Figures {
  const all = runs.map((run) => Math.round(run.released)).toSorted((one, other) => one - other)
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.steps)))].filter((name) => !name.startsWith('held'))
  return {
    fault, runs: runs.length, p50: quantile(all, 0.5), p99: quantile(all, 0.99), max: all.at(-1) ?? 0, all,
    steps: Object.fromEntries(names.map((name) => [name, quantile(runs.flatMap((run) => run.steps[name] ?? []).toSorted((one, other) => one - other), 0.5)])),
  }
}

/** Of sorted values: the smallest that so large a share does not exceed. */
function quantile(sorted: readonly Ms[], share: number): Ms {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0
}

function seconds(span: Ms): string {
  return `${(span / 1_000).toFixed(2)} s`
}
