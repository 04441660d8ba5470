// Is anything ordered of a machine, or freed from it, that a person has in hand and has said so: by a pause, by an annotation of its Node? Is it
// ordered off under an abort that came in time? And is anything switched on that nobody here ever switched off? There may be hands in it. What
// was said a moment ago, or while the leader was served badly, could not be known.
import type { Ms } from '../../../core/model.ts'
import type { Switch } from '../../world/power.ts'
import type { Violation } from '../judgement.ts'
import { isOff, seconds } from './facts.ts'
import { look, type History, type Sight } from './sight.ts'

export interface HandsJudge {
  look(sight: Sight): void
  found(): readonly Violation[]
  stop(): void
}

export const newsTakes: Ms = 10_000

/** With what a person keeps us off, and whether only from switching it on, or off. */
interface Word {
  readonly says: string
  readonly only?: 'on' | 'off'
}

/** Listens from now on. */
export function judgeHands(history: History): HandsJudge {
  const { world } = history.on
  const since = new Map<string, Ms>()
  const violations: Violation[] = []
  let freed = 0
  history.ears.onRemedy(({ at, node }) => {
    for (const { says, only } of kept(node, look(history))) if (only !== 'off') violations.push({ judge: 'restraint', what: `a remedy began on ${node}, and ${says} stood there`, node, from: at })
  })
  const stop = world.truth.listen(({ at, what, facts: { action, ip, plug } }) => {
    if (what !== 'program runs' || (action !== 'off' && action !== 'on')) return
    const sight = look(history)
    for (const [node, { machine }] of world.nodes) {
      const own = sight.switches(node).flat().find((one) => one.address === ip && one.plug === plug)
      if (own === undefined) continue
      const word = kept(node, sight).find(({ only }) => only === undefined || (only === action && (only === 'off' || machine.state() === 'off')))
      if (word !== undefined) violations.push({ judge: 'restraint', what: `${own.name} of ${node} was ordered ${action}, and ${word.says} had stood there for ${seconds(at - stoodSince(node, word, at))}`, node, from: at })
      const strange = action === 'on' && !wantsItOn(sight) ? whoseHands(sight, node, own, history.ears.lastOrder(own.address, own.plug, 'off') ?? (writtenInATermBefore(own, node, sight) ? at : undefined)) : undefined
      if (strange !== undefined) violations.push({ judge: 'restraint', what: `${own.name} of ${node} was ordered on, and ${strange}`, node, from: at })
    }
  })
  return {
    stop,
    look(sight) {
      const standing = new Set(!sight.leads() ? [] : [...world.nodes.keys()].flatMap((node) => words(node, sight).map(({ says }) => `${node} ${says}`)))
      for (const key of since.keys()) if (!standing.has(key)) since.delete(key)
      for (const key of standing) if (!since.has(key)) since.set(key, sight.now)
      for (const { at, does, node, pod } of history.ears.acts.slice(freed)) {
        const word = does === 'free a pod' || does === 'evict a pod' ? words(node, sight).find((one) => one.only === undefined && at - stoodSince(node, one, at) >= newsTakes) : undefined
        if (word !== undefined) violations.push({ judge: 'restraint', what: `${pod?.name} was ${does === 'free a pod' ? 'freed' : 'evicted'} from ${node}, and ${word.says} stood there`, node, from: at })
      }
      freed = history.ears.acts.length
    },
    found: () => violations,
  }

  function kept(node: string, sight: Sight): readonly Word[] {
    return sight.leads() ? words(node, sight).filter((word) => sight.now - stoodSince(node, word, sight.now) >= newsTakes) : []
  }

  /** As of the latest look. */
  function stoodSince(node: string, { says }: Word, otherwise: Ms): Ms {
    return since.get(`${node} ${says}`) ?? otherwise
  }
}

function words(node: string, sight: Sight): readonly Word[] {
  const { annotations = {} } = sight.node(node)?.metadata ?? {}
  return [
    ...(sight.configs().some(({ metadata: { name } }) => name === 'holdfast-pause') ? [{ says: 'a pause' }] : []),
    ...['exclude', 'maintenance'].filter((word) => annotations[`holdfast.dev/${word}`] !== undefined).map((says) => ({ says })),
    ...(annotations['holdfast.dev/keep-off'] === undefined ? [] : [{ says: 'keep-off', only: 'on' } as const]),
    // Come in time: what is proven by then is finished.
    ...(sight.openOf(node).some(({ spec, status }) => spec.abort === true && status?.proof === undefined) ? [{ says: 'an abort', only: 'off' } as const] : []),
  ]
}

/** Why it may be somebody else who has switched it off. A port to its storage, put down here, is no power: there are no hands in that. */
function whoseHands(sight: Sight, node: string, { kind }: Switch, orderedOff: Ms | undefined): string | undefined {
  if (orderedOff === undefined) return 'nobody here had ever ordered it off'
  if (kind === 'port') return undefined
  const vouched = sight.openOf(node).some(({ status }) => status?.proof?.kind === 'vouched')
  return vouched && isOff(node, sight) ? 'it was off by a person\'s word alone' : undefined
}

/** A leader wrote an order down, and leads no more: dead, or cut off, it can tell nobody whether the order was given, so it counts as one. */
function writtenInATermBefore({ name }: Switch, node: string, sight: Sight): boolean {
  return sight.openOf(node).some(({ status }) => status?.attempts?.some(({ action, method, result, term }) => action === 'off' && method === `${name}-off` && result !== 'not-given' && term < sight.term()) === true)
}

function wantsItOn(sight: Sight): boolean {
  return sight.policies().some(({ spec }) => spec?.powerOnFoundOff === true) || sight.fences().some(({ spec }) => spec.policy?.powerOnFoundOff === true)
}
