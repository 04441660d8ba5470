import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { auditRate, auditTurnKey, auditTurns, readAuditTurn } from '../../coordinator/audit-turns.ts'
import { keepNode } from '../../coordinator/kubernetes.ts'
import { createObservation } from '../../coordinator/observe.ts'
import type { BeatSeen } from '../../core/model.ts'
import { silentLog } from '../../edge/log.ts'
import { virtualClock } from '../../sim/clock.ts'
import { beat, method, reading, record } from '../core/world.ts'

const test = suite('audit turns')

const hour = 3_600_000
const at = (wall: number): string => new Date(wall).toISOString()

function replica() {
  const clock = virtualClock(100_000)
  const beats = new Map<string, BeatSeen>()
  const observation = createObservation(clock, 'replica-0', { heard: (name) => beats.get(name), forget: () => undefined })
  const lead: { term?: number } = { term: 3 }
  const on = { clock, observation, lead, hear, asked, turns: auditTurns({ clock, log: silentLog, observation, leads: () => lead.term }) }
  for (const name of ['node-1', 'node-2']) {
    observation.record(name, record({ nodeUid: name }))
    observation.node(keepNode({ metadata: { name, uid: name, resourceVersion: '1' } }))
    observation.path(name, { levels: [[method]], faults: [] })
  }
  return on

  function hear(...names: readonly string[]): void {
    beats.clear()
    for (const name of names) beats.set(name, beat({ at: clock.now() }))
  }
  function asked(...names: readonly string[]): void {
    for (const name of names) observation.read(name, reading('on', clock.now()))
  }
}

test('a turn ends once every node that is heard was asked, with its number, its times and whom it missed', async () => {
  const on = replica()
  assert.ok(on.turns.begin(hour))
  await on.clock.runFor(5_000)
  on.hear('node-1')
  on.turns.now()
  assert.is(on.turns.last(), undefined, 'node-1 was not asked')
  await on.clock.runFor(5_000)
  on.hear('node-1')
  on.asked('node-1')
  on.turns.now()
  const began = on.clock.wall() - 10_000
  const told = { turn: 1, began: at(began), ended: at(began + 10_000), stale: at(began + 2 * hour + 10_000), missed: ['node-2'] }
  assert.equal(on.turns.last(), told)
  assert.equal(readAuditTurn(on.turns.note()), told)
  assert.is(on.observation.row('node-1')?.auditedUntil, 100_000 + 2 * hour + 10_000)
})

test('whoever hears nobody ends no turn', async () => {
  const on = replica()
  on.turns.begin(hour)
  await on.clock.runFor(5_000)
  on.turns.now()
  assert.is(on.turns.last(), undefined)
})

test('one turn at a time, and none but the leader\'s', () => {
  const on = replica()
  assert.equal([on.turns.begin(hour), on.turns.begin(hour)], [true, false])
  on.turns.lost()
  assert.is(on.observation.seen.self.turnAt, undefined)
  delete on.lead.term
  assert.is(on.turns.begin(hour), false)
})

test('the next leader counts on from what stands on the Lease, and writes nothing there before it has read it', async () => {
  const [first, second] = [replica(), replica()]
  first.hear('node-1', 'node-2')
  first.turns.begin(hour)
  first.asked('node-1', 'node-2')
  first.turns.now()
  assert.equal(second.turns.note(), {})
  await second.clock.runFor(7_000)
  second.turns.led(first.turns.note())
  assert.is(second.observation.row('node-1')?.auditedUntil, 100_000 + 2 * hour)
  second.hear('node-1', 'node-2')
  second.turns.begin(hour)
  second.asked('node-1', 'node-2')
  second.turns.now()
  assert.is(second.turns.last()?.turn, 2)
  second.turns.lost()
  assert.equal(second.turns.note(), {})
})

test('what a turn found holds for two periods; who is missed has only what was found before', async () => {
  const on = replica()
  const [wall, at0] = [on.clock.wall(), on.clock.now()]
  on.observation.record('node-2', record({ nodeUid: 'node-2', paths: record().paths.map((path) => ({ ...path, at: at(wall - 9 * hour) })) }))
  const until = (name: string): number => ((on.observation.row(name)?.auditedUntil ?? 0) - at0) / hour
  assert.is(on.observation.row('node-2')?.auditedUntil, undefined, 'no turn yet: nothing is too old')
  for (const [missed, one, two] of [[['node-2'], 2, -7], [[], 3, 3], [['node-2'], 4, 3], [['node-1', 'node-2'], 4, 3]] as const) {
    on.observation.audited({ beganAt: on.clock.now(), holds: 2 * hour, missed: new Set(missed) })
    assert.equal([until('node-1'), until('node-2')], [one, two])
    await on.clock.runFor(hour)
  }
})

test('no audit lies ahead: what a clock that was fast has written holds no longer than one of this instant', () => {
  const on = replica()
  const wall = on.clock.wall()
  const until = (name: string): number => ((on.observation.row(name)?.auditedUntil ?? 0) - on.clock.now()) / hour
  on.observation.record('node-2', record({ nodeUid: 'node-2', resourceVersion: '2', paths: record().paths.map((path) => ({ ...path, at: at(wall + 900 * hour) })) }))
  const turn = { turn: 1, began: at(wall + 800 * hour), ended: at(wall + 801 * hour), stale: at(wall + 802 * hour), missed: ['node-2'] }
  on.turns.led({ [auditTurnKey]: JSON.stringify(turn) })
  assert.equal([until('node-1'), until('node-2')], [2, 2])
})

test('what stands there and is no turn is as good as none', () => {
  const good = { turn: 1, began: '2026-01-01T00:00:00Z', ended: '2026-01-01T00:00:01Z', stale: '2026-01-01T02:00:00Z', missed: [] }
  assert.ok(readAuditTurn({ [auditTurnKey]: JSON.stringify(good) }))
  for (const text of ['', '{', '[]', JSON.stringify({ ...good, turn: 0 }), JSON.stringify({ ...good, stale: 'soon' }), JSON.stringify({ ...good, missed: [1] }), `${JSON.stringify(good)}${' '.repeat(40_000)}`]) {
    assert.is(readAuditTurn({ [auditTurnKey]: text }), undefined, text.slice(0, 60))
  }
  assert.is(readAuditTurn(undefined), undefined)
})

test('two programs a second, after the first thirty', async () => {
  const clock = virtualClock()
  const rate = auditRate(clock)
  assert.is(rate.take(40), 30)
  await clock.runFor(10_000)
  assert.is(rate.take(40), 20)
})

test.run()
