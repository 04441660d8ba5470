// The whole product with real devices: coordinators and agents as they are, in a cluster of the simulated world that runs in real
// time, whose fence programs are processes that reach devices of this folder. Of its machines some stand for real ones: such a
// machine has power, hangs, dies and boots when the real one does, and never else.
import { startAgent } from '../../agent/agent.ts'
import type { KubeObject } from '../../coordinator/api.ts'
import { audience } from '../../coordinator/beats-review.ts'
import { startCoordinator, type Coordinator } from '../../coordinator/coordinator.ts'
import type { ProgramRun } from '../../coordinator/host.ts'
import { listenKdump } from '../../coordinator/kdump.ts'
import { readIncident } from '../../coordinator/node-fence.ts'
import { readRecord } from '../../coordinator/node-record.ts'
import type { Incident } from '../../core/incident.ts'
import type { NodeRecord } from '../../core/model.ts'
import { customResourceDefinitions } from '../../deploy/crd.ts'
import { machineClock } from '../../edge/clock.ts'
import { createWorld, type World } from '../../sim/world.ts'
import type { Machine } from './machine.ts'
import type { Parameters, Rack } from './rack.ts'

export interface Cluster {
  readonly world: World
  incidents(): readonly Incident[]
  records(): ReadonlyMap<string, NodeRecord>
  leader(): Coordinator | undefined
  /** What stands on the API server now, of one resource. */
  objects<T extends KubeObject>(resource: string): readonly T[]
}

export interface ClusterSettings {
  readonly nodes: readonly string[]
  /** Nodes that stand for real machines. */
  readonly real: Readonly<Record<string, Machine>>
  /** What an operator would write. */
  readonly objects: readonly KubeObject[]
  readonly policy?: object
  readonly nodeAddress?: (index: number) => string
  /** Where crash kernels are heard, by the one replica that there is then. */
  readonly kdump?: number
}

export const namespace = 'holdfast-system'
/** A busy machine may keep a real one from beating for seconds. */
const hangsAfter = 4_000
const lookEvery = 50

export async function inCluster(rack: Rack, settings: ClusterSettings, work: (cluster: Cluster) => Promise<void>): Promise<void> {
  const coordinators = new Map<number, Coordinator>()
  let token: Promise<string> | undefined
  const world: World = await createWorld({
    seed: Date.now(), clock: machineClock, nodes: settings.nodes, zones: 1, ...(settings.nodeAddress === undefined ? {} : { nodeAddress: settings.nodeAddress }), replicas: settings.kdump === undefined ? 2 : 1, bootTime: [100, 200], systemNamespace: namespace, power: 'bmc', logFrom: 'debug',
    objects: [...(customResourceDefinitions() as unknown as KubeObject[]), policyOf(settings.policy), ...settings.objects],
    startAgent: (host) => startAgent(host, { version: 'test', kubeletRoot: '/var/lib/kubelet', whisperPort: 7_416 }),
    async startReplica(host, { identity, number, process, replicas }) {
      const programs = { run: (run: ProgramRun) => process.hold(rack.programs.run(run)) }
      const { kdump: port } = settings
      const kdump = port === undefined ? {} : { kdump: (heard: (from: string) => void) => listenKdump({ bind: '127.0.0.1', port }, heard) }
      const coordinator = await startCoordinator({ ...host, programs, ...kdump }, {
        namespace, agentNamespace: namespace, identity, salt: 'salt', token: () => (token ??= tokenOf(world)), replicas,
      })
      coordinators.set(number, coordinator)
      process.onEnd(() => coordinators.delete(number))
      return coordinator
    },
  })
  const following = Object.entries(settings.real).map(([name, machine]) => follow(world, name, machine))
  const objects = <T extends KubeObject>(resource: string) => (world.server?.peek(resource) ?? []) as readonly T[] // the caller knows the kind
  try {
    await work({
      world, objects,
      incidents: () => objects('nodefences.holdfast.dev').flatMap((object) => {
        const read = readIncident(object)
        return read.ok ? [read.incident] : []
      }),
      records: () => new Map(objects('noderecords.holdfast.dev').flatMap((object) => {
        const read = readRecord(object)
        return read.ok ? [[object.metadata.name, read.record] as const] : []
      })),
      leader: () => [...coordinators.values()].find((one) => one.leads() !== undefined),
    })
  } catch (error) {
    console.log(world.truth.text().split('\n').filter((line) => !line.includes('level=debug')).slice(-60).join('\n'))
    for (const [name, machine] of Object.entries(settings.real)) console.log(`${name}: ${machine.state(hangsAfter)}, boots ${machine.boots.join(', ')}; ${machine.lastWords()}`)
    throw error
  } finally {
    for (const stop of following) stop()
    await Promise.all([...coordinators.values()].map((one) => one.stop()))
    world.stop()
  }
}

/** The machine of the world does as the real one does, by its process and its beats. */
function follow(world: World, name: string, real: Machine): () => void {
  const machine = world.nodes.get(name)?.machine
  if (machine === undefined) throw new Error(`there is no node ${name}`)
  const looks = setInterval(() => {
    const state = real.state(hangsAfter)
    if (state === 'off') machine.powerOff()
    else if (state === 'hung') machine.freeze()
    else if (state === 'beating') {
      machine.powerOn()
      machine.thaw()
    }
  }, lookEvery)
  return () => clearInterval(looks)
}

function policyOf(changes: object = {}): KubeObject {
  return {
    apiVersion: 'holdfast.dev/v1alpha1', kind: 'HoldfastPolicy', metadata: { name: 'all' },
    spec: { profile: 'fast', nodeDownPodDeletionPolicy: 'DeleteAllPods', ...changes },
  } as KubeObject // a kind of ours, written as a person would
}

export function configMap(name: string, data: Readonly<Record<string, string>>): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data } as KubeObject // a kind whose data KubeObject does not name
}

export function secretOf(name: string, data: Readonly<Record<string, string>>): KubeObject {
  const stored = Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')]))
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace, labels: { 'holdfast.dev/fence-secret': '' } }, data: stored } as KubeObject // likewise
}

/** As a template writes them, a line each. */
export function properties(agent: string, parameters: Parameters): string {
  return [`agent_name=${agent}`, ...Object.entries(parameters).map(([key, value]) => `${key}=${value}`), ''].join('\n')
}

async function tokenOf({ api }: World): Promise<string> {
  const answer = await api.create<{ status: { token: string } }>(`/api/v1/namespaces/${namespace}/serviceaccounts/holdfast-coordinator/token`, {
    apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences: [audience], expirationSeconds: 100_000 },
  })
  if (!answer.ok) throw new Error(answer.error.message)
  return answer.value.status.token
}
