// Taints that no open incident owns, or that another put there.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { IncidentStatus } from '../../core/incident.ts'
import type { NodeSeen } from '../../core/model.ts'
import { attempts, booted, bootedReady, cleared, clearing, on, opened, ordered, outOfService, quarantine, recovering, theirs, withdrawn, type State } from './states.ts'
import { held, inState, lead, wants } from './wishes.ts'
import { attempt, beat, incident, newBoot, now, proofRecord, reading, seenOrder, silent, three } from './world.ts'

const test = suite('decide: strays')

// Out-of-service that somebody else put there.

const under = (state: State, changes: Partial<NodeSeen> = {}, status: Partial<IncidentStatus> = {}) => wants(inState(state, { taints: [quarantine, theirs], ...changes }, status))

test('another\'s out-of-service does for the clear, is never taken off, and nothing is switched on under it', () => {
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

const both = (state: State, changes: Partial<NodeSeen> = {}) => wants(inState(state, { taints: [quarantine, theirs, outOfService], ...changes }))

test('beside another\'s out-of-service ours comes off as ever', () => {
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

test('it comes off as well where the node is silent, or where an incident is open by whose proof it cannot stand: switched on under it, the node would lose what it mounts', () => {
  assert.equal(wants(three({ ...silent, taints: [quarantine, outOfService] })), ['untaint out-of-service'])
  assert.equal(wants(inState(opened, { taints: [quarantine, outOfService] })), ['untaint out-of-service'])
  assert.equal(wants(inState(ordered, { taints: [quarantine, outOfService] })), ['untaint out-of-service'])
  assert.not.ok(wants(inState(opened, { taints: [quarantine, theirs] })).some((wish) => wish.startsWith('untaint')))
})

test('it comes off as well where no quarantine stands beside it, whether the node runs, is silent or is paused; another\'s does not', () => {
  const paused = lead({ pause: { reason: 'x', by: 'y' } })
  for (const incidents of [[], [over]]) {
    assert.equal(wants(three({ ...booted.node, taints: [outOfService] }, incidents)), ['untaint out-of-service'])
    assert.equal(wants(three({ ...silent, taints: [outOfService] }, incidents)), ['untaint out-of-service'])
    assert.equal(wants(three({ ...booted.node, taints: [outOfService] }, incidents, paused)), ['untaint out-of-service'])
    assert.equal(wants(three({ ...booted.node, taints: [theirs] }, incidents)), [])
    assert.equal(wants(three({ ...booted.node, taints: [outOfService], busy: new Set(['deed node-2']) }, incidents)), [], 'one deed at a time')
  }
})

test('it comes off a boot that follows one which was cut off, and that boot is quarantined', () => {
  const unclean: Partial<NodeSeen> = { beat: beat({ boot: newBoot, gate: 'open', before: 'cut off' }), bootId: 'boot-2' }
  assert.equal(wants(three({ ...unclean, taints: [outOfService] })), ['taint quarantine'], 'one deed at a time')
  assert.equal(wants(three({ ...unclean, taints: [outOfService, quarantine] })), ['untaint out-of-service'])
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

test.run()
