import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startAgent } from '../../../agent/agent.ts'
import type { KubeObject } from '../../../coordinator/api.ts'
import { minute, settledWorld } from '../settled-world.ts'

const test = suite('control loops')

const outOfService = { key: 'node.kubernetes.io/out-of-service', effect: 'NoSchedule' } as const

test('when every node is silent no eviction begins, and it does not once one is back', async () => {
  const { world, pods, taints, pass, when, ready, node } = await settledWorld(1)
  for (const name of world.nodes.keys()) world.isolate(name)
  await pass(2 * minute)
  for (const name of world.nodes.keys()) {
    assert.is(ready(node(name)), 'Unknown')
    assert.ok(!taints(name).includes('unreachable:NoExecute'), name)
  }
  await pass(8 * minute)
  assert.ok(!pods().some(({ metadata }) => metadata.deletionTimestamp !== undefined))
  world.heal()
  assert.ok(await when(() => [...world.nodes.keys()].every((name) => ready(node(name)) === 'True'), minute))
})

test('the taints of a silent node come off when it is back', async () => {
  const { world, taints, when } = await settledWorld(2)
  world.isolate('node-2')
  assert.ok(await when(() => taints('node-2').includes('unreachable:NoExecute'), 2 * minute))
  assert.ok(taints('node-2').includes('unreachable:NoSchedule'))
  world.heal()
  assert.ok(await when(() => taints('node-2').length === 0, minute))
})

test('a foreign taint is left where it is', async () => {
  const { world, taint, taints, when, pass } = await settledWorld(3)
  void taint('node-2', { key: 'holdfast.dev/quarantine', effect: 'NoSchedule' })
  world.isolate('node-2')
  assert.ok(await when(() => taints('node-2').includes('unreachable:NoExecute'), 2 * minute))
  world.heal()
  await pass(minute)
  assert.equal(taints('node-2'), ['quarantine:NoSchedule'])
})

test('a NoExecute taint of somebody\'s own deletes what does not tolerate it within a second', async () => {
  const { podOf, taint, when } = await settledWorld(4)
  const pod = podOf('plain')
  void taint(pod?.spec.nodeName ?? '', { key: 'example.com/out', effect: 'NoExecute' })
  assert.ok(await when(() => podOf('plain')?.metadata.uid !== pod?.metadata.uid, 1_000))
})

test('an eviction that waits is called off when the taint goes in time', async () => {
  const { podOf, taint, pass } = await settledWorld(5)
  const pod = podOf('plain')
  const on = pod?.spec.nodeName ?? ''
  const unreachable = { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' } as const
  void taint(on, unreachable)
  await pass(4 * minute)
  void taint(on)
  await pass(4 * minute)
  assert.is(podOf('plain')?.metadata.uid, pod?.metadata.uid)
})

test('pod garbage collection takes terminating pods of a node that is out of service and not Ready, not before', async () => {
  const { world, podOf, pods, remove, taint, pass, when, ready, node } = await settledWorld(6)
  const pod = podOf('db')
  assert.ok(pod !== undefined)
  const on = pod.spec.nodeName ?? ''
  world.cutPower(on)
  void taint(on, outOfService)
  void remove(pod)
  await pass(25_000)
  assert.is(ready(node(on)), 'True')
  assert.ok(pods().some(({ metadata }) => metadata.uid === pod.metadata.uid), 'the node still shows Ready')
  assert.ok(await when(() => ready(node(on)) === 'Unknown', minute))
  const began = world.clock.now()
  assert.ok(await when(() => !pods().some(({ metadata }) => metadata.uid === pod.metadata.uid), minute / 2))
  assert.ok(world.clock.now() - began <= 21_000)
})

test('a collector whose cache lags acts on a taint that is gone', async () => {
  const { world, podOf, pods, remove, taint, pass, when, ready, node } = await settledWorld(7)
  const pod = podOf('db')
  assert.ok(pod !== undefined)
  const on = pod.spec.nodeName ?? ''
  world.cutPower(on)
  assert.ok(await when(() => ready(node(on)) === 'Unknown', 2 * minute))
  void taint(on, outOfService)
  await pass(1_000)
  world.loops()?.caches.nodes.setLag(minute)
  void taint(on)
  await pass(500)
  void remove(pod)
  assert.ok(await when(() => !pods().some(({ metadata }) => metadata.uid === pod.metadata.uid), minute / 2))
})

test('the pods of a deleted Node are swept within some two minutes', async () => {
  const { world, podOf, pods, when } = await settledWorld(8)
  const pod = podOf('plain')
  const on = pod?.spec.nodeName ?? ''
  world.cutPower(on)
  void world.api.remove(`/api/v1/nodes/${on}`)
  assert.ok(await when(() => !pods().some(({ metadata }) => metadata.uid === pod?.metadata.uid), 2 * minute))
})

test('a StatefulSet\'s pod set to Failed is deleted and created anew within moments', async () => {
  const { world, podOf, patchStatus, pods, when } = await settledWorld(9)
  const pod = podOf('db')
  assert.ok(pod !== undefined)
  world.freeze(pod.spec.nodeName ?? '')
  const began = world.clock.now()
  void patchStatus(pod, { phase: 'Failed' })
  assert.ok(await when(() => pods().some(({ metadata }) => metadata.name === 'db-0' && metadata.uid !== pod.metadata.uid), 5_000))
  assert.ok(world.clock.now() - began < 100, `${world.clock.now() - began} ms`)
})

test('a StatefulSet that is scaled down gives up its highest pod, and makes it anew when it is scaled up', async () => {
  const { world, podOf, pods, when } = await settledWorld(13)
  const pod = podOf('db')
  assert.ok(pod !== undefined)
  const scale = (replicas: number) => void world.api.patch('/apis/apps/v1/namespaces/work/statefulsets/db', 'merge', { spec: { replicas } })
  scale(0)
  assert.ok(await when(() => !pods().some(({ metadata }) => metadata.name === 'db-0'), minute))
  scale(1)
  assert.ok(await when(() => pods().some(({ metadata }) => metadata.name === 'db-0' && metadata.uid !== pod.metadata.uid), minute))
})

test('a StatefulSet waits for ever for a pod that is only Terminating, a ReplicaSet does not', async () => {
  const { world, podOf, pods, remove, pass } = await settledWorld(10)
  const [db, plain] = [podOf('db'), podOf('plain')]
  assert.ok(db !== undefined && plain !== undefined)
  for (const { spec } of [db, plain]) world.freeze(spec.nodeName ?? '')
  void remove(db)
  void remove(plain)
  await pass(30_000)
  assert.equal(pods().filter(({ metadata }) => metadata.name === 'db-0').map(({ metadata }) => metadata.uid), [db.metadata.uid])
  assert.is(pods().filter(({ metadata }) => metadata.labels?.['app'] === 'plain').length, 2)
})

test('a tainted or cordoned node gets no new pod, and a tolerating DaemonSet keeps its own there', async () => {
  const { world, podOf, remove, when, taint, pass, pods, ready } = await settledWorld(11, { startAgent: () => ({ stop: async () => undefined }) })
  const pod = podOf('plain')
  assert.ok(pod !== undefined)
  const on = pod.spec.nodeName ?? ''
  void taint(on, { key: 'holdfast.dev/quarantine', effect: 'NoSchedule' })
  void world.api.patch(`/api/v1/nodes/${[...world.nodes.keys()].find((name) => name !== on)}`, 'merge', { spec: { unschedulable: true } })
  await pass(500)
  void remove(pod)
  assert.ok(await when(() => ready(podOf('plain')) === 'True' && podOf('plain')?.metadata.uid !== pod.metadata.uid, minute))
  assert.is.not(podOf('plain')?.spec.nodeName, on)
  const agents = pods().filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/name'] === 'holdfast-agent')
  assert.equal(agents.map(({ spec }) => spec.nodeName).toSorted(), [...world.nodes.keys()])
})

test('a pod that fits nowhere is scheduled once a node fits', async () => {
  const { world, podOf, remove, taint, pass, when } = await settledWorld(12)
  for (const name of world.nodes.keys()) void taint(name, { key: 'example.com/no', effect: 'NoSchedule' })
  await pass(500)
  const pod = podOf('plain')
  assert.ok(pod !== undefined)
  void remove(pod, 0)
  await pass(20_000)
  assert.is(podOf('plain')?.spec.nodeName, undefined)
  void taint('node-2')
  assert.ok(await when(() => podOf('plain')?.spec.nodeName === 'node-2', 1_000))
})

interface Owner extends KubeObject { status?: Record<string, unknown> }

test('owners tell which generation of theirs was seen to, and count what is ready and available', async () => {
  const { world, peek, when } = await settledWorld(20, { startAgent: (host) => startAgent(host, { version: 'test', kubeletRoot: '/var/lib/kubelet', whisperPort: 0 }) })
  const status = (collection: string, name: string) => peek<Owner>(collection).find(({ metadata }) => metadata.name.startsWith(name))?.status
  const web = { observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 }
  assert.equal(status('deployments.apps', 'web'), web)
  assert.equal(status('replicasets.apps', 'web'), { observedGeneration: 1, replicas: 1, fullyLabeledReplicas: 1, readyReplicas: 1, availableReplicas: 1 })
  assert.equal(status('statefulsets.apps', 'db'), { observedGeneration: 1, replicas: 1, currentReplicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 })
  const everywhere = { observedGeneration: 1, currentNumberScheduled: 3, desiredNumberScheduled: 3, numberMisscheduled: 0, updatedNumberScheduled: 3, numberReady: 3, numberAvailable: 3 }
  assert.equal(status('daemonsets.apps', 'holdfast-agent'), everywhere)

  void world.api.patch('/apis/apps/v1/namespaces/work/deployments/web', 'merge', { spec: { replicas: 2 } })
  assert.ok(await when(() => status('deployments.apps', 'web')?.['observedGeneration'] === 2, 5_000))
  assert.ok(await when(() => status('deployments.apps', 'web')?.['replicas'] === 2, 5_000))
  assert.is(status('deployments.apps', 'web')?.['unavailableReplicas'], 1, 'its volume is attached elsewhere')
})

test('a node that a daemon may not begin on is none that it is desired on, and one that it may not be on is counted as wrong', async () => {
  const { world, peek, taint, when } = await settledWorld(21, { startAgent: (host) => startAgent(host, { version: 'test', kubeletRoot: '/var/lib/kubelet', whisperPort: 0 }) })
  const status = () => peek<Owner>('daemonsets.apps')[0]?.status
  const { tolerations: _, ...spec } = (peek<KubeObject & { spec: { template: { spec: { tolerations?: unknown } } } }>('daemonsets.apps')[0])?.spec.template.spec ?? {}
  void world.api.patch('/apis/apps/v1/namespaces/holdfast-system/daemonsets/holdfast-agent', 'merge', { spec: { template: { spec: { ...spec, tolerations: null } } } })
  void taint('node-2', { key: 'example.com/out', effect: 'NoSchedule' })
  assert.ok(await when(() => status()?.['desiredNumberScheduled'] === 2, 20_000))
  assert.equal([status()?.['numberMisscheduled'], status()?.['currentNumberScheduled'], status()?.['observedGeneration']], [1, 2, 2])
})

test.run()
