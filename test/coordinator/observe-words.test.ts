// Words on a node: of its Lease, its peers, its port and its devices.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { ProbeWord, WitnessSeen } from '../../core/model.ts'
import { lastOffKey, offSinceKey } from '../../core/path.ts'
import { speechlessSince } from '../../core/proof.ts'
import { reading } from '../core/world.ts'
import { node, small } from './observe-world.ts'

const test = suite('observe: words')

test('a port that accepts and says nothing spoke when it was asked: what happened in between is later than that', () => {
  const { observation } = small()
  observation.node(node('1'))
  const spoke = (word: 'open' | 'answered' | 'silent', askedAt: number): number | undefined => {
    observation.probed('node-2', { askedAt, answeredAt: askedAt + 800, word })
    return observation.row('node-2')?.probe?.spokeAt
  }
  assert.equal([spoke('open', 1_000), spoke('answered', 2_000), spoke('silent', 3_000)], [1_000, 2_800, 2_800])
})

test('a Lease counts as unmoved since the first read that showed it so, and as moved only between two reads', async () => {
  const { observation, clock } = small()
  observation.node(node('1'))
  observation.leased('node-2', 99_950, 't1')
  assert.equal(observation.row('node-2')?.lease, { askedAt: 99_950, readAt: 100_000, renewTime: 't1', unmovedSince: 100_000, moved: false })
  await clock.runFor(2_000)
  observation.leased('node-2', 101_900, 't1')
  assert.equal(observation.row('node-2')?.lease, { askedAt: 101_900, readAt: 102_000, renewTime: 't1', unmovedSince: 100_000, moved: false })
  await clock.runFor(2_000)
  observation.leased('node-2', 103_900, 't2')
  assert.equal(observation.row('node-2')?.lease, { askedAt: 103_900, readAt: 104_000, renewTime: 't2', unmovedSince: 104_000, moved: true, movedAfter: 101_900, moves: [101_900] })
})

const word = (askedAt: number, answeredAt: number, said: WitnessSeen['word'], proven = false, witness = 'node-1'): WitnessSeen =>
  ({ witness, kind: 'agent', askedAt, answeredAt, word: said, proven })

test('of two questions to one witness the later one counts, whichever was answered last', () => {
  const { observation } = small()
  observation.node(node('1'))
  observation.witnessed('node-2', [word(500, 600, 'hears')])
  observation.witnessed('node-2', [word(0, 950, 'deaf')])
  assert.equal(observation.row('node-2')?.witnesses, [word(500, 600, 'hears')])
  observation.witnessed('node-2', [word(700, 800, 'deaf')])
  assert.equal(observation.row('node-2')?.witnesses, [word(700, 800, 'deaf')])
})

test('that the node itself sealed an answer stays known, though the same witness is deaf a second later', () => {
  const { observation } = small()
  observation.node(node('1'))
  observation.witnessed('node-2', [word(0, 100, 'hears', true)])
  observation.witnessed('node-2', [word(1_000, 1_900, 'deaf')])
  const words = observation.row('node-2')?.witnesses ?? []
  assert.ok(words.some((one) => one.word === 'hears' && one.proven && one.answeredAt === 100))
  assert.ok(words.some((one) => one.word === 'deaf'))
})

test('however many witnesses come and go, only the latest words are kept', () => {
  const { observation } = small()
  observation.node(node('1'))
  for (let at = 0; at < 500; at += 1) observation.witnessed('node-2', [word(at, at + 1, 'deaf', false, `replica-${at}`)])
  const words = observation.row('node-2')?.witnesses ?? []
  assert.ok(words.length <= 32, `${words.length}`)
  assert.ok(words.some((one) => one.askedAt === 499))
})

test('since when a port has not answered is told by the first question, until one is answered', () => {
  const { observation } = small()
  observation.node(node('1'))
  const since = (askedAt: number, said: ProbeWord) => {
    observation.probed('node-2', { askedAt, answeredAt: askedAt + 100, word: said })
    return observation.row('node-2')?.probe?.unansweredSince
  }
  assert.equal([since(1_000, 'silent'), since(2_000, 'refused'), since(3_000, 'open')], [1_000, 1_000, 1_000])
  assert.equal([since(4_000, 'answered'), since(3_500, 'silent'), since(5_000, 'silent')], [undefined, undefined, 5_000])
})

test('of two probes the later one counts, and that the port spoke stays known', () => {
  const { observation } = small()
  observation.node(node('1'))
  observation.probed('node-2', { askedAt: 500, answeredAt: 510, word: 'answered' })
  observation.probed('node-2', { askedAt: 0, answeredAt: 800, word: 'silent' })
  assert.equal(observation.row('node-2')?.probe, { askedAt: 500, answeredAt: 510, word: 'answered', spokeAt: 510, acceptedAt: 510 })
  observation.probed('node-2', { askedAt: 1_000, answeredAt: 1_800, word: 'silent' })
  assert.equal(observation.row('node-2')?.probe, { askedAt: 1_000, answeredAt: 1_800, word: 'silent', unansweredSince: 1_000, spokeAt: 510, acceptedAt: 510, fell: { at: 1_000, until: 1_000, spokeAt: 510 } })
})

test('a few readings of each method are kept, the latest', () => {
  const { observation } = small()
  observation.node(node('1'))
  for (let at = 0; at < 50; at += 1) {
    observation.read('node-2', reading('off', at))
    observation.read('node-2', reading('on', at, at, { method: 'other' }))
  }
  const own = observation.row('node-2')?.readings.filter((one) => one.method === 'bmc-off').map((one) => one.startedAt) ?? []
  assert.equal(own, [44, 45, 46, 47, 48, 49])
})

test('since when a device has told nothing is known until it tells something, for each configuration of it', () => {
  const { observation } = small()
  observation.node(node('1'))
  const since = (digest: string) => observation.row('node-2')?.firstSeen.get(speechlessSince('bmc-off', digest))
  for (const at of [91_000, 92_000, 93_000]) observation.read('node-2', reading('unknown', at, at + 100))
  observation.read('node-2', reading('off', 94_000, 94_100, { digest: 'd9' }))
  assert.equal([since('d1'), since('d9')], [91_100, undefined])
  for (const state of ['off', 'on'] as const) {
    observation.read('node-2', reading(state, 95_000))
    assert.is(since('d1'), undefined)
  }
})

test('when a device last said off is known for each configuration of it, however often it says on since', () => {
  const { observation } = small()
  observation.node(node('1'))
  const last = (digest: string) => observation.row('node-2')?.firstSeen.get(lastOffKey('bmc-off', digest))
  for (const at of [91_000, 92_000]) observation.read('node-2', reading('off', at, at + 100))
  for (const at of [93_000, 94_000, 95_000, 96_000, 97_000, 98_000, 99_000]) observation.read('node-2', reading('on', at, at + 100))
  observation.read('node-2', reading('unknown', 99_500))
  assert.equal([last('d1'), last('d9')], [92_100, undefined])
})

test('and since when it has said nothing else, however many readings are kept', () => {
  const { observation } = small()
  observation.node(node('1'))
  const since = (digest: string) => observation.row('node-2')?.firstSeen.get(offSinceKey('bmc-off', digest))
  for (let at = 91_000; at < 105_000; at += 1_000) observation.read('node-2', reading(at === 98_000 ? 'unknown' : 'off', at, at + 100))
  assert.equal([since('d1'), since('d9')], [91_100, undefined])
  observation.read('node-2', reading('on', 105_000))
  assert.is(since('d1'), undefined)
  observation.read('node-2', reading('off', 106_000, 106_100))
  assert.is(since('d1'), 106_100)
})

test.run()
