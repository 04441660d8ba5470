// Who is not believed, not yet or not any more: strangers, bad tokens, agents whose pod has ended.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { frameOf } from '../../core/frame.ts'
import { beatsWorld } from './beats-world.ts'
import { hello, puppet, refusals } from './puppet.ts'

const test = suite('beats: strangers')

test('a token that is not believed is refused with the reason, and the node is not heard', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address, { ...hello, token: 'stolen goods' })
  one.say({ say: 'beat', count: 1, kubelet: 'ok' })
  await world.clock.runFor(10)
  assert.equal(refusals(one), ['the token is not valid: unknown token'])
  assert.is(one.ended.length, 1)
  assert.is(replica.beats.heard('node-1'), undefined)
})

test('who says no hello, or something else first, is refused', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const silent = await puppet(world, replica.address, 'nothing')
  await world.clock.runFor(5_000)
  assert.equal(refusals(silent), ['no hello within five seconds'])
  const rash = await puppet(world, replica.address, { say: 'beat', count: 1, kubelet: 'ok' })
  assert.equal(refusals(rash), ['a link cannot begin with beat'])
  const posing = await puppet(world, replica.address, { say: 'hello-replica', version: 1, token: 'agent node-1 pod-1', replica: 'me' })
  assert.equal(refusals(posing), ['an agent is no replica'])
  assert.equal(refusals(await puppet(world, replica.address, { ...hello, token: 'replica x' })), ['a replica is no agent'])
  assert.is(world.reviewed.length, 1)
})

test('garbage ends the link with the reason; an unknown word does not', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address)
  one.link.send(new TextEncoder().encode('{"say":"vitals"}'))
  await world.clock.runFor(10)
  assert.is(one.ended.length, 0)
  one.link.send(Uint8Array.of(1))
  await world.clock.runFor(10)
  assert.equal(refusals(one), ['a beat of 1 bytes'])
  assert.is(one.ended.length, 1)
})

test('an agent pod that ended takes its link along, and its token is believed no more', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address)
  one.say({ say: 'beat', count: 1, kubelet: 'ok' })
  await world.clock.runFor(10)
  replica.beats.drop('another pod')
  await world.clock.runFor(10)
  assert.is(one.ended.length, 0)
  replica.beats.drop('pod-1')
  await world.clock.runFor(10)
  assert.is(one.ended.length, 1)
  assert.ok(replica.beats.heard('node-1'))
  assert.equal(refusals(await puppet(world, replica.address)), ['the pod of this token has ended'])
})

test('a token is reviewed once for links that come and go, and again after a minute', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  await puppet(world, replica.address)
  await puppet(world, replica.address)
  assert.is(world.reviewed.length, 1)
  await world.clock.runFor(60_000)
  await puppet(world, replica.address)
  assert.is(world.reviewed.length, 2)
})

test('while the API server is away a link waits; it is welcomed when the API server is back, and refused after a minute', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  world.api = 'away'
  const one = await puppet(world, replica.address)
  await world.clock.runFor(20_000)
  assert.is(one.heard.length + one.ended.length, 0)
  world.api = 'well'
  await world.clock.runFor(5_000)
  assert.equal(one.heard.map((word) => word.say), ['welcome'])
  world.api = 'away'
  const other = await puppet(world, replica.address, { ...hello, token: 'agent node-2 pod-2' })
  await world.clock.runFor(70_000)
  assert.equal(refusals(other), ['the token could not be reviewed: nobody answers'])
})

test('at most thirty-two tokens are reviewed at once, and a link that ended meanwhile costs none', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const dialled = Promise.all(Array.from({ length: 100 }, (_, index) => world.network.dialer(`node-${index}`).dial(replica.address, 1_000)))
  await world.clock.runFor(2)
  const crowd = await dialled
  for (const [index, link] of crowd.entries()) {
    link.listen({ frame: () => undefined, closed: () => undefined })
    link.send(frameOf({ ...hello, token: `agent node-${index} pod-${index}` }))
  }
  await world.clock.runFor(1)
  for (const link of crowd.slice(90)) link.close('changed my mind')
  await world.clock.runFor(100)
  assert.is(world.reviewedAtOnce, 32)
  assert.is(world.reviewed.length, 90)
  assert.is(replica.beats.linked(), 90)
})

test.run()
