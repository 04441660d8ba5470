// Nodes that ail alike, and one that is spared by what was begun for it: what a remedy must not take for the fault of each, nor try again and again.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decide } from '../../core/decide.ts'
import type { Incident } from '../../core/incident.ts'
import { remediedKey, type NodeSeen } from '../../core/model.ts'
import type { Remedy } from '../../core/remedy.ts'
import { beat, incident, node, now, policy, reading, seen } from './world.ts'

const test = suite('remedy: alike')

const period = 300_000
const fence: Remedy = { name: 'disks', nodeLabels: {}, thresholds: [{ name: 'full', vital: { name: 'disk', above: 95 }, period }], does: 'fence', again: 3_600_000 }
const ailing = (span: number): Partial<NodeSeen> => ({ beat: beat({ vitals: { disk: 97 } }), ailing: new Map([['disks full disk 95', now - span]]), readings: [reading('on', now - 900)] })

/** What is wanted of node-2, the first of ten that would be fenced. */
function wants(changes: Partial<NodeSeen>, others: readonly NodeSeen[] = [], incidents: readonly Incident[] = []): readonly string[] {
  const rest = ['node-1', 'node-3', 'node-4', 'node-5', 'node-6', 'node-7', 'node-8', 'node-9', 'node-10'].map((name) => others.find((one) => one.name === name) ?? node({ name }))
  return decide({ ...seen([node({ ...ailing(period), ...changes }), ...rest], incidents), remedies: [fence] }, now, [policy]).filter((action) => action.node === 'node-2')
    .flatMap((action) => (action.do === 'hold' ? [action.because] : ['open', 'fence'].includes(action.do) ? [action.do] : []))
}

const later = (...names: string[]): readonly NodeSeen[] => names.map((name, index) => node({ ...ailing(period - 1_000 - index * 30_000), name }))

test('those that crossed it a moment later ail alike, too: agents tell every other minute, each at its own', () => {
  assert.equal(wants({}, later('node-3', 'node-4', 'node-5')), ['open'])
  assert.equal(wants({}, later('node-3', 'node-4', 'node-5', 'node-6')), ['storm'])
})

test('what a remedy has begun counts as a time, though nothing was ordered: pods that went in good order took the load with them, and bring it back', () => {
  const before = incident({ phase: 'Final', outcome: 'Withdrawn', eviction: { since: 'then' } }, { cause: 'remedy', name: 'node-2-abc-0' })
  assert.equal(wants({ firstSeen: new Map([[remediedKey('node-2-abc-0'), now - fence.again + 1]]) }, [], [before]), ['repeat-limit'])
  assert.equal(wants({ firstSeen: new Map([[remediedKey('node-2-abc-0'), now - fence.again]]) }, [], [before]), ['open'])
})

test.run()
