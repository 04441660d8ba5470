// Whispers between agents: "are you there?" The answer carries a seal that only the replica who wants to know can check, so
// a peer cannot invent a living node, and nobody else can either. And, for a node that nobody permits to run workloads: "may I go on?"
import type { MemberAnswer, MemberQuestion, ReplicaWord, Witness } from '../core/beat.ts'
import { memberFrame, readMemberAnswer, readMemberQuestion, readWhisper, readWhisperAnswer, whisperOf } from '../core/frame.ts'
import type { Read } from '../core/frame-json.ts'
import type { Boot, Ms } from '../core/model.ts'
import { sealOf } from '../edge/link-seal.ts'
import type { AgentHost } from './host.ts'

/** A lost packet is no silence: three questions, well within what a suspicion of the fast profile lasts. */
const tries = 3
const answerWithin: Ms = 300
/** What hangs on a member's answer is a whole node, and a permit is long. */
const memberWithin: Ms = 1_000
const mostAsked = 32
/** About ten peers ask at most; a flood costs an HMAC each and no more than this. */
const mostAnswersEach: Ms = 1_000
const mostAnswers = 200

export interface Ears {
  readonly boot: Boot
  keyOf(replica: string): string | undefined
  /** What we say as a member. */
  answer(question: MemberQuestion): Omit<MemberAnswer, 'nonce'>
}

/** Undefined: this agent has no ear for peers now, which its hello says. */
export async function answerWhispers(host: Pick<AgentHost, 'clock' | 'log' | 'whispers'>, port: number, { boot, keyOf, answer }: Ears): Promise<{ port: number; close(): void } | undefined> {
  let answered = 0
  let since = host.clock.now()
  try {
    return await host.whispers.answer(port, (question) => {
      const asked = readMemberQuestion(question)
      const read = readWhisper(question)
      if (!('word' in asked || 'word' in read) || flooded()) return undefined
      if ('word' in asked) return memberFrame({ nonce: asked.word.nonce, ...answer(asked.word) })
      if (!('word' in read)) return undefined
      const { replica, nonce } = read.word
      const key = keyOf(replica)
      return whisperOf({ nonce, boot, ...(key === undefined ? {} : { seal: sealOf(key, nonce, boot) }) })
    })
  } catch (error) {
    host.log.warn({ port, reason: String(error) }, 'no peer can whisper to this agent')
    return undefined
  }

  function flooded(): boolean {
    const now = host.clock.now()
    if (now - since > mostAnswersEach) {
      since = now
      answered = 0
    }
    answered += 1
    return answered > mostAnswers
  }
}

type Ask = ReplicaWord & { say: 'ask' }

/** Carries a replica's question to a peer. Undefined: too many at once, and no word is not the same as deaf. */
export function createWitness(host: Pick<AgentHost, 'whispers'>): { ask(ask: Ask, replica: string): Promise<Witness | undefined> } {
  let asked = 0
  return {
    async ask({ id, address, nonce }, replica) {
      if (asked >= mostAsked) return undefined
      asked += 1
      try {
        return { say: 'witness', id, ...await listen(host, address, replica, nonce) }
      } finally {
        asked -= 1
      }
    },
  }
}

async function listen(host: Pick<AgentHost, 'whispers'>, address: string, replica: string, nonce: string): Promise<Omit<Witness, 'say' | 'id'>> {
  const question = whisperOf({ replica, nonce })
  for (let tried = 0; tried < tries; tried += 1) {
    // A refusal of the network (no route, closed port) is no answer, like silence.
    const answer = await host.whispers.ask(address, question, answerWithin, (bytes) => bringsBack(nonce, readWhisperAnswer(bytes)) !== undefined).catch(() => undefined)
    const word = answer === undefined ? undefined : bringsBack(nonce, readWhisperAnswer(answer))
    if (word === undefined) continue
    const { boot, seal } = word
    return { word: 'hears', boot, ...(seal === undefined ? {} : { seal }) }
  }
  return { word: 'deaf' }
}

/** Undefined: it did not answer. */
export async function askMember(host: Pick<AgentHost, 'whispers'>, address: string, asked: MemberQuestion): Promise<MemberAnswer | undefined> {
  const question = memberFrame(asked)
  for (let tried = 0; tried < tries; tried += 1) {
    const answer = await host.whispers.ask(address, question, memberWithin, (bytes) => bringsBack(asked.nonce, readMemberAnswer(bytes)) !== undefined).catch(() => undefined) // as above
    const word = answer === undefined ? undefined : bringsBack(asked.nonce, readMemberAnswer(answer))
    if (word !== undefined) return word
  }
  return undefined
}

/** The word of an answer to this very question. */
function bringsBack<W extends { readonly nonce: string }>(nonce: string, read: Read<W>): W | undefined {
  return 'word' in read && read.word.nonce === nonce ? read.word : undefined
}
