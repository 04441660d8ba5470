import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { audits } from '../../core/audit.ts'
import type { NodeSeen, Self } from '../../core/model.ts'
import { survey } from '../../core/survey.ts'
import type { WatchdogKept } from '../../core/watchdog.ts'
import { beat, boot, newBoot, node, now, policy, proofRecord, incident, reading, record, seen, self } from './world.ts'

const test = suite('record-write')

const watchdog = { state: 'armed', identity: 'i6300ESB timer', timeout: 30_000, panic: 0, machine: 'real', epoch: 1 } as const
const kept: WatchdogKept = { boot, ...watchdog, memberships: [{ epoch: 1, agents: ['node-1'], replicas: ['replica-0'] }] }
const renamed = { agents: ['node-1'], replicas: ['replica-9'] }

/** Well, audited, its watchdog armed, and its members on record. */
function guarded(name: string, changes: Partial<NodeSeen> = {}): NodeSeen {
  const machine = `machine-${name.slice(-1)}`
  return node({
    name, beat: beat({ watchdog }), probe: { askedAt: now - 9_000, answeredAt: now - 8_990, word: 'answered' }, readings: [reading('on', now - 9_000, now - 8_900, { machine })],
    record: record({ nodeUid: `uid-${name}`, machine, watchdog: kept }), ...changes,
  })
}

const written = (nodes: readonly NodeSeen[], own: Partial<Self> = {}, at = now): string[] =>
  audits(survey(seen(nodes, [], self(own)), at, [policy])).flatMap((one) => (one.do === 'record' ? one.node : []))

const many = (count: number, changes: Partial<NodeSeen> = {}): NodeSeen[] => Array.from({ length: count }, (_, index) => guarded(`node-${index + 10}`, changes))

test('replicas that are renamed are put on each record, no more of them at once than may be, and on one record not sooner than half a minute after its last write', () => {
  assert.equal(written(many(3, { members: renamed })), ['node-10', 'node-11', 'node-12'])
  assert.is(written(many(30, { members: renamed }), { recordBudget: 5 }).length, 5)
  assert.equal(written(many(3, { members: renamed }), { recordBudget: 0 }), [])
  assert.equal(written(many(1, { members: renamed, recordWrite: { at: now - 29_000 } })), [])
  assert.equal(written(many(1, { members: renamed, recordWrite: { at: now - 30_000 } })), ['node-10'])
})

test('what somebody waits for is written at once, whatever was written just now and however much is under way', () => {
  const just = { recordWrite: { at: now - 100 } }
  const cases: [string, Partial<NodeSeen>][] = [
    ['it wants to let go of its watchdog', { beat: beat({ watchdog: { ...watchdog, disarm: 1 } }) }],
    ['it has armed it', { record: record({ nodeUid: 'uid-node-7', machine: 'machine-7', watchdog: { ...kept, state: 'unarmed' } }) }],
    ['a new boot', { beat: beat({ boot: newBoot, since: now - 20_000 }) }],
    ['the runtime asks its gate again', { beat: beat({ watchdog, gate: 'open' }), record: record({ nodeUid: 'uid-node-7', machine: 'machine-7', watchdog: kept, gate: 'absent' }) }],
    ['there is no record', { record: undefined as never }], // as a row without one
  ]
  for (const [what, changes] of cases) assert.equal(written([guarded('node-7', { ...just, ...changes })], { recordBudget: 0 }), ['node-7'], what)
})

const full = (at: number): NodeSeen => guarded('node-7', { beat: beat({ watchdog, vitals: { disk: 97 } }), recordWrite: { at } })

test('a vital beyond its limit is what people read, and keeps the distance', () => {
  assert.equal([written([full(now - 29_000)]), written([full(now - 31_000)])], [[], ['node-7']])
})

/** What it wants was refused so often in a row, the last time so long ago. */
function refused(of: NodeSeen, times: number, ago: number): NodeSeen {
  const [deed] = audits(survey(seen([of]), now, [policy]))
  if (deed?.do !== 'record') throw new Error('no record is wanted')
  return { ...of, recordWrite: { at: now - ago, refused: { wanted: deed.record, times } } }
}

const booted = (name: string): NodeSeen => guarded(name, { beat: beat({ boot: newBoot, since: now - 20_000 }) })

test('eight records that the API server refuses leave all slots to the others', () => {
  const bad = Array.from({ length: 8 }, (_, index) => booted(`node-${index + 10}`))
  const good = ['other-0', 'other-1', 'other-2']
  assert.equal(written([...bad, ...good.map(booted)]), bad.map(({ name }) => name), 'not refused yet, they take all of them')
  assert.equal(written([...bad.map((of) => refused(of, 3, 3_000)), ...good.map(booted)]), good)
})

test('what is refused is tried again after one second, then after twice as long, and at the latest after five minutes; another fact at once', () => {
  const of = booted('node-7')
  const again = (times: number, ago: number): number => written([refused(of, times, ago)]).length
  assert.equal([again(1, 900), again(1, 1_000), again(6, 31_000), again(6, 32_000), again(20, 299_000), again(20, 300_000)], [0, 1, 0, 1, 0, 1])
  assert.equal(written([{ ...refused(of, 20, 1_000), beat: beat({ boot: 'boot-3/50', since: now - 20_000 }) }]), ['node-7'])
})

test('a mark that is refused rests as well, and stands on its NodeFence meanwhile', () => {
  const shown = incident({ phase: 'Final', voided: [{ proof: proofRecord({ digests: ['d1'] }), at: '2026-01-01T00:00:20.000Z', evidence: 'answered a challenge' }] })
  const silent = node({ beat: beat({ at: now - 60_000 }) })
  const marks = (of: NodeSeen) => audits(survey(seen([of], [shown]), now, [policy])).flatMap((one) => (one.do === 'record' ? one.record : []))
  const [wanted] = marks(silent)
  assert.is(wanted?.paths[0]?.state, 'marked')
  if (wanted === undefined) return
  assert.equal(marks({ ...silent, recordWrite: { at: now - 500, refused: { wanted, times: 1 } } }), [])
  assert.is(marks({ ...silent, recordWrite: { at: now - 1_000, refused: { wanted, times: 1 } } }).length, 1)
})

test.run()
