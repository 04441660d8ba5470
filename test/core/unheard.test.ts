import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decide } from '../../core/decide.ts'
import type { Incident } from '../../core/incident.ts'
import type { NodeSeen } from '../../core/model.ts'
import { attempt, beat, boot, dead, incident, method, node, now, policy, reading, record, seen, seenOrder } from './world.ts'

const test = suite('unheard')

const own = { ...policy, brakes: { ...policy.brakes, stormPercent: 60, concurrency: 1 } }
const others = ['node-1', 'node-4', 'node-5', 'node-6', 'node-7'].map((name) => node({ name, beat: beat({ answered: { issuedAt: now - 300, boot } }) }))
const unidentified = record({ paths: record().paths.map((path) => ({ ...path, identity: 'unproven' })) })
const outlet = (state: 'on' | 'off', at: number) => reading(state, at, at + 100, { machine: undefined as never })
const bothSilent: Partial<NodeSeen> = { ...dead, beat: beat({ at: now - 60_000 }), record: unidentified, taints: [{ key: 'holdfast.dev/quarantine', effect: 'NoExecute' }] }

/** node-2 was ordered off 45 seconds ago, and node-3 of the same strip is silent as long: what is wanted of both now. */
function wanted(its: Partial<NodeSeen> = {}, more: Partial<Incident> = {}, ended = now - 40_000): readonly string[] {
  const first = node({
    ...bothSilent, firstSeen: new Map(seenOrder(now - 45_000, ended)), readings: [outlet('off', now - 2_300), outlet('off', now - 900)],
    path: { levels: [[method]], faults: [] },
  })
  const second = node({ ...bothSilent, name: 'node-3', readings: [outlet('on', now - 900)], path: { levels: [[method]], faults: [] }, ...its })
  const incidents = [
    incident({ phase: 'Running', step: 'power-management', round: 1, attempts: [attempt()] }, { policy: own }),
    incident({}, { policy: own, name: 'node-3-abc-1', nodeName: 'node-3', nodeUid: 'uid-node-3', machine: 'machine-3', ...more }),
  ]
  return decide(seen([first, second, ...others], incidents), now, [own])
    .filter((action) => (action.node === 'node-2' || action.node === 'node-3') && ['fence', 'restore', 'hold', 'prove'].includes(action.do))
    .map((action) => `${action.do} ${action.node}${action.do === 'hold' ? ` ${action.because}` : ''}`)
}

test('the other one is ordered off beside it, be one allowed at once, and what was ordered off stays so until that is read', () => {
  for (const ended of [now - 4_000, now - 40_000]) assert.equal(wanted({}, {}, ended), ['hold node-2 identity-unproven', 'fence node-3'])
})

test('both are proven once both read off', () => {
  const ordered = attempt({ id: 'node-3-abc-1.1' })
  const status = incident({ phase: 'Running', step: 'power-management', round: 1, attempts: [ordered] }).status
  const off = { firstSeen: new Map(seenOrder(now - 9_000, now - 5_000, ordered.id)), readings: [outlet('off', now - 2_300), outlet('off', now - 900)] }
  assert.equal(wanted(off, { status }), ['prove node-2', 'prove node-3'])
})

for (const [why, its, more] of [
  ['is in a person\'s hands', { annotations: { 'holdfast.dev/maintenance': '' } }, {}],
  ['is no more to be ordered off', {}, { abort: true }],
  ['has no path that may be used', { path: { levels: [[method, { ...method, name: 'gone', device: 'pdu-9', digest: 'd9' }]], faults: [] } }, {}],
  ['was not judged dead', { witnesses: [], probe: undefined as never }, {}],
] as const) test(`where the other one ${why}, it is switched on again`, () => {
  const all = wanted(its as Partial<NodeSeen>, more)
  assert.ok(all.includes('restore node-2') && !all.includes('fence node-3'), all.join(', '))
})

test.run()
