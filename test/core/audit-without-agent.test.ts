// A node without an agent: its kubelet says that its boot lives, and says it seldom. So its paths are audited too, and what a device said counts
// once the Lease was seen to move after it.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { audits, turnSoFar } from '../../core/audit.ts'
import { judge } from '../../core/judge.ts'
import { kubeletsBootKey, type LeaseSeen, type NodeRecord, type NodeSeen, type Reading } from '../../core/model.ts'
import { foundOff, proveOff } from '../../core/proof.ts'
import { isStale } from '../../core/path.ts'
import { survey } from '../../core/survey.ts'
import { isUnclean } from '../../core/unclean.ts'
import { attempt, beat, boot, foundOffNode, incident, newBoot, node, now, orderedOff, policy, reading, record, seen, seenOrder, self } from './world.ts'

const test = suite('audit without an agent')

const audited = (nodes: readonly NodeSeen[]) => audits(survey(seen(nodes), now, [policy]))
const probe = { askedAt: now - 5_000, answeredAt: now - 4_990, word: 'answered' } as const

const lately = { status: 'True', postedAt: now - 3_000, since: 0, bootId: 'boot-1' } as const
/** Without an agent, and known for long; its kubelet has just posted. */
function agentless(changes: Partial<NodeSeen> = {}): NodeSeen {
  const { record: _, ...rest } = node()
  return { ...rest, probe, beat: undefined, seenAt: now - 120_000, ready: lately, firstSeen: new Map([[kubeletsBootKey, now - 90_000]]), ...changes }
}
/** As it stands on record once it was audited. */
const known = record({ boot: 'boot-1', paths: record().paths.map((path) => ({ ...path, boot: 'boot-1' })), probe: { boot: 'boot-1', answered: true, at: 'then' } })
const renewed = (after: number): LeaseSeen => ({ askedAt: now - 100, readAt: now - 90, renewTime: 'x', unmovedSince: now - 90, moved: true, movedAfter: now - after })
const wishes = (changes: Partial<NodeSeen>) => audited([agentless(changes)]).map((one) => (one.do === 'record' ? `record ${one.record.boot} ${one.record.paths.map(({ state, boot: of }) => `${state} ${of}`).join()}` : one.do))

test('a node without an agent is audited while its kubelet speaks, once an agent would have been heard', () => {
  assert.equal(wishes({}), ['askDevice'])
  assert.equal(wishes({ probe: undefined as never }), ['probe', 'askDevice'])
  for (const [why, changes] of Object.entries({
    'not known for long': { seenAt: now - 119_000 }, 'its kubelet is silent': { ready: { ...lately, postedAt: now - 15_000 }, probe: { askedAt: now - 16_000, answeredAt: now - 15_900, word: 'silent' } as const },
    'not Ready': { ready: { ...lately, status: 'False' } as const }, 'an agent was heard of it by whoever led before': { record: record() }, gone: { gone: true },
    'nobody knows its boot': { ready: { ...lately, bootId: '' }, bootId: '' },
  })) assert.equal(wishes(changes), [], why)
})

const said = (state: 'on' | 'off') => ({ readings: [reading(state, now - 9_000)] })

test('what its devices said counts once its Lease has moved after it, read live', () => {
  assert.equal(wishes(said('on')), ['readLease'], 'it may have died since')
  assert.equal(wishes({ ...said('on'), lease: { ...renewed(9_000), askedAt: now - 5_000 } }), ['readLease'], 'read before the device had answered')
  assert.equal(wishes({ ...said('on'), lease: { ...renewed(9_000), askedAt: now - 4_900 } }), [], 'not so often')
  assert.equal(wishes({ ...said('on'), lease: renewed(8_900) }), ['record boot-1 verified boot-1'])
  assert.equal(wishes({ ...said('off'), lease: renewed(8_900) }), ['record boot-1 mismatch boot-1'])
  assert.equal(wishes({ readings: [reading('on', now - 9_000), reading('off', now - 900)], lease: renewed(8_900) }), ['record boot-1 verified boot-1'], 'its latest word is not confirmed')
  assert.equal(wishes({ readings: [reading('on', now - 95_000)], lease: renewed(8_900) }), ['askDevice'], 'of the boot before')
})

const silentPort = (ago: number) => ({ readings: [reading('on', now - 9_500)], probe: { askedAt: now - ago, answeredAt: now - ago + 50, word: 'silent' } as const, lease: renewed(9_000) })

test('a kubelet port that is silent is put on record only of a node that lived on; one that answered, at once', () => {
  assert.equal(wishes(silentPort(9_200)), ['record boot-1 verified boot-1'])
  assert.equal(wishes(silentPort(8_000)), [], 'its Lease was read just now, and will be again')
})

test('on record it is left in peace, until its agent is heard, which is put on record, or another boot', () => {
  assert.equal(wishes({ record: known }), [])
  assert.equal(wishes({ record: known, ready: { ...lately, bootId: 'boot-2' }, bootId: 'boot-2' }), ['askDevice'])
  assert.equal(audited([node({ probe, record: known, readings: [reading('on', now - 3_000)] })]).map((one) => (one.do === 'record' ? one.record.boot : one.do)), [boot])
})

test('of many without an agent the Leases of a few are read at once', () => {
  const many = Array.from({ length: 20 }, (_, index) => agentless({ readings: [reading('on', now - 9_000)], name: `node-${index}` }))
  assert.is(audited(many).filter((one) => one.do === 'readLease').length, 4)
})

const turnAt = now - 60_000
const soFar = (one: NodeSeen) => {
  const { asked, left, missed } = turnSoFar(seen([one], [], self({ turnAt })), now)
  return [asked, left, missed.join()]
}

const stale = (postedAt: number) => isStale(agentless({ record: known, auditedUntil: now - 10_000, ready: { ...lately, postedAt } }))

test('in a turn it is asked like any other, and missed where its kubelet is silent', () => {
  assert.equal([soFar(agentless()), soFar(agentless({ readings: [reading('on', turnAt)] })), soFar(agentless({ ready: { ...lately, postedAt: now - 90_000 }, probe: { ...probe, word: 'silent' } }))], [[0, 1, ''], [1, 0, ''], [0, 0, 'node-2']])
  assert.equal([stale(now - 11_000), stale(now - 9_000)], [false, true], 'counted back from its kubelet\'s last word')
})

/** Its kubelet's last word is half a minute old, its devices say off, and nothing that was asked since answers. */
const still: LeaseSeen = { askedAt: now - 500, readAt: now - 450, renewTime: 'x', unmovedSince: now - 30_000, moved: true, movedAfter: now - 40_000 }
const lostPower: Partial<NodeSeen> = { ...foundOffNode, record: known, beat: undefined, ready: { ...lately, postedAt: now - 31_000 }, lease: still }
const found = (changes: Partial<NodeSeen> = {}) => foundOff('boot-1', agentless({ ...lostPower, ...changes }), 0, now)

test('found off: its Lease stands in for the witnesses that it never had', () => {
  const made = found({ witnesses: [] })
  assert.equal('proof' in made && [made.proof.kind, made.proof.evidence.map(({ source }) => source)], ['found-off', ['audit bmc-off', 'status bmc-off', 'status bmc-off', 'probe', 'Lease']])
})

for (const [why, changes, lacks] of [
  ['its Lease was not read since', { lease: { ...still, askedAt: now - 5_000 } }, /Lease was not read since the first off/],
  ['it has no Lease', { lease: undefined as never }, /Lease was not read/],
  ['its Lease moved lately', { lease: { ...still, unmovedSince: now - 12_900 } }, /not yet watched for a whole interval/],
  ['its kubelet posted after the first reading', { ready: { ...lately, postedAt: now - 2_950 } }, /not yet read off twice/],
  ['its port answered after the first reading', { probe: { askedAt: now - 1_500, answeredAt: now - 1_400, word: 'silent', spokeAt: now - 2_950 } }, /not yet read off twice/],
  ['its port answers', { probe: { askedAt: now - 1_500, answeredAt: now - 1_400, word: 'refused' } }, /port answers/],
  ['nobody audited it', { record: undefined as never }, /not read on at an audit/],
  ['it was audited in another boot', { record: { ...known, paths: known.paths.map((path) => ({ ...path, boot: 'boot-0' })) } }, /not read on at an audit/],
  ['it was last audited two turns ago', { auditedUntil: now - 40_000 }, /stale/],
] as const) test(`not found off: ${why}`, () => assert.match('lacks' in found(changes as Partial<NodeSeen>) ? (found(changes as Partial<NodeSeen>) as { lacks: string }).lacks : 'a proof', lacks))

test('that nobody hears it proves nothing: only its Lease does, with an audited port and replicas that are deaf to it', () => {
  const deaf = [{ witness: 'replica-1', kind: 'replica', askedAt: now - 1_000, answeredAt: now - 900, word: 'deaf', proven: false }] as const
  const quiet = { ...lostPower, ready: { status: 'Unknown', postedAt: now - 100_000, since: now - 50_000, bootId: 'boot-1' } as const, witnesses: deaf, seenAt: now - 500_000 }
  const verdict = (changes: Partial<NodeSeen>) => judge(agentless({ ...quiet, ...changes }), self({ awakeSince: -1_000_000 }), 'fast', { agents: 0, replicas: 1 }, now)
  assert.equal([verdict({ lease: undefined as never }).is, verdict({ lease: { ...still, moved: false, unmovedSince: now - 60_000 } }).is], ['suspect', 'dead'])
})

const status = { phase: 'Running', step: 'power-management', attempts: [attempt({ term: 2 })] } as const
/** An outlet cannot tell whose it is. */
function anonymous(told: Reading): Reading {
  const { machine: _, ...rest } = told
  return rest
}

const cut = (changes: Partial<NodeSeen>): NodeSeen => agentless({
  ...orderedOff, beat: undefined, firstSeen: new Map(seenOrder(now - 6_000, now - 4_000)), readings: (orderedOff.readings ?? []).filter(({ state }) => state === 'off').map(anonymous), ...changes,
})
const proven = (one: NodeSeen, other: NodeSeen): boolean => 'proof' in proveOff(incident(status, { boot: 'boot-1' }), one, 0, [one, other], now)

test('ordered off by a path that only its audit knew to say on, it is proven off', () => {
  assert.ok(proven(cut({ record: known }), node({ name: 'node-1' })))
})

const neighbour = (kept: NodeRecord): NodeSeen => agentless({ name: 'node-1', record: kept })

test('a neighbour that never had an agent is not waited for, whatever stands on record of it; one that had is', () => {
  const unproven = cut({ record: { ...known, paths: known.paths.map((path) => ({ ...path, identity: 'unproven' })) } })
  assert.equal([proven(unproven, neighbour(known)), proven(unproven, neighbour(record()))], [true, false])
})

const comes = (kept: string) => isUnclean(node({ record: { ...known, boot: kept }, beat: beat({ boot: newBoot, gate: 'shut', before: 'cut off' }) }))

test('an agent that comes to such a node finds no boot before its own that was cut off', () => {
  assert.equal([comes('boot-0'), comes('boot-0/1')], [false, true])
})

test.run()
