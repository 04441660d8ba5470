import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { isLook, keyOf, type Action, type Look } from '../../core/action.ts'
import { decide } from '../../core/decide.ts'
import { askClean, askDevices, askNow, challenge, challengeNeighbours, illness, suspicion } from '../../core/look.ts'
import type { Method, NodeSeen, ProbeSeen, WitnessSeen } from '../../core/model.ts'
import { survey, type Survey } from '../../core/survey.ts'
import { beat, boot, dead, incident, method, node, now, policy, reading, record, seen, self, silent, silentAt, three } from './world.ts'

const test = suite('look')

const on = (nodes: readonly NodeSeen[], own = self()): Survey => survey(seen(nodes, [], own), now, [policy])
const kinds = (actions: readonly Action[]): string[] => actions.map((action) => action.do).toSorted()
const keys = (actions: readonly Action[]): string[] => actions.map(keyOf).toSorted()

/** What is asked of a node that fell silent two seconds ago. */
function suspects(changes: Partial<NodeSeen>): readonly Look[] {
  const target = node({ beat: beat({ at: now - 2_000 }), ...changes })
  return suspicion(survey(three(target), now, [policy]), target)
}

// Suspicion: all sides at once, each no sooner than its answer could matter.

test('of a silent node everything is asked at once', () => {
  assert.equal(kinds(suspects({})), ['askDevice', 'askWitnesses', 'probe', 'readLease'])
})

test('what was asked before the silence is asked again at once', () => {
  const before = { askedAt: now - 2_100, answeredAt: now - 2_050 }
  const lease = { askedAt: now - 2_100, readAt: now - 2_050, renewTime: 'a', unmovedSince: 0, moved: false }
  assert.equal(kinds(suspects({ probe: { ...before, word: 'answered' }, lease })), ['askDevice', 'askWitnesses', 'probe', 'readLease'])
})

const probed = (ago: number): ProbeSeen => ({ askedAt: now - ago, answeredAt: now - ago + 50, word: 'silent' })
const witnessed = (ago: number): WitnessSeen[] => [{ witness: 'node-1', kind: 'agent', askedAt: now - ago, answeredAt: now - ago, word: 'deaf', proven: false }]
const leased = (ago: number) => ({ askedAt: now - ago, readAt: now - ago, renewTime: 'a', unmovedSince: now - ago, moved: false })
const paces: [string, Look['do'], (ago: number) => Partial<NodeSeen>, number][] = [
  ['the kubelet port', 'probe', (ago) => ({ probe: probed(ago) }), 1_000],
  ['witnesses', 'askWitnesses', (ago) => ({ witnesses: witnessed(ago) }), 1_000],
  ['the Lease', 'readLease', (ago) => ({ lease: leased(ago) }), 2_500],
  ['a device', 'askDevice', (ago) => ({ readings: [reading('on', now - ago - 100, now - ago)] }), 1_000],
]
for (const [what, kind, asked, every] of paces) {
  test(`${what} is asked no sooner than ${every} ms after the last time`, () => {
    const silentLong = { beat: beat({ at: now - 9_000 }) }
    assert.not(kinds(suspects({ ...silentLong, ...asked(every - 1) })).includes(kind))
    assert.ok(kinds(suspects({ ...silentLong, ...asked(every) })).includes(kind))
  })
}

test('nothing is asked that is being asked', () => {
  assert.equal(suspects({ busy: new Set(['probe node-2', 'askWitnesses node-2', 'readLease node-2', 'askDevice node-2 bmc-off']) }), [])
})

test('a device that is being ordered is not asked', () => {
  assert.not(kinds(suspects({ busy: new Set(['order node-2 bmc-off']) })).includes('askDevice'))
})

test('once a device says off, port and witnesses are asked again beside what is under way', () => {
  const state = { beat: beat({ at: now - 9_000 }), readings: [reading('off', now - 300)], probe: probed(500), witnesses: witnessed(500) }
  assert.equal(keys(suspects(state)), ['askWitnesses node-2 again', 'probe node-2 again', 'readLease node-2'])
  assert.equal(keys(suspects({ ...state, busy: new Set(['probe node-2', 'askWitnesses node-2']) })), ['askWitnesses node-2 again', 'probe node-2 again', 'readLease node-2'])
  assert.equal(keys(suspects({ ...state, busy: new Set(['probe node-2 again', 'askWitnesses node-2 again']) })), ['readLease node-2'])
})

test('every method of every level is asked', () => {
  const plug: Method = { ...method, name: 'plug-off', digest: 'd2' }
  assert.equal(keys(askDevices(node({ path: { levels: [[method], [plug]], faults: [] } }), now)), ['askDevice node-2 bmc-off', 'askDevice node-2 plug-off'])
})

test('before a batch the devices of the proving level are asked at once, the others not', () => {
  const plug: Method = { ...method, name: 'plug-off', digest: 'd2' }
  const target = node({ path: { levels: [[method], [plug]], faults: [] }, readings: [reading('off', now - 50, now - 10)] })
  assert.equal(keys(askNow(target, ['bmc-off'])), ['askDevice node-2 bmc-off'])
  assert.equal(askNow({ ...target, busy: new Set(['askDevice node-2 bmc-off']) }, ['bmc-off']), [])
  assert.equal(askNow({ ...target, busy: new Set(['order node-2 bmc-off']) }, ['bmc-off']), [])
})

// Witnesses.

function asksWhom(nodes: readonly NodeSeen[], own = self()): { agents: string[]; replicas: string[] } {
  const target = node({ beat: beat({ at: now - 2_000 }) })
  const look = suspicion(on([target, ...nodes], own), target).find((one) => one.do === 'askWitnesses')
  if (look?.do !== 'askWitnesses') return { agents: [], replicas: [] }
  const of = (kind: 'agent' | 'replica') => look.witnesses.filter((one) => one.kind === kind).map((one) => one.name)
  return { agents: of('agent'), replicas: of('replica') }
}

const zoned = (zone: string, count: number) => Array.from({ length: count }, (_, index) => node({ name: `${zone}-${index}`, zone }))

test('at most five agents are asked, and every other replica', () => {
  const asked = asksWhom(zoned('a', 50), self({ replicas: ['replica-1', 'replica-2'] }))
  assert.is(asked.agents.length, 5)
  assert.equal(asked.replicas, ['replica-1', 'replica-2'])
})

const zones = ({ agents }: { agents: string[] }) => new Set(agents.map((name) => name.split('-')[0])).size

test('witnesses are taken from as many zones as there are', () => {
  assert.is(zones(asksWhom([...zoned('a', 50), ...zoned('b', 1), ...zoned('c', 1)])), 3)
  assert.is(zones(asksWhom(['a', 'b', 'c', 'd', 'e', 'f', 'g'].flatMap((zone) => zoned(zone, 3)))), 5)
})

test('no witness is the node itself, nor one that does not beat', () => {
  const asked = asksWhom([node({ name: 'node-1', beat: beat({ at: now - 1_600 }) }), node({ name: 'node-3' }), node({ name: 'node-4', beat: undefined })])
  assert.equal(asked.agents, ['node-3'])
})

test('where nobody can be asked, nobody is', () => {
  assert.equal(asksWhom([], self({ replicas: [] })), { agents: [], replicas: [] })
})

// Illness.

function ill(changes: Partial<NodeSeen>): string[] {
  const target = node({ ...silent, ...changes })
  return kinds(illness(survey(three(target), now, [policy]), target))
}

test('a machine whose agent is ill is watched through its port and its Lease, slowly', () => {
  assert.equal(ill({ probe: probed(5_000), lease: leased(10_000) }), ['probe', 'readLease'])
  assert.equal(ill({ probe: probed(4_999), lease: leased(9_999) }), [])
})

test('one that may be hung is asked for through others too: its agent may be silent here alone', () => {
  const open = { probe: { ...probed(1_000), word: 'open' }, lease: leased(1_000) } as const
  assert.equal([ill(open), ill({ ...open, witnesses: witnessed(9_999) }), ill({ ...open, witnesses: witnessed(10_000) })], [['askWitnesses'], [], ['askWitnesses']])
})

// Challenges and clean reports.

const answered = (ago: number) => node({ beat: beat({ answered: { issuedAt: now - ago, boot } }) })

const clean = (ago: number) => node({ beat: beat({ clean: { at: now - ago, report: { state: 'clean' } } }) })

test('a challenge and a question whether the node is clean keep their pace', () => {
  assert.equal(kinds(challenge(answered(1_000), now)), ['challenge'])
  assert.equal(challenge(answered(999), now), [])
  assert.equal(kinds(askClean(clean(5_000), now)), ['askClean'])
  assert.equal(askClean(clean(4_999), now), [])
})

test('neighbours are challenged where a path\'s identity is unproven, and only those of its device; of one that is silent the devices are asked', () => {
  const elsewhere = { path: { levels: [[{ ...method, device: 'bmc-9:443' }]], faults: [] } }
  const nodes = [node({ name: 'node-1' }), node({ name: 'node-3' }), node({ name: 'node-4', ...elsewhere }), node({ name: 'node-5', beat: undefined })]
  const asked = (target: NodeSeen) => challengeNeighbours(on([target, ...nodes]), incident(), target).map((look) => `${look.do} ${look.node}`)
  const unproven = node({ record: record({ paths: record().paths.map((one) => ({ ...one, identity: 'unproven' })) }) })
  assert.equal(asked(unproven), ['challenge node-1', 'challenge node-3', 'askWitnesses node-5', 'readLease node-5', 'askDevice node-5'])
  assert.equal(asked(node()), [])
})

// All programs together.

const rack = (count: number, changes: (index: number) => Partial<NodeSeen> = () => ({})): NodeSeen[] =>
  Array.from({ length: count }, (_, index) => node({ ...dead, name: `silent-${index}`, ...changes(index) }))
const asking = (nodes: readonly NodeSeen[]): string[] => decide(seen([...nodes, ...zoned('a', 3)]), now, [policy]).filter((one) => one.do === 'askDevice').map((one) => one.node)

test('at most 32 programs run at once, those under way included', () => {
  assert.is(asking(rack(100)).length, 32)
  const underWay = rack(20, (index) => ({ name: `under-${index}`, busy: new Set([`askDevice under-${index} bmc-off`]) }))
  assert.is(asking([...underWay, ...rack(100)]).length, 12)
  const ordered = rack(10, (index) => ({ name: `ordered-${index}`, busy: new Set([`order ordered-${index} bmc-off`]) }))
  assert.is(asking([...ordered, ...underWay, ...rack(100)]).length, 2)
})

test('when more want to be asked, those asked longest ago go first', () => {
  const nodes = rack(60, (index) => (index < 40 ? { readings: [reading('unknown', now - 2_000)] } : {}))
  const asked = asking(nodes)
  for (let index = 40; index < 60; index += 1) assert.ok(asked.includes(`silent-${index}`), `silent-${index} was never asked`)
})

test('looks are told apart from deeds', () => {
  assert.ok(isLook({ do: 'probe', node: 'x', again: false }))
  assert.not(isLook({ do: 'adopt', node: 'x', incident: 'y' }))
})

test('a silence of before this replica stood still is asked about anew', () => {
  const target = node({ beat: beat({ at: silentAt }), probe: probed(3_000) })
  const asked = suspicion(survey(three(target, [], self({ awakeSince: now - 1_600 })), now, [policy]), target)
  assert.ok(kinds(asked).includes('probe'))
})

test.run()
