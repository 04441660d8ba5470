// One node of the lab: a simulated machine with its kubelet, and around it what is real: the kubelet's port, the host's files and
// the agent's process. When the machine dies, freezes or loses its cable, what is real falls silent: the port answers no
// packet, the agent is stopped with its sockets open. Nobody is told; a dead machine sends no farewell. Where a lab wants to see what the
// agent of a machine does that has only lost its cable, that one runs on, and its sockets are cut (cable.ts).
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AgentHost } from '../../agent/host.ts'
import type { Machine } from '../../sim/machine.ts'
import type { Process } from '../../sim/process.ts'
import type { Runtime } from '../../sim/runtime.ts'
import type { TruthEntry } from '../../sim/truth.ts'
import { cableEnvironment } from './cable.ts'
import { hostFiles } from './host-files.ts'
import { kubeletPort, type KubeletPort } from './kubelet-port.ts'
import { labRuntime } from './lab-runtime.ts'
import { startProduct, type ProductProcess } from './product-process.ts'

export interface LabNode {
  readonly name: string
  readonly port: KubeletPort
  agent(): ProductProcess | undefined
  /** The container of the agent's pod starts: the product's program as a process, with the pod's own token. */
  runAgent(host: AgentHost, container: Process): { stop(): Promise<void> }
  /** The agent's process alone ends, by SIGKILL; its container knows nothing of it. */
  killAgent(): Promise<void>
  startAgent(): Promise<void>
  /** What the world notes of this node. */
  happened(entry: TruthEntry): void
  /** Nothing of it is on its way to another state. */
  calm(): boolean
  /** The cable is out until the answer is called. */
  cutCable(): () => void
  close(): Promise<void>
}

export interface LabNodeOptions {
  readonly machine: Machine
  readonly runtime: Runtime
  readonly folder: string
  readonly kubeletPort: number
  readonly healthPort: number
  readonly whisperPort: number
  readonly authorityFile: string
  readonly replicas: readonly string[]
  readonly exemptNamespaces: readonly string[]
  readonly cutOff: 'stands still' | 'runs on'
  readonly logLevel: string
  /** A process could not be started, or a port not be silenced: the lab is not to be trusted any more. */
  broke(error: unknown): void
}

type Mute = 'power' | 'freeze' | 'cable'

const tokenLook = 1_000

export function createLabNode(options: LabNodeOptions): LabNode {
  const { machine, folder, broke } = options
  const { name, host: { address } } = machine
  const files = hostFiles(folder, machine)
  const runtime = labRuntime(join(files.run, 'containerd/containerd.sock'), join(files.run, 'nri/nri.sock'), options.runtime)
  const port = kubeletPort({ name, host: address, port: options.kubeletPort, healthPort: options.healthPort, logFile: join(folder, 'kubelet-port.log') })
  const mutes = new Set<Mute>()
  let agent: ProductProcess | undefined
  let startAgain: (() => Promise<void>) | undefined
  let kubeletRuns = false
  let closing = false
  const spawned = new Set<Promise<unknown>>()
  const carefully = (work: Promise<unknown>) => {
    const kept = work.catch(broke).finally(() => spawned.delete(kept))
    spawned.add(kept)
  }

  const cable = join(folder, 'cable-is-out')
  const standsStill = (): boolean => [...mutes].some((why) => why !== 'cable' || options.cutOff === 'stands still')
  const show = () => {
    if (standsStill()) agent?.pause()
    else agent?.resume()
    if (mutes.size > 0) carefully(port.silence())
    else carefully(kubeletRuns ? port.speak() : port.close())
  }
  const mute = (why: Mute) => {
    mutes.add(why)
    show()
  }
  const unmute = (why: Mute) => {
    if (mutes.delete(why)) show()
  }

  return {
    name, port,
    agent: () => (agent?.alive() === true ? agent : undefined),
    runAgent(host, container) {
      let own: ProductProcess | undefined
      container.onEnd(() => {
        // Of a machine without power nothing reaches the wire, not even the end of a connection: it goes with the next boot.
        if (own !== undefined && machine.state() !== 'off') carefully(own.kill())
      })
      runtime.serve(host)
      startAgain = start
      carefully(start())
      return { stop: async () => await own?.stop() }

      async function start(): Promise<void> {
        const tokenFile = await keepToken()
        if (!container.alive() || closing) return
        own = await startProduct({
          name: `agent of ${name}`, program: 'agent/main.ts', logFile: join(folder, 'agent.log'), ...(options.cutOff === 'runs on' ? { preload: 'cable.ts' } : {}),
          environment: {
            ...cableEnvironment(cable, address),
            HOLDFAST_NODE: name, HOLDFAST_REPLICAS: options.replicas.join(','), HOLDFAST_WHISPER_PORT: String(options.whisperPort),
            HOLDFAST_PODS: files.pods, HOLDFAST_PROC: files.proc, HOLDFAST_SYS: files.sys, HOLDFAST_RUN: files.run, HOLDFAST_MACHINE_FILE: files.machine,
            HOLDFAST_STATE: files.state, HOLDFAST_GATE: 'on', HOLDFAST_GATE_EXEMPT_NAMESPACES: options.exemptNamespaces.join(','),
            HOLDFAST_TOKEN_FILE: tokenFile, HOLDFAST_AUTHORITY_FILE: options.authorityFile, HOLDFAST_KUBELET_HEALTH: `http://${address}:${options.healthPort}/healthz`,
            HOLDFAST_LOG_LEVEL: options.logLevel,
          },
        })
        if (!container.alive() || closing) return void await own.kill()
        agent = own
        if (standsStill()) own.pause()
      }

      /** The pod's token as the kubelet has it, for as long as the container lives. */
      async function keepToken(): Promise<string> {
        let last: string | undefined
        const bring = async (): Promise<string> => {
          const token = await host.read('token')
          if (token !== undefined && token !== last) files.write('token/token', token)
          last = token
          container.clock.after(tokenLook, () => carefully(bring()))
          return join(folder, 'token', 'token')
        }
        return await bring()
      }
    },
    killAgent: async () => await agent?.kill(),
    startAgent: async () => await startAgain?.(),
    happened({ what }) {
      switch (what) {
        case 'machine lost its power':
          kubeletRuns = false
          return mute('power')
        case 'machine froze': return mute('freeze')
        case 'machine thawed': return unmute('freeze')
        case 'machine booted':
          if (agent !== undefined) carefully(agent.kill())
          agent = undefined
          files.boot()
          mutes.delete('freeze')
          // The port stays silent until its kubelet runs, as long as nobody looks closer: a kernel that boots refuses later.
          return void mutes.delete('power')
        case 'kubelet starts':
          kubeletRuns = true
          return show()
        case 'kubelet killed':
          kubeletRuns = false
          return show()
      }
    },
    calm: () => spawned.size === 0,
    cutCable() {
      if (options.cutOff === 'runs on') writeFileSync(cable, '')
      mute('cable')
      return () => {
        rmSync(cable, { force: true })
        unmute('cable')
      }
    },
    async close() {
      closing = true
      files.close()
      await Promise.all(spawned)
      await agent?.kill()
      runtime.close()
      await port.close()
    },
  }
}
