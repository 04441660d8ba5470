// Whose device is ordered off, by which method, and what an order waits for.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decide } from '../../core/decide.ts'
import type { Incident, IncidentStatus } from '../../core/incident.ts'
import type { BeatSeen, Method, NodeSeen, Observed, Reading } from '../../core/model.ts'
import { attempts, lifted, on, opened, ordered, ordering, outOfService, quarantine, withdrawn } from './states.ts'
import { foundOffCleared, held, inState, looks, said, unidentified, wants, wide } from './wishes.ts'
import { attempt, beat, boot, dead, foundOffNode, incident, method, newBoot, node, now, policy, proofRecord, reading, record, seen, seenOrder, three } from './world.ts'

const test = suite('decide: fence')

test('a dead node of an open incident is quarantined and its device ordered off, in one breath', () => {
  assert.equal(wants(inState(opened)), ['taint quarantine', 'fence bmc-off'])
})

/** The device was never touched, though the record tells of an order. */
const notGiven = attempt({ result: 'not-given' })
const seenNotGiven = { firstSeen: new Map(seenOrder(now - 6_000, now - 6_000)) }

test('after an order that was never given a found-off is one still, and the round is not begun', () => {
  assert.equal(wants(three({ ...foundOffNode, ...seenNotGiven }, [incident({ attempts: [notGiven] })])), ['prove found-off'])
  assert.equal(wants(inState(opened, { ...seenNotGiven, beat: beat({ at: now - 2_000 }) }, { attempts: [notGiven] })), ['hold not-dead'])
})

test('an order that was never given keeps nobody waiting, and is nothing to give back', () => {
  assert.equal(wants(inState(withdrawn, seenNotGiven, { attempts: [notGiven] })), ['close Withdrawn'])
  assert.equal(wants(inState(foundOffCleared, {}, { attempts: [notGiven] })), ['hold waiting-for-boot'])
  const notGivenOn = { ...notGiven, id: 'late', action: 'on' } as const
  const later = { firstSeen: new Map([...(lifted.node.firstSeen ?? []), ...seenOrder(now - 2_000, now - 1_900, 'late')]) }
  assert.equal(wants(inState(lifted, later, { attempts: [...attempts, on, notGivenOn] })), ['close Recovered'])
})

test('an order is not given twice while it runs', () => {
  assert.equal(wants(inState(ordering)), [])
})

test('a quarantine that could not be written with the order is written while it runs', () => {
  assert.equal(wants(inState(ordering, { taints: [] })), ['taint quarantine'])
})

const notOrdered: [string, Partial<NodeSeen>, Partial<Incident>, string][] = [
  ['is no more than suspect', { ...opened.node, beat: beat({ at: now - 2_000 }) }, {}, 'hold not-dead'],
  ['answers, though its agent does not', { ...opened.node, probe: { askedAt: now - 2_000, answeredAt: now - 1_900, word: 'answered', spokeAt: now - 1_900 } }, {}, 'hold not-dead'],
  ['was not heard by this replica yet', { ...opened.node, beat: undefined, seenAt: now - 1_000 }, {}, 'hold not-dead'],
  ['has a policy that does nothing', opened.node, { policy: { ...policy, nodeDownPodDeletionPolicy: 'DoNothing' } }, 'hold do-nothing'],
  ['has no path', { ...opened.node, path: { levels: [], faults: [] } }, {}, 'hold no-path'],
  ['has a path that its configuration keeps out', { ...opened.node, path: { levels: [], faults: ['fence-config-node-2: no such template'] } }, {}, 'hold config-invalid'],
  ['has a device that does not answer', { ...opened.node, readings: [reading('unknown', now - 1_000)] }, {}, 'hold path-unverified'],
  ['has a path of unproven identity where the policy requires it', { ...opened.node, record: unidentified }, { policy: { ...policy, identity: 'require' } }, 'hold identity-unproven'],
]
for (const [how, changes, more, hold] of notOrdered) test(`a node that ${how} is not ordered off`, () => assert.equal(wants(inState({ node: changes, status: {} }, {}, {}, more)), [hold]))

test('while devices say off by themselves an order waits a moment for the second word', () => {
  const half = { ...dead, readings: [reading('off', now - 800)] }
  assert.equal(wants(three(half, [incident()])), [])
})

test('an order waits until a device that was not asked yet has answered', () => {
  assert.equal(wants(inState({ node: dead, status: {} })), [])
  assert.ok(looks(inState({ node: dead, status: {} })).includes('askDevice bmc-off'))
})

test('of two dead nodes in a small cluster one is fenced, the other waits for the slot', () => {
  const fencing = incident({ ...ordered.status }, { nodeName: 'node-9', nodeUid: 'uid-node-9', machine: '', name: 'node-9-abc-1' })
  const nodes = [node(opened.node), node({ ...dead, name: 'node-9', beat: beat({ at: now - 70_000 }) }), ...['node-1', 'node-3', 'node-4', 'node-5'].map((name) => node({ name }))]
  assert.equal(wants(seen(nodes, [incident(), fencing])), ['hold concurrency'])
  assert.match(held(seen(nodes, [incident(), fencing]), 'concurrency'), /node-9/)
})

test('an incident that rests holds no slot', () => {
  const failed = [attempt({ id: 'a', result: 'failed' }), attempt({ id: 'b', result: 'failed' })]
  const resting = incident({ phase: 'Running', step: 'power-management', attempts: failed }, { nodeName: 'node-9', nodeUid: 'uid-node-9', machine: '', name: 'node-9-abc-1' })
  const firstSeen = new Map([...seenOrder(now - 20_000, now - 19_000, 'a'), ...seenOrder(now - 18_000, now - 17_000, 'b')])
  const nodes = [node(opened.node), node({ ...dead, name: 'node-9', beat: beat({ at: now - 70_000 }), firstSeen }), ...['node-1', 'node-3', 'node-4', 'node-5'].map((name) => node({ name }))]
  assert.equal(wants(seen(nodes, [incident(), resting])), ['taint quarantine', 'fence bmc-off'])
})

test('two nodes that die in one tick in a small cluster: one order, not two', () => {
  const nodes = [node(opened.node), node({ ...opened.node, name: 'node-9' }), ...['1', '3', '4', '5', '6', '7'].map((nth) => node({ name: `node-${nth}` }))]
  const both = [incident(), incident({}, { nodeName: 'node-9', nodeUid: 'uid-node-9', machine: '', name: 'node-9-abc-1' })]
  assert.is(decide(seen(nodes, both), now, [policy]).filter((action) => action.do === 'fence').length, 1)
})

test('a fence that a person asked for is ordered though the node is well, and beats do not withdraw it', () => {
  const byHand = { cause: 'by-hand' } as const
  assert.equal(wants(inState({ node: { readings: [reading('on', now - 1_000)] }, status: {} }, {}, {}, byHand)), ['taint quarantine', 'fence bmc-off'])
})

test('a level failed, the next is ordered; none left, it rests', () => {
  const plug: Method = { ...method, name: 'plug-off', device: 'pdu-1:161', digest: 'd2' }
  const failed = [attempt({ id: 'a', result: 'failed' }), attempt({ id: 'b', result: 'failed' })]
  const firstSeen = new Map([...seenOrder(now - 20_000, now - 19_000, 'a'), ...seenOrder(now - 18_000, now - 17_000, 'b')])
  const on2 = reading('on', now - 1_000, now - 900, { method: 'plug-off', digest: 'd2' })
  const state = { ...opened.node, taints: [quarantine], firstSeen, readings: [reading('on', now - 1_000), on2] }
  assert.equal(wants(inState({ node: { ...state, path: { levels: [[method], [plug]], faults: [] } }, status: { attempts: failed } })), ['fence plug-off'])
  assert.equal(wants(inState({ node: state, status: { attempts: failed } })), ['hold resting'])
})

test('a program that does not end at its deadline is told', () => {
  assert.equal(wants(inState(ordering, { firstSeen: new Map(seenOrder(now - 45_000)) })), ['hold order-may-land'])
})

test('where the policy wants identity and the record is gone, an order is given by what the device tells of its machine now', () => {
  // With no audited port the Lease is what death is judged by.
  const lease = { askedAt: now - 600, readAt: now - 500, renewTime: 'a', unmovedSince: now - 20_000, moved: false }
  const orders = (told: Partial<Reading>) => wants(inState(opened, { record: undefined as never, beat: beat({ at: now - 15_000 }), lease, readings: [reading('on', now - 1_000, now - 900, told)] }, {}, { policy: { ...policy, identity: 'require' } }))
  assert.equal(orders({}), ['taint quarantine', 'fence bmc-off'])
  assert.equal(orders({ machine: undefined as never }), ['hold identity-unproven'])
  assert.equal(orders({ machine: 'machine-9' }), ['hold identity-unproven'])
})

const endedBoth = (ago: number) => [...seenOrder(now - ago - 2_000, now - ago), ...seenOrder(now - ago - 2_000, now - ago, 'x')] as const
const wishedOf = (one: Observed) => decide(one, now, [policy]).filter(({ node: whose }) => whose === 'node-2').map(said)

test('an off that may have struck another machine proves nothing, and is taken back once its time is over; then it is not given again', () => {
  const neighbour = node({ name: 'node-1', beat: beat({ at: now - 6_500 }) })
  const rest = [node({ name: 'node-3' }), node({ name: 'node-4' }), node({ name: 'node-5' })]
  const spent = { attempts: [attempt(), attempt({ id: 'x' })] }
  const observed = (ago: number, status: object = spent, more: readonly (readonly [string, number])[] = []) => {
    const readings = more.length > 0 ? [reading('on', now - 1_000)] : ordered.node.readings ?? []
    const target = node({ ...ordered.node, readings, record: unidentified, firstSeen: new Map([...endedBoth(ago), ...more]), beat: beat({ at: now - 40_000 }) })
    return seen([target, neighbour, ...rest], [incident(status)])
  }
  assert.match(held(observed(34_000), 'identity-unproven'), /node-1 on the same device has not answered/)
  assert.ok(wishedOf(observed(34_000)).includes('restore bmc-off'))
  assert.not(wishedOf(observed(20_000)).includes('restore bmc-off'), 'it may still answer')
  const given = { attempts: [...spent.attempts, attempt({ id: 'y', action: 'on', result: 'on' })] }
  const later = wishedOf(observed(60_000, given, seenOrder(now - 20_000, now - 19_000, 'y')))
  assert.ok(later.every((one) => !one.startsWith('fence') && !one.startsWith('restore')), later.join())
})

test('orders that failed, and a device that says off since: neighbours that beat are asked before their silence counts, and what they answer proves it', () => {
  const failed = { attempts: [attempt({ result: 'failed' }), attempt({ id: 'x', result: 'failed' })] }
  const target = node({ ...ordered.node, record: unidentified, firstSeen: new Map(endedBoth(5_000)), beat: beat({ at: now - 40_000 }) })
  const beside = (changes: Partial<BeatSeen>) => decide(seen([target, ...['node-1', 'node-3', 'node-4', 'node-5'].map((name) => node({ name, beat: beat(changes) }))], [incident(failed)]), now, [policy])
  assert.equal(beside({}).flatMap((one) => (one.do === 'challenge' ? one.node : [])), ['node-1', 'node-3', 'node-4', 'node-5'])
  assert.ok(beside({ answered: { issuedAt: now - 1_000, boot } }).some((one) => one.do === 'prove'))
})

test('what may feed another machine is not switched on while that one is being proven off or cleared', () => {
  const spent = { phase: 'Running', step: 'power-management', attempts: [attempt(), attempt({ id: 'x' })] } as const
  const target = node({ ...ordered.node, record: unidentified, firstSeen: new Map(endedBoth(34_000)), beat: beat({ at: now - 40_000 }) })
  const astray = (other: Partial<NodeSeen>, status: Partial<IncidentStatus>, its: Partial<NodeSeen> = {}) => {
    const neighbour = node({ name: 'node-1', beat: beat({ at: now - 36_500 }), ...other })
    const beside = incident(status, { name: 'node-1-abc-1', nodeName: 'node-1', nodeUid: 'uid-node-1', machine: 'machine-1' })
    return seen([{ ...target, ...its }, neighbour, node({ name: 'node-3' }), node({ name: 'node-4' }), node({ name: 'node-5' })], [incident(spent), beside])
  }
  const proof = proofRecord({ nodeUid: 'uid-node-1' })
  const ofSome = proofRecord({ nodeUid: 'uid-node-1', kind: 'safe-detach', methods: [], digests: [] })
  const ordering1 = { phase: 'Running', step: 'power-management', attempts: [attempt({ id: 'z' })] } as const
  for (const [what, other, status] of [
    ['proven', {}, { phase: 'Running', step: 'clear', proof }], ['out of service', { taints: [outOfService] }, { phase: 'Running', step: 'clear', proof }],
    ['ordered off', { firstSeen: new Map(seenOrder(now - 3_000, now - 1_000, 'z')), readings: [reading('off', now - 800)] }, ordering1],
    ['being ordered off', { busy: new Set(['order node-1 bmc-off']) }, { phase: 'Running' }],
    ['being ordered off, and proven of some volumes', { busy: new Set(['order node-1 bmc-off']) }, { phase: 'Running', step: 'clear', proof: ofSome }],
  ] as const) {
    assert.not(wishedOf(astray(other, status)).includes('restore bmc-off'), what)
    assert.match(held(astray(other, status), 'concurrency'), /^node-1 is being fenced, and nothing proves that bmc-off does not switch it on/, what)
  }
  const apart = { path: { levels: [[{ ...method, device: 'bmc-1:443' }]], faults: [] }, beat: beat({ at: now - 60_000 }) }
  for (const [what, other, status] of [
    ['cleared', {}, { phase: 'Running', step: 'recovery', proof }], ['withdrawn', {}, { phase: 'Done', step: 'recovery' }], ['not yet ordered off', {}, { phase: 'Running' }],
    ['proven of some volumes, which it reaches no more in any boot', {}, { phase: 'Running', step: 'clear', proof: ofSome }],
    ['on another device, and silent before', apart, { phase: 'Running', step: 'clear', proof }], ['in a new boot', { beat: beat({ boot: newBoot }) }, { phase: 'Running', step: 'clear', proof }],
  ] as const) assert.ok(wishedOf(astray(other, status)).includes('restore bmc-off'), what)
  assert.not(wishedOf(astray({ ...apart, beat: beat({ at: now - 36_500 }) }, { phase: 'Running', step: 'clear', proof })).includes('restore bmc-off'), 'on another device, and silent since the order')
  const heard = { beat: beat(), taints: [quarantine] }
  const back = seen([...astray({}, { phase: 'Running', step: 'clear', proof }, heard).nodes.values()], [incident({ ...spent, phase: 'Done', step: 'recovery' }), ...astray({}, { phase: 'Running', step: 'clear', proof }).incidents.values()].toReversed())
  assert.not(wishedOf(back).includes('restore bmc-off'), 'nor where it was withdrawn')
})

const fencesOf = (one: Observed) => decide(one, now, [wide]).filter((action) => action.node === 'node-2').map(said).filter((wish) => wish.startsWith('fence'))

test('what fell silent with a neighbour\'s off of which no proof came is not ordered off while it may be what was struck', () => {
  const fenced = { phase: 'Running', step: 'power-management', attempts: [attempt({ id: 'z' })] } as const
  const given = { ...fenced, attempts: [...fenced.attempts, attempt({ id: 'y', action: 'on', result: 'on' })] }
  const times = new Map([...seenOrder(now - 46_000, now - 44_000, 'z'), ...seenOrder(now - 12_000, now - 11_000, 'y')])
  const target = { ...opened.node, beat: beat({ at: now - 45_500 }), readings: [reading('on', now - 1_000)] }
  const observed = (status: Partial<IncidentStatus>, other: Partial<NodeSeen> = {}, own: Partial<NodeSeen> = {}, changes: Partial<Incident> = {}) => {
    const neighbour = node({ name: 'node-1', ...dead, beat: beat({ at: now - 60_000 }), record: record({ ...unidentified, nodeUid: 'uid-node-1' }), firstSeen: times, ...other })
    const beside = incident(status, { name: 'node-1-abc-1', nodeName: 'node-1', nodeUid: 'uid-node-1', machine: 'machine-1', ...changes })
    return seen([node({ ...target, ...own }), neighbour, ...['node-3', 'node-4', 'node-5', 'node-6'].map((name) => node({ name }))], [incident(opened.status, { policy: wide }), beside])
  }
  assert.equal(fencesOf(observed(given)), [])
  assert.equal(fencesOf(observed(given, {}, { path: { levels: [[{ ...method, device: 'bmc-9:443' }]], faults: [] } })), [], 'on whatever device')
  assert.match(held(observed(given), 'concurrency', [wide]), /^node-1 is being fenced by bmc-off, and that may be what silenced node-2/)
  assert.match(held(observed({ ...given, phase: 'Final' }), 'concurrency', [wide]), /^node-1 was ordered off by bmc-off, and that may be what silenced node-2/)
  const broughtLate = (term: number) => observed({ ...fenced, attempts: [attempt({ id: 'z', term })] }, { firstSeen: new Map(seenOrder(now - 20_000, now - 19_000, 'z')) })
  assert.match(held(broughtLate(2), 'concurrency', [wide]), /^node-1 is being fenced by bmc-off, and that may be what silenced node-2/, 'another leader gave it, nobody knows when')
  assert.equal(fencesOf(broughtLate(3)), ['fence bmc-off'], 'of its own this replica knows it')
  for (const [what, one] of [
    ['proven since', observed({ ...given, proof: proofRecord({ nodeUid: 'uid-node-1' }) })], ['its own node has booted', observed(given, { beat: beat({ boot: newBoot }) })],
    ['silent long before', observed(given, {}, { beat: beat({ at: now - 50_000 }) })], ['heard after it', observed(given, {}, { beat: beat({ at: now - 40_000 }) })],
    ['time enough to boot', observed(given, {}, {}, { policy: { ...wide, bootWithin: 11_000 } })],
    ['identity proven', observed(given, { record: record({ nodeUid: 'uid-node-1' }) })],
  ] as const) assert.equal(fencesOf(one), ['fence bmc-off'], what)
})

test.run()
