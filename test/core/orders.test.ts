import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Attempt, Incident, Voided } from '../../core/incident.ts'
import type { Method, NodeSeen, PathAudit } from '../../core/model.ts'
import { cut, mayLand, nextOrder, type Next } from '../../core/orders.ts'
import { attempt, boot, dead, incident, method, node, now, policy, reading, record, seenOrder } from './world.ts'

const test = suite('orders')

const second: Method = { ...method, name: 'plug-off', agent: 'pdu', device: 'pdu-1:161', digest: 'd2' }
const known = record().paths[0] as PathAudit // the world's record has one
const audits = (...changes: Partial<PathAudit>[]) => record({ paths: changes.map((change) => ({ ...known, ...change })) })
const bothAudited = audits({}, { method: 'plug-off', digest: 'd2' })
const on = (one: Method, ago = 1_000) => reading('on', now - ago, now - ago + 100, { method: one.name, digest: one.digest })
const oneLevel = { levels: [[method]], faults: [] }
const twoLevels = { levels: [[method], [second]], faults: [] }
const twoFeeds = { levels: [[method, second]], faults: [] }

const ready: Partial<NodeSeen> = { ...dead, path: twoLevels, record: bothAudited, readings: [on(method), on(second)] }
const voided = (level: number): Voided => ({ proof: { kind: 'off', at: '', boot, nodeUid: 'uid-node-2', level, methods: ['bmc-off'], evidence: [] }, at: '', evidence: '' })

function next(changes: Partial<NodeSeen>, attempts: readonly Attempt[] = [], status: Partial<Incident['status']> = {}, own = policy): Next {
  return nextOrder(incident({ attempts, ...status }, { policy: own }), node({ ...ready, ...changes }), now)
}

function orders(step: Next, name: string, level: number, round = 1): void {
  if (step.next !== 'order') return assert.unreachable(`no order: ${JSON.stringify(step)}`)
  assert.equal([step.method.name, step.level, step.round], [name, level, round])
}

function waits(step: Next, how: Next['next'], what = /./): void {
  assert.is(step.next, how, JSON.stringify(step))
  assert.match('detail' in step ? step.detail : '-', what)
}

const seenAt = (...pairs: [number, number | undefined, string][]) => new Map(pairs.flatMap(([began, ended, id]) => seenOrder(began, ended, id)))
const failed = (id: string, changes: Partial<Attempt> = {}): Attempt => attempt({ id, result: 'failed', ...changes })

test('the first order is the first method of the first level', () => {
  orders(next({}), 'bmc-off', 0)
})

test('no path, no order, and the fault of the configuration is told', () => {
  waits(next({ path: { levels: [], faults: ['template x is missing'] } }), 'none', /template x/)
  waits(next({ path: { levels: [], faults: [] } }), 'none', /no fence path/)
})

test('while a program runs, nothing else is ordered', () => {
  const since = (ago: number) => next({ firstSeen: seenAt([now - ago, undefined, 'node-2-abc-1.1']) }, [attempt({ result: 'running' })])
  waits(since(2_000), 'wait', /bmc-off is being asked off/)
  waits(since(41_000), 'wait', /41.0 s/)
})

test('a program that does not end is told apart from one that takes its time', () => {
  const overdue = (ago: number) => {
    const step = next({ firstSeen: seenAt([now - ago, undefined, 'node-2-abc-1.1']) }, [attempt({ result: 'running' })])
    return step.next === 'wait' && step.overdue
  }
  assert.is(overdue(30_500), false)
  assert.is(overdue(41_000), true)
})

const unfit: [string, Partial<NodeSeen>, RegExp][] = [
  ['was never audited in this boot, nor read on', { path: oneLevel, record: record({ paths: [] }), readings: [reading('off', now - 1_000)] }, /never read on/],
  ['was audited in another boot', { path: oneLevel, record: audits({ boot: 'boot-0/1' }), readings: [reading('off', now - 1_000)] }, /never read on/],
  ['was audited under another configuration', { path: oneLevel, record: audits({ digest: 'd0' }), readings: [reading('off', now - 1_000)] }, /never read on/],
  ['did not answer its audit, nor says on now', { path: oneLevel, record: audits({ state: 'unreachable' }), readings: [reading('off', now - 1_000)] }, /never read on/],
  ['said off while this boot was beating', { path: oneLevel, record: audits({ state: 'mismatch' }) }, /said off while/],
  ['is marked as wrong', { path: oneLevel, record: audits({ state: 'marked' }) }, /marked/],
  ['answers for another machine', { path: oneLevel, record: audits({ identity: 'mismatch' }) }, /another machine/],
  ['was not asked', { path: oneLevel, readings: [] }, /not asked/],
  ['was asked too long ago', { path: oneLevel, readings: [on(method, 11_000)] }, /not asked/],
  ['does not answer now', { path: oneLevel, readings: [on(method, 3_000), reading('unknown', now - 1_000)] }, /does not answer/],
]
for (const [how, changes, what] of unfit) test(`a method that ${how} is not ordered off`, () => waits(next(changes), 'none', what))

test('a level of which one method is unfit is passed over as a whole', () => {
  waits(next({ path: twoFeeds, readings: [on(method), reading('unknown', now - 1_000, now - 900, { method: 'plug-off', digest: 'd2' })] }), 'none', /plug-off does not answer/)
})

test('the next level is ordered where the first is unfit', () => {
  orders(next({ readings: [reading('unknown', now - 1_000), on(second)] }), 'plug-off', 1)
})

test('where the policy requires identity, a level of unproven identity is passed over', () => {
  const paths = audits({ identity: 'unproven' }, { method: 'plug-off', digest: 'd2' })
  orders(next({ record: paths }), 'bmc-off', 0)
  orders(next({ record: paths }, [], {}, { ...policy, identity: 'require' }), 'plug-off', 1)
})

test('of two feeds both are ordered, one after the other', () => {
  const first = [attempt()]
  orders(next({ path: twoFeeds, firstSeen: seenAt([now - 4_000, now - 2_000, 'node-2-abc-1.1']) }, first), 'plug-off', 0)
})

test('once every method of the level said off, the readings are waited for', () => {
  waits(next({ firstSeen: seenAt([now - 4_000, now - 2_000, 'node-2-abc-1.1']) }, [attempt()]), 'verify')
})

test('a failed order is given again, as often as the policy allows', () => {
  const once = { firstSeen: seenAt([now - 4_000, now - 2_000, 'a']) }
  orders(next(once, [failed('a')]), 'bmc-off', 0)
  orders(next(once, [failed('a', { result: 'unknown' })]), 'bmc-off', 0)
  orders(next({ firstSeen: seenAt([now - 9_000, now - 7_000, 'a'], [now - 4_000, now - 2_000, 'b']) }, [failed('a'), failed('b')]), 'plug-off', 1)
})

test('a level that said off but does not read off twice within its time has failed', () => {
  const late = { firstSeen: seenAt([now - 60_000, now - 31_000, 'node-2-abc-1.1']) }
  orders(next(late, [attempt()]), 'plug-off', 1)
})

const spent: [string, Partial<NodeSeen>, readonly Attempt[]] = ['', {
  firstSeen: seenAt([now - 9_000, now - 8_000, 'a'], [now - 7_000, now - 6_000, 'b'], [now - 5_000, now - 4_000, 'c'], [now - 3_000, now - 2_000, 'd']),
}, [failed('a'), failed('b'), failed('c', { level: 1, method: 'plug-off' }), failed('d', { level: 1, method: 'plug-off' })]]

test('when no level is left the incident rests', () => {
  const step = next(spent[1], spent[2])
  waits(step, 'rest', /bmc-off failed 2 times.*plug-off failed 2 times/)
  assert.is(step.next === 'rest' && step.until, now - 2_000 + policy.restAfter)
})

const rested = { ...spent[1], firstSeen: new Map([...(spent[1].firstSeen ?? [])].map(([key, at]) => [key, at - policy.restAfter] as const)) }

test('after its rest a new round begins with the first level that is fit', () => {
  orders(next(rested, spent[2]), 'bmc-off', 0, 2)
  orders(next({ ...rested, readings: [reading('unknown', now - 1_000), on(second)] }, spent[2]), 'plug-off', 1, 2)
})

test('a new round begins only with a level of which every method is fit', () => {
  const unwell = reading('unknown', now - 1_000, now - 900, { method: 'plug-off', digest: 'd2' })
  waits(next({ ...rested, path: twoFeeds, readings: [on(method), unwell] }, spent[2].slice(0, 2)), 'none', /plug-off does not answer/)
})

test('where nothing was ordered there is nothing to rest from: the reasons are told at once', () => {
  waits(next({ readings: [] }), 'none', /level 1: bmc-off was not asked.*level 2: plug-off was not asked/)
})

test('a level whose proof was shown false, and all before it, are not tried again', () => {
  orders(next({}, [], { voided: [voided(0)] }), 'plug-off', 1)
  waits(next({}, [], { voided: [voided(1)] }), 'none', /shown false/)
})

// What may still land.

const landing = (changes: Partial<Attempt>, firstSeen: ReadonlyMap<string, number>) =>
  mayLand(incident({ attempts: [attempt(changes)] }), node({ firstSeen }), now)

test('an order that ended verified does not land any more', () => {
  assert.is(landing({}, seenAt([now - 1_000, now, 'node-2-abc-1.1'])), undefined)
})

for (const result of ['failed', 'unknown', 'running'] as const) {
  test(`an order off that is ${result} may land until its length and the device's delay are over`, () => {
    const began = (at: number) => seenAt([at, at + 100, 'node-2-abc-1.1'])
    assert.is(landing({ result }, began(now - 89_000))?.until, now + 1_000)
    assert.is(landing({ result }, began(now - 90_000)), undefined)
  })
}

test('what this replica never saw begin may land for all of its time', () => {
  assert.is(landing({ result: 'unknown' }, new Map())?.until, now + 90_000)
})

test('of several orders the last that may land counts', () => {
  const attempts = [failed('a', { within: 100_000 }), failed('b', { within: 1_000 })]
  const firstSeen = seenAt([now - 20_000, now - 19_000, 'a'], [now - 5_000, now - 4_000, 'b'])
  assert.is(mayLand(incident({ attempts }), node({ firstSeen }), now)?.until, now + 140_000)
})

test('an order of an earlier round may land as well', () => {
  const firstSeen = seenAt([now - 20_000, now - 19_000, 'a'])
  assert.ok(mayLand(incident({ round: 2, attempts: [failed('a')] }), node({ firstSeen }), now))
})

test('an order on is none that may cut the node off', () => {
  assert.is(landing({ action: 'on', result: 'failed' }, seenAt([now - 1_000, now, 'node-2-abc-1.1'])), undefined)
})

// What is cut.

const isCut = (...attempts: Attempt[]) => cut(incident({ attempts }), node({ path: twoFeeds })).map((one) => one.method.name)

test('cut is what was ordered off and not, since, ordered on with success', () => {
  assert.equal(isCut(), [])
  assert.equal(isCut(attempt()), ['bmc-off'])
  assert.equal(isCut(failed('a')), ['bmc-off'])
  assert.equal(isCut(attempt(), attempt({ id: 'b', method: 'plug-off' })), ['bmc-off', 'plug-off'])
  assert.equal(isCut(attempt(), attempt({ id: 'b', action: 'on', result: 'on' })), [])
  assert.equal(isCut(attempt(), attempt({ id: 'b', action: 'on', result: 'failed' })), ['bmc-off'])
  assert.equal(isCut(attempt(), attempt({ id: 'b', action: 'on', result: 'on' }), attempt({ id: 'c' })), ['bmc-off'])
})

test.run()
