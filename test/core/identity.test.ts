// What a fence proves of its path: that after the order on this node came up, alone, and in a boot that is younger; and what takes that away.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { identityOfFence } from '../../core/identity.ts'
import type { Attempt, IncidentStatus } from '../../core/incident.ts'
import type { BeatSeen, NodeSeen } from '../../core/model.ts'
import { situationOf } from '../../core/situation.ts'
import { survey } from '../../core/survey.ts'
import { attempt, beat, incident, method, newBoot, node, now, policy, proofRecord, record, seen, seenOrder } from './world.ts'

const test = suite('identity')
const [offAt, onAt] = [now - 60_000, now - 50_000]
const [off, on] = [attempt({ id: 'off' }), attempt({ id: 'on', action: 'on', result: 'on' })]
const orders = [...seenOrder(offAt, offAt + 2_000, 'off'), ...seenOrder(onAt, onAt + 2_000, 'on')]
const back: BeatSeen = beat({ boot: newBoot, since: now - 20_000, bootedAt: onAt + 15_000 })
const unproven = record({ boot: newBoot, paths: [] })
const target: Partial<NodeSeen> = { name: 'node-2', bootId: 'boot-2', beat: back, record: unproven, firstSeen: new Map(orders) }

interface Twist {
  readonly node?: Partial<NodeSeen>
  readonly beat?: Partial<BeatSeen>
  readonly other?: Partial<NodeSeen>
  readonly status?: Partial<IncidentStatus>
  readonly orders?: readonly Attempt[]
}

function of({ node: changes = {}, beat: words = {}, other = {}, status = {}, orders: given = [off, on] }: Twist = {}) {
  const whole = incident({ phase: 'Running', proof: proofRecord(), attempts: given, ...status })
  const own = node({ ...target, beat: { ...back, ...words }, ...changes })
  const all = survey(seen([node({ name: 'node-1', ...other }), own, node({ name: 'node-3' })], [whole]), now, [policy])
  return identityOfFence(situationOf(all, whole, own))
}

test('ordered off and on again, and this node alone came up in a boot younger than that: proven, of every method of the level', () => {
  assert.equal(of(), { proven: true, digests: ['d1'], detail: 'bmc-off ordered on, node-2 came up in a boot that is younger, and no other node did' })
})

test('what its device tells by itself needs no fence, and what nobody switched proves nothing', () => {
  const told = record({ boot: newBoot, paths: record().paths.map((path) => ({ ...path, boot: newBoot })) })
  assert.is(of({ node: { record: told } }), undefined)
  assert.is(of({ orders: [] }), undefined)
})

const second = { ...method, name: 'feed-b', device: 'pdu-b', digest: 'd2' }
const elsewhere: Partial<NodeSeen> = { path: { levels: [[{ ...method, device: 'bmc-1:443' }]], faults: [] } }
const watchdog = { state: 'armed', identity: 'iTCO_wdt', timeout: 60_000, panic: 0, machine: 'real', epoch: 1 } as const

for (const [name, twist, why] of [
  ['a boot of which nobody told when it began', { node: { beat: beat({ boot: newBoot, since: now - 20_000 }) } }, /nothing tells when the boot of node-2 began/],
  ['a boot that was under way before it was switched on', { beat: { bootedAt: onAt - 100 } }, /not surely younger/],
  ['a boot whose hello may have been on its way for as long', { beat: { bootedAt: onAt + 4_000 } }, /not surely younger/],
  ['the old boot beats on', { beat: { boot: 'boot-1/100' } }, /nothing tells when the boot/],
  ['the boot before was shut down in good order', { beat: { before: 'shut down' } }, /shut down in good order/],
  ['its crash kernel was heard', { status: { dump: { at: 'then', by: 'replica-0', from: '10.0.0.2', afterSilence: true } } }, /crash kernel/],
  ['its watchdog was armed', { beat: { watchdog } }, /iTCO_wdt/],
  ['its proof was shown false', { status: { voided: [{ proof: proofRecord(), at: 'then', evidence: 'it answered' }] } }, /shown false/],
  ['another leader ordered it off', { orders: [{ ...off, term: 2 }, on] }, /another replica led/],
  ['it was never ordered on', { orders: [off] }, /bmc-off was not switched off and on again/],
  ['the order off failed', { orders: [{ ...off, result: 'failed' }, on] }, /bmc-off was not switched off and on again/],
  ['another configuration of the name', { orders: [{ ...off, digest: 'd9' }, { ...on, digest: 'd9' }] }, /bmc-off was not switched off and on again/],
  ['one feed of two', { node: { path: { levels: [[method, second]], faults: [] } } }, /feed-b was not switched off and on again/],
  ['two levels were cut', { orders: [{ ...off, level: 1, method: 'feed-b', id: 'off-b' }, off, on] }, /more than one level/],
  ['a neighbour of the device came up with it', { other: { beat: beat({ boot: 'boot-7/1', since: now - 20_000, bootedAt: onAt + 12_000 }) } }, /node-1 ran on in its boot/],
  ['a neighbour of the device was dead before, and is silent', { other: { beat: beat({ at: now - 900_000 }) } }, /node-1 ran on in its boot/],
  ['a neighbour of the device has no agent', { other: { beat: undefined } }, /node-1 ran on in its boot/],
  ['a node of another device came up with it', { other: { ...elsewhere, beat: beat({ boot: 'boot-7/1', since: now - 20_000, bootedAt: onAt + 12_000 }) } }, /node-1 ran on in its boot/],
  ['a node of another device fell silent with it', { other: { ...elsewhere, beat: beat({ at: offAt + 500 }) } }, /node-1 ran on in its boot/],
] as const satisfies readonly (readonly [string, Twist, RegExp])[]) {
  test(`${name}: nothing is proven, and it is told why`, () => {
    assert.is(of(twist)?.proven, false)
    assert.match(of(twist)?.detail ?? '', why)
  })
}

for (const [name, other] of [
  ['whose agent was started again', { beat: beat({ since: now - 20_000, bootedAt: offAt - 900_000 }) }],
  ['that fell silent long after the off', { beat: beat({ at: onAt }) }],
  ['of another device that was dead long before', { ...elsewhere, beat: beat({ at: now - 900_000 }) }],
  ['of another device that has joined since', { ...elsewhere, seenAt: offAt + 5_000, beat: beat({ since: now - 20_000, bootedAt: onAt + 12_000 }) }],
] as const) test(`a neighbour ${name} takes nothing away`, () => assert.is(of({ other })?.proven, true))

test('another node was ordered on beside it, by what nothing proves to be its own: that may be what brought this one back', () => {
  const beside = incident({ attempts: [attempt({ id: 'z', action: 'on', result: 'on' })] }, { name: 'node-1-abc-1', nodeName: 'node-1', nodeUid: 'uid-node-1' })
  const whole = incident({ phase: 'Running', proof: proofRecord(), attempts: [off, on] })
  const own = node(target)
  const told = (paths: NonNullable<NodeSeen['record']>['paths']) => {
    const other = node({ name: 'node-1', record: record({ nodeUid: 'uid-node-1', paths }), firstSeen: new Map(seenOrder(onAt, onAt + 500, 'z')) })
    return identityOfFence(situationOf(survey(seen([other, own, node({ name: 'node-3' })], [whole, beside]), now, [policy]), whole, own))
  }
  assert.match(told([])?.detail ?? '', /node-1 was ordered on beside it by bmc-off/)
  assert.is(told(record().paths)?.proven, true)
})

test.run()
