// What a path says on after it was off at first is of another boot, whoever leads by then.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { IncidentStatus } from '../../core/incident.ts'
import { kubeletsBootKey, type NodeSeen } from '../../core/model.ts'
import { auditOf, isOffAtFirst, lastOffKey, untrusted } from '../../core/path.ts'
import { decide } from '../../core/decide.ts'
import { attempt, beat, boot, incident, method, newBoot, node, now, policy, reading, record, three } from './world.ts'

const test = suite('path')

const unaudited: Partial<NodeSeen> = { record: record({ paths: [] }) }
const own = { method: method.name, digest: method.digest, at: 'then' }
const noted = [own]
/** Never heard by this replica, and on no record. */
const { beat: _, record: __, ...stranger } = node({ readings: [reading('on', now - 900)] })
const offAt = (at: number) => new Map([[lastOffKey(method.name, method.digest), at]])

const trust = (one: NodeSeen, status: Partial<IncidentStatus> = {}) => untrusted(one, method, auditOf(one, method, boot), { attempts: [], ...status }) ?? 'trusted'
const never = 'bmc-off was never read on in this boot'

const words: readonly (readonly [string, NodeSeen, Partial<IncidentStatus>, string])[] = [
  ['a node that nobody heard, and a device that was never heard to say off', stranger, {}, 'trusted'],
  ['one that another leader heard say off first', stranger, { offAtFirst: noted }, never],
  ['by another configuration', stranger, { offAtFirst: [{ ...own, digest: 'd0' }] }, 'trusted'],
  ['another path', stranger, { offAtFirst: [{ ...own, method: 'outlet' }] }, 'trusted'],
  ['said on while its boot was heard here', node({ ...unaudited, beat: beat({ at: now - 500 }), readings: [reading('on', now - 900)] }), { offAtFirst: noted }, 'trusted'],
  ['said on since', node({ ...unaudited, beat: beat({ at: now - 900 }), readings: [reading('on', now - 900)] }), { offAtFirst: noted }, never],
  ['said on before that boot was heard', node({ ...unaudited, beat: beat({ since: now - 800, at: now - 500 }), readings: [reading('on', now - 900)] }), {}, never],
  ['its audit of this boot said on', node({ readings: [reading('on', now - 900)] }), { offAtFirst: noted }, 'trusted'],
  ['an order off by it stands on record: whoever gave it had read it on', stranger, { offAtFirst: noted, attempts: [attempt({ digest: method.digest })] }, 'trusted'],
]
for (const [what, one, status, says] of words) test(`whether a path is trusted: ${what}`, () => assert.is(trust(one, status), says))

const first = (one: NodeSeen, status: Partial<IncidentStatus> = {}) => isOffAtFirst(one, method, auditOf(one, method, boot), { attempts: [], ...status })

test('it is off at first that says off before it was read on, in this boot, and does not stand on record yet', () => {
  const off: NodeSeen = { ...stranger, readings: [reading('off', now - 900)], firstSeen: offAt(now - 800) }
  assert.is(first(off), true)
  assert.is(first({ ...off, readings: [reading('off', now - 1_900), reading('on', now - 600)] }), true, 'switched on since')
  assert.is(first({ ...off, readings: [reading('on', now - 1_900), reading('off', now - 900)] }), false, 'read on before')
  assert.is(first(off, { offAtFirst: noted }), false)
  assert.is(first(stranger), false)
  assert.is(first({ ...off, firstSeen: new Map([...offAt(now - 800), [kubeletsBootKey, now - 700]]) }), false, 'of the boot before')
  assert.is(first({ ...off, readings: [reading('off', now - 900, now - 800, { machine: 'machine-9' })] }), false, 'another machine\'s')
  assert.is(first(node({ readings: off.readings, firstSeen: off.firstSeen })), false, 'audited')
  assert.is(first(off, { attempts: [attempt({ digest: method.digest })] }), false, 'ordered off')
})

const notes = (changes: Partial<NodeSeen> = {}, status: Partial<IncidentStatus> = {}) => decide(three({
  ...unaudited, beat: beat({ at: now - 60_000 }), readings: [reading('off', now - 900)], firstSeen: offAt(now - 800), ...changes,
}, [incident(status)]), now, [policy]).filter((action) => action.do === 'noteOff')

test('it is written down once, before anything else is done about its node', () => {
  assert.equal(notes(), [{ do: 'noteOff', node: 'node-2', incident: 'node-2-abc-1', methods: [method] }])
  assert.equal(notes({}, { offAtFirst: noted }), [])
  assert.equal(notes({ readings: [reading('on', now - 900)], firstSeen: new Map() }), [])
  assert.equal(notes({ record: record() }), [])
})

test('nor is it written for ever where the API server keeps no such word', () => {
  assert.equal(notes({ unkept: { at: now - 1_000, offAtFirst: 'node-2-abc-1' } }), [])
  assert.is(notes({ unkept: { at: now - 1_000, offAtFirst: 'node-2-other-1' } }).length, 1)
})

test('a new boot that is heard makes an end of it', () => {
  assert.equal(notes({ beat: beat({ boot: newBoot, since: now - 500 }) }), [])
})

test.run()
