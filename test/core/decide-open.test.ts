// Which node gets an incident, what it is called, and which of two goes on.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decide } from '../../core/decide.ts'
import type { Incident } from '../../core/incident.ts'
import type { NodeSeen } from '../../core/model.ts'
import { incidentName } from '../../core/name.ts'
import { clearing, opened, ordered } from './states.ts'
import { held, inState, lead, looks, wants, wishes } from './wishes.ts'
import { beat, boot, dead, foundOffNode, incident, newBoot, node, now, policy, reading, seen, silent, silentAt, three } from './world.ts'

const test = suite('decide: open')

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

const never = (changes: Partial<NodeSeen>) => ['node-4', 'node-5', 'node-6'].map((name) => {
  const { beat: _, ...unheard } = node({ name, seenAt: now - 4_500, ...changes })
  return unheard
})

test('nodes that this replica never heard count in a storm, if they have an agent and it had the time to be heard', () => {
  const two = [node({ ...dead, seenAt: now - 4_500 }), node({ ...dead, name: 'node-3', machine: 'machine-3', seenAt: now - 4_500 })]
  const orders = (others: readonly NodeSeen[]) => wants(seen([...two, ...others, node({ name: 'node-1' })])).filter((want) => !want.startsWith('ask'))
  assert.ok(orders(never({})).includes('hold storm'), orders(never({})).join())
  const { record: _, ...bare } = never({})[0] ?? node()
  for (const others of [never({ seenAt: now - 1_000 }), never({}).map(({ name }) => ({ ...bare, name }))]) assert.not(orders(others).includes('hold storm'), orders(others).join())
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

test.run()
