// A person aborts an incident: before a proof it ends the need, after one it is refused, and the silence it was about opens no other.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Action } from '../../core/action.ts'
import { decide } from '../../core/decide.ts'
import type { IncidentStatus } from '../../core/incident.ts'
import type { NodeSeen, Self } from '../../core/model.ts'
import { booted, cleared, clearing, opened, ordered, ordering, proven, quarantine, recovering, switchedOn, type State } from './states.ts'
import { attempt, beat, dead, incident, now, policy, proofRecord, reading, seenOrder, self, three } from './world.ts'

const test = suite('abort')

function of({ node, status }: State, changes: Partial<NodeSeen> = {}, more: Partial<IncidentStatus> = {}, own: Self = self()): readonly Action[] {
  const firstSeen = new Map([['aborted node-2-abc-1', now - 3_000] as const, ...(changes.firstSeen ?? node.firstSeen ?? [])])
  return decide(three({ ...node, ...changes, firstSeen }, [incident({ ...status, ...more }, { abort: true })], own), now, [policy]).filter((action) => action.node === 'node-2')
}
const deeds = (actions: readonly Action[]): readonly string[] => actions.map((action) => action.do).filter((name) => !['probe', 'askWitnesses', 'readLease', 'askDevice', 'listPods', 'record', 'hold'].includes(name))
const holds = (actions: readonly Action[]): readonly string[] => actions.flatMap((action) => (action.do === 'hold' ? [action.because] : []))

for (const [when, state] of Object.entries({ 'before any order': opened, 'while an order runs': ordering, 'once everything was ordered off, in the moment of the proof': ordered })) {
  test(`before a proof it ends the need: ${when}`, () => {
    const actions = of(state)
    assert.equal(deeds(actions), ['withdraw'])
    assert.equal(actions.flatMap((action) => (action.do === 'withdraw' ? [action.because] : [])), ['a person aborted it'])
  })
}

test('it ends a fence that a person asked for, and one whose proof was shown false', () => {
  const byHand = decide(three({ beat: beat(), readings: [reading('on', now - 900)] }, [incident({}, { abort: true, cause: 'by-hand' })]), now, [policy])
  assert.equal(deeds(byHand.filter(({ node }) => node === 'node-2')), ['withdraw'])
  const voided = [{ proof: proofRecord(), at: 'then', evidence: 'it answered' }]
  assert.equal(deeds(of(ordered, {}, { voided })), ['withdraw'])
})

test('what a brake or a pause holds: a brake does not hold an abort, a pause does', () => {
  assert.equal(deeds(of({ node: { ...dead, path: { levels: [], faults: [] } }, status: {} })), ['withdraw'])
  assert.equal([deeds(of(opened, {}, {}, self({ pause: { reason: 'a look', by: 'me' } }))), holds(of(opened, {}, {}, self({ pause: { reason: 'a look', by: 'me' } })))], [[], ['pause']])
})

test('another leader writes its term first, and goes on from there', () => {
  assert.equal(deeds(of(opened, {}, { term: 2 })), ['adopt'])
})

test('after a proof it is refused with a sentence, and the sequence finishes', () => {
  for (const [state, wanted] of [[proven, 'taint'], [clearing, 'delete'], [cleared, 'untaint'], [switchedOn, 'restore'], [booted, 'untaint']] as const) {
    const actions = of(state)
    assert.equal(deeds(actions), [wanted])
    const refused = actions.find((action) => action.do === 'hold' && action.because === 'abort-refused')
    assert.match(refused?.do === 'hold' ? refused.detail : '', /too late/)
  }
  assert.is(holds(of(recovering)).at(-1), 'abort-refused', 'what it really waits for stands first')
})

const done: Partial<IncidentStatus> = { phase: 'Done', step: 'recovery' }

test('an off that may land is waited out, and what was cut is given back, before anything else', () => {
  const failed = [attempt({ result: 'failed' })]
  const late = { ...dead, taints: [quarantine], firstSeen: new Map(seenOrder(now - 50_000, now - 40_000)) }
  assert.equal(holds(of({ node: late, status: { ...done, attempts: failed } })), ['order-may-land'])
  const landed = { ...late, beat: beat({ at: now - 150_000 }), firstSeen: new Map(seenOrder(now - 120_000, now - 110_000)), readings: [reading('off', now - 900)] }
  assert.equal(deeds(of({ node: landed, status: { ...done, attempts: failed } })), ['restore'])
  assert.equal(deeds(of({ node: { ...landed, beat: beat({ at: now - 150_000 }) }, status: { ...done, attempts: [attempt()] } })), ['restore'])
})

test('the silence it was about opens nothing else: the incident stays until the node is heard', () => {
  const silentStill = of({ node: dead, status: done })
  assert.equal([deeds(silentStill), holds(silentStill)], [[], ['aborted']])
  assert.equal(holds(of({ node: { ...dead, beat: undefined, seenAt: now - 1_000 }, status: done })), ['aborted'], 'a leader that has just begun')
  const back = of({ node: { beat: beat() }, status: done })
  assert.equal([deeds(back), holds(back)], [['close'], []])
})

test('a node that was heard since and is silent once more has a new silence', () => {
  const state = { node: dead, status: done }
  const at = (aborted: number) => decide(three({ ...state.node, firstSeen: new Map([['aborted node-2-abc-1', aborted]]) }, [incident(done, { abort: true })]), now, [policy]).filter(({ node }) => node === 'node-2')
  assert.equal(deeds(at(now - 4_001)), ['close'])
  assert.equal(deeds(at(now - 4_000)), [])
})

test('silenced by what we ordered, and dead of it: that is no new silence', () => {
  const on = attempt({ id: 'node-2-abc-1.2', action: 'on', result: 'on' })
  const firstSeen = new Map([['aborted node-2-abc-1', now - 2_000_000] as const, ...seenOrder(now - 1_900_000, now - 1_890_000), ...seenOrder(now - 1_880_000, now - 1_870_000, 'node-2-abc-1.2')])
  const node = { ...dead, beat: beat({ at: now - 1_895_000 }), taints: [quarantine], firstSeen }
  assert.equal(holds(of({ node, status: { ...done, attempts: [attempt(), on] } })), ['aborted'])
})

test.run()
