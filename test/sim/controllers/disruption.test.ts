import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../../coordinator/api.ts'
import type { DisruptionBudgetObject } from '../../../sim/objects.ts'
import { minute, settledWorld } from '../settled-world.ts'

const test = suite('disruption controller')

const budgets = '/apis/policy/v1/namespaces/work/poddisruptionbudgets'

async function counted(seed: number, spec: object) {
  const on = await settledWorld(seed, { controlLoops: { disruption: true } })
  const budget = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'web' }, spec: { selector: { matchLabels: { app: 'web' } }, ...spec } }
  void on.world.api.create<KubeObject>(budgets, budget)
  const status = () => on.peek<DisruptionBudgetObject>('poddisruptionbudgets.policy')[0]?.status
  assert.ok(await on.when(() => status()?.observedGeneration === 1, minute))
  return { ...on, status }
}

for (const [spec, allowed, why] of [
  [{ minAvailable: 1 }, 0, 'one of one is needed'], [{ minAvailable: 0 }, 1, 'none is needed'], [{ maxUnavailable: 1 }, 1, 'one may be away'], [{ maxUnavailable: 0 }, 0, 'none may'],
  [{ minAvailable: '50%' }, 0, 'half of one is one'], [{ maxUnavailable: '50%' }, 1, 'and so it is here'],
] as const) {
  test(`${JSON.stringify(spec)} allows ${allowed}: ${why}`, async () => {
    const { status } = await counted(1, spec)
    assert.equal([status()?.disruptionsAllowed, status()?.currentHealthy, status()?.expectedPods], [allowed, 1, 1])
  })
}

test('what goes is not healthy any more, and its successor is once it is ready', async () => {
  const { status, podOf, remove, when } = await counted(2, { maxUnavailable: 1 })
  const pod = podOf('web')
  if (pod !== undefined) void remove(pod)
  assert.ok(await when(() => status()?.disruptionsAllowed === 0 && status()?.currentHealthy === 0, minute))
  assert.ok(await when(() => status()?.disruptionsAllowed === 1, 3 * minute))
})

test('an eviction spends what was allowed at once, and it is counted anew', async () => {
  const { world, status, podOf, when } = await counted(3, { maxUnavailable: 1 })
  const pod = podOf('web')
  const name = pod?.metadata.name ?? ''
  void world.api.create(`/api/v1/namespaces/work/pods/${name}/eviction`, { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: 'work' } })
  assert.ok(await when(() => podOf('web')?.metadata.uid !== pod?.metadata.uid && status()?.disruptionsAllowed === 0, minute))
  assert.ok(await when(() => status()?.disruptionsAllowed === 1 && Object.keys(status()?.disruptedPods ?? {}).length === 0, 3 * minute))
})

test.run()
