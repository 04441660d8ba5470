import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { AttachmentObject, NodeObject, PodObject } from '../../sim/objects.ts'
import { createWorld, type World } from '../../sim/world.ts'

const test = suite('world')

const minute = 60_000

async function settledWorld(seed: number | string = 1, wanted: Partial<World['settings']> = {}) {
  const world = await createWorld({ seed, ...wanted })
  await world.turn().runFor(minute / 2)
  return world
}

// What the in-memory server keeps has the shapes of Kubernetes.
const pods = (world: World) => (world.server?.peek('pods') ?? []) as PodObject[]
const node = (world: World, name: string) => (world.server?.peek('nodes') ?? []).find(({ metadata }) => metadata.name === name) as NodeObject
const attachments = (world: World) => (world.server?.peek('volumeattachments.storage.k8s.io') ?? []) as AttachmentObject[]
const podOf = (world: World, app: string) => pods(world).filter((pod) => pod.metadata.labels?.['app'] === app && pod.metadata.deletionTimestamp === undefined)[0]
const nodeOf = (world: World, app: string) => podOf(world, app)?.spec.nodeName ?? ''
const ready = (object: NodeObject | PodObject | undefined) => object?.status?.conditions?.find(({ type }) => type === 'Ready')?.status

test('a new world runs its workload, each volume written from one place', async () => {
  const world = await settledWorld()
  for (const app of ['db', 'web', 'plain']) assert.is(ready(podOf(world, app)), 'True', app)
  assert.is(attachments(world).length, 2)
  assert.is(world.judges.writersOf('vol-data-db-0').length, 1)
  assert.is(world.judges.writersOf('vol-web')[0]?.node, nodeOf(world, 'web'))
  assert.equal(world.judges.twoWriters(), [])
})

test('the same seed gives the same transcript, another seed another', async () => {
  const [one, again, other] = [await transcript(5), await transcript(5), await transcript(6)]
  assert.ok(one.length > 5_000, `${one.length}`)
  assert.ok(one === again, 'two runs of one seed differ')
  assert.ok(one !== other, 'two seeds do not differ')
})

async function transcript(seed: number): Promise<string> {
  const world = await createWorld({ seed, logFrom: 'debug' })
  await world.turn().runFor(minute)
  world.cutPower(nodeOf(world, 'db'))
  await world.turn().runFor(4 * minute)
  return JSON.stringify([world.truth.text(), world.storage.log, world.server?.peek('pods'), world.server?.revision()])
}

test('plain Kubernetes after a power loss: Ready goes within a minute, stateless pods move after five, volumes never', async () => {
  const world = await settledWorld(2)
  const victim = nodeOf(world, 'db')
  world.cutPower(victim)
  const began = world.clock.now()
  const after = () => world.clock.now() - began
  assert.ok(await world.turn().runWhen(() => ready(node(world, victim)) === 'Unknown', 2 * minute))
  assert.ok(after() > 38_000 && after() < 57_000, `Ready lost after ${after()} ms`)
  const stateless = nodeOf(world, 'plain') === victim
  assert.ok(await world.turn().runWhen(() => pods(world).some(({ metadata }) => metadata.deletionTimestamp !== undefined), 10 * minute))
  assert.ok(after() > 335_000 && after() < 360_000, `pods deleted after ${after()} ms`)
  if (stateless) assert.ok(await world.turn().runWhen(() => ready(podOf(world, 'plain')) === 'True' && nodeOf(world, 'plain') !== victim, minute))
  await world.turn().runFor(8 * minute)
  assert.ok(attachments(world).some(({ spec }) => spec.nodeName === victim), 'the volumes stay where they are')
  assert.ok(pods(world).some(({ metadata }) => metadata.name === 'db-0' && metadata.deletionTimestamp !== undefined), 'db-0 stays Terminating')
  assert.is(world.judges.writersOf('vol-data-db-0').length, 0)
})

/** What a person who knows that the node is off would do by hand. */
async function freeByHand(world: World, victim: string) {
  const taint = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoSchedule' }
  await world.api.patch(`/api/v1/nodes/${victim}`, 'merge', { spec: { taints: [taint] } })
  for (const pod of pods(world)) {
    if (pod.spec.nodeName !== victim) continue
    await world.api.remove(`/api/v1/namespaces/${pod.metadata.namespace}/pods/${pod.metadata.name}`, { gracePeriodSeconds: 0 })
  }
}

test('with the taint and the pods deleted by hand the volumes are free in two seconds, while the node still shows Ready', async () => {
  const world = await settledWorld(3)
  const victim = nodeOf(world, 'db')
  world.cutPower(victim)
  await world.turn().runFor(3_000)
  void freeByHand(world, victim)
  assert.ok(await world.turn().runWhen(() => !attachments(world).some(({ spec }) => spec.nodeName === victim), 2_000))
  assert.is(ready(node(world, victim)), 'True')
  assert.ok(await world.turn().runWhen(() => ready(podOf(world, 'db')) === 'True', minute / 2))
  assert.is(world.judges.writersOf('vol-data-db-0')[0]?.node, nodeOf(world, 'db'))
  assert.equal(world.judges.twoWriters(), [])
  assert.equal(world.judges.twins(), [])
})

test('the same done to a node that is only frozen ends in two writers, and the judges see it', async () => {
  const world = await settledWorld(4)
  const victim = nodeOf(world, 'db')
  world.freeze(victim)
  await world.turn().runFor(3_000)
  void freeByHand(world, victim)
  assert.ok(await world.turn().runWhen(() => ready(podOf(world, 'db')) === 'True', minute / 2))
  assert.equal(world.judges.twoWriters(), [], 'nothing has happened yet')
  world.thaw(victim)
  await world.turn().runFor(20_000)
  const [found] = world.judges.twoWriters().filter(({ volume }) => volume === 'vol-data-db-0')
  assert.ok(found !== undefined)
  assert.match(found.one, victim)
  assert.ok(world.judges.wroteAfterRelease().length > 0)
  assert.ok(world.judges.twins().some(({ pod }) => pod === 'work/db-0'))
})

test('a node that boots again ends what was left Terminating, and the volumes follow their pods', async () => {
  const world = await settledWorld(5)
  const victim = nodeOf(world, 'db')
  world.cutPower(victim)
  await world.turn().runFor(7 * minute)
  const terminating = () => pods(world).filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
  assert.ok(terminating().some(({ metadata }) => metadata.name === 'db-0'))
  world.powerOn(victim)
  assert.ok(await world.turn().runWhen(() => terminating().length === 0, minute))
  for (const app of ['db', 'web']) assert.ok(await world.turn().runWhen(() => ready(podOf(world, app)) === 'True', minute), app)
  const wanted = ['db', 'web'].map((app) => nodeOf(world, app)).toSorted()
  assert.equal(attachments(world).map(({ spec }) => spec.nodeName).toSorted(), wanted)
  assert.equal(world.judges.twoWriters(), [])
})

test('a short reboot shows in the API as a new boot id and nothing else', async () => {
  const world = await settledWorld(6)
  const victim = nodeOf(world, 'db')
  const [before, uid] = [node(world, victim).status?.nodeInfo?.bootID, podOf(world, 'db')?.metadata.uid]
  world.reboot(victim, 2_000)
  let lostReady = false
  await world.turn().runWhen(() => {
    lostReady ||= ready(node(world, victim)) !== 'True'
    return false
  }, minute)
  assert.not.ok(lostReady)
  assert.is.not(node(world, victim).status?.nodeInfo?.bootID, before)
  assert.is(podOf(world, 'db')?.metadata.uid, uid)
  assert.is(world.judges.writersOf('vol-data-db-0').length, 1)
})

test('a partitioned node writes on, and hears what was decided once it is back', async () => {
  const world = await settledWorld(7)
  const victim = nodeOf(world, 'db')
  world.isolate(victim)
  await world.turn().runFor(2 * minute)
  assert.is(ready(node(world, victim)), 'Unknown')
  assert.is(world.judges.writersOf('vol-data-db-0')[0]?.node, victim)
  world.heal()
  assert.ok(await world.turn().runWhen(() => ready(node(world, victim)) === 'True', 2 * minute))
})

test('a killed kubelet leaves its containers running, and takes them over when it is back', async () => {
  const world = await settledWorld(8)
  const victim = nodeOf(world, 'db')
  const uid = podOf(world, 'db')?.metadata.uid
  world.killKubelet(victim)
  await world.turn().runFor(90_000)
  assert.is(ready(node(world, victim)), 'Unknown')
  assert.is(world.judges.writersOf('vol-data-db-0').length, 1)
  world.startKubelet(victim)
  assert.ok(await world.turn().runWhen(() => ready(podOf(world, 'db')) === 'True', minute))
  assert.is(podOf(world, 'db')?.metadata.uid, uid)
  assert.is(world.storage.log.filter(({ volume, kind }) => volume === 'vol-data-db-0' && kind === 'mount').length, 1)
})

test('a world in which every lever was pulled still ends its timers when it is stopped', async () => {
  const world = await settledWorld(9)
  for (const pull of [world.freeze, world.stick, world.killKubelet, world.cutPower]) pull('node-1')
  world.isolate('node-2')
  await world.turn().runFor(minute)
  world.stop()
  await world.turn().runFor(10 * minute)
  assert.equal([...world.nodes.values()].flatMap(({ machine }) => machine.processes()), [])
})

test.run()
