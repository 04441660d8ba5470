// What a world is made of, and its defaults.
import type { AgentHost } from '../../agent/host.ts'
import type { KubeObject } from '../../coordinator/api.ts'
import type { Transport } from '../../coordinator/transport.ts'
import type { Ms } from '../../core/model.ts'
import type { Clock } from '../../edge/clock.ts'
import type { CsiSettings } from '../csi-controller.ts'
import type { ControlLoopSettings } from '../controllers/control-loops.ts'
import type { DevicePlan, DeviceTiming } from '../device.ts'
import type { BootIdentity } from '../machine.ts'
import type { Weather } from '../network.ts'
import type { WatchdogPlan } from '../watchdog.ts'
import type { Power } from './power.ts'
import type { StartReplica } from './replica-place.ts'

export interface WorldSettings {
  readonly seed: number | string
  /** Without one the world turns a virtual clock of its own. */
  readonly clock?: Clock
  /** How many, or their names. */
  readonly nodes: number | readonly string[]
  /** Nodes are dealt to so many zones in turn. */
  readonly zones: number
  /** Each node's own address, by its place in the list: another one where real sockets stand for its ports. */
  readonly nodeAddress: (index: number) => string
  /** Coordinator replicas; they start only when `startReplica` is given. */
  readonly replicas: number
  readonly startReplica?: StartReplica
  /** The product's agent, started in its pod on each node. */
  readonly startAgent?: StartAgent
  readonly agentAudience: string
  /** Runtimes start no pod unasked: the agent's plugin is required. What the agent then does is told to `startAgent`. */
  readonly gate: boolean
  /** A real API server, by user (`admin`, `system:node:X`, `csi-attacher`). Without it the in-memory one, with controllers of ours. */
  readonly transportFor?: (user: string) => Transport
  /** Definitions, policies, configuration: created before anything else starts. */
  readonly objects: readonly KubeObject[]
  readonly systemNamespace: string
  readonly namespace: string
  readonly driver: string
  /** Another one, which refuses to detach what is in use, and whose volumes no port of the storage network shuts out. Empty: there is none. */
  readonly driverApart: string
  readonly withWorkload: boolean
  /** From power on to pid 1; the first boot of all is quick. */
  readonly bootTime: readonly [Ms, Ms]
  /** Of every machine; none unless said. */
  readonly watchdog?: WatchdogPlan
  /** Nodes whose machines stand for ones outside of this world: their boards, and the boots that they are in. */
  readonly bodies: Readonly<Record<string, Body>>
  /** What stands between the mains and the machines. */
  readonly power: Power
  /** Controllers of machines: their feed, their pace. */
  readonly device: { readonly kind: 'chassis'; readonly feed: DevicePlan['feed']; readonly timing: DeviceTiming }
  readonly weather: Partial<Weather>
  readonly csi: Partial<CsiSettings>
  readonly controlLoops: Partial<ControlLoopSettings>
  readonly kubeletPort: number
  readonly kubernetesVersion: string
  /** The product's log lines stand in the transcript from this level on. */
  readonly logFrom: 'debug' | 'info' | 'warn' | 'error' | 'none'
}

export interface Body {
  readonly machineId: string
  boot(): Pick<BootIdentity, 'id' | 'start'>
}

/** `replaced` parts of the host are the caller's, for agents on real sockets. */
export type StartAgent = (host: AgentHost, place: { readonly node: string }) => { stop(why: 'restart' | 'reboot' | 'shutdown'): Promise<void> }

export const usualWorld: Omit<WorldSettings, 'seed'> = {
  nodes: 3,
  zones: 3,
  nodeAddress: (index) => `10.0.0.${index + 11}`,
  replicas: 2,
  agentAudience: 'holdfast-coordinator',
  gate: false,
  objects: [],
  systemNamespace: 'holdfast-system',
  namespace: 'work',
  driver: 'csi.holdfast.dev',
  driverApart: '',
  withWorkload: true,
  bootTime: [18_000, 22_000],
  bodies: {},
  power: 'bmc',
  device: { kind: 'chassis', feed: 'own', timing: { off: 2_000, on: 1_000, status: 200 } },
  weather: {},
  csi: {},
  controlLoops: {},
  kubeletPort: 10_250,
  kubernetesVersion: 'v1.36.4',
  logFrom: 'info',
}

export function driversOf({ driver, driverApart }: Pick<WorldSettings, 'driver' | 'driverApart'>): readonly string[] {
  return driverApart === '' ? [driver] : [driver, driverApart]
}
