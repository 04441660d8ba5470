import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { addressesOf } from '../../core/address.ts'
import { audits } from '../../core/audit.ts'
import type { NodeRecord, NodeSeen, Self } from '../../core/model.ts'
import { survey } from '../../core/survey.ts'
import { beat, incident, newBoot, node, now, policy, reading, record, seen, self, silent } from './world.ts'

const test = suite('address')

/** Well, and audited but for what is said of its addresses. */
function well(changes: Partial<NodeSeen> = {}, kept: Partial<NodeRecord> = {}): NodeSeen {
  const name = changes.name ?? 'node-2'
  const machine = `machine-${name.slice(-1)}`
  return node({
    addresses: ['10.0.0.7', 'fd00::7'], probe: { askedAt: now - 5_000, answeredAt: now - 4_990, word: 'answered' }, readings: [reading('on', now - 9_000, now - 8_900, { machine })],
    record: record({ nodeUid: `uid-${name}`, machine, ...kept }), ...changes,
  })
}

/** What is put on which record. */
const put = (nodes: readonly NodeSeen[], own: Partial<Self> = {}, incidents = [] as ReturnType<typeof incident>[]) =>
  audits(survey(seen(nodes, incidents, self(own)), now, [policy])).flatMap((one): [string, readonly string[] | undefined][] => (one.do === 'record' ? [[one.node, one.record.addresses]] : []))

const onRecord = { addresses: ['10.0.0.7', 'fd00::7'] }
const moved = { addresses: ['10.0.0.8'] }

test('what a Node names goes on its record while it is heard, wherever its beats come from, and is written once', () => {
  assert.equal(put([well()]), [['node-2', ['10.0.0.7', 'fd00::7']]])
  assert.equal(put([well({ beat: beat({ from: '10.244.0.1' }) })]), [['node-2', ['10.0.0.7', 'fd00::7']]])
  assert.equal(put([well({}, onRecord)]), [])
})

test('a Node that names no address has none on record, and its record is not written for that', () => {
  assert.equal(put([well({ addresses: undefined })]), [])
  assert.equal(put([well({ addresses: undefined }, onRecord)]), [['node-2', undefined]])
})

test('other addresses are put there at once; the first ones no faster than whatever nobody waits for', () => {
  const busy: Partial<Self> = { recordBudget: 0 }
  const just = { recordWrite: { at: now - 1_000 } }
  assert.equal(put([well({ ...moved, ...just }, onRecord)], busy), [['node-2', ['10.0.0.8']]])
  assert.equal([put([well()], busy), put([well(just)])], [[], []])
})

for (const [who, changes] of [
  ['is silent', silent], ['was never heard', { beat: undefined }], ['is gone', { gone: true }],
] as const) {
  test(`what the Node names of a machine that ${who} goes on no record`, () => {
    assert.equal(put([well({ ...moved, ...changes })]), [])
    assert.equal(put([well({ ...moved, ...changes }, onRecord)]), [])
  })
}

test('while an incident is open the record keeps its addresses, though the machine is heard again and its Node names others: what was cut off is given back by them', () => {
  assert.equal(put([well(moved, onRecord)], {}, [incident()]), [])
  const next = well({ ...moved, bootId: 'boot-2', beat: beat({ boot: newBoot, since: now - 20_000 }) }, onRecord)
  assert.equal(put([next], {}, [incident()]), [['node-2', ['10.0.0.7', 'fd00::7']]], 'in its next boot too')
  assert.equal(put([next]), [['node-2', ['10.0.0.8']]], 'until it is over')
})

test('what its kubelet posted before this boot is of the one before: what is on record stays until it posts anew', () => {
  const booted = { beat: beat({ boot: newBoot, since: now - 20_000 }), ...moved }
  assert.equal(put([well(booted, onRecord)]), [['node-2', ['10.0.0.7', 'fd00::7']]])
  assert.equal(put([well(booted, { ...onRecord, nodeUid: 'uid-before' })]), [['node-2', undefined]], 'unless that is of another Node')
  assert.equal(put([well({ ...booted, bootId: 'boot-2' }, onRecord)]), [['node-2', ['10.0.0.8']]])
  assert.equal(put([well({ ...moved, bootId: '' }, onRecord)]), [])
})

test('what is on the record of another Node of its name is none of its', () => {
  assert.equal(addressesOf(well({}, onRecord)), ['10.0.0.7', 'fd00::7'])
  assert.is(addressesOf(well({}, { ...onRecord, nodeUid: 'uid-before' })), undefined)
})

test('who names what another has on record takes it from nobody, and has none himself', () => {
  const victim = well({ name: 'node-1' }, onRecord)
  const liar = (kept: Partial<NodeRecord>) => well({ name: 'node-3', addresses: ['10.0.0.3', 'fd00::7'] }, kept)
  assert.equal(put([victim, liar({})]), [])
  assert.equal(put([victim, liar({ addresses: ['10.0.0.3'] })]), [['node-3', undefined]])
  const asleep = well({ name: 'node-1', addresses: undefined, ...silent }, onRecord)
  assert.equal(put([asleep, liar({})]), [], 'nor while the other is silent')
})

test('what two name, and neither has on record, is put on neither\'s', () => {
  const both = [well({ name: 'node-1', addresses: ['10.0.0.1', '10.0.0.9'] }), well({ name: 'node-3', addresses: ['10.0.0.3', '10.0.0.9'] })]
  assert.equal(put(both), [])
  assert.equal(put([both[0] as NodeSeen, well({ name: 'node-3', addresses: ['10.0.0.3'] })]), [['node-1', ['10.0.0.1', '10.0.0.9']], ['node-3', ['10.0.0.3']]])
})

test.run()
