// Whether what the product waits for is so. Each hold that stands, on a NodeFence or, where no incident is open, with the leader,
// is held against the world at every look; one whose reason has been false for longer than news takes is a lie to whoever reads it.
// An incident that holds for nothing must get on: its record changes, or it stands still without a word.
import type { Ms } from '../../../core/model.ts'
import type { Violation } from '../judgement.ts'
import { seconds } from './facts.ts'
import { lie, type Held } from './reasons.ts'
import type { Sight } from './sight.ts'

export interface HoldJudge {
  look(sight: Sight): void
  found(): readonly Violation[]
}

/** From the end of a cause to the end of a hold: rounds of questions, back-offs, and a sentence written anew every ten seconds. */
export const falseFor: Ms = 60_000

export function judgeHolds(): HoldJudge {
  const falseSince = new Map<string, Ms>()
  const stillSince = new Map<string, Ms>()
  const violations = new Map<string, Violation>()
  return {
    look(sight) {
      judgeStill(sight)
      const standing = new Set<string>()
      for (const held of heldIn(sight)) {
        const why = lie(held, sight)
        if (why === undefined) continue
        const key = `${held.fence?.metadata.name ?? held.node} ${held.because}`
        standing.add(key)
        const since = falseSince.get(key) ?? sight.now
        falseSince.set(key, since)
        if (sight.now - since < falseFor || violations.has(key)) continue
        violations.set(key, { judge: 'liveness', what: `${key} (${held.detail}) stands, and for ${seconds(sight.now - since)} it has not been so: ${why}`, node: held.node, from: since })
      }
      for (const key of falseSince.keys()) if (!standing.has(key)) falseSince.delete(key)
    },
    found: () => [...violations.values()],
  }

  function judgeStill(sight: Sight): void {
    const wordless = sight.fences().filter(({ status }) => status?.phase !== 'Final' && (status?.holds ?? []).length === 0)
    const still = new Map(wordless.map((fence) => [`${fence.metadata.name} ${fence.metadata.resourceVersion}`, fence]))
    for (const key of stillSince.keys()) if (!still.has(key)) stillSince.delete(key)
    for (const [key, { metadata: { name }, spec: { nodeName: node }, status }] of still) {
      const since = stillSince.get(key) ?? sight.now
      stillSince.set(key, since)
      if (sight.now - since < falseFor || violations.has(key)) continue
      violations.set(key, { judge: 'liveness', what: `${name} is ${status?.phase}, holds for nothing, and has stood still for ${seconds(sight.now - since)}`, node, from: since })
    }
  }
}

/** What a person would read. */
export function heldIn(sight: Sight): readonly Held[] {
  const open = sight.fences().filter(({ status }) => status?.phase !== 'Final')
  const recorded = open.flatMap((fence) => (fence.status?.holds ?? []).map((hold) => ({ ...hold, node: fence.spec.nodeName, fence })))
  const leader = sight.on.leader()
  const beside = leader === undefined ? [] : sight.on.coordinators.get(leader)?.holds() ?? []
  return [...recorded, ...beside.filter(({ incident }) => incident === undefined).map(({ node, because, detail }) => ({ node, because, detail }))]
}
