// What an incident left off, and the incident that gives it back.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { isLook } from '../../core/action.ts'
import { quarantineKey } from '../../core/clear.ts'
import { decide } from '../../core/decide.ts'
import type { Attempt, Incident, IncidentStatus } from '../../core/incident.ts'
import type { Method, NodeSeen, Reading, Self } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { attempt, beat, boot, dead, incident, method, newBoot, now, policy, reading, seenOrder, self, three } from './world.ts'

const test = suite('owed')

const feedB: Method = { ...method, name: 'feed-b-off', agent: 'fence_apc_snmp', device: 'pdu-1:161', digest: 'd2' }
const ofB = (id: string, changes: Partial<Attempt> = {}): Attempt => attempt({ id, method: 'feed-b-off', digest: 'd2', ...changes })
const bReads = (state: Reading['state'], at: number): Reading => reading(state, at, at + 100, { method: 'feed-b-off', digest: 'd2' })

/** Over: one feed was switched on, the other never. */
const left = [attempt({ id: 'a' }), ofB('b'), attempt({ id: 'c', action: 'on', result: 'on' })]
const ends = (hour: number, attempts: readonly Attempt[], changes: Partial<Incident> = {}, status: Partial<IncidentStatus> = {}): Incident => {
  const timeline = [{ at: `2026-01-01T0${hour}:00:00.000Z`, what: 'closed', detail: '' }]
  return incident({ phase: 'Final', step: 'recovery', outcome: 'Recovered', attempts, timeline, ...status }, { name: `node-2-abc-${hour}`, ...changes })
}
const over = ends(1, left)

/** It beats in its next boot, and the other feed was read off in it. */
const running: Partial<NodeSeen> = {
  beat: beat({ boot: newBoot, since: now - 30_000 }), path: { levels: [[method, feedB]], faults: [] }, readings: [reading('on', now - 20_000), bReads('off', now - 20_000)],
  firstSeen: new Map([...'abcdefgh'].flatMap((id, index) => seenOrder(now - 60_000 + index, now - 59_000 + index, id))),
}

function wants(incidents: readonly Incident[], changes: Partial<NodeSeen> = {}, own: Partial<Self> = {}, policies: readonly Policy[] = [policy]): readonly string[] {
  const wished = decide(three({ ...running, ...changes }, incidents, self(own)), now, policies).filter((one) => one.node === 'node-2' && !isLook(one) && one.do !== 'record')
  return wished.map((one) => (one.do === 'hold' ? `hold ${one.because}` : one.do === 'open' ? `open ${one.cause}` : one.do === 'restore' ? `restore ${one.method.name}` : one.do === 'close' ? `close ${one.outcome}` : one.do))
}

test('an incident is over and left a feed off, the machine runs, and the feed says off: an incident gives it back', () => {
  assert.equal(wants([over]), ['open owed'])
  const [open] = decide(three(running, [over]), now, [policy]).filter((one) => one.do === 'open')
  assert.equal(open?.do === 'open' ? [open.boot, open.evidence] : [], [newBoot, [{ source: 'feed-b-off', word: 'off', at: '' }]])
})

test('nothing is owed of what ended a machine for good, whatever its path says of the one that runs', () => {
  assert.equal(wants([over], { path: { levels: [[method], [{ ...feedB, ends: true }]], faults: [] } }), [])
})

const ons = (result: Attempt['result']) => ends(1, [...left, ofB('d', { action: 'on', result })])
const cases: readonly (readonly [how: string, incidents: readonly Incident[], wished: readonly string[]])[] = [
  ['the last order on to it failed', [ons('failed')], ['open owed']],
  ['nobody knows how the last order on to it ended', [ons('unknown')], ['open owed']],
  // Whoever switches it off after that is somebody else.
  ['it was switched on', [ons('on')], []],
  ['its order on was never given', [ons('not-given')], ['open owed']],
  ['a later incident has switched it on', [over, ends(2, [ofB('d', { action: 'on', result: 'on' })], { cause: 'owed' })], []],
  ['a later incident has switched it on, and is listed first', [ends(2, [ofB('d', { action: 'on', result: 'on' })], { cause: 'owed' }), over], []],
  ['a later one has cut it again', [ons('on'), ends(2, [ofB('e')])], ['open owed']],
  ['a person aborted what would give it back', [over, ends(2, [], { cause: 'owed', abort: true })], []],
  ['a person aborted that, and it was cut again', [over, ends(2, [], { cause: 'owed', abort: true }), ends(3, [ofB('e')])], ['open owed']],
  ['the machine was another one', [ends(1, left, { nodeUid: 'uid-before', machine: 'machine-9' })], []],
  ['another machine came under its Node since', [ends(1, left, { machine: 'machine-9' })], []],
  ['its Node was made anew since', [ends(1, left, { nodeUid: 'uid-before' })], ['open owed']],
  ['it was ordered by another configuration', [ends(1, [ofB('b', { digest: 'd9' })])], []],
  ['it was of another node', [ends(1, left, { nodeName: 'node-9', nodeUid: 'uid-node-9', machine: 'machine-9' })], []],
]
for (const [how, incidents, wished] of cases) test(`left off, and ${how}: ${wished.join() || 'nothing'}`, () => assert.equal(wants(incidents), wished))

const quarantined: Partial<NodeSeen> = { taints: [{ key: quarantineKey, value: 'holdfast', effect: 'NoSchedule' }] }
const still: readonly (readonly [how: string, changes: Partial<NodeSeen>, opens: boolean])[] = [
  ['says on', { readings: [bReads('on', now - 20_000)] }, false],
  ['said off, and on since', { readings: [bReads('off', now - 20_000), bReads('on', now - 10_000)] }, false],
  ['said off, and nothing since', { readings: [bReads('off', now - 20_000), bReads('unknown', now - 10_000)] }, true],
  ['was not asked in this boot', { readings: [bReads('off', now - 40_000)] }, false],
  ['was read before its last order', { readings: [bReads('off', now - 59_500)], beat: beat({ boot: newBoot, since: now - 90_000 }) }, false],
  ['says off of another machine', { readings: [{ ...bReads('off', now - 20_000), machine: 'machine-9' }] }, false],
  ['says off of a node that is late', { beat: beat({ boot: newBoot, since: now - 30_000, at: now - 1_600 }) }, false],
  ['says off of a machine that shuts down', { beat: beat({ boot: newBoot, since: now - 30_000, goodbye: { at: now - 300, why: 'shutdown' } }) }, false],
  // What it still runs may have been freed.
  ['says off in the boot that was cut, under our quarantine', { ...quarantined, beat: beat({ since: now - 30_000 }) }, false],
  ['says off in the boot that was cut', { beat: beat({ since: now - 30_000 }) }, true],
  ['says off in a later boot, under our quarantine', quarantined, true],
]
for (const [how, changes, opens] of still) {
  test(`what was left off ${how}: ${opens ? 'given back' : 'left alone'}`, () => assert.is(wants([over], changes).includes('open owed'), opens))
}

test('hands off, and a node that no policy selects: nothing is given back', () => {
  assert.equal(wants([over], {}, { pause: { reason: 'x', by: 'y' } }), ['hold pause'])
  assert.equal(wants([over], { annotations: { 'holdfast.dev/keep-off': 'true' } }), ['hold kept-off'])
  assert.equal(wants([over], { annotations: { 'holdfast.dev/maintenance': 'true' } }), ['hold maintenance'])
  assert.equal(wants([over], {}, {}, []), [])
})

const giving = (attempts: readonly Attempt[], changes: Partial<Incident> = {}) => [over, incident({ phase: 'Running', attempts }, { name: 'node-2-def-1', cause: 'owed', boot: newBoot, ...changes })]

test('it is ordered on without a quarantine, asked after that, and the incident ends once it says on', () => {
  assert.equal(wants(giving([])), ['restore feed-b-off', 'hold still-cut'])
  const on = [ofB('d', { action: 'on', result: 'on' })]
  const asked = decide(three(running, giving(on)), now, [policy]).filter((one) => one.do === 'askDevice')
  assert.ok(asked.some((one) => one.do === 'askDevice' && one.method.name === 'feed-b-off'))
  assert.equal(wants(giving(on), { readings: [] }), [], 'waits for its word')
  assert.equal(wants(giving(on), { readings: [bReads('on', now - 10_000)] }), ['close Recovered'])
  assert.equal(wants(giving(on), { readings: [bReads('unknown', now - 10_000)] }), ['close Recovered'])
})

const called = (times: number) => giving(['d', 'e', 'f', 'g'].slice(0, times).map((id) => ofB(id, { action: 'on', result: 'on' })))

test('one that calls itself on and says off is asked three times, and then its audit tells of it', () => {
  assert.equal(wants(called(3)), ['restore feed-b-off', 'hold still-cut'])
  assert.equal(wants(called(4)), ['close Recovered'])
})

test('an order on that failed is given again after a while, and may land when the incident would end', () => {
  const failed = giving([ofB('d', { action: 'on', result: 'failed' })])
  assert.equal(wants(failed), ['restore feed-b-off', 'hold still-cut'])
  const now1 = new Map([...(running.firstSeen ?? []), ['ended d', now - 1_000] as const])
  assert.equal(wants(failed, { firstSeen: now1 }), ['hold still-cut'])
  assert.equal(wants(giving([ofB('d', { action: 'on', result: 'failed' })], { abort: true }), { firstSeen: now1 }), ['hold order-may-land'])
})

test('a person who fences the node by hand is not refused for it: it ends, and waits for its own on alone', () => {
  const byHand = incident({}, { name: 'node-2-hand', cause: 'by-hand', boot: newBoot })
  assert.equal(wants([...giving([]), byHand]), ['close Withdrawn', 'hold concurrency'])
  const late = new Map([...(running.firstSeen ?? []), ['ended d', now - 1_000] as const])
  assert.equal(wants([...giving([ofB('d', { action: 'on', result: 'failed' })]), byHand], { firstSeen: late }), ['hold order-may-land', 'hold concurrency'])
})

test('whatever becomes of the node ends it: it owns no death', () => {
  assert.equal(wants(giving([]), { ...dead, path: running.path ?? { levels: [], faults: [] } }), ['close Withdrawn'])
  assert.equal(wants(giving([], { boot })), ['close Withdrawn'], 'another boot')
  assert.equal(wants(giving([], { abort: true })), ['close Withdrawn'])
  assert.equal(wants(giving([]), { path: { levels: [[method]], faults: [] } }), ['close Withdrawn'], 'the configuration is another one')
  assert.equal(wants(giving([]), { beat: beat({ boot: newBoot, since: now - 30_000, at: now - 1_600 }) }), ['hold waiting-for-boot'])
})

const port: Method = { ...feedB, name: 'fc-off', agent: 'fc-switch', isolates: ['csi.example.com'] }
const shut = (changes: Partial<Incident> = {}) => ends(1, [attempt({ id: 'a' }), ofB('b', { method: 'fc-off' })], changes)
const cutOff = (heard: Partial<NonNullable<NodeSeen['beat']>>): Partial<NodeSeen> =>
  ({ beat: beat({ since: now - 30_000, ...heard }), path: { levels: [[port], [method]], faults: [] }, readings: [reading('on', now - 20_000), reading('off', now - 20_000, now - 19_900, { method: 'fc-off', digest: 'd2' })] })

test('what a machine was cut off from is given back to the boot of then only once that is clean, and to the next one at once', () => {
  const anew = shut({ nodeUid: 'uid-before' })
  assert.equal(wants([anew], cutOff({ clean: { at: now - 70_000, report: { state: 'clean' } } })), ['hold still-cut'])
  assert.equal(wants([anew], cutOff({ clean: { at: now - 1_000, report: { state: 'dirty', leftovers: [] } } })), ['hold still-cut'])
  assert.equal(wants([anew], cutOff({ clean: { at: now - 1_000, report: { state: 'clean' } } })), ['open owed'])
  assert.equal(wants([anew], cutOff({ boot: newBoot })), ['open owed'])
})

test.run()
