// When the product takes its quarantine off a node, does anything stand there that belongs to nobody: a mount, a staged mount or a
// folder of a pod that the API server does not have, a container of a pod that the product itself called over? What came up only
// just before could not be known, so each thing counts from when it had stood there for a while. And where an
// agent cleans up: does it let go of anything that a pod which belongs there has mounted?
import { isFinished } from '../../objects.ts'
import type { Ms } from '../../../core/model.ts'
import type { Violation } from '../judgement.ts'
import { leftovers, seconds } from './facts.ts'
import { look, type History, type Sight } from './sight.ts'

export interface CleanJudge {
  look(sight: Sight): void
  found(): readonly Violation[]
  stop(): void
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
  const stop = history.on.world.truth.listen(({ at, what, facts }) => {
    if (what !== 'agent unmounts') return
    const [node, path] = [String(facts['node']), String(facts['path'])]
    const user = userOf(node, path, look(history))
    if (user !== undefined) violations.push({ judge: 'safety', what: `the agent of ${node} let go of ${path}, which ${user} has mounted`, node, from: at })
  })
  return {
    stop,
    look(sight) {
      const standing = new Set([...sight.world.nodes.keys()].filter((node) => sight.ours(node).length > 0).flatMap((node) => strange(node, sight).map((thing) => `${node} ${thing}`)))
      for (const key of since.keys()) if (!standing.has(key)) since.delete(key)
      for (const key of standing) if (!since.has(key)) since.set(key, sight.now)
    },
    found: () => violations,
  }
}

/** A pod that belongs there, that nobody has freed, and that has the same volume mounted. */
function userOf(node: string, path: string, sight: Sight): string | undefined {
  const mounts = [...sight.world.nodes.get(node)?.machine.mounts.values() ?? []]
  const volume = mounts.find((mount) => mount.path === path)?.volume
  const freed = new Set(sight.ears.acts.map(({ pod }) => pod?.uid))
  const user = sight.pods(node).find((pod) => !isFinished(pod) && !freed.has(pod.metadata.uid) && mounts.some((mount) => mount.volume === volume && mount.path.includes(`/pods/${pod.metadata.uid}/`)))
  return volume === undefined ? undefined : user?.metadata.name
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
