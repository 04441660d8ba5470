// A node of the world: its machine, its runtime, and the kubelet that is started at each boot and can be killed and started
// again beside it.
import type { Transport } from '../../coordinator/transport.ts'
import type { Clock } from '../../edge/clock.ts'
import type { Log } from '../../edge/log.ts'
import type { Chance } from '../chance.ts'
import type { Running } from '../judges.ts'
import { startKubelet, type Kubelet } from '../kubelet.ts'
import type { Machine } from '../machine.ts'
import { isStaged, type Mount } from '../mounts.ts'
import type { Network } from '../network.ts'
import type { Process } from '../process.ts'
import { createRuntime, writingWorkload, type Image, type Runtime } from '../runtime.ts'
import type { Storage } from '../storage.ts'
import type { WhisperPorts } from '../whispers.ts'
import type { Writers } from '../writers.ts'
import { agentHost, type NodeFaults } from './agent-place.ts'
import { agentImage } from './objects.ts'
import { driversOf, type WorldSettings } from './settings.ts'

export interface WorldNode {
  readonly machine: Machine
  readonly runtime: Runtime
  kubelet(): Kubelet | undefined
  startKubelet(): void
  killKubelet(): void
  /** The process that the product's agent runs as. */
  agent(): Process | undefined
  /** Kills it; `stays`: whatever the kubelet starts in its place dies too, until `startAgent`. */
  killAgent(stays: boolean): void
  startAgent(): void
  /** The agent's own goodbye, as its pod or its machine ends in good order. Resolves when it has been said. */
  sayGoodbye(why: 'restart' | 'reboot' | 'shutdown'): Promise<void>
  /** What goes wrong with its mounts. */
  readonly faults: NodeFaults
}

export interface NodeGround {
  readonly clock: Clock
  readonly machine: Machine
  readonly storage: Storage
  readonly writers: Writers
  readonly network: Network
  readonly whisperPorts: WhisperPorts
  readonly settings: WorldSettings
  readonly chance: Chance
  readonly runs: Running[]
  readonly log: Log
  readonly agentLog: Log
  note(what: string, facts: Readonly<Record<string, unknown>>): void
  /** Kubelet's. */
  transport(process: Process): Transport
  agentTransport(process: Process): Transport
  resolveReplicas(): readonly string[]
}

export function createNode(ground: NodeGround): WorldNode {
  const { clock, machine, storage, chance, settings, note } = ground
  let kubelet: Kubelet | undefined
  let agent: Process | undefined
  let stopAgent: ((why: 'restart' | 'reboot' | 'shutdown') => Promise<void>) | undefined
  let agentDown = false
  let starts = 0
  const faults: NodeFaults = { unmount: 'well', kept: 'nothing' }
  let staged: readonly Mount[] = []

  const images = new Map<string, Image>([[agentImage, (run) => {
    if (settings.startAgent === undefined) return
    // A program that cannot live ends a moment after its start, and its kubelet tries again ever later.
    if (agentDown) return void run.process.clock.after(100, () => run.exit())
    agent = run.process
    note('agent runs', { node: machine.name })
    const started = settings.startAgent(agentHost(run, {
      ...ground, log: ground.agentLog, chance: chance.fork(`agent ${++starts}`), faults, kubelet: () => kubelet, runtime: () => runtime, api: ground.agentTransport,
    }), { node: machine.name })
    stopAgent = (why) => started.stop(why)
    run.process.onEnd(() => { stopAgent = undefined })
    run.onTerm(() => void started.stop('restart').then(() => run.exit()))
  }]])
  const runtime = createRuntime(clock, machine, images, writingWorkload(clock, storage, ground.writers, chance.fork('workload')), ground.runs, note, settings.gate)

  const node: WorldNode = {
    machine, runtime, faults,
    kubelet: () => kubelet,
    startKubelet() {
      if (machine.state() !== 'running' || kubelet?.process.alive() === true) return
      note('kubelet starts', { node: machine.name })
      kubelet = startKubelet({ ...ground, faults, runtime, chance: chance.fork(`kubelet ${++starts}`) }, {
        port: settings.kubeletPort, drivers: driversOf(settings), labels: {}, version: settings.kubernetesVersion,
      })
    },
    killKubelet() {
      if (kubelet?.process.alive() !== true) return
      note('kubelet killed', { node: machine.name })
      kubelet.process.kill()
    },
    agent: () => (agent?.alive() === true ? agent : undefined),
    killAgent(stays) {
      agentDown = stays
      if (node.agent() === undefined) return
      note('agent killed', { node: machine.name })
      agent?.kill()
    },
    startAgent() {
      agentDown = false
    },
    sayGoodbye: async (why) => await stopAgent?.(why),
  }
  machine.beforeStop(() => { staged = [...machine.mounts.values()].filter(isStaged) })
  machine.atBoot(() => {
    if (faults.kept === 'staged mounts') for (const mount of staged) machine.mounts.set(mount.path, mount)
    node.startKubelet()
  })
  return node
}
