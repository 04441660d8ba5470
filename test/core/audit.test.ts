import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { audits } from '../../core/audit.ts'
import type { NodeSeen } from '../../core/model.ts'
import { survey } from '../../core/survey.ts'
import { beat, boot, method, newBoot, node, now, policy, reading, record, seen, silent } from './world.ts'

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

const states: [string, Partial<NodeSeen>, string, string][] = [
  ['on, and the machine\'s own UUID', { readings: [reading('on', now - 1_000)] }, 'verified', 'proven'],
  ['on, and no UUID', { readings: [{ ...reading('on', now - 1_000), machine: undefined as never }] }, 'verified', 'unproven'],
  ['on, and another UUID', { readings: [reading('on', now - 1_000, now, { machine: 'machine-9' })] }, 'verified', 'mismatch'],
  ['on, and a UUID, of a machine that has none itself', { machine: '', readings: [reading('on', now - 1_000)] }, 'verified', 'unproven'],
  ['off', { readings: [reading('off', now - 1_000)] }, 'mismatch', 'proven'],
  ['nothing', { readings: [reading('unknown', now - 1_000)] }, 'unreachable', 'proven'],
]
for (const [what, changes, state, identity] of states) {
  test(`a device that answers ${what} is recorded as ${state}, identity ${identity}`, () => {
    const [written] = audited([fresh('node-2', changes)])
    assert.equal(written?.do === 'record' && written.record.paths.map((path) => [path.state, path.identity]), [[state, identity]])
  })
}

test('a path that was marked stays marked in the next boot, as long as its configuration stands', () => {
  const marked = record({ paths: record().paths.map((one) => ({ ...one, state: 'marked' })) })
  const next = { record: marked, beat: beat({ boot: newBoot, since: now - 2_000 }), readings: [reading('on', now - 1_000)], probe: { askedAt: now - 900, answeredAt: now - 890, word: 'answered' } } as const
  const [written] = audited([well(next)])
  assert.equal(written?.do === 'record' && written.record.paths.map((path) => [path.state, path.boot]), [['marked', newBoot]])
  const [fixed] = audited([well({ ...next, path: { levels: [[{ ...method, digest: 'd9' }]], faults: [] }, readings: [reading('on', now - 1_000, now, { digest: 'd9' })] })])
  assert.equal(fixed?.do === 'record' && fixed.record.paths.map((path) => path.state), ['verified'])
})

test('records are written in bounded numbers', () => {
  const many = Array.from({ length: 100 }, (_, index) => fresh(`node-${index}`, { readings: [reading('on', now - 1_000)] }))
  assert.is(audited(many).filter((one) => one.do === 'record').length, 8)
  const writing = Array.from({ length: 8 }, (_, index) => fresh(`w-${index}`, { busy: new Set([`record w-${index}`]) }))
  assert.equal(audited([...many, ...writing]).filter((one) => one.do === 'record'), [])
})

test.run()
