// Who decides at all, what a new leader goes on with, and that hands off means all of it.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Action } from '../../core/action.ts'
import { decide } from '../../core/decide.ts'
import type { Self } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { booted, cleared, clearing, freed, lifted, opened, ordered, ordering, proven, recovering, seenAll, switchedOn, withdrawn } from './states.ts'
import { inState, lead, said, wants, without } from './wishes.ts'
import { attempt, beat, dead, incident, newBoot, node, now, policy, proofRecord, seen, self, three } from './world.ts'

const test = suite('decide')

const dry: Policy = { ...policy, mode: 'dryRun' }

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

// A new leader, and what is left of an older one.

test('a new leader first writes its term on the incident, and does nothing before that', () => {
  for (const state of [opened, ordered, proven, clearing, recovering, booted]) assert.equal(wants(inState(state, {}, { term: 2 })), ['adopt'])
  assert.equal(wants(inState(opened, { gone: true }, { term: 2 })), ['adopt'])
})

/** Whom it asks beside the agents, a replica knows by its own name; and what a fence has proven of its path tells only who gave its orders. */
function nameless(action: Action): unknown {
  return action.do === 'askWitnesses' ? 'askWitnesses' : action.do === 'close' ? { ...action, identity: undefined } : action
}

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

test('hands off: nothing is tainted, deleted, ordered or switched on', () => {
  for (const state of [opened, ordered, proven, clearing, freed, cleared, recovering, booted, withdrawn]) {
    assert.equal(wants(inState(state), [dry]), ['hold dry-run'])
    assert.equal(wants(inState(state, {}, {}, {}, lead({ pause: { reason: 'x', by: 'y' } }))), ['hold pause'])
  }
})

test('what was opened under a dry run goes on once the policy acts, and waits for it where no policy means the node', () => {
  for (const state of [opened, ordered, proven, clearing, freed, cleared, recovering, booted, withdrawn]) {
    const under = inState(state, {}, {}, { policy: dry })
    assert.equal(decide(under, now, [policy]), decide(inState(state), now, [policy]))
    assert.equal(wants(under, []), ['hold dry-run'])
  }
})

test('hands off, out-of-service comes off all the same once the node is heard', () => {
  const paused = lead({ pause: { reason: 'x', by: 'y' } })
  assert.equal(wants(inState(clearing, { beat: beat({ boot: newBoot }) }, {}, {}, paused)), ['untaint out-of-service', 'hold pause'])
  assert.equal(wants(inState(clearing, { beat: beat() }, {}, {}, paused)), ['untaint out-of-service', 'hold pause'])
})

// One node's trouble is its own.

test('one node\'s hold does not stop another node\'s clear', () => {
  const other = node({ ...clearing.node, name: 'node-9', uid: 'uid-node-9', machine: 'machine-2', firstSeen: new Map([...seenAll].map(([key, at]) => [key.replace('node-2', 'node-9'), at])) })
  const itsFence = incident(clearing.status, { name: 'node-9-abc-1', nodeName: 'node-9', nodeUid: 'uid-node-9', machine: '' })
  const moved = { ...itsFence, status: { ...itsFence.status, proof: proofRecord({ nodeUid: 'uid-node-9' }), attempts: [attempt({ id: 'node-9-abc-1.1' })] } }
  const observed = seen([node({ ...clearing.node, annotations: { 'holdfast.dev/maintenance': 'true' } }), other, node({ name: 'node-1' }), node({ name: 'node-3' })], [incident(clearing.status), moved])
  assert.equal(wants(observed), ['hold maintenance'])
  assert.ok(decide(observed, now, [policy]).some((action) => action.do === 'delete' && action.node === 'node-9'))
})

test.run()
