// The cluster of the stories: machines with management controllers, storage that is attached, the workload, and the product
// installed as a user installs it.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { KubeObject } from '../../coordinator/api.ts'
import { fencesPath, readIncident } from '../../coordinator/node-fence.ts'
import { readRecord, recordsPath } from '../../coordinator/node-record.ts'
import type { PageState } from '../../coordinator/page-state.ts'
import type { Incident } from '../../core/incident.ts'
import type { Ms, NodeRecord } from '../../core/model.ts'
import { imageArchive } from '../../deploy/images.ts'
import { yamlOf } from '../../deploy/manifest.ts'
import { manifests } from '../../deploy/manifests.ts'
import { usualValues, type Values } from '../../deploy/values.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { silentLog } from '../../edge/log.ts'
import { startAttacher } from '../../sim/attacher.ts'
import { seededChance } from '../../sim/chance.ts'
import type { CsiController } from '../../sim/csi-controller.ts'
import { startProcess } from '../../sim/process.ts'
import { ready, startCluster, until, type Cluster, type Node } from './cluster.ts'
import { startDriver } from './csi-driver.ts'
import type { Runtime } from './disk.ts'
import { turnsOf, type Turn } from './judge.ts'
import type { LabWatchdogs } from './lab-watchdog.ts'
import { openManagement, type Management } from './management.ts'
import { mendCuts } from './network.ts'
import { driver, volumes, workNamespace, workObjects } from './workload.ts'

export interface Stage {
  readonly cluster: Cluster
  readonly management: Management
  incidents(): Promise<readonly Incident[]>
  pods(namespace: string): Promise<readonly Pod[]>
  turns(volume: string): readonly Turn[]
  /** Waits until a story may begin: nothing is under way, every node is well and audited, the workload writes. */
  peace(): Promise<void>
  stop(): Promise<void>
}

export interface Pod extends KubeObject {
  readonly spec: { readonly nodeName?: string }
  readonly status: {
    readonly phase: string
    readonly podIP?: string
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
    readonly containerStatuses?: readonly { readonly restartCount: number; readonly containerID: string }[]
  }
}

/** What `npm run build -- --images` has made. */
export const dist = fileURLToPath(new URL('../../dist/', import.meta.url))
const nodes = 3
const { namespace, agentNamespace } = usualValues
const peaceWithin: Ms = 240_000
/** A writer that lives has written within this. */
const writesWithin = 3

export interface StageSettings {
  /** Archives beside the product's own. */
  readonly images: readonly string[]
  /** Of machines by name, where it is not today's. */
  readonly runtimes: Readonly<Record<string, Runtime>>
  /** What the manifests are rendered with, where they are not as they come. */
  readonly values: Values
  /** Of every machine; with values of one's own. */
  readonly watchdogs: LabWatchdogs
  /** A storage that looks before it gives and takes. Else it refuses nobody, so that what keeps two nodes from one volume is the product and not the storage. */
  readonly exclusive: boolean
}

export async function startStage(say: (line: string) => void, settings: Partial<StageSettings> = {}): Promise<Stage> {
  const ends: (() => unknown)[] = []
  try {
    return await setStage(say, settings, ends)
  } catch (error) {
    // Whatever lives on keeps this process from ending, and everybody behind it waiting.
    for (const end of ends) await end()
    throw error
  }
}

async function setStage(say: (line: string) => void, { images = [], runtimes = {}, values, watchdogs, exclusive = false }: Partial<StageSettings>, ends: (() => unknown)[]): Promise<Stage> {
  const began = clock.now()
  const told = (what: string): void => say(`${what} after ${((clock.now() - began) / 1_000).toFixed(1)} s`)
  await mendCuts()
  const cluster = await startCluster({ nodes, images: [imageArchive(dist), ...images], runtimes })
  ends.push(() => cluster.stop())
  told('control plane')
  const management = await openManagement(cluster.machines.values())
  ends.push(() => management.close())
  for (const volume of volumes) mkdirSync(join(cluster.storage, volume), { mode: 0o777 })
  ends.unshift(() => watchdogs?.close())
  await watchdogs?.wire(cluster.machines.values())
  const controller = await startDriver(cluster, exclusive)
  ends.unshift(() => controller.stop())
  const attacher = attach(cluster, controller)
  ends.unshift(() => attacher.kill())
  await Promise.all([...cluster.machines.values()].map((machine) => machine.powerOn()))
  await cluster.kubectl('apply', '--server-side', '--filename', values === undefined ? join(dist, 'holdfast.yaml') : rendered(cluster, values, watchdogs))
  await apply(cluster, 'lab', [policy, ...management.objects(namespace)])
  // The workload goes where no replica is: a scheduler heeds only what has a place already, and chooses among nodes that are open to everybody.
  await until('three nodes are open', async () => (await nodesOf({ cluster })).filter((node) => ready(node) && (node.spec?.taints ?? []).length === 0).length === nodes, peaceWithin)
  told('three nodes open')
  await until('every replica has a node', async () => (await podsOf(cluster, namespace)).filter(({ spec }) => spec.nodeName !== undefined).length === usualValues.replicas, peaceWithin)
  await apply(cluster, 'work', workObjects())
  const stage: Stage = {
    cluster, management,
    incidents: async () => (await items(cluster, fencesPath)).flatMap((object) => {
      const read = readIncident(object)
      return read.ok ? [read.incident] : []
    }),
    pods: (of) => podsOf(cluster, of),
    turns: (volume) => turnsOf(cluster.storage, volume),
    async peace() {
      let why: string | undefined
      await until('peace', async () => (why = await disorder(stage)) === undefined, peaceWithin).catch((error: unknown) => {
        throw new Error(`${String(error)}: ${why}`, { cause: error })
      })
    },
    async stop() {
      for (const end of ends) await end()
    },
  }
  await stage.peace()
  told('installed, and the workload writes')
  return stage
}

function rendered({ folder }: Cluster, values: Values, watchdogs?: LabWatchdogs): string {
  const file = join(folder, 'holdfast.yaml')
  const all = manifests(values)
  writeFileSync(file, yamlOf(watchdogs?.fit(all) ?? all))
  return file
}

const policy = {
  apiVersion: 'holdfast.dev/v1alpha1', kind: 'HoldfastPolicy', metadata: { name: 'lab' }, spec: {
    profile: 'fast', nodeDownPodDeletionPolicy: 'DeleteAllPods',
    // A machine that dies five times in an hour stays off; here they die for a living.
    brakes: { repeatLimit: 0 },
  },
} as KubeObject // a kind of ours, written as a person would

/** The CSI external-attacher is not to be had from the module proxy: the simulated world's works on this API server too. */
function attach({ transport }: Cluster, controller: CsiController): { kill(): void } {
  const process = startProcess(clock, 'external-attacher')
  startAttacher({ process, transport, driver, controller, chance: seededChance('attacher'), log: silentLog })
  return process
}

async function apply(cluster: Cluster, name: string, objects: readonly KubeObject[]): Promise<void> {
  const file = join(cluster.folder, `${name}.json`)
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
  await cluster.kubectl('apply', '--server-side', '--filename', file)
}

/** An API server says 429 of a kind that was just defined, and goes on being asked. */
const definedWithin: Ms = 30_000

async function items({ api }: Cluster, path: string): Promise<readonly KubeObject[]> {
  for (const limit = clock.now() + definedWithin; ; await clock.wait(200)) {
    const answer = await api.get<{ items: KubeObject[] }>(path)
    if (answer.ok) return answer.value.items
    if (clock.now() > limit) throw new Error(`${path}: ${answer.error.message}`)
  }
}

async function podsOf(cluster: Cluster, of: string): Promise<readonly Pod[]> {
  return await items(cluster, `/api/v1/namespaces/${of}/pods`) as readonly Pod[] // the path names the kind
}

export async function nodesOf({ cluster }: Pick<Stage, 'cluster'>): Promise<readonly Node[]> {
  return await items(cluster, '/api/v1/nodes') as readonly Node[] // the path names the kind
}

export async function recordsOf({ cluster }: Stage): Promise<ReadonlyMap<string, NodeRecord>> {
  return new Map((await items(cluster, recordsPath)).flatMap((object) => {
    const read = readRecord(object)
    return read.ok ? [[object.metadata.name, read.record]] : []
  }))
}

export const ourTaint = ({ key }: { readonly key: string }): boolean => key.startsWith('holdfast.dev/') || key === 'node.kubernetes.io/out-of-service'
const isUp = ({ metadata, status }: Pod): boolean => metadata.deletionTimestamp === undefined && (status.conditions?.some(({ type, status: word }) => type === 'Ready' && word === 'True') ?? false)

/** What is not as it should be when nothing is under way. */
export async function disorder(stage: Stage): Promise<string | undefined> {
  const open = (await stage.incidents()).find(({ status }) => status.phase !== 'Final')
  if (open !== undefined) return `${open.nodeName} has an open incident: ${open.status.step} ${JSON.stringify(open.status.holds)}`
  for (const [of, count] of [[namespace, usualValues.replicas], [agentNamespace, nodes], ['kube-system', nodes], [workNamespace, volumes.length]] as const) {
    const pods = await stage.pods(of)
    if (pods.filter(isUp).length !== count || pods.length !== count) return `${of}: ${pods.map((pod) => `${pod.metadata.name} ${pod.status.phase}`).join(', ') || 'no pods'}`
  }
  const records = await recordsOf(stage)
  for (const node of await nodesOf(stage)) {
    const { name } = node.metadata
    const taint = node.spec?.taints?.[0]
    if (!ready(node) || taint !== undefined) return `${name} is ${ready(node) ? `tainted ${taint?.key}` : 'not Ready'}`
    const record = records.get(name)
    if (record?.boot.split('/')[0] !== stage.cluster.machine(name).bootId()) return `${name} is not on record in this boot`
    if (record.probe?.answered !== true || !record.paths.every(({ state, identity }) => state === 'verified' && identity === 'proven')) return `${name} is not audited: ${JSON.stringify(record.paths)}`
  }
  for (const { metadata: { name }, status: { podIP = '' } } of await stage.pods(namespace)) {
    const deaf = await unheard(podIP)
    if (deaf.length > 0) return `${name} does not hear ${deaf.join(', ')}`
  }
  const quiet = volumes.find((volume) => !writes(stage, volume))
  return quiet === undefined ? undefined : `nobody writes ${quiet}`
}

const pageWithin: Ms = 5_000

/** Nodes that a replica has not heard, by its own page: one that has just begun knows nobody yet, and is patient with them. */
async function unheard(address: string): Promise<readonly string[]> {
  try {
    const answer = await fetch(`http://${address}:${usualValues.httpPort}/api/state`, { signal: AbortSignal.timeout(pageWithin) })
    const state = await answer.json() as PageState // our own page's words
    return state.nodes.flatMap(({ name, verdict }) => (verdict === 'alive' ? [] : [name]))
  } catch {
    return ['anybody: its page does not answer'] // it has just begun: whoever waits looks again
  }
}

/** Somebody writes it now. */
export function writes(stage: Pick<Stage, 'turns'>, volume: string): boolean {
  return uptime() - (stage.turns(volume).at(-1)?.last ?? 0) < writesWithin
}

/** Of the kernel: what writers write. */
export function uptime(): number {
  return Number.parseFloat(readFileSync('/proc/uptime', 'utf8'))
}
