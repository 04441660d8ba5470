// What an observation keeps of crash kernels: whose word it was, the silence before it, and what a leader writes down of it.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { keepNode } from '../../coordinator/kubernetes.ts'
import { createObservation } from '../../coordinator/observe.ts'
import { dumpKey } from '../../core/dump.ts'
import type { BeatSeen, ProbeWord } from '../../core/model.ts'
import { virtualClock } from '../../sim/clock.ts'
import { beat } from '../core/world.ts'
import { edgeWorld, fence, older, turned, victim } from './edge-world.ts'

const test = suite('announce')

function small() {
  const clock = virtualClock(100_000)
  const beats = new Map<string, BeatSeen>()
  const observation = createObservation(clock, 'replica-0', { heard: (name) => beats.get(name), forget: () => undefined })
  const plant = (name: string, address = '', version = '1', uid = `uid-${name}`) => observation.node(keepNode({
    apiVersion: 'v1', kind: 'Node', metadata: { name, uid, resourceVersion: version },
    status: { nodeInfo: { bootID: 'boot-1', systemUUID: 'machine-2' }, addresses: address === '' ? [] : [{ type: 'InternalIP', address }] },
  } as never)) // a Node is more than the common type tells
  const dumped = (...from: string[]): boolean => observation.dumped(new Map(from.map((one) => [one, clock.now()])))
  return { clock, observation, beats, plant, dumped }
}

test('a crash kernel is the node\'s whose address it speaks from, and of two such nodes neither\'s', async () => {
  const { observation, beats, clock, plant, dumped } = small()
  beats.set('node-2', beat({ from: '10.0.0.2', at: 99_000 }))
  beats.set('node-3', beat({ from: '10.0.0.3', at: 99_000 }))
  for (const name of ['node-2', 'node-3']) plant(name)
  dumped('10.0.0.9')
  dumped('10.0.0.2')
  await clock.runFor(5_000)
  dumped('10.0.0.2')
  assert.equal(['node-2', 'node-3'].map((name) => observation.row(name)?.dump), [{ since: 100_000, at: 105_000, from: '10.0.0.2' }, undefined])
  beats.set('node-3', beat({ from: '10.0.0.2', at: 99_000 }))
  plant('node-3', '', '2', 'uid-another')
  dumped('10.0.0.3')
  assert.is(observation.row('node-3')?.dump, undefined)
  dumped('10.0.0.2')
  assert.is(observation.row('node-2')?.dump?.at, 105_000, 'beats of two come from there')
})

test('also by the address that its Node tells, unless another Node tells the same', () => {
  const { observation, plant, dumped } = small()
  plant('node-2', '10.0.0.2')
  dumped('10.0.0.2')
  assert.is(observation.row('node-2')?.dump?.at, 100_000)
  plant('node-3', '10.0.0.3')
  plant('node-4', '10.0.0.3')
  dumped('10.0.0.3')
  assert.equal(['node-3', 'node-4'].map((name) => observation.row(name)?.dump), [undefined, undefined])
})

test('a beat takes its word back, and the next one begins anew', async () => {
  const { observation, beats, clock, plant, dumped } = small()
  plant('node-2', '10.0.0.2')
  dumped('10.0.0.2')
  await clock.runFor(1_000)
  beats.set('node-2', beat({ at: 100_500 }))
  dumped('10.0.0.2')
  assert.equal(observation.row('node-2')?.dump, { since: 101_000, at: 101_000, from: '10.0.0.2' })
})

test('of its port the first silence since the last beat is kept, with what it said before', () => {
  const { observation, beats, plant } = small()
  plant('node-2')
  const heard = (at: number) => beats.set('node-2', beat({ at }))
  const asked = (askedAt: number, word: ProbeWord) => {
    observation.probed('node-2', { askedAt, answeredAt: askedAt + 10, word })
    return observation.row('node-2')?.probe?.fell
  }
  heard(1_000)
  assert.is(asked(500, 'silent'), undefined, 'from before the beat')
  assert.is(asked(1_200, 'answered'), undefined)
  assert.equal(asked(2_500, 'silent'), { at: 2_500, until: 2_500, spokeAt: 1_210 })
  assert.equal(asked(3_500, 'silent'), { at: 2_500, until: 3_500, spokeAt: 1_210 })
  assert.equal(asked(4_500, 'refused'), { at: 2_500, until: 3_500, spokeAt: 1_210 }, 'a word ends it')
  assert.equal(asked(5_500, 'silent'), { at: 2_500, until: 3_500, spokeAt: 1_210 }, 'and what comes after is another one')
  assert.equal([observation.row('node-2')?.probe?.spokeAt, observation.row('node-2')?.probe?.acceptedAt], [4_510, 1_210], 'a refusal is no acceptance')
  heard(6_000)
  assert.equal(asked(7_000, 'silent'), { at: 7_000, until: 7_000, spokeAt: 4_510 }, 'since the next beat anew')
  asked(8_000, 'refused')
  assert.equal(asked(7_900, 'silent')?.until, 7_000, 'a question that another was answered after was lost')
})

test('the first word stands on the record, by whom and from where, and counts from when it was seen there', async () => {
  const world = edgeWorld()
  const { metadata: { uid: nodeUid = '' } } = world.plantNode()
  await turned(world.clock, world.plantFence({ phase: 'Running' }, { nodeUid }))
  const announce = (from: string) => turned(world.clock, world.do({ do: 'announce', node: victim, incident: fence, from, afterSilence: true }))
  assert.is(await announce('10.0.0.2'), true)
  await announce('10.0.0.3')
  const { dump, timeline } = world.stored().status
  assert.equal([dump?.from, dump?.by, dump?.afterSilence, timeline.filter(({ what }) => what === 'crash kernel heard').length], ['10.0.0.2', 'replica-0', true, 1])
  assert.equal(world.said.map(({ reason }) => reason), ['CrashKernelHeard', 'CrashKernelHeard'])
  assert.ok(world.observation.row(victim)?.firstSeen.has(dumpKey(fence)))
})

test('where the API server keeps no such word that is remembered, so that it is not written for ever', async () => {
  const world = edgeWorld()
  const { metadata: { uid: nodeUid = '' } } = world.plantNode()
  await older(world, 'nodefences', ['status.dump'])
  await turned(world.clock, world.plantFence({ phase: 'Running' }, { nodeUid }))
  await turned(world.clock, world.do({ do: 'announce', node: victim, incident: fence, from: '10.0.0.2', afterSilence: true }))
  assert.equal([world.stored().status.dump, world.observation.row(victim)?.unkept], [undefined, { at: world.clock.now(), dump: fence }])
})

test.run()
