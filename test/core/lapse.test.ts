// A proof whose device tells nothing any more: when it is set aside, when it is not, and what may follow.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { isLook } from '../../core/action.ts'
import { outOfServiceKey, quarantineKey } from '../../core/clear.ts'
import { decide } from '../../core/decide.ts'
import { lapsed, shownFalse, type Incident, type IncidentStatus } from '../../core/incident.ts'
import type { Method, NodeSeen, Reading } from '../../core/model.ts'
import { speechlessSince } from '../../core/proof.ts'
import { lapse, shownFalse as madeFalse } from '../../core/timeline.ts'
import { attempts, bootedReady, clearing, freed, cleared, outOfService, proven, quarantine, recovering, seenAll } from './states.ts'
import { beat, boot, dead, incident, method, newBoot, now, podsOf, pod, policy, proofRecord, reading, record, seenOrder, self, three } from './world.ts'

const test = suite('lapse')

const outlet: Method = { ...method, name: 'outlet', agent: 'pdu', device: 'pdu:161' }
const twoLevels = { levels: [[method], [outlet]], faults: [] }
const both = record({ paths: [...record().paths, ...record().paths.map((path) => ({ ...path, method: 'outlet' }))] })
const nothingSaid: readonly Reading[] = [reading('unknown', now - 3_000), reading('unknown', now - 2_000), reading('unknown', now - 900)]
const key = speechlessSince('bmc-off', 'd1')
const long = new Map([...seenAll, [key, now - 30_000] as const])
const silentDevice: Partial<NodeSeen> = { readings: nothingSaid, firstSeen: long }

interface State { readonly node: Partial<NodeSeen>; readonly status: Partial<IncidentStatus> }

function wants(state: State, changes: Partial<NodeSeen> = {}, status: Partial<IncidentStatus> = {}, more: Partial<Incident> = {}): string[] {
  const observed = three({ ...state.node, ...changes }, [incident({ ...state.status, ...status }, more)], self())
  return decide(observed, now, [policy]).filter((action) => action.node === 'node-2' && !isLook(action) && action.do !== 'record').map((action) => {
    if (action.do === 'hold') return `hold ${action.because}`
    if (action.do === 'untaint') return `untaint ${action.key === quarantineKey ? 'quarantine' : 'out-of-service'}${action.recovers ? ', recovers' : ''}`
    if (action.do === 'fence') return `fence ${action.method.name} level ${action.level}`
    if (action.do === 'prove') return `prove ${action.proof.kind} level ${action.proof.level}`
    return action.do === 'close' ? `close ${action.outcome}` : action.do
  })
}

test('its device has told nothing for thirty seconds and pods are left: it lapses', () => {
  for (const state of [proven, clearing]) assert.ok(wants(state, { ...silentDevice, pods: clearing.node.pods ?? podsOf([]) }).includes('lapse'))
})

test('volumes alone are left: it lapses too, for as long as they are waited for', () => {
  assert.ok(wants(freed, silentDevice).includes('lapse'))
  assert.equal(wants(freed, silentDevice, {}, { policy: { ...policy, clearPatience: 0 } }), ['hold proof-doubted', 'untaint out-of-service, recovers'])
})

test('nothing is left to free: nobody waits for its word', () => {
  assert.equal(wants(cleared, silentDevice), ['hold proof-doubted', 'untaint out-of-service, recovers'])
})

const stands: [string, Partial<NodeSeen>][] = [
  ['it was silent for a moment less', { ...silentDevice, firstSeen: new Map([...seenAll, [key, now - 29_999]]) }],
  ['this replica has not heard it be silent before', { ...silentDevice, firstSeen: seenAll }],
  ['it was asked twice', { ...silentDevice, readings: nothingSaid.slice(1) }],
  ['another configuration of it was silent', { ...silentDevice, firstSeen: new Map([...seenAll, [speechlessSince('bmc-off', 'd9'), now - 30_000]]) }],
  ['it has said on: that is a word', { ...silentDevice, readings: [...nothingSaid, reading('on', now - 300)] }],
  ['it has said off just now', { ...silentDevice, readings: [...nothingSaid, reading('off', now - 300)] }],
  ['the pods were not listed since', { ...silentDevice, pods: podsOf([pod('web-0')], now - 3_000) }],
]
for (const [how, changes] of stands) {
  test(`it stands, and frees nothing it must not, if ${how}`, () => {
    const wished = wants(clearing, changes)
    assert.not(wished.includes('lapse'))
    assert.is(wished.includes('delete'), how.startsWith('it has said off'))
  })
}

test('a cleared node that is being brought back has nothing to lapse for', () => {
  assert.not(wants(recovering, silentDevice).includes('lapse'))
})

// After it.

const at = '2026-01-01T00:01:00.000Z'
const old = { proof: proofRecord(), how: 'lapsed', at, evidence: 'mute' } as const
const afterwards: State = {
  node: { ...clearing.node, ...dead, beat: beat({ at: now - 60_000 }), record: both, path: twoLevels, taints: [quarantine], ...silentDevice },
  status: { phase: 'Running', step: 'power-management', attempts, voided: [old] },
}
const outletOn: readonly Reading[] = [...nothingSaid, reading('on', now - 1_000, now - 900, { method: 'outlet' })]

test('the record keeps it among those that do not stand, and says that it was not shown false', () => {
  const status = lapse('mute', at)({ ...incident({ proof: proofRecord() }).status })
  assert.equal([status.proof, status.voided, status.step], [undefined, [old], 'power-management'])
  assert.equal([shownFalse(status), lapsed(status)], [[], old])
  assert.is(lapse('again', at)(status), status)
  assert.equal(madeFalse('it answered', at)(status).voided, [{ proof: proofRecord(), at, evidence: 'it answered' }], 'it can be shown false afterwards')
})

test('a boot that answers was never off: what lapsed before is false too, and marks its path', () => {
  const again = proofRecord({ kind: 'off', level: 1, methods: ['outlet'] })
  const told = madeFalse('it answered', at)({ ...incident({ ...afterwards.status, proof: again }).status })
  assert.equal(shownFalse(told).map(({ proof, evidence }) => [proof.level, evidence]), [[0, 'it answered'], [1, 'it answered']])
  assert.equal([told.proof, lapsed(told)], [undefined, undefined])
})

test('while hands are off out-of-service comes off, and nothing else is done', () => {
  const pause = { reason: 'x', by: 'y' }
  const wished = (taints: NodeSeen['taints']) => decide(three({ ...afterwards.node, taints }, [incident(afterwards.status)], self({ pause })), now, [policy]).map((action) => (action.do === 'hold' ? `hold ${action.because}` : action.do))
  assert.equal(wished([quarantine, outOfService]).filter((wish) => wish !== 'record'), ['untaint', 'hold pause'])
  assert.equal(wished([quarantine]).filter((wish) => wish !== 'record'), ['hold pause'])
})

test('out-of-service comes off before anything else, and the next level is ordered off, never the silent one', () => {
  assert.equal(wants(afterwards, { taints: [quarantine, outOfService], readings: outletOn }), ['untaint out-of-service'])
  assert.equal(wants(afterwards, { readings: outletOn }), ['fence outlet level 1'])
})

test('the next level is ordered off only over the death of the node, judged anew', () => {
  const recently = { ...afterwards.node, readings: outletOn, probe: { askedAt: now - 2_000, answeredAt: now - 1_200, word: 'answered', spokeAt: now - 1_200 } as const }
  for (const changes of [recently, { readings: outletOn, witnesses: [], probe: { askedAt: now - 200_000, answeredAt: now - 199_000, word: 'silent' } as const }]) {
    assert.equal(wants(afterwards, changes), ['hold not-dead'])
  }
})

test('nothing else answers: it holds, and names the device', () => {
  const mute = [...nothingSaid, ...nothingSaid.map((one) => ({ ...one, method: 'outlet' }))]
  const ago = new Map([...long, ...seenOrder(now - 92_000, now - 90_000)])
  const observed = three({ ...afterwards.node, readings: mute, firstSeen: ago }, [incident(afterwards.status)], self())
  const held = decide(observed, now, [policy]).filter((action) => action.do === 'hold')
  assert.match(JSON.stringify(held), /bmc-off does not answer.*spec\.acknowledge/)
})

test('the same level answers again, off, twice: it proves anew', () => {
  const again = [reading('unknown', now - 4_000), reading('off', now - 2_300), reading('off', now - 900)]
  assert.equal(wants(afterwards, { readings: again }), ['prove off level 0'])
  assert.not(wants(afterwards, { readings: again.slice(0, 2) }).some((wish) => wish.startsWith('prove')), 'one word is not enough')
})

test('a new boot ends it like one that is proven; the fenced one is challenged, and its answer shows the proof false', () => {
  const back = { beat: beat({ boot: newBoot, since: now - 10_000, clean: { at: now - 500, report: { state: 'clean' } } }), ready: bootedReady, bootId: 'boot-2', readings: [reading('on', now - 500)] } as const
  assert.equal(wants(afterwards, { ...back, volumes: [], firstSeen: new Map([...long, [`gone ${outOfServiceKey}`, now - 40_000]]) }), ['untaint quarantine'])
  assert.equal(wants(afterwards, { beat: beat() }), ['hold proof-doubted'])
  assert.equal(wants(afterwards, { beat: beat({ answered: { issuedAt: now - 400, boot } }) }), ['void'])
  assert.equal(wants(afterwards, { beat: beat({ answered: { issuedAt: now - 600, boot } }) }), ['hold proof-doubted'], 'it was asked before the proof')
})

test('it does not mark its path', () => {
  const status: Partial<IncidentStatus> = { ...afterwards.status, phase: 'Final', outcome: 'Recovered' }
  assert.equal(decide(three({ record: both, path: twoLevels, readings: outletOn }, [incident(status)], self()), now, [policy]).filter((action) => action.do === 'record' && action.record.paths.some(({ state }) => state === 'marked')), [])
})

test.run()
