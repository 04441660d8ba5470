// A replica's host on a machine: the process's own clock and chance, TLS links, fence programs as processes, probes as sockets.
import { randomBytes } from 'node:crypto'
import { machineClock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import { listenTls, tlsDialer, type Serving, type TlsListener } from '../edge/tls-link.ts'
import type { CoordinatorHost } from './host.ts'
import { listenKdump } from './kdump.ts'
import { probePort } from './probe.ts'
import { machinePrograms } from './programs.ts'
import type { Transport } from './transport.ts'

export interface MachineHostOptions {
  readonly log: Log
  readonly transport: Transport
  /** Where agents and other replicas reach this one: an address of its own, and the port. */
  readonly address: string
  readonly port: number
  /** What it binds to; every interface in a pod, loopback in tests. */
  readonly bind: string
  /** UDP, of crash kernels' words; 0 means that nobody listens. */
  readonly kdumpPort: number
  readonly serving: Serving
  authorities(): Promise<string>
  readonly fenceAgents: readonly string[]
}

export interface MachineHost extends CoordinatorHost {
  /** A renewed certificate, for every handshake from now on. */
  renew(serving: Serving): void
  /** Ends every program that still runs. */
  close(): Promise<void>
}

/** It asks nobody, and there may be many at once on a machine that has just booted. */
const describeWithin = 10_000

export function machineHost(options: MachineHostOptions): MachineHost {
  const clock = machineClock
  const programs = machinePrograms({ folders: options.fenceAgents, clock })
  let serving = options.serving
  let listener: TlsListener | undefined
  return {
    clock, log: options.log, transport: options.transport, programs,
    chance: Math.random,
    async describe(agent) {
      const { exitCode, stdout } = await programs.run({ agent, stdin: 'action=metadata\n', environment: {}, within: describeWithin })
      return exitCode === undefined ? undefined : exitCode === 0 ? stdout : ''
    },
    secret: (bytes) => randomBytes(bytes),
    dialer: tlsDialer({ clock, authorities: options.authorities }),
    async listen(accept) {
      const opened = await listenTls({ clock, host: options.bind, port: options.port, serving }, accept)
      listener = opened
      const port = opened.address.slice(opened.address.lastIndexOf(':') + 1)
      return { address: `${options.address}:${port}`, close: () => opened.close() }
    },
    ...(options.kdumpPort === 0 ? {} : { kdump: (heard) => listenKdump({ bind: options.bind, port: options.kdumpPort }, heard) }),
    probe: (address, port, span) => probePort(clock, address, port, span),
    renew(next) {
      serving = next
      listener?.renew(next)
    },
    close: () => programs.close(),
  }
}
