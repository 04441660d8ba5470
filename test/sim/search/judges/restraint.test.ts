import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../../../coordinator/api.ts'
import { judgeRestraint } from '../../../../sim/search/judges/restraint.ts'
import { quietWorld } from './quiet-world.ts'

const test = suite('search: the judge of restraint')

const podPath = '/api/v1/namespaces/work/pods/db-0'
const failed = { status: { phase: 'Failed' } }

test('an order off to a node that is well is needless, whoever is asked for it; to a dead one it is not', async () => {
  const { world, wellness, ears, victim, run } = await quietWorld()
  const judge = judgeRestraint(world, wellness, ears)
  await run(21_000)
  world.freeze(victim)
  void world.devices.get(`bmc-${victim}`)?.order('1', 'off')
  assert.equal(judge.found(), [])
  const other = [...world.nodes.keys()].find((name) => name !== victim) ?? ''
  void world.devices.get(`bmc-${other}`)?.order('1', 'off')
  assert.equal(judge.found().map(({ judge: whose, node }) => [whose, node]), [['restraint', other]])
})

test('the outlet decides who was struck, not its name', async () => {
  const { world, wellness, ears, victim, run } = await quietWorld()
  const judge = judgeRestraint(world, wellness, ears)
  await run(21_000)
  const other = [...world.nodes.keys()].find((name) => name !== victim) ?? ''
  world.devices.get(`bmc-${victim}`)?.wire('1', world.nodes.get(other)?.machine)
  world.freeze(victim)
  void world.devices.get(`bmc-${victim}`)?.order('1', 'off')
  assert.equal(judge.found().map(({ node }) => node), [other])
})

test('a pod deleted from a node that is well: by its status, by its object, by an eviction', async () => {
  for (const act of ['status', 'object', 'eviction'] as const) {
    const { world, wellness, ears, victim, run, product, pod, done } = await quietWorld()
    const judge = judgeRestraint(world, wellness, ears)
    await run(21_000)
    const { uid = '' } = pod().metadata
    await done<unknown>(act === 'status' ? product.patch(`${podPath}/status`, 'strategic', { metadata: { uid }, ...failed })
      : act === 'object' ? product.remove(podPath, { gracePeriodSeconds: 0, preconditions: { uid } })
        : product.create(`${podPath}/eviction`, { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'db-0', namespace: 'work' } }))
    assert.ok(judge.found().length > 0 && judge.found().every(({ node }) => node === victim), act)
  }
})

const byHand = { apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeFence', metadata: { name: 'by-hand' } }
const fencesPath = '/apis/holdfast.dev/v1alpha1/nodefences'

test('a node that a person wants fenced may be ordered off and have its pods evicted, that one alone, and until it is over', async () => {
  const { world, wellness, ears, victim, run, product, done } = await quietWorld()
  const judge = judgeRestraint(world, wellness, ears)
  await run(21_000)
  const other = [...world.nodes.keys()].find((name) => name !== victim) ?? ''
  const evict = () => done<unknown>(product.create(`${podPath}/eviction`, { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'db-0', namespace: 'work' } }))
  await done<unknown>(world.api.create(fencesPath, { ...byHand, spec: { nodeName: victim } } as KubeObject))
  await evict()
  void world.devices.get(`bmc-${victim}`)?.order('1', 'off')
  assert.equal(judge.found(), [])
  void world.devices.get(`bmc-${other}`)?.order('1', 'off')
  assert.equal(judge.found().map(({ node }) => node), [other])
})

test('who asked for one node asked for no other, and what the product opens by itself nobody asked for', async () => {
  for (const whose of ['another node', 'the product', 'over'] as const) {
    const { world, wellness, ears, victim, run, product, done } = await quietWorld()
    const judge = judgeRestraint(world, wellness, ears)
    await run(21_000)
    const other = [...world.nodes.keys()].find((name) => name !== victim) ?? ''
    const made = { ...byHand, spec: { nodeName: whose === 'another node' ? other : victim } } as KubeObject
    await done<unknown>((whose === 'the product' ? product : world.api).create(fencesPath, made))
    if (whose === 'over') await done<unknown>(product.patch(`${fencesPath}/by-hand/status`, 'merge', { status: { phase: 'Final' } }))
    void world.devices.get(`bmc-${victim}`)?.order('1', 'off')
    assert.equal(judge.found().map(({ node }) => node), [victim], whose)
  }
})

test('what others delete, what misses its pod, and what struck a node that has just come back is not counted', async () => {
  const { world, wellness, ears, victim, run, product, pod, done } = await quietWorld()
  const judge = judgeRestraint(world, wellness, ears)
  await run(21_000)
  await done(product.remove(podPath, { gracePeriodSeconds: 0, preconditions: { uid: 'of another one' } }))
  await done(product.patch(`${podPath}/status`, 'strategic', { metadata: { uid: 'of another one' }, ...failed }))
  await done(world.api.remove('/api/v1/namespaces/work/pods/db-0', { gracePeriodSeconds: 0, preconditions: { uid: pod().metadata.uid ?? '' } }))
  assert.equal(judge.found(), [])
  await run(30_000)
  world.freeze(victim)
  await run(2_000)
  world.thaw(victim)
  await run(2_000)
  await done(product.remove(podPath, { gracePeriodSeconds: 0, preconditions: { uid: pod().metadata.uid ?? '' } }))
  if (pod()?.spec.nodeName === victim) assert.equal(judge.found(), [])
})

test('the object that is left of a pod that is over is buried, and that is no deletion', async () => {
  const { world, wellness, ears, run, product, pod, done } = await quietWorld()
  const judge = judgeRestraint(world, wellness, ears)
  await run(21_000)
  const { uid = '' } = pod().metadata
  // Both before any controller comes to it.
  await done(Promise.all([world.api.patch(`${podPath}/status`, 'strategic', { metadata: { uid }, ...failed }), product.remove(podPath, { gracePeriodSeconds: 0, preconditions: { uid } })]))
  assert.equal(judge.found(), [])
})

test('a write that is kept back is judged by what it meets when it lands', async () => {
  const { world, wellness, ears, victim, run, product, pod } = await quietWorld()
  const judge = judgeRestraint(world, wellness, ears)
  await run(21_000)
  world.server?.faults.set([{ does: 'slow', by: 3_000 }])
  void product.remove(podPath, { gracePeriodSeconds: 0, preconditions: { uid: pod().metadata.uid ?? '' } })
  await run(2_000)
  assert.equal(ears.acts, [])
  world.freeze(victim)
  await run(2_000)
  assert.equal([ears.acts.map(({ node, wellFor }) => [node, wellFor]), judge.found()], [[[victim, 0]], []])
})

test('a node under quarantine on which something was left over for a minute was not well, and one without either was', async () => {
  for (const [what, span, count] of [['both', 65_000, 0], ['both', 40_000, 1], ['quarantine', 65_000, 1], ['mount', 65_000, 1]] as const) {
    const { world, wellness, ears, victim, run, taint, sight } = await quietWorld()
    const judge = judgeRestraint(world, wellness, ears)
    if (what !== 'mount') await taint(victim, { key: 'holdfast.dev/quarantine', effect: 'NoSchedule' })
    const path = '/var/lib/kubelet/pods/gone/volumes/kubernetes.io~csi/pv/mount'
    if (what !== 'quarantine') world.nodes.get(victim)?.machine.mounts.set(path, { path, source: 'ext4 /dev/x' })
    for (let passed = 0; passed <= span; passed += 5_000) {
      judge.look(sight())
      await run(5_000)
    }
    void world.devices.get(`bmc-${victim}`)?.order('1', 'off')
    assert.is(judge.found().length, count, `${what}, ${span}`)
  }
})

test('a node that nobody could hear was not well', async () => {
  const { world, wellness, ears, victim, run } = await quietWorld()
  const judge = judgeRestraint(world, wellness, ears)
  await run(21_000)
  world.isolate(victim)
  await run(500)
  void world.devices.get(`bmc-${victim}`)?.order('1', 'off')
  assert.equal(judge.found(), [])
})

test('a quarantine of a node that was well is counted, and no violation; of a dead one it is not counted', async () => {
  const { world, wellness, ears, victim, run, product, done, node } = await quietWorld()
  const judge = judgeRestraint(world, wellness, ears)
  await run(21_000)
  const quarantine = (name: string) => done(product.patch(`/api/v1/nodes/${name}`, 'json', [
    { op: 'test', path: '/metadata/uid', value: node(name).metadata.uid }, { op: 'add', path: '/spec/taints', value: [{ key: 'holdfast.dev/quarantine', effect: 'NoSchedule' }] },
  ]))
  world.freeze(victim)
  await quarantine(victim)
  assert.is(judge.quarantined(), 0)
  await quarantine([...world.nodes.keys()].find((name) => name !== victim) ?? '')
  assert.is(judge.quarantined(), 1)
  assert.equal(judge.found(), [])
})

test.run()
