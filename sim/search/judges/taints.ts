// Whether each taint of ours has an owner: an incident of its node that is not over, or a hold that says why it stands still.
// A leader who cannot lead owes nothing, so only time in which one could counts.
import type { Ms } from '../../../core/model.ts'
import type { Violation } from '../judgement.ts'
import { heldIn } from './holds.ts'
import { seconds } from './facts.ts'
import type { Sight } from './sight.ts'

export interface TaintJudge {
  look(sight: Sight): void
  found(): readonly Violation[]
}

export const ownerlessFor: Ms = 60_000

export function judgeTaints(): TaintJudge {
  const since = new Map<string, Ms>()
  const violations = new Map<string, Violation>()
  return {
    look(sight) {
      const leads = sight.leads()
      const ownerless = new Set(!leads ? [] : sight.nodes().flatMap(({ metadata: { name } }) => sight.ours(name).filter(() => !owned(name, sight)).map((key) => `${name} ${key}`)))
      for (const key of since.keys()) if (!ownerless.has(key)) since.delete(key)
      for (const key of ownerless) {
        const from = since.get(key) ?? sight.now
        since.set(key, from)
        if (sight.now - from < ownerlessFor || violations.has(key)) continue
        const [node = ''] = key.split(' ')
        violations.set(key, { judge: 'liveness', what: `${key} has had no owner for ${seconds(sight.now - from)}`, node, from })
      }
    },
    found: () => [...violations.values()],
  }
}

function owned(node: string, sight: Sight): boolean {
  return sight.openOf(node).length > 0 || heldIn(sight).some((held) => held.node === node)
}
