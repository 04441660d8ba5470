// The simulated world, put together: an API server with its controllers (or a real one with its own), machines with kubelets,
// a CSI driver, power devices, a network, and places for the product's agents and replicas. Levers break things; judges, who
// alone know the truth, say what came of it. One seed, one world, one transcript.
import { createApi, type Api } from '../coordinator/api.ts'
import type { Transport } from '../coordinator/transport.ts'
import type { Clock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import { admin, createApiServer, nodeUser, type ApiServer, type User } from './api-server/server.ts'
import { startAttacher } from './attacher.ts'
import { seededChance } from './chance.ts'
import { virtualClock, type VirtualClock } from './clock.ts'
import { startControlLoops, type ControlLoops } from './controllers/control-loops.ts'
import { simulateController, type SimulatedController } from './csi-controller.ts'
import { createDevice, createFeeds, type DevicePlan, type PowerDevice } from './device.ts'
import { twins, twoWriters, wroteAfterRelease, type DoubleWriters, type LateWriter, type Running, type Twins } from './judges.ts'
import { createFabric } from './fabric.ts'
import { createMachine, uuid } from './machine.ts'
import { createNetwork, type Host, type Network } from './network.ts'
import { startProcess, type Process } from './process.ts'
import { simulatedTransport } from './api-path.ts'
import { createStorage, type Storage, type Stretch } from './storage.ts'
import { createTruth, type Truth } from './truth.ts'
import type { WhisperPorts } from './whispers.ts'
import { createWriters } from './writers.ts'
import { createLevers, type Levers } from './world/levers.ts'
import { createNode, type WorldNode } from './world/node.ts'
import { isShared } from './objects.ts'
import { agentDaemonSet, apply, bindClaims, foundations, handleOf, handlesOf, workload } from './world/objects.ts'
import { fabric, strip, switchesOf, type Switch } from './world/power.ts'
import { createReplicas, type Replicas } from './world/replica-place.ts'
import { driversOf, usualWorld, type WorldSettings } from './world/settings.ts'

export type { ReplicaPlace, StartReplica } from './world/replica-place.ts'
export type { StartAgent, WorldSettings } from './world/settings.ts'

export interface World extends Levers {
  /** The world's own: turn it when it is a virtual one. */
  readonly clock: Clock
  /** The same clock, where the world made it. Throws in a world in real time. */
  turn(): VirtualClock
  readonly settings: WorldSettings
  readonly truth: Truth
  readonly network: Network
  readonly storage: Storage
  readonly nodes: ReadonlyMap<string, WorldNode>
  /** By name and by address; each node's own is `bmc-NODE`, where it has one. */
  readonly devices: ReadonlyMap<string, PowerDevice>
  /** What can switch the node's machine, as the racks were built, level by level. */
  switches(node: string): readonly (readonly Switch[])[]
  /** The controller half of the driver. */
  readonly csi: SimulatedController
  readonly replicas: Replicas
  /** An administrator's way to the API server, outside the simulated network. */
  readonly api: Api
  /** The in-memory one; undefined on a real API server. */
  readonly server: ApiServer | undefined
  /** Likewise. */
  loops(): ControlLoops | undefined
  /** Both controller processes die and are started again: what they held in memory (300 s, six minutes) begins anew. */
  restartControllers(): void
  readonly judges: Judges
  /** One more device, wired by the caller. */
  addDevice(name: string, address: string, plan: Pick<DevicePlan, 'kind' | 'feed' | 'timing'>): PowerDevice
  /** Ends every process, so that a world in real time lets go of its timers. */
  stop(): void
}

export interface Judges {
  twoWriters(): DoubleWriters[]
  wroteAfterRelease(): LateWriter[]
  twins(): Twins[]
  /** Has power and a kernel that was not stopped by anybody: frozen is on. */
  isPoweredOn(node: string): boolean
  /** Whoever wrote into it in the last half second. */
  writersOf(volume: string): readonly Stretch[]
}

export async function createWorld(wanted: Partial<WorldSettings> & Pick<WorldSettings, 'seed'>): Promise<World> {
  const settings: WorldSettings = { ...usualWorld, ...wanted }
  const virtual = settings.clock === undefined ? virtualClock() : undefined
  // In real time all of the world runs as one process of its own, so that stopping it leaves no timer behind.
  const whole = settings.clock === undefined ? undefined : startProcess(settings.clock, 'world')
  const clock = virtual ?? whole?.clock
  if (clock === undefined) throw new Error('a world needs a clock') // one of the two is always there
  const chance = seededChance(settings.seed)
  const truth = createTruth(clock)
  const note = truth.note
  const network = createNetwork(clock, chance.fork('network'), settings.weather)
  const ports = createFabric(clock)
  const storage = createStorage(clock, note, ports.reaches)
  const writers = createWriters(clock)
  const feeds = createFeeds()
  const devices = new Map<string, PowerDevice>()
  const runs: Running[] = []
  const whisperPorts: WhisperPorts = new Map()

  const tokens = chance.fork('api server')
  const server = settings.transportFor === undefined ? createApiServer({ clock, chance: () => tokens.next(), version: settings.kubernetesVersion }) : undefined
  const direct = settings.transportFor ?? ((user: string) => (server as ApiServer).transportFor(userOf(user))) // one of the two is there
  const apiHost = network.addHost('api', '10.3.0.1')
  const controlHost = network.addHost('controllers', '10.3.0.2')
  const attacherHost = network.addHost('csi-attacher', '10.3.0.3')
  const by = (host: Host, process: Process, user: string): Transport => simulatedTransport(network, host, apiHost, process, direct(user))
  const log = (who: string): Log => productLog(truth, who, settings.logFrom)

  const api = createApi({ transport: direct('admin'), clock, userAgent: 'world', rate: { perSecond: 10_000, burst: 20_000 } })
  const objects = [
    ...foundations(settings.namespace, settings.systemNamespace, driversOf(settings)), ...settings.objects,
    ...(settings.withWorkload ? workload({ namespace: settings.namespace, driver: settings.driver }) : []),
    ...(settings.startAgent === undefined ? [] : [agentDaemonSet(settings.systemNamespace, settings.agentAudience)]),
  ]
  await apply(api, objects, (span) => (virtual === undefined ? clock.wait(span) : virtual.runFor(span)))
  if (server !== undefined) await bindClaims(api, objects)
  const apart = handlesOf(objects, ({ spec }) => spec?.csi?.driver === settings.driverApart)
  const shared = handlesOf(objects, isShared)
  for (const { kind, metadata } of objects) {
    const handle = handleOf(metadata.name)
    if (kind === 'PersistentVolumeClaim') storage.addVolume(handle, { apart: apart.has(handle), shared: shared.has(handle) })
  }

  const attacherProcess = startProcess(clock, 'csi-attacher')
  const attaching = { process: attacherProcess, transport: by(attacherHost, attacherProcess, 'csi-attacher'), log: log('csi-attacher') }
  const csi = simulateController(attacherProcess.clock, storage, settings.csi)
  startAttacher({ ...attaching, driver: settings.driver, controller: csi, chance: chance.fork('attacher') })
  if (settings.driverApart !== '') {
    startAttacher({ ...attaching, driver: settings.driverApart, controller: simulateController(attacherProcess.clock, storage, { refusesInUse: true }), chance: chance.fork('attacher apart') })
  }
  const controlProcesses: Process[] = []
  let controllerStarts = 0
  let loops = server === undefined ? undefined : startLoops()

  const addDevice: World['addDevice'] = (name, address, { timing, ...plan }) => {
    const device = createDevice(clock, network.addHost(name, address), plan.kind === 'port' ? ports : feeds, { name, ...plan, timing, note })
    devices.set(name, device)
    devices.set(address, device)
    return device
  }

  const names = typeof settings.nodes === 'number' ? Array.from({ length: settings.nodes }, (_, index) => `node-${index + 1}`) : settings.nodes
  const nodes = new Map<string, WorldNode>()
  const switches = new Map<string, ReturnType<World['switches']>>()
  for (const [index, name] of names.entries()) {
    const own = chance.fork(name)
    const body = settings.bodies[name]
    const machine = createMachine(clock, own.fork('machine'), network.addHost(name, settings.nodeAddress(index)), {
      name, zone: `zone-${(index % settings.zones) + 1}`, machineId: body?.machineId ?? uuid(own.fork('board')), bootTime: settings.bootTime,
      ...(body === undefined ? {} : { bootOf: body.boot }), ...(settings.watchdog === undefined ? {} : { watchdog: settings.watchdog }),
    }, note)
    const built = switchesOf(settings.power, { node: name, index, zone: index % settings.zones })
    switches.set(name, built)
    for (const { device, address, plug, kind } of built.flat()) {
      const there = devices.get(device) ?? addDevice(device, address, { chassis: settings.device, outlet: strip, port: fabric }[kind])
      there.wire(plug, machine)
    }
    nodes.set(name, createNode({
      clock, machine, storage, writers, network, whisperPorts, settings, chance: own, runs, note, log: log(`${name}/kubelet`), agentLog: log(`${name}/agent`),
      transport: (process) => by(machine.host, process, `system:node:${name}`),
      agentTransport: (process) => by(machine.host, process, `system:serviceaccount:${settings.systemNamespace}:holdfast-agent`),
      resolveReplicas: () => (network.reach(machine.host, apiHost, 'api') === 'open' ? replicas.addresses() : []),
    }))
  }

  const startReplica = settings.startReplica
  const replicas = createReplicas({
    network, chance: chance.fork('replicas'), truth, devices, log,
    startReplica: startReplica ?? (async () => ({ stop: async () => undefined })),
    transport: (host, process) => by(host, process, `system:serviceaccount:${settings.systemNamespace}:holdfast-coordinator`),
  }, startReplica === undefined ? 0 : settings.replicas)
  for (const [name, node] of nodes) node.machine.powerOn(chance.fork(`${name}/first boot`).between(100, 400))
  if (startReplica !== undefined) for (let number = 0; number < settings.replicas; number++) replicas.start(number)

  return {
    ...createLevers({ clock, network, truth, nodes, replicas, apiHost, feeds }),
    clock, settings, truth, network, storage, nodes, devices, switches: (node) => switches.get(node) ?? [], csi, replicas, api, server, addDevice,
    loops: () => loops,
    restartControllers() {
      if (server === undefined) throw new Error('a real control plane has its own controllers')
      note('controllers restart')
      for (const process of controlProcesses.splice(0)) process.kill()
      loops = startLoops()
    },
    turn() {
      if (virtual === undefined) throw new Error('a world in real time turns by itself')
      return virtual
    },
    judges: {
      twoWriters: () => twoWriters(storage.log),
      wroteAfterRelease: () => wroteAfterRelease(storage.log),
      twins: () => twins(runs, (node, from, until) => ports.shutThroughout(node, from, until ?? clock.now())),
      isPoweredOn: (node) => nodes.get(node)?.machine.state() !== 'off',
      writersOf: (volume) => storage.writersOf(volume, 500),
    },
    stop() {
      for (const { process } of replicas.running.values()) process.kill()
      for (const { machine } of nodes.values()) machine.powerOff()
      for (const process of [attacherProcess, ...controlProcesses]) process.kill()
      whole?.kill()
    },
  }

  function startLoops(): ControlLoops {
    const [controllers, scheduler] = [startProcess(clock as Clock, 'controllers'), startProcess(clock as Clock, 'scheduler')] // the clock is there since above
    controlProcesses.push(controllers, scheduler)
    return startControlLoops({
      controllers, scheduler, chance: chance.fork(`control loops ${++controllerStarts}`), log: log('controllers'), transport: (process, user) => by(controlHost, process, user),
    }, settings.controlLoops)
  }
}

function userOf(name: string): User {
  if (name.startsWith('system:node:')) return nodeUser(name.slice('system:node:'.length))
  if (name.startsWith('system:serviceaccount:')) return { name, groups: ['system:serviceaccounts', 'system:authenticated'] }
  return { ...admin, name }
}

const levels = ['debug', 'info', 'warn', 'error', 'none'] as const

function productLog(truth: Truth, who: string, from: WorldSettings['logFrom']): Log {
  const at = (level: (typeof levels)[number]) => (facts: object, message: string) => {
    if (levels.indexOf(level) >= levels.indexOf(from)) truth.note('log', { who, level, message, ...readable(facts) })
  }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** Errors print as nothing in JSON; their words are what a reader wants. */
function readable(facts: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(facts).map(([key, value]) => [key, value instanceof Error ? value.message : value]))
}

