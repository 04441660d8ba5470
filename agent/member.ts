// What this agent is to other nodes: one of those whose word, most of them together, lets a node run that no leader permits any more. It goes by
// what the leader of the latest term has told it, and knows nothing by itself.
import type { AgentWord, MemberAnswer, MemberQuestion, NodeBoot, NodeKey, RevokedWord } from '../core/beat.ts'
import { mostRevoked, mostSeals } from '../core/frame.ts'
import { sameBoot, type Boot, type NodeName } from '../core/model.ts'
import type { MemberSays } from '../core/self-stop.ts'
import { sealHolds, sealOf } from '../edge/link-seal.ts'

export interface Member {
  /** A leader's, whole. */
  told(word: RevokedWord): void
  /** Of any replica: whom it serves is told by the node that takes none but its own leader's. */
  given(keys: readonly NodeKey[]): void
  answer(question: MemberQuestion): Omit<MemberAnswer, 'nonce'>
  /** What a replica that is linked anew must know. */
  words(): readonly AgentWord[]
}

/** `node`: what the API server calls this one; empty before any replica has said it. */
export function createMember(node: () => string, say: (word: AgentWord) => void): Member {
  const keys = new Map<NodeName, readonly string[]>()
  let revoked: readonly NodeBoot[] | undefined
  let term = 0
  return {
    told(word) {
      // Of a leader that was deposed and has not noticed.
      if ((word.term ?? 0) < term) return
      term = word.term ?? 0
      // Cut, it would permit what is missing from it: nobody is permitted then.
      if (word.boots.length > mostRevoked) {
        revoked = undefined
        return
      }
      const news = JSON.stringify(revoked ?? []) !== JSON.stringify(word.boots)
      revoked = word.boots
      if (news) say({ say: 'revokes', boots: revoked })
    },
    given(some) {
      for (const { node: of, key } of some) keys.set(of, [key, ...(keys.get(of) ?? []).filter((one) => one !== key)].slice(0, mostSeals))
      for (const of of keys.keys()) if (keys.size > mostRevoked) keys.delete(of)
    },
    answer(question) {
      const says = saysOf(question)
      const seals = (keys.get(question.node) ?? []).map((key) => sealOf(key, question.nonce, sealed(says, question.boot)))
      return { says, ...(seals.length === 0 ? {} : { seals }) }
    },
    words: () => (revoked === undefined || revoked.length === 0 ? [] : [{ say: 'revokes', boots: revoked }]),
  }

  function saysOf({ node: of, boot, member }: MemberQuestion): MemberSays {
    if (revoked === undefined || (member !== undefined && member !== node())) return 'unknown'
    return revoked.some((one) => one.node === of && sameBoot(one.boot, boot)) ? 'revoked' : 'permitted'
  }
}

/** Whether whoever answered was given the key. */
export function isSealed({ nonce, says, seals = [] }: MemberAnswer, key: string, boot: Boot): boolean {
  return seals.some((seal) => sealHolds(key, nonce, sealed(says, boot), seal))
}

/** What a member's seal is over, beside the nonce. */
const sealed = (says: MemberSays, boot: Boot): string => `${says} ${boot}`
