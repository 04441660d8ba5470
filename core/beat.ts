// What an agent and a replica say to each other, and how it looks on the wire. Pure: links carry the frames.
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
  /** The answer to a challenge: the nonce, sealed with the key this link agreed on. */
  | { readonly say: 'answer'; readonly nonce: string; readonly boot: Boot; readonly seal: string }
  /** The witness's word. `seal` is what the node itself handed out for the nonce; without it the word is bare. */
  | { readonly say: 'witness'; readonly id: number; readonly word: 'hears' | 'deaf'; readonly boot?: Boot; readonly seal?: string }

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
  /** Where peers may whisper to this agent. */
  readonly whisperPort: number
}

export interface Beat {
  readonly say: 'beat'
  readonly count: number
  readonly kubelet: 'ok' | 'ill' | 'unknown'
}

/** Replica → agent. */
export type ReplicaWord =
  /** The hello was believed. `key` seals answers to challenges and whispers; `pods` below need it. */
  | { readonly say: 'welcome'; readonly node: NodeName; readonly replica: string; readonly key: string }
  | Permit
  | { readonly say: 'challenge'; readonly nonce: string }
  /** Ask the node behind `address` whether it hears you, with this nonce. */
  | { readonly say: 'ask'; readonly id: number; readonly node: NodeName; readonly address: string; readonly nonce: string }
  /** The pods that belong on this node (uids), so that what else is found is a leftover; and a wish to be told at once. */
  | { readonly say: 'check'; readonly pods: readonly string[] }

export interface Permit {
  readonly say: 'permit'
  readonly count: number
  readonly leads: boolean
  readonly span: Ms
  /** Addresses of all replicas, to be remembered on disk. */
  readonly replicas: readonly string[]
}
