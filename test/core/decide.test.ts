import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { isLook, type Action } from '../../core/action.ts'
import { outOfServiceKey, quarantineKey } from '../../core/clear.ts'
import { decide } from '../../core/decide.ts'
import { incidentName } from '../../core/name.ts'
import type { Attempt, Incident, IncidentStatus } from '../../core/incident.ts'
import type { BeatSeen, Method, NodeSeen, Observed, Reading, Self } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import {
  attempts, booted, bootedReady, cleared, clearing, freed, lifted, littered, on, opened, ordered, ordering, outOfService, proven, quarantine, recovering, seenAll,
  seenLongAgo, switchedOn, theirs, withdrawn, type State,
} from './states.ts'
import {
  attempt, beat, boot, dead, foundOffNode, incident, method, newBoot, node, now, pod, podsOf, policy, proofRecord, reading, record, seen, seenOrder,
  seenProof, self, silent, silentAt, three, volume,
} from './world.ts'

const test = suite('decide')

/** What is wanted of node-2, each wish in a word or two: deeds and holds. */
function wants(observed: Observed, policies: readonly Policy[] = [policy], at = now): string[] {
  return wishes(observed, policies, at).filter((action) => !isLook(action) && action.do !== 'record').map(said)
}

function looks(observed: Observed, policies: readonly Policy[] = [policy], at = now): string[] {
  return wishes(observed, policies, at).filter(isLook).map(said).toSorted()
}

function wishes(observed: Observed, policies: readonly Policy[], at: number): Action[] {
  return decide(observed, at, policies).filter((action) => action.node === 'node-2')
}

function said(action: Action): string {
  switch (action.do) {
    case 'open': return `open ${action.cause}`
    case 'fence': case 'restore': return `${action.do} ${action.method.name}`
    case 'prove': return `prove ${action.proof.kind}`
    case 'taint': return action.outOfService ? 'taint out-of-service' : 'taint quarantine'
    case 'untaint': return action.key === quarantineKey ? 'untaint quarantine' : 'untaint out-of-service'
    case 'bury': return `bury ${action.pods.map((one) => one.name).join(' ')}`
    case 'delete': return `delete ${action.pods.map((one) => one.name).join(' ')}`
    case 'close': return `close ${action.outcome}`
    case 'hold': return `hold ${action.because}`
    case 'askDevice': return `askDevice ${action.method.name}`
    default: return action.do
  }
}

function held(observed: Observed, because: string, policies: readonly Policy[] = [policy]): string {
  const hold = wishes(observed, policies, now).find((action) => action.do === 'hold' && action.because === because)
  if (hold?.do !== 'hold') return assert.unreachable(`no hold ${because}: ${wants(observed, policies).join(', ')}`) as never
  assert.ok(hold.lifts.length > 3, 'a hold says what lifts it')
  return hold.detail
}

const lead = (changes: Partial<Self>) => self(changes)
const without = <Key extends keyof Self>(key: Key): Self => {
  const { [key]: _, ...rest } = self()
  return rest as Self // a Self that lacks what the caller says it lacks
}

const wide: Policy = { ...policy, brakes: { ...policy.brakes, concurrency: 3, stormPercent: 100, stormWindow: 60_000 } }
const unidentified = record({ paths: record().paths.map((one) => ({ ...one, identity: 'unproven' })) })

function inState(state: State, changes: Partial<NodeSeen> = {}, status: Partial<IncidentStatus> = {}, more: Partial<Incident> = {}, own: Self = self()): Observed {
  return three({ ...state.node, ...changes }, [incident({ ...state.status, ...status }, more)], own)
}

// Nobody acts who does not lead, or does not see.

test('a replica that does not lead wants nothing, whatever it sees', () => {
  for (const state of [opened, proven, clearing, recovering, booted]) assert.equal(decide(inState(state, {}, {}, {}, without('term')), now, [policy]), [])
  assert.equal(decide(three(dead, [], without('term')), now, [policy]), [])
})

const blindnesses: [string, Partial<Self>][] = [
  ['has just woken', { awakeSince: now - 500 }], ['does not hear the API server', { apiAnsweredAt: now - 11_000 }], ['has stale watches', { freshAt: now - 11_000 }],
]
for (const [how, own] of blindnesses) {
  test(`a leader that ${how} only holds, and asks nothing`, () => {
    for (const state of [opened, proven, clearing, recovering, booted]) assert.equal(decide(inState(state, {}, {}, {}, lead(own)), now, [policy]).map(said), ['hold blind'])
    assert.equal(decide(three(dead, [], lead(own)), now, [policy]), [])
  })
}

test('a cluster in which all is well wants nothing', () => {
  const audited = { probe: { askedAt: 20_000, answeredAt: 20_100, word: 'answered' } } as const
  const own = (name: string) => ({ name, ...audited })
  assert.equal(decide(seen(['node-1', 'node-2', 'node-3'].map((name) => node(own(name)))), now, [policy]), [])
})

// open

test('a dead node gets an incident, with its boot, its evidence and its policy by value', () => {
  const action = wishes(three(dead), [policy], now).find((one) => one.do === 'open')
  if (action?.do !== 'open') return assert.unreachable()
  assert.equal([action.boot, action.cause, action.policy], [boot, 'silence', policy])
  assert.equal(action.evidence.map((one) => `${one.source} ${one.word}`), ['probe silent', 'witness node-1 deaf', 'witness node-3 deaf'])
})

test('a node found off gets an incident without waiting for deadAfter', () => {
  assert.equal(wants(three(foundOffNode)), ['open found-off'])
  const early = { ...foundOffNode, beat: beat({ at: now - 3_500 }) }
  assert.equal(wants(three(early), [{ ...policy, profile: 'balanced' }]), ['open found-off'])
})

const notOpened: [string, Partial<NodeSeen>][] = [
  ['beats', {}],
  ['is silent, and nothing more', silent],
  ['is silent for less than deadAfter', { ...dead, beat: beat({ at: now - 2_900 }) }],
  ['answers on the kubelet port', { ...dead, probe: { askedAt: now - 2_000, answeredAt: now - 1_900, word: 'answered', spokeAt: now - 1_900 } }],
  ['refuses on the kubelet port', { ...dead, probe: { askedAt: now - 2_000, answeredAt: now - 1_900, word: 'refused', spokeAt: now - 1_900 } }],
  ['accepts on the kubelet port and says nothing', { ...dead, probe: { askedAt: now - 2_000, answeredAt: now - 1_900, word: 'open', spokeAt: now - 1_900 } }],
  ['is heard by a witness with its seal', { ...dead, witnesses: [{ witness: 'node-1', kind: 'agent', askedAt: now - 2_000, answeredAt: now - 1_000, word: 'hears', proven: true }] }],
  ['has a Lease that moved', { ...dead, lease: { askedAt: now - 600, readAt: now - 500, renewTime: 'b', unmovedSince: now - 500, moved: true } }],
  ['posted a status', { ...dead, ready: { status: 'True', postedAt: now - 500, since: 0, bootId: 'boot-1' } }],
  ['was never heard by this replica', { ...dead, beat: undefined, seenAt: now - 60_000 }],
  ['said goodbye for a restart', { ...dead, beat: beat({ at: silentAt, goodbye: { at: silentAt, why: 'restart' } }) }],
  ['said goodbye for a reboot', { ...dead, beat: beat({ at: silentAt, goodbye: { at: silentAt, why: 'reboot' } }) }],
  ['has one device that read off once', { ...silent, readings: [reading('off', now - 1_000)] }],
  ['is found off but answers a witness', { ...foundOffNode, witnesses: [{ witness: 'node-1', kind: 'agent', askedAt: now - 1_500, answeredAt: now - 1_000, word: 'hears', proven: false }] }],
  ['is gone', { ...dead, gone: true }],
]
for (const [how, changes] of notOpened) test(`a node that ${how} gets no incident`, () => assert.not(wants(three(changes)).some((one) => one.startsWith('open'))))

test('a node that is no more than suspect is asked about from all sides at once', () => {
  const observed = three({ ...silent, beat: beat({ at: now - 1_600 }) })
  assert.equal(looks(observed), ['askDevice bmc-off', 'askWitnesses', 'probe', 'readLease'])
  assert.equal(wants(observed), [])
})

/** Without a policy of its own a node is judged at the usual pace. */
const longDead = { ...dead, beat: beat({ at: now - 12_000 }) }

test('a node that no policy selects is only watched', () => {
  assert.equal(wants(three(longDead), []), ['hold unselected'])
  assert.equal(wants(three(longDead), [{ ...policy, nodeLabels: { role: 'db' } }]), ['hold unselected'])
})

test('two policies of one priority: neither acts, both are named', () => {
  const two = [policy, { ...policy, name: 'other' }]
  assert.equal(wants(three(longDead), two), ['hold policy-conflict'])
  assert.match(held(three(longDead), 'policy-conflict', two), /all and other/)
})

test('a pause, of the cluster or the policy, and a dry run open nothing', () => {
  const pause = { reason: 'x', by: 'y' }
  assert.equal(wants(three(dead, [], lead({ pause }))), ['hold pause'])
  assert.equal(wants(three(dead), [{ ...policy, pause }]), ['hold pause'])
  assert.equal(wants(three(dead), [{ ...policy, mode: 'dryRun' }]), ['hold dry-run'])
})

test('a node that has an open incident gets no second one', () => {
  assert.not(wants(inState(opened)).some((one) => one.startsWith('open')))
})

test('when most nodes fall silent at once nothing is opened and nothing fenced', () => {
  const many = ['node-1', 'node-2', 'node-3', 'node-4'].map((name) => node({ ...dead, name, readings: [reading('on', now - 1_000)] }))
  const rest = ['node-5', 'node-6'].map((name) => node({ name }))
  assert.equal(wants(seen([...many, ...rest])), ['hold storm'])
  assert.equal(wants(seen([...many, ...rest], [incident()])), ['hold storm'])
})

test('in a storm facts still clear: what is found off is opened, proven and freed', () => {
  const others = ['node-1', 'node-3', 'node-4'].map((name) => node({ ...dead, name }))
  const rest = ['node-5', 'node-6'].map((name) => node({ name }))
  const storm = (changes: Partial<NodeSeen>, incidents: readonly Incident[] = []) => seen([node(changes), ...others, ...rest], incidents)
  assert.equal(wants(storm(foundOffNode)), ['open found-off'])
  assert.equal(wants(storm(foundOffNode, [incident({}, { cause: 'found-off' })])), ['prove found-off'])
  assert.equal(wants(storm({ ...clearing.node }, [incident(clearing.status)])), ['delete web-0 api-x'])
})

// The name of an incident.

test('an incident\'s name tells the node and the boot, and how many that boot had', () => {
  const [first] = [incidentName(three(), node(), boot)]
  assert.match(first ?? '', /^node-2-[0-9a-f]{10}-1$/)
  assert.is(incidentName(three({}, [incident({}, { name: first ?? '' })]), node(), boot), (first ?? '').replace(/1$/, '2'))
  assert.is.not(incidentName(three(), node(), newBoot).slice(0, -2), (first ?? '').slice(0, -2))
  assert.is.not(incidentName(three(), node({ uid: 'other' }), boot).slice(0, -2), (first ?? '').slice(0, -2))
})

test('a name is never given twice, though earlier incidents are not kept any more', () => {
  const first = incidentName(three(), node(), boot)
  const third = first.replace(/1$/, '3')
  assert.is(incidentName(three({}, [incident({}, { name: third })]), node(), boot), first.replace(/1$/, '4'))
})

// A new leader, and what is left of an older one.

test('a new leader first writes its term on the incident, and does nothing before that', () => {
  for (const state of [opened, ordered, proven, clearing, recovering, booted]) assert.equal(wants(inState(state, {}, { term: 2 })), ['adopt'])
  assert.equal(wants(inState(opened, { gone: true }, { term: 2 })), ['adopt'])
})

/** Whom it asks beside the agents, a replica knows by its own name. */
const nameless = (action: Action): unknown => (action.do === 'askWitnesses' ? 'askWitnesses' : action)

test('after that it wants in every state what its predecessor wanted', () => {
  for (const state of [opened, ordered, proven, clearing, freed, cleared, recovering, switchedOn, booted, lifted, withdrawn]) {
    const before = decide(inState(state), now, [policy])
    const successor = { ...self(), replica: 'replica-1', term: 7, replicas: ['replica-0'] }
    const after = decide(inState(state, {}, { term: 7 }, {}, successor), now, [policy])
    assert.equal(after.map(nameless), before.map(nameless))
  }
})

test('an order whose program does not run here has an unknown end', () => {
  assert.equal(wants(inState(ordering, { busy: new Set() })), ['settle'])
  assert.not(wants(inState(ordering)).includes('settle'))
})

// Order.

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
  assert.ok(beside({ answered: { issuedAt: now - 1_500, boot } }).some((one) => one.do === 'prove'))
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
  const ordering1 = { phase: 'Running', step: 'power-management', attempts: [attempt({ id: 'z' })] } as const
  for (const [what, other, status] of [
    ['proven', {}, { phase: 'Running', step: 'clear', proof }], ['out of service', { taints: [outOfService] }, { phase: 'Running', step: 'clear', proof }],
    ['ordered off', { firstSeen: new Map(seenOrder(now - 3_000, now - 1_000, 'z')), readings: [reading('off', now - 800)] }, ordering1],
    ['being ordered off', { busy: new Set(['order node-1 bmc-off']) }, { phase: 'Running' }],
  ] as const) {
    assert.not(wishedOf(astray(other, status)).includes('restore bmc-off'), what)
    assert.match(held(astray(other, status), 'concurrency'), /^node-1 is being fenced, and nothing proves that bmc-off does not switch it on/, what)
  }
  const apart = { path: { levels: [[{ ...method, device: 'bmc-1:443' }]], faults: [] } }
  for (const [what, other, status] of [
    ['cleared', {}, { phase: 'Running', step: 'recovery', proof }], ['withdrawn', {}, { phase: 'Done', step: 'recovery' }], ['not yet ordered off', {}, { phase: 'Running' }],
    ['on another device', apart, { phase: 'Running', step: 'clear', proof }], ['in a new boot', { beat: beat({ boot: newBoot }) }, { phase: 'Running', step: 'clear', proof }],
  ] as const) assert.ok(wishedOf(astray(other, status)).includes('restore bmc-off'), what)
  const heard = { beat: beat(), taints: [quarantine] }
  const back = seen([...astray({}, { phase: 'Running', step: 'clear', proof }, heard).nodes.values()], [incident({ ...spent, phase: 'Done', step: 'recovery' }), ...astray({}, { phase: 'Running', step: 'clear', proof }).incidents.values()].toReversed())
  assert.not(wishedOf(back).includes('restore bmc-off'), 'nor where it was withdrawn')
})

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
  const orders = (one: Observed) => decide(one, now, [wide]).filter((action) => action.node === 'node-2').map(said).filter((wish) => wish.startsWith('fence'))
  assert.equal(orders(observed(given)), [])
  assert.match(held(observed(given), 'concurrency', [wide]), /^node-1 is being fenced by bmc-off, and that may be what silenced node-2/)
  assert.match(held(observed({ ...given, phase: 'Final' }), 'concurrency', [wide]), /^node-1 was ordered off by bmc-off, and that may be what silenced node-2/)
  for (const [what, one] of [
    ['proven since', observed({ ...given, proof: proofRecord({ nodeUid: 'uid-node-1' }) })], ['its own node has booted', observed(given, { beat: beat({ boot: newBoot }) })],
    ['silent long before', observed(given, {}, { beat: beat({ at: now - 50_000 }) })], ['heard after it', observed(given, {}, { beat: beat({ at: now - 40_000 }) })],
    ['time enough to boot', observed(given, {}, {}, { policy: { ...wide, bootWithin: 11_000 } })], ['another device', observed(given, {}, { path: { levels: [[{ ...method, device: 'bmc-9:443' }]], faults: [] } })],
    ['identity proven', observed(given, { record: record({ nodeUid: 'uid-node-1' }) })],
  ] as const) assert.equal(orders(one), ['fence bmc-off'], what)
})

test('heard again while its order runs, an incident waits for the run\'s end', () => {
  assert.equal(wants(inState(ordering, { beat: beat() })), ['hold order-may-land'])
})

test('heard again without a proof, an incident is withdrawn', () => {
  assert.equal(wants(inState(opened, { beat: beat() })), ['withdraw'])
  assert.equal(wants(inState(ordered, { beat: beat() }, { attempts: [attempt({ result: 'failed' })] })), ['withdraw'])
})

test('a verified off is refuted by no beat from before its end, nor by one that was on its way then', () => {
  const lastBeat = beat({ at: now - 1_400 })
  const quick = { beat: lastBeat, firstSeen: new Map(seenOrder(now - 1_500, now - 1_300)), readings: [reading('on', now - 2_000), reading('off', now - 1_250, now - 1_200)] }
  assert.not(wants(inState(ordered, quick)).includes('withdraw'))
  assert.not(wants(inState(ordered, { ...quick, beat: beat({ at: now - 300 }) })).includes('withdraw'))
  assert.equal(wants(inState(ordered, { ...quick, beat: beat({ at: now - 299 }) })), ['withdraw'])
})

test('after such a beat the devices must say off twice more', () => {
  const quick = { firstSeen: new Map(seenOrder(now - 3_000, now - 2_800)), readings: [reading('on', now - 4_000), reading('off', now - 2_700, now - 2_650), reading('off', now - 1_500, now - 1_450), reading('off', now - 100, now - 50)] }
  const proves = (at: number, readings = quick.readings): boolean => (
    wants(inState(ordered, { ...quick, readings, beat: beat({ at }) })).includes('prove off')
  )
  assert.equal([proves(now - 2_900), proves(now - 2_000), proves(now - 2_000, quick.readings.slice(0, -1))], [true, true, false])
})

test('a proxy that answers for the dead at the kubelet port keeps no proof waiting', () => {
  const quick = { firstSeen: new Map(seenOrder(now - 3_000, now - 2_800)), readings: [reading('on', now - 4_000), reading('off', now - 2_700, now - 2_650), reading('off', now - 1_500, now - 1_450)] }
  const answered = { word: 'answered', askedAt: now - 200, answeredAt: now - 100, spokeAt: now - 100 } as const
  assert.ok(wants(inState(ordered, { ...quick, beat: beat({ at: now - 9_000 }), probe: answered })).includes('prove off'))
})

test('a new boot without a proof withdraws, and frees nothing by force', () => {
  assert.equal(wants(inState(opened, { beat: beat({ boot: newBoot }) })), ['withdraw'])
})

test('a status that kubelet posted from a new boot is heard, though the agent is not there yet', () => {
  assert.equal(wants(inState(ordered, { ready: { ...bootedReady, postedAt: now - 12_000 } })).includes('withdraw'), false, 'posted before the last beat')
  assert.equal(wants(inState(ordered, { ready: { ...bootedReady, postedAt: now - 3_000 } })), ['withdraw'])
})

test('after a proof was shown false the next level waits for evidence of death, not for habit', () => {
  const plug: Method = { ...method, name: 'plug-off', device: 'pdu-1:161', digest: 'd2' }
  const paths = [...record().paths, ...record().paths.map((one) => ({ ...one, method: 'plug-off', digest: 'd2' }))]
  const status = { ...ordered.status, voided: [{ proof: proofRecord(), at: '', evidence: '' }] }
  const state = { ...ordered.node, path: { levels: [[method], [plug]], faults: [] }, record: record({ paths }), readings: [...(ordered.node.readings ?? []), reading('on', now - 900, now - 800, { method: 'plug-off', digest: 'd2' })] }
  assert.equal(wants(inState({ node: state, status })), ['fence plug-off'])
  assert.equal(wants(inState({ node: { ...state, beat: beat({ at: now - 2_000 }) }, status })), ['hold not-dead'])
})

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

test('hands off: nothing is tainted, deleted, ordered or switched on', () => {
  for (const state of [opened, ordered, proven, clearing, freed, cleared, recovering, booted, withdrawn]) {
    assert.equal(wants(inState(state, {}, {}, { policy: { ...policy, mode: 'dryRun' } })), ['hold dry-run'])
    assert.equal(wants(inState(state, {}, {}, {}, lead({ pause: { reason: 'x', by: 'y' } }))), ['hold pause'])
  }
})

test('hands off, out-of-service comes off all the same once the node is heard', () => {
  const paused = lead({ pause: { reason: 'x', by: 'y' } })
  assert.equal(wants(inState(clearing, { beat: beat({ boot: newBoot }) }, {}, {}, paused)), ['untaint out-of-service', 'hold pause'])
  assert.equal(wants(inState(clearing, { beat: beat() }, {}, {}, paused)), ['untaint out-of-service', 'hold pause'])
})

// A proof shown false.

test('the fenced boot beats after the proof: it is challenged, and nothing is freed meanwhile', () => {
  const observed = inState(clearing, { beat: beat() })
  assert.equal(wants(observed), ['hold proof-doubted'])
  assert.ok(looks(observed).includes('challenge'))
})

test('the fenced boot answers a challenge issued after the proof: the proof is void', () => {
  assert.equal(wants(inState(clearing, { beat: beat({ answered: { issuedAt: now - 400, boot } }) })), ['void'])
  assert.equal(wants(inState(recovering, { beat: beat({ answered: { issuedAt: now - 400, boot } }) })), ['void'])
})

test('an answer to a challenge issued before the proof, or from another boot, voids nothing', () => {
  assert.equal(wants(inState(clearing, { beat: beat({ answered: { issuedAt: now - 600, boot } }) })), ['hold proof-doubted'])
  assert.not(wants(inState(booted, { beat: beat({ boot: newBoot, since: now - 10_000, answered: { issuedAt: now - 400, boot: newBoot } }) })).includes('void'))
})

test('once the proof is void, out-of-service comes off at once, and nothing more is freed', () => {
  const status: Partial<IncidentStatus> = { ...ordered.status, voided: [{ proof: proofRecord(), at: '', evidence: '' }] }
  const state = { ...clearing.node, beat: beat() }
  assert.equal(wants(inState({ node: state, status })), ['untaint out-of-service'])
  assert.equal(wants(inState({ node: { ...state, taints: [quarantine] }, status })), ['withdraw'])
  assert.equal(wants(inState({ node: state, status: { ...status, phase: 'Done' } })), ['untaint out-of-service'])
})

test('a fenced boot that lives is told at once to stop what it runs of other pods, whatever else is waited for, until it is clean', () => {
  const answered = { issuedAt: now - 500, boot }
  const status: Partial<IncidentStatus> = { ...ordered.status, voided: [{ proof: proofRecord(), at: '', evidence: '' }] }
  const stops = (changes: Partial<NodeSeen>, more: Partial<IncidentStatus> = {}) => wishes(inState({ node: { ...clearing.node, beat: beat({ answered }), ...changes }, status: { ...status, ...more } }), [policy], now)
    .filter((action) => action.do === 'askClean')
  assert.equal(stops({}), [{ do: 'askClean', node: 'node-2', stop: true }], 'a clean report of before tells nothing')
  assert.equal(stops({}, { phase: 'Done', step: 'recovery' }), [{ do: 'askClean', node: 'node-2', stop: true }])
  const dirty = beat({ answered, clean: { at: now - 100, report: { state: 'dirty', leftovers: [{ kind: 'container', path: 'x' }] } } })
  assert.equal(stops({ beat: dirty, pods: podsOf([]) }), [], 'told a moment ago')
  assert.equal(stops({ beat: beat({ answered, clean: { at: now - 100, report: { state: 'clean' } } }) }, { phase: 'Done', step: 'recovery' }).filter((action) => action.do === 'askClean' && action.stop === true), [])
})

test('nobody else is: not one whose proof stands, has lapsed, or whose next boot is heard', () => {
  const status: Partial<IncidentStatus> = { ...ordered.status, voided: [{ proof: proofRecord(), at: '', evidence: '' }] }
  const all = [
    inState(clearing), inState({ node: { ...clearing.node, beat: beat({ boot: newBoot, since: now - 10_000 }) }, status }), three({ ...dead }), inState(booted),
  ].flatMap((observed) => wishes(observed, [policy], now))
  assert.equal(all.filter((action) => action.do === 'askClean' && action.stop === true), [])
})

test('a node whose proof was shown false ends void, once it is clean by its own word since', () => {
  const status: Partial<IncidentStatus> = { phase: 'Done', step: 'recovery', attempts: [...attempts, on], voided: [{ proof: proofRecord(), at: '', evidence: '' }] }
  const firstSeen = new Map([...seenAll, seenProof(now - 50_000), ...seenOrder(now - 44_000, now - 43_000, 'node-2-abc-1.2'), ...seenOrder(now - 59_000, now - 58_000), [`gone ${outOfServiceKey}`, now - 41_000] as [string, number]])
  const state = { beat: beat(), taints: [quarantine], firstSeen }
  assert.equal(wants(inState({ node: state, status })), ['untaint quarantine'])
  assert.equal(wants(inState({ node: { ...state, taints: [] }, status })), ['close Void'])
  assert.equal(wants(inState({ node: { ...state, beat: beat({ clean: { at: now - 45_000, report: { state: 'clean' } } }) }, status })), ['hold waiting-for-clean'])
})

// Cleared.

test('while volumes are attached the incident says so, and out-of-service stays', () => {
  assert.equal(wants(inState(freed)), ['hold waiting-for-volumes'])
  assert.match(held(inState(freed), 'waiting-for-volumes'), /pv-1/)
})

test('while the clear waits the pods are listed once a second; after a batch, and without a list of now, at once', () => {
  const listed = (ago: number, changes: Partial<NodeSeen> = {}, own: Self = self()) => looks(inState(freed, { firstSeen: seenLongAgo, pods: podsOf([], now - ago), ...changes }, {}, {}, own)).includes('listPods')
  assert.equal([listed(100), listed(990), listed(1_000), listed(1_900), listed(2_100)], [false, false, true, true, true])
  const due = podsOf([pod('web-0')], now - 200)
  assert.is(listed(0, { pods: due }, lead({ podBudget: 0 })), false, 'waiting for the rate')
  const { pods: _, ...unlisted } = freed.node
  assert.ok(looks(inState({ node: unlisted, status: freed.status })).includes('listPods'))
  assert.ok(looks(inState(freed, { pods: podsOf([], now - 600) })).includes('listPods'), 'listed before the proof')
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

// restore

test('cleared, what we ordered off is ordered on', () => {
  assert.equal(wants(inState(recovering)), ['restore bmc-off', 'hold waiting-for-boot'])
})

test('nothing is switched on while an off may still land', () => {
  for (const result of ['failed', 'unknown'] as const) {
    assert.equal(wants(inState(recovering, {}, { attempts: [attempt({ result })] })), ['hold order-may-land'])
  }
})

test('an on is not repeated while it runs, nor before a machine could have booted; then it is', () => {
  const readings = [reading('on', now - 400)]
  assert.equal(wants(inState(switchedOn, { readings })), ['hold waiting-for-boot'])
  assert.equal(wants(inState(switchedOn, { readings, firstSeen: new Map([...seenLongAgo, ...seenOrder(now - policy.bootWithin - 1_000, now - policy.bootWithin, 'node-2-abc-1.2')]) })), ['restore bmc-off', 'hold waiting-for-boot'])
  assert.equal(wants(inState(recovering, { busy: new Set(['order node-2 bmc-off']) }, { attempts: [...attempts, { ...on, result: 'running' }] })), ['hold waiting-for-boot'])
})

test('while it boots the device is asked now and then, and once it says off the on is repeated, ever more rarely', () => {
  const old = [reading('on', now - 11_000)]
  const asks = (readings: NodeSeen['readings']) => looks(inState(switchedOn, { readings })).filter((look) => look.startsWith('askDevice')).length
  assert.equal([asks(old), asks([reading('on', now - 400)])], [1, 0])
  const off = [...old, reading('off', now - 400)]
  assert.equal(wants(inState(switchedOn, { readings: off })), ['restore bmc-off', 'hold waiting-for-boot'])
  assert.equal(wants(inState(switchedOn, { readings: [...old, reading('off', now - 400, now - 300, { machine: 'machine-9' })] })), ['hold waiting-for-boot'], 'of another machine')
  const before = { readings: [reading('off', now - 40_000)] }
  assert.equal(wants(inState(switchedOn, before)), ['hold waiting-for-boot'], 'from before the on')
  const ons = Array.from({ length: 4 }, (_, index) => ({ ...on, id: `on-${index}` }))
  const firstSeen = new Map([...(switchedOn.node.firstSeen ?? []), ...seenOrder(now - 31_000, now - 30_000, 'on-3')])
  assert.equal(wants(inState(switchedOn, { readings: off, firstSeen }, { attempts: [...attempts, ...ons] })), ['hold waiting-for-boot'], 'forty seconds after the fourth')
})

/** Whether another on follows so long after so many that failed. */
function failing(count: number, ago: number): boolean {
  const ons = Array.from({ length: count }, (_, index) => attempt({ id: `on-${index}`, action: 'on', result: 'failed' }))
  const firstSeen = new Map([...seenAll, ...ons.flatMap((one) => seenOrder(now - ago - 1_000, now - ago, one.id))])
  return wants(inState(recovering, { firstSeen }, { attempts: [...attempts, ...ons] })).includes('restore bmc-off')
}

test('an on that failed is repeated soon, and ever more rarely', () => {
  assert.equal([failing(1, 4_900), failing(1, 5_000), failing(2, 9_900), failing(2, 10_000), failing(30, 599_000), failing(30, 600_000)], [false, true, false, true, false, true])
})

test('of two feeds both are switched on', () => {
  const plug: Method = { ...method, name: 'plug-off', device: 'pdu-1:161', digest: 'd2' }
  const offs = [attempt(), attempt({ id: 'p', method: 'plug-off' })]
  const state = { ...recovering.node, path: { levels: [[method, plug]], faults: [] }, firstSeen: new Map([...seenAll, ...seenOrder(now - 6_000, now - 4_000, 'p'), ...seenOrder(now - 1_000, now - 500, 'o')]) }
  assert.ok(wants(inState({ node: state, status: { ...recovering.status, attempts: offs } })).includes('restore bmc-off'))
  assert.ok(wants(inState({ node: state, status: { ...recovering.status, attempts: [...offs, attempt({ id: 'o', action: 'on', result: 'on' })] } })).includes('restore plug-off'))
})

const foundOffCleared: State = { node: recovering.node, status: { ...recovering.status, attempts: [], proof: proofRecord({ kind: 'found-off' }) } }

test('what was found off and not ordered off is not switched on, unless the policy says so', () => {
  assert.equal(wants(inState(foundOffCleared, { readings: [] })), ['hold waiting-for-boot'])
  assert.equal(wants(inState(foundOffCleared, {}, {}, { policy: { ...policy, powerOnFoundOff: true } })), ['restore bmc-off', 'hold waiting-for-boot'])
})

test('a machine that said it shuts down is not switched on, whatever the policy says', () => {
  const goodbye = { beat: beat({ at: now - 10_000, goodbye: { at: now - 10_000, why: 'shutdown' } }) } as const
  assert.equal(wants(inState(foundOffCleared, goodbye, {}, { policy: { ...policy, powerOnFoundOff: true } })), ['hold waiting-for-boot'])
  assert.equal(wants(inState(recovering, goodbye)), ['hold waiting-for-boot'])
})

test('found off, the securing off follows once the pods are freed, so that they need not wait for it', () => {
  const status = { ...clearing.status, attempts: [], proof: proofRecord({ kind: 'found-off' }) }
  assert.equal(wants(inState(clearing, {}, status)), ['delete web-0 api-x'])
  assert.equal(wants(inState(clearing, { pods: podsOf([pod('web-0')], now - 600) }, status)), [])
  assert.equal(wants(inState(freed, {}, status)), ['fence bmc-off', 'hold waiting-for-volumes'])
  assert.equal(wants(inState(cleared, {}, status)), ['untaint out-of-service', 'fence bmc-off'])
})

test('found off after a goodbye for a shutdown, no securing off is ordered', () => {
  const status = { ...clearing.status, attempts: [], proof: proofRecord({ kind: 'found-off' }) }
  assert.equal(wants(inState(freed, { beat: beat({ at: now - 10_000, goodbye: { at: now - 10_000, why: 'shutdown' } }) }, status)), ['hold waiting-for-volumes'])
})

test('a shutdown that left nothing behind opens no incident; one that left a pod or a volume does', () => {
  const goodbye = { ...foundOffNode, beat: beat({ at: silentAt, goodbye: { at: silentAt, why: 'shutdown' } }) } as const
  assert.equal(wants(three(goodbye)), [])
  assert.ok(looks(three(goodbye)).includes('listPods'))
  assert.equal(wants(three({ ...goodbye, pods: podsOf([pod('kube-proxy', { exempt: 'DaemonSet' })]) })), [])
  assert.equal(looks(three({ ...goodbye, pods: podsOf([]) })), [])
  assert.equal(wants(three({ ...goodbye, pods: podsOf([pod('web-0')]) })), ['open found-off'])
  assert.equal(wants(three({ ...goodbye, pods: podsOf([]), volumes: [volume('pv-1')] })), ['open found-off'])
})

// close

test('the node is back, in a new boot and clean: the quarantine is lifted, then the incident closes', () => {
  assert.equal(wants(inState(booted)), ['untaint quarantine'])
  assert.equal(wants(inState(lifted)), ['close Recovered'])
})

test('a pod that was doomed and never deleted goes before the quarantine does', () => {
  assert.equal(wants(inState(littered)), ['hold waiting-for-clean', 'bury web-0'])
})

const notClosed: [string, Partial<NodeSeen>, Partial<IncidentStatus>, readonly string[]][] = [
  ['it is not clean', { beat: beat({ boot: newBoot, since: now - 10_000, clean: { at: now - 2_000, report: { state: 'dirty', leftovers: [{ kind: 'mount', path: '/x' }] } } }) }, {}, ['hold waiting-for-clean']],
  ['it is not Ready', { ready: { ...bootedReady, status: 'False' } }, {}, ['hold waiting-for-kubelet']],
  ['an off may still land', {}, { attempts: [attempt({ result: 'unknown' }), on] }, ['hold order-may-land']],
]
for (const [how, changes, status, wished] of notClosed) {
  test(`back, but ${how}: the quarantine stays`, () => assert.equal(wants(inState(booted, changes, status)), wished))
  test(`back, but ${how}: nothing is closed`, () => assert.not(wants(inState(lifted, changes, status)).some((one) => one.startsWith('close'))))
}

test('an incident is not closed while an order on runs or may still land: it would land on the next one\'s proof', () => {
  const later = { firstSeen: new Map([...(lifted.node.firstSeen ?? []), ...seenOrder(now - 2_000, undefined, 'late')]), busy: new Set(['order node-2 bmc-off']) }
  const running = attempt({ id: 'late', action: 'on', result: 'running' })
  assert.equal(wants(inState(lifted, later, { attempts: [...attempts, running] })), ['hold order-may-land'])
  const readings = [reading('on', now - 400)]
  assert.equal(wants(inState(lifted, { firstSeen: new Map([...later.firstSeen, ...seenOrder(now - 20_000, now - 15_000, 'late')]), readings }, { attempts: [...attempts, { ...running, result: 'failed' }] })), ['hold order-may-land'])
  const over = { readings, firstSeen: new Map([...(lifted.node.firstSeen ?? []), ...seenOrder(now - 91_000, now - 80_000, 'late')]) }
  assert.equal(wants(inState(lifted, over, { attempts: [...attempts, { ...running, result: 'failed' }] })), ['close Recovered'])
})

test('a quarantine that somebody took off is put on again until the node is clean', () => {
  assert.equal(wants(inState(lifted, { beat: beat({ boot: newBoot, since: now - 10_000 }), ready: { ...bootedReady, status: 'False' } })), ['taint quarantine'])
  assert.equal(wants(inState(recovering, { taints: [] })), ['taint quarantine'])
})

test('a new boot that falls silent is another incident\'s: this one closes once it is dead', () => {
  const silentAgain = { ...dead, beat: beat({ boot: newBoot, since: now - 20_000, at: silentAt }), record: record({ boot: newBoot, probe: { boot: newBoot, answered: true, at: '' } }) }
  const suspect = { ...silentAgain, witnesses: [] }
  assert.equal(wants(inState(switchedOn, suspect)), ['hold waiting-for-boot'])
  assert.ok(looks(inState(switchedOn, suspect)).includes('askWitnesses'), 'it is asked about')
  assert.equal(wants(inState(switchedOn, silentAgain)), ['close Recovered'])
  assert.equal(wants(inState(clearing, silentAgain)), ['untaint out-of-service'])
})

test('a new boot that falls silent, and whose device says off by our order, is switched on: the order may have landed on it', () => {
  const silentAgain = { ...dead, beat: beat({ boot: newBoot, since: now - 20_000, at: silentAt }), record: record({ boot: newBoot, probe: { boot: newBoot, answered: true, at: '' } }) }
  for (const state of [clearing, recovering]) {
    const again = inState(state, { ...silentAgain, taints: [quarantine] })
    assert.equal(wants(again), ['restore bmc-off', 'hold still-cut'])
    assert.ok(looks(again).includes('askWitnesses'), 'it is asked about')
    const readings = [...(state.node.readings ?? []), reading('on', now - 100)]
    assert.equal(wants(inState(state, { ...silentAgain, taints: [quarantine], readings })), ['close Recovered'])
  }
})

test('what was just switched on is given the time to boot, unless it was heard since', () => {
  const firstSeen = new Map([...(switchedOn.node.firstSeen ?? []), ...seenOrder(now - 6_000, now - 5_000, 'node-2-abc-1.2')])
  const silentSince = (at: number) => ({ ...dead, firstSeen, beat: beat({ boot: newBoot, since: at - 1_000, at }), record: record({ boot: newBoot, probe: { boot: newBoot, answered: true, at: '' } }) })
  assert.equal(wants(inState(switchedOn, silentSince(now - 20_000))), ['hold waiting-for-boot'])
  assert.equal(wants(inState(switchedOn, silentSince(now - 4_000))), ['close Recovered'])
})

test('a next boot that beat while it was being switched on was up by then, and its silence is another one', () => {
  const silentAgain = { ...dead, beat: beat({ boot: newBoot, since: silentAt - 1_000, at: silentAt }), record: record({ boot: newBoot, probe: { boot: newBoot, answered: true, at: '' } }) }
  const since = (began: number) => wants(inState(switchedOn, { ...silentAgain, firstSeen: new Map([...(switchedOn.node.firstSeen ?? []), ...seenOrder(began, silentAt + 1_000, 'node-2-abc-1.2')]) }))
  assert.equal(since(silentAt - 5_000), ['close Recovered'])
  assert.equal(since(silentAt + 500), ['hold waiting-for-boot'], 'before that')
})

test('a node withdrawn before anything was ordered closes at once', () => {
  assert.equal(wants(inState(withdrawn)), ['close Withdrawn'])
})

test('withdrawn, what was cut is first switched on, under quarantine', () => {
  const firstSeen = new Map(seenOrder(now - 100_000, now - 98_000))
  const status = { ...withdrawn.status, attempts: [attempt({ result: 'failed' })] }
  const readings = [reading('on', now - 5_000)]
  assert.equal(wants(inState(withdrawn, { firstSeen, readings, taints: [quarantine] }, status)), ['restore bmc-off', 'hold still-cut'])
  assert.equal(wants(inState(withdrawn, { firstSeen, readings }, status)), ['taint quarantine', 'restore bmc-off', 'hold still-cut'])
})

/** An *off* that failed, and whose time has passed ten seconds ago. */
const passed = { firstSeen: new Map([...(lifted.node.firstSeen ?? []), ...seenOrder(now - 100_000, now - 98_000, 'loose')]) }
const loose = attempt({ id: 'loose', result: 'failed' })
const unansweredStates: readonly (readonly [string, State])[] = [
  ['an on', { node: { ...recovering.node, ...passed }, status: { ...recovering.status, attempts: [loose] } }],
  ['a return', { node: { ...lifted.node, ...passed, taints: [quarantine] }, status: { ...lifted.status, attempts: [loose, on] } }],
  ['the end of one that came back', { node: { ...lifted.node, ...passed }, status: { ...lifted.status, attempts: [loose, on] } }],
  ['giving back', { node: { ...withdrawn.node, ...passed, taints: [quarantine] }, status: { ...withdrawn.status, attempts: [loose] } }],
  ['the end of what was given back', { node: { ...withdrawn.node, ...passed, taints: [quarantine] }, status: { ...withdrawn.status, attempts: [loose, on] } }],
  ['the end of one whose machine was replaced', { node: { ...passed, machine: 'machine-9' }, status: { ...ordered.status, attempts: [loose] } }],
]
const unanswered: readonly (readonly [string, readonly Reading[], boolean])[] = [
  ['it was not asked', [], true],
  ['it was asked before that time had passed', [reading('on', now - 10_100, now - 9_000)], true],
  ['it did not answer', [reading('unknown', now - 5_000)], true],
  ['another configuration answered', [reading('on', now - 5_000, now - 4_900, { digest: 'd9' })], true],
  ['it says on', [reading('on', now - 5_000)], false],
  ['it says off', [reading('off', now - 5_000)], false],
  ['it said so, and has not answered since', [reading('off', now - 5_000), reading('unknown', now - 3_000)], false],
]
for (const [what, state] of unansweredStates) {
  for (const [how, readings, waits] of unanswered) {
    test(`the time of a loose off has passed, and ${how}: ${what} ${waits ? 'waits, and the device is asked' : 'is not held up'}`, () => {
      const observed = inState(state, { readings })
      const wished = wants(observed)
      if (!waits) return assert.not(wished.includes('hold order-may-land'), wished.join())
      assert.equal(wished, ['hold order-may-land'])
      assert.match(held(observed, 'order-may-land'), /bmc-off/)
      assert.equal(looks(observed).filter((look) => look.startsWith('askDevice')), ['askDevice bmc-off'])
    })
  }
}

test('what does not answer because its power hangs on what we cut does not keep that from being given back', () => {
  const plug: Method = { ...method, name: 'plug-off', device: 'pdu-1:161', digest: 'd2' }
  const offs = [loose, attempt({ id: 'p', level: 1, method: 'plug-off' })]
  const fed = { ...recovering.node, path: { levels: [[method], [plug]], faults: [] }, firstSeen: new Map([...passed.firstSeen, ...seenOrder(now - 97_000, now - 96_000, 'p')]) }
  const asleep = { node: { ...fed, readings: [reading('unknown', now - 3_000)] }, status: { ...recovering.status, attempts: offs } }
  assert.equal(wants(inState(asleep)), ['restore plug-off', 'hold order-may-land', 'hold waiting-for-boot'])
  assert.equal(wants(inState(asleep, { readings: [] })), ['hold order-may-land'], 'it is asked first')
  const done = { node: { ...asleep.node, taints: [quarantine] }, status: { ...withdrawn.status, attempts: offs } }
  assert.equal(wants(inState(done)), ['restore plug-off', 'hold order-may-land', 'hold still-cut'])
  assert.equal(wants(inState(done, { readings: [reading('on', now - 3_000)] })), ['restore bmc-off', 'hold still-cut'])
})

const byD1 = attempt({ digest: 'd1' })
const otherwise: readonly (readonly [string, Partial<NodeSeen>])[] = [
  ['taken out of the configuration', { path: { levels: [], faults: [] } }],
  ['configured otherwise', { path: { levels: [[{ ...method, digest: 'd9' }]], faults: [] } }],
]
for (const [how, changes] of otherwise) {
  test(`a method that was cut and then ${how} is named as still cut, and nothing is switched on by what is configured now`, () => {
    for (const [state, result] of [[recovering, 'off'], [withdrawn, 'off'], [withdrawn, 'failed']] as const) {
      const status = { attempts: [{ ...byD1, result }] }
      const was = { firstSeen: new Map([...(state.node.firstSeen ?? []), ...passed.firstSeen, ...seenOrder(now - 100_000, now - 98_000)]), taints: [quarantine] }
      const observed = inState(state, { ...was, ...changes }, status)
      assert.equal(wants(observed), ['hold still-cut'])
      assert.match(held(observed, 'still-cut'), /bmc-off/)
      assert.ok(wants(inState(state, { ...was, readings: [reading('off', now - 2_000)] }, status)).includes('restore bmc-off'), 'configured as it was, it is switched on')
    }
  })

  const lostIn = (state: State, more: Partial<NodeSeen>) => wants(inState(state, { ...more, ...changes, taints: [] }, { attempts: [byD1] }))
  test(`a method that was cut and then ${how} holds nobody up whose next boot is there, or who is another machine`, () => {
    assert.equal(lostIn(lifted, {}), ['close Recovered'])
    assert.equal(lostIn(withdrawn, { ...booted.node }), ['close Withdrawn'])
    assert.equal(lostIn(proven, { gone: true }), ['close NodeDeleted'])
    assert.equal(lostIn(proven, { machine: 'machine-9' }), ['close Replaced'])
  })
}

/** node-2 back in a new boot, by the one feed that was switched on. */
function backOnOneFeed(readings: readonly Reading[], changes: Partial<NodeSeen> = {}): Observed {
  const plug: Method = { ...method, name: 'plug-off', device: 'pdu-1:161', digest: 'd2' }
  const firstSeen = new Map([...(booted.node.firstSeen ?? []), ...seenOrder(now - 57_000, now - 56_000, 'p')])
  return inState(lifted, { firstSeen, path: { levels: [[method, plug]], faults: [] }, readings, ...changes }, { attempts: [...attempts, attempt({ id: 'p', method: 'plug-off' }), on] })
}
const plugReads = (state: Reading['state'], ago: number) => reading(state, now - ago, now - ago + 100, { method: 'plug-off', digest: 'd2' })

test('back by one feed, the other is not forgotten: it is asked, and switched on where it says off', () => {
  assert.ok(looks(backOnOneFeed([])).includes('askDevice plug-off'))
  assert.equal(wants(backOnOneFeed([])), ['hold still-cut'])
  assert.equal(wants(backOnOneFeed([plugReads('off', 57_000)])), ['hold still-cut'], 'read before the order had ended')
  assert.equal(wants(backOnOneFeed([plugReads('off', 2_000)])), ['restore plug-off', 'hold still-cut'])
  assert.equal(wants(backOnOneFeed([plugReads('on', 2_000)])), ['close Recovered'])
  assert.equal(wants(backOnOneFeed([plugReads('unknown', 2_000)])), ['close Recovered'], 'the machine has power')
  assert.equal(wants(backOnOneFeed([plugReads('off', 3_000), plugReads('unknown', 2_000)])), ['restore plug-off', 'hold still-cut'])
})

/** The other was ordered on so often, and called itself on each time. */
function calledOn(times: number, readings: readonly Reading[]): Observed {
  const ons = Array.from({ length: times }, (_, index) => attempt({ id: `p-${index}`, method: 'plug-off', action: 'on', result: 'on' }))
  const began = ons.flatMap(({ id }, index) => seenOrder(now - 56_000 + index * 10_000, now - 55_000 + index * 10_000, id))
  const back = backOnOneFeed(readings, { firstSeen: new Map([...(booted.node.firstSeen ?? []), ...seenOrder(now - 58_000, now - 57_000, 'p'), ...began]) })
  return { ...back, incidents: new Map([...back.incidents].map(([name, one]) => [name, { ...one, status: { ...one.status, attempts: [...one.status.attempts, ...ons] } }] as const)) }
}

test('back by one feed, the other called itself on and says off since: it is asked for again, a few times', () => {
  assert.equal(wants(calledOn(1, [plugReads('off', 2_000)])), ['restore plug-off', 'hold still-cut'])
  assert.equal(wants(calledOn(1, [plugReads('on', 2_000)])), ['close Recovered'])
  // Whoever goes on saying off of a machine that runs may be no feed of it: its audit tells of that, and nobody waits for it.
  assert.equal(wants(calledOn(4, [plugReads('off', 2_000)])), ['close Recovered'])
})

test('what never answers again is taken out of the configuration by a person, once the machine is back', () => {
  const back = inState({ node: { ...lifted.node, ...passed, readings: [reading('unknown', now - 3_000)] }, status: { ...lifted.status, attempts: [loose, on] } })
  const hold = wishes(back, [policy], now).find((action) => action.do === 'hold')
  assert.match(hold?.do === 'hold' ? hold.lifts : '', /bmc-off taken out of the configuration/)
  assert.equal(wants(inState({ node: { ...lifted.node, ...passed, path: { levels: [], faults: [] } }, status: { ...lifted.status, attempts: [loose, on] } })), ['close Recovered'])
})

test('of a Node that is gone nobody has to answer: there is nobody to switch on', () => {
  assert.equal(wants(inState(ordered, { ...passed, gone: true, readings: [] }, { attempts: [loose] })), ['close NodeDeleted'])
})

test('withdrawn, nothing is switched on while an off may still land, and the quarantine is kept meanwhile', () => {
  const firstSeen = new Map(seenOrder(now - 10_000, now - 8_000))
  const status = { ...withdrawn.status, attempts: [attempt({ result: 'failed' })] }
  assert.equal(wants(inState(withdrawn, { firstSeen, taints: [quarantine] }, status)), ['hold order-may-land'])
  assert.equal(wants(inState(withdrawn, { firstSeen }, status)), ['taint quarantine', 'hold order-may-land'])
})

test('withdrawn and given back, a node keeps its quarantine until it is heard, well and clean', () => {
  const firstSeen = new Map([...seenOrder(now - 100_000, now - 98_000), ...seenOrder(now - 80_000, now - 79_000, 'node-2-abc-1.2'), [`gone ${outOfServiceKey}`, now - 99_000] as [string, number]])
  const status = { ...withdrawn.status, attempts: [attempt({ result: 'failed' }), on] }
  const state = { firstSeen, taints: [quarantine], readings: [reading('on', now - 5_000)] }
  assert.equal(wants(inState(withdrawn, state, status)), ['untaint quarantine'])
  assert.equal(wants(inState(withdrawn, { ...state, beat: beat({ at: now - 2_000 }) }, status)), ['hold waiting-for-boot'])
  assert.ok(looks(inState(withdrawn, { ...state, beat: beat({ at: now - 2_000 }) }, status)).includes('probe'), 'it is asked about')
  const soon = { ...state, ...dead, firstSeen: new Map([...firstSeen, ...seenOrder(now - 2_000, now - 1_000, 'node-2-abc-1.2')]) }
  assert.equal(wants(inState(withdrawn, soon, status)), ['hold waiting-for-boot'], 'it boots')
  assert.equal(wants(inState(withdrawn, { ...soon, firstSeen }, status)), ['close Withdrawn'], 'it was heard since')
  const longAgo = { firstSeen: new Map([...firstSeen, ...seenOrder(now - policy.bootWithin - 5_000, now - policy.bootWithin, 'node-2-abc-1.2')]) }
  assert.equal(wants(inState(withdrawn, { ...soon, ...longAgo, beat: beat({ at: now - policy.bootWithin - 6_000 }) }, status)), ['close Withdrawn'])
})

test('withdrawn and given back, a silent node whose device says off since is switched on again', () => {
  const firstSeen = new Map([...seenOrder(now - 40_000, now - 38_000), ...seenOrder(now - 31_000, now - 30_000, 'node-2-abc-1.2')])
  const status = { ...withdrawn.status, attempts: [attempt({ result: 'off' }), on] }
  const again = { ...dead, firstSeen, taints: [quarantine], readings: [reading('on', now - 29_000), reading('off', now - 900, now - 800)] }
  assert.equal(wants(inState(withdrawn, again, status)), ['restore bmc-off', 'hold still-cut'])
  assert.equal(wants(inState(withdrawn, { ...again, beat: beat({ at: now - 100 }) }, status)).includes('restore bmc-off'), false, 'it is heard')
  assert.equal(wants(inState(withdrawn, { ...again, readings: [reading('off', now - 35_000), reading('on', now - 900, now - 800)] }, status)).includes('restore bmc-off'), false, 'it says on')
})

test('an incident of a boot that only kubelet told of is not taken for over by the agent\'s last word of an earlier one', () => {
  const earlier = { beat: beat({ boot: 'boot-0/1', at: now - 20_000 }), ready: { status: 'True', postedAt: now - 15_000, since: 0, bootId: 'boot-1' } } as const
  assert.equal(wants(inState(clearing, earlier, { proof: proofRecord({ boot: 'boot-1' }) }, { boot: 'boot-1' })), ['delete web-0 api-x'])
})

test('another machine under the name: our taints come off, then the incident ends', () => {
  for (const other of [{ machine: 'machine-9' }, { uid: 'uid-other', machine: 'machine-9' }]) {
    assert.equal(wants(inState(clearing, other)), ['untaint out-of-service'])
    assert.equal(wants(inState(proven, other)), ['untaint quarantine'])
    assert.equal(wants(inState(proven, { ...other, taints: [] })), ['close Replaced'])
  }
})

for (const [what, anew] of [['by the same machine\'s kubelet', { uid: 'uid-other' }], ['by a person, and no kubelet has posted yet', { uid: 'uid-other', machine: '', bootId: '' }]] as const) {
  test(`a Node made anew ${what}: nothing more is freed or ordered off, and what was cut is given back`, () => {
    for (const state of [opened, ordered, proven, clearing, freed, recovering, switchedOn]) {
      assert.equal(wants(inState(state, anew)), ['withdraw'])
    }
    const done = (state: State, more: Partial<NodeSeen> = {}) => wants(inState({ ...state, status: { ...state.status, phase: 'Done', step: 'recovery' } }, { ...anew, readings: [], ...more }))
    assert.equal(done(clearing), ['untaint out-of-service'], 'copied from the Node before')
    assert.ok(done(proven, { taints: [] }).includes('restore bmc-off'))
    assert.ok(done(ordered).includes('restore bmc-off'))
    assert.not(done(freed, { taints: [] }).some((wish) => wish.startsWith('delete') || wish.startsWith('fence')))
    const back = { ...booted.node, ...anew, machine: 'machine-2', bootId: 'boot-2' }
    assert.equal(done({ node: back, status: switchedOn.status }, { taints: [quarantine] }), ['untaint quarantine'])
    assert.equal(done({ node: back, status: switchedOn.status }, { taints: [] }), ['close Recovered'])
  })
}

test('a Node made anew of a machine that a person vouched off: it ends, and is left to the hands in it', () => {
  const vouchedOff = { ...proven.status, proof: proofRecord({ kind: 'vouched', level: -1, methods: [] }) }
  assert.equal(wants(inState(proven, { uid: 'uid-other', taints: [] }, vouchedOff)), ['close Replaced'])
})

const goneFor = (ago: number, state: State) => wants(inState(state, { gone: true, firstSeen: new Map([...seenLongAgo, ['gone', now - ago]]) }))
test('a Node object that is gone may be made anew: what we cut is remembered for half a minute', () => {
  assert.equal(goneFor(29_999, proven), ['hold still-cut'])
  assert.equal(goneFor(30_000, proven), ['close NodeDeleted'])
  assert.equal([goneFor(0, opened), goneFor(0, switchedOn)], [['close NodeDeleted'], ['close NodeDeleted']], 'nothing is cut')
})

test('a Node object that is gone ends its incident', () => {
  assert.equal(wants(inState(clearing, { gone: true })), ['close NodeDeleted'])
})

/** The machine may be there all the same, and its next Node is about another boot, which the order would hit. */
const endings: readonly (readonly [string, Partial<NodeSeen>, string, State])[] = [
  ['a Node object that is gone', { gone: true }, 'close NodeDeleted', proven],
  ['another machine under the name', { machine: 'machine-9', taints: [], readings: [reading('on', now - 500)] }, 'close Replaced', proven],
]
for (const [what, changes, close, state] of endings) {
  const at = (began: number, ended?: number): Partial<NodeSeen> => ({ ...changes, firstSeen: new Map(seenOrder(began, ended)) })
  test(`${what} ends nothing while an order runs, may still land, or is being written down`, () => {
    const order = { busy: new Set(['order node-2 bmc-off']) }
    for (const action of ['off', 'on'] as const) {
      const one = (result: Attempt['result']) => ({ attempts: [attempt({ action, result })] })
      assert.equal(wants(inState(state, { ...at(now - 1_000), ...order }, one('running'))), ['hold order-may-land'])
      assert.equal(wants(inState(state, { ...changes, ...order }, { attempts: [] })), ['hold order-may-land'])
      assert.equal(wants(inState(state, at(now - 1_000), one('running'))), ['settle'])
      for (const result of ['failed', 'unknown'] as const) {
        assert.equal(wants(inState(state, at(now - 89_000, now - 80_000), one(result))), ['hold order-may-land'])
        assert.equal(wants(inState(state, at(now - 91_000, now - 80_000), one(result))), [close])
      }
      assert.equal(wants(inState(state, at(now - 1_000, now - 500), one(action))), [close])
      assert.equal(wants(inState(state, at(now - 1_000, now - 500), one('not-given'))), [close])
    }
  })
}

test('an incident of whose node nothing is known yet is not closed', () => {
  assert.equal(wants(seen([node({ name: 'node-1' })], [incident(clearing.status)])), ['hold blind'])
})

test('an incident is not closed while an order on is being written down', () => {
  assert.equal(wants(inState(lifted, { busy: new Set(['order node-2 bmc-off']) })), ['hold order-may-land'])
  assert.equal(wants(inState(withdrawn, { busy: new Set(['order node-2 bmc-off']) })), ['hold order-may-land'])
})

const second = (cause: Incident['cause']): Incident => incident({}, { name: 'node-2-zzz-1', uid: 'uid-second', cause })

test('of two open incidents of one node one goes on, the other waits for it and says so', () => {
  for (const incidents of [[incident(clearing.status), second('silence')], [second('silence'), incident(clearing.status)]]) {
    assert.equal(wants(three(clearing.node, incidents)).toSorted(), ['delete web-0 api-x', 'hold concurrency'])
  }
  assert.equal(wants(three(clearing.node, [second('by-hand'), incident(clearing.status)])).toSorted(), ['close Refused', 'delete web-0 api-x'], 'a person is told at once')
})

test('a fence by hand that has begun is not taken for a duplicate of one that came after it', () => {
  const begun = incident(ordered.status, { cause: 'by-hand' })
  const later = incident({}, { name: 'node-2-aaa-1', uid: 'uid-second' })
  assert.ok(wants(three(ordered.node, [begun, later])).every((want) => want !== 'close Refused'))
})

const bare: Partial<Incident> = { nodeUid: '', boot: '', machine: '', cause: 'by-hand', incomplete: true }
test('what a person did not write is taken from the node, and by its policy; without one nothing is done', () => {
  const action = wishes(three({}, [incident({}, bare)]), [policy], now).find((one) => one.do === 'complete')
  assert.equal(action?.do === 'complete' ? action.taken : undefined, { nodeUid: 'uid-node-2', boot, machine: 'machine-2', policy })
  assert.equal(wants(three({}, [incident({}, bare)]), []), ['hold unselected'])
  assert.equal(decide(three({}, [incident({}, { ...bare, nodeName: 'node-9' })]), now, [policy]).map((one) => (one.do === 'close' ? one.outcome : one.do)), ['Refused'])
})

// Out-of-service that somebody else put there.

test('another\'s out-of-service does for the clear, is never taken off, and nothing is switched on under it', () => {
  const under = (state: State, changes: Partial<NodeSeen> = {}, status: Partial<IncidentStatus> = {}) => wants(inState(state, { taints: [quarantine, theirs], ...changes }, status))
  assert.equal(under(clearing), ['delete web-0 api-x'], 'it lets Kubernetes detach as ours would')
  assert.equal(under(cleared), ['untaint out-of-service'], 'the clear ends, and with it what is ours')
  assert.equal(under(recovering), ['hold foreign-taint'])
  assert.match(held(inState(recovering, { taints: [quarantine, theirs] }), 'foreign-taint'), /nodeshutdown/)
  assert.equal(under(booted), ['hold foreign-taint'])
  const firstSeen = new Map(seenOrder(now - 100_000, now - 98_000))
  assert.equal(under(withdrawn, { firstSeen, readings: [reading('on', now - 5_000)] }, { attempts: [attempt({ result: 'failed' })] }), ['hold foreign-taint', 'hold still-cut'])
  assert.equal(under(withdrawn), ['hold foreign-taint'])
  assert.equal(under(ordered, { machine: 'machine-9' }), ['untaint quarantine'])
  assert.equal(under(ordered, { machine: 'machine-9', taints: [theirs] }), ['close Replaced'])
})

test('beside another\'s out-of-service ours comes off as ever', () => {
  const both = (state: State, changes: Partial<NodeSeen> = {}) => wants(inState(state, { taints: [quarantine, theirs, outOfService], ...changes }))
  for (const state of [cleared, recovering, booted, withdrawn]) assert.equal(both(state), ['untaint out-of-service'])
  assert.equal(both(clearing, { readings: [reading('off', now - 1_300), reading('on', now - 300)] }), ['untaint out-of-service', 'hold proof-doubted'])
  assert.equal(wants(inState(clearing, { taints: [quarantine, theirs], readings: [reading('off', now - 1_300), reading('on', now - 300)] })), ['hold proof-doubted'])
})

test('hands off, or a proof shown false: another\'s out-of-service is left alone', () => {
  const paused = lead({ pause: { reason: 'x', by: 'y' } })
  assert.equal(wants(inState(clearing, { taints: [quarantine, theirs], beat: beat() }, {}, {}, paused)), ['hold pause'])
  const status: Partial<IncidentStatus> = { ...ordered.status, voided: [{ proof: proofRecord(), at: '', evidence: '' }] }
  assert.equal(wants(inState({ node: { ...clearing.node, taints: [quarantine, theirs], beat: beat() }, status })), ['withdraw'])
})

test('an out-of-service of ours that no open incident owns comes off at once, another\'s keeps the quarantine', () => {
  assert.equal(wants(three({ ...booted.node, taints: [quarantine, outOfService] }, [over])), ['untaint out-of-service'])
  assert.equal(wants(three({ ...booted.node, taints: [quarantine, outOfService] })), ['untaint out-of-service'])
  assert.equal(wants(three({ ...booted.node, taints: [quarantine, theirs] }, [over])), ['hold foreign-taint'])
})

// Strays: our taint on a node without an open incident.

const over = incident({ phase: 'Final', step: 'recovery', proof: proofRecord(), attempts: [...attempts, on] })

test('a quarantine that no open incident owns is lifted as after any return', () => {
  assert.equal(wants(three({ ...booted.node }, [over])), ['untaint quarantine'])
  assert.equal(wants(three({ ...booted.node, ready: { ...bootedReady, status: 'False' } }, [over])), ['hold waiting-for-kubelet'])
})

test('a quarantine whose incident is not kept any more has an exit as well', () => {
  assert.equal(wants(three({ ...booted.node, ready: bootedReady })), ['untaint quarantine'])
  assert.equal(wants(three({ ...booted.node, ready: { ...bootedReady, status: 'False' } })), ['hold waiting-for-kubelet'])
})

test('while the cluster is paused a stray quarantine stays', () => {
  assert.equal(wants(three({ ...booted.node }, [over], lead({ pause: { reason: 'x', by: 'y' } }))), ['hold pause'])
})

test('a quarantine on a node that is silent is left alone, and says for what it waits', () => {
  assert.equal(wants(three({ ...silent, taints: [quarantine] }, [over])), ['hold waiting-for-boot'])
})

// One node's trouble is its own.

test('one node\'s hold does not stop another node\'s clear', () => {
  const other = node({ ...clearing.node, name: 'node-9', uid: 'uid-node-9', machine: 'machine-2', firstSeen: new Map([...seenAll].map(([key, at]) => [key.replace('node-2', 'node-9'), at])) })
  const itsFence = incident(clearing.status, { name: 'node-9-abc-1', nodeName: 'node-9', nodeUid: 'uid-node-9', machine: '' })
  const moved = { ...itsFence, status: { ...itsFence.status, proof: proofRecord({ nodeUid: 'uid-node-9' }), attempts: [attempt({ id: 'node-9-abc-1.1' })] } }
  const observed = seen([node(clearing.node), other, node({ name: 'node-1' }), node({ name: 'node-3' })], [incident(clearing.status, { policy: { ...policy, mode: 'dryRun' } }), moved])
  assert.equal(wants(observed), ['hold dry-run'])
  assert.ok(decide(observed, now, [policy]).some((action) => action.do === 'delete' && action.node === 'node-9'))
})

test.run()
