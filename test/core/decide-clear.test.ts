// What is proven, what a proof frees, and when a node is cleared.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { IncidentStatus } from '../../core/incident.ts'
import type { NodeSeen, Self } from '../../core/model.ts'
import { bootedReady, cleared, clearing, freed, ordered, proven, quarantine, seenAll, seenLongAgo } from './states.ts'
import { held, holds, inState, lead, looks, wants } from './wishes.ts'
import { attempt, beat, foundOffNode, incident, method, newBoot, now, pod, podsOf, policy, proofRecord, reading, seenOrder, seenProof, self, three } from './world.ts'

const test = suite('decide: clear')

// prove

test('a level ordered off and read off twice is proven; nothing is freed before that is on the record', () => {
  assert.equal(wants(inState(ordered)), ['prove off'])
})

test('a found-off is proven without an order', () => {
  assert.equal(wants(three(foundOffNode, [incident({}, { cause: 'found-off' })])), ['prove found-off'])
})

test('after an order was given there is no found-off', () => {
  const state = { ...foundOffNode, firstSeen: new Map(seenOrder(now - 3_900, now - 500)), taints: [quarantine] }
  assert.not(wants(three(state, [incident({ attempts: [attempt()] })])).some((one) => one.startsWith('prove')))
})

const notProven: [string, Partial<NodeSeen>, Partial<IncidentStatus>][] = [
  ['the fence agent failed and the device says on', { readings: [reading('on', now - 2_300), reading('on', now - 900)] }, { attempts: [attempt({ result: 'failed' })] }],
  ['the fence agent hangs', { busy: new Set(['order node-2 bmc-off']), firstSeen: new Map(seenOrder(now - 6_000)), readings: [reading('off', now - 2_300), reading('off', now - 900)] }, { attempts: [attempt({ result: 'running' })] }],
  ['the device says off once and on again', { readings: [reading('off', now - 2_300), reading('on', now - 900)] }, {}],
  ['the device stops answering', { readings: [reading('off', now - 2_300), reading('unknown', now - 900)] }, {}],
  ['its level was shown false', {}, { voided: [{ proof: proofRecord(), at: '', evidence: '' }] }],
]
for (const [how, changes, status] of notProven) {
  test(`if ${how}, nothing is proven and nothing freed`, () => {
    const wished = wants(inState(ordered, changes, status))
    assert.not(wished.some((one) => /prove|delete|out-of-service/.test(one)), wished.join())
  })
}

test('a proof is not made of a node that beats', () => {
  assert.not(wants(inState(ordered, { beat: beat() }, { attempts: [attempt({ result: 'failed' })] })).includes('prove off'))
})

// taint, delete

test('after the proof out-of-service goes on together with the quarantine', () => {
  assert.equal(wants(inState(proven)), ['taint out-of-service'])
  assert.equal(wants(inState(proven, { taints: [] })), ['taint out-of-service'])
})

test('out-of-service goes on only over devices that this leader has itself heard say off', () => {
  assert.not(wants(inState(proven, { readings: [] })).includes('taint out-of-service'))
  assert.ok(looks(inState(proven, { readings: [] })).includes('askDevice bmc-off'))
  for (const state of ['on', 'unknown'] as const) {
    assert.equal(wants(inState(proven, { readings: [reading('off', now - 1_900), reading(state, now - 500)] })), ['hold proof-doubted'])
  }
})

test('a proof by a method that is not configured any more, or otherwise, frees nothing, and that is said', () => {
  const other = { path: { levels: [[{ ...method, digest: 'd9' }]], faults: [] } }
  const gone = { path: { levels: [], faults: ['no such template'] } }
  const proof = proofRecord({ digests: ['d1'] })
  for (const state of [proven, clearing, freed]) {
    const cut = { proof, attempts: [attempt({ digest: 'd1' })] }
    assert.not(wants(inState(state, {}, cut)).includes('hold config-invalid'))
    for (const changes of [other, gone]) {
      assert.equal(wants(inState(state, changes, cut)), ['hold config-invalid', 'hold still-cut'])
      assert.equal(wants(inState(state, changes, { proof, attempts: [] })), ['hold config-invalid'], 'nobody here cut it')
    }
  }
})

test('a record whose proof is of another boot or another node frees nothing', () => {
  for (const wrong of [{ boot: newBoot }, { nodeUid: 'uid-other' }]) {
    for (const state of [proven, clearing, freed, cleared]) {
      assert.equal(wants(inState(state, {}, { proof: proofRecord(wrong) })), ['hold proof-doubted'])
    }
  }
})

test('the pods of a proven node are deleted, StatefulSets first', () => {
  assert.equal(wants(inState(clearing)), ['delete web-0 api-x'])
})

const notDeleted: [string, Partial<NodeSeen>, Partial<Self>, readonly string[]][] = [
  ['the device was not read within the last second', { readings: [reading('off', now - 3_300), reading('off', now - 1_900)] }, {}, []],
  ['this leader has not read the device itself', { readings: [] }, {}, []],
  ['the device says on', { readings: [reading('off', now - 1_300), reading('on', now - 300)] }, {}, ['untaint out-of-service', 'hold proof-doubted']],
  ['the device said on, and off only once since', { readings: [reading('off', now - 2_300), reading('on', now - 1_300), reading('off', now - 300)] }, {}, ['hold proof-doubted']],
  ['the device does not answer', { readings: [reading('off', now - 1_300), reading('unknown', now - 300)] }, {}, ['hold proof-doubted']],
  ['the pods were not listed since the proof', { pods: podsOf([pod('web-0')], now - 600) }, {}, []],
  ['the rate is used up', {}, { podBudget: 0 }, ['hold waiting-for-volumes', 'hold rate']],
  ['the fenced boot beats again', { beat: beat() }, {}, ['hold proof-doubted']],
  ['a new boot beats', { beat: beat({ boot: newBoot, since: now - 300 }) }, {}, ['untaint out-of-service']],
  ['kubelet posted a status from a new boot', { ready: { ...bootedReady, postedAt: now - 300 } }, {}, ['untaint out-of-service']],
]
for (const [how, changes, own, wished] of notDeleted) {
  test(`no pod is deleted if ${how}`, () => assert.equal(wants(inState(clearing, changes, {}, {}, lead(own))), wished))
}

test('a node whose pods wait for the rate is neither cleared nor switched on', () => {
  assert.equal(wants(inState(clearing, { volumes: [] }, {}, {}, lead({ podBudget: 0 }))), ['hold rate'])
})

test('under DoNothing a proof frees nothing', () => {
  assert.equal(wants(inState(proven, {}, {}, { policy: { ...policy, nodeDownPodDeletionPolicy: 'DoNothing' } })), ['hold do-nothing'])
})

// Cleared.

test('while volumes are attached the incident says so, and out-of-service stays', () => {
  assert.equal(wants(inState(freed)), ['hold waiting-for-volumes'])
  assert.match(held(inState(freed), 'waiting-for-volumes'), /pv-1/)
})

const listed = (ago: number, changes: Partial<NodeSeen> = {}, own: Self = self()) => looks(inState(freed, { firstSeen: seenLongAgo, pods: podsOf([], now - ago), ...changes }, {}, {}, own)).includes('listPods')

test('while the clear waits the pods are listed once a second; after a batch, and without a list of now, at once', () => {
  assert.equal([listed(100), listed(990), listed(1_000), listed(1_900), listed(2_100)], [false, false, true, true, true])
  const due = podsOf([pod('web-0')], now - 200)
  assert.is(listed(0, { pods: due }, lead({ podBudget: 0 })), false, 'waiting for the rate')
  const { pods: _, ...unlisted } = freed.node
  assert.ok(looks(inState({ node: unlisted, status: freed.status })).includes('listPods'))
  assert.ok(looks(inState(freed, { pods: podsOf([], now - 600) })).includes('listPods'), 'listed before the proof')
})

const unlisted = (changes: Partial<NodeSeen>) => holds(inState(clearing, { pods: undefined, firstSeen: seenAll, ...changes }))

test('a list of pods that does not come is waited for; one that is refused is told at once, and no answer but the right lifts it', () => {
  assert.equal(unlisted({}), [])
  assert.equal(unlisted({ firstSeen: seenLongAgo }), [['blind', 'the pods of node-2 could not be listed since the proof', 'an answer of the API server']])
  assert.equal(unlisted({ podsRefused: '403 pods is forbidden' }), [['blind', 'the API server refuses to list the pods of node-2: 403 pods is forbidden', 'the right to list pods']])
})

test('everything free: out-of-service comes off while the node is still off', () => {
  assert.equal(wants(inState(cleared)), ['untaint out-of-service'])
})

test('after clearPatience a volume that does not come free holds nobody back, and neither does a finalizer', () => {
  const old = new Map([...seenAll, seenProof(now - policy.clearPatience)])
  assert.equal(wants(inState(freed, { firstSeen: old })), ['untaint out-of-service'])
  assert.equal(wants(inState(freed, { firstSeen: new Map([...seenAll, seenProof(now - policy.clearPatience + 1)]) })), ['hold waiting-for-volumes'])
})

test('a pod that a finalizer keeps is named', () => {
  assert.match(held(inState(freed, { volumes: [], pods: podsOf([pod('web-0', { finalizers: ['x/y'], terminating: true })]) }), 'finalizer'), /web-0 \(x\/y\)/)
})

test.run()
