// Where an agent runs: all that agent/host.ts asks for, given by a simulated machine to the container that it is.
import type { AgentHost, ApiAnswer } from '../../agent/host.ts'
import type { Transport } from '../../coordinator/transport.ts'
import type { Ms } from '../../core/model.ts'
import type { Vitals } from '../../core/vitals.ts'
import { withDeadline } from '../../edge/clock.ts'
import type { Log } from '../../edge/log.ts'
import type { Chance } from '../chance.ts'
import type { Kubelet } from '../kubelet.ts'
import type { MountFaults } from '../kubelet-volumes.ts'
import { simulatedDialer } from '../links.ts'
import { mountInfo } from '../mounts.ts'
import type { Network } from '../network.ts'
import type { Process } from '../process.ts'
import type { ContainerRun, Runtime } from '../runtime.ts'
import { simulatedWhispers, type WhisperPorts } from '../whispers.ts'

/** What goes wrong on a node beside its power and its network; may be changed at any time. */
export interface NodeFaults extends MountFaults {
  /** Beside the usual ones. */
  vitals?: Vitals | 'untold'
}

export interface AgentPlace {
  readonly network: Network
  readonly whisperPorts: WhisperPorts
  readonly chance: Chance
  readonly log: Log
  readonly faults: NodeFaults
  note(what: string, facts: Readonly<Record<string, unknown>>): void
  kubelet(): Kubelet | undefined
  runtime(): Runtime
  /** The agent's own account at the API server. */
  api(process: Process): Transport
  /** What the headless Service would say, if the name server can be asked from there. */
  resolveReplicas(): readonly string[]
}

const ownMounts = mountInfo([])

export function agentHost({ machine, process, token }: ContainerRun, place: AgentPlace): AgentHost {
  const { host } = machine
  // A read of a file takes a turn of the promise queue and no time: the files are in memory on a real machine too.
  const now = <T>(value: () => T): Promise<T> => process.hold(Promise.resolve().then(value))
  return {
    clock: process.clock,
    chance: () => place.chance.next(),
    secret: (bytes) => place.chance.bytes(bytes),
    log: place.log,
    dialer: simulatedDialer(place.network, host, process),
    whispers: simulatedWhispers(place.network, place.whisperPorts, host, process),
    disk: {
      load: (name) => now(() => machine.disk.get(`agent/${name}`)),
      save: (name, text) => now(() => void machine.disk.set(`agent/${name}`, text)),
    },
    watchdog: machine.watchdog.forProcess(process),
    read: (file) => now(() => (file === 'token' ? token() : machine.read(file))),
    asMounted: (folder) => now(() => folder),
    podFolders: () => now(() => [...machine.podFolders]),
    containers: async (span) => {
      if (place.runtime().fault?.how === 'hangs') await process.clock.wait(span)
      if (place.runtime().fault !== undefined) return { failed: 'it does not answer' }
      return [...place.runtime().containers.values()].map(({ pod, since }) => ({ id: pod.uid, name: `${pod.namespace}/${pod.name}`, pod: pod.uid, since }))
    },
    stopContainer: async ({ pod }, span) => {
      if (place.runtime().fault?.how === 'hangs') await process.clock.wait(span)
      if (place.runtime().fault !== undefined) return 'it does not answer'
      place.runtime().containers.get(pod)?.kill()
      return undefined
    },
    freezeContainer: ({ pod }) => now(() => {
      const container = place.runtime().containers.get(pod)
      if (container === undefined) return 'it has no process'
      container.process.pause('frozen by the agent', 'running')
      return undefined
    }),
    endLeftover: async (step, span) => {
      if (step.do !== 'unmount') return 'there is none of that kind'
      if (place.faults.unmount === 'hangs') {
        await process.clock.wait(span)
        return `it did not end within ${span} ms`
      }
      place.note('agent unmounts', { node: machine.name, path: step.path })
      machine.mounts.delete(step.path)
      return undefined
    },
    bareStagings: () => now(() => []),
    // Of each container a table of its own, with nothing in it: nothing keeps copies of mounts on these machines, and they have no block volumes.
    mountTables: () => now(() => [...place.runtime().containers.keys()].map((pod, index) => ({ process: 1_000 + index, pod, mountinfo: ownMounts }))),
    loopDevices: () => now(() => []),
    csiVolume: () => now(() => undefined),
    places: () => now(() => ({ kubelet: '/var/lib/kubelet', runtime: '/run/containerd/containerd.sock', gate: '/run/nri/nri.sock' })),
    runtimeHealth: async (span) => {
      if (place.runtime().fault?.how === 'hangs') await process.clock.wait(span)
      return place.runtime().fault === undefined ? 'ok' : 'ill'
    },
    reachStorage: () => now(() => 'reached'),
    vitals: () => now(() => (place.faults.vitals === 'untold' ? undefined : { disk: 40, inodes: 10, memory: 55, load: 0.5, ...place.faults.vitals })),
    askApi: (path, span) => askApi(place.api(process), process, path, span),
    connectNri: (span) => place.runtime().connectNri(process, span),
    kubeletHealth: async (span) => {
      const kubelet = place.kubelet()
      if (kubelet !== undefined && kubelet.process.alive() && !kubelet.process.running()) await process.clock.wait(span)
      // Nothing listens: refused at once, which says that the kubelet is down and not that the question failed.
      return kubelet?.healthy() === true ? 'ok' : 'ill'
    },
    resolveReplicas: () => now(() => place.resolveReplicas()),
  }
}

async function askApi(transport: Transport, { clock }: Process, path: string, span: Ms): Promise<ApiAnswer> {
  const over = new AbortController()
  const ask = async (): Promise<ApiAnswer> => {
    const { status, body } = await transport({ method: 'GET', path, headers: { accept: 'application/json' } }, over.signal)
    let text = ''
    for await (const piece of body) text += piece
    return { status, body: text }
  }
  const answer = await withDeadline(clock, span, undefined, ask).catch((error: unknown): ApiAnswer => ({ failed: String(error) }))
  over.abort()
  return answer ?? { failed: `no answer within ${span} ms` }
}
