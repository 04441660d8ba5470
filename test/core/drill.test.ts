// What a drill asks for, what it takes for passed, and what keeps it from beginning.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Action } from '../../core/action.ts'
import { decide } from '../../core/decide.ts'
import type { Incident } from '../../core/incident.ts'
import type { NodeSeen, Reading } from '../../core/model.ts'
import { attempt, beat, boot, incident, method, node, now, pod, podsOf, policy, reading, record, seen, seenOrder, volume } from './world.ts'

const test = suite('drill')
const cordon = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' } as const
const ready: Partial<NodeSeen> = { beat: beat(), record: record(), taints: [cordon], pods: { ...podsOf([]), askedAt: now - 200 }, volumes: [], readings: [reading('on', now - 900, now - 800)] }
const settled = now - 12_000
const off = attempt()
const dark: Partial<NodeSeen> = {
  ...ready, beat: beat({ at: settled - 500 }), firstSeen: new Map(seenOrder(settled - 2_000, settled)),
  readings: [reading('off', settled + 100), reading('off', now - 900)],
}

function of(target: Partial<NodeSeen>, status: Partial<Incident['status']> = {}, changes: Partial<Incident> = {}, other: Partial<NodeSeen> = {}): readonly Action[] {
  const nodes = [node({ name: 'node-1', ...other }), node({ name: 'node-2', ...target }), node({ name: 'node-3' })]
  return decide(seen(nodes, [incident(status, { cause: 'drill', ...changes })]), now, [policy]).filter((action) => action.node === 'node-2')
}
const end = (actions: readonly Action[]) => actions.flatMap((action) => (action.do === 'withdraw' ? action.drill ?? [] : []))[0]
/** Of a device that tells no UUID. */
const told: Reading = { method: 'bmc-off', digest: 'd1', state: 'on', startedAt: now - 900, endedAt: now - 800, evidence: 'on' }
const orders = (actions: readonly Action[]) => actions.filter((action) => action.do === 'fence').length

test('a node that is cordoned, drained and well is ordered off', () => {
  assert.is(orders(of(ready)), 1)
})

for (const [name, changes, why] of [
  ['not cordoned', { taints: [] }, /not cordoned/],
  ['a pod', { pods: { ...podsOf([pod('web-0')]), askedAt: now - 200 } }, /web-0 is on the node still/],
  ['a volume', { volumes: [volume('one')] }, /is attached to the node still/],
  ['silent', { beat: beat({ at: now - 20_000 }) }, /not heard/],
  ['another boot', { beat: beat({ boot: 'boot-9/100' }) }, /another boot/],
  ['a path that was never audited', { record: record({ paths: [] }), readings: [] }, /was never read on/],
  ['a device that says off', { readings: [reading('off', now - 900, now - 800)] }, /does not say on now/],
] as const) {
  test(`${name}: it ends, and nothing is ordered`, () => {
    const actions = of(changes === undefined ? ready : { ...ready, ...changes })
    assert.equal([orders(actions), end(actions)?.passed], [0, false])
    assert.match(end(actions)?.detail ?? '', why)
  })
}

test('what ends a machine for good is never drilled, and the level beside it is', () => {
  const ending = { ...method, name: 'terminate-instance', digest: 'd9', ends: true } as const
  const alone = of({ ...ready, path: { levels: [[ending]], faults: [] } })
  assert.equal([orders(alone), end(alone)?.detail], [0, 'none of its levels switches the machine off and on'])
  const beside = of({ ...ready, path: { levels: [[ending], [method]], faults: [] } })
  assert.equal(beside.flatMap((action) => (action.do === 'fence' ? [action.method.name, action.level] : [])), ['bmc-off', 1])
})

test('pods and devices are asked just before the order', () => {
  const actions = of({ ...ready, pods: { ...podsOf([]), askedAt: now - 9_000 } })
  assert.equal([orders(actions), actions.some((action) => action.do === 'listPods')], [0, true])
})

test('DoNothing and an abort are obeyed; a pod that belongs to the node itself does not matter', () => {
  assert.match(end(of(ready, {}, { policy: { ...policy, nodeDownPodDeletionPolicy: 'DoNothing' } }))?.detail ?? '', /DoNothing/)
  assert.match(end(of(ready, {}, { abort: true }))?.detail ?? '', /a person aborted it/)
  assert.is(orders(of({ ...ready, pods: { ...podsOf([pod('agent', { exempt: 'a DaemonSet' }), pod('over', { phase: 'Succeeded' })]), askedAt: now - 200 } })), 1)
})

test('off twice, silent, and the others heard since: passed', () => {
  assert.equal(end(of(dark, { attempts: [off] }))?.passed, true)
})

test('another node is ordered off beside it, by what nothing proves to be its own: what silenced this one may have been that', () => {
  const unproven = record({ nodeUid: 'uid-node-1', paths: record().paths.map((path) => ({ ...path, identity: 'unproven' })) })
  const beside = (began: number, ended: number | undefined, its: Partial<NodeSeen> = { record: unproven }) => {
    const other = node({ name: 'node-1', beat: beat({ at: settled - 20_000 }), firstSeen: new Map(seenOrder(began, ended, 'z')), ...its })
    const fence = incident({ attempts: [attempt({ id: 'z', ...(ended === undefined ? { result: 'running' } : {}) })] }, { name: 'node-1-abc-1', nodeName: 'node-1', nodeUid: 'uid-node-1' })
    return end(decide(seen([other, node({ name: 'node-2', ...dark }), node({ name: 'node-3' })], [incident({ attempts: [off] }, { cause: 'drill' }), fence]), now, [policy]).filter((action) => action.node === 'node-2'))
  }
  for (const [began, ended] of [[settled - 1_500, settled - 500], [settled - 6_000, settled - 4_000], [settled - 1_000, undefined]] as const) assert.equal([beside(began, ended)?.passed, /node-1 was ordered off beside it/.test(beside(began, ended)?.detail ?? '')], [false, true])
  assert.is(beside(settled - 40_000, settled - 30_000)?.passed, true, 'that was over long before')
  assert.is(beside(settled - 1_500, settled - 500, { record: record({ nodeUid: 'uid-node-1' }) })?.passed, true, 'that was its own outlet')
})

for (const [name, changes, other] of [
  ['it said goodbye', { beat: beat({ at: settled - 500, goodbye: { at: settled - 400, why: 'reboot' } }) }, {}],
  ['a neighbour was away for a moment, and is not heard since', {}, { beat: beat({ at: settled - 60_000, goodbye: { at: settled - 60_000, why: 'restart' } }) }],
  ['one reading', { readings: [reading('off', now - 900)] }, {}],
  ['it beats on', { beat: beat({ at: now - 100 }) }, {}],
  ['silent for a moment only', { beat: beat({ at: now - 3_000 }) }, {}],
  ['a neighbour that was heard before, and is not since', {}, { beat: beat({ at: settled - 200 }) }],
] as const) {
  test(`${name}: not passed, and failed once its time is over`, () => {
    const late = new Map(seenOrder(settled - 42_000, settled - 40_000))
    assert.is(end(of({ ...dark, ...changes }, { attempts: [off] }, {}, other))?.passed, undefined)
    const shifted = name.startsWith('a neighbour that') ? { beat: beat({ at: settled - 40_200 }) } : other
    if (name !== 'silent for a moment only') assert.is(end(of({ ...dark, beat: beat({ at: settled - 40_500 }), ...changes, firstSeen: late }, { attempts: [off] }, {}, shifted))?.passed, false)
  })
}

test('an order that failed, and one of another leader, end it', () => {
  assert.match(end(of(dark, { attempts: [attempt({ result: 'failed', reason: 'auth' })] }))?.detail ?? '', /auth/)
  assert.match(end(of(dark, { attempts: [attempt({ term: 0 })] }))?.detail ?? '', /another replica leads since/)
})

test('its path is proven by it, of this machine, in this configuration, and in the next boot too', () => {
  const passed = incident({ phase: 'Final', outcome: 'Drilled', attempts: [attempt({ digest: 'd1' })], timeline: [{ at: 'then', what: 'closed', detail: '' }] }, { cause: 'drill' })
  const path = record().paths.map((one) => ({ ...one, identity: 'unproven' as const }))
  const identities = (target: Partial<NodeSeen>, incidents: readonly Incident[] = [passed]) => {
    const nodes = [node({ name: 'node-1' }), node({ name: 'node-2', record: record({ paths: path }), readings: [told], probe: { askedAt: now - 5_000, answeredAt: now - 4_990, word: 'answered' }, ...target }), node({ name: 'node-3' })]
    return decide(seen(nodes, incidents), now, [policy]).flatMap((action) => (action.do === 'record' && action.node === 'node-2' ? action.record.paths.map(({ identity }) => identity) : []))
  }
  assert.equal(identities({}), ['proven'])
  assert.equal(identities({}, []), [], 'nothing has changed')
  assert.equal(identities({ machine: 'another' }), [], 'it stays unproven')
  const kept = path.map((one) => ({ ...one, boot: 'boot-0/1', identity: 'proven' as const, drill: { at: 'then', machine: 'machine-2', digests: ['d1'] } }))
  assert.equal(identities({ record: record({ paths: kept, boot: 'boot-0/1' }) }, []), ['proven'], `read anew in ${boot}`)
  const wider = { path: { levels: [[method, { ...method, name: 'feed-b', digest: 'd2' }]], faults: [] }, readings: [told, { ...told, method: 'feed-b', digest: 'd2' }] }
  assert.equal(identities({ ...wider, record: record({ paths: kept, boot: 'boot-0/1' }) }, []), ['unproven', 'unproven'], 'a feed that was on then')
  const narrower = kept.map((one) => ({ ...one, drill: { ...one.drill, digests: ['d1', 'd2'] } }))
  assert.equal(identities({ record: record({ paths: narrower, boot: 'boot-0/1' }) }, []), ['unproven'], 'a feed that was off then, and is no part of the level now')
  const same = kept.map((one) => ({ ...one, boot }))
  assert.equal(identities({ record: record({ paths: same }), machine: 'another' }, []), ['unproven'], 'of another machine')
})

test.run()
