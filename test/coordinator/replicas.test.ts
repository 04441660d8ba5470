import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { beatsWorld } from './beats-world.ts'

const test = suite('replicas')

test('replicas find each other by address, and none takes itself for another', async () => {
  const world = beatsWorld()
  const all = ['replica-a', 'replica-b', 'replica-c'].map((name) => world.replica(name))
  await world.clock.runFor(5_000)
  assert.equal(all.map(({ beats }) => beats.replicas().toSorted()), [['replica-b', 'replica-c'], ['replica-a', 'replica-c'], ['replica-a', 'replica-b']])
  const own = world.network.dials.get('replica-a:7443') ?? 0
  await world.clock.runFor(60_000)
  assert.is(world.network.dials.get('replica-a:7443'), own)
})

test('another replica hears a node, and has checked the seal that the node made for it', async () => {
  const world = beatsWorld()
  const [one] = [world.replica('replica-a'), world.replica('replica-b')]
  world.agent('node-1')
  await world.clock.runFor(5_000)
  const asked = one.beats.askReplica('replica-b', 'node-1')
  await world.clock.runFor(2_000)
  assert.equal(await asked, { word: 'hears', proven: true, boot: 'b007-0001/4711' })
})

test('another replica is deaf to a node that it has no link to, or that answers no challenge', async () => {
  const world = beatsWorld()
  const [one] = [world.replica('replica-a'), world.replica('replica-b')]
  world.agent('node-1')
  await world.clock.runFor(5_000)
  world.network.cut('node-1')
  await world.clock.runFor(3_000)
  const asked = one.beats.askReplica('replica-b', 'node-1')
  const unknown = one.beats.askReplica('replica-b', 'node-9')
  await world.clock.runFor(2_000)
  assert.equal(await asked, { word: 'deaf', proven: false })
  assert.equal(await unknown, { word: 'deaf', proven: false })
})

test('a node that beat a moment ago and does not answer in time is heard, but not proven', async () => {
  const world = beatsWorld()
  const [one] = [world.replica('replica-a'), world.replica('replica-b')]
  world.agent('node-1')
  await world.clock.runFor(5_000)
  const heard = one.beats.heard('node-1')?.at ?? 0
  await world.clock.runUntil(heard + 1_001)
  world.network.cut('node-1')
  const asked = one.beats.askReplica('replica-b', 'node-1')
  await world.clock.runFor(2_000)
  assert.equal(await asked, { word: 'hears', proven: false })
})

test('a replica that cannot be reached says nothing', async () => {
  const world = beatsWorld()
  const [one] = [world.replica('replica-a'), world.replica('replica-b')]
  await world.clock.runFor(5_000)
  world.network.cut('replica-b')
  const asked = one.beats.askReplica('replica-b', 'node-1')
  await world.clock.runFor(2_000)
  assert.is(await asked, undefined)
  assert.is(await one.beats.askReplica('replica-z', 'node-1'), undefined)
})

test('a replica that comes back is linked again', async () => {
  const world = beatsWorld()
  const [one, two] = [world.replica('replica-a'), world.replica('replica-b')]
  await world.clock.runFor(5_000)
  two.stop()
  await world.clock.runFor(5_000)
  assert.equal(one.beats.replicas(), [])
  world.replica('replica-b')
  await world.clock.runFor(20_000)
  assert.equal(one.beats.replicas(), ['replica-b'])
})

test('an address that is no longer a replica\'s is left', async () => {
  const world = beatsWorld()
  const [one] = [world.replica('replica-a'), world.replica('replica-b')]
  await world.clock.runFor(5_000)
  one.beats.setReplicas(['replica-a:7443', 'nowhere:1'])
  await world.clock.runFor(30_000)
  const dials = world.network.dials.get('nowhere:1') ?? 0
  assert.ok(dials > 2 && dials < 20)
  one.beats.setReplicas(['replica-a:7443'])
  await world.clock.runFor(30_000)
  assert.is(world.network.dials.get('nowhere:1'), dials)
})

test.run()
