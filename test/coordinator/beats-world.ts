// A small world for beats: replicas and agents as they are, a network in memory, an API server that knows its tokens, and
// a clock turned by hand.
import { startAgent, type Agent, type AgentSettings } from '../../agent/agent.ts'
import type { AgentHost, HostFile } from '../../agent/host.ts'
import type { Answer } from '../../coordinator/api.ts'
import { serveBeats, type BeatsOptions, type Beats } from '../../coordinator/beats.ts'
import type { BeatChange } from '../../coordinator/beats-heard.ts'
import { audience } from '../../coordinator/beats-review.ts'
import type { NodeName } from '../../core/model.ts'
import { silentLog, type Log } from '../../edge/log.ts'
import { virtualClock, type VirtualClock } from '../../sim/clock.ts'
import { memoryNetwork, type MemoryNetwork } from '../edge/link-pair.ts'

export interface World {
  readonly clock: VirtualClock
  readonly network: MemoryNetwork
  /** Agents' tokens that the API server was asked about, and how many at most at once. */
  readonly reviewed: string[]
  reviewedAtOnce: number
  api: 'well' | 'away'
  replica(name: string, leads?: boolean, addressOf?: BeatsOptions['addressOf']): Replica
  agent(node: string, change?: Partial<AgentChange>): TestAgent
}

export interface Replica {
  readonly beats: Beats
  readonly address: string
  readonly changes: { readonly node: NodeName; readonly what: BeatChange; readonly at: number }[]
  stop(): void
}

export interface TestAgent {
  readonly agent: Agent
  /** What its host's files say; change it and it is so. */
  readonly files: Record<HostFile, string | undefined>
  readonly disk: Map<string, string>
  readonly said: string[]
  podFolders: readonly string[] | undefined
  kubelet: 'ok' | 'ill' | 'unknown'
}

export interface AgentChange {
  readonly boot: string
  readonly token: string
  readonly replicas: readonly string[]
  readonly disk: Map<string, string>
  readonly mounts: string
  readonly kubelet: 'ok' | 'ill' | 'unknown'
  readonly gate: AgentSettings['gate']
  readonly exemptNamespaces: readonly string[]
  readonly connectNri: AgentHost['connectNri']
  readonly askApi: AgentHost['askApi']
  readonly containers: AgentHost['containers']
  readonly stopContainer: AgentHost['stopContainer']
  readonly freezeContainer: AgentHost['freezeContainer']
  readonly endLeftover: AgentHost['endLeftover']
  readonly runtimeHealth: AgentHost['runtimeHealth']
  readonly vitals: AgentHost['vitals']
  readonly watchdog: AgentHost['watchdog']
  readonly storage: readonly string[]
  readonly bareStagings: AgentHost['bareStagings']
  readonly loopDevices: AgentHost['loopDevices']
  readonly mountTables: AgentHost['mountTables']
}

export const emptyMounts = '22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n'

/** A machine whose runtime runs nothing and knows no plugins. */
export const idleMachine: Pick<AgentHost, 'asMounted' | 'containers' | 'mountTables' | 'loopDevices' | 'csiVolume' | 'connectNri' | 'askApi' | 'stopContainer' | 'freezeContainer' | 'endLeftover' | 'bareStagings' | 'places' | 'runtimeHealth' | 'reachStorage' | 'vitals' | 'watchdog' | 'secret'> = {
  watchdog: { look: async () => undefined, open: () => ({ failed: 'ENOENT' }) },
  places: async () => ({ kubelet: '/var/lib/kubelet', runtime: '/run/containerd/containerd.sock', gate: '' }),
  runtimeHealth: async () => 'ok', reachStorage: async () => 'reached', vitals: async () => undefined,
  endLeftover: async () => 'nothing can be ended here', bareStagings: async () => [],
  stopContainer: async () => undefined, freezeContainer: async () => undefined, secret: (bytes) => new Uint8Array(bytes),
  askApi: async () => ({ failed: 'nobody is there' }),
  asMounted: async (folder) => folder, containers: async () => [], mountTables: async () => [], loopDevices: async () => [], csiVolume: async () => undefined,
  connectNri: async () => Promise.reject(new Error('nothing listens')),
}

export function beatsWorld(): World {
  const clock = virtualClock()
  const network = memoryNetwork(clock)
  const reviewed: string[] = []
  const addresses: string[] = []
  const all: Beats[] = []
  let secrets = 0
  let chances = 0
  let reviewing = 0
  // A fixed, evenly spread row of numbers: any will do, and it is the same in each run.
  const chance = () => (chances += 0.618) % 1

  const world: World = {
    clock, network, reviewed, reviewedAtOnce: 0, api: 'well',
    replica(name, leads = false, addressOf = () => undefined) {
      const address = `${name}:7443`
      const changes: Replica['changes'] = []
      const beats = serveBeats({
        host: { clock, chance, log: silentLog, dialer: network.dialer(name), secret: (bytes) => Uint8Array.from({ length: bytes }, () => (secrets += 1) % 256) },
        api: { create: async <T>(_: string, body: unknown): Promise<Answer<T>> => {
          reviewing += 1
          world.reviewedAtOnce = Math.max(world.reviewedAtOnce, reviewing)
          await clock.wait(2)
          reviewing -= 1
          // The reviewed spec is what coordinator/beats-review.ts makes.
          const { token } = (body as { spec: { token: string } }).spec
          if (token.startsWith('agent')) reviewed.push(token)
          if (world.api === 'away') return { ok: false, error: { kind: 'unreachable', message: 'nobody answers' } }
          return { ok: true, value: review(token) as T }
        } },
        replica: name, namespace: 'holdfast', replicaNamespace: 'holdfast', token: async () => `replica ${name}`,
        addressOf, changed: (node, what) => changes.push({ node, what, at: clock.now() }),
        drained: () => clock.wait(0),
      })
      beats.setLeading(leads)
      const shut = network.listen(address, (link) => beats.accept(link))
      addresses.push(address)
      all.push(beats)
      for (const each of all) each.setReplicas(addresses)
      return { beats, address, changes, stop: () => { shut(); beats.close() } }
    },
    agent(node, change = {}) {
      const files: TestAgent['files'] = {
        'boot-id': `${change.boot ?? 'b007-0001'}\n`, 'pid-1-stat': `1 (init) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9`,
        panic: '10\n', cpuinfo: 'flags\t\t: fpu vme\n', 'pressure-cpu': undefined, 'pressure-memory': undefined, 'pressure-io': undefined,
        uptime: '100.00 200.00\n', machine: `uuid-of-${node}\n`, mounts: change.mounts ?? emptyMounts, token: change.token ?? `agent ${node} pod-${node}`,
      }
      const disk = change.disk ?? new Map<string, string>()
      const said: string[] = []
      const note = (facts: object, message: string) => { said.push(`${message} ${JSON.stringify(facts)}`) }
      const log: Log = { ...silentLog, info: note, warn: note, error: note }
      const made: Omit<TestAgent, 'agent'> = { files, disk, said, podFolders: [], kubelet: change.kubelet ?? 'ok' }
      const host: AgentHost = {
        clock, chance, log, dialer: network.dialer(node), whispers: network.whispers(node),
        disk: { load: async (name) => disk.get(name), save: async (name, text) => { disk.set(name, text) } },
        read: async (file) => files[file], podFolders: async () => made.podFolders, kubeletHealth: async () => made.kubelet,
        resolveReplicas: async () => change.replicas ?? addresses, ...idleMachine, ...(change.connectNri === undefined ? {} : { connectNri: change.connectNri }),
        ...(change.askApi === undefined ? {} : { askApi: change.askApi }), ...(change.containers === undefined ? {} : { containers: change.containers }),
        ...(change.stopContainer === undefined ? {} : { stopContainer: change.stopContainer }), ...(change.freezeContainer === undefined ? {} : { freezeContainer: change.freezeContainer }),
        ...(change.endLeftover === undefined ? {} : { endLeftover: change.endLeftover }), ...(change.bareStagings === undefined ? {} : { bareStagings: change.bareStagings }), ...(change.loopDevices === undefined ? {} : { loopDevices: change.loopDevices }),
        ...(change.runtimeHealth === undefined ? {} : { runtimeHealth: change.runtimeHealth }),
        ...(change.mountTables === undefined ? {} : { mountTables: change.mountTables }),
        ...(change.watchdog === undefined ? {} : { watchdog: change.watchdog }),
        ...(change.vitals === undefined ? {} : { vitals: change.vitals }),
        secret: (bytes) => Uint8Array.from({ length: bytes }, () => (secrets += 1) % 256),
      }
      const gate = change.gate === undefined ? {} : { gate: change.gate }
      return Object.assign(made, { agent: startAgent(host, { version: 'test', kubeletRoot: '/var/lib/kubelet', whisperPort: 7_000, exemptNamespaces: change.exemptNamespaces ?? [], storage: change.storage ?? [], ...gate }) })
    },
  }
  return world
}

/** `agent NODE POD`, `replica NAME`, or a token that is no good. */
function review(token: string): unknown {
  const [kind, name, pod] = token.split(' ')
  const user = kind === 'agent' ? {
    username: 'system:serviceaccount:holdfast:holdfast-agent',
    extra: {
      'authentication.kubernetes.io/node-name': [name], 'authentication.kubernetes.io/node-uid': [`uid-of-${name}`],
      'authentication.kubernetes.io/pod-name': [`agent-on-${name}`], 'authentication.kubernetes.io/pod-uid': [pod],
    },
  } : { username: 'system:serviceaccount:holdfast:holdfast-coordinator', extra: { 'authentication.kubernetes.io/pod-uid': [`pod-of-${name}`] } }
  return { status: kind === 'agent' || kind === 'replica' ? { authenticated: true, audiences: [audience], user } : { authenticated: false, error: 'unknown token' } }
}
