// How long until the volumes of a dead node are free: what the control plane itself needs, done by hand at once, and what the product makes
// of a fault. Each begins with the fault, at a random phase of the beat, and ends when the last VolumeAttachment of the node is gone.
import { outOfServiceKey } from '../../core/clear.ts'
import type { Incident } from '../../core/incident.ts'
import type { Ms, Taint } from '../../core/model.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import type { Lab } from './lab.ts'
import { incidents, settle, startReplicas, until, workload, type Play } from './lab-play.ts'

export const faults = ['floor', 'power loss', 'kernel freeze'] as const
export type Fault = typeof faults[number]

export interface Run {
  readonly fault: Fault
  readonly released: Ms
  /** Steps of the incident by name, after the fault. */
  readonly steps: Readonly<Record<string, Ms>>
}

const calmWithin = 240_000
const releasedWithin = 120_000

/** A person who knows at once, does everything at once, and types as fast as a program. No replica runs meanwhile: the control plane is
 *  alone with it. Before and after they must, since no gate opens without their word. */
export async function floor(lab: Lab): Promise<Run> {
  const { victim } = await settledLab(lab)
  const pods = (await workload(lab)).filter((pod) => pod.spec.nodeName === victim)
  await Promise.all([...lab.replicas.running.keys()].map((number) => lab.replicas.kill(number)))
  await randomPhase()
  const gone = released(lab, victim)
  lab.world.cutPower(victim)
  await taints(lab, victim, (before) => [...before, { key: outOfServiceKey, value: 'nodeshutdown', effect: 'NoSchedule' }])
  await Promise.all(pods.map(({ metadata: { namespace, name } }) => lab.api.remove(`/api/v1/namespaces/${namespace}/pods/${name}`, { gracePeriodSeconds: 0 })))
  const run: Run = { fault: 'floor', released: await gone, steps: {} }
  await taints(lab, victim, (before) => before.filter(({ key }) => key !== outOfServiceKey))
  lab.world.powerOn(victim)
  await startReplicas(lab)
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

export async function recovery(lab: Lab, fault: Exclude<Fault, 'floor'>): Promise<Run> {
  const settled = await settledLab(lab)
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

async function settledLab(lab: Lab): Promise<Play> {
  const settled = await settle(lab, calmWithin)
  if (settled === undefined) throw new Error('the cluster does not settle')
  return settled
}

function randomPhase(): Promise<void> {
  return clock.wait(Math.random() * 1_000)
}

/** Of sorted values: the smallest that so large a share does not exceed. */
export function quantile(sorted: readonly Ms[], share: number): Ms {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0
}
