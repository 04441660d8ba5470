// Deletes history that need not be kept: incidents long over, and records of nodes that are not there any more.
import { outlived } from '../core/history.ts'
import { hasTaint, quarantineKey } from '../core/clear.ts'
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import type { Api } from './api.ts'
import { fencesPath } from './node-fence.ts'
import { recordsPath } from './node-record.ts'
import type { Observation } from './observe.ts'

export interface PruningOptions {
  readonly api: Api
  readonly clock: Clock
  readonly log: Log
  readonly observation: Observation
  leads(): number | undefined
  /** Every watch has been read once, so that a node which is not seen is not there. */
  ready(): boolean
}

const deadline: Ms = 4_000
/** Of one turn; there is another one tomorrow. */
const mostAtOnce = 1_000

/** The answer: how many were deleted. */
export function pruner({ api, clock, log, observation, leads, ready }: PruningOptions): () => Promise<number> {
  return async () => {
    if (!ready()) return 0
    const { nodes, incidents } = observation.seen
    const held = (name: string): boolean => {
      const node = nodes.get(name)
      return node !== undefined && hasTaint(node, quarantineKey)
    }
    const old = outlived(incidents.values(), held, clock.wall()).map(({ name, uid, resourceVersion }) => ({ path: `${fencesPath}/${name}`, preconditions: { uid, resourceVersion } }))
    const gone = observation.recordsOfNobody().map(({ name, resourceVersion }) => ({ path: `${recordsPath}/${name}`, preconditions: { resourceVersion } }))
    let pruned = 0
    for (const { path, preconditions } of [...old, ...gone].slice(0, mostAtOnce)) {
      if (leads() === undefined) break
      const answer = await api.remove(path, { preconditions }, { deadline })
      if (answer.ok) pruned += 1
      else log.info({ path, kind: answer.error.kind }, 'history was not pruned')
    }
    if (pruned > 0) log.info({ pruned }, 'history pruned')
    return pruned
  }
}
