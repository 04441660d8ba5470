// What can be done to a world from outside: power, kernels, cables, processes. Each takes effect at once and is noted.
import type { Ms } from '../../core/model.ts'
import type { Clock } from '../../edge/clock.ts'
import type { Feeds } from '../device.ts'
import type { Host, Network, Plane, Reach } from '../network.ts'
import type { Truth } from '../truth.ts'
import type { Doom } from './doom.ts'
import type { WorldNode } from './node.ts'
import type { Replicas } from './replica-place.ts'

export interface Levers {
  /** The machine is dead at once. Its device can switch it on again. */
  cutPower(node: string): void
  /** Its own mains are back, and its button is pressed: it starts if any outlet feeds it. */
  powerOn(node: string): void
  /** Off if it is on, on if it is off: somebody stands before it. */
  pressPowerButton(node: string): void
  /** Off and on again within the span. */
  reboot(node: string, off: Ms): void
  /** In good order: the agent says goodbye, and two seconds later the machine is off; on again if it reboots. */
  shutDown(node: string, and: 'off' | 'reboot'): void
  /** Another machine comes under the node's name, switched off. */
  replaceMachine(node: string, machineId: string): void
  /** Written to disk: its device reads off, and the same boot goes on at the next power on. */
  hibernate(node: string): void
  freeze(node: string): void
  thaw(node: string): void
  /** Its kernel panics, and its crash kernel comes up, tells every replica so, and writes its dump; then it boots, if it ends. */
  panic(node: string, plan: CrashPlan): void
  /** What a crash kernel says, said by whoever can send from the node's address. */
  forgeDumpWord(node: string): void
  /** Userspace gets no turn; the kernel answers TCP; containers write on. */
  /** A virtual machine that moves to another host: it stands still for so long, and keeps its boot and its address. */
  migrate(node: string, still: Ms): void
  stick(node: string): void
  unstick(node: string): void
  slow(node: string, by: Ms): void
  unslow(node: string): void
  /** Its wall clock is so far ahead of the world's from now on. */
  setClock(node: string, ahead: Ms): void
  /** Its container runtime hangs, or is not there any more; its kubelet and what runs go on. */
  failRuntime(node: string, how: 'hangs' | 'dead'): void
  mendRuntime(node: string): void
  /** Cuts what the names say until the answer is called. */
  partition(cut: Cut): () => void
  /** The node's cable: everything to and from it, its own device apart. */
  isolate(node: string): () => void
  /** Ends every partition, and whatever was done to kubelet ports. */
  heal(): void
  killAgent(node: string, stays?: boolean): void
  startAgent(node: string): void
  /** In good order, as at an upgrade: goodbye, end, and the kubelet starts it again. */
  restartAgent(node: string): void
  killKubelet(node: string): void
  startKubelet(node: string): void
  /** A reset to whoever connects; the kubelet itself is well. */
  resetKubeletPort(node: string): () => void
  /** A firewall swallows what comes to the port. */
  firewallKubeletPort(node: string): () => void
  killReplica(number: number): void
  /** In good order, as by SIGTERM. */
  stopReplica(number: number): void
  pauseReplica(number: number, span: Ms, clocks?: 'standing' | 'running'): void
  startReplica(number: number): void
  /** It dies at that very await. The answer calls it off. */
  doomReplica(number: number, doom: Doom): () => void
}

export interface CrashPlan {
  /** From the panic on, until it has an address. */
  readonly after: Ms
  /** From there to its first word, which is said again every ten seconds. */
  readonly speaksAfter: Ms
  /** From there to its end. Without it it hangs. */
  readonly writes?: Ms
}

export interface Cut {
  /** Names of hosts; `*` is every host that the other side does not name. */
  readonly from: readonly string[]
  readonly to: readonly string[]
  /** Only packets from `from` to `to` are lost. */
  readonly oneWay?: boolean
  /** Without it: all of them. `api` takes its watches with it. */
  readonly planes?: readonly Plane[]
  readonly as?: Exclude<Reach, 'open'>
}

const shutdownTime: Ms = 2_000
/** As fence_kdump_send does. */
const dumpWordEvery: Ms = 10_000

export interface LeverGround {
  readonly clock: Clock
  readonly network: Network
  readonly truth: Truth
  readonly nodes: ReadonlyMap<string, WorldNode>
  readonly replicas: Replicas
  readonly apiHost: Host
  readonly feeds: Feeds
}

export function createLevers({ clock, network, truth, nodes, replicas, feeds }: LeverGround): Levers {
  const heals = new Set<() => void>()
  const node = (name: string): WorldNode => {
    const found = nodes.get(name)
    if (found === undefined) throw new Error(`there is no node ${name}`)
    return found
  }
  const machine = (name: string) => node(name).machine
  const start = (name: string, bootTime?: Ms) => {
    // Nothing runs without its mains, and a controller that hangs on them is there with the machine.
    feeds.mains(machine(name), true)
    if (feeds.live(machine(name))) machine(name).powerOn(bootTime)
  }
  const until = (end: () => void): (() => void) => {
    const once = () => {
      if (heals.delete(once)) end()
    }
    heals.add(once)
    return once
  }

  const levers: Levers = {
    cutPower(name) {
      feeds.mains(machine(name), false)
      machine(name).powerOff()
    },
    powerOn: (name) => start(name),
    pressPowerButton(name) {
      truth.note('power button pressed', { node: name })
      if (machine(name).state() === 'off') levers.powerOn(name)
      else machine(name).powerOff()
    },
    reboot(name, off) {
      machine(name).powerOff()
      clock.after(off, () => start(name, Math.min(1_000, off)))
    },
    shutDown(name, and) {
      truth.note('shutdown ordered', { node: name, and })
      const { id } = machine(name).boot() ?? {}
      void node(name).sayGoodbye(and === 'off' ? 'shutdown' : 'reboot')
      clock.after(shutdownTime, () => {
        if (machine(name).boot()?.id !== id) return
        machine(name).powerOff()
        if (and === 'reboot') start(name)
      })
    },
    replaceMachine: (name, machineId) => machine(name).replace(machineId),
    hibernate: (name) => machine(name).hibernate(),
    freeze: (name) => machine(name).freeze(),
    thaw: (name) => machine(name).thaw(),
    panic(name, { after, speaksAfter, writes }) {
      const crashed = machine(name)
      const { id } = crashed.boot() ?? {}
      crashed.panic()
      const still = () => crashed.boot()?.id === id
      const speak = () => {
        if (!still()) return
        replicas.announce(crashed.host)
        clock.after(dumpWordEvery, speak)
      }
      clock.after(after, () => {
        if (!still()) return
        crashed.crashKernel()
        clock.after(speaksAfter, speak)
        if (writes === undefined) return
        clock.after(writes, () => {
          if (!still()) return
          crashed.powerOff()
          start(name)
        })
      })
    },
    forgeDumpWord(name) {
      truth.note('crash kernel\'s word forged', { node: name })
      replicas.announce(machine(name).host)
    },
    stick: (name) => machine(name).stick(),
    unstick: (name) => machine(name).unstick(),
    migrate(name, still) {
      const moved = machine(name)
      const { id } = moved.boot() ?? {}
      if (id === undefined || moved.frozen()) return
      truth.note('machine migrates', { node: name, still })
      moved.freeze('paused')
      clock.after(still, () => {
        if (moved.boot()?.id === id) moved.thaw()
      })
    },
    slow: (name, by) => machine(name).slow(by),
    unslow: (name) => machine(name).unslow(),
    setClock: (name, ahead) => machine(name).setClock(ahead),
    failRuntime: (name, how) => node(name).runtime.fail(how),
    mendRuntime: (name) => node(name).runtime.mend(),
    partition(cut) {
      truth.note('partition', { ...cut })
      const end = network.rule((from, to, plane) => (cuts(cut, from, to, plane) ? (cut.as ?? 'silent') : 'open'))
      return until(() => {
        end()
        truth.note('partition ends', { ...cut })
      })
    },
    isolate: (name) => levers.partition({ from: [name], to: ['*'] }),
    heal() {
      for (const end of heals) end()
    },
    killAgent: (name, stays = true) => node(name).killAgent(stays),
    startAgent: (name) => node(name).startAgent(),
    restartAgent(name) {
      const process = node(name).agent()
      truth.note('agent restarts', { node: name })
      void node(name).sayGoodbye('restart').then(() => process?.kill())
    },
    killKubelet: (name) => node(name).killKubelet(),
    startKubelet: (name) => node(name).startKubelet(),
    resetKubeletPort: (name) => levers.partition({ from: ['*'], to: [name], planes: ['probe'], oneWay: true, as: 'refused' }),
    firewallKubeletPort: (name) => levers.partition({ from: ['*'], to: [name], planes: ['probe'], oneWay: true, as: 'silent' }),
    killReplica: (number) => replicas.kill(number),
    stopReplica: (number) => replicas.stop(number),
    pauseReplica: (number, span, clocks = 'standing') => replicas.pause(number, span, clocks),
    startReplica: (number) => replicas.start(number),
    doomReplica: (number, doom) => replicas.doom(number, doom),
  }
  return levers
}

function cuts({ from, to, planes, oneWay = false }: Cut, sender: string, receiver: string, plane: Plane): boolean {
  if (planes !== undefined && !planes.includes(plane) && !(plane === 'watch' && planes.includes('api'))) return false
  const matches = (one: string, other: string) => names(from, one, to) && names(to, other, from)
  return matches(sender, receiver) || (!oneWay && matches(receiver, sender))
}

function names(list: readonly string[], name: string, others: readonly string[]): boolean {
  return list.includes(name) || (list.includes('*') && !others.includes(name))
}
