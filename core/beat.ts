// What an agent and a replica say to each other, and two replicas. Pure: how a word looks on the wire is core/frame.ts,
// how frames travel is edge/link.ts.
import type { Boot, Ms, NodeName } from './model.ts'
import type { GiveUp, MemberSays } from './self-stop.ts'
import type { Vitals } from './vitals.ts'
import type { Membership, WatchdogSaid } from './watchdog.ts'

export type Goodbye = 'restart' | 'reboot' | 'shutdown'

/** What the agent found on the host's own tables, and whether each question could be answered at all. */
export type CleanReport =
  | { readonly state: 'clean' }
  | { readonly state: 'dirty'; readonly leftovers: readonly Leftover[] }
  | { readonly state: 'unknown'; readonly reason: string }

/** `container`: still known to the runtime, and not over. `leaked mount`: a copy that another mount namespace kept. `other`: of a kind
 *  that a newer agent knows and this replica does not; it is left over all the same. */
export interface Leftover {
  readonly kind: 'mount' | 'staging' | 'pod directory' | 'block volume' | 'container' | 'leaked mount' | 'loop device' | 'other'
  readonly path: string
  readonly pod?: string
  readonly volume?: string
  /** The CSI driver, or kubelet's own plugin, that made it. */
  readonly driver?: string
  /** When its agent first found it left over, by that machine's own wall clock: for people alone. An agent that is started again begins anew. */
  readonly since?: number
  /** What kept the agent from ending it. */
  readonly fault?: string
}

/** Agent → replica. */
export type AgentWord =
  | Hello
  | Beat
  | CleanWord
  | { readonly say: 'goodbye'; readonly why: Goodbye }
  | Answer
  | Witness
  /** Said again when anything of it changes. */
  | WatchdogWord
  | RevokesWord

/** `list`: which one it answers. Undefined: its agent is of before lists had names, or nobody has told it one. */
export interface CleanWord {
  readonly say: 'clean'
  readonly report: CleanReport
  readonly list?: string
}

/** A member's: these boots it permits no more. The answer to a leader's `revoked`. */
export interface RevokesWord extends BootList {
  readonly say: 'revokes'
}

/** Of a list that is longer than a frame: `more` on all of its parts but the last. */
interface BootList {
  readonly boots: readonly NodeBoot[]
  readonly more?: boolean
}

export interface WatchdogWord extends WatchdogSaid {
  readonly say: 'watchdog'
}

/** The answer to a challenge: the nonce and this boot, sealed with the key that the replica it was asked for once gave
 *  this agent. No seal: that replica never gave one. */
export interface Answer {
  readonly say: 'answer'
  readonly nonce: string
  readonly boot: Boot
  readonly seal?: string
}

/** The witness's word. `seal` is what the node itself handed out for the nonce; without it the word is bare. */
export interface Witness {
  readonly say: 'witness'
  readonly id: number
  readonly word: 'hears' | 'deaf'
  readonly boot?: Boot
  readonly seal?: string
}

export interface Hello extends Before {
  readonly say: 'hello'
  readonly version: 1
  /** The pod-bound, audience-bound service account token: it names the node, nothing else here does. */
  readonly token: string
  readonly agent: string
  readonly boot: Boot
  /** How long the machine has run. */
  readonly uptime: Ms
  readonly machine: string
  /** Where peers may whisper to this agent. 0: nowhere. */
  readonly whisperPort: number
  /** Undefined: its agent is of before it told of them. */
  readonly places?: Places
}

/** Where an agent found what it asks on its node, as the host calls it; empty where it is not there. */
export interface Places {
  /** Kubelet's folder. */
  readonly kubelet: string
  /** The sockets of the container runtime: for its own list (CRI), and for the gate (NRI). */
  readonly runtime: string
  readonly gate: string
}

/** What an agent tells of its machine's boot before this one. */
export interface Before {
  /** How it ended, by the mark that an agent leaves in an orderly shutdown. Undefined: no disk tells, or the agent is of before there was such
   *  a mark. */
  readonly before?: BootEnd
  /** Which boot that mark is of. Undefined: its agent is of before it told. */
  readonly beforeBoot?: Boot
}

export type BootEnd = 'shut down' | 'cut off'

/** What holds workloads on the node itself. `absent`: it is wanted, and the runtime does not ask us now, so nothing is held. */
export type GateState = 'off' | 'shut' | 'open' | 'absent'

/** Of self-stop. `off`: nobody asked for it; `gave up`: the node has stopped its workloads, and starts none; `resumed`: it had, and is permitted again,
 *  said until a leader has answered it. The word that permits may be there before any beat is heard again. */
export type PermitState = 'off' | 'running' | 'gave up' | 'resumed'

/** Shares of the last ten seconds in which something waited for it, in percent, as the kernel tells (PSI). */
export interface Pressure {
  readonly cpu: number
  readonly memory: number
  readonly io: number
}

/** Of what the agent was set to probe: `unreached`, if any of it was not reached twice in a row. */
export type StorageWord = 'reached' | 'unreached' | 'unknown'

export interface Beat {
  readonly say: 'beat'
  readonly count: number
  readonly kubelet: 'ok' | 'ill' | 'unknown'
  /** Undefined: an agent of before there was a gate. */
  readonly gate?: GateState
  /** Undefined: an agent that cannot give up. */
  readonly permit?: PermitState
  /** The container runtime's. Undefined: an agent that does not ask it. */
  readonly runtime?: 'ok' | 'ill' | 'unknown'
  /** Undefined: the kernel does not tell, or nobody asks it. */
  readonly pressure?: Pressure
  /** Undefined: nothing is set to be probed. */
  readonly storage?: StorageWord
  /** The latest ones, of some minutes ago. Undefined: nobody could tell. */
  readonly vitals?: Vitals
}

/** Replica → agent. */
export type ReplicaWord =
  | Welcome
  | Refused
  | Permit
  | Challenge
  /** Ask the node behind `address` whether it hears you, with this nonce. */
  | { readonly say: 'ask'; readonly id: number; readonly node: NodeName; readonly address: string; readonly nonce: string }
  | Check
  | GateWord
  | SelfStopWord
  | RevokedWord
  /** Of nodes whose member it is and that take sealed answers alone. Each is good whoever leads. */
  | { readonly say: 'keys'; readonly keys: readonly NodeKey[] }
  /** Your watchdog stands on record as unarmed, as you asked by this number: close it. */
  | { readonly say: 'disarm'; readonly boot: Boot; readonly disarm: number }

/** Whether workloads may start on the node in this boot: said by every replica to its agents after the first beat of a link, and whenever it
 *  changes. An agent goes by the word of those that lead. */
export interface GateWord {
  readonly say: 'gate'
  /** The boot that is meant: a word about the one before must not open this one. */
  readonly boot: Boot
  readonly accepted: boolean
  /** Where it is not accepted: why, as a sentence's end for people. */
  readonly reason: string
  /** Uids of pods that tolerate the quarantine. */
  readonly tolerating: readonly string[]
}

/** The pods that belong on this node, by the names of their folders, so that what else is found is a leftover; and a wish to be
 *  told at once. A long list comes in parts, of which only the last one wishes anything: half a list would accuse the other half. */
export interface Check {
  readonly say: 'check'
  /** This boot was fenced, and lives: what runs here of other pods may run elsewhere, and is stopped at once. Said by those that lead. */
  readonly stop?: true
  /** What is left over of other pods is to be ended. Said by those that lead. */
  readonly cleanUp?: true
  readonly pods: readonly string[]
  /** The whole list's name, by which its answer is told from that of another: no two bear one. */
  readonly list?: string
  /** The list goes on in the next one. */
  readonly more?: true
}

/** Whether the node is to give up when nobody permits it to run workloads any more, and whose word stands in for a leader's then. Told by
 *  every replica; an agent goes by those that lead. */
export interface SelfStopWord {
  readonly say: 'self-stop'
  /** As the API server calls it: members are asked by it, and no link may stand then. */
  readonly node: NodeName
  readonly giveUp: Exclude<GiveUp, 'watchdog'>
  /** Where they answer whispers; empty of one that nobody knows. */
  readonly members: readonly string[]
  /** It is to feed its watchdog, and stop that too (an agent of before there was such a thing stops without). Who the members are, each by its place in
   *  that list, and which replicas: nobody else's word counts then. */
  readonly membership?: Membership
  /** Its members seal their answers with it: nobody else is given it. */
  readonly key?: string
}

/** To a member: all boots that it must not permit. */
export interface RevokedWord extends BootList {
  readonly say: 'revoked'
  /** Of the leader that says so. Who has heard of a later one does not go by it. Undefined: an earlier version, or one that does not lead. */
  readonly term?: number
}

export interface NodeKey {
  readonly node: NodeName
  readonly key: string
}

export interface NodeBoot {
  readonly node: NodeName
  readonly boot: Boot
}

/** The hello was believed. `key` is this link's own: it seals answers to challenges and whispers on that replica's behalf. */
export interface Welcome {
  readonly say: 'welcome'
  /** The node that the token names; empty between replicas. */
  readonly node: NodeName
  readonly replica: string
  readonly key: string
  /** This replica says the gate's words. One that does not would keep a gate shut for ever. */
  readonly gates?: true
}

/** Said last, before the link is closed. */
export interface Refused {
  readonly say: 'refused'
  readonly reason: string
}

export interface Challenge {
  readonly say: 'challenge'
  readonly nonce: string
}

export interface Permit {
  readonly say: 'permit'
  readonly count: number
  readonly leads: boolean
  readonly span: Ms
  /** Addresses of all replicas, to be remembered on disk. */
  readonly replicas: readonly string[]
  /** What this replica says of the boot's permit. Undefined: it is of before there was self-stop, and permits whom it answers. */
  readonly says?: MemberSays
}

/** Replica → replica, in both directions over either's link. The first is the dialling one's, answered by `welcome`. */
export type PeerWord =
  | { readonly say: 'hello-replica'; readonly version: 1; readonly token: string; readonly replica: string }
  | Welcome
  | Refused
  /** Do you hear this node? */
  | { readonly say: 'hears'; readonly id: number; readonly node: NodeName }
  /** `boot`: of the node's own sealed answer to a challenge of this moment, which the replica has checked. */
  | { readonly say: 'heard'; readonly id: number; readonly word: 'hears' | 'deaf'; readonly boot?: Boot }

/** Agent → agent, outside any link: "are you there? answer for this replica". */
export interface Whisper {
  readonly replica: string
  readonly nonce: string
}

export interface WhisperAnswer {
  readonly nonce: string
  readonly boot: Boot
  readonly seal?: string
}

/** Agent → member, and back: "may this boot of mine go on?" Nobody but who heard the question knows its nonce. */
export interface MemberQuestion extends NodeBoot {
  readonly nonce: string
  /** Who is meant: at its address there may be another one by now. */
  readonly member?: NodeName
}

export interface MemberAnswer {
  readonly nonce: string
  readonly says: MemberSays
  /** One for each key that it was given for that node, of leaders one after the other. */
  readonly seals?: readonly string[]
}
