import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { AgentHost } from '../../agent/host.ts'
import { stagingPath } from '../../sim/mounts.ts'
import type { LeaseObject } from '../../sim/objects.ts'
import { minute, settledWorld } from './settled-world.ts'

const test = suite('kubelet')

const ownTaint = { key: 'example.com/quarantine', effect: 'NoExecute' } as const
const mounted = (world: Awaited<ReturnType<typeof settledWorld>>['world'], node: string) =>
  [...(world.nodes.get(node)?.machine.mounts.values() ?? [])].filter(({ volume }) => volume !== undefined)

test('a node is registered with what the product reads of it, and its Lease moves every ten seconds', async () => {
  const { world, node, peek, pass } = await settledWorld(1)
  const { metadata, status } = node('node-1')
  assert.is(metadata.annotations?.['volumes.kubernetes.io/controller-managed-attach-detach'], 'true')
  assert.is(status?.nodeInfo?.bootID, world.nodes.get('node-1')?.machine.boot()?.id)
  assert.is(status?.nodeInfo?.systemUUID, world.nodes.get('node-1')?.machine.settings.machineId)
  assert.is(status?.addresses?.[0]?.address, '10.0.0.11')
  assert.is(status?.daemonEndpoints?.kubeletEndpoint?.Port, 10_250)
  assert.is(peek('csinodes.storage.k8s.io').length, 3)
  const renewed = () => peek<LeaseObject>('leases.coordination.k8s.io').find(({ metadata: { name } }) => name === 'node-1')?.spec?.renewTime
  const seen = new Set<string | undefined>()
  for (let second = 0; second < 60; second++) {
    await pass(1_000)
    seen.add(renewed())
  }
  assert.ok(seen.size >= 6 && seen.size <= 7, `${seen.size} renewals in a minute`)
})

test('a volume is reported in use before it is mounted', async () => {
  const { world, podOf, remove, ready, node, when } = await settledWorld(2)
  const old = podOf('web')
  assert.ok(old !== undefined)
  void remove(old)
  assert.ok(await when(() => podOf('web') !== undefined && podOf('web')?.metadata.uid !== old.metadata.uid && podOf('web')?.spec.nodeName !== undefined, minute))
  const target = podOf('web')?.spec.nodeName ?? ''
  const uid = podOf('web')?.metadata.uid ?? ''
  let early = 0
  await when(() => {
    const inUse = (node(target).status?.volumesInUse ?? []).some((name) => name.endsWith('^vol-web'))
    if (!inUse && mounted(world, target).some(({ path, volume }) => volume === 'vol-web' && path.includes(uid))) early++
    return ready(podOf('web')) === 'True'
  }, minute)
  assert.is(ready(podOf('web')), 'True')
  assert.is(early, 0)
})

test('a pod that somebody else called Failed, and nobody deletes, runs on until the kubelet looks at it, and is stopped then', async () => {
  const { world, podOf, pods, patchStatus, pass, when } = await settledWorld(12)
  const pod = podOf('web')
  assert.ok(pod !== undefined)
  const [uid, on] = [pod.metadata.uid ?? '', pod.spec.nodeName ?? '']
  const runs = () => world.nodes.get(on)?.runtime.containers.has(uid) === true
  void patchStatus(pod, { phase: 'Failed' })
  await pass(200)
  assert.ok(runs(), 'not at once')
  assert.ok(await when(() => !runs(), 2 * minute))
  await pass(2_000)
  assert.not.ok(mounted(world, on).some(({ path }) => path.includes(uid)))
  assert.is(pods().find(({ metadata }) => metadata.uid === uid)?.status?.phase, 'Failed')
})

test('a deleted pod is stopped, then unmounted, and only then gone from the API', async () => {
  const { world, podOf, pods, remove, when } = await settledWorld(3)
  const pod = podOf('db')
  assert.ok(pod !== undefined)
  const [uid, on] = [pod.metadata.uid ?? '', pod.spec.nodeName ?? '']
  void remove(pod)
  await when(() => !pods().some(({ metadata }) => metadata.uid === uid), minute)
  assert.not.ok(world.nodes.get(on)?.runtime.containers.has(uid))
  assert.not.ok(mounted(world, on).some(({ path }) => path.includes(uid)))
})

test('a pod that vanished from the API is ended and unmounted', async () => {
  const { world, podOf, remove, pass } = await settledWorld(4)
  const pod = podOf('db')
  assert.ok(pod !== undefined)
  const [uid, on] = [pod.metadata.uid ?? '', pod.spec.nodeName ?? '']
  void remove(pod, 0)
  await pass(15_000)
  assert.not.ok(world.nodes.get(on)?.runtime.containers.has(uid))
  assert.not.ok(mounted(world, on).some(({ path }) => path.includes(uid)))
  assert.not.ok(world.nodes.get(on)?.machine.podFolders.has(uid))
})

test('at its start a kubelet mounts for a second what belongs to pods that it refuses', async () => {
  const { world, podOf, taint, when, pass, peek } = await settledWorld(5)
  const pod = podOf('db')
  assert.ok(pod !== undefined)
  const on = pod.spec.nodeName ?? ''
  const before = world.storage.log.filter(({ kind }) => kind === 'mount').length
  world.cutPower(on)
  // No controller would leave the pod there: the controllers are away meanwhile, as in a control plane that restarts.
  world.partition({ from: ['controllers'], to: ['api'] })
  void taint(on, ownTaint)
  await pass(1_000)
  world.powerOn(on)
  assert.ok(await when(() => mounted(world, on).some(({ volume }) => volume === 'vol-data-db-0'), minute))
  assert.is(world.storage.log.filter(({ kind }) => kind === 'mount').length > before, true)
  await pass(5_000)
  assert.equal(mounted(world, on), [])
  const refused = peek('pods').find(({ metadata }) => metadata.uid === pod.metadata.uid) as typeof pod
  assert.equal([refused.status?.phase, refused.status?.reason], ['Failed', 'TaintToleration'])
})

test('without a VolumeAttachment nothing is mounted, at a start or later', async () => {
  const { world, podOf, taint, attachments, when, pass } = await settledWorld(6)
  const on = podOf('db')?.spec.nodeName ?? ''
  world.cutPower(on)
  world.partition({ from: ['controllers'], to: ['api'] })
  for (const { metadata, spec } of attachments()) if (spec.nodeName === on) void world.api.remove(`/apis/storage.k8s.io/v1/volumeattachments/${metadata.name}`)
  assert.ok(await when(() => !attachments().some(({ spec }) => spec.nodeName === on), minute))
  void taint(on, ownTaint)
  await pass(100)
  const before = world.storage.log.length
  world.powerOn(on)
  await pass(minute)
  assert.equal(mounted(world, on), [])
  assert.is(world.storage.log.length, before)
})

test('a kubelet that starts again under a NoExecute taint of somebody\'s kills what ran', async () => {
  const { world, podOf, taint, pass } = await settledWorld(7)
  const on = podOf('db')?.spec.nodeName ?? ''
  world.partition({ from: ['controllers'], to: ['api'] })
  world.killKubelet(on)
  void taint(on, ownTaint)
  await pass(1_000)
  assert.ok(world.nodes.get(on)?.runtime.containers.has(podOf('db')?.metadata.uid ?? ''))
  world.startKubelet(on)
  await pass(10_000)
  assert.is(world.nodes.get(on)?.runtime.containers.size, 0)
})

test('the kubelet\'s port answers while it lives, refuses when it is dead, and is silent with its machine', async () => {
  const { world, pass } = await settledWorld(8, { replicas: 1, startReplica: async () => ({ stop: async () => undefined }) })
  const from = world.replicas.host(0)
  const probe = async () => {
    let word: string | undefined
    void world.network.probe(from, '10.0.0.11', 10_250, 1_000).then((answer) => { word = answer })
    await pass(1_100)
    return word
  }
  assert.is(await probe(), 'answered')
  const end = world.resetKubeletPort('node-1')
  assert.is(await probe(), 'refused')
  end()
  world.firewallKubeletPort('node-1')
  assert.is(await probe(), 'silent')
  world.heal()
  world.killKubelet('node-1')
  assert.is(await probe(), 'refused')
  world.freeze('node-1')
  assert.is(await probe(), 'silent')
})

test('an agent gets its machine\'s files, a token that names its node, and its kubelet\'s word', async () => {
  const hosts = new Map<string, AgentHost>()
  const { world, pass } = await settledWorld(9, {
    startAgent: (host, { node }) => {
      hosts.set(node, host)
      return { stop: async () => undefined }
    },
  })
  const host = hosts.get('node-2')
  assert.ok(host !== undefined && hosts.size === 3)
  const ask = async <T>(question: Promise<T>) => {
    let answer: T | undefined
    void question.then((value) => { answer = value })
    await pass(500)
    return answer
  }
  const token = await ask(host.read('token'))
  const review = await world.api.create<{ status: { authenticated: boolean; user: { extra?: Record<string, string[]> } } }>('/apis/authentication.k8s.io/v1/tokenreviews', {
    apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token, audiences: ['holdfast-coordinator'] },
  })
  assert.ok(review.ok && review.value.status.authenticated)
  assert.equal(review.ok && review.value.status.user.extra?.['authentication.kubernetes.io/node-name'], ['node-2'])
  assert.is((await ask(host.read('boot-id')))?.trim(), world.nodes.get('node-2')?.machine.boot()?.id)
  assert.match((await ask(host.read('mounts'))) ?? '', '/var/lib/kubelet/pods/')
  assert.ok(((await ask(host.podFolders())) ?? []).length > 0)
  await ask(host.disk.save('replicas', 'text'))
  assert.is(await ask(host.disk.load('replicas')), 'text')
  assert.is(await ask(host.kubeletHealth(100)), 'ok')
  world.killKubelet('node-2')
  assert.is(await ask(host.kubeletHealth(100)), 'ill')
})

test('an agent that is killed is started again by its kubelet, unless it is to stay dead', async () => {
  let starts = 0
  const { world, pass, when } = await settledWorld(10, {
    startAgent: () => {
      starts++
      return { stop: async () => undefined }
    },
  })
  assert.is(starts, 3)
  world.killAgent('node-1', false)
  assert.ok(await when(() => starts === 4, minute))
  world.killAgent('node-1')
  await pass(5 * minute)
  assert.is(starts, 4)
  world.startAgent('node-1')
  assert.ok(await when(() => starts === 5, 6 * minute))
})

test('an agent that is killed again and again is kept waiting, 10 s and then twice as long each time', async () => {
  const startedAt: number[] = []
  const { world, pass, when } = await settledWorld(10, { startAgent: (host) => {
    startedAt.push(host.clock.now())
    return { stop: async () => undefined }
  } })
  const first = startedAt.length
  const waits: number[] = []
  for (const count of [1, 2, 3]) {
    const killedAt = world.clock.now()
    world.killAgent('node-1', false)
    assert.ok(await when(() => startedAt.length === first + count, minute))
    waits.push(world.clock.now() - killedAt)
    await pass(1_000)
  }
  const least = [0, 10_000, 20_000]
  assert.ok(waits.every((wait, index) => wait >= (least[index] ?? 0) && wait < (least[index] ?? 0) + 3_000), waits.join())
})

test('the same volume is staged once on a node', async () => {
  const { world, nodeOf } = await settledWorld(11)
  const machine = world.nodes.get(nodeOf('db'))?.machine
  assert.ok(machine?.mounts.has(stagingPath('csi.holdfast.dev', 'vol-data-db-0')))
})

test.run()
