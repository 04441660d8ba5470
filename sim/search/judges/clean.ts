// When the product takes its quarantine off a node, does anything stand there that belongs to nobody: a mount, a staged mount or a
// folder of a pod that the API server does not have, a container of a pod that the product itself called over? What came up only
// just before could not be known, so each thing counts from when it had stood there for a while.
import { isFinished } from '../../objects.ts'
import type { Ms } from '../../../core/model.ts'
import type { Violation } from '../judgement.ts'
import { leftovers, seconds } from './facts.ts'
import { look, type History, type Sight } from './sight.ts'

export interface CleanJudge {
  look(sight: Sight): void
  found(): readonly Violation[]
}

/** An agent is asked every five seconds, and looks every two. */
export const newsTakes: Ms = 10_000

/** Listens from now on. */
export function judgeClean(history: History): CleanJudge {
  const since = new Map<string, Ms>()
  const violations: Violation[] = []
  history.ears.onReturn((node) => {
    const sight = look(history)
    const old = strange(node, sight).filter((thing) => sight.now - (since.get(`${node} ${thing}`) ?? sight.now) >= newsTakes)
    const [one] = old
    if (one === undefined) return
    const stood = seconds(sight.now - (since.get(`${node} ${one}`) ?? sight.now))
    violations.push({ judge: 'safety', what: `${node} was let back with ${old.length} left over on it: ${one} had stood there for ${stood}`, node, from: sight.now })
  })
  return {
    look(sight) {
      const standing = new Set([...sight.world.nodes.keys()].filter((node) => sight.ours(node).length > 0).flatMap((node) => strange(node, sight).map((thing) => `${node} ${thing}`)))
      for (const key of since.keys()) if (!standing.has(key)) since.delete(key)
      for (const key of standing) if (!since.has(key)) since.set(key, sight.now)
    },
    found: () => violations,
  }
}

function strange(node: string, sight: Sight): readonly string[] {
  const over = new Set(sight.ears.acts.flatMap(({ does, pod }) => (does === 'free a pod' && pod !== undefined ? [pod.uid] : [])))
  const alive = new Set(sight.pods(node).filter((pod) => !isFinished(pod)).map(({ metadata }) => metadata.uid))
  const containers = [...sight.world.nodes.get(node)?.runtime.containers.values() ?? []]
  return [
    ...containers.filter(({ pod, ended }) => over.has(pod.uid) && !alive.has(pod.uid) && !ended()).map(({ pod }) => `a container of ${pod.namespace}/${pod.name} (${pod.uid})`),
    ...leftovers(node, sight),
  ]
}
