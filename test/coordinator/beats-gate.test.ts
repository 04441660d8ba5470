// What a replica tells the gate of a node, and what the gate makes of it.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createRuntimeNri } from '../../sim/runtime-nri.ts'
import { beatsWorld } from './beats-world.ts'
import { hello, puppet } from './puppet.ts'

const test = suite('beats: gate')

/** A machine with a runtime that asks its plugins, and the agent that is one. */
function gated(world: ReturnType<typeof beatsWorld>, node: string) {
  const runtime = createRuntimeNri(world.clock)
  const one = world.agent(node, { gate: {}, connectNri: async () => runtime.connect() })
  return {
    ...one,
    async starts(uid = 'u1') {
      const answer = runtime.ask({ namespace: 'work', name: 'db-0', uid, annotations: {} })
      await world.clock.runFor(100)
      return await answer ?? 'starts'
    },
  }
}

const yes = { accepted: true, reason: '' }

test('a gate opens once the leader accepts the boot and the agent, told what belongs, finds its node clean', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a', true)
  const one = gated(world, 'node-1')
  await world.clock.runFor(3_000)
  assert.is(replica.beats.heard('node-1')?.gate, 'shut')
  assert.match(await one.starts(), /the coordinator has not accepted this boot/)
  replica.beats.gate('node-1', yes, undefined)
  await world.clock.runFor(100)
  assert.match(await one.starts(), /cannot tell whether it is clean/)
  replica.beats.check('node-1', [])
  await world.clock.runFor(2_000)
  assert.is(await one.starts(), 'starts')
  assert.is(replica.beats.heard('node-1')?.gate, 'open')
  assert.ok(replica.changes.some(({ what }) => what === 'gate'))
})

test('a quarantine shuts a gate that was open, but for pods that tolerate it, and says why', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a', true)
  const one = gated(world, 'node-1')
  await world.clock.runFor(3_000)
  replica.beats.gate('node-1', yes, undefined)
  replica.beats.check('node-1', [])
  await world.clock.runFor(2_000)
  assert.is(await one.starts(), 'starts')
  const item = { namespace: 'work', name: 'csi', uid: 'u9', resourceVersion: '1', owner: 'DaemonSet', priority: 0, terminating: false, phase: 'Running', finalizers: [], volumes: [], grace: 0, ended: true, toleratesEviction: false } as const
  replica.beats.gate('node-1', { accepted: false, reason: '2 left over on node-1' }, { askedAt: 0, listedAt: 0, items: [{ ...item, tolerates: true }, { ...item, uid: 'u1' }] })
  await world.clock.runFor(100)
  assert.match(await one.starts(), /node-1 is quarantined: 2 left over on node-1/)
  assert.is(await one.starts('u9'), 'starts')
})

test('the word of a replica that does not lead opens nothing', async () => {
  const world = beatsWorld()
  world.replica('replica-a', true)
  const follower = world.replica('replica-b')
  const one = gated(world, 'node-1')
  await world.clock.runFor(3_000)
  follower.beats.gate('node-1', yes, undefined)
  follower.beats.check('node-1', [])
  await world.clock.runFor(3_000)
  assert.match(await one.starts(), /has not accepted/)
})

test('a gate is told once what stays so, a reason with its numbers every five seconds, and another verdict at once', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a', true)
  const one = await puppet(world, replica.address, hello)
  replica.beats.gate('node-1', yes, undefined)
  one.say({ say: 'beat', count: 1, kubelet: 'ok', gate: 'shut' })
  await world.clock.runFor(10)
  const words = () => one.heard.flatMap((word) => (word.say === 'gate' ? [`${word.accepted} ${word.reason}`] : []))
  assert.equal(words(), [])
  const say = async (accepted: boolean, reason: string) => {
    replica.beats.gate('node-1', { accepted, reason }, undefined)
    await world.clock.runFor(10)
  }
  await say(false, '1 s')
  await say(false, '1 s')
  await say(false, '2 s')
  assert.equal(words(), ['false 1 s'])
  await say(true, '')
  await say(true, '')
  assert.equal(words(), ['false 1 s', 'true '])
  await say(false, '3 s')
  await world.clock.runFor(5_000)
  await say(false, '8 s')
  assert.equal(words().slice(2), ['false 3 s', 'false 8 s'])
})

test.run()
