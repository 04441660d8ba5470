// The disruption controller: what each PodDisruptionBudget allows just now, by which the API server judges evictions.
//
// Kept: a pod that is ready, and is not being deleted nor was allowed to go a moment ago, is healthy; with maxUnavailable, or a share, the
// pods expected are those that their owners want, with a number of minAvailable those that are there; while none is expected nothing is
// allowed. Left out: owners other than ReplicaSets and StatefulSets.
import type { Ms } from '../../core/model.ts'
import { labelSelectorOf, matchesLabels } from '../api-server/selector.ts'
import type { JsonObject } from '../api-server/json.ts'
import { isReady, timestamp, type Condition, type DisruptionBudgetObject, type PodObject } from '../objects.ts'
import { createCache, type ControllerGround } from './cache.ts'
import { turnsByKey } from './turn.ts'

/** Whom an eviction allowed to go, and who is still there by then, will not go. */
const deletionTimeout: Ms = 120_000

export async function startDisruption({ clock, api, caches, chance, log }: ControllerGround): Promise<void> {
  const budgets = createCache<DisruptionBudgetObject>({ clock, api, log, chance: chance.fork('disruption') }, '/apis/policy/v1/poddisruptionbudgets')
  while (!budgets.synced()) await clock.wait(20)
  const ask = turnsByKey(clock, reconcile, 5)
  budgets.listen(({ key }) => ask(key))
  caches.pods.listen(({ object }) => {
    for (const [key, budget] of budgets.items) if (selects(budget, object)) ask(key)
  })

  async function reconcile(key: string): Promise<void> {
    const budget = budgets.items.get(key)
    if (budget === undefined || budget.metadata.deletionTimestamp !== undefined) return
    const pods = [...caches.pods.items.values()].filter((pod) => selects(budget, pod))
    const disruptedPods = stillExpectedToGo(budget, pods)
    const healthy = pods.filter((pod) => pod.metadata.deletionTimestamp === undefined && disruptedPods[pod.metadata.name] === undefined && isReady(pod))
    const counts = { ...expected(budget, pods), currentHealthy: healthy.length }
    const spare = counts.currentHealthy - counts.desiredHealthy
    const disruptionsAllowed = counts.expectedPods > 0 ? Math.max(0, spare) : 0
    const observedGeneration = budget.metadata.generation ?? 0
    const wanted = { ...counts, disruptionsAllowed, observedGeneration, disruptedPods }
    const { conditions: before = [], ...known } = budget.status ?? {}
    if (JSON.stringify(sorted({ ...known, disruptedPods: known.disruptedPods ?? {} })) === JSON.stringify(sorted(wanted)) && before.length > 0) return
    const condition: Condition = {
      type: 'DisruptionAllowed', status: disruptionsAllowed > 0 ? 'True' : 'False', reason: disruptionsAllowed > 0 ? 'SufficientPods' : 'InsufficientPods', message: '',
      lastTransitionTime: timestamp(clock.wall()),
    }
    const { name, namespace } = budget.metadata
    await api.replace(`/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets/${name}/status`, { ...budget, status: { ...wanted, conditions: [condition] } })
  }

  function stillExpectedToGo({ status }: DisruptionBudgetObject, pods: readonly PodObject[]): Record<string, string> {
    const there = new Set(pods.filter((pod) => pod.metadata.deletionTimestamp === undefined).map((pod) => pod.metadata.name))
    return Object.fromEntries(Object.entries(status?.disruptedPods ?? {}).filter(([name, since]) => there.has(name) && Date.parse(since) + deletionTimeout > clock.wall()))
  }

  function expected({ spec }: DisruptionBudgetObject, pods: readonly PodObject[]): { expectedPods: number; desiredHealthy: number } {
    if (typeof spec.minAvailable === 'number') return { expectedPods: pods.length, desiredHealthy: spec.minAvailable }
    const expectedPods = wantedByOwners(pods)
    const desiredHealthy = spec.maxUnavailable === undefined ? shareOf(spec.minAvailable, expectedPods) : expectedPods - shareOf(spec.maxUnavailable, expectedPods)
    return { expectedPods, desiredHealthy: Math.max(0, desiredHealthy) }
  }

  function wantedByOwners(pods: readonly PodObject[]): number {
    const owners = new Set(pods.flatMap((pod) => pod.metadata.ownerReferences?.filter(({ controller }) => controller === true).map(({ uid }) => uid) ?? []))
    return [...caches.replicaSets.items.values(), ...caches.statefulSets.items.values()]
      .filter((set) => owners.has(set.metadata.uid ?? '')).reduce((sum, set) => sum + (set.spec.replicas ?? 1), 0)
  }
}

/** A share is rounded up. */
function shareOf(wanted: number | string = 0, of: number): number {
  return typeof wanted === 'number' ? wanted : Math.ceil((Number.parseInt(wanted, 10) * of) / 100)
}

function sorted(fields: object): [string, unknown][] {
  return Object.entries(fields).toSorted(([one], [other]) => (one < other ? -1 : 1))
}

function selects({ metadata, spec }: DisruptionBudgetObject, pod: PodObject): boolean {
  const selector = labelSelectorOf({ ...spec.selector } as JsonObject) // as the API server's own schema has it
  return metadata.namespace === pod.metadata.namespace && selector !== undefined && matchesLabels(selector, pod.metadata.labels ?? {})
}
