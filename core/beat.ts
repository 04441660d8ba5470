// What an agent and a replica say to each other, and two replicas. Pure: how a word looks on the wire is core/frame.ts,
// how frames travel is edge/link.ts.
import type { Boot, Ms, NodeName } from './model.ts'

export type Goodbye = 'restart' | 'reboot' | 'shutdown'

/** What the agent found on the host's own tables, and whether each question could be answered at all. */
export type CleanReport =
  | { readonly state: 'clean' }
  | { readonly state: 'dirty'; readonly leftovers: readonly Leftover[] }
  | { readonly state: 'unknown'; readonly reason: string }

export interface Leftover {
  readonly kind: 'mount' | 'staging' | 'pod directory' | 'block volume'
  readonly path: string
  readonly pod?: string
  readonly volume?: string
}

/** Agent → replica. */
export type AgentWord =
  | Hello
  | Beat
  | { readonly say: 'clean'; readonly report: CleanReport }
  | { readonly say: 'goodbye'; readonly why: Goodbye }
  | Answer
  | Witness

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

export interface Hello {
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
}

export interface Beat {
  readonly say: 'beat'
  readonly count: number
  readonly kubelet: 'ok' | 'ill' | 'unknown'
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

/** The pods that belong on this node, by the names of their folders, so that what else is found is a leftover; and a wish to be
 *  told at once. A long list comes in parts, of which only the last one wishes anything: half a list would accuse the other half. */
export interface Check {
  readonly say: 'check'
  readonly pods: readonly string[]
  /** The list goes on in the next one. */
  readonly more?: true
}

/** The hello was believed. `key` is this link's own: it seals answers to challenges and whispers on that replica's behalf. */
export interface Welcome {
  readonly say: 'welcome'
  /** The node that the token names; empty between replicas. */
  readonly node: NodeName
  readonly replica: string
  readonly key: string
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
