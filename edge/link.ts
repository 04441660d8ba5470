// A link: an ordered, encrypted, authenticated-by-certificate stream of frames between an agent and a replica, or
// between two replicas. What is inside a frame is core/beat.ts; how a link is made is its maker's business: TLS on a
// machine (edge/tls-link.ts), a queue in the simulated world.
import type { Ms } from '../core/model.ts'

export interface Link {
  /** The other end's address as seen here, for people and for the source-address check. */
  readonly remote: string
  /** Never throws; a frame sent on a closed link is lost, as it would be on the wire. `public`: others may read it on the way,
   *  though never change it; it costs less. */
  send(frame: Uint8Array, secrecy?: 'public'): void
  /** Called at most once, before any frame can arrive (synchronously after the link was handed over). */
  listen(ears: LinkEars): void
  /** Idempotent. `closed` is called on both ends, here with this reason. */
  close(reason: string): void
}

export interface LinkEars {
  frame(frame: Uint8Array): void
  closed(reason: string): void
}

export interface LinkDialer {
  /** Rejects with a sentence when there is no link within the span. */
  dial(address: string, span: Ms): Promise<Link>
}

export interface LinkListener {
  /** Address others can dial, `host:port`. */
  readonly address: string
  close(): Promise<void>
}

/** One question, one answer, unencrypted and unproven: a peer's "are you there?". What proves it is the seal inside. */
export interface Whispers {
  /** What came back in time and is an answer to this very question, which only what it brings along can tell. Undefined: nothing. */
  ask(address: string, question: Uint8Array, span: Ms, isAnswer: (answer: Uint8Array) => boolean): Promise<Uint8Array | undefined>
  /** Answers others' questions until closed. At most one answer a question; undefined says nothing. */
  answer(port: number, reply: (question: Uint8Array, from: string) => Uint8Array | undefined): Promise<{ port: number; close(): void }>
}
