// A proof stands, and another path of the node, which was mute when it was made, says on.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { outOfServiceKey, ownValue, quarantineKey } from '../../core/clear.ts'
import { decide } from '../../core/decide.ts'
import type { Method, NodeSeen, Reading } from '../../core/model.ts'
import { attempt, incident, method, now, orderedOff, pod, podsOf, policy, proofRecord, reading, seenOrder, seenProof, self, three } from './world.ts'

const test = suite('said elsewhere')

const outlet: Method = { ...method, name: 'outlet-off', agent: 'fence_apc_snmp', device: 'pdu-1:161', digest: 'd2' }
const provenAt = now - 5_000
const { machine: _, ...untold } = reading('off', 0)
const outletOff = (at: number): Reading => ({ ...untold, method: 'outlet-off', digest: 'd2', startedAt: at, endedAt: at + 100 })

/** The controller did not answer, so the outlet was ordered off, and proved it. */
function wants(controller: readonly Reading[], changes: Partial<NodeSeen> = {}, own = self(), more = policy): readonly string[] {
  const node: Partial<NodeSeen> = {
    ...orderedOff, path: { levels: [[method], [outlet]], faults: [] }, pods: podsOf([pod('web-0')]), readings: [...controller, outletOff(now - 1_600), outletOff(now - 300)],
    firstSeen: new Map([...seenOrder(now - 9_000, now - 8_000), seenProof(provenAt)]),
    taints: [{ key: quarantineKey, value: ownValue, effect: 'NoSchedule' }, { key: outOfServiceKey, value: ownValue, effect: 'NoSchedule' }], ...changes,
  }
  const open = incident({
    phase: 'Running', step: 'clear', level: 1, attempts: [attempt({ method: 'outlet-off', digest: 'd2', level: 1 })], proof: proofRecord({ level: 1, methods: ['outlet-off'], digests: ['d2'] }),
  }, { policy: more })
  return decide(three(node, [open], own), now, [more]).filter((one) => one.node === 'node-2').flatMap((one) => {
    if (one.do === 'hold') return [`hold ${one.because}: ${one.detail}; lifts: ${one.lifts}`]
    if (one.do === 'untaint') return [`untaint ${one.key}`]
    return one.do === 'askDevice' ? [`ask ${one.method.name}`] : [one.do]
  })
}

test('it is asked beside each batch, and says nothing: the batch goes', () => {
  assert.ok(wants([reading('unknown', now - 20_000)]).includes('delete'))
  assert.ok(wants([], { readings: [reading('unknown', now - 20_000), outletOff(now - 3_600), outletOff(now - 2_300)] }).includes('ask bmc-off'))
})

test('a controller that tells this machine\'s own id and says on: nothing more is freed, and out-of-service comes off', () => {
  const said = wants([reading('on', now - 900)])
  assert.not.ok(said.includes('delete'))
  assert.ok(said.includes('hold proof-doubted: nothing more is freed: bmc-off says on of this very machine; lifts: off read there too, as once a person has switched the machine off by it, 595.0 s over, after which the proof lapses, or a new boot'), said.join('; '))
  assert.ok(said.includes(`untaint ${outOfServiceKey}`))
})

const harmless: [string, readonly Reading[], Partial<NodeSeen>][] = [
  ['said on before the proof', [reading('on', provenAt - 1_000)], {}],
  ['says off since', [reading('on', now - 2_000), reading('off', now - 900)], {}],
  ['says on of another machine', [reading('on', now - 900, now - 800, { machine: 'machine-9' })], {}],
  ['cannot tell of which machine it speaks', [{ ...untold, state: 'on', startedAt: now - 900, endedAt: now - 800 }], {}],
  ['tells the id of two Nodes', [reading('on', now - 900)], { twin: 'node-3' }],
  ['does not answer', [reading('unknown', now - 900)], {}],
]
for (const [what, controller, changes] of harmless) test(`one that ${what} is no word against it`, () => assert.ok(wants(controller, changes).includes('delete'), wants(controller, changes).join('; ')))

test('it goes on saying so for as long as a machine may take to boot, and none is heard: the proof lapses, so that it can be ordered off by that one', () => {
  const brief = { ...policy, bootWithin: 5_000 }
  const on = [reading('on', now - 3_000), reading('unknown', now - 900)]
  assert.ok(wants(on, {}, self(), brief).includes('lapse'))
  assert.ok(wants(on, { pods: podsOf([]) }, self(), brief).includes('lapse'), 'also with nothing left to free: it runs, and nobody would end it')
  assert.not.ok(wants(on, {}, self(), { ...policy, bootWithin: 5_001 }).includes('lapse'))
  for (const [, controller, changes] of harmless) assert.not.ok(wants(controller, changes, self(), brief).includes('lapse'))
})

test('whoever has just begun to lead does not know what it told the leader before, and asks it first', () => {
  const lately = self({ ledSince: now - 2_000 })
  const said = wants([], {}, lately)
  assert.equal([said.includes('delete'), said.includes('ask bmc-off')], [false, true], said.join('; '))
  const untainted = wants([], { taints: [{ key: quarantineKey, value: ownValue, effect: 'NoSchedule' }] }, lately)
  assert.not.ok(untainted.includes('taint'), 'nor does out-of-service go on')
  assert.not.ok(wants([reading('unknown', now - 2_100)], {}, lately).includes('delete'), 'by an earlier question')
  assert.ok(wants([reading('unknown', now - 1_500)], {}, lately).includes('delete'), 'one that does not answer was asked')
})

test.run()
