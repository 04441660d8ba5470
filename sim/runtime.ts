// The container runtime of a machine: what runs there, whether or not a kubelet still knows of it. Containers outlive their
// kubelet, as behind a real shim; they end with the machine.
import type { Ms } from '../core/model.ts'
import type { ByteStream } from '../agent/host.ts'
import type { PodAsked } from '../core/gate.ts'
import type { Clock } from '../edge/clock.ts'
import type { Chance } from './chance.ts'
import type { Running } from './judges.ts'
import type { Machine } from './machine.ts'
import { tokenPath } from './mounts.ts'
import type { Process } from './process.ts'
import { createRuntimeNri } from './runtime-nri.ts'
import type { Storage } from './storage.ts'
import type { Writers } from './writers.ts'

export interface PodIdentity {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  /** A StatefulSet's: the name must not run twice. */
  readonly identity: boolean
}

export interface Container {
  readonly pod: PodIdentity
  readonly image: string
  /** By its machine's wall clock. */
  readonly since: number
  readonly process: Process
  ended(): boolean
  /** SIGTERM now, SIGKILL after the grace. */
  terminate(grace: Ms): void
  kill(): void
}

/** A program by its image: started once for each run of a container. */
export type Image = (run: ContainerRun) => void

export interface ContainerRun {
  readonly machine: Machine
  readonly process: Process
  readonly pod: PodIdentity
  readonly volumes: readonly PodVolume[]
  /** The projected token as it is on the machine now. */
  token(): string | undefined
  /** Called at SIGTERM. Without it the program ends by itself at once. */
  onTerm(run: () => void): void
  exit(): void
}

export interface PodVolume {
  /** Where the pod has it. */
  readonly path: string
  /** The storage's name of it. */
  readonly volume: string
}

export interface Runtime {
  /** Whether plugins are asked before a pod starts, and what they say: why it may not. Undefined: it may. */
  asksPlugins(): boolean
  askPlugins(pod: PodAsked): Promise<string | undefined>
  /** The plugin's end of a connection; rejects where nobody listens. */
  connectNri(plugin: Process, span: Ms): Promise<ByteStream>
  run(pod: PodIdentity, image: string, volumes: readonly PodVolume[]): Container
  /** What runs now, by pod uid. */
  readonly containers: ReadonlyMap<string, Container>
  /** What is wrong with it, since when. `hangs`: it answers nothing; `dead`: it is not there. What runs, runs on, and nothing is
   *  started or stopped by it. A boot of the machine mends it. */
  readonly fault: RuntimeFault | undefined
  fail(how: RuntimeFault['how']): void
  mend(): void
}

export interface RuntimeFault {
  readonly how: 'hangs' | 'dead'
  readonly since: Ms
}

/** Every run of a container in the world, for the judge of twins. */
export type RunLog = Running[]

export function createRuntime(
  world: Clock, machine: Machine, images: ReadonlyMap<string, Image>, workload: Image, runs: RunLog,
  note: (what: string, facts: Readonly<Record<string, unknown>>) => void, gated = false,
): Runtime {
  const containers = new Map<string, Container>()
  let fault: RuntimeFault | undefined
  const mend = () => {
    if (fault !== undefined) note('runtime mended', { node: machine.name })
    fault = undefined
  }
  machine.atBoot(mend)
  const nri = createRuntimeNri(world, { required: gated })
  return {
    containers, mend,
    asksPlugins: nri.asks,
    askPlugins: nri.ask,
    async connectNri(plugin, span) {
      if (fault?.how === 'hangs') await plugin.clock.wait(span)
      if (fault !== undefined) throw new Error('the runtime does not answer')
      const stream = nri.connect()
      plugin.onEnd(stream.close)
      return {
        ...stream,
        listen: ({ bytes, closed }) => stream.listen({
          bytes: (piece) => plugin.deliver(() => bytes(piece)),
          closed: (reason) => plugin.deliver(() => closed(reason)),
        }),
      }
    },
    get fault() { return fault },
    fail(how) {
      fault = { how, since: world.now() }
      if (how === 'dead') nri.drop()
      note('runtime failed', { node: machine.name, how })
    },
    run(pod, image, volumes) {
      const boot = machine.boot()
      if (boot === undefined) throw new Error(`a container cannot start on ${machine.name}: it is ${machine.state()}`)
      const program = images.get(image)
      const process = machine.start(`${pod.namespace}/${pod.name}`, program === undefined ? 'workload' : 'system')
      const name = `${pod.namespace}/${pod.name}`
      const run: Running = {
        pod: name, podUid: pod.uid, node: machine.name, boot: boot.id, startedAt: world.now(), endedAt: undefined, identity: pod.identity,
      }
      runs.push(run)
      note('container runs', { node: machine.name, pod: name, uid: pod.uid })
      let asked = false
      let onTerm = () => process.kill()
      const container: Container = {
        pod, image, process, since: machine.wall(),
        ended: () => !process.alive(),
        kill: () => process.kill(),
        terminate(grace) {
          if (asked || !process.alive()) return
          asked = true
          process.deliver(onTerm)
          // The runtime counts the grace; a container of a frozen machine outlives it until the thaw.
          const killer = machine.start(`stop of ${name}`, 'system')
          killer.clock.after(grace, () => {
            killer.kill()
            process.kill()
          })
          process.onEnd(() => killer.kill())
        },
      }
      process.onEnd(() => {
        run.endedAt = world.now()
        if (containers.get(pod.uid) === container) containers.delete(pod.uid)
        note('container ended', { node: machine.name, pod: name, uid: pod.uid })
      })
      containers.set(pod.uid, container)
      const start = program ?? workload
      start({
        machine, process, pod, volumes,
        token: () => machine.disk.get(tokenPath(pod.uid)),
        onTerm: (ears) => { onTerm = ears },
        exit: () => process.kill(),
      })
      return container
    },
  }
}

/** What every pod of the world runs unless its image is known: it writes into each of its volumes ten times a second as long
 *  as the volume is mounted where the pod has it, and takes a moment to end. */
export function writingWorkload(world: Clock, storage: Storage, writers: Writers, chance: Chance): Image {
  return ({ machine, process, pod, volumes, onTerm, exit }) => {
    const boot = machine.boot()?.id ?? ''
    const writer = { node: machine.name, boot, pod: `${pod.namespace}/${pod.name}`, podUid: pod.uid }
    const pens = volumes.map(({ path, volume }) => ({ path, write: storage.pen(volume, writer, 'data') }))
    const mounted = () => pens.filter(({ path }) => machine.mounts.has(path))
    const fill = () => {
      for (const pen of pens) if (machine.mounts.has(pen.path)) pen.write()
    }
    let owed = false
    const write = () => {
      if (process.running()) return fill()
      // Its machine frozen, it stands still with it, and what it was about to write comes first at the thaw.
      if (owed) return
      owed = true
      process.clock.after(0, () => {
        owed = false
        fill()
      })
    }
    if (pens.length > 0) {
      write()
      process.onEnd(writers.add(write))
    }
    onTerm(() => process.clock.after(chance.between(100, 400), exit))
    // What had left the machine when it froze or lost its power still lands a moment later.
    const forget = machine.beforeStop(() => {
      if (!chance.yes(0.5)) return
      for (const pen of mounted()) world.after(chance.between(0.5, 5), pen.write)
    })
    process.onEnd(forget)
  }
}
