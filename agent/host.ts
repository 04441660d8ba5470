// All that an agent gets from outside itself: the machine it runs on, or a simulated one.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { LinkDialer, Whispers } from '../edge/link.ts'
import type { Log } from '../edge/log.ts'

export interface AgentHost {
  readonly clock: Clock
  chance(): number
  readonly log: Log
  readonly dialer: LinkDialer
  readonly whispers: Whispers
  readonly disk: Disk
  /** Text files of the host; a refusal is a value. Only these are read: boot id, pid 1's stat, uptime, product UUID,
   *  mountinfo, the token. Never a call that could touch a mount. */
  read(file: HostFile): Promise<string | undefined>
  /** Names in the kubelet's pods folder (pod uids), undefined when it cannot be read. */
  podFolders(): Promise<readonly string[] | undefined>
  /** GET on loopback with a deadline: the kubelet's healthz. */
  kubeletHealth(span: Ms): Promise<'ok' | 'ill' | 'unknown'>
  /** Addresses of replicas by name (the headless Service). */
  resolveReplicas(): Promise<readonly string[]>
}

export type HostFile = 'boot-id' | 'pid-1-stat' | 'uptime' | 'machine' | 'mounts' | 'token'

/** The agent's own few remembered facts. Writing is whole or not at all. */
export interface Disk {
  load(name: string): Promise<string | undefined>
  save(name: string, text: string): Promise<void>
}
