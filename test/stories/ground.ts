// What a story needs of the ground it is told on, so that one text serves the simulated world and the real control plane.
import type { Incident } from '../../core/incident.ts'
import type { Ms } from '../../core/model.ts'
import type { TruthEntry } from '../../sim/truth.ts'
import type { World } from '../../sim/world.ts'
import { findings, ourTaints, peace, type Play } from './play.ts'
import { settled, type StageSettings } from '../../sim/stage.ts'

export interface Ground {
  readonly world: World
  /** The node that runs the StatefulSet's first pod. */
  readonly victim: string
  /** Its cable, until the answer is called. */
  isolate(node: string): () => void
  /** The device of the node answers nobody, until the answer is called. */
  mute(node: string): () => void
  run(span: Ms): Promise<void>
  /** The world turns while it is waited for. */
  answered<T>(promise: Promise<T>): Promise<T>
  until(what: string, so: () => boolean | Promise<boolean>, within: Ms): Promise<void>
  /** Those that were opened since the story began. */
  incidents(): Promise<readonly Incident[]>
  /** What really happened since. */
  happened(what: string): readonly TruthEntry[]
  /** What the world's judges found since. */
  findings(): readonly string[]
  taints(): Promise<readonly string[]>
}

export interface Story {
  readonly title: string
  tell(on: Ground): Promise<void>
}

export async function stageGround(settings: StageSettings): Promise<Ground> {
  const on: Play = await peace(settings)
  const { world, victim } = on
  return {
    world, victim,
    isolate: world.isolate,
    mute(node) {
      const device = world.devices.get(`bmc-${node}`)
      if (device === undefined) throw new Error(`${node} has no device`)
      device.fault = { does: 'hang' }
      return () => { device.fault = undefined }
    },
    run: on.run, answered: (promise) => settled(world, promise), until: on.until, incidents: on.incidents,
    happened: (what) => world.truth.entries.filter((entry) => entry.at >= on.beganAt && entry.what === what),
    findings: () => findings(on),
    taints: () => Promise.resolve(ourTaints(on)),
  }
}

/** The one of this node. */
export async function incidentOf({ incidents }: Ground, node: string): Promise<Incident | undefined> {
  return (await incidents()).find(({ nodeName }) => nodeName === node)
}

export async function allEnd(on: Ground, within: Ms): Promise<readonly Incident[]> {
  await on.until('every incident is Final', async () => {
    const all = await on.incidents()
    return all.length > 0 && all.every(({ status }) => status.phase === 'Final')
  }, within)
  return await on.incidents()
}

interface Pod {
  readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string }
  readonly spec: { readonly nodeName?: string }
  readonly status: { readonly phase: string; readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
}

export async function podsOf({ world: { api, settings }, answered }: Ground, app: string): Promise<readonly Pod[]> {
  const answer = await answered(api.get<{ items: Pod[] }>(`/api/v1/namespaces/${settings.namespace}/pods?labelSelector=app%3D${app}`))
  if (!answer.ok) throw new Error(`pods of ${app}: ${answer.error.message}`)
  return answer.value.items
}

/** How many pods the StatefulSet shall have. */
export async function scale({ world: { api, settings }, answered }: Ground, replicas: number): Promise<void> {
  const answer = await answered(api.patch(`/apis/apps/v1/namespaces/${settings.namespace}/statefulsets/db`, 'merge', { spec: { replicas } }))
  if (!answer.ok) throw new Error(answer.error.message)
}

export const isLive = ({ metadata, status }: Pod): boolean => metadata.deletionTimestamp === undefined && status.phase === 'Running' && status.conditions?.some(({ type, status: word }) => type === 'Ready' && word === 'True') === true
