// The node is heard: before a proof its incident is withdrawn, after one the proof may be false.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { outOfServiceKey } from '../../core/clear.ts'
import type { IncidentStatus } from '../../core/incident.ts'
import type { Method, NodeSeen } from '../../core/model.ts'
import { attempts, booted, bootedReady, clearing, on, opened, ordered, ordering, quarantine, recovering, seenAll } from './states.ts'
import { inState, looks, wants, wishes } from './wishes.ts'
import { attempt, beat, boot, dead, method, newBoot, now, podsOf, policy, proofRecord, reading, record, seenOrder, seenProof, three } from './world.ts'

const test = suite('decide: heard')

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

test('a verified off is refuted by no Lease that may have moved before its end', () => {
  const quick = { beat: beat({ at: now - 6_000 }), firstSeen: new Map(seenOrder(now - 2_000, now - 1_000)), readings: [reading('on', now - 2_500), reading('off', now - 900, now - 850)] }
  const moved = (movedAfter: number) => ({ ...quick, lease: { askedAt: now - 200, readAt: now - 150, renewTime: 'b', unmovedSince: now - 150, moved: true, movedAfter } })
  assert.not(wants(inState(ordered, moved(now - 1_001))).includes('withdraw'))
  assert.equal(wants(inState(ordered, moved(now - 1_000))), ['withdraw'])
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

test.run()
