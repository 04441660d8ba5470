// The whole product with real devices: coordinators and agents as they are, in a cluster of the simulated world that runs in real
// time, whose fence programs are processes that reach devices of this folder. Of its machines some stand for real ones: such a
// machine has power, hangs, dies and boots when the real one does, and never else, and its boots are those of the real one. In some of these the
// agent is not simulated either: the pod that kubelet starts there is the agent in the real machine, with the token of that pod.
import { startAgent, type Agent } from '../../agent/agent.ts'
import type { AgentHost } from '../../agent/host.ts'
import type { KubeObject } from '../../coordinator/api.ts'
import { audience } from '../../coordinator/beats-review.ts'
import { startCoordinator, type Coordinator } from '../../coordinator/coordinator.ts'
import type { CoordinatorHost, ProgramRun } from '../../coordinator/host.ts'
import { listenKdump } from '../../coordinator/kdump.ts'
import { readIncident } from '../../coordinator/node-fence.ts'
import { readRecord } from '../../coordinator/node-record.ts'
import type { Incident } from '../../core/incident.ts'
import type { NodeRecord } from '../../core/model.ts'
import { customResourceDefinitions } from '../../deploy/crd.ts'
import { machineClock } from '../../edge/clock.ts'
import { listenTls } from '../../edge/tls-link.ts'
import { createWorld, type ReplicaPlace, type World } from '../../sim/world.ts'
import { serving, type GuestAgent } from './guest-agent.ts'
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

/** A machine, so far as one of the simulated world follows it. */
export type Body = Pick<Machine, 'uuid' | 'boots' | 'state' | 'lastWords'>

export interface ClusterSettings {
  readonly nodes: readonly string[]
  /** Nodes that stand for real machines. */
  readonly real: Readonly<Record<string, Body>>
  /** Those of them that have our agent in them. */
  readonly guests?: Readonly<Record<string, GuestAgent>>
  /** What an operator would write. */
  readonly objects: readonly KubeObject[]
  readonly policy?: object
  readonly nodeAddress?: (index: number) => string
  /** Where crash kernels are heard, by the one replica that there is then. */
  readonly kdump?: number
  /** So long without a beat, and what is simulated of a real machine stands still. Until then its kubelet port answers, and who answers is not dead. */
  readonly hangsAfter?: number
}

export const namespace = 'holdfast-system'
/** Of a machine's first process, in ticks of its clock: the boot's other half, which no kubelet tells. */
const firstProcess = '0'
/** A busy machine may keep a real one from beating for seconds. */
const usuallyHangsAfter = 4_000
const lookEvery = 50

export async function inCluster(rack: Rack, settings: ClusterSettings, work: (cluster: Cluster) => Promise<void>): Promise<void> {
  const coordinators = new Map<number, Coordinator>()
  const built = Promise.withResolvers<World>()
  const { guests = {}, hangsAfter = usuallyHangsAfter } = settings
  let token: Promise<string> | undefined
  const world: World = await createWorld({
    seed: Date.now(), clock: machineClock, nodes: settings.nodes, zones: 1, ...(settings.nodeAddress === undefined ? {} : { nodeAddress: settings.nodeAddress }), replicas: settings.kdump === undefined ? 2 : 1, bootTime: [100, 200], systemNamespace: namespace, power: 'bmc', logFrom: 'debug',
    objects: [...(customResourceDefinitions() as unknown as KubeObject[]), policyOf(settings.policy), ...settings.objects],
    bodies: Object.fromEntries(Object.entries(settings.real).map(([name, { uuid, boots }]) => [name, { machineId: uuid, boot: () => ({ id: boots.at(-1) ?? '', start: firstProcess }) }])),
    startAgent: (host, { node }) => guests[node] === undefined ? startAgent(host, { version: 'test', kubeletRoot: '/var/lib/kubelet', whisperPort: 7_416 }) : beginIn(guests[node], host),
    async startReplica(host, place) {
      const { identity, number, process, replicas } = place
      const programs = { run: (run: ProgramRun) => process.hold(rack.programs.run(run)) }
      const { kdump: port } = settings
      const kdump = port === undefined ? {} : { kdump: (heard: (from: string) => void) => listenKdump({ bind: '127.0.0.1', port }, heard) }
      const listen = Object.keys(guests).length === 0 ? host.listen : await doorFor(await built.promise, host, place)
      const coordinator = await startCoordinator({ ...host, programs, listen, ...kdump }, {
        namespace, agentNamespace: namespace, identity, salt: 'salt', token: () => (token ??= tokenOf(world)), replicas,
      })
      coordinators.set(number, coordinator)
      process.onEnd(() => coordinators.delete(number))
      return coordinator
    },
  })
  built.resolve(world)
  const following = Object.entries(settings.real).map(([name, machine]) => follow(world, name, machine, hangsAfter))
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
function follow(world: World, name: string, real: Body, hangsAfter: number): () => void {
  const machine = world.nodes.get(name)?.machine
  if (machine === undefined) throw new Error(`there is no node ${name}`)
  let boot = real.boots.at(-1)
  const looks = setInterval(() => {
    const state = real.state(hangsAfter)
    if (state === 'off') machine.powerOff()
    else if (state === 'hung') machine.freeze()
    else if (state === 'beating') {
      // A reset: it had power all the while.
      if (boot !== real.boots.at(-1)) machine.powerOff()
      boot = real.boots.at(-1)
      machine.powerOn()
      machine.thaw()
    }
  }, lookEvery)
  return () => clearInterval(looks)
}

/** The simulated container is the program in the machine: it is begun when that is, and ended in good order when that is. */
function beginIn(guest: GuestAgent, { clock, read, resolveReplicas }: AgentHost): Pick<Agent, 'stop'> {
  void (async () => {
    for (;;) {
      const [[replica], token] = await Promise.all([resolveReplicas(), read('token')])
      if (replica !== undefined && token !== undefined) return guest.begin(replica, token)
      await clock.wait(lookEvery)
    }
  })()
  return { stop: async () => guest.signal('TERM') }
}

/** Beside the simulated listener one for machines that are real, at a port that the replica's host has in the simulated network too: one address leads to it
 *  from either. */
async function doorFor({ replicas }: World, { listen }: CoordinatorHost, { number, process }: ReplicaPlace): Promise<CoordinatorHost['listen']> {
  const { ports, address } = replicas.host(number)
  return async (accept) => {
    const simulated = await listen(accept)
    const real = await listenTls({ clock: machineClock, host: '127.0.0.1', port: 0, serving }, (link) => process.deliver(() => accept(link)))
    const [own, port] = [simulated, real].map((one) => Number(one.address.slice(one.address.lastIndexOf(':') + 1))) as [number, number] // as many as named
    const open = ports.get(own)
    if (open !== undefined) ports.set(port, open)
    const close = async (): Promise<void> => {
      ports.delete(port)
      await Promise.all([simulated.close(), real.close()])
    }
    process.onEnd(() => void close())
    return { address: `${address}:${port}`, close }
  }
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
