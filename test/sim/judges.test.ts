import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { twins, twoWriters, wroteAfterRelease, type Running } from '../../sim/judges.ts'
import type { Stretch } from '../../sim/storage.ts'

const test = suite('judges')

const stretch = (wanted: Partial<Stretch>): Stretch => ({
  volume: 'v', node: 'n1', boot: 'b1', pod: 'work/db-0', podUid: 'u1', kind: 'data', firstAt: 0, lastAt: 10, writes: 1, late: undefined, ...wanted,
})
const run = (wanted: Partial<Running>): Running => ({
  pod: 'work/db-0', podUid: 'u1', node: 'n1', boot: 'b1', startedAt: 0, endedAt: 10, identity: true, ...wanted,
})

test('a volume that moves has one writer after the other', () => {
  assert.equal(twoWriters([stretch({}), stretch({ node: 'n2', boot: 'b2', podUid: 'u2', firstAt: 11, lastAt: 20 })]), [])
})

test('a writer that goes on after another has begun is two writers, from where until when', () => {
  const found = twoWriters([stretch({ lastAt: 15 }), stretch({ node: 'n2', boot: 'b2', podUid: 'u2', firstAt: 11, lastAt: 20 })])
  assert.equal(found.map(({ volume, from, until, parties }) => ({ volume, from, until, parties })), [{ volume: 'v', from: 11, until: 15, parties: [{ node: 'n1', boot: 'b1', podUid: 'u1' }, { node: 'n2', boot: 'b2', podUid: 'u2' }] }])
  assert.match(found[0]?.one ?? '', 'n1')
})

test('a writer that paused while another wrote is one writer still, and so two with the other', () => {
  const log = [stretch({}), stretch({ node: 'n2', boot: 'b2', podUid: 'u2', firstAt: 20, lastAt: 90 }), stretch({ firstAt: 50, lastAt: 51 })]
  assert.is(twoWriters(log).length, 1)
})

test('a volume that went away and came back in another pod is not two writers', () => {
  const log = [stretch({}), stretch({ node: 'n2', boot: 'b2', podUid: 'u2', firstAt: 20, lastAt: 30 }), stretch({ podUid: 'u3', firstAt: 40, lastAt: 50 })]
  assert.equal(twoWriters(log), [])
})

test('a journal replayed by a new boot of the old node is a write', () => {
  const log = [stretch({}), stretch({ node: 'n2', boot: 'b2', podUid: 'u2', firstAt: 20, lastAt: 90 }), stretch({ boot: 'b3', kind: 'mount', firstAt: 50, lastAt: 50 })]
  assert.is(twoWriters(log).length, 1)
})

test('two pods of one boot may share a volume', () => {
  assert.equal(twoWriters([stretch({}), stretch({ podUid: 'u2', firstAt: 5, lastAt: 20 })]), [])
})

test('the one that had begun first is named first, however the log has them', () => {
  const log = [stretch({ node: 'n2', boot: 'b2', podUid: 'u2', firstAt: 11, lastAt: 20 }), stretch({ lastAt: 15 })]
  assert.equal(twoWriters(log).map(({ parties }) => parties.map(({ node }) => node)), [['n1', 'n2']])
})

test('writes after a release are told with their span and number', () => {
  const late = { firstAt: 12, lastAt: 15, writes: 4 }
  assert.equal(wroteAfterRelease([stretch({}), stretch({ late })]).map(({ from, until, writes, parties }) => [from, until, writes, parties]), [[12, 15, 4, [{ node: 'n1', boot: 'b1', podUid: 'u1' }]]])
})

test('an identity that runs in two pods at once is twins, a restart of one pod is not', () => {
  assert.is(twins([run({ endedAt: undefined }), run({ podUid: 'u2', node: 'n2', startedAt: 5, endedAt: undefined })]).length, 1)
  assert.equal(twins([run({}), run({ startedAt: 5 })]), [])
  assert.equal(twins([run({}), run({ podUid: 'u2', node: 'n2', startedAt: 10 })]), [])
  assert.equal(twins([run({ identity: false }), run({ podUid: 'u2', startedAt: 5, identity: false })]), [])
})

const shut = (from: number, until: number) => (node: string, since: number, to: number | undefined) => node === 'n1' && from <= since && until >= (to ?? Infinity)

test('two containers of one identity are none where either was cut off from its storage all the while', () => {
  const both = [run({ endedAt: 30 }), run({ podUid: 'u2', node: 'n2', startedAt: 11, endedAt: 50 })]
  assert.equal([twins(both), twins(both, shut(5, 30)), twins(both, shut(5, 29)), twins(both, shut(12, 30))].map(({ length }) => length), [1, 0, 1, 1])
  const again = [run({ node: 'n2', endedAt: 30 }), run({ podUid: 'u2', startedAt: 11, endedAt: 50 })]
  assert.equal([twins(again), twins(again, shut(5, 30)), twins(again, shut(5, 29))].map(({ length }) => length), [1, 0, 1], 'started again by a kubelet that does not know')
})

test.run()
