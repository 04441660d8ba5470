// A port that anybody can send to: what reaches a decision of it, and what it costs.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { gatherDumpWords } from '../../coordinator/dump-words.ts'
import { keepNode } from '../../coordinator/kubernetes.ts'
import { createObservation } from '../../coordinator/observe.ts'
import type { Ms } from '../../core/model.ts'
import { virtualClock } from '../../sim/clock.ts'
import { beat } from '../core/world.ts'

const test = suite('dump words')

test('words of a moment are told at once, each address once, with the instant of its latest', async () => {
  const clock = virtualClock(100_000)
  const told: (readonly [Ms, readonly (readonly [string, Ms])[]])[] = []
  const words = gatherDumpWords(clock, (all) => told.push([clock.now(), [...all]]))
  words.from('10.0.0.2')
  await clock.runFor(50)
  for (let times = 0; times < 1_000; times += 1) words.from('10.0.0.3')
  words.from('10.0.0.2')
  await clock.runFor(1_000)
  words.from('10.0.0.3')
  await clock.runFor(1_000)
  assert.equal(told, [[100_200, [['10.0.0.2', 100_050], ['10.0.0.3', 100_050]]], [101_250, [['10.0.0.3', 101_050]]]])
})

test('of forged addresses no more are kept than there is room for, and those that are known are heard on', async () => {
  const clock = virtualClock(100_000)
  let told: ReadonlyMap<string, Ms> = new Map()
  const words = gatherDumpWords(clock, (all) => { told = all })
  words.from('10.0.0.2')
  for (let index = 0; index < 50_000; index += 1) words.from(`forged-${index}`)
  await clock.runFor(100)
  words.from('10.0.0.2')
  await clock.runFor(100)
  assert.equal([told.size, told.get('10.0.0.2')], [10_000, 100_100])
})

test('a replica that stops tells nothing more', async () => {
  const clock = virtualClock(100_000)
  const words = gatherDumpWords(clock, () => assert.unreachable())
  words.from('10.0.0.2')
  words.stop()
  await clock.runFor(1_000)
})

test('all words of a moment cost one look over the nodes, and a word that came before a beat stays one from before it', () => {
  const clock = virtualClock(100_000)
  let asked = 0
  const observation = createObservation(clock, 'replica-0', { heard: () => (asked += 1, beat({ at: 99_900 })), forget: () => undefined })
  for (const name of ['node-1', 'node-2', 'node-3']) {
    observation.node(keepNode({ metadata: { name, uid: `uid-${name}`, resourceVersion: '1' }, status: { addresses: [{ type: 'InternalIP', address: `10.0.0.${name.slice(-1)}` }] } } as never)) // a Node is more than the common type tells
  }
  const forged = Array.from({ length: 5_000 }, (_, index): [string, Ms] => [`forged-${index}`, 99_800])
  assert.is(observation.dumped(new Map(forged)), false)
  assert.is(asked, 3)
  assert.is(observation.dumped(new Map([...forged, ['10.0.0.2', 99_800]])), true)
  assert.equal([observation.row('node-1')?.dump, observation.row('node-2')?.dump?.at], [undefined, 99_800])
})

test.run()
