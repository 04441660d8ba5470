// A person has a node fenced that has an open incident already.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Incident } from '../../core/incident.ts'
import type { NodeSeen } from '../../core/model.ts'
import { wishBeside } from '../../core/wish.ts'
import { booted, clearing, opened, ordered, quarantine, recovering, withdrawn, type State } from './states.ts'
import { held, wants } from './wishes.ts'
import { attempt, beat, boot, dead, incident, now, proofRecord, reading, silentAt, three } from './world.ts'

const test = suite('wish')

const wish = (changes: Partial<Incident> = {}): Incident => incident({}, { name: 'a-person', uid: 'uid-person', cause: 'by-hand', ...changes })
const beside = (state: State, node: Partial<NodeSeen> = {}, more: Partial<Incident> = {}, own = wish()) => three({ ...state.node, ...node }, [incident(state.status, more), own])

/** Its kubelet port answers: nobody takes it for dead. */
const ill: Partial<NodeSeen> = { probe: { askedAt: now - 900, answeredAt: now - 800, word: 'answered', spokeAt: now - 800 }, readings: [reading('on', now - 1_000)] }

test('what nobody takes for dead is ordered off once a person wants it, by the incident that is open', () => {
  assert.equal(wants(three({ ...opened.node, ...ill }, [incident()])), ['hold not-dead'])
  assert.equal(wants(beside(opened, ill)), ['taint quarantine', 'fence bmc-off', 'hold concurrency'])
  assert.match(held(beside(opened, ill), 'concurrency'), /node-2-abc-1 of the same node is open, and goes on as this one asks/)
})

test('heard again it is not withdrawn, as long as the wish stands', () => {
  const heard = { beat: beat(), readings: [reading('on', now - 1_000)] }
  assert.equal(wants(beside(opened, heard)), ['taint quarantine', 'fence bmc-off', 'hold concurrency'])
  assert.equal(wants(beside(opened, heard, {}, wish({ abort: true }))), ['withdraw', 'close Withdrawn'])
})

test('once the node is proven off the wish is over: a duplicate, which names the other', () => {
  assert.ok(wants(beside(clearing)).includes('close Refused'))
  assert.ok(wants(beside(recovering)).includes('close Refused'))
  const partial = { ...clearing.status, proof: proofRecord({ kind: 'safe-detach', level: -1, methods: [] }) }
  assert.not(wants(beside({ node: clearing.node, status: partial })).includes('close Refused'), 'nothing proves the machine off')
})

test('one that only waits for its node to be well ends for it', () => {
  const dirty = beat({ boot: 'boot-2/900', since: now - 10_000, clean: { at: now - 500, report: { state: 'dirty', leftovers: [{ kind: 'mount', path: '/x' }] } } })
  assert.equal(wants(beside(booted, { beat: dirty })), ['close Recovered', 'hold concurrency'])
  assert.equal(wants(beside(booted, { beat: dirty }, { cause: 'by-hand' })), ['close Recovered', 'hold concurrency'], 'be that another person\'s')
  assert.equal(wants(three({ ...booted.node, beat: dirty }, [incident(booted.status)])), ['hold waiting-for-clean'])
  assert.equal(wants(beside(withdrawn, { taints: [quarantine], beat: beat({ clean: dirty.clean ?? assert.unreachable() as never }) })), ['close Withdrawn', 'hold concurrency'])
  const aborted = { ...withdrawn.node, ...dead, beat: beat({ at: silentAt }), firstSeen: new Map([...(withdrawn.node.firstSeen ?? []), ['aborted node-2-abc-1', now - 2_000] as const]) }
  assert.equal(wants(three(aborted, [incident(withdrawn.status, { abort: true })])), ['hold aborted'])
  assert.equal(wants(three(aborted, [incident(withdrawn.status, { abort: true }), wish()])), ['close Withdrawn', 'hold concurrency'])
})

test('but not while an order of it may land, or what it cut is not given back', () => {
  const loose = { ...withdrawn.status, attempts: [attempt({ result: 'failed' })] }
  assert.not(wants(three({ ...withdrawn.node, beat: beat(), taints: [quarantine], firstSeen: new Map([['began node-2-abc-1.1', now - 5_000], ['ended node-2-abc-1.1', now - 4_000]]) }, [incident(loose), wish()])).some((want) => want.startsWith('close')))
  assert.ok(wants(beside({ node: { ...ordered.node, beat: beat() }, status: { ...ordered.status, phase: 'Done', step: 'recovery' } })).includes('restore bmc-off'))
})

test('a drill, and what gives back what is owed, go on as they are, and theirs waits', () => {
  for (const cause of ['drill', 'owed'] as const) {
    const alone = wants(three({ ...opened.node, beat: beat() }, [incident(opened.status, { cause })]))
    assert.equal(wants(beside(opened, { beat: beat() }, { cause })), [...(cause === 'owed' ? ['close Withdrawn'] : alone), 'hold concurrency'], cause)
  }
})

test('two persons want the same: the second is a duplicate', () => {
  assert.ok(wants(beside(opened, ill, { cause: 'by-hand' })).includes('close Refused'))
})

test('a wish is of its node, of a person, not begun, and not taken back', () => {
  const open = incident({}, { boot })
  const is = (changes: Partial<Incident>, status: Partial<Incident['status']> = {}) => wishBeside([open, { ...wish(changes), status: { ...wish().status, ...status } }], open) !== undefined
  assert.equal([is({}), is({ abort: true }), is({ nodeName: 'node-3' }), is({ cause: 'silence' }), is({}, { phase: 'Final' }), is({}, { attempts: [attempt()] })], [true, false, false, false, false, false])
})

test.run()
