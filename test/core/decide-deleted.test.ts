// The Node object of an open incident was deleted: Kubernetes sweeps its pods, so the fence goes on, for a while.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { conditionsOf } from '../../coordinator/node-fence-status.ts'
import { decide } from '../../core/decide.ts'
import { fencedFor } from '../../core/deleted.ts'
import type { Incident, IncidentStatus } from '../../core/incident.ts'
import { goneKey, type NodeSeen } from '../../core/model.ts'
import { closed, freshStatus, opened as begun, proved } from '../../core/timeline.ts'
import { recall } from '../../core/proof.ts'
import { cleared, clearing, freed, opened, ordered, ordering, type State } from './states.ts'
import { inState, looks, loose, passed, wants } from './wishes.ts'
import { attempt, beat, boot, dead, incident, method, newBoot, node, now, pod, podsOf, policy, proofRecord, reading, record, seen, seenOrder, seenProof, self, volume } from './world.ts'

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

test('a control-plane node is one still, also to the brake that keeps its majority', () => {
  const plane = { controlPlane: true, ready: { status: 'False', postedAt: 0, since: 0, bootId: '' } } as const
  const nodes = [node({ name: 'node-1', ...plane }), node({ ...opened.node, ...gone(opened), controlPlane: true }), node({ name: 'node-3', controlPlane: true })]
  assert.ok(decide(seen(nodes, [incident({}, { policy: { ...policy, brakes: { ...policy.brakes, etcd: 'stacked' } } })]), now, [{ ...policy, brakes: { ...policy.brakes, etcd: 'stacked' } }]).some((one) => one.do === 'hold' && one.because === 'control-plane'))
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
  ['another remediator had it in hand', { taints: [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }] }, {}],
  ['a person kept us off it', { annotations: { 'holdfast.dev/maintenance': 'new disks' } }, {}],
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

/** All that follows from a proof was seen to be so since the Node was gone. */
const goneProven = (state: State, changes: Partial<NodeSeen> = {}, ago = 1_000): Partial<NodeSeen> => ({ ...gone({ ...state, node: { ...state.node, firstSeen: new Map([...state.node.firstSeen ?? [], seenProof(now - 600)]) } }, ago), ...changes })

const strikes = (state: State, changes: Partial<NodeSeen>, status: Partial<IncidentStatus> = {}, more: Partial<Incident> = {}): readonly string[] =>
  decide(inState(state, changes, status, more), now, [policy]).flatMap((one) => (one.do === 'detach' ? one.volumes.map((each) => each.volume) : []))

test('with a proof its pods are freed, with no taint; then its VolumeAttachments; then it ends', () => {
  assert.equal(wants(inState(clearing, goneProven(clearing))), ['delete web-0 api-x'])
  assert.equal(wants(inState(freed, goneProven(freed))), ['detach'])
  assert.equal(strikes(freed, goneProven(freed)), ['pv-1'], 'whatever kubelet said last that it uses')
  assert.equal(wants(inState(freed, goneProven(freed, { volumes: [volume('pv-1', { deleting: true })] }))), ['hold waiting-for-volumes'])
  assert.equal(wants(inState(cleared, goneProven(cleared, {}, 30_000))), ['close NodeDeleted'])
})

test('a proof of another boot frees nothing', () => {
  assert.equal(wants(inState(clearing, goneProven(clearing, {}, 40_000), { proof: proofRecord({ boot: newBoot }) })), ['close NodeDeleted'])
})

test('it beats after the proof, and nobody knows yet whether that was on its way: nothing is freed, and it is challenged', () => {
  const beaten = inState(clearing, goneProven(clearing, { beat: beat({ at: now - 100 }), firstSeen: new Map([...seenOrder(now - 6_000, now - 200), seenProof(now - 150), [goneKey, now - 1_000]]) }))
  assert.equal([wants(beaten), looks(beaten)], [['hold proof-doubted'], ['challenge']])
})

test('nothing is freed on a reading that is not fresh, or once its device says on', () => {
  const stale = goneProven(clearing, { readings: [reading('off', now - 4_000), reading('off', now - 2_500)] })
  assert.equal(wants(inState(clearing, stale)), [])
  assert.ok(looks(inState(clearing, stale)).includes('askDevice bmc-off'))
  assert.equal(wants(inState(clearing, goneProven(clearing, { readings: [...clearing.node.readings ?? [], reading('on', now - 300)] }))), ['hold proof-doubted'])
})

test('a volume that a pod of the node still uses is not let go of, and is waited for: Kubernetes deletes that pod, too', () => {
  const uses = [{ claim: 'default/data', is: 'bound', volume: 'pv-1', driver: 'csi.example.com', provisioner: '', shared: false, local: false }] as const
  const daemon = pod('ds', { exempt: 'DaemonSet', volumes: uses })
  assert.equal(wants(inState(freed, goneProven(freed, { pods: podsOf([daemon]) }))), ['hold waiting-for-volumes'])
  assert.equal(strikes(freed, goneProven(freed, { pods: podsOf([{ ...daemon, phase: 'Failed' }]) })), ['pv-1'])
})

test('a proof of the machine covers every volume, also of pods that the policy spares; a partial one those of its drivers', () => {
  const volumes = [volume('pv-1'), volume('pv-2', { driver: 'csi.other.com' })]
  const spares = { policy: { ...policy, nodeDownPodDeletionPolicy: 'DeleteStatefulSetPod' } } as const
  assert.equal(strikes(freed, goneProven(freed, { volumes }), {}, spares), ['pv-1', 'pv-2'])
  const handsOff = { policy: { ...policy, provisioners: ['csi.other.com'] } }
  assert.equal(strikes(freed, goneProven(freed, { volumes }), {}, handsOff), [], 'none of them was a freed pod\'s')
  const evidence = [{ source: 'CSIDriver csi.other.com', word: 'its volumes are out of reach', at: '' }]
  const isolated = { name: 'bmc-off', digest: 'd1' }
  const path = { levels: [[{ ...method, ...isolated, isolates: ['csi.other.com'] }]], faults: [] }
  const firstSeen = new Map([...freed.node.firstSeen ?? [], seenProof(now - 600, 0, 'isolated'), [goneKey, now - 1_000] as [string, number]])
  assert.equal(strikes(freed, goneProven(freed, { volumes, path, firstSeen }), { proof: proofRecord({ kind: 'isolated', evidence }) }), ['pv-2'])
})

function stuckFor(ago: number): readonly string[] {
  const firstSeen = new Map([...freed.node.firstSeen ?? [], seenProof(now - 99_000), [goneKey, now - ago] as [string, number]])
  return wants(inState(freed, { ...goneProven(freed, { volumes: [volume('pv-1', { deleting: true, error: 'busy' })] }), firstSeen }, {}, { policy: { ...policy, clearPatience: 60_000 } }))
}

test('what keeps a volume is waited for as in every clear, and no longer', () => {
  assert.equal([stuckFor(59_999), stuckFor(60_000)], [['hold waiting-for-volumes'], ['close NodeDeleted']])
})

test('of a part alone is proven what it covers: its power is ordered off as well, as long as that is worth anything', () => {
  const plug = { ...method, name: 'plug-off', device: 'pdu-1:161', digest: 'd2' }
  const path = { levels: [[{ ...method, isolates: ['csi.example.com'] }], [plug]], faults: [] }
  const evidence = [{ source: 'CSIDriver csi.example.com', word: 'its volumes are out of reach', at: '' }]
  const status = { proof: proofRecord({ kind: 'isolated', evidence }) }
  const trusted = record({ paths: [...record().paths, { method: 'plug-off', digest: 'd2', boot, state: 'verified', identity: 'proven', at: 'then', evidence: 'on' }] })
  const at = (ago: number): Partial<NodeSeen> => ({
    ...gone(cleared, ago), path, record: trusted, readings: [...cleared.node.readings ?? [], reading('on', now - 400, now - 300, { method: 'plug-off', digest: 'd2' })],
    firstSeen: new Map([...seenOrder(now - 6_000, now - 4_000), seenProof(now - 600, 0, 'isolated'), [goneKey, now - ago]]),
  })
  const more = { policy: { ...policy, powerAfter: 0 } }
  assert.ok(wants(inState(cleared, at(1_000), status, more)).includes('fence plug-off'))
  assert.equal(wants(inState(cleared, at(fencedFor), status, more)), ['close NodeDeleted'])
})

test('by a word that rests on reading the Node nothing more is freed: there is none to be read', () => {
  const vouched = { proof: proofRecord({ kind: 'vouched', level: -1, methods: [] }) }
  const word = { acknowledge: { boot, by: 'a person', reason: 'I pulled the plug', until: '2026-01-01T01:00:00.000Z' } }
  assert.not(wants(inState(clearing, goneProven(clearing), vouched, word)).some((one) => one.startsWith('delete') || one === 'detach'))
})

test('the fenced boot answered after the proof: it is void, and frees nothing', () => {
  const answered = { beat: beat({ at: now - 10_000, answered: { issuedAt: now - 400, boot } }) }
  assert.equal(wants(inState(clearing, goneProven(clearing, answered))), ['void'])
})

test('where nothing is freed by its policy nothing of it is, and it ends', () => {
  assert.equal(wants(inState(freed, goneProven(freed, {}, 40_000), { proof: proofRecord({ kind: 'found-off' }), attempts: [] }, { policy: { ...policy, nodeDownPodDeletionPolicy: 'DoNothing', volumeAttachmentRecovery: 'never' } })), ['close NodeDeleted'])
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
