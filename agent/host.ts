// All that an agent gets from outside itself: the machine it runs on, or a simulated one.
import type { Places, StorageWord } from '../core/beat.ts'
import type { CleanUpStep } from '../core/clean-up.ts'
import type { Ms } from '../core/model.ts'
import type { ContainerSeen, LoopDevice, MountTable } from '../core/mounts.ts'
import type { Vitals } from '../core/vitals.ts'
import type { Clock } from '../edge/clock.ts'
import type { LinkDialer, Whispers } from '../edge/link.ts'
import type { Log } from '../edge/log.ts'
import type { WatchdogDevice } from './watchdog.ts'

export interface AgentHost {
  readonly clock: Clock
  chance(): number
  /** Bytes that nobody can guess. */
  secret(bytes: number): Uint8Array
  readonly log: Log
  readonly dialer: LinkDialer
  readonly whispers: Whispers
  readonly disk: Disk
  readonly watchdog: WatchdogDevice
  /** Text files of the host; a refusal is a value. Only these are read: boot id, pid 1's stat, uptime, product UUID,
   *  mountinfo, the token. Never a call that could touch a mount. */
  read(file: HostFile): Promise<string | undefined>
  /** Kubelet's folder, as it is set, in the words of the host's own mount table. Undefined: it cannot be told. */
  asMounted(kubeletRoot: string): Promise<string | undefined>
  /** Names in the kubelet's pods folder (pod uids), undefined when it cannot be read. */
  podFolders(): Promise<readonly string[] | undefined>
  /** Ends it at once. Undefined: it is over; else why it may not be. */
  stopContainer(container: ContainerSeen, span: Ms): Promise<string | undefined>
  /** Its processes stand still from now on. Undefined: they do; else why not. */
  freezeContainer(container: ContainerSeen): Promise<string | undefined>
  /** In the host's own mount namespace, by a child that may be left behind. Undefined: done; else why not. */
  endLeftover(step: Exclude<CleanUpStep, { readonly do: 'stop' }>, span: Ms): Promise<string | undefined>
  /** Folders for staging mounts that are empty and name nobody. Undefined: they cannot be read. */
  bareStagings(): Promise<readonly string[] | undefined>
  /** What the runtime has of pods, by its CRI socket. */
  containers(span: Ms): Promise<RuntimeAnswer>
  /** The mount tables of the other mount namespaces, each once. Undefined: they cannot be read. */
  mountTables(): Promise<readonly MountTable[] | undefined>
  /** Loop devices that have something behind them, and what. Undefined: they cannot be read. */
  loopDevices(): Promise<readonly LoopDevice[] | undefined>
  /** Text of the `vol_data.json` beside a CSI driver's staging mount, or beside a pod's own mount of its volume: never a look into a mount. */
  csiVolume(path: string): Promise<string | undefined>
  /** GET on loopback with a deadline: the kubelet's healthz. */
  kubeletHealth(span: Ms): Promise<'ok' | 'ill' | 'unknown'>
  /** Where kubelet and the runtime are found. Never a call that could touch a mount of a pod. */
  places(): Promise<Places>
  /** Whether the runtime answers the least of questions. */
  runtimeHealth(span: Ms): Promise<'ok' | 'ill' | 'unknown'>
  /** `tcp://host:port` lets us in, or the path is mounted and its file system answers a child. */
  reachStorage(target: string, span: Ms): Promise<StorageWord>
  /** By a child that may be left behind. Undefined: it did not tell, or not in time. */
  vitals(span: Ms): Promise<Vitals | undefined>
  /** To the container runtime's NRI socket. Rejects with a sentence where nothing listens within the span. */
  connectNri(span: Ms): Promise<ByteStream>
  /** GET of the API server, as the agent's own account. */
  askApi(path: string, span: Ms): Promise<ApiAnswer>
  /** Addresses of replicas by name (the headless Service). */
  resolveReplicas(): Promise<readonly string[]>
}

/** `failed`: it could not be asked, or did not answer whole and within the span. */
export type RuntimeAnswer = readonly ContainerSeen[] | { readonly failed: string }

/** `failed`: nothing whole came, or nobody is there to be asked. */
export type ApiAnswer = { readonly status: number; readonly body: string } | { readonly failed: string }

/** Bytes in order, both ways, to a peer on this machine. */
export interface ByteStream {
  /** Never throws; what is sent on a closed stream is lost. */
  send(bytes: Uint8Array): void
  /** Called once, before anything can arrive (synchronously after the stream was handed over). */
  listen(ears: { bytes(bytes: Uint8Array): void; closed(reason: string): void }): void
  /** Idempotent. */
  close(): void
}

export type HostFile = 'panic' | 'cpuinfo' | 'pressure-cpu' | 'pressure-memory' | 'pressure-io' | 'boot-id' | 'pid-1-stat' | 'uptime' | 'machine' | 'mounts' | 'token'

/** The agent's own few remembered facts. Writing is whole or not at all. */
export interface Disk {
  load(name: string): Promise<string | undefined>
  save(name: string, text: string): Promise<void>
}
