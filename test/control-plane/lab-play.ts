// What the stories in the lab share: a settled cluster and its victim, what stands in it now, the times of an incident.
import type { KubeObject } from '../../coordinator/api.ts'
import type { Incident } from '../../core/incident.ts'
import { bootOf, sameBoot, type Boot, type Ms } from '../../core/model.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { workImage } from '../../sim/world/objects.ts'
import { startLab, type Lab, type LabSettings } from './lab.ts'
import { workNamespace } from './lab-objects.ts'

export interface Play {
  readonly lab: Lab
  /** The node that runs both pods with volumes. */
  readonly victim: string
  readonly boot: Boot
  /** Uids of the workload's pods that are bound to it at the beginning. */
  readonly pods: readonly string[]
  /** Names of the incidents that were there before. */
  readonly before: ReadonlySet<string>
  readonly beganAt: Ms
  readonly beganWall: number
  /** Nothing else is under way: whatever happens anywhere is of this story. */
  readonly alone: boolean
}

interface Pod extends KubeObject {
  spec: { nodeName?: string }
  status: { phase: string }
}

interface Node extends KubeObject {
  spec?: { taints?: { key: string }[] }
  status?: { conditions?: { type: string; status: string }[] }
}

/** Once for a file of tests, anew where a test has left it in disorder, ended by the last one. */
export interface LabKeeper {
  /** A settled cluster, whatever was before. */
  peace(): Promise<Play>
  /** A victim that is well, while others may still be on their way back. */
  next(): Promise<Play>
  stop(): Promise<void>
}

const settledWithin = 180_000

export function keepLab(settings: Partial<LabSettings> = {}): LabKeeper {
  let kept: Lab | undefined
  const fresh = async (): Promise<Lab> => {
    const lab = await startLab(settings)
    await startReplicas(lab)
    return lab
  }
  const begin = async (alone: boolean): Promise<Play> => {
    if (kept !== undefined) {
      const again = kept.broken() === undefined ? await settle(kept, settledWithin, alone) : undefined
      if (again !== undefined) return again
      console.log('the lab is in disorder after the last story: a new one is built')
      await kept.stop()
      kept = undefined
    }
    kept = await fresh()
    const play = await settle(kept, settledWithin, alone)
    if (play === undefined) throw new Error('a new lab does not settle')
    return play
  }
  return {
    async peace() {
      kept?.heal()
      return await begin(true)
    },
    next: () => begin(false),
    async stop() {
      await kept?.stop()
      kept = undefined
    },
  }
}

export async function startReplicas(lab: Lab): Promise<void> {
  await Promise.all([0, 1].map((number) => lab.replicas.start(number)))
}

export async function settle(lab: Lab, within: Ms, alone = true): Promise<Play | undefined> {
  const limit = clock.now() + within
  for (let why = await disorder(lab, alone); why !== undefined; why = await disorder(lab, alone)) {
    if (clock.now() > limit) {
      console.log(`not settled: ${why}`)
      return undefined
    }
    await clock.wait(250)
  }
  const pods = await workload(lab)
  const victim = pods.find((pod) => pod.metadata.name === 'db-0')?.spec.nodeName ?? ''
  const boot = bootOfNode(lab, victim)
  if (boot === undefined) return undefined
  return {
    lab, victim, boot, pods: pods.filter((pod) => pod.spec.nodeName === victim).map((pod) => pod.metadata.uid ?? ''), alone,
    before: new Set(lab.incidents().map(({ name }) => name)), beganAt: clock.now(), beganWall: clock.wall(),
  }
}

/** Besides its victim a story needs somebody to ask, and a node for the pods to go to. */
const othersNeeded = 2

/** What keeps a story from beginning. */
async function disorder(lab: Lab, alone: boolean): Promise<string | undefined> {
  if (lab.replicas.running.size < 2 || ![...lab.replicas.running.values()].every((one) => one.alive())) return 'a replica is not there'
  if (await lab.replicas.leader() === undefined) return 'nobody leads'
  if (!await workloadRuns(lab)) return 'the workload does not run'
  const victim = (await workload(lab)).find((pod) => pod.metadata.name === 'db-0')?.spec.nodeName ?? ''
  const [nodes, states] = [await nodesOf(lab), await lab.replicas.states()]
  const ill = nodes.flatMap((node) => illness(lab, node, states, node.metadata.name === victim) ?? [])
  if (alone) return ill[0]
  const dead = [...lab.world.nodes.values()].find(({ machine }) => machine.state() !== 'running')
  if (dead !== undefined) return `${dead.machine.name} is not on`
  return ill.find((one) => one.startsWith(`${victim} `)) ?? (nodes.length - ill.length > othersNeeded ? undefined : ill.join(', '))
}

/** What is not as it should be with a node, its own name first. */
function illness(lab: Lab, { metadata: { name }, spec, status }: Node, states: Awaited<ReturnType<Lab['replicas']['states']>>, mayBeFenced: boolean): string | undefined {
  const taint = spec?.taints?.find(ours)
  if (taint !== undefined) return `${name} bears ${taint.key}`
  const open = lab.incidents().find((incident) => incident.nodeName === name && incident.status.phase !== 'Final')
  if (open !== undefined) return `${name} has an open incident: ${open.status.holds.map((hold) => hold.because).join() || open.status.step}`
  const [record, boot, node] = [lab.records().get(name), bootOfNode(lab, name), lab.nodes.get(name)]
  if (boot === undefined || record === undefined || !sameBoot(record.boot, boot)) return `${name} is not on record in this boot`
  // A path that was shown false stays marked, which is right, and does no harm where nothing is to be fenced.
  const trusted = record.paths.every((path) => path.state === 'verified' || (path.state === 'marked' && !mayBeFenced))
  if (record.probe?.answered !== true || !trusted) return `${name} is not audited`
  if (!states.every((state) => state?.nodes.find((card) => card.name === name)?.verdict === 'alive')) return `${name} is not heard by every replica`
  if (node?.agent() === undefined || !node.calm()) return `${name} has no agent, or is changing`
  return ready(status) ? undefined : `${name} is not Ready`
}

function ready(status: Node['status']): boolean {
  return status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True'
}

export async function isReady(lab: Lab, name: string): Promise<boolean> {
  return (await nodesOf(lab)).some(({ metadata, status }) => metadata.name === name && ready(status))
}

/** What the leader takes these nodes for. */
export async function verdictsOf(lab: Lab, names: readonly string[]): Promise<readonly (string | undefined)[]> {
  const state = (await lab.replicas.states()).find((one) => one?.leads === true)
  return names.map((name) => state?.nodes.find((card) => card.name === name)?.verdict)
}

function ours({ key }: { key: string }): boolean {
  return key.startsWith('holdfast.dev/') || key === 'node.kubernetes.io/out-of-service'
}

function bootOfNode(lab: Lab, name: string): Boot | undefined {
  const boot = lab.world.nodes.get(name)?.machine.boot()
  return boot === undefined ? undefined : bootOf(boot.id, boot.start)
}

async function items<T>(lab: Lab, path: string): Promise<readonly T[]> {
  const answer = await lab.api.get<{ items: T[] }>(path)
  if (!answer.ok) throw new Error(`${path}: ${answer.error.message}`)
  return answer.value.items
}

export const nodesOf = (lab: Lab) => items<Node>(lab, '/api/v1/nodes')
export const workload = (lab: Lab) => items<Pod>(lab, `/api/v1/namespaces/${workNamespace}/pods`)

/** The workload runs whole, and nothing of it on a node that is not there. */
export async function workloadRuns(lab: Lab, notOn?: string): Promise<boolean> {
  const pods = (await workload(lab)).filter((pod) => pod.metadata.deletionTimestamp === undefined)
  return pods.length === 3 && pods.every((pod) => pod.status.phase === 'Running' && pod.spec.nodeName !== notOn)
}

/** A pod that nobody owns comes to the node, past the scheduler. The answer tells whether it is still there. */
export async function bindPod({ api }: Lab, nodeName: string): Promise<() => Promise<boolean>> {
  const pods = '/api/v1/namespaces/default/pods'
  const spec = { nodeName, automountServiceAccountToken: false, containers: [{ name: 'main', image: workImage }] }
  const made = await api.create<Pod>(pods, { apiVersion: 'v1', kind: 'Pod', metadata: { generateName: 'late-' }, spec })
  if (!made.ok) throw new Error(`no pod could be bound: ${made.error.message}`)
  const { metadata: { name, uid } } = made.value
  return async () => {
    const now = await api.get<Pod>(`${pods}/${name}`)
    return now.ok && now.value.metadata.uid === uid && now.value.metadata.deletionTimestamp === undefined
  }
}

/** Taints of ours that stand on any node. */
export async function ourTaints(lab: Lab): Promise<readonly string[]> {
  return (await nodesOf(lab)).flatMap((node) => (node.spec?.taints ?? []).filter(ours).map(({ key }) => `${node.metadata.name} ${key}`))
}

export async function until(what: string, so: () => boolean | Promise<boolean>, within: Ms): Promise<void> {
  const limit = clock.now() + within
  while (!await so()) {
    if (clock.now() > limit) throw new Error(`not within ${within / 1_000} s: ${what}`)
    await clock.wait(20)
  }
}

/** Incidents that were opened since the play began. */
export function incidents({ lab, before, alone, victim, boot }: Play): readonly Incident[] {
  return lab.incidents().filter((incident) => !before.has(incident.name) && (alone || (incident.nodeName === victim && sameBoot(incident.boot, boot))))
}

export function theIncident(play: Play): Incident | undefined {
  const all = incidents(play)
  if (all.length > 1) throw new Error(`${all.length} incidents where one was expected: ${all.map((one) => one.name).join(', ')}`)
  return all[0]
}

export async function ended(play: Play, within: Ms): Promise<Incident> {
  await until('the incident is Final', () => theIncident(play)?.status.phase === 'Final', within).catch((error: unknown) => {
    const incident = theIncident(play)
    throw new Error(`${String(error)}; it stands at ${incident?.status.step}, holds ${JSON.stringify(incident?.status.holds)}, after\n${incident === undefined ? '' : transcript(incident)}`, { cause: error })
  })
  const incident = theIncident(play)
  if (incident === undefined) throw new Error('no incident') // the wait above saw one
  return incident
}

/** Each moment with its time after the beginning of the play. */
export function times(play: Play, incident: Incident): string {
  const since = (wall: number): string => ((wall - play.beganWall) / 1_000).toFixed(1)
  const last: { what: string; at: string }[] = []
  for (const { what, at } of incident.status.timeline) if (last.at(-1)?.what !== what) last.push({ what, at })
  return last.map(({ what, at }) => `${what} ${since(Date.parse(at))}`).join(', ')
}

export function transcript(incident: Incident): string {
  return incident.status.timeline.map(({ at, what, detail }) => `${at} ${what} | ${detail}`).join('\n')
}
