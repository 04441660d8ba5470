// Evictions: a pod is asked to go in good order, and its disruption budget is asked first. Where a disruption controller runs it
// counts for itself; where none does, the case writes what that would have counted.
import * as assert from 'uvu/assert'
import { make, pod, pods } from '../objects.ts'
import { at, expect, listAt, textAt } from '../world.ts'
import type { Answer, Case, World } from '../world.ts'

const budgets = (world: World) => `/apis/policy/v1/namespaces/${world.namespace}/poddisruptionbudgets`

/** Bound to a node that is not there, so that nobody ends it, and told to be ready. */
async function readyPod(world: World, ready = 'True'): Promise<string> {
  const { path } = await make(world, pods(world), pod(world.name('p'), world.name('nobody'), { terminationGracePeriodSeconds: 600 }))
  const since = '2026-01-01T00:00:00Z'
  expect(await world.strategic(`${path}/status`, { status: { phase: 'Running', conditions: [{ type: 'Ready', status: ready, lastTransitionTime: since }] } }), 200)
  return path
}

interface Counts { readonly currentHealthy: number; readonly desiredHealthy: number; readonly disruptionsAllowed: number }

async function budget(world: World, name: string, counts: Counts, spec: object = {}): Promise<string> {
  const wanted = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name }, spec: { minAvailable: counts.desiredHealthy, selector: { matchLabels: { app: world.name('p') } }, ...spec } }
  const { path } = await make(world, budgets(world), wanted)
  await world.eventually(`${name} is counted`, async () => {
    const now = expect(await world.get(path), 200)
    if (at(now.body, 'status.observedGeneration') === 1 && Object.entries(counts).every(([field, count]) => at(now.body, 'status', field) === count)) return true
    await world.merge(`${path}/status`, { metadata: { resourceVersion: textAt(now.body, 'metadata.resourceVersion') }, status: { ...counts, expectedPods: 1, observedGeneration: 1 } })
    return false
  })
  return path
}

const evict = (world: World, path: string, deleteOptions?: object): Promise<Answer> => world.post(`${path}/eviction`, {
  apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: path.split('/').at(-1), namespace: world.namespace }, ...(deleteOptions === undefined ? {} : { deleteOptions }),
})

const isGoing = async (world: World, path: string): Promise<boolean> => textAt(expect(await world.get(path), 200).body, 'metadata.deletionTimestamp') !== ''

export const evictionCases: readonly Case[] = [
  {
    name: 'an eviction that a disruption budget refuses is a 429 that names the budget, and the pod stays',
    async run(world) {
      const path = await readyPod(world)
      await budget(world, world.name('b'), { currentHealthy: 1, desiredHealthy: 1, disruptionsAllowed: 0 })
      const refused = expect(await evict(world, path), 429, 'TooManyRequests')
      assert.is(textAt(refused.body, 'message'), 'Cannot evict pod as it would violate the pod\'s disruption budget.')
      const [cause] = listAt(refused.body, 'details', 'causes')
      assert.equal([textAt(cause, 'reason'), textAt(cause, 'message')], ['DisruptionBudget', `The disruption budget ${world.name('b')} needs 1 healthy pods and has 1 currently`])
      assert.not(await isGoing(world, path))
    },
  },
  {
    name: 'an eviction that a disruption budget allows is done, and spends it',
    async run(world) {
      const path = await readyPod(world)
      const allowed = await budget(world, world.name('b'), { currentHealthy: 1, desiredHealthy: 0, disruptionsAllowed: 1 })
      expect(await evict(world, path), 201)
      assert.ok(await isGoing(world, path))
      const conditions = listAt(expect(await world.get(path), 200).body, 'status.conditions')
      assert.ok(conditions.some((one) => textAt(one, 'type') === 'DisruptionTarget' && textAt(one, 'reason') === 'EvictionByEvictionAPI'))
      assert.is(at(expect(await world.get(allowed), 200).body, 'status.disruptionsAllowed'), 0)
    },
  },
  {
    name: 'a dry-run eviction asks the budget, and spends nothing',
    async run(world) {
      const path = await readyPod(world)
      const allowed = await budget(world, world.name('b'), { currentHealthy: 1, desiredHealthy: 0, disruptionsAllowed: 1 })
      expect(await evict(world, path, { dryRun: ['All'] }), 201)
      assert.not(await isGoing(world, path))
      assert.is(at(expect(await world.get(allowed), 200).body, 'status.disruptionsAllowed'), 1)
    },
  },
  {
    name: 'a pod that is not ready goes while its budget has enough without it, and under AlwaysAllow in any case',
    async run(world) {
      const path = await readyPod(world, 'False')
      await budget(world, world.name('b'), { currentHealthy: 0, desiredHealthy: 1, disruptionsAllowed: 0 })
      expect(await evict(world, path), 429, 'TooManyRequests')
      expect(await world.remove(`${budgets(world)}/${world.name('b')}`), 200)
      await budget(world, world.name('c'), { currentHealthy: 0, desiredHealthy: 1, disruptionsAllowed: 0 }, { unhealthyPodEvictionPolicy: 'AlwaysAllow' })
      expect(await evict(world, path), 201)
    },
  },
  {
    name: 'a pod that is going already is evicted again whatever its budget says',
    async run(world) {
      const path = await readyPod(world)
      await budget(world, world.name('b'), { currentHealthy: 1, desiredHealthy: 1, disruptionsAllowed: 0 })
      expect(await world.remove(path), 200)
      expect(await evict(world, path), 201)
    },
  },
  {
    name: 'a pod with two budgets cannot be evicted: 500',
    async run(world) {
      const path = await readyPod(world)
      for (const hint of ['b', 'c']) await budget(world, world.name(hint), { currentHealthy: 1, desiredHealthy: 0, disruptionsAllowed: 1 })
      expect(await evict(world, path), 500)
      assert.not(await isGoing(world, path))
    },
  },
  {
    name: 'an eviction that means another uid is refused with 409, one of no pod with 404',
    async run(world) {
      const path = await readyPod(world)
      expect(await evict(world, path, { preconditions: { uid: '11111111-1111-1111-1111-111111111111' } }), 409, 'Conflict')
      assert.not(await isGoing(world, path))
      expect(await evict(world, `${pods(world)}/${world.name('none')}`), 404, 'NotFound')
    },
  },
  {
    name: 'an eviction must bear the name of the pod in its path',
    async run(world) {
      const path = await readyPod(world)
      expect(await world.post(`${path}/eviction`, { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'another' } }), 400, 'BadRequest')
    },
  },
]
