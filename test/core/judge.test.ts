import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { judge, ripensAt, type Verdict } from '../../core/judge.ts'
import type { NodeSeen, Self } from '../../core/model.ts'
import { beat, boot, dead, node, now, record, seen, self, silentAt } from './world.ts'

const test = suite('judge')
const peers = { agents: 2, replicas: 1 }

function verdict(changes: Partial<NodeSeen>, own: Partial<Self> = {}, whom = peers, profile: 'fast' | 'balanced' | 'conservative' = 'fast'): Verdict['is'] {
  return judge(node(changes), self(own), profile, whom, now).is
}

test('a node whose agent beats is alive, whatever else is silent', () => {
  assert.is(verdict({ ...dead, beat: beat() }), 'alive')
})

test('a node silent for longer than suspectAfter is suspect, not dead', () => {
  assert.is(verdict({ beat: beat({ at: now - 2_000 }) }), 'suspect')
})

test('silence alone never makes death, however long', () => {
  assert.is(verdict({ beat: beat({ at: 20_000 }), ready: { status: 'Unknown', postedAt: 15_000, since: 60_000, bootId: 'boot-1' } }), 'suspect')
})

test('silent past deadAfter, with an audited probe silent and two deaf witnesses, is dead', () => {
  assert.is(verdict(dead), 'dead')
})

test('the same evidence is not enough before deadAfter', () => {
  assert.is(verdict({ ...dead, beat: beat({ at: now - 2_500 }) }), 'suspect')
})

test('a probe that was never answered in this boot proves nothing by its silence', () => {
  assert.is(verdict({ ...dead, record: record({ probe: { boot, answered: false, at: '' } }) }), 'suspect')
  assert.is(verdict({ ...dead, record: record({ probe: { boot: 'boot-0/1', answered: true, at: '' } }) }), 'suspect')
})

test('a node without an agent is alive while kubelet answers, and ill where only its kernel does', () => {
  const { beat: _, record: __, ...bare } = node({ seenAt: now - 900_000, ready: { status: 'True', postedAt: now - 300_000, since: 0, bootId: 'boot-1' } })
  const says = (word: 'answered' | 'open' | 'refused'): Verdict['is'] => judge({ ...bare, probe: { askedAt: now - 2_000, answeredAt: now - 1_990, word, spokeAt: now - 1_990 } }, self({ awakeSince: now - 900_000 }), 'fast', peers, now).is
  assert.equal([says('answered'), says('open'), says('refused')], ['alive', 'ill', 'ill'])
})

test('a probe asked before the silence began proves nothing', () => {
  assert.is(verdict({ ...dead, probe: { askedAt: silentAt - 500, answeredAt: silentAt - 100, word: 'silent' } }), 'suspect')
})

test('one deaf witness is not enough where two could be asked', () => {
  assert.is(verdict({ ...dead, witnesses: (dead.witnesses ?? []).slice(0, 1) }), 'suspect')
})

test('witnesses that answered before the silence began do not count', () => {
  assert.is(verdict({ ...dead, witnesses: (dead.witnesses ?? []).map((one) => ({ ...one, askedAt: silentAt - 1 })) }), 'suspect')
})

test('a witness with the node\'s own seal ends the silence', () => {
  const hears = { witness: 'node-1', kind: 'agent', askedAt: now - 1_000, answeredAt: now - 900, word: 'hears', proven: true } as const
  assert.is(verdict({ ...dead, witnesses: [...(dead.witnesses ?? []), hears] }), 'alive')
})

test('a bare word that the node is heard delays by one patience and no longer', () => {
  const hears = { witness: 'node-9', kind: 'agent', askedAt: now - 1_000, answeredAt: now - 900, word: 'hears', proven: false } as const
  assert.is(verdict({ ...dead, witnesses: [...(dead.witnesses ?? []), hears] }), 'suspect')
  const longer = { beat: beat({ at: now - 7_000 }) }
  assert.is(verdict({ ...dead, ...longer, witnesses: [...(dead.witnesses ?? []), hears] }), 'dead')
})

test('a refused connection is an answer: the agent is ill, the node never dead', () => {
  assert.is(verdict({ ...dead, probe: { askedAt: now - 2_000, answeredAt: now - 1_990, word: 'refused', spokeAt: now - 1_990 } }), 'ill')
})

test('a kubelet port that answers makes the agent ill, not the node dead', () => {
  assert.is(verdict({ ...dead, probe: { askedAt: now - 2_000, answeredAt: now - 1_990, word: 'answered', spokeAt: now - 1_990 } }), 'ill')
})

test('an answer from before the silence does not make the agent ill', () => {
  assert.is(verdict({ ...dead, probe: { askedAt: silentAt - 100, answeredAt: silentAt - 50, word: 'answered', spokeAt: silentAt - 50 } }), 'suspect')
})

test('an answer given after the last beat and before the suspicion does not make the agent ill', () => {
  const audited = { askedAt: silentAt + 200, answeredAt: silentAt + 210, word: 'answered', spokeAt: silentAt + 210 } as const
  assert.is(verdict({ ...dead, probe: audited }), 'suspect')
})

test('a machine whose agent was ill is judged at Kubernetes\' pace once it falls silent', () => {
  const later = { ...dead, beat: beat({ at: 40_000 }), probe: { askedAt: now - 2_000, answeredAt: now - 1_200, word: 'silent', spokeAt: now - 8_000 } } as const
  assert.is(verdict(later), 'alive')
})

test('a Lease seen to move ends the silence', () => {
  assert.is(verdict({ ...dead, lease: { askedAt: now - 600, readAt: now - 500, renewTime: 'b', unmovedSince: now - 500, moved: true } }), 'alive')
})

test('a Lease that moved since it was last read, long before the silence, says nothing about the silence', () => {
  const moved = { askedAt: now - 600, readAt: now - 500, renewTime: 'b', unmovedSince: now - 500, moved: true }
  assert.is(verdict({ ...dead, lease: { ...moved, movedAfter: now - 60_000 } }), 'dead')
  assert.is(verdict({ ...dead, lease: { ...moved, movedAfter: silentAt } }), 'alive')
})

test('a Lease is known to stand still until it was asked for, not until the answer came', () => {
  const late = { askedAt: now - 2_000, readAt: now - 100, renewTime: 'a', unmovedSince: now - 13_000, moved: false }
  assert.is(verdict({ beat: beat({ at: now - 15_000 }), lease: late }), 'suspect')
  assert.is(verdict({ beat: beat({ at: now - 15_000 }), lease: { ...late, askedAt: now - 200 } }), 'dead')
})

const leftAgo = (ago: number) => verdict({
  ...dead, ready: { status: 'True', postedAt: now - 700_000, since: 10_000, bootId: 'boot-1' }, beat: beat({ at: now - ago, goodbye: { at: now - ago, why: 'shutdown' } }),
}, { awakeSince: -1_000_000 })

test('after a goodbye for a shutdown the devices are asked from the first silence on, and death is not hurried', () => {
  assert.is(leftAgo(1_400), 'alive')
  assert.is(leftAgo(1_600), 'suspect')
  assert.is(leftAgo(60_000), 'suspect')
  assert.is(leftAgo(601_000), 'dead')
})

test('a Lease that stood still for a whole renew interval is evidence by itself', () => {
  const still = { askedAt: now - 1_000, readAt: now - 1_000, renewTime: 'a', unmovedSince: now - 14_000, moved: false }
  assert.is(verdict({ beat: beat({ at: now - 15_000 }), lease: still }), 'dead')
  assert.is(verdict({ beat: beat({ at: now - 15_000 }), lease: { ...still, unmovedSince: now - 12_000 } }), 'suspect')
})

test('a Lease last read long ago says nothing about now', () => {
  assert.is(verdict({ beat: beat({ at: now - 30_000 }), lease: { askedAt: now - 9_000, readAt: now - 9_000, renewTime: 'a', unmovedSince: now - 29_000, moved: false } }), 'suspect')
})

test('a status posted after the beats ended counts as a word', () => {
  assert.is(verdict({ ...dead, ready: { status: 'True', postedAt: now - 1_000, since: 10_000, bootId: 'boot-1' } }), 'alive')
})

test('with one other agent, its word and the replica\'s together are asked; a deaf one suffices', () => {
  assert.is(verdict({ ...dead, witnesses: (dead.witnesses ?? []).slice(0, 1) }, {}, { agents: 1, replicas: 0 }), 'dead')
})

test('with nobody to ask, conservative times apply', () => {
  assert.is(verdict({ ...dead, witnesses: [] }, { replicas: [] }, { agents: 0, replicas: 0 }), 'alive')
})

test('conservative waits until Ready has left True', () => {
  const old = { ...dead, beat: beat({ at: now - 60_000 }), ready: { status: 'True', postedAt: 30_000, since: 10_000, bootId: 'boot-1' } } as const
  assert.is(verdict(old, {}, peers, 'conservative'), 'suspect')
  assert.is(verdict({ ...old, ready: { ...old.ready, status: 'Unknown' } }, {}, peers, 'conservative'), 'dead')
})

test('a goodbye sets another patience', () => {
  const restarting = beat({ at: now - 20_000, goodbye: { at: now - 20_000, why: 'restart' } })
  const ready = { status: 'True', postedAt: 15_000, since: 10_000, bootId: 'boot-1' } as const
  assert.is(verdict({ ...dead, ready, beat: restarting }), 'alive')
  assert.is(verdict({ ...dead, ready, beat: { ...restarting, at: now - 61_000 } }), 'dead')
})

test('a node that this replica never heard is unknown for two minutes', () => {
  assert.is(verdict({ ...dead, beat: undefined, seenAt: now - 90_000 }), 'unknown')
})

test('every silence begins anew when this replica stood still', () => {
  assert.is(verdict(dead, { awakeSince: now - 1_000 }), 'alive')
})

// When a silence comes to mean more.

const ripens = (quiets: readonly number[], own: Partial<Self> = {}) =>
  ripensAt(seen(quiets.map((quiet, index) => node({ name: `node-${index}`, beat: beat({ at: now - quiet }) })), [], self(own)), now) - now

test('a silence ripens when its beat is late, then suspect, then dead, in each profile', () => {
  const ripenings = [1_250, 1_500, 2_750, 3_000, 8_000, 9_750, 10_000, 45_000]
  let before = 0
  for (const ripening of ripenings) {
    assert.is(ripens([before]), ripening - before)
    assert.is(ripens([ripening - 1]), 1)
    before = ripening
  }
  assert.is(ripens([45_000]), Infinity)
})

test('the soonest of all silences counts, and a stall of our own begins each anew', () => {
  assert.is(ripens([200, 1_240, 900, 60_000]), 10)
  assert.is(ripens([200, 1_240, 900, 60_000], { awakeSince: now - 100 }), 1_150)
})

test('beats in time make no silence that ripens before the next usual tick', () => {
  assert.ok(ripens([0, 300, 600, 999]) > 250)
})

test('a node that was never heard has no silence', () => {
  assert.is(ripensAt(seen([node({ beat: undefined, seenAt: now - 1_240 })]), now), Infinity)
})

const stuck: Partial<NodeSeen> = {
  beat: beat({ at: now - 130_000 }), probe: { askedAt: now - 900, answeredAt: now - 800, word: 'open', spokeAt: now - 800 }, ready: { status: 'Unknown', postedAt: now - 200_000, since: now - 121_000, bootId: 'boot-1' },
  lease: { askedAt: now - 900, readAt: now - 800, renewTime: 'x', unmovedSince: now - 125_000, moved: false },
}
const judged = (changes: Partial<NodeSeen>, hungAfter = 120_000) => judge(node({ ...stuck, ...changes }), self({ awakeSince: -1_000_000 }), 'fast', { agents: 3, replicas: 1 }, now, hungAfter)

test('a machine that answers while nothing on it works is hung after its time, with the evidence', () => {
  const made = judged({})
  assert.equal(made.is === 'dead' ? [made.hung, made.evidence.map(({ source }) => source)] : made.is, [true, ['probe', 'Ready', 'Lease']])
})

const merelyIll: readonly (readonly [string, Partial<NodeSeen>, number?])[] = [
  ['whose policy says never', {}, 0],
  ['that says a word on its port', { probe: { askedAt: now - 900, answeredAt: now - 800, word: 'answered', spokeAt: now - 800 } }],
  ['that refuses', { probe: { askedAt: now - 900, answeredAt: now - 800, word: 'refused', spokeAt: now - 800 } }],
  ['that beat within its time', { beat: beat({ at: now - 119_000 }) }],
  ['that is Ready', { ready: { status: 'True', postedAt: now - 200_000, since: now - 200_000, bootId: 'boot-1' } }],
  ['that lost Ready within its time', { ready: { status: 'Unknown', postedAt: now - 200_000, since: now - 119_000, bootId: 'boot-1' } }],
  ['whose Lease moved', { lease: { askedAt: now - 900, readAt: now - 800, renewTime: 'x', unmovedSince: now - 9_000, moved: true, movedAfter: now - 19_000 } }],
  ['whose agent has given others its seal within its time', { witnesses: [{ witness: 'replica-1', kind: 'replica', askedAt: now - 119_500, answeredAt: now - 119_000, word: 'hears', proven: true }] }],
  ['whose Lease was not read for a while', { lease: { askedAt: now - 16_100, readAt: now - 16_000, renewTime: 'x', unmovedSince: now - 125_000, moved: false } }],
]
for (const [what, changes, hungAfter] of merelyIll) test(`a machine ${what} is ill, and not hung`, () => assert.is(judged(changes, hungAfter).is, 'ill'))

test.run()


