// The Node object of an open incident was deleted: Kubernetes sweeps its pods, so the fence goes on, for a while.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { conditionsOf } from '../../coordinator/node-fence-status.ts'
import { decide } from '../../core/decide.ts'
import { fencedFor } from '../../core/deleted.ts'
import type { Incident } from '../../core/incident.ts'
import { goneKey, type NodeSeen } from '../../core/model.ts'
import { closed, freshStatus, opened as begun, proved } from '../../core/timeline.ts'
import { recall } from '../../core/proof.ts'
import { opened, ordered, ordering, type State } from './states.ts'
import { inState, looks, loose, passed, wants } from './wishes.ts'
import { attempt, beat, dead, incident, method, newBoot, node, now, policy, proofRecord, record, seen, seenOrder, self } from './world.ts'

const test = suite('decide: deleted')

/** Its Node object has been gone for so long. */
const gone = ({ node: { firstSeen = new Map<string, number>() } }: State, ago = 10_000): Partial<NodeSeen> => ({ gone: true, taints: [], firstSeen: new Map([...firstSeen, [goneKey, now - ago]]) })

test('without a proof the fence goes on: it is ordered off, proven by the same rules, and nothing is written on the Node', () => {
  assert.equal(wants(inState(opened, gone(opened))), ['fence bmc-off'])
  assert.equal(wants(inState(ordering, gone(ordering))), [])
  assert.equal(wants(inState(ordered, gone(ordered))), ['prove off'])
  assert.equal(looks(inState(opened, { ...gone(opened), probe: undefined, witnesses: [], readings: [] })), ['askDevice bmc-off', 'askWitnesses', 'probe', 'readLease'])
})

test('one that nobody takes for dead is not ordered off because its Node is gone', () => {
  assert.equal(wants(inState(opened, { ...gone(opened), witnesses: [] })), ['hold not-dead'])
  assert.equal(wants(inState(opened, { ...gone(opened), probe: { askedAt: now - 1_000, answeredAt: now - 900, word: 'answered' } })), ['hold not-dead'])
})

test('hands off: it is held like any other', () => {
  assert.equal(wants(inState(opened, gone(opened), {}, {}, self({ pause: { reason: 'x', by: 'y' } }))), ['hold pause'])
})

const ends: readonly (readonly [string, Partial<NodeSeen>, Partial<Incident>])[] = [
  ['it is heard again', { beat: beat() }, {}],
  ['a new boot of it is heard', { beat: beat({ boot: newBoot }) }, {}],
  ['a person aborted it', {}, { abort: true }],
  ['it is a drill', {}, { cause: 'drill' }],
  ['it only gives back what is owed', {}, { cause: 'owed' }],
  ['it was of another Node of the name', { uid: 'uid-other' }, {}],
]
for (const [what, changes, more] of ends) {
  test(`${what}: it ends, and nothing is ordered off`, () => assert.equal(wants(inState(opened, { ...gone(opened), ...changes }, {}, more)), ['close NodeDeleted']))
}

test('its machine bears another Node by now: it ends, and nothing is ordered off', () => {
  const nodes = [node({ name: 'node-1' }), node({ ...opened.node, ...gone(opened) }), node({ name: 'node-3', machine: 'MACHINE-2' })]
  assert.equal(decide(seen(nodes, [incident()]), now, [policy]).flatMap((one) => (one.do === 'close' || one.do === 'fence' ? `${one.do} ${one.node}` : [])), ['close node-2'])
})

test('a person wants it fenced though it is heard: that goes on, and its pods are not asked to go first', () => {
  const byHand = { cause: 'by-hand', policy: { ...policy, evictWithin: 60_000 } } as const
  assert.equal(wants(inState(opened, { ...gone(opened), beat: beat() }, {}, byHand)), ['fence bmc-off'])
})

test('it is bounded: after five minutes one without a proof ends, whatever is left to try; what may land is waited for', () => {
  for (const state of [opened, ordered]) {
    assert.not(wants(inState(state, gone(state, fencedFor - 1))).includes('close NodeDeleted'))
    assert.equal(wants(inState(state, gone(state, fencedFor))), ['close NodeDeleted'])
  }
  assert.equal(wants(inState(opened, gone(opened, fencedFor), {}, {}, self({ pause: { reason: 'x', by: 'y' } }))), ['close NodeDeleted'], 'a pause keeps none open')
  assert.equal(wants(inState(ordering, gone(ordering, fencedFor))), ['hold order-may-land'])
  const late = { ...ordered, node: { ...ordered.node, firstSeen: new Map(seenOrder(now - 50_000, now - 40_000)) } }
  assert.equal(wants(inState(late, gone(late, fencedFor), { attempts: [attempt({ result: 'failed' })] })), ['hold order-may-land'])
  assert.equal(wants(inState(ordered, { ...passed, ...gone({ node: passed, status: {} }, fencedFor), readings: [] }, { attempts: [loose] })), ['close NodeDeleted'])
})

test('what may have struck another machine is not switched on for a Node that is gone, and that is said', () => {
  const unproven = record({ paths: record().paths.map((one) => ({ ...one, identity: 'unproven' })) })
  const nodes = [node({ name: 'node-1' }), node({ ...ordered.node, ...gone(ordered), record: unproven }), node({ ...dead, name: 'node-3', path: { levels: [[{ ...method, name: 'other' }]], faults: [] } })]
  const actions = decide(seen(nodes, [incident(ordered.status)]), now, [policy]).filter((one) => one.node === 'node-2')
  assert.not(actions.some((one) => one.do === 'restore' || one.do === 'prove'))
  assert.ok(actions.some((one) => one.do === 'hold' && one.because === 'identity-unproven'))
})

test('how it ended is told: without a proof it did not succeed; one that was withdrawn by then had nothing to prove', () => {
  const begin = begun(1, 'r', 'silence', [], '2026-01-01T00:00:00.000Z')(freshStatus(1))
  const close = closed('NodeDeleted', 'the Node object is gone', '2026-01-01T00:05:00.000Z')
  const says = (status: typeof begin) => conditionsOf(close(status)).find(({ type }) => type === 'Succeeded')?.status
  assert.is(says(begin), 'False')
  assert.is(says(proved(recall(proofRecord()), '2026-01-01T00:01:00.000Z')(begin)), 'True')
  assert.is(says({ ...begin, phase: 'Done', step: 'recovery' }), 'True')
})

test.run()
