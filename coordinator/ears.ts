// Whether a witness hears anybody at all. Where whispers are swallowed (a firewall, a network that is lost as a whole) every peer is deaf to every node, and that is
// no word on the one it was asked about: silence counts only from a listener that was heard. So a witness that has not heard anybody since that node fell
// silent is asked, in the same moment, about others that are well; deaf to these too it has said nothing.
import type { Ms, NodeName } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Beats, Testimony } from './beats.ts'

export interface Ears {
  /** Undefined: it did not answer, or hears nobody. `since`: when `node` was heard last. `well`: others that are heard. */
  ask(witness: NodeName, node: NodeName, since: Ms, well: readonly NodeName[]): Promise<Testimony | undefined>
}

/** What was heard longer ago is no word on the present, in a silence that lasts. */
const earHolds: Ms = 10_000
/** One of them may have died in the same moment. */
const askedBeside = 2
/** Twice the largest cluster. */
const mostRemembered = 10_000

export function keepEars({ beats, clock }: { readonly beats: Pick<Beats, 'agent' | 'ask' | 'nonce'>; readonly clock: Pick<Clock, 'now'> }): Ears {
  const heardAt = new Map<NodeName, Ms>()

  return {
    async ask(witness, node, since, well) {
      if (beats.agent(node)?.whisperAddress === undefined) return undefined
      const hears = (): boolean => (heardAt.get(witness) ?? -Infinity) >= Math.max(since, clock.now() - earHolds)
      const beside = hears() ? [] : well.filter((one) => one !== node && beats.agent(one)?.whisperAddress !== undefined).slice(0, askedBeside)
      const [word] = await Promise.all([node, ...beside].map((one) => put(witness, one)))
      // Where nobody else is there to be heard its word is all there is.
      return word?.word === 'deaf' && beside.length > 0 && !hears() ? undefined : word
    },
  }

  async function put(witness: NodeName, node: NodeName): Promise<Testimony | undefined> {
    const address = beats.agent(node)?.whisperAddress
    if (address === undefined) return undefined
    const askedAt = clock.now()
    const word = await beats.ask(witness, node, address, beats.nonce())
    if (word?.word === 'hears') remember(witness, askedAt)
    return word
  }

  function remember(witness: NodeName, at: Ms): void {
    heardAt.delete(witness)
    heardAt.set(witness, at)
    for (const oldest of heardAt.keys()) {
      if (heardAt.size <= mostRemembered) break
      heardAt.delete(oldest)
    }
  }
}
