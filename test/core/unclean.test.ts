import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { keyOf, type Action } from '../../core/action.ts'
import { quarantineKey } from '../../core/clear.ts'
import { decide } from '../../core/decide.ts'
import type { BeatSeen, NodeSeen } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { isUnclean } from '../../core/unclean.ts'
import { beat, boot, incident, newBoot, node, now, policy, record, self, three } from './world.ts'

const test = suite('unclean boots')

const quarantine = { key: quarantineKey, value: 'holdfast', effect: 'NoSchedule' } as const
const ready = { status: 'True', postedAt: now - 19_000, since: now - 19_000, bootId: 'boot-2' } as const
const booted = (changes: Partial<BeatSeen> = {}): BeatSeen => beat({ boot: newBoot, since: now - 20_000, gate: 'shut', before: 'cut off', clean: { at: now - 2_000, report: { state: 'clean' } }, ...changes })
/** node-2 rebooted within seconds: Ready as ever, and its record is of the boot before. */
const cut = (changes: Partial<NodeSeen> = {}): Partial<NodeSeen> => ({ beat: booted(), ready, bootId: 'boot-2', firstSeen: new Map([['gone node.kubernetes.io/out-of-service', 0]]), ...changes })

/** What is wanted of node-2, looks aside. */
function wanted(changes: Partial<NodeSeen>, policies: readonly Policy[] = [policy], own = self(), incidents: Parameters<typeof three>[1] = []): readonly Action[] {
  return decide(three(changes, incidents, own), now, policies).filter((action) => action.node === 'node-2' && !['probe', 'askDevice', 'askClean', 'listPods', 'adopt'].includes(action.do))
}

test('a boot after one that was cut off is quarantined though Ready never flipped, and no incident is made of it', () => {
  assert.equal(wanted(cut()), [{ do: 'taint', node: 'node-2', outOfService: false }])
})

test('so is one of whose last boot no mark tells anything', () => {
  const { before: _, ...unmarked } = booted()
  assert.is(wanted(cut({ beat: unmarked }))[0]?.do, 'taint')
})

test('one that was shut down in good order is not, nor is the same boot, nor a node that was never on record or is another one', () => {
  for (const well of [
    cut({ beat: booted({ before: 'shut down' }) }), cut({ beat: booted({ before: 'shut down', beforeBoot: boot }) }), { beat: beat({ gate: 'open', before: 'cut off' }) }, cut({ record: record({ nodeUid: 'uid-of-another' }) }),
  ]) assert.equal(wanted(well).filter((action) => action.do === 'taint'), [])
  const { record: _, ...unrecorded } = node(cut())
  assert.is(isUnclean(unrecorded), false)
})

test('the mark of an older boot than the one on record tells nothing of that one', () => {
  assert.is(wanted(cut({ beat: booted({ before: 'shut down', beforeBoot: 'boot-0/50' }) }))[0]?.do, 'taint')
  // Nobody has anything on record that it would contradict.
  const { record: _, ...unrecorded } = node(cut({ beat: booted({ before: 'shut down', beforeBoot: 'boot-0/50' }) }))
  assert.is(isUnclean(unrecorded), false)
})

test('an agent of before there were marks is not held against its node', () => {
  const { gate: _, before: __, ...older } = booted()
  assert.equal(wanted(cut({ beat: older })).filter((action) => action.do === 'taint'), [])
})

test('its boot goes on record once it is quarantined, and only then', () => {
  assert.equal(wanted(cut({ probe: { askedAt: now - 1_000, answeredAt: now - 900, word: 'answered' }, readings: [] })).filter((action) => action.do === 'record'), [])
  const [deed, ...more] = wanted(cut({ taints: [quarantine] }))
  assert.equal(more, [])
  assert.ok(deed?.do === 'record')
  assert.is(deed.record.boot, newBoot)
  assert.is(deed.record.probe, undefined)
  assert.equal(deed.record.paths, record().paths)
})

test('the quarantine is not lifted before that, or it would be put on again; then by the ordinary return', () => {
  assert.equal(wanted(cut({ taints: [quarantine] })).filter((action) => action.do === 'untaint'), [])
  const recorded = cut({ taints: [quarantine], record: record({ boot: newBoot, paths: [] }) })
  assert.equal(wanted(recorded).map(({ do: what }) => what).filter((what) => what === 'untaint'), ['untaint'])
  const dirty = booted({ clean: { at: now - 2_000, report: { state: 'dirty', leftovers: [{ kind: 'staging', path: '/x' }] } } })
  const [held] = wanted({ ...recorded, beat: dirty }).filter((action) => action.do === 'hold')
  assert.ok(held?.do === 'hold' && held.because === 'waiting-for-clean')
})

test('a node that is only watched is not quarantined, and its new boot goes on record as ever', () => {
  const known = cut({ probe: { askedAt: now - 1_000, answeredAt: now - 900, word: 'answered' }, path: { levels: [], faults: [] } })
  for (const policies of [[], [{ ...policy, mode: 'dryRun' as const }]]) {
    const actions = wanted(known, policies)
    assert.equal(actions.filter((action) => action.do === 'taint'), [])
    assert.ok(actions.some((action) => action.do === 'record' && action.record.boot === newBoot))
  }
})

test('while it is paused nothing is put on, the boot stays unknown, and the hold says so', () => {
  const pause = { reason: 'maintenance', by: 'ops' }
  for (const [policies, own] of [[[policy], self({ pause })], [[{ ...policy, pause }], self()]] as const) {
    const actions = wanted(cut({ probe: { askedAt: now - 1_000, answeredAt: now - 900, word: 'answered' }, path: { levels: [], faults: [] } }), policies, own)
    assert.equal(actions.map((action) => (action.do === 'hold' ? action.because : action.do)), ['pause'])
  }
})

test('nor while a person or another remediator has the node in hand', () => {
  const hands: readonly (readonly [Partial<NodeSeen>, string])[] = [
    [{ annotations: { 'holdfast.dev/exclude': 'the storage team has it' } }, 'exclude'], [{ annotations: { 'holdfast.dev/maintenance': 'new memory' } }, 'maintenance'],
    [{ taints: [{ key: 'medik8s.io/remediation', effect: 'NoExecute' }] }, 'remediator'],
  ]
  for (const [changes, because] of hands) {
    const actions = wanted(cut({ probe: { askedAt: now - 1_000, answeredAt: now - 900, word: 'answered' }, path: { levels: [], faults: [] }, ...changes }))
    assert.equal(actions.map((action) => (action.do === 'hold' ? action.because : action.do)), [because])
  }
})

test('an open incident of the node is left to quarantine it, and its boot goes on record meanwhile', () => {
  const open = [incident({ phase: 'Done', step: 'recovery' })]
  assert.not(wanted(cut(), [policy], self(), open).some((action) => action.do === 'taint' && action.incident === undefined))
  assert.ok(wanted(cut({ taints: [quarantine] }), [policy], self(), open).some((action) => keyOf(action) === 'record node-2'))
  assert.is(isUnclean(node({ beat: booted(), record: record({ boot }) })), true)
})

test.run()
