import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { audits, turnSoFar } from '../../core/audit.ts'
import { decide } from '../../core/decide.ts'
import type { Incident, IncidentStatus, ProofRecord } from '../../core/incident.ts'
import type { NodeSeen, PathAudit, ProbeWord } from '../../core/model.ts'
import type { Strain, Vitals } from '../../core/vitals.ts'
import type { WatchdogKept } from '../../core/watchdog.ts'
import { survey } from '../../core/survey.ts'
import { attempt, beat, boot, dead, incident, method, newBoot, node, now, policy, proofRecord, reading, record, seen, seenOrder, self, silent, seenProof } from './world.ts'

const test = suite('audit')

const well = (changes: Partial<NodeSeen> = {}): NodeSeen => node({ probe: { askedAt: now - 5_000, answeredAt: now - 4_990, word: 'answered' }, ...changes })
const fresh = (name: string, changes: Partial<NodeSeen> = {}): NodeSeen => {
  const { record: _record, ...rest } = well({ name, ...changes })
  return rest
}
const audited = (nodes: readonly NodeSeen[]) => audits(survey(seen(nodes), now, [policy]))
const devices = (nodes: readonly NodeSeen[]): string[] => audited(nodes).filter((one) => one.do === 'askDevice').map((one) => one.node)

test('a node whose paths were verified in this boot is left in peace', () => {
  assert.equal(audited([well()]), [])
})

test('a calm tick audits nobody, and sees to the dead as ever', () => {
  const others = [fresh('node-1'), node({ name: 'node-3' })]
  const wanted = (calm: boolean) => decide(seen([...others, node(dead)], [], self({ calm })), now, [policy]).map(({ do: deed, node: name }) => `${deed} ${name}`)
  assert.ok(wanted(false).includes('askDevice node-1'))
  assert.is(wanted(true).includes('askDevice node-1'), false)
  for (const calm of [true, false]) assert.ok(wanted(calm).includes('open node-2'))
})

test('a new boot, a new configuration and a new node are audited', () => {
  assert.equal(devices([well({ beat: beat({ boot: newBoot, since: now - 1_000 }) })]), ['node-2'])
  assert.equal(devices([well({ path: { levels: [[{ ...method, digest: 'd9' }]], faults: [] } })]), ['node-2'])
  assert.equal(devices([well({ uid: 'uid-other' })]), ['node-2'])
  assert.equal(devices([fresh('node-2')]), ['node-2'])
})

test('a node that is silent, never heard or gone is not audited', () => {
  for (const changes of [silent, { beat: beat({ at: now - 1_600 }) }, { beat: undefined }, { gone: true }]) assert.equal(devices([fresh('node-2', changes)]), [])
})

const beingAsked = (name: string) => fresh(name, { busy: new Set([`askDevice ${name} bmc-off`]) })

test('two programs audit at once, no more', () => {
  const many = Array.from({ length: 20 }, (_, index) => fresh(`node-${index}`))
  assert.is(devices(many).length, 2)
  assert.is(devices([...many, beingAsked('node-20')]).length, 1)
  assert.equal(devices([...many, beingAsked('node-20'), beingAsked('node-21')]), [])
})

const unreachable = (ago: number) => well({
  record: record({ paths: record().paths.map((one) => ({ ...one, state: 'unreachable' })) }), readings: [reading('unknown', now - ago)],
})

test('a path that did not verify is asked again after fifteen seconds', () => {
  assert.equal(devices([unreachable(14_999)]), [])
  assert.equal(devices([unreachable(15_000)]), ['node-2'])
})

test('devices that never answer do not keep the others from being audited', () => {
  const broken = Array.from({ length: 10 }, (_, index) => fresh(`broken-${index}`, { readings: [reading('unknown', now - 20_000)] }))
  assert.equal(devices([...broken, fresh('node-8'), fresh('node-9')]).toSorted(), ['node-8', 'node-9'])
})

const booted = (name: string, ago: number) => fresh(name, { beat: beat({ since: now - ago }) })

const unanswered = (name: string, ago: number) => fresh(name, { readings: [reading('unknown', now - ago)] })

test('of paths never asked in their boot the youngest boot goes first, of others the one asked longest ago', () => {
  assert.equal(devices([booted('node-1', 9_000), booted('node-2', 1_000), booted('node-3', 5_000)]), ['node-2', 'node-3'])
  assert.equal(devices([unanswered('node-1', 20_000), unanswered('node-2', 40_000), unanswered('node-3', 30_000)]), ['node-2', 'node-3'])
})

test('kubelet ports are audited in bounded numbers, and nodes that were never asked come before those that do not answer', () => {
  const many = Array.from({ length: 100 }, (_, index) => fresh(`node-${index}`, { probe: { askedAt: 0, answeredAt: 0, word: 'silent' } }))
  const probes = audited(many).filter((one) => one.do === 'probe')
  assert.is(probes.length, 32)
  const busy = Array.from({ length: 30 }, (_, index) => fresh(`busy-${index}`, { busy: new Set([`probe busy-${index}`]) }))
  assert.is(audited([...many, ...busy]).filter((one) => one.do === 'probe').length, 2)
})

test('an audit is recorded once everything of it was asked, and only when a fact changes', () => {
  const on2 = [reading('on', now - 1_000)]
  const records = (changes: Partial<NodeSeen>) => audited([fresh('node-2', changes)]).filter((one) => one.do === 'record')
  const [written] = records({ readings: on2 })
  if (written?.do !== 'record') return assert.unreachable()
  assert.equal(written.record.paths.map((path) => [path.method, path.state, path.identity, path.boot]), [['bmc-off', 'verified', 'proven', boot]])
  assert.equal(records({}), [], 'not asked yet')
  assert.equal(records({ readings: on2, busy: new Set(['probe node-2']) }), [], 'the port is being asked')
  assert.equal(records({ readings: on2, busy: new Set(['record node-2']) }), [], 'it is being written')
  const known = { ...written.record, resourceVersion: '5' }
  assert.equal(audited([well({ readings: on2, record: known })]), [])
})

const bare = (changes: Partial<NodeSeen> = {}) => fresh('node-2', { address: '', readings: [reading('on', now - 1_000)], ...changes })

test('a node without an address is audited but for its port, and the record says nothing of it', () => {
  const [written, ...more] = audited([bare()])
  if (written?.do !== 'record') return assert.unreachable()
  assert.equal([more, written.record.paths.map((path) => path.state), written.record.probe], [[], ['verified'], undefined])
  assert.equal(audited([well({ ...bare(), record: { ...written.record, resourceVersion: '5' } })]), [], 'it is written once')
  assert.equal(audited([well({ ...bare({ address: '10.0.0.2' }), probe: undefined as never, record: { ...written.record, resourceVersion: '5' } })]).map((one) => one.do), ['probe'], 'an address came')
  assert.equal(devices([bare({ readings: [] })]), ['node-2'], 'its devices are asked all the same')
})

const states: [string, Partial<NodeSeen>, string, string][] = [
  ['on, and the machine\'s own UUID', { readings: [reading('on', now - 1_000)] }, 'verified', 'proven'],
  ['on, and no UUID', { readings: [{ ...reading('on', now - 1_000), machine: undefined as never }] }, 'verified', 'unproven'],
  ['on, and another UUID', { readings: [reading('on', now - 1_000, now, { machine: 'machine-9' })] }, 'verified', 'mismatch'],
  ['on, and no UUID but its controller\'s, which is the machine\'s', { readings: [{ ...reading('on', now - 1_000), machine: undefined as never, controller: 'machine-2' }] }, 'verified', 'proven'],
  ['the same with its bytes turned', { machine: '11223344-5566-7788-99aa-bbccddeeff00', readings: [{ ...reading('on', now - 1_000), machine: undefined as never, controller: '44332211-6655-8877-99aa-bbccddeeff00' }] }, 'verified', 'proven'],
  ['on, and no UUID but its controller\'s own', { readings: [{ ...reading('on', now - 1_000), machine: undefined as never, controller: 'machine-9' }] }, 'verified', 'unproven'],
  ['on, and its controller\'s, of two machines that bear it', { twin: 'node-9', readings: [{ ...reading('on', now - 1_000), machine: undefined as never, controller: 'machine-2' }] }, 'verified', 'unproven'],
  ['on, and a UUID, of a machine that has none itself', { machine: '', readings: [reading('on', now - 1_000)] }, 'verified', 'unproven'],
  ['off, and its boot a challenge after that', { readings: [reading('off', now - 1_000)], beat: beat({ answered: { issuedAt: now - 800, boot } }) }, 'mismatch', 'proven'],
  ['nothing', { readings: [reading('unknown', now - 1_000)] }, 'unreachable', 'proven'],
]
for (const [what, changes, state, identity] of states) {
  test(`a device that answers ${what} is recorded as ${state}, identity ${identity}`, () => {
    const [written] = audited([fresh('node-2', changes)])
    assert.equal(written?.do === 'record' && written.record.paths.map((path) => [path.state, path.identity]), [[state, identity]])
  })
}

test('an off is recorded as a word against the path once the boot answers a challenge that was issued after it: the machine may have just died', () => {
  for (const [what, changes, does] of [
    ['a beat may have been long on its way', {}, ['challenge']],
    ['issued before the end of that reading', { answered: { issuedAt: now - 3_100, boot } }, ['challenge']],
    ['answered by another boot', { answered: { issuedAt: now - 2_000, boot: newBoot } }, ['challenge']],
    ['answered', { answered: { issuedAt: now - 2_000, boot } }, ['record']],
    ['fallen silent', { at: now - 1_600 }, []],
  ] as const) assert.equal(audited([fresh('node-2', { readings: [reading('off', now - 3_000)], beat: beat(changes) })]).map((one) => one.do), does, what)
})

test('a device that tells the machine id of two Nodes proves the identity of neither, be the other there before the audit or after it', () => {
  const readings = [reading('on', now - 1_000)]
  const identity = (one: NodeSeen) => audited([one]).flatMap((deed) => (deed.do === 'record' ? deed.record.paths.map((path) => [path.state, path.identity]) : []))
  assert.equal(identity(fresh('node-2', { readings, twin: 'node-9' })), [['verified', 'unproven']])
  assert.equal(identity(fresh('node-2', { readings: [reading('on', now - 1_000, now, { machine: 'machine-7' })], twin: 'node-9' })), [['verified', 'mismatch']])
  assert.equal(identity(well({ readings, twin: 'node-9' })), [['verified', 'unproven']], 'it was proven before')
  const unproven = record({ paths: record().paths.map((one) => ({ ...one, identity: 'unproven' })) })
  assert.equal(audited([well({ readings, record: unproven, twin: 'node-9' })]), [], 'written once')
  assert.equal(audited([well({ record: unproven, twin: 'node-9' })]), [], 'nor does a replica that has asked nothing yet')
  assert.equal(identity(well({ readings, record: unproven })), [['verified', 'proven']], 'the other Node is gone')
})

test('a path that was marked stays marked in the next boot, as long as its configuration stands', () => {
  const marked = record({ paths: record().paths.map((one) => ({ ...one, state: 'marked' })) })
  const next = { record: marked, beat: beat({ boot: newBoot, since: now - 2_000 }), readings: [reading('on', now - 1_000)], probe: { askedAt: now - 900, answeredAt: now - 890, word: 'answered' } } as const
  const [written] = audited([well(next)])
  assert.equal(written?.do === 'record' && written.record.paths.map((path) => [path.state, path.boot]), [['marked', newBoot]])
  const [fixed] = audited([well({ ...next, path: { levels: [[{ ...method, digest: 'd9' }]], faults: [] }, readings: [reading('on', now - 1_000, now, { digest: 'd9' })] })])
  assert.equal(fixed?.do === 'record' && fixed.record.paths.map((path) => path.state), ['verified'])
})

const shownFalse = (changes: Partial<Incident> = {}, proof: Partial<ProofRecord> = {}) => incident({
  phase: 'Running', step: 'power-management', voided: [{ proof: proofRecord({ digests: ['d1'], ...proof }), at: '2026-01-01T00:00:20.000Z', evidence: 'it answered' }],
}, changes)
const marking = (changes: Partial<NodeSeen>, one: Incident) => audits(survey(seen([well(changes)], [one]), now, [policy])).filter((deed) => deed.do === 'record')

test('a proof that was shown false marks its paths, whoever leads now, and whether or not the node is heard', () => {
  for (const changes of [{}, silent, { beat: undefined }, { beat: beat({ boot: newBoot, since: now - 1_000 }) }]) {
    const [written, ...more] = marking(changes, shownFalse())
    if (written?.do !== 'record') return assert.unreachable()
    assert.equal([more.length, written.record.paths], [0, [{ ...record().paths[0], state: 'marked', at: '2026-01-01T00:00:20.000Z', evidence: 'it answered' }]])
    assert.equal(marking({ ...changes, record: { ...written.record, resourceVersion: '2' } }, shownFalse()).filter((deed) => deed.record.boot === boot), [], 'marked once')
  }
  assert.is(marking({}, shownFalse({ status: { ...shownFalse().status, phase: 'Final', outcome: 'Void' } })).length, 1, 'an incident that is over tells it too')
})

/** Proven two seconds ago, and its boot has answered. */
const stands = (status: Partial<IncidentStatus>, answeredAt = now - 300) => marking({ beat: beat({ answered: { issuedAt: answeredAt, boot } }), firstSeen: new Map([seenProof(now - 2_000), seenProof(now - 2_000, 0, 'isolated')]) }, incident({ phase: 'Running', step: 'clear', ...status }))

test('a proof whose boot has answered is false from that tick on: its paths are marked beside the void, since its NodeFence may be gone before that is written', () => {
  const [written] = stands({ proof: proofRecord({ digests: ['d1'] }) })
  assert.equal(written?.record.paths.map(({ state, evidence }) => [state, evidence]), [['marked', 'the fenced boot answered a challenge issued after the proof']])
  assert.is(stands({ voided: [{ proof: proofRecord({ digests: ['d1'] }), how: 'lapsed', at: 'then', evidence: 'mute' }] }).length, 1, 'one that has lapsed too')
  assert.equal(stands({ proof: proofRecord({ digests: ['d1'] }) }, now - 2_100), [], 'issued before it')
  assert.equal(stands({ proof: proofRecord({ digests: ['d1'], kind: 'isolated' }) }), [], 'what is merely cut off from its storage answers')
  assert.equal(stands({ proof: proofRecord({ digests: ['d1'] }), phase: 'Final', outcome: 'Recovered' }), [], 'an incident that is over is not judged anew')
})

test('only the paths of that proof are marked, in that configuration, of that Node', () => {
  const two = record({ paths: [...record().paths, { ...record().paths[0], method: 'pdu-off' } as PathAudit] })
  assert.equal(marking({ record: two, ...silent }, shownFalse())[0]?.record.paths.map(({ method: name, state }) => [name, state]), [['bmc-off', 'marked'], ['pdu-off', 'verified']])
  assert.equal(marking({ record: record({ paths: [{ ...record().paths[0], digest: 'd9' } as PathAudit] }), ...silent }, shownFalse()), [])
  assert.equal(marking(silent, shownFalse({ nodeUid: 'uid-before' })), [])
  assert.equal(marking(silent, shownFalse({ nodeName: 'node-1' })), [])
  assert.equal(marking({ ...silent, busy: new Set(['record node-2']) }, shownFalse()), [], 'it is being written')
})

const unprovenPath = record({ paths: record().paths.map((one) => ({ ...one, identity: 'unproven' })) })
const offAndAlive = (issuedAt: number | undefined, changes: Partial<NodeSeen> = {}): NodeSeen => well({
  record: unprovenPath, firstSeen: new Map(seenOrder(now - 9_000, now - 7_000)), ...changes,
  beat: beat({ ...(issuedAt === undefined ? {} : { answered: { issuedAt, boot } }), ...changes.beat }),
})
const orderedOff = (status: Partial<IncidentStatus> = {}) => incident({ phase: 'Done', step: 'recovery', attempts: [attempt()], ...status })
const afterOff = (one: NodeSeen, its: Incident) => audits(survey(seen([one], [its]), now, [policy]))
  .map((deed) => (deed.do === 'record' ? deed.record.paths.map(({ state, identity }) => `${state} ${identity}`).join() : deed.do))

test('a boot that answers a challenge after its whole level was ordered off and said so: the path leads to another machine, and is marked', () => {
  assert.equal(afterOff(offAndAlive(undefined), orderedOff()), ['challenge'], 'a beat alone may have been long on its way')
  assert.equal(afterOff(offAndAlive(now - 7_000), orderedOff()), ['challenge'], 'issued before the end of the order')
  assert.equal(afterOff(offAndAlive(now - 6_100), orderedOff()), ['challenge'], 'what is struck may speak for a moment after its device says off')
  assert.equal(afterOff(offAndAlive(now - 3_000), orderedOff()), ['marked mismatch'])
  assert.equal(afterOff(offAndAlive(now - 3_000), orderedOff({ phase: 'Final', outcome: 'Withdrawn' })), ['marked mismatch'], 'an incident that is over tells it too')
  assert.equal(afterOff(offAndAlive(now - 3_000), orderedOff({ attempts: [attempt(), attempt({ id: 'x', action: 'on', result: 'on' })] })), ['marked mismatch'], 'switched on since')
  const [written] = audits(survey(seen([offAndAlive(now - 3_000)], [orderedOff()]), now, [policy]))
  if (written?.do !== 'record') return assert.unreachable()
  assert.equal(afterOff(offAndAlive(now - 3_000, { record: { ...written.record, resourceVersion: '2' } }), orderedOff()), [], 'marked once')
})

test('nothing strayed where the order may not have been carried out, one of two feeds was left on, identity is proven, or the boot is another', () => {
  const two = { path: { levels: [[method, { ...method, name: 'feed-b' }]], faults: [] }, record: record({ paths: ['bmc-off', 'feed-b'].map((name) => ({ ...(unprovenPath.paths[0] as PathAudit), method: name })) }) }
  for (const [what, one, its] of [
    ['failed', offAndAlive(now - 3_000), orderedOff({ attempts: [attempt({ result: 'failed' })] })],
    ['not given', offAndAlive(now - 3_000), orderedOff({ attempts: [attempt({ result: 'not-given' })] })],
    ['one feed', offAndAlive(now - 3_000, two), orderedOff()],
    ['one feed on again before the other was off', offAndAlive(now - 3_000, two), orderedOff({ attempts: [attempt(), attempt({ id: 'x', action: 'on', result: 'on' }), attempt({ id: 'y', method: 'feed-b' })] })],
    ['proven', offAndAlive(now - 3_000, { record: record() }), orderedOff()],
    ['a new boot', offAndAlive(undefined, { beat: beat({ boot: newBoot, answered: { issuedAt: now - 3_000, boot: newBoot } }), record: { ...unprovenPath, boot: newBoot, probe: { boot: newBoot, answered: true, at: 'then' }, paths: unprovenPath.paths.map((path) => ({ ...path, boot: newBoot })) } }), orderedOff()],
    ['another Node', offAndAlive(now - 3_000), { ...orderedOff(), nodeUid: 'uid-before' }],
  ] as const) assert.equal(afterOff(one, its), [], what)
})

test('what strayed is not trusted in the next boot either, until its device tells the machine, or it is configured otherwise', () => {
  const strayed = record({ paths: record().paths.map((one) => ({ ...one, state: 'marked', identity: 'mismatch', evidence: 'it strayed' })) })
  const next = (told: object) => audited([well({ record: strayed, beat: beat({ boot: newBoot, since: now - 2_000 }), readings: [{ ...reading('on', now - 1_000), ...told }], probe: { askedAt: now - 900, answeredAt: now - 890, word: 'answered' } })])
    .flatMap((deed) => (deed.do === 'record' ? deed.record.paths.map(({ state, identity }) => `${state} ${identity}`) : []))
  assert.equal(next({ machine: undefined }), ['marked mismatch'])
  assert.equal(next({ machine: 'machine-9' }), ['marked mismatch'])
  assert.equal(next({ machine: 'machine-2' }), ['verified proven'])
})

test('a record that was deleted is written anew with the mark on it', () => {
  const { record: _record, ...without } = well({ beat: beat({ boot: newBoot, since: now - 2_000 }), readings: [reading('on', now - 1_000)], probe: { askedAt: now - 900, answeredAt: now - 890, word: 'answered' } })
  const [written] = audits(survey(seen([without], [shownFalse()]), now, [policy]))
  assert.equal(written?.do === 'record' && written.record.paths.map(({ state, boot: of }) => [state, of]), [['marked', newBoot]])
})

test('records are written in bounded numbers', () => {
  const many = Array.from({ length: 100 }, (_, index) => fresh(`node-${index}`, { readings: [reading('on', now - 1_000)] }))
  assert.is(audited(many).filter((one) => one.do === 'record').length, 8)
  const writing = Array.from({ length: 8 }, (_, index) => fresh(`w-${index}`, { busy: new Set([`record w-${index}`]) }))
  assert.equal(audited([...many, ...writing]).filter((one) => one.do === 'record'), [])
})

const gone = { path: { levels: [], faults: [] } } as const
const heldOff = record({ paths: [...record().paths, { ...record().paths[0], method: 'pdu-off' } as PathAudit] })
const rewritten = (changes: Partial<NodeSeen>, incidents: readonly Incident[] = []): (readonly string[])[] =>
  audits(survey(seen([well(changes)], incidents), now, [policy])).flatMap((deed) => (deed.do === 'record' ? [deed.record.paths.map(({ method: name, state }) => `${name} ${state}`)] : []))

test('a path that is configured no more leaves the record, be it the only one or one of two', () => {
  assert.equal(rewritten(gone), [[]])
  assert.equal(rewritten({ path: { levels: [], faults: ['ConfigMap fence-config-node-2 is malformed'] } }), [[]])
  assert.equal(rewritten({ record: heldOff, readings: [reading('on', now - 1_000)] }), [['bmc-off verified']])
  assert.equal(rewritten({ ...gone, record: record({ paths: [] }) }), [], 'it is written once')
})

test('nothing leaves the record of a boot that an open incident is about, nor of a node that is not heard', () => {
  assert.equal(rewritten(gone, [incident({ phase: 'Running' })]), [])
  assert.equal(rewritten({ ...gone, ...silent }), [])
  assert.equal(rewritten(gone, [incident({ phase: 'Final' })]), [[]])
})

test('nothing leaves the record while this replica may not have read the configuration yet', () => {
  assert.equal(rewritten({ ...gone, seenAt: now - 29_999 }), [])
  assert.equal(rewritten({ ...gone, seenAt: now - 30_000 }), [[]])
  const deaf = record({ probe: { boot, answered: false, at: 'then' } })
  assert.equal(rewritten({ ...gone, record: deaf, seenAt: now - 1_000 }), [['bmc-off verified']], 'not with another fact of it either')
})

test('a mark outlives the configuration that earned it: taking it out and putting it back whitewashes nothing', () => {
  const lie = record({ paths: record().paths.map((one) => ({ ...one, state: 'marked' })) })
  assert.equal(rewritten({ ...gone, record: lie }), [])
  const next = { ...gone, record: lie, beat: beat({ boot: newBoot, since: now - 2_000 }), probe: { askedAt: now - 900, answeredAt: now - 890, word: 'answered' } } as const
  assert.equal(rewritten(next), [['bmc-off marked']])
  const [written] = audits(survey(seen([well(next)]), now, [policy]))
  if (written?.do !== 'record') return assert.unreachable()
  assert.equal(audits(survey(seen([well({ ...next, path: node().path, record: { ...written.record, resourceVersion: '2' } })]), now, [policy])), [], 'marked still')
})

test('what a device said in an earlier boot verifies nothing of this one: it is asked anew', () => {
  const rebooted = { beat: beat({ boot: newBoot, since: now - 1_000 }), probe: { askedAt: now - 500, answeredAt: now - 490, word: 'answered' as const } }
  assert.equal(audited([well({ ...rebooted, readings: [reading('on', now - 5_000)] })]).map((one) => one.do), ['askDevice'])
  assert.equal(audited([well({ ...rebooted, readings: [reading('on', now - 800)] })]).map((one) => one.do), ['record'])
})

// A Node may name any instance; where its beats come from it cannot choose.

const claimedPath = { levels: [[{ ...method, claimed: true } as const]], faults: [] }
const identityTold = (from: string | undefined, told: Partial<NodeSeen['readings'][number]>) => {
  const one = fresh('node-2', { path: claimedPath, beat: beat(from === undefined ? {} : { from }), readings: [{ method: 'bmc-off', digest: 'd1', state: 'on', startedAt: now - 1_000, endedAt: now - 900, evidence: '', ...told }] })
  const [written] = audited([one]).filter((deed) => deed.do === 'record')
  return written?.do === 'record' ? written.record.paths[0]?.identity : undefined
}
const theirs = 'aaaaaaaa-0000-0000-0000-000000000001'

for (const [what, from, told, identity] of [
  ['tells the address that the beats come from', '10.0.0.2', { addresses: ['192.0.2.1', '10.0.0.2'] }, 'unproven'],
  ['tells other addresses', '10.0.0.2', { addresses: ['10.0.0.3'] }, 'mismatch'],
  ['tells no address', '10.0.0.2', {}, 'mismatch'],
  ['tells an address, and where the beats come from is not known', undefined, { addresses: ['10.0.0.2'] }, 'mismatch'],
  ['tells the address, and another machine\'s UUID', '10.0.0.2', { addresses: ['10.0.0.2'], machine: theirs }, 'mismatch'],
  ['tells the node\'s own UUID, which the Node may claim as well, and another address', '10.0.0.2', { addresses: ['10.0.0.3'], machine: 'machine-2' }, 'mismatch'],
] as const) {
  test(`the instance that a Node claims: its cloud ${what}: identity ${identity}`, () => {
    assert.is(identityTold(from, told), identity)
  })
}

const gated = (kept: 'asks' | 'absent' | undefined, gate: 'open' | 'shut' | 'absent' | 'off' | undefined, ago = 60_000): string[] => {
  const of = well({
    beat: beat({ gateSince: now - ago, ...(gate === undefined ? {} : { gate }) }), readings: [reading('on', now - 8_000)], record: record(kept === undefined ? {} : { gate: kept }),
  })
  return audited([of]).map((one) => (one.do === 'record' ? `record ${one.record.gate}` : one.do))
}

test('that a runtime asks the gate no more goes on record after half a minute, and that it asks again at once', () => {
  assert.equal(gated('asks', 'absent'), ['record absent'])
  assert.equal(gated('asks', 'absent', 29_000), [])
  assert.equal(gated('absent', 'shut', 0), ['record asks'])
  for (const gate of ['open', 'shut'] as const) assert.equal(gated('asks', gate), [])
})

test('a record that says nothing of the gate is not written for that alone', () => {
  for (const gate of ['open', 'absent', undefined] as const) assert.equal(gated(undefined, gate), [])
  const first = fresh('node-2', { beat: beat({ gate: 'absent', gateSince: now }), readings: [reading('on', now - 8_000)] })
  assert.equal(audited([first]).map((one) => (one.do === 'record' ? one.record.gate : one.do)), ['absent'])
})

const places = { kubelet: '/var/lib/kubelet', runtime: '/run/containerd/containerd.sock', gate: '/run/nri/nri.sock' }
const placed = (kept: typeof places | undefined, told: typeof places | undefined): string[] => {
  const of = well({ beat: beat(told === undefined ? {} : { places: told }), readings: [reading('on', now - 8_000)], record: record(kept === undefined ? {} : { places: kept }) })
  return audited([of]).map((one) => (one.do === 'record' ? `record ${one.record.places?.runtime}` : one.do))
}

test('where an agent found the runtime goes on record with what else does, and once it is another place by itself', () => {
  assert.equal(placed(undefined, places), [], 'not for that alone')
  assert.equal(placed(places, places), [])
  assert.equal(placed(places, undefined), [], 'an agent of before tells of none')
  assert.equal(placed(places, { ...places, runtime: '' }), ['record '])
  const first = fresh('node-2', { beat: beat({ places }), readings: [reading('on', now - 8_000)] })
  assert.equal(audited([first]).map((one) => (one.do === 'record' ? one.record.places : one.do)), [places])
})

const strained = (kept: readonly Strain[] | undefined, vitals: Vitals | undefined): string[] => {
  const of = well({ beat: beat(vitals === undefined ? {} : { vitals }), readings: [reading('on', now - 8_000)], record: record(kept === undefined ? {} : { strains: kept }) })
  return audited([of]).map((one) => (one.do === 'record' ? `record ${one.record.strains?.join() ?? 'nothing'}` : one.do))
}

test('a vital goes on record when it passes its limit, and comes off well below it; between the two nothing is written', () => {
  assert.equal(strained([], { disk: 91 }), ['record disk'])
  assert.equal(strained(['disk'], { disk: 88 }), [])
  assert.equal(strained(['disk'], { disk: 84 }), ['record '])
  assert.equal(strained([], { disk: 88, load: 1 }), [])
})

test('what nobody tells now stays as it was told, and a record that says nothing of it is written once something is strained', () => {
  assert.equal(strained(['disk'], undefined), [])
  assert.equal(strained(undefined, { disk: 50 }), [])
  assert.equal(strained(undefined, { disk: 99 }), ['record disk'])
  const first = fresh('node-2', { beat: beat({ vitals: { disk: 99 } }), readings: [reading('on', now - 8_000)] })
  assert.equal(audited([first]).map((one) => (one.do === 'record' ? one.record.strains : one.do)), [['disk']])
})

const dogged = (changes: Partial<NodeSeen>, kept?: WatchdogKept): string[] => {
  const of = well({ ...changes, readings: [reading('on', now - 8_000)], record: record(kept === undefined ? {} : { watchdog: kept }) })
  return audited([of]).map((one) => (one.do === 'record' ? `record ${one.record.watchdog?.state} ${one.record.watchdog?.memberships.map(({ epoch }) => epoch).join()}` : one.do))
}

test('a watchdog that is wanted, armed, or asked to be let go of goes on record, and once', () => {
  const watchdog = { state: 'armed', identity: 'i6300ESB timer', timeout: 30_000, panic: 0, machine: 'real', epoch: 1 } as const
  const members = { agents: ['node-1'], replicas: ['replica-0'] }
  const kept: WatchdogKept = { boot, ...watchdog, memberships: [{ epoch: 1, ...members }] }
  assert.equal(dogged({ members }), ['record unarmed 1'])
  assert.equal(dogged({ members, beat: beat({ watchdog }) }, { ...kept, state: 'unarmed' }), ['record armed 1'])
  assert.equal(dogged({ members, beat: beat({ watchdog }) }, kept), [])
  assert.equal(dogged({ members, beat: beat({ watchdog: { ...watchdog, disarm: 1 } }) }, kept), ['record unarmed 1'])
  assert.equal(dogged({}), [])
})

// Turns: every path again, while all is well.

const turnAt = now - 60_000
const inTurn = (nodes: readonly NodeSeen[], incidents: readonly Incident[] = []) => audits(survey(seen(nodes, incidents, self({ turnAt })), now, [policy]))
const asked = (nodes: readonly NodeSeen[]): string[] => inTurn(nodes).flatMap((one) => (one.do === 'askDevice' ? one.node : []))

test('in a turn each path that was verified before is asked once more', () => {
  assert.equal(asked([well()]), ['node-2'])
  assert.equal(asked([well({ readings: [reading('on', turnAt - 1)] })]), ['node-2'])
  assert.equal(inTurn([well({ readings: [reading('on', turnAt)] })]), [])
  for (const changes of [silent, { gone: true }] as const) assert.equal(asked([well(changes)]), [])
})

const turned = (name: string, ago: number) => well({ name, record: record({ nodeUid: `uid-${name}`, machine: `machine-${name.slice(-1)}` }), readings: [reading('on', turnAt - ago, turnAt - ago + 100, { machine: `machine-${name.slice(-1)}` })] })

test('a new boot goes before whatever the turn asks, and the turn goes on with what was asked longest ago', () => {
  assert.equal(asked([turned('node-1', 5_000), turned('node-3', 9_000), booted('node-4', 9_000)]), ['node-4', 'node-3'])
  const inherited = well({ name: 'node-1', record: record({ nodeUid: 'uid-node-1', machine: 'machine-1' }), beat: beat({ since: now - 500 }) })
  assert.equal(asked([inherited, booted('node-4', 9_000), booted('node-5', 9_500)]), ['node-4', 'node-5'], 'a new leader has asked nobody yet')
})

test('a turn asks nothing while a program of an incident runs; a new boot is asked all the same', () => {
  const hit = node({ name: 'node-9', ...silent, busy: new Set(['askDevice node-9 bmc-off']) })
  assert.equal(asked([well(), hit]), [])
  assert.equal(asked([fresh('node-3'), hit]), ['node-3'])
})

const recorded = (...said: readonly [NodeSeen['readings'][number]['state'], number][]) => inTurn([well({ readings: said.map(([state, ago]) => reading(state, now - ago)), beat: beat({ answered: { issuedAt: now - 50, boot } }) })])
  .map((one) => (one.do === 'record' ? one.record.paths.map(({ state }) => state).join() : one.do))

test('one answer otherwise than on is asked again before the record says so', () => {
  assert.equal(recorded(['unknown', 14_000]), [])
  assert.equal(recorded(['unknown', 16_000]), ['askDevice'])
  assert.equal(recorded(['unknown', 16_000], ['unknown', 900]), ['unreachable'])
  assert.equal(recorded(['off', 16_000], ['off', 900]), ['mismatch'])
  assert.equal(recorded(['unknown', 3_000], ['unknown', 2_000], ['unknown', 900]), [], 'asked of a suspect, three times in three seconds')
  assert.equal(recorded(['unknown', 16_000], ['on', 900]), [])
})

const port = (word: ProbeWord, ago: number, changes: Partial<NodeSeen> = {}) => well({ readings: [reading('on', turnAt)], probe: { askedAt: now - ago, answeredAt: now - ago + 100, word }, ...changes })

test('in a turn the kubelet port is asked once more, too', () => {
  assert.equal(inTurn([port('answered', 60_001)]), [{ do: 'probe', node: 'node-2', again: false }])
  assert.equal(inTurn([port('answered', 60_000)]), [])
  const { probe: _, ...unasked } = port('answered', 0)
  assert.equal(inTurn([unasked]), [{ do: 'probe', node: 'node-2', again: false }], 'a new leader has asked nobody yet')
  for (const changes of [silent, { gone: true }, { busy: new Set(['probe node-2']) }, { address: '' }] as const) assert.equal(inTurn([port('answered', 60_001, changes)]), [])
  assert.equal(audited([port('answered', 3_600_000)]), [], 'there was no turn')
})

test('a turn asks few ports at once, those first that were asked longest ago, and none while as many are asked for other reasons', () => {
  const many = Array.from({ length: 10 }, (_, nth) => port('answered', 70_000 + 1_000 * nth, {
    name: `node-${nth}`, record: record({ nodeUid: `uid-node-${nth}`, machine: `machine-${nth}` }), machine: `machine-${nth}`, readings: [reading('on', turnAt, turnAt + 100, { machine: `machine-${nth}` })],
  }))
  const ports = (...busy: readonly string[]) => inTurn([...many, ...busy.map((name) => fresh(name, { busy: new Set([`probe ${name}`]) }))]).flatMap((one) => (one.do === 'probe' ? one.node : []))
  assert.equal(ports(), ['node-9', 'node-8'])
  assert.equal(ports('node-11'), ['node-9'])
  assert.equal(ports('node-11', 'node-12'), [])
})

const portWritten = (word: ProbeWord, ago: number, since: number, kept = true): string[] => {
  const probe = { askedAt: now - ago, answeredAt: now - ago + 100, word, unansweredSince: now - since }
  const known = record({ probe: { boot, answered: kept, at: 'then' } })
  return inTurn([port(word, ago, { probe, record: known })]).map((one) => (one.do === 'record' ? `${one.record.probe?.answered}` : one.do))
}

test('a port that has answered in this boot is asked again before the record says that its silence proves nothing', () => {
  for (const word of ['silent', 'refused', 'open'] as const) {
    assert.equal(portWritten(word, 900, 900), [], 'once')
    assert.equal(portWritten(word, 14_000, 14_000), [], 'once, and soon to be asked again')
    assert.equal(portWritten(word, 15_000, 15_000), ['probe'])
    assert.equal(portWritten(word, 900, 3_000), [], 'asked of a suspect, again and again')
    assert.equal(portWritten(word, 900, 16_000), ['false'], 'twice')
  }
  assert.equal(portWritten('silent', 900, 16_000, false), [], 'the record says so')
  assert.equal(portWritten('silent', 15_000, 16_000, false), ['probe'], 'and it is asked on')
  assert.equal(portWritten('answered', 900, 16_000, false), ['true'])
})

const pressed = (auditBudget: number) => audits(survey(seen([fresh('node-1'), fresh('node-3')], [], self({ auditBudget })), now, [policy])).filter((one) => one.do === 'askDevice').length

test('no more programs begin than may: the first audits of a new boot neither', () => {
  assert.equal([0, 1, 2, 30].map(pressed), [0, 1, 2, 2])
})

const soFar = (nodes: readonly NodeSeen[], incidents: readonly Incident[] = []) => {
  const so = turnSoFar(seen(nodes, incidents, self({ turnAt })), now)
  return [so.asked, so.left, so.missed.join()]
}

test('a turn is over when every path of every node that is heard, and in no incident, was asked in it; the others are named', () => {
  const done = well({ name: 'node-1', readings: [reading('on', turnAt)] })
  assert.equal(soFar([done, well()]), [1, 1, ''])
  assert.equal(soFar([done, well({ readings: [reading('unknown', turnAt)] })]), [2, 0, ''], 'it did not answer, and was asked')
  assert.equal(soFar([done, well({ gone: true })]), [1, 0, ''])
  assert.equal(soFar([done, well(silent)]), [1, 0, 'node-2'])
  assert.equal(soFar([done, well({ ...silent, readings: [reading('off', now - 100)] })]), [1, 0, 'node-2'], 'asked because it is silent')
  assert.equal(soFar([done, well()], [incident({ phase: 'Running' })]), [1, 0, 'node-2'])
  assert.equal(soFar([done, fresh('node-2', { beat: undefined })]), [1, 0, 'node-2'], 'without an agent, and silent')
  assert.equal(soFar([done, well({ busy: new Set(['askDevice node-2 bmc-off']) })]), [1, 1, ''], 'it is being asked')
})

test.run()
