// An eviction: a DELETE that asks the pod's disruption budget first. In the order in which the real server looks: at the pod's name, at
// what may go whatever its budget says, at the budget, and only then at the preconditions. What a budget allows is taken off its
// status here and now, so that the next eviction does not spend it again before the disruption controller has counted anew.
import type { ApiResponse } from '../../coordinator/transport.ts'
import { bodyText, dryRun } from './asked.ts'
import type { Asked } from './asked.ts'
import { parseDeleteOptions, preconditionRefusal, remove } from './deletion.ts'
import { collectionOf } from './ground.ts'
import type { Ground } from './ground.ts'
import { listAt, numberAt, objectAt, textAt } from './json.ts'
import type { JsonObject, Resource } from './json.ts'
import { storeKey } from './kind.ts'
import type { KindDefinition } from './kind.ts'
import { badRequest, forbidden, isRefusal, notFound } from './refusal.ts'
import type { Refusal } from './refusal.ts'
import { json } from './response.ts'
import { labelSelectorOf, matchesLabels } from './selector.ts'
import { timeText } from './times.ts'

const budgets = { group: 'policy', plural: 'poddisruptionbudgets', kind: 'PodDisruptionBudget' }
const budgetCollection = 'poddisruptionbudgets.policy'
/** So many evictions that the disruption controller has not counted yet. */
const mostDisrupted = 2_000

export function evict(ground: Ground, asked: Asked): ApiResponse | Refusal {
  const body = bodyText(asked)
  if (isRefusal(body)) return body
  const { kind, namespace, name } = asked.target
  if (textAt(body, 'metadata', 'name') !== name) return badRequest('name in URL does not match name in Eviction object')
  const options = parseDeleteOptions(body['deleteOptions'], asked.call.query)
  if (isRefusal(options)) return options
  const pod = collectionOf(ground, kind).read(storeKey(namespace, name))
  if (pod === undefined) return notFound(kind, name)
  const dry = options.dryRun || dryRun(asked)
  const refused = goesAnyway(pod) ? undefined : askBudget(ground, pod, dry)
  if (refused !== undefined) return refused
  const unmet = preconditionRefusal(kind, name, pod.metadata, options)
  if (unmet !== undefined) return unmet
  if (!dry) markDisrupted(ground, kind, pod)
  const { resourceVersion: _ours, ...rest } = options
  const removed = remove(ground, kind, namespace, name, { ...rest, dryRun: dry })
  return isRefusal(removed) ? removed : json(201, JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }))
}

/** It is over, has not begun, or is going already. */
function goesAnyway(pod: Resource): boolean {
  return ['Succeeded', 'Failed', 'Pending'].includes(textAt(pod, 'status', 'phase')) || pod.metadata.deletionTimestamp !== undefined
}

function askBudget(ground: Ground, pod: Resource, dry: boolean): Refusal | undefined {
  const [budget, other] = budgetsOf(ground, pod)
  if (budget === undefined) return undefined
  if (other !== undefined) return { code: 500, reason: '', message: 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.' }
  if (!isReady(pod) && (textAt(budget, 'spec', 'unhealthyPodEvictionPolicy') === 'AlwaysAllow' || isHealthy(budget))) return undefined
  return spend(ground, budget, pod.metadata.name ?? '', dry)
}

function budgetsOf(ground: Ground, pod: Resource): Resource[] {
  const collection = ground.store.find(budgetCollection)
  return [...collection?.keys() ?? []].flatMap((key) => collection?.read(key) ?? []).filter((budget) => {
    const selector = labelSelectorOf(objectAt(budget, 'spec', 'selector'))
    return budget.metadata.namespace === pod.metadata.namespace && selector !== undefined && matchesLabels(selector, pod.metadata.labels ?? {})
  })
}

const counted = (budget: Resource, field: string): number => numberAt(budget, 'status', field) ?? 0

function isReady(pod: Resource): boolean {
  return listAt(pod, 'status', 'conditions').some((condition) => textAt(condition, 'type') === 'Ready' && textAt(condition, 'status') === 'True')
}

function isHealthy(budget: Resource): boolean {
  return counted(budget, 'desiredHealthy') > 0 && counted(budget, 'currentHealthy') >= counted(budget, 'desiredHealthy')
}

function spend(ground: Ground, budget: Resource, podName: string, dry: boolean): Refusal | undefined {
  const { name = '', generation = 0 } = budget.metadata
  if (counted(budget, 'observedGeneration') < generation) return tooMany(`The disruption budget ${name} is still being processed by the server.`, 10)
  const allowed = counted(budget, 'disruptionsAllowed')
  const disrupted = objectAt(budget, 'status', 'disruptedPods')
  if (allowed < 0) return forbidden({ ...budgets, plural: 'poddisruptionbudget' }, name, 'pdb disruptions allowed is negative')
  if (Object.keys(disrupted).length > mostDisrupted) {
    return forbidden({ ...budgets, plural: 'poddisruptionbudget' }, name, 'DisruptedPods map too big - too many evictions not confirmed by PDB controller')
  }
  if (allowed === 0) return tooMany(`The disruption budget ${name} needs ${counted(budget, 'desiredHealthy')} healthy pods and has ${counted(budget, 'currentHealthy')} currently`)
  if (dry) return undefined
  const now = timeText(ground.clock.wall())
  budget['status'] = {
    ...objectAt(budget, 'status'), disruptionsAllowed: allowed - 1, disruptedPods: { ...disrupted, [podName]: now },
    ...(allowed > 1 ? {} : { conditions: [...withoutCondition(budget, 'DisruptionAllowed'), noMore(budget, now)] }),
  }
  const collection = ground.store.find(budgetCollection)
  if (collection !== undefined) ground.store.put(collection, budget)
  return undefined
}

function noMore(budget: Resource, now: string): JsonObject {
  return { type: 'DisruptionAllowed', status: 'False', reason: 'InsufficientPods', message: '', observedGeneration: counted(budget, 'observedGeneration'), lastTransitionTime: now }
}

/** A first retry makes sense at once, unless the server says when. */
function tooMany(cause: string, retryAfterSeconds?: number): Refusal {
  return {
    code: 429, reason: 'TooManyRequests', message: 'Cannot evict pod as it would violate the pod\'s disruption budget.',
    details: { causes: [{ reason: 'DisruptionBudget', message: cause }] }, ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  }
}

function withoutCondition(object: Resource, type: string) {
  return listAt(object, 'status', 'conditions').filter((condition) => textAt(condition, 'type') !== type)
}

function markDisrupted(ground: Ground, kind: KindDefinition, pod: Resource): void {
  const now = timeText(ground.clock.wall())
  const condition = { type: 'DisruptionTarget', status: 'True', lastProbeTime: null, lastTransitionTime: now, reason: 'EvictionByEvictionAPI', message: 'Eviction API: evicting' }
  pod['status'] = { ...objectAt(pod, 'status'), conditions: [...withoutCondition(pod, 'DisruptionTarget'), condition] }
  ground.store.put(collectionOf(ground, kind), pod)
}
