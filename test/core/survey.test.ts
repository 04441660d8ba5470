import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Incident } from '../../core/incident.ts'
import type { NodeSeen, Self } from '../../core/model.ts'
import { policyOf, type Policy } from '../../core/policy.ts'
import { survey, type Survey } from '../../core/survey.ts'
import { attempt, beat, dead, incident, newBoot, node, now, policy, proofRecord, reading, record, seen, seenOrder, self, silent } from './world.ts'

const test = suite('survey')

const of = (nodes: readonly NodeSeen[], incidents: readonly Incident[] = [], own: Self = self(), policies: readonly Policy[] = [policy]): Survey =>
  survey(seen(nodes, incidents, own), now, policies)
const fleet = (count: number) => Array.from({ length: count }, (_, index) => node({ name: `well-${index}` }))
const verdicts = (on: Survey): Record<string, string> => Object.fromEntries([...on.verdicts].map(([name, verdict]) => [name, verdict.is]))

test('only nodes that are not plainly alive have a verdict', () => {
  assert.equal(verdicts(of([...fleet(3), node(dead), node({ name: 'quiet', beat: beat({ at: now - 1_600 }) }), node({ name: 'new', beat: undefined, seenAt: now })])), {
    'node-2': 'dead', quiet: 'suspect', new: 'unknown',
  })
})

test('a node that is gone is not judged', () => {
  assert.equal(verdicts(of([node({ ...dead, gone: true })])), {})
})

test('an incident keeps the pace of the policy it began with', () => {
  const slow = { ...policy, profile: 'conservative' } as const
  assert.equal(verdicts(of([...fleet(3), node(dead)], [], self(), [slow])), {})
  assert.equal(verdicts(of([...fleet(3), node(dead)], [incident()], self(), [slow])), { 'node-2': 'dead' })
})

// Storms: what counts as silent together.

const stormy = (on: Survey): boolean => on.storms.cluster !== undefined
const fallen = (name: string, changes: Partial<NodeSeen> = {}) => node({ ...dead, name, ...changes })

test('three of five that fell silent are a storm', () => {
  assert.ok(stormy(of([fallen('a'), fallen('b'), fallen('c'), ...fleet(2)])))
  assert.not(stormy(of([fallen('a'), fallen('b'), ...fleet(3)])))
})

const proven = (name: string, changes: Partial<Incident> = {}) =>
  incident({ phase: 'Running', step: 'clear', proof: proofRecord({ nodeUid: `uid-${name}` }) }, { name: `${name}-x-1`, nodeName: name, nodeUid: `uid-${name}`, machine: '', ...changes })

test('a node proven off explains its silence', () => {
  assert.not(stormy(of([fallen('a'), fallen('b'), fallen('c'), ...fleet(2)], [proven('c')])))
})

test('the silence of the boot that came after the proven one is not explained by the proof', () => {
  const again = fallen('c', { beat: beat({ boot: newBoot, at: now - 4_000 }), record: record({ boot: newBoot }) })
  assert.ok(stormy(of([fallen('a'), fallen('b'), again, ...fleet(2)], [proven('c')])))
})

test('a proof of another machine under the name explains nothing', () => {
  assert.ok(stormy(of([fallen('a'), fallen('b'), fallen('c'), ...fleet(2)], [proven('c', { nodeUid: 'uid-other' })])))
})

const left = (name: string) => fallen(name, { beat: beat({ at: now - 4_000, goodbye: { at: now - 4_000, why: 'shutdown' } }) })

test('nodes that said they shut down are no storm, however many', () => {
  assert.not(stormy(of([left('a'), left('b'), left('c'), ...fleet(2)])))
})

const back = (to: number) => node({ name: 'c', beat: beat({ lapse: { from: now - 5_000, to } }) })

test('a node that came back from a silence counts for a while among those that fell silent with it', () => {
  assert.ok(stormy(of([fallen('a'), fallen('b'), back(now - 500), ...fleet(2)])))
  const old = node({ name: 'c', beat: beat({ lapse: { from: now - 70_000, to: now - 65_000 } }) })
  assert.not(stormy(of([fallen('a'), fallen('b'), old, ...fleet(2)])))
})

test('a silence that our own stall made is no lapse of the node', () => {
  const nodes = [fallen('a'), fallen('b'), back(now - 500), ...fleet(2)]
  assert.not(stormy(of(nodes, [], self({ awakeSince: now - 4_500 }))))
  assert.ok(stormy(of(nodes, [], self({ awakeSince: now - 5_500 }))))
})

test('a node silent again after a lapse is counted once', () => {
  const again = fallen('b', { beat: beat({ at: now - 4_000, lapse: { from: now - 9_000, to: now - 6_000 } }) })
  assert.not(stormy(of([fallen('a'), again, ...fleet(3)])))
})

// Slots.

const slots = (target: NodeSeen, status: Partial<Incident['status']>): string[] => [...of([target, ...fleet(3)], [incident(status)]).fencing]
const ended = (ago: number) => new Map(seenOrder(now - ago - 2_000, now - ago))
const ordered = { phase: 'Running', step: 'power-management', attempts: [attempt()] } as const

test('a slot is held from the first order to the last volume freed', () => {
  assert.equal(slots(node(dead), {}), [])
  assert.equal(slots(node({ ...dead, firstSeen: ended(1_000) }), ordered), ['node-2'])
  assert.equal(slots(node({ ...dead, firstSeen: ended(1_000) }), { ...ordered, step: 'clear', proof: proofRecord() }), ['node-2'])
  assert.equal(slots(node({ ...dead, firstSeen: ended(1_000) }), { ...ordered, step: 'recovery', proof: proofRecord() }), [])
})

const failed = [attempt({ id: 'a', result: 'failed' }), attempt({ id: 'b', result: 'failed' })]
const rested = (ago: number) => node({ ...dead, readings: [reading('on', now - 500)], firstSeen: new Map([...seenOrder(now - ago - 2_000, now - ago, 'a'), ...seenOrder(now - ago - 2_000, now - ago, 'b')]) })

test('an incident that is over, rests, has no level left, or waits for a boot holds none', () => {
  assert.equal(slots(rested(5_000), { ...ordered, attempts: failed }), [], 'it rests')
  assert.equal(slots(rested(policy.restAfter + 1), { ...ordered, attempts: failed }), [], 'a new round takes a new slot')
  assert.equal(slots(node({ ...dead, firstSeen: ended(40_000) }), ordered), [], 'it was not proven, and rests')
  assert.equal(slots(node({ ...dead, firstSeen: ended(1_000) }), { ...ordered, phase: 'Done' }), [])
  assert.equal(slots(node({ ...dead, firstSeen: ended(1_000), beat: beat({ boot: newBoot }) }), ordered), [])
})

test('an order that was never given takes none', () => {
  const notGiven = { ...ordered, attempts: [attempt({ result: 'not-given' })] }
  assert.equal(slots(node({ ...dead, readings: [reading('on', now - 500)], firstSeen: ended(1_000) }), notGiven), [])
})

test('a found-off that nobody ordered holds none', () => {
  assert.equal(slots(node(dead), { phase: 'Running', step: 'clear', proof: proofRecord({ kind: 'found-off' }) }), [])
})

// Whom to ask, and who counts.

test('those that beat are counted as peers, and the other replicas', () => {
  const { peers } = of([...fleet(3), node(silent)], [], self({ replicas: ['r1', 'r2'] }))
  assert.equal(peers, { agents: 3, replicas: 2 })
})

test('listeners are a few of each zone, and are found once', () => {
  const on = of([...fleet(50), node({ name: 'far', zone: 'b' }), node(dead)])
  assert.equal(on.listeners().map((zone) => zone.length), [6, 1])
  assert.is(on.listeners(), on.listeners())
})

// Which policy.

test('the selecting policy of the highest priority is chosen; two of the same highest are none', () => {
  const all: Policy = { ...policy, name: 'all' }
  const db: Policy = { ...policy, name: 'db', priority: 5, nodeLabels: { role: 'db' } }
  const labelled = node({ labels: { role: 'db' } })
  assert.equal(policyOf(labelled, [all, db]), { policy: db })
  assert.equal(policyOf(node(), [all, db]), { policy: all })
  assert.equal(policyOf(node(), [db]), { none: 'unselected' })
  assert.equal(policyOf(labelled, [all, db, { ...db, name: 'also' }]), { none: 'policy-conflict', names: ['also', 'db'] })
  assert.equal(policyOf(labelled, [all, { ...all, name: 'twin' }, db]), { policy: db })
})

test.run()
