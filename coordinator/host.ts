// All that a replica gets from outside itself. On a machine: sockets, processes, TLS (coordinator/machine-host.ts). In the
// simulated world: the world's own. The coordinator's code is the same, unmodified, on both.
import type { AgentEnd } from '../core/contract.ts'
import type { Ms, ProbeWord } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Link, LinkDialer, LinkListener } from '../edge/link.ts'
import type { Log } from '../edge/log.ts'
import type { Transport } from './transport.ts'

export interface CoordinatorHost {
  readonly clock: Clock
  /** In [0, 1): jitter and nonces' seeds, never a decision. */
  chance(): number
  /** Unguessable bytes for keys and nonces. */
  secret(bytes: number): Uint8Array
  readonly log: Log
  readonly transport: Transport
  /** To the other replicas. */
  readonly dialer: LinkDialer
  /** Agents and other replicas dial this. */
  listen(accept: (link: Link) => void): Promise<LinkListener>
  readonly programs: Programs
  /** What the program of this name prints when it is asked what it is; undefined: it did not come to say. Absent: none is asked. */
  describe?(agent: string): Promise<string | undefined>
  /** Hears crash kernels, and from which address. Absent: nobody could. */
  kdump?(heard: (from: string) => void): Promise<{ close(): Promise<void> }>
  /** TCP and TLS to the kubelet's port. */
  probe(address: string, port: number, span: Ms): Promise<ProbeWord>
}

/** Fence agents: found by name in the allow-listed folders, input on stdin, ended as a whole group. */
export interface Programs {
  /** Resolves once nothing of it runs any more, or its group could not be ended within the grace: then `gone` is false. */
  run(program: ProgramRun): Promise<ProgramEnd>
}

export interface ProgramRun {
  readonly agent: string
  /** Written whole, then closed. Secrets travel here only. */
  readonly stdin: string
  /** Each is written to a file that nobody else can read and that is gone with the run, and the program is told its path under this name. */
  readonly files?: Readonly<Record<string, string>>
  readonly environment: Readonly<Record<string, string>>
  readonly within: Ms
  /** Ends the group at once (the lease was lost, or the incident aborted). */
  readonly signal?: AbortSignal
}

/** What the core reads the end of a run from. */
export type ProgramEnd = AgentEnd
