// What the hold on a node that is cut still says of the order on that gives it back.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { quarantineKey } from '../../core/clear.ts'
import { decide } from '../../core/decide.ts'
import type { Attempt } from '../../core/incident.ts'
import type { Method, NodeSeen } from '../../core/model.ts'
import { attempt, incident, method, now, policy, reading, seenOrder, three } from './world.ts'

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

test.run()
