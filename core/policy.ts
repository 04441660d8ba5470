// What the operator wants (kind HoldfastPolicy), as plain data with every default filled in, and which policy a node has.
import type { Ms, NodeSeen } from './model.ts'
import type { GiveUp } from './self-stop.ts'

export interface Policy {
  readonly name: string
  readonly priority: number
  /** Empty selects every node. */
  readonly nodeLabels: Readonly<Record<string, string>>
  readonly mode: 'enforce' | 'dryRun'
  readonly profile: ProfileName
  readonly nodeDownPodDeletionPolicy: DeletionPolicy
  /** Free only what Kubernetes itself has begun to evict, once its grace is over. */
  readonly onlyTerminating: boolean
  /** Free only pods with a volume of one of these. Empty: whatever their volumes. */
  readonly provisioners: readonly string[]
  /** When the volumes of a terminating ReplicaSet pod are released that is itself left alone. */
  readonly volumeAttachmentRecovery: 'never' | 'wait' | 'immediate'
  /** CSI drivers that refuse to detach what is in use, beside those that say so of themselves. */
  readonly safeDetach: readonly string[]
  /** `selective`: never by the out-of-service taint, though every pod is freed. */
  readonly release: 'outOfService' | 'selective'
  /** A machine that answers while nothing on it works is fenced after this. 0: never. */
  readonly hungAfter: Ms
  /** Pods of a node that answers, and that a person wants fenced, are given so long to go in good order before it is ordered off. 0: no time. */
  readonly evictWithin: Ms
  /** Orders per method before the next level is tried. */
  readonly retries: number
  /** Once a machine was isolated, its power is left on for so long: it may come back. */
  readonly powerAfter: Ms
  /** After a round in which no level could be proven, the wait before the next one. */
  readonly restAfter: Ms
  /** Rounds after the first one. Undefined: as many as it takes. */
  readonly restarts?: number
  /** No new boot this long after *on*: order it again. */
  readonly bootWithin: Ms
  /** So long a node that is back, and heard, may take to become clean. */
  readonly returnPatience: Ms
  /** What becomes of it then. One whose proof was shown false is fenced in any case. */
  readonly afterPatience: 'wait' | 'fence'
  /** Who ends what is left over on a node under quarantine. */
  readonly cleanUp: 'never' | 'agent'
  readonly clearPatience: Ms
  readonly powerOnFoundOff: boolean
  readonly identity: 'warn' | 'require'
  /** The Secret with what its nodes' own instances are switched by. Undefined: what the cloud gives to whoever asks. */
  readonly cloudCredentials?: string
  /** Whether the cloud provider's taint of a machine that is shut down counts as a word, where its device agrees. */
  readonly cloudShutdown: 'ignore' | 'trust'
  readonly giveUp: GiveUp
  /** Whether a node counts as ended once its own watchdog must have reset it. */
  readonly selfFenced: 'refuse' | 'accept'
  /** Whether the word of a node's crash kernel counts as its end, behind a silence that speaks for it. */
  readonly kdump: 'refuse' | 'accept'
  /** Nothing is freed of a node that was ordered off before it had the time to give up. */
  readonly waitForPermit: boolean
  readonly brakes: Brakes
  /** Nodes that are cordoned and drained are drilled at these hours. Undefined: none is but by a person. */
  readonly drills?: Drills
  readonly pause?: Pause
}

export interface Pause {
  readonly reason: string
  readonly by: string
  /** Wall time, as the person wrote it. Absent: until a person takes it off. */
  readonly until?: string
}

/** A person named an hour, so this goes by the wall clock. An hour that cannot be read never comes: hands stay off. */
export function isPauseOver({ until }: Pause, wall: number): boolean {
  return until !== undefined && Date.parse(until) <= wall
}

export interface Drills {
  /** As cron has it. */
  readonly schedule: string
  /** What a drill has proven is to be proven again after this. */
  readonly again: Ms
}

export interface Brakes {
  /** More than this share silent within `stormWindow`, and at least two: no orders. */
  readonly stormPercent: number
  readonly stormWindow: Ms
  /** Nodes fenced at once; 0 means by size: one below ten nodes, then a tenth, at most five. */
  readonly concurrency: number
  /** Fenced so often within `repeatWindow`, a node stays off. 0: never. */
  readonly repeatLimit: number
  readonly repeatWindow: Ms
  /** Where the members of etcd are: one on each control-plane node, on the nodes that a label names (where none is named nobody knows), or
   *  on no node at all. */
  readonly etcd: 'byLabel' | 'stacked' | 'external'
  /** The condition by which a Node says that it cannot reach its storage. Undefined: none is asked for. */
  readonly skipIfStorageUnreachable?: string
  /** The condition by which the storage says of a Node that it hears it. Undefined: it is not asked. */
  readonly skipIfStorageHears?: string
}

export type DeletionPolicy = 'DoNothing' | 'DeleteStatefulSetPod' | 'DeleteDeploymentPod' | 'DeleteBothStatefulsetAndDeploymentPod' | 'DeleteAllPods'

export type ProfileName = 'fast' | 'balanced' | 'conservative'

export interface Profile {
  readonly suspectAfter: Ms
  readonly deadAfter: Ms
  readonly needsReadyLost: boolean
}

export const profiles: Readonly<Record<ProfileName, Profile>> = {
  fast: { suspectAfter: 1_500, deadAfter: 3_000, needsReadyLost: false },
  balanced: { suspectAfter: 3_000, deadAfter: 8_000, needsReadyLost: false },
  conservative: { suspectAfter: 10_000, deadAfter: 45_000, needsReadyLost: true },
}

export const defaultPolicy: Omit<Policy, 'name'> = {
  priority: 0,
  nodeLabels: {},
  mode: 'enforce',
  profile: 'balanced',
  nodeDownPodDeletionPolicy: 'DoNothing',
  onlyTerminating: false,
  provisioners: [],
  volumeAttachmentRecovery: 'never',
  release: 'outOfService',
  safeDetach: [],
  hungAfter: 120_000,
  evictWithin: 0,
  retries: 2,
  powerAfter: 0,
  restAfter: 60_000,
  bootWithin: 600_000,
  returnPatience: 600_000,
  afterPatience: 'wait',
  cleanUp: 'never',
  clearPatience: 600_000,
  powerOnFoundOff: false,
  identity: 'warn',
  cloudShutdown: 'ignore',
  giveUp: 'never',
  selfFenced: 'refuse',
  kdump: 'refuse',
  waitForPermit: false,
  brakes: { stormPercent: 40, stormWindow: 60_000, concurrency: 0, repeatLimit: 5, repeatWindow: 3_600_000, etcd: 'byLabel' },
}

export type Chosen =
  | { readonly policy: Policy }
  | { readonly none: 'unselected' }
  | { readonly none: 'policy-conflict'; readonly names: readonly string[] }

/** The selecting policy of the highest priority; two of the same highest priority are no policy at all. */
export function policyOf(node: Pick<NodeSeen, 'labels'>, policies: readonly Policy[]): Chosen {
  const selecting = policies.filter((policy) => selects(policy, node.labels))
  const highest = Math.max(...selecting.map((policy) => policy.priority))
  const [first, ...others] = selecting.filter((policy) => policy.priority === highest)
  if (first === undefined) return { none: 'unselected' }
  if (others.length > 0) return { none: 'policy-conflict', names: [first, ...others].map((policy) => policy.name).toSorted() }
  return { policy: first }
}

export function selects({ nodeLabels }: Pick<Policy, 'nodeLabels'>, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(nodeLabels).every(([key, value]) => labels[key] === value)
}
