// Pods are asked to go in good order, by the eviction API: it asks each pod's disruption budget, and leaves the pod its own grace. What
// was answered stands on the node's row; nothing is believed of an answer that did not come.
import type { Deed } from '../core/action.ts'
import type { EvictionSeen, NodeName, PodSeen } from '../core/model.ts'
import * as timeline from '../core/timeline.ts'
import type { ApiError } from './api.ts'
import type { DeedMeans } from './deed-means.ts'
import { batchWithin } from './free.ts'
import { paths } from './kubernetes.ts'
import type { PodRate } from './pod-rate.ts'
import type { Row } from './row.ts'

export function evictor({ api, observation, incidents, clock, log, rate, leads, how, at, say, handsOff }: DeedMeans & { readonly rate: PodRate }): (deed: Extract<Deed, { do: 'evict' }>) => Promise<boolean> {
  return evict

  /** On record first, so that a leader that slept asks nobody. No proof: kubelet ends them, and nothing is taken from a machine that runs. */
  async function evict(deed: Extract<Deed, { do: 'evict' }>): Promise<boolean> {
    const row = observation.row(deed.node)
    const term = leads()
    if (row === undefined || term === undefined) return false
    const pods = deed.pods.slice(0, rate.take(deed.pods.length))
    const written = await incidents.change(deed.incident, timeline.evicting(pods, at()))
    const startedAt = clock.now()
    // Longer than a batch nothing that a death would bring may wait for these.
    const may = (): boolean => leads() === term && clock.now() - startedAt < batchWithin && observation.row(deed.node) === row && row.gone !== true && mayGo(deed.incident, row)
    const going: PodSeen[] = []
    for (const pod of written ? pods : []) if (may() && await evictPod(deed.node, pod)) going.push(pod)
    // What a budget refuses must not use up the rate of a node that is dead.
    rate.giveBack(pods.length - going.length)
    observation.listed(deed.node, undefined)
    if (going.length > 0) {
      log.info({ node: deed.node, incident: deed.incident, pods: going.length }, 'pods evicted')
      say(deed.node, deed.incident, 'PodsEvicted', 'Evict', going.map((pod) => `${pod.namespace}/${pod.name}`).join(', '), 'Normal')
    }
    return written
  }

  /** The time that they have is not over, nobody has called it off, and nobody has the node in hand. */
  function mayGo(name: string, row: Row): boolean {
    const known = observation.seen.incidents.get(name)
    return known !== undefined && handsOff(known, row) === undefined && !known.abort && known.status.phase !== 'Done' && known.status.phase !== 'Final' && known.status.eviction?.over === undefined
  }

  /** Whether the API server took it. */
  async function evictPod(node: NodeName, { namespace, name, uid }: PodSeen): Promise<boolean> {
    const askedAt = clock.now()
    // By name alone it could hit the successor.
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace }, deleteOptions: { preconditions: { uid } } }
    const answer = await api.create(`${paths.pod(namespace, name)}/eviction`, body, how())
    const refused = answer.ok ? undefined : refusal(answer.error)
    observation.evicted(node, uid, { askedAt, ...(refused === undefined ? {} : { refused }) })
    return answer.ok
  }
}

/** Undefined: it is gone, or another one by now. */
function refusal({ kind, causes = [], message }: ApiError): EvictionSeen['refused'] {
  if (kind === 'notFound' || kind === 'conflict') return undefined
  const budget = causes.find(({ reason }) => reason === 'DisruptionBudget')
  return budget === undefined ? { by: 'server', says: message } : { by: 'budget', says: budget.message }
}
