// What the hold on a node that is cut still says of the order on that gives it back.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { quarantineKey } from '../../core/clear.ts'
import { decide } from '../../core/decide.ts'
import type { Attempt } from '../../core/incident.ts'
import type { Method, NodeSeen } from '../../core/model.ts'
import { attempt, beat, dead, incident, method, newBoot, now, policy, reading, seenOrder, three } from './world.ts'

const test = suite('still cut')

const plug: Method = { ...method, name: 'plug-off', device: 'pdu-1:161', digest: 'd2' }
const failed = attempt({ result: 'failed' })
const ofPlug = (changes: Partial<Attempt>): Attempt => attempt({ id: 'node-2-abc-1.2', method: 'plug-off', digest: 'd2', result: 'failed', ...changes })
const on = (id: string, result: Attempt['result']): Attempt => attempt({ id, action: 'on', result })

/** Withdrawn, heard again, and its *off* may land no more. */
function says(attempts: readonly Attempt[], changes: Partial<NodeSeen> = {}): readonly string[] {
  const firstSeen = new Map(['node-2-abc-1.1', 'node-2-abc-1.2', 'node-2-abc-1.3'].flatMap((id, index) => seenOrder(now - 200_000 + index * 10, now - 199_000 + index * 10, id)))
  const readings = [reading('on', now - 5_000), reading('on', now - 5_000, now - 4_900, { method: 'plug-off', digest: 'd2' })]
  const node: Partial<NodeSeen> = { taints: [{ key: quarantineKey, value: 'holdfast', effect: 'NoSchedule' }], firstSeen, readings, ...changes }
  return decide(three(node, [incident({ phase: 'Done', step: 'recovery', attempts })]), now, [policy]).flatMap((one) => (one.do === 'hold' && one.because === 'still-cut' ? [`${one.detail}; lifts: ${one.lifts}`] : []))
}

test('how far the order on has come is said as it is', () => {
  const lifts = 'lifts: an order on that ends verified'
  assert.equal(says([failed]), [`bmc-off was ordered off, and is not ordered on yet; ${lifts}`])
  const asked = { busy: new Set(['order node-2 bmc-off']) }
  assert.equal(says([failed, on('node-2-abc-1.3', 'running')], asked), [`bmc-off was ordered off, and is being asked on; ${lifts}`])
  assert.equal(says([failed, on('node-2-abc-1.3', 'failed')]), [`bmc-off was ordered off, and on without success so far; ${lifts}`])
})

test('of two that were cut each is said for itself', () => {
  const path = { levels: [[method, plug]], faults: [] }
  assert.equal(says([failed, ofPlug({}), on('node-2-abc-1.3', 'failed')], { path }), [
    'plug-off was ordered off, and is not ordered on yet; bmc-off was ordered off, and on without success so far; lifts: an order on that ends verified',
  ])
})

const port: Method = { ...method, name: 'fc-off', agent: 'fc-switch', device: 'fc-1', digest: 'd3', isolates: ['csi.example.com'] }
const shut = attempt({ method: 'fc-off', digest: 'before' })
const said = (state: 'on' | 'off', at: number) => reading(state, at, at + 100, { method: 'fc-off', digest: 'd3' })
const shutBefore: Partial<NodeSeen> = { beat: beat({ boot: newBoot, since: now - 60_000 }), path: { levels: [[port], [method]], faults: [] } }
const named = ['fc-off was ordered off, and is not configured any more as it was then: nothing here can switch it on; lifts: that configuration, or on, read of it as it is configured now']
const cases: readonly (readonly [what: string, changes: Partial<NodeSeen>, told: readonly string[]])[] = [
  ['nothing yet', { readings: [] }, named],
  ['off', { readings: [said('off', now - 5_000)] }, named],
  ['on, before it was shut', { readings: [said('on', now - 300_000)] }, named],
  ['on of another machine', { readings: [{ ...said('on', now - 5_000), machine: 'machine-9' }] }, named],
  ['on', { readings: [said('on', now - 5_000)] }, []],
  ['off, and the next boot is silent by now', { ...dead, beat: beat({ boot: newBoot, since: now - 60_000, at: now - 4_000 }), readings: [said('off', now - 5_000)] }, []],
  ['off, and nothing of its name cuts anything off any more', { path: { levels: [[method]], faults: [] }, readings: [said('off', now - 5_000)] }, []],
]
for (const [what, changes, told] of cases) {
  test(`shut by a configuration of before, and its next boot is heard; by the present one it reads ${what}: ${told.length === 0 ? 'nothing waits for it' : 'it is named'}`, () => {
    assert.equal(says([shut], { ...shutBefore, ...changes }), told)
  })
}

test.run()
