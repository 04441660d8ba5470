// What the core sees: one snapshot of the cluster as this replica knows it, with the age of each word on it. Everything is
// plain data. Instants are this replica's own monotonic clock; wall time stands only in records, as text, for people.
import type { Incident } from './incident.ts'
import type { Before, CleanReport, GateState, Goodbye, PermitState, Places, Pressure, StorageWord } from './beat.ts'
import type { Pause } from './policy.ts'
import type { RecordWrite } from './record-write.ts'
import type { Remedy } from './remedy.ts'
import type { DrillTurn } from './spare.ts'
import type { Strain, Vitals } from './vitals.ts'
import type { NodeBoot } from './beat.ts'
import type { Membership, WatchdogKept, WatchdogSaid } from './watchdog.ts'

export type Ms = number
export type NodeName = string

/** One boot of one machine: the kernel's boot id and the start of the machine's pid 1, `id/start`, because machines in
 *  containers share the kernel's boot id. Where only kubelet's word is known, `id` alone. Compare with `sameBoot`. */
export type Boot = string

export function bootOf(id: string, start: string): Boot {
  return `${id}/${start}`
}

/** An agent tells both halves: a boot of one half is known by kubelet's word alone. */
export function isKubeletsWord(boot: Boot): boolean {
  return !boot.includes('/')
}

export function sameBoot(one: Boot, other: Boot): boolean {
  if (one === other) return true
  const [id, start] = one.split('/')
  const [otherId, otherStart] = other.split('/')
  return id === otherId && (start === undefined || otherStart === undefined || start === otherStart)
}

export interface Observed {
  readonly self: Self
  readonly nodes: ReadonlyMap<NodeName, NodeSeen>
  /** Open incidents, and Final ones as long as they are kept, by NodeFence name. */
  readonly incidents: ReadonlyMap<string, Incident>
  /** Those in force. Undefined: they were not read yet. */
  readonly remedies?: readonly Remedy[]
}

export interface Self {
  readonly replica: string
  /** The lease's transitions while this replica leads. Undefined: it does not lead, and nothing is decided. */
  readonly term?: number | undefined
  readonly ledSince?: Ms
  /** The latest instant at which every watch the core relies on was known to be fresh. */
  readonly freshAt: Ms
  /** The latest instant at which the API server answered anything. */
  readonly apiAnsweredAt: Ms
  /** End of this process's last stall; every silence begins anew there. */
  readonly awakeSince: Ms
  /** Nothing has happened since all was looked over, and that was just now: what no instant hangs on is not looked at again yet. */
  readonly calm?: boolean
  /** Other replicas this one has a link to. */
  readonly replicas: readonly string[]
  /** Pods that may be freed now without passing the rate. */
  readonly podBudget: number
  /** Fence programs that audits may begin now. */
  readonly auditBudget: number
  /** NodeRecords that may be written now for what nobody waits for. */
  readonly recordBudget: number
  /** When this replica, leading, began the audit's present or latest turn: each path that was not asked since is asked. */
  readonly turnAt?: Ms
  /** Drills that are due by a policy, and for which nobody was chosen yet. */
  readonly drillTurns?: readonly DrillTurn[]
  /** CSI drivers that say of themselves that they refuse to detach what is in use. */
  readonly safeDrivers: readonly string[]
  /** Whether the API server is of a version that has the node condition MaintenanceInProgress. */
  readonly knowsMaintenance?: boolean
  /** The cluster-wide pause, with its reason. */
  readonly pause?: Pause | undefined
}

export interface NodeSeen {
  readonly name: NodeName
  readonly uid: string
  /** systemUUID. */
  readonly machine: string
  /** Another Node that bears the same one, as boards with a default and cloned machines do: what tells it tells neither. */
  readonly twin?: NodeName | undefined
  /** nodeInfo.bootID, the kernel's id alone. */
  readonly bootId: string
  readonly address: string
  /** All IP addresses that its Node names, in one order; undefined where those are more than a machine has. */
  readonly addresses?: readonly string[] | undefined
  readonly zone: string
  readonly controlPlane: boolean
  readonly labels: Readonly<Record<string, string>>
  /** Ours, and those by which others say what they do. */
  readonly annotations: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
  readonly resourceVersion: string
  /** Object gone from the API while an incident is open. A leader that began after that knows the node by its incident alone. */
  readonly gone?: boolean | undefined
  readonly ready: ReadySeen
  /** Its other conditions that are True, as was last said, by their types. Undefined: none is. */
  readonly conditions?: ReadonlyMap<string, ConditionSeen> | undefined
  /** Who says by MaintenanceInProgress that it is being worked on. */
  readonly maintenance?: 'ours' | 'others' | undefined
  /** When the Node object was last asked for live: what it says of boot, Ready and taints is from then or later. */
  readonly readAt?: Ms | undefined
  /** The agent's word, as this replica itself heard it. Undefined: never heard by this replica. */
  readonly beat?: BeatSeen | undefined
  /** When this replica first saw the node. */
  readonly seenAt: Ms
  readonly lease?: LeaseSeen | undefined
  readonly probe?: ProbeSeen | undefined
  readonly witnesses: readonly WitnessSeen[]
  /** What this replica heard from its address as a crash kernel's word. */
  readonly dump?: DumpSeen | undefined
  readonly record?: NodeRecord | undefined
  /** When this process wrote it last, and whether that was refused. */
  readonly recordWrite?: RecordWrite | undefined
  /** What this process wrote of it, and the API server did not keep as it was: one whose kinds are older drops the fields that it does not know. */
  readonly unkept?: Unkept | undefined
  /** Whom this replica would name to it as members, where its watchdog is wanted. */
  readonly members?: Omit<Membership, 'epoch'> | undefined
  /** So long what the record says of its paths holds, by the audit's turns. Undefined: no turn came to its end yet. */
  readonly auditedUntil?: Ms | undefined
  /** The newest readings of each method, oldest first, this process's own. */
  readonly readings: readonly Reading[]
  /** Methods configured for the node, level by level, those that isolate first; with the faults that keep a path out. */
  readonly path: FencePath
  readonly pods?: PodsSeen | undefined
  /** What the API server said when it refused to list them, this process's own. Undefined: it did not, when it was last asked. */
  readonly podsRefused?: string | undefined
  /** What became of the evictions that were asked for, by the pod's uid, this process's own. */
  readonly evictions?: ReadonlyMap<string, EvictionSeen> | undefined
  readonly volumes: readonly VolumeSeen[]
  /** Names of the VolumeAttachments whose volumes kubelet last said it uses (`status.volumesInUse`). */
  readonly inUse: ReadonlySet<string>
  /** Thresholds of remedies that it crosses, each since when, as this process heard it. */
  readonly ailing?: ReadonlyMap<string, Ms> | undefined
  /** Looks and deeds under way, so that nothing is asked twice at once: the action's key. */
  readonly busy: ReadonlySet<string>
  /** Times since when something local was first seen, by key, for records written by an earlier leader. */
  readonly firstSeen: ReadonlyMap<string, Ms>
}

/** A row of a replica tells some fields by asking elsewhere, and a copy made by spreading has none of those: so each copy is made here. */
export function seenAs(node: NodeSeen, changes: Partial<NodeSeen>): NodeSeen {
  return { ...node, beat: node.beat, auditedUntil: node.auditedUntil, ...changes }
}

/** Of `firstSeen`: when the boot that its kubelet tells of was first seen here. */
export const kubeletsBootKey = 'kubelet\'s boot'

export interface Unkept {
  readonly at: Ms
  /** The record that was wanted, and the version that came of it. */
  readonly record?: { readonly wanted: Omit<NodeRecord, 'resourceVersion'>; readonly version: string }
  /** The incident on whose record two proofs could not be joined. */
  readonly joined?: string
  /** The incident on whose record a crash kernel's word does not stand. */
  readonly dump?: string
  /** The incident on whose record it does not stand which paths were off at first. */
  readonly offAtFirst?: string
}

/** So long what was not kept is not written again: by then somebody may have applied the kinds of this version. */
const unkeptFor: Ms = 600_000

export function unkeptOf({ unkept }: Pick<NodeSeen, 'unkept'>, now: Ms): Partial<Unkept> {
  return unkept !== undefined && now - unkept.at < unkeptFor ? unkept : {}
}

/** Of `firstSeen`: when the Node object was first seen gone. */
export const goneKey = 'gone'

export interface Taint {
  readonly key: string
  readonly value?: string
  readonly effect: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute'
}

export interface ReadySeen {
  readonly status: 'True' | 'False' | 'Unknown'
  /** When this replica saw kubelet post its latest status (a changed heartbeat time). */
  readonly postedAt: Ms
  /** When this replica saw the status change. */
  readonly since: Ms
  /** nodeInfo.bootID as it stood in that latest post. */
  readonly bootId: string
}

export interface ConditionSeen {
  readonly heartbeat: string
  /** When this replica saw it posted: first, or with another heartbeat. */
  readonly postedAt: Ms
  /** It stood there when this replica first saw its Node: nobody here knows since when. */
  readonly stood?: true
}

export interface BeatSeen extends Before {
  readonly boot: Boot
  /** First accepted beat of this boot on this replica. */
  readonly since: Ms
  /** When that boot began, by its uptime: not before, and later by no more than its hello took. Undefined: it was never told. */
  readonly bootedAt?: Ms
  /** Latest beat of any boot accepted from this node. */
  readonly at: Ms
  /** The address that the latest beat came from, as seen here. */
  readonly from?: string
  /** The latest silence of this boot that ended by itself, no goodbye before it. */
  readonly lapse?: { readonly from: Ms; readonly to: Ms }
  readonly kubelet: 'ok' | 'ill' | 'unknown'
  /** Undefined: its agent is of before there was a gate. */
  readonly gate?: GateState | undefined
  /** When that became another one. */
  readonly gateSince?: Ms
  /** Undefined: its agent cannot give up. */
  readonly permit?: PermitState
  readonly runtime?: 'ok' | 'ill' | 'unknown'
  readonly pressure?: Pressure
  readonly storage?: StorageWord
  readonly vitals?: Vitals | undefined
  /** Undefined: its agent has told of none in this boot. */
  readonly watchdog?: WatchdogSaid
  /** As a member of other nodes: what its agent permits no more, each with when it first said so. */
  readonly revokes?: readonly (NodeBoot & { readonly at: Ms })[] | undefined
  readonly places?: Places
  readonly clean?: CleanSeen
  readonly goodbye?: { readonly at: Ms; readonly why: Goodbye } | undefined
  /** The latest challenge that was answered: when it was issued, and the boot that sealed the answer. */
  readonly answered?: { readonly issuedAt: Ms; readonly boot: Boot }
}

export interface CleanSeen {
  readonly at: Ms
  /** When the pods were listed by which it was judged; -Infinity of a list that is not the latest told here. Undefined: its agent does not say which it answers. */
  readonly asOf?: Ms
  /** Since when each word of it in this boot was another than clean. */
  readonly uncleanSince?: Ms
  readonly report: CleanReport
}

/** Read live, never from a cache. */
export interface LeaseSeen {
  readonly askedAt: Ms
  readonly readAt: Ms
  readonly renewTime: string
  /** When a live read first showed this renewTime: a Lease that has not moved since then is evidence. */
  readonly unmovedSince: Ms
  /** Whether an earlier read showed another renewTime: the Lease was seen to move at `unmovedSince`. */
  readonly moved: boolean
  /** When that earlier read was asked: somewhere between it and `unmovedSince` the Lease moved. */
  readonly movedAfter?: Ms
  /** The same of its latest moves, three at most, oldest first. */
  readonly moves?: readonly Ms[]
}

/** The kubelet port. `answered` is any byte or a TLS handshake, `open` an accepted connection on which nothing is said,
 *  `refused` an RST; all three mean that a kernel runs there. */
export interface ProbeSeen {
  readonly askedAt: Ms
  readonly answeredAt: Ms
  readonly word: ProbeWord
  /** The latest instant at which the port was anything but silent. */
  readonly spokeAt?: Ms
  /** The latest at which it accepted or answered: no kernel does by itself. */
  readonly acceptedAt?: Ms
  /** Its first silence since the node's last beat: the first and the last question of it, and when the port had last spoken by then. */
  readonly fell?: { readonly at: Ms; readonly until: Ms; readonly spokeAt: Ms }
  /** When the first of the questions was asked that were not `answered` since one was. */
  readonly unansweredSince?: Ms
}
export type ProbeWord = 'answered' | 'open' | 'refused' | 'silent'

/** A peer agent, or another replica. `hears` counts only with the node's own seal (`proven`). */
export interface WitnessSeen {
  readonly witness: string
  readonly kind: 'agent' | 'replica'
  readonly askedAt: Ms
  readonly answeredAt: Ms
  readonly word: 'hears' | 'deaf'
  readonly proven: boolean
  /** The boot that made the seal. */
  readonly boot?: Boot
}

/** `since`: the first one since it last beat. `at`: the latest. */
export interface DumpSeen {
  readonly since: Ms
  readonly at: Ms
  readonly from: string
}

export type PowerState = 'on' | 'off' | 'unknown'

/** One run of `status` on one method. */
export interface Reading {
  readonly method: string
  readonly state: PowerState
  readonly startedAt: Ms
  readonly endedAt: Ms
  readonly evidence: string
  readonly digest: string
  /** The machine's UUID as the device gives it, if it does. */
  readonly machine?: string
  /** The UUID of its controller, which may be the machine's. */
  readonly controller?: string
  /** Its addresses, likewise. */
  readonly addresses?: readonly string[]
}

export interface FencePath {
  readonly levels: readonly (readonly Method[])[]
  /** Sentences: why the configuration is not (wholly) in force. */
  readonly faults: readonly string[]
  /** Once it is back its operator wants it cordoned: somebody is to look at it first. */
  readonly cordons?: true
  /** So long its crash kernel may write a dump before its power goes. Undefined: nobody waits for one. */
  readonly dumpsWithin?: Ms
  /** So long after its last beat its crash kernel may come up and announce that. Undefined: its power does not wait for the word. */
  readonly announcesWithin?: Ms
}

export interface Method {
  readonly name: string
  readonly agent: string
  /** What takes one run at a time: a strip or a chassis by its address, one machine of a cloud. */
  readonly device: string
  /** All that a wrong plug of this method could strike, where that is more than the device: the other machines of its cloud. */
  readonly reach?: string
  /** What it names is the Node's own claim (spec.providerID): nothing is ordered by it until the cloud's record was seen to bear the
   *  address of the node's beats. */
  readonly claimed?: true
  /** It cuts the machine off from something, and leaves it running. These are the CSI drivers whose volumes the machine cannot write once
   *  it is off, as the operator knows it. */
  readonly isolates?: readonly string[]
  /** Its *off* ends the machine for good: it is tried by nobody, and nothing is switched on after it. */
  readonly ends?: true
  /** Its place among what is given back: the lowest first, as the operator wrote it. */
  readonly backAt?: number
  readonly digest: string
  /** How long one order may take, and one status. */
  readonly orderWithin: Ms
  readonly statusWithin: Ms
  /** How long an order that was sent may still land after its program ended. */
  readonly late: Ms
  /** How long after an order that ended well its device may take to be read off; an *on* until it first says off is what it said before.
   *  Undefined: an *on* is a word against the order at once. */
  readonly verifyWithin?: Ms
}

/** What outlives a leader (kind NodeRecord). */
export interface NodeRecord {
  readonly resourceVersion: string
  readonly nodeUid: string
  readonly boot: Boot
  readonly machine: string
  /** Those of the machine, taken while it was well. */
  readonly addresses?: readonly string[]
  readonly paths: readonly PathAudit[]
  readonly probe?: { readonly boot: Boot; readonly answered: boolean; readonly at: string }
  /** Whether the runtime asks the node's gate. Undefined: its agent is of before there was one. */
  readonly gate?: GateKept
  /** Where its agent found kubelet and the runtime. */
  readonly places?: Places
  /** Its vitals that are beyond their limits. Undefined: none was ever told. */
  readonly strains?: readonly Strain[]
  readonly watchdog?: WatchdogKept
}

/** `off`: the operator wants none there. `absent`: it is wanted, and the runtime does not ask. */
export type GateKept = 'asks' | 'absent' | 'off'

export interface PathAudit {
  readonly method: string
  readonly digest: string
  readonly boot: Boot
  /** `marked`: a proof made by this path was shown false, or an off by it struck another machine (`identity` is a mismatch then). */
  readonly state: 'verified' | 'mismatch' | 'unreachable' | 'marked'
  readonly identity: 'proven' | 'unproven' | 'mismatch'
  readonly at: string
  readonly evidence: string
  /** A drill, or a fence, proved it. */
  readonly drill?: Drill
}

/** Holds for this machine, as long as everything that was off together stands in one level still. */
export interface Drill {
  readonly at: string
  readonly machine: string
  /** Of every method of the level that was switched then. */
  readonly digests: readonly string[]
}

export interface PodsSeen {
  readonly askedAt: Ms
  readonly listedAt: Ms
  readonly items: readonly PodSeen[]
}

export interface PodSeen {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly owner: 'StatefulSet' | 'ReplicaSet' | 'DaemonSet' | 'Job' | 'Node' | 'other' | 'none'
  readonly priority: number
  readonly terminating: boolean
  readonly phase: string
  readonly finalizers: readonly string[]
  /** The name of its folder on the node, where it is not its uid: of static pods. */
  readonly folder?: string
  readonly volumes: readonly PodVolume[]
  /** How long its node was given to end it. */
  readonly grace: Ms
  /** None of its containers is said to run. */
  readonly ended: boolean
  /** A volume without a claim that others may write too. */
  readonly beside?: string
  /** Whether it tolerates `holdfast.dev/force-eviction`. */
  readonly toleratesEviction: boolean
  /** Excused from clear: mirror pods, DaemonSet pods, ours. */
  readonly exempt?: string
  /** It tolerates our quarantine, and may start under it. */
  readonly tolerates?: true
}

export interface EvictionSeen {
  readonly askedAt: Ms
  /** Undefined: it was taken. `budget`: a disruption budget says no. */
  readonly refused?: { readonly by: 'budget' | 'server'; readonly says: string }
}

/** What one claim of a pod leads to. */
export interface PodVolume {
  /** `namespace/name`. */
  readonly claim: string
  /** `unread`: nobody could say just now. */
  readonly is: 'bound' | 'unbound' | 'unread'
  /** The PersistentVolume. */
  readonly volume: string
  /** Its CSI driver, or the one that it was migrated to. Empty: none. */
  readonly driver: string
  readonly provisioner: string
  /** ReadWriteMany: others may write beside it. */
  readonly shared: boolean
  /** It can be used on this node alone. */
  readonly local: boolean
}

/** Of `firstSeen`: when `holdfast.dev/force-eviction` was first seen on the node, this time. -Infinity: it stood there when the node was first seen. */
export const evictionKey = 'force-eviction'

/** Of `firstSeen`: when an incident of the node first had it ordered off. */
export const fencedKey = (incident: string): string => `fenced ${incident}`

/** When a remedy first laid hands on its node: it asked its pods to go, or ordered it off. */
export const remediedKey = (incident: string): string => `remedied ${incident}`

/** Of `firstSeen`: since when pods of the node are asked to go in good order. */
export const evictedKey = (incident: string): string => `evicted ${incident}`

/** Of `firstSeen`: when a pod was first listed as terminating. */
export const terminatingKey = (uid: string): string => `terminating ${uid}`

/** A VolumeAttachment of the node. */
export interface VolumeSeen {
  readonly attachment: string
  readonly uid: string
  readonly driver: string
  readonly volume: string
  readonly attached: boolean
  readonly deleting: boolean
  readonly error?: string
}
