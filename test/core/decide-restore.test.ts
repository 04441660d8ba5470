// What is switched on again, and when.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decide } from '../../core/decide.ts'
import type { Method, NodeSeen } from '../../core/model.ts'
import { attempts, cleared, clearing, freed, on, recovering, seenAll, seenLongAgo, switchedOn } from './states.ts'
import { foundOffCleared, inState, looks, wants } from './wishes.ts'
import { attempt, beat, foundOffNode, incident, method, now, pod, podsOf, policy, proofRecord, reading, seenOrder, silentAt, three, volume } from './world.ts'

const test = suite('decide: restore')

test('cleared, what we ordered off is ordered on', () => {
  assert.equal(wants(inState(recovering)), ['restore bmc-off', 'hold waiting-for-boot'])
})

test('nothing is switched on while an off may still land', () => {
  for (const result of ['failed', 'unknown'] as const) {
    assert.equal(wants(inState(recovering, {}, { attempts: [attempt({ result })] })), ['hold order-may-land'])
  }
})

test('an on is not repeated while it runs, nor before a machine could have booted; then it is', () => {
  const readings = [reading('on', now - 400)]
  assert.equal(wants(inState(switchedOn, { readings })), ['hold waiting-for-boot'])
  assert.equal(wants(inState(switchedOn, { readings, firstSeen: new Map([...seenLongAgo, ...seenOrder(now - policy.bootWithin - 1_000, now - policy.bootWithin, 'node-2-abc-1.2')]) })), ['restore bmc-off', 'hold waiting-for-boot'])
  assert.equal(wants(inState(recovering, { busy: new Set(['order node-2 bmc-off']) }, { attempts: [...attempts, { ...on, result: 'running' }] })), ['hold waiting-for-boot'])
})

const asks = (readings: NodeSeen['readings']) => looks(inState(switchedOn, { readings })).filter((look) => look.startsWith('askDevice')).length

test('while it boots the device is asked now and then, and once it says off the on is repeated, ever more rarely', () => {
  const old = [reading('on', now - 11_000)]
  assert.equal([asks(old), asks([reading('on', now - 400)])], [1, 0])
  const off = [...old, reading('off', now - 400)]
  assert.equal(wants(inState(switchedOn, { readings: off })), ['restore bmc-off', 'hold waiting-for-boot'])
  assert.equal(wants(inState(switchedOn, { readings: [...old, reading('off', now - 400, now - 300, { machine: 'machine-9' })] })), ['hold waiting-for-boot'], 'of another machine')
  const before = { readings: [reading('off', now - 40_000)] }
  assert.equal(wants(inState(switchedOn, before)), ['hold waiting-for-boot'], 'from before the on')
  const ons = Array.from({ length: 4 }, (_, index) => ({ ...on, id: `on-${index}` }))
  const firstSeen = new Map([...(switchedOn.node.firstSeen ?? []), ...seenOrder(now - 31_000, now - 30_000, 'on-3')])
  assert.equal(wants(inState(switchedOn, { readings: off, firstSeen }, { attempts: [...attempts, ...ons] })), ['hold waiting-for-boot'], 'forty seconds after the fourth')
})

/** Whether another on follows so long after so many that failed. */
function failing(count: number, ago: number): boolean {
  const ons = Array.from({ length: count }, (_, index) => attempt({ id: `on-${index}`, action: 'on', result: 'failed' }))
  const firstSeen = new Map([...seenAll, ...ons.flatMap((one) => seenOrder(now - ago - 1_000, now - ago, one.id))])
  return wants(inState(recovering, { firstSeen }, { attempts: [...attempts, ...ons] })).includes('restore bmc-off')
}

test('an on that failed is repeated soon, and ever more rarely', () => {
  assert.equal([failing(1, 4_900), failing(1, 5_000), failing(2, 9_900), failing(2, 10_000), failing(30, 599_000), failing(30, 600_000)], [false, true, false, true, false, true])
})

test('of two feeds both are switched on', () => {
  const plug: Method = { ...method, name: 'plug-off', device: 'pdu-1:161', digest: 'd2' }
  const offs = [attempt(), attempt({ id: 'p', method: 'plug-off' })]
  const state = { ...recovering.node, path: { levels: [[method, plug]], faults: [] }, firstSeen: new Map([...seenAll, ...seenOrder(now - 6_000, now - 4_000, 'p'), ...seenOrder(now - 1_000, now - 500, 'o')]) }
  assert.ok(wants(inState({ node: state, status: { ...recovering.status, attempts: offs } })).includes('restore bmc-off'))
  assert.ok(wants(inState({ node: state, status: { ...recovering.status, attempts: [...offs, attempt({ id: 'o', action: 'on', result: 'on' })] } })).includes('restore plug-off'))
})

test('what was found off and not ordered off is not switched on, unless the policy says so', () => {
  assert.equal(wants(inState(foundOffCleared, { readings: [] })), ['hold waiting-for-boot'])
  assert.equal(wants(inState(foundOffCleared, {}, {}, { policy: { ...policy, powerOnFoundOff: true } })), ['restore bmc-off', 'hold waiting-for-boot'])
})

const says = (changes: Partial<NodeSeen>): readonly string[] =>
  decide(three({ ...foundOffCleared.node, ...changes }, [incident(foundOffCleared.status, { policy: { ...policy, powerOnFoundOff: true } })]), now, [policy]).flatMap((action) => (action.do === 'hold' ? [action.detail] : []))

test('what nobody has ordered on yet is not said to be', () => {
  assert.equal(says({}), ['bmc-off is to switch it on, once it says how it stands'])
  assert.equal(says({ path: { levels: [], faults: [] } }), ['nothing is configured that could switch it on'])
})

test('a machine that said it shuts down is not switched on, whatever the policy says', () => {
  const goodbye = { beat: beat({ at: now - 10_000, goodbye: { at: now - 10_000, why: 'shutdown' } }) } as const
  assert.equal(wants(inState(foundOffCleared, goodbye, {}, { policy: { ...policy, powerOnFoundOff: true } })), ['hold waiting-for-boot'])
  assert.equal(wants(inState(recovering, goodbye)), ['hold waiting-for-boot'])
})

test('found off, the securing off follows once the pods are freed, so that they need not wait for it', () => {
  const status = { ...clearing.status, attempts: [], proof: proofRecord({ kind: 'found-off' }) }
  assert.equal(wants(inState(clearing, {}, status)), ['delete web-0 api-x'])
  assert.equal(wants(inState(clearing, { pods: podsOf([pod('web-0')], now - 600) }, status)), [])
  assert.equal(wants(inState(freed, {}, status)), ['fence bmc-off', 'hold waiting-for-volumes'])
  assert.equal(wants(inState(cleared, {}, status)), ['untaint out-of-service', 'fence bmc-off'])
})

test('found off after a goodbye for a shutdown, no securing off is ordered', () => {
  const status = { ...clearing.status, attempts: [], proof: proofRecord({ kind: 'found-off' }) }
  assert.equal(wants(inState(freed, { beat: beat({ at: now - 10_000, goodbye: { at: now - 10_000, why: 'shutdown' } }) }, status)), ['hold waiting-for-volumes'])
})

test('a shutdown that left nothing behind opens no incident; one that left a pod or a volume does', () => {
  const goodbye = { ...foundOffNode, beat: beat({ at: silentAt, goodbye: { at: silentAt, why: 'shutdown' } }) } as const
  assert.equal(wants(three(goodbye)), [])
  assert.ok(looks(three(goodbye)).includes('listPods'))
  assert.equal(wants(three({ ...goodbye, pods: podsOf([pod('kube-proxy', { exempt: 'DaemonSet' })]) })), [])
  assert.equal(looks(three({ ...goodbye, pods: podsOf([]) })), [])
  assert.equal(wants(three({ ...goodbye, pods: podsOf([pod('web-0')]) })), ['open found-off'])
  assert.equal(wants(three({ ...goodbye, pods: podsOf([]), volumes: [volume('pv-1')] })), ['open found-off'])
})

test.run()
