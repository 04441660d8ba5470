// Where coordinator replicas run: machines of their own, beside the nodes, each a host on the network and a process that can be
// killed, paused and started again. What a replica finds there is coordinator/host.ts, and a few words of its deployment.
import type { CoordinatorHost } from '../../coordinator/host.ts'
import type { Transport } from '../../coordinator/transport.ts'
import type { Ms } from '../../core/model.ts'
import type { Log } from '../../edge/log.ts'
import type { Chance } from '../chance.ts'
import type { PowerDevice } from '../device.ts'
import { simulatedDialer, simulatedListener } from '../links.ts'
import type { Host, Network } from '../network.ts'
import { startProcess, type Process } from '../process.ts'
import { simulatedPrograms } from '../programs.ts'
import type { Truth } from '../truth.ts'
import { mortal, type Doom, type Mortal } from './doom.ts'

/** What a replica's deployment tells it. */
export interface ReplicaPlace {
  readonly number: number
  readonly name: string
  /** Another one after each start. */
  readonly identity: string
  readonly process: Process
  /** Tells all replicas' addresses, this one's with them, now and at each change, until the answer is called. */
  replicas(own: string, changed: (addresses: readonly string[]) => void): () => void
}

/** Starts the product's replica. The answer ends it in good order. */
export type StartReplica = (host: CoordinatorHost, place: ReplicaPlace) => Promise<{ stop(): Promise<void> }>

export interface Replicas {
  readonly running: ReadonlyMap<number, RunningReplica>
  start(number: number): void
  /** At once, as by SIGKILL. */
  kill(number: number): void
  /** In good order, as by SIGTERM. */
  stop(number: number): void
  pause(number: number, span: Ms, clocks: 'standing' | 'running'): void
  /** It dies when that comes. The answer calls it off. */
  doom(number: number, doom: Doom): () => void
  /** A crash kernel's word, by UDP, to every replica. */
  announce(from: Host): void
  addresses(): readonly string[]
  host(number: number): Host
}

export interface RunningReplica {
  readonly process: Process
  readonly identity: string
  readonly mortal: Mortal
  stop: (() => Promise<void>) | undefined
  /** Whoever of it hears crash kernels. */
  dumpEar?: (from: string) => void
}

export interface ReplicaGround {
  readonly network: Network
  readonly chance: Chance
  readonly truth: Truth
  readonly devices: ReadonlyMap<string, PowerDevice>
  readonly startReplica: StartReplica
  transport(host: Host, process: Process): Transport
  log(who: string): Log
}

const replicaPort = 7_443

export function createReplicas(ground: ReplicaGround, count: number): Replicas {
  const { network, truth } = ground
  const running = new Map<number, RunningReplica>()
  const known = new Map<number, string>()
  const ears = new Set<() => void>()
  const hosts = Array.from({ length: count }, (_, number) => network.addHost(nameOf(number), `10.1.0.${number + 10}`))
  let starts = 0

  const host = (number: number) => {
    const found = hosts[number]
    if (found === undefined) throw new Error(`there is no replica ${number}`)
    return found
  }
  const addresses = () => [...known.entries()].toSorted(([one], [other]) => one - other).map(([, address]) => address)

  return {
    running, host, addresses,
    start(number) {
      if (running.has(number)) return
      const at = host(number)
      const identity = `${nameOf(number)}-${++starts}`
      const process = startProcess(network.clock, identity)
      const replica: RunningReplica = {
        process, identity, stop: undefined,
        mortal: mortal(network.clock, process, (doom) => {
          if (!process.alive()) return
          truth.note('replica dies at an await', { replica: identity, ...doom })
          process.kill()
        }),
      }
      running.set(number, replica)
      process.onEnd(() => {
        if (running.get(number) === replica) running.delete(number)
      })
      truth.note('replica starts', { replica: identity })
      const place: ReplicaPlace = {
        number, name: nameOf(number), identity, process,
        replicas(own, changed) {
          known.set(number, own)
          const tell = () => process.deliver(() => changed(addresses()))
          ears.add(tell)
          process.onEnd(() => ears.delete(tell))
          for (const ear of ears) ear()
          return () => ears.delete(tell)
        },
      }
      ground.startReplica(hostOf(at, replica), place).then((started) => { replica.stop = () => started.stop() }, (error: unknown) => {
        // What keeps a replica from starting is a finding of the world, not an end of it.
        truth.note('replica failed to start', { replica: identity, error: String(error) })
        process.kill()
      })
    },
    kill(number) {
      const replica = running.get(number)
      if (replica === undefined) return
      truth.note('replica killed', { replica: replica.identity })
      replica.process.kill()
    },
    stop(number) {
      const replica = running.get(number)
      if (replica === undefined) return
      truth.note('replica stops', { replica: replica.identity })
      void (replica.stop?.() ?? Promise.resolve()).then(() => replica.process.kill())
    },
    pause(number, span, clocks) {
      const replica = running.get(number)
      if (replica === undefined) return
      truth.note('replica paused', { replica: replica.identity, span, clocks })
      replica.process.pause('lever', clocks)
      network.clock.after(span, () => {
        if (!replica.process.alive()) return
        truth.note('replica goes on', { replica: replica.identity })
        replica.process.resume('lever')
      })
    },
    announce(from) {
      for (const [number, { process, identity, dumpEar }] of running) {
        if (network.reach(from, host(number), 'kdump') !== 'open' || network.chance.yes(network.weather.loss)) continue
        network.clock.after(network.delay(), () => process.deliver(() => {
          truth.note('crash kernel heard', { node: from.name, replica: identity })
          dumpEar?.(from.address)
        }))
      }
    },
    doom: (number, doom) => running.get(number)?.mortal.doom(doom) ?? (() => undefined),
  }

  function hostOf(at: Host, replica: RunningReplica): CoordinatorHost {
    const { process, identity, mortal: own } = replica
    const chance = ground.chance.fork(identity)
    const secrets = chance.fork('secrets')
    return {
      clock: process.clock,
      chance: () => chance.next(),
      secret: (bytes) => secrets.bytes(bytes),
      log: ground.log(identity),
      transport: own.transport(ground.transport(at, process)),
      dialer: simulatedDialer(network, at, process),
      listen: async (accept) => simulatedListener(at, process, accept, replicaPort),
      programs: own.programs(simulatedPrograms(network, at, process, ground.devices, (what, facts) => truth.note(what, facts))),
      probe: (address, port, span) => process.hold(network.probe(at, address, port, span)),
      kdump: async (heard) => {
        replica.dumpEar = heard
        return { close: async () => void delete replica.dumpEar }
      },
    }
  }
}

function nameOf(number: number): string {
  return `replica-${number}`
}
