import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decide } from '../../core/decide.ts'
import type { Method, NodeSeen, Self } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { beat, boot, incident, method, node, now, policy, reading, record, seen, self, three } from './world.ts'

const test = suite('head start')

/** What is wanted of node-2, whose last beat was so long ago. */
function wanted(quiet: number, changes: Partial<NodeSeen> = {}, own: Self = self(), policies: readonly Policy[] = [policy]): string[] {
  return decide(three({ beat: beat({ at: now - quiet }), ...changes }, [], own), now, policies).filter((action) => action.node === 'node-2').map((action) => action.do)
}

test('when a beat is late its devices are asked, and nothing else is done', () => {
  assert.equal(wanted(1_249), [])
  assert.equal(wanted(1_250), ['askDevice'])
  assert.equal(wanted(1_499), ['askDevice'])
})

test('from the suspicion on it is asked as every suspect is, and not twice', () => {
  assert.equal(wanted(1_500).toSorted(), ['askDevice', 'askWitnesses', 'probe', 'readLease'])
  assert.equal(wanted(1_500, { busy: new Set(['askDevice node-2 bmc-off']) }).toSorted(), ['askWitnesses', 'probe', 'readLease'])
})

test('late is a matter of the profile', () => {
  for (const [profile, suspectAfter] of [['balanced', 3_000], ['conservative', 10_000]] as const) {
    const slow: Policy = { ...policy, profile }
    assert.equal(wanted(suspectAfter - 251, {}, self(), [slow]), [])
    assert.equal(wanted(suspectAfter - 250, {}, self(), [slow]), ['askDevice'])
  }
})

test('every method is asked, and none that is being asked or ordered', () => {
  const plug: Method = { ...method, name: 'plug-off', digest: 'd2' }
  const path = { levels: [[method], [plug]], faults: [] }
  const both = record({ paths: [method, plug].map(({ name, digest }) => ({ method: name, digest, boot, state: 'verified', identity: 'proven', at: '', evidence: 'on' } as const)) })
  assert.equal(wanted(1_300, { path, record: both }), ['askDevice', 'askDevice'])
  assert.equal(wanted(1_300, { path, record: both, busy: new Set(['askDevice node-2 bmc-off']) }), ['askDevice'])
  assert.equal(wanted(1_300, { busy: new Set(['order node-2 bmc-off']) }), [])
})

test('a node that is late again and again is asked once in ten seconds', () => {
  assert.equal(wanted(1_300, { readings: [reading('on', now - 10_099, now - 9_999)] }), [])
  assert.equal(wanted(1_300, { readings: [reading('on', now - 10_100, now - 10_000)] }), ['askDevice'])
})

// The answer of a node that dies during its audit would be taken for the audit's, and its path for one that lies.
test('a node whose audit is not over is not asked', () => {
  for (const unaudited of [{ paths: [] }, { boot: 'boot-0/1' }, { probe: { boot, answered: false, at: '' } }, { nodeUid: 'another' }]) {
    assert.not(wanted(1_300, { record: record(unaudited), readings: [reading('on', now - 60_000)], probe: { askedAt: now - 500, answeredAt: now - 400, word: 'answered' } })
      .includes('askDevice'), JSON.stringify(unaudited))
  }
})

test('a silence that was announced is not late', () => {
  for (const why of ['restart', 'reboot'] as const) assert.equal(wanted(1_300, { beat: beat({ at: now - 1_300, goodbye: { at: now - 1_300, why } }) }), [])
})

test('while blind nothing is asked, and a stall of our own makes no beat late', () => {
  assert.equal(wanted(1_300, {}, self({ freshAt: now - 60_000 })), [])
  assert.equal(wanted(2_400, {}, self({ awakeSince: now - 1_200 })), [])
})

test('a node with an incident is asked by it', () => {
  const actions = decide(three({ beat: beat({ at: now - 1_300, boot: 'boot-2/900' }), readings: [reading('on', now - 500)] }, [incident()]), now, [policy])
  assert.not(actions.some((action) => action.do === 'askDevice'))
})

const crowd = (count: number, quiet: number) => Array.from({ length: count }, (_, index) => node({ name: `late-${index}`, beat: beat({ at: now - quiet }) }))
const asked = (nodes: readonly NodeSeen[]): number => decide(seen([...nodes, node({ name: 'well' })]), now, [policy]).filter((action) => action.do === 'askDevice').length

test('many late together are not asked before they are suspect', () => {
  assert.is(asked(crowd(8, 1_300)), 8)
  assert.is(asked(crowd(9, 1_300)), 0)
  assert.is(asked(crowd(9, 1_500)), 9)
})

const busy = (count: number) => Array.from({ length: count }, (_, index) => node({ name: `busy-${index}`, busy: new Set([`order busy-${index} bmc-off`]) }))

test('while many programs run the late are not asked before they are suspect', () => {
  assert.is(asked([...crowd(1, 1_300), ...busy(7)]), 1)
  assert.is(asked([...crowd(1, 1_300), ...busy(8)]), 0)
  assert.is(asked([...crowd(1, 1_500), ...busy(8)]), 1)
})

test('what a late node\'s device says makes no verdict: off opens nothing before the suspicion', () => {
  const offs = { readings: [reading('off', now - 1_240, now - 1_230), reading('off', now - 100, now - 50)] }
  assert.equal(wanted(1_300, offs), [])
})

test.run()
