// One pod is asked to go in good order, by the eviction API: it asks the pod's disruption budget, and leaves the pod its own grace. What
// was answered stands on the node's row; nothing is believed of an answer that did not come.
import type { EvictionSeen, NodeName, PodSeen } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Api, ApiError, CallOptions } from './api.ts'
import { paths } from './kubernetes.ts'
import type { Observation } from './observe.ts'

export interface Evictor {
  /** Whether the API server took it. */
  evict(node: NodeName, pod: PodSeen): Promise<boolean>
}

export function evictor({ api, observation, clock, how }: { api: Pick<Api, 'create'>; observation: Observation; clock: Clock; how: () => CallOptions }): Evictor {
  return {
    async evict(node, { namespace, name, uid }) {
      const askedAt = clock.now()
      // By name alone it could hit the successor.
      const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace }, deleteOptions: { preconditions: { uid } } }
      const answer = await api.create(`${paths.pod(namespace, name)}/eviction`, body, how())
      const refused = answer.ok ? undefined : refusal(answer.error)
      observation.evicted(node, uid, { askedAt, ...(refused === undefined ? {} : { refused }) })
      return answer.ok
    },
  }
}

/** Undefined: it is gone, or another one by now. */
function refusal({ kind, causes = [], message }: ApiError): EvictionSeen['refused'] {
  if (kind === 'notFound' || kind === 'conflict') return undefined
  const budget = causes.find(({ reason }) => reason === 'DisruptionBudget')
  return budget === undefined ? { by: 'server', says: message } : { by: 'budget', says: budget.message }
}
