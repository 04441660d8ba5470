// A simulated machine: power, a kernel that can freeze, boots with an identity each, what its kernel has mounted, what its disk
// keeps, and the processes that run on it. It knows nothing of Kubernetes.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { HostFile } from '../agent/host.ts'
import type { Chance } from './chance.ts'
import { mountInfo, type Mount } from './mounts.ts'
import type { Host } from './network.ts'
import { startProcess, type Process } from './process.ts'
import { createWatchdog, type SimulatedWatchdog, type WatchdogPlan } from './watchdog.ts'

export interface MachineSettings {
  readonly name: string
  readonly zone: string
  /** nodeInfo.systemUUID and the board's product UUID. Another one after `replace`. */
  machineId: string
  /** From power on to pid 1. */
  readonly bootTime: readonly [Ms, Ms]
  /** The boot that it is in, where its body is one outside of this world. Drawn anew each time unless said. */
  readonly bootOf?: () => Pick<BootIdentity, 'id' | 'start'>
  /** It has none unless said. `virtual`: it can be made to stand still with its watchdog, and its processor says so. */
  readonly watchdog?: WatchdogPlan
}

export interface BootIdentity {
  /** /proc/sys/kernel/random/boot_id. */
  readonly id: string
  /** Start of pid 1 in clock ticks, as /proc/1/stat has it. */
  readonly start: string
  readonly at: Ms
}

export interface Machine {
  readonly name: string
  readonly settings: MachineSettings
  readonly host: Host
  state(): 'off' | 'booting' | 'running'
  frozen(): boolean
  stuck(): boolean
  /** The boot under way. Undefined while off or booting. */
  boot(): BootIdentity | undefined
  readonly mounts: Map<string, Mount>
  readonly watchdog: SimulatedWatchdog
  /** Names in the kubelet's pods folder: on disk, so they outlive a boot. */
  readonly podFolders: Set<string>
  /** Files that outlive a boot. */
  readonly disk: Map<string, string>
  /** Idempotent. What runs at each boot is given once by `atBoot`. A span replaces the usual time to boot. */
  powerOn(bootTime?: Ms): void
  /** All at once: processes, mounts, packets not yet sent. */
  powerOff(): void
  /** The kernel stands still, the packets it had sent and the writes that had left it do not. `paused`: and its hardware with it, as a virtual
   *  machine's does that is moved, or that somebody stops. */
  freeze(paused?: 'paused'): void
  thaw(): void
  /** Its kernel is dead, and nothing thaws it; only its power ends it. */
  panic(): void
  /** The kernel that a panic left the machine to has an address. */
  crashKernel(): void
  /** A virtual machine written to disk: its device reads off, and the same boot goes on when it is switched on. Power off ends
   *  what was saved. */
  hibernate(): void
  hibernated(): boolean
  /** Another machine under the name: another board, an empty disk. Powered off. */
  replace(machineId: string): void
  /** Userspace gets no turn any more; the kernel still answers TCP, and containers still write. */
  stick(): void
  unstick(): void
  /** Userspace gets its turns late, each by up to so much. */
  slow(by: Ms): void
  unslow(): void
  /** Its wall clock is set, so far ahead of the world's, and stays so through boots. */
  setClock(ahead: Ms): void
  /** By that clock. */
  wall(): number
  start(name: string, kind: ProcessKind): Process
  processes(): readonly Process[]
  atBoot(run: (boot: BootIdentity) => void): void
  /** Told before the change takes effect: what had left the machine may still land. */
  beforeStop(run: () => void): () => void
  /** What a process on it reads; `token` is its pod's own. */
  read(file: Exclude<HostFile, 'token'>): string | undefined
}

/** A `workload` goes on when userspace is stuck: the worst case, since nobody is left to stop it. */
export type ProcessKind = 'system' | 'workload'

export function createMachine(
  world: Clock, chance: Chance, host: Host, settings: MachineSettings, note: (what: string, facts: Readonly<Record<string, unknown>>) => void,
): Machine {
  const { name } = settings
  const processes = new Map<Process, ProcessKind>()
  const boots = new Set<(boot: BootIdentity) => void>()
  const stops = new Set<() => void>()
  let state: 'off' | 'booting' | 'running' = 'off'
  let frozen = false
  let hibernated = false
  let panicked = false
  let crashed = false
  let stuck = false
  let slowness: (() => Ms) | undefined
  let ahead: Ms = 0
  let boot: BootIdentity | undefined
  let cancelBoot: (() => void) | undefined
  host.kernel = 'down'

  const machine: Machine = {
    name, settings, host,
    state: () => state,
    frozen: () => frozen,
    stuck: () => stuck,
    boot: () => boot,
    mounts: new Map(),
    watchdog: createWatchdog(world, settings.watchdog, (what) => {
      note(`watchdog ${what}`, { node: name })
      if (what !== 'resets the machine') return
      machine.powerOff()
      machine.powerOn()
    }),
    podFolders: new Set(),
    disk: new Map(),
    powerOn(bootTime) {
      if (hibernated) {
        hibernated = false
        machine.thaw()
      }
      if (state !== 'off') return
      state = 'booting'
      const span = bootTime ?? chance.between(...settings.bootTime)
      note('machine powered on', { node: name })
      cancelBoot = world.after(span, () => {
        state = 'running'
        boot = { ...(settings.bootOf?.() ?? { id: uuid(chance), start: String(100 + chance.below(1_900)) }), at: world.now() }
        host.boot++
        kernel()
        note('machine booted', { node: name, boot: boot.id })
        for (const run of boots) run(boot)
      })
    },
    powerOff() {
      if (state === 'off') return
      cancelBoot?.()
      for (const run of stops) run()
      state = 'off'
      frozen = false
      hibernated = false
      panicked = false
      crashed = false
      stuck = false
      slowness = undefined
      boot = undefined
      machine.watchdog.powerOff()
      // Before the processes die: a kernel without power closes nobody's sockets.
      kernel()
      for (const process of processes.keys()) process.kill()
      processes.clear()
      machine.mounts.clear()
      host.ports.clear()
      note('machine lost its power', { node: name })
    },
    freeze(paused) {
      if (state !== 'running' || frozen) return
      if (paused !== undefined) machine.watchdog.stand()
      for (const run of stops) run()
      frozen = true
      kernel()
      for (const process of processes.keys()) process.pause('freeze', 'standing')
      note('machine froze', { node: name })
    },
    panic() {
      if (state !== 'running') return
      for (const run of stops) run()
      panicked = true
      frozen = true
      kernel()
      for (const process of processes.keys()) process.kill()
      processes.clear()
      // What was mounted was so in the kernel that is dead.
      machine.mounts.clear()
      note('kernel panics', { node: name })
    },
    crashKernel() {
      if (!panicked) return
      crashed = true
      kernel()
      note('crash kernel has an address', { node: name })
    },
    thaw() {
      if (!frozen || hibernated || panicked) return
      frozen = false
      machine.watchdog.goOn()
      kernel()
      note('machine thawed', { node: name })
      for (const process of processes.keys()) process.resume('freeze')
    },
    hibernate() {
      if (state !== 'running') return
      machine.freeze('paused')
      hibernated = true
      note('machine hibernated', { node: name })
    },
    hibernated: () => hibernated,
    replace(machineId) {
      machine.powerOff()
      settings.machineId = machineId
      machine.podFolders.clear()
      machine.disk.clear()
      note('machine replaced', { node: name, machine: machineId })
    },
    stick() {
      if (state !== 'running' || stuck) return
      stuck = true
      kernel()
      for (const [process, kind] of processes) if (kind === 'system') process.pause('stuck', 'running')
      note('userspace stuck', { node: name })
    },
    unstick() {
      if (!stuck) return
      stuck = false
      kernel()
      note('userspace runs again', { node: name })
      for (const process of processes.keys()) process.resume('stuck')
    },
    slow(by) {
      if (state !== 'running') return
      const turns = chance.fork('slow turns')
      pace(() => turns.between(0, by))
      note('machine slow', { node: name, by })
    },
    unslow() {
      if (slowness === undefined) return
      pace(undefined)
      note('machine slow no more', { node: name })
    },
    setClock(by) {
      for (const process of processes.keys()) process.jumpWall(by - ahead)
      ahead = by
      note('clock set', { node: name, ahead })
    },
    wall: () => world.wall() + ahead,
    start(processName, kind) {
      if (state !== 'running') throw new Error(`${processName} cannot start: ${name} is ${state}`)
      const process = startProcess(world, `${name}/${processName}`)
      processes.set(process, kind)
      process.jumpWall(ahead)
      process.onEnd(() => processes.delete(process))
      if (frozen) process.pause('freeze', 'standing')
      if (stuck && kind === 'system') process.pause('stuck', 'running')
      if (kind === 'system') process.slow(slowness)
      return process
    },
    processes: () => [...processes.keys()],
    atBoot: (run) => void boots.add(run),
    beforeStop(run) {
      stops.add(run)
      return () => stops.delete(run)
    },
    read(file) {
      if (boot === undefined) return undefined
      switch (file) {
        case 'boot-id': return `${boot.id}\n`
        case 'pid-1-stat': return `1 (systemd) S 0 1 1 0 -1 4194560 60 0 0 0 10 20 0 0 20 0 1 0 ${boot.start} 170000384 3000 18446744073709551615\n`
        case 'uptime': return `${((world.now() - boot.at) / 1000 + 3).toFixed(2)} 0.00\n`
        case 'machine': return `${settings.machineId}\n`
        case 'mounts': return mountInfo(machine.mounts.values())
        case 'panic': return `${settings.watchdog?.panic ?? 0}\n`
        case 'cpuinfo': return `processor\t: 0\nflags\t\t: fpu vme${settings.watchdog?.virtual === true ? ' hypervisor' : ''} lahf_lm\n`
        case 'pressure-cpu': case 'pressure-memory': case 'pressure-io': return 'some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n'
      }
    },
  }
  return machine

  function pace(draw: (() => Ms) | undefined): void {
    slowness = draw
    for (const [process, kind] of processes) if (kind === 'system') process.slow(draw)
  }

  function kernel(): void {
    host.kernel = state === 'running' ? (crashed ? 'crash' : frozen ? 'frozen' : stuck ? 'stuck' : 'up') : 'down'
  }
}

export function uuid(chance: Chance): string {
  const bytes = chance.bytes(16)
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = Buffer.from(bytes).toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
