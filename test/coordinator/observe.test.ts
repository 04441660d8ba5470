import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { keepNode } from '../../coordinator/kubernetes.ts'
import { forceEvictionKey } from '../../core/acknowledge.ts'
import { outOfServiceKey } from '../../core/clear.ts'
import type { Cause, IncidentStatus } from '../../core/incident.ts'
import { evictionKey, fencedKey, kubeletsBootKey, remediedKey } from '../../core/model.ts'
import { attempt, beat, proofRecord, record, reading } from '../core/world.ts'
import { attachment, fenced, node, out, small } from './observe-world.ts'

const test = suite('observe')

test('a node stays one row as long as its uid stays', () => {
  const { observation } = small()
  observation.node(node('1'))
  const row = observation.row('node-2')
  observation.read('node-2', reading('on', 99_000))
  observation.node(node('2'))
  assert.is(observation.row('node-2'), row)
  assert.is(row?.readings.length, 1)
  assert.is(row?.resourceVersion, '2')
})

test('of a node made again under its name nothing is kept that was learned of the one before', () => {
  const { observation } = small()
  observation.node(node('1'))
  observation.read('node-2', reading('off', 99_000))
  observation.probed('node-2', { askedAt: 99_000, answeredAt: 99_100, word: 'silent' })
  observation.leased('node-2', 99_000, 't')
  observation.listed('node-2', { askedAt: 1, listedAt: 2, items: [] })
  observation.node(node('5', { uid: 'uid-other' }))
  const row = observation.row('node-2')
  assert.is(row?.uid, 'uid-other')
  assert.equal([row?.readings, row?.probe, row?.lease, row?.pods, row?.witnesses], [[], undefined, undefined, undefined, []])
})

const other = (name: string) => ({ ...node('1', { name, uid: `uid-${name}` }), machine: 'AABBCCDD-0000-1111-2222-333333333333' })
test('of Nodes that bear one machine id each is told of another, as long as there is one', () => {
  const { observation } = small()
  const twins = () => ['node-1', 'node-2', 'node-3'].map((name) => observation.row(name)?.twin)
  observation.node(node('1'))
  observation.node(other('node-1'))
  assert.equal(twins(), [undefined, undefined, undefined])
  observation.node({ ...other('node-3'), machine: 'ddccbbaa-0000-1111-2222-333333333333' })
  assert.equal(twins(), ['node-3', undefined, 'node-1'], 'in whatever order of bytes')
  observation.node({ ...node('2'), machine: other('node-1').machine })
  assert.equal(twins().map((twin) => twin !== undefined), [true, true, true])
  observation.node(node('3'))
  observation.nodeGone('node-3')
  assert.equal(twins(), [undefined, undefined, undefined])
  for (const [name, version] of [['node-1', '4'], ['node-2', '4']] as const) observation.node({ ...node(version, { name, uid: `uid-${name}` }), machine: '' })
  assert.equal(twins(), [undefined, undefined, undefined], 'none is no id')
})

test('what is under way on a node goes on being under way when the Node is made again under its name', () => {
  const { observation } = small()
  observation.node(node('1'))
  observation.row('node-2')?.busy.add('order node-2 bmc-off')
  const before = observation.row('node-2')
  observation.node(node('5', { uid: 'uid-other' }))
  assert.ok(observation.row('node-2')?.busy.has('order node-2 bmc-off'))
  before?.busy.delete('order node-2 bmc-off')
  assert.is(observation.row('node-2')?.busy.size, 0)
})

test('the times of an incident are counted from when its record was first seen, and never anew', async () => {
  const { observation, clock } = small()
  observation.node(node('1'))
  observation.incident(fenced({ attempts: [attempt({ result: 'running' })] }, '9'))
  await clock.runFor(5_000)
  observation.incident(fenced({ attempts: [attempt({ result: 'off' })], proof: proofRecord() }, '10'))
  await clock.runFor(5_000)
  observation.incident(fenced({ attempts: [attempt({ result: 'off' })], proof: proofRecord() }, '11'))
  const seen = observation.row('node-2')?.firstSeen
  assert.is(seen?.get('began node-2-abc-1.1'), 100_000)
  assert.is(seen?.get('ended node-2-abc-1.1'), 105_000)
  assert.is(seen?.get('proof node-2-abc-1 0'), 105_000)
})

test('the times of an incident that was read before its node are counted from when the node appears', async () => {
  const { observation, clock } = small()
  observation.incident(fenced({ attempts: [attempt({ result: 'off' })], proof: proofRecord() }, '9'))
  await clock.runFor(3_000)
  observation.node(node('1'))
  const seen = observation.row('node-2')?.firstSeen
  assert.is(seen?.get('began node-2-abc-1.1'), 103_000)
  assert.is(seen?.get('ended node-2-abc-1.1'), 103_000)
  assert.is(seen?.get('proof node-2-abc-1 0'), 103_000)
})

const word = (until: string) => ({ acknowledge: { boot: 'boot-1/100', by: 'ada', reason: 'its plugs', until } })
test('a word that stood there when this replica began is as old as can be, and so is a taint; one that is said since is not', async () => {
  const { observation, clock } = small()
  const [first, second] = ['2026-01-01T01:00:00Z', '2026-01-01T02:00:00Z']
  const said = (until: string) => observation.row('node-2')?.firstSeen.get(`acknowledged node-2-abc-1 ${until}`)
  const evicted = (version: string, ...keys: string[]) => observation.node(node(version, { taints: keys.map((key) => ({ key, effect: 'NoSchedule' })) }))
  const taintAt = () => observation.row('node-2')?.firstSeen.get(evictionKey)
  observation.incident(fenced({}, '9', word(first)))
  evicted('1', forceEvictionKey)
  assert.equal([said(first), taintAt()], [-Infinity, -Infinity])
  await clock.runFor(3_000)
  observation.incident(fenced({}, '10', word(second)))
  evicted('2')
  evicted('3', forceEvictionKey)
  assert.equal([said(second), taintAt()], [103_000, 103_000])
  observation.incidentGone('node-2-abc-1')
  observation.incident(fenced({ term: 0 }, '11', word(first)))
  assert.is(said(first), 103_000, 'no leader has seen it before')
})

test('the times of an incident are counted on for a node made again under its name, so that what may land has an end', async () => {
  const { observation, clock } = small()
  observation.node(node('1'))
  observation.incident(fenced({ attempts: [attempt({ result: 'unknown' })] }, '9'))
  await clock.runFor(3_000)
  observation.node(node('20', { uid: 'uid-other' }))
  assert.is(observation.row('node-2')?.firstSeen.get('began node-2-abc-1.1'), 103_000)
})

test('a condition is as old as its latest heartbeat, by our own clock, and gone once it is no more True', async () => {
  const { observation, clock } = small()
  const post = (version: string, heartbeat: string, status = 'True') => observation.node(keepNode({
    apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-2', uid: 'uid-node-2', resourceVersion: version },
    status: { conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: version }, { type: 'StorageHears', status, lastHeartbeatTime: heartbeat }] },
  } as never)) // likewise
  const condition = () => observation.row('node-2')?.conditions?.get('StorageHears')
  const postedAt = () => condition()?.postedAt
  post('1', 'h1')
  await clock.runFor(10_000)
  post('2', 'h1')
  assert.equal([postedAt(), condition()?.stood], [100_000, true], 'kubelet posts another one')
  post('3', 'h2')
  assert.equal([postedAt(), condition()?.stood], [110_000, undefined], 'the first one stood there as this replica began')
  post('4', 'h3', 'False')
  assert.is(postedAt(), undefined)
  post('5', 'h4')
  assert.equal([postedAt(), condition()?.stood], [110_000, undefined])
})

test('when a node was fenced is known from the record, to a leader that began long after it too; what was found off was not fenced', () => {
  const { observation, clock } = small()
  observation.node(node('1'))
  const at = (changes: Partial<IncidentStatus>, version: string, cause: Cause = 'silence'): number | undefined => {
    observation.incident(fenced({ attempts: [attempt({ startedAt: new Date(clock.wall() - 500_000).toISOString() })], ...changes }, version, { cause }))
    return observation.row('node-2')?.firstSeen.get(fencedKey('node-2-abc-1'))
  }
  assert.is(at({}, '9'), clock.now() - 500_000)
  assert.is(at({ proof: proofRecord({ kind: 'found-off' }) }, '10'), undefined)
  assert.is(at({}, '11', 'drill'), undefined, 'a drill is no death that counts')
  assert.is(at({}, '12', 'scheduled-drill'), undefined)
})

test('when a remedy began is known likewise, by the pods that it asked to go where nothing was ordered; of another cause nothing is', () => {
  const { observation, clock } = small()
  observation.node(node('1'))
  const since = (ago: number): string => new Date(clock.wall() - ago).toISOString()
  const at = (changes: Partial<IncidentStatus>, version: string, cause: 'remedy' | 'by-hand' = 'remedy'): number | undefined => {
    observation.incident(fenced(changes, version, { cause }))
    return observation.row('node-2')?.firstSeen.get(remediedKey('node-2-abc-1'))
  }
  assert.is(at({}, '9'), undefined)
  assert.is(at({ eviction: { since: since(500_000) }, phase: 'Final' }, '10'), clock.now() - 500_000)
  assert.is(at({ eviction: { since: since(500_000) } }, '11', 'by-hand'), undefined)
  assert.is(at({ attempts: [attempt({ startedAt: since(400_000) })] }, '12'), clock.now() - 400_000)
})

test('attempts that left the record, and incidents that are not kept any more, leave no times behind', () => {
  const { observation } = small()
  observation.node(node('1'))
  const size = (): number => observation.row('node-2')?.firstSeen.size ?? 0
  const before = size()
  for (let round = 0; round < 500; round += 1) {
    observation.incident(fenced({ attempts: [attempt({ id: `a.${round}` }), attempt({ id: `a.${round + 1}` })] }, String(10 + round)))
  }
  assert.is(size(), before + 5)
  observation.incident(fenced({ attempts: [attempt({ id: 'a.9' })], proof: proofRecord() }, '900'))
  observation.incidentGone('node-2-abc-1')
  assert.is(size(), before)
})

test('our own write is seen before the watch brings it, and what the watch brings late does not undo it', () => {
  const { observation } = small()
  observation.node(node('5'))
  observation.node(node('8', { taints: [out] }), 'live')
  observation.node(node('7'))
  assert.equal(observation.row('node-2')?.taints.map((taint) => taint.key), [outOfServiceKey])
  observation.node(node('9'))
  assert.equal(observation.row('node-2')?.taints, [])
})

test('the same of an incident and of a NodeRecord', () => {
  const { observation } = small()
  observation.node(node('1'))
  observation.incident(fenced({ phase: 'New' }, '5'))
  observation.incident(fenced({ phase: 'Running' }, '8'), 'live')
  observation.incident(fenced({ phase: 'New' }, '7'))
  assert.is(observation.seen.incidents.get('node-2-abc-1')?.status.phase, 'Running')
  observation.record('node-2', record({ resourceVersion: '8', machine: 'new' }), 'live')
  observation.record('node-2', record({ resourceVersion: '7', machine: 'old' }))
  assert.is(observation.row('node-2')?.record?.machine, 'new')
})

test('an answer that was long on its way does not undo what the watch brought meanwhile', () => {
  const { observation } = small()
  observation.node(node('9', { taints: [out] }))
  observation.node(node('8'), 'live')
  assert.is(observation.row('node-2')?.taints.length, 1)
  observation.incident(fenced({ phase: 'Running' }, '9'))
  observation.incident(fenced({ phase: 'New' }, '8'), 'live')
  assert.is(observation.seen.incidents.get('node-2-abc-1')?.status.phase, 'Running')
})

test('versions are compared as numbers of any length', () => {
  const { observation } = small()
  observation.node(node('1'))
  observation.incident(fenced({ phase: 'Running' }, '90071992547409931'), 'live')
  observation.incident(fenced({ phase: 'New' }, '90071992547409930'))
  assert.is(observation.seen.incidents.get('node-2-abc-1')?.status.phase, 'Running')
})

test('a server that has gone back in time and insists is believed', async () => {
  const { observation, clock } = small()
  observation.node(node('1'))
  observation.incident(fenced({ phase: 'Running' }, '900'), 'live')
  observation.node(node('901', { taints: [out] }), 'live')
  await clock.runFor(120_000)
  observation.incident(fenced({ phase: 'New' }, '30'))
  observation.node(node('31'))
  assert.is(observation.seen.incidents.get('node-2-abc-1')?.resourceVersion, '30')
  assert.is(observation.row('node-2')?.resourceVersion, '31')
})

test('an older copy is no word of kubelet: only a status posted since is', async () => {
  const { observation, clock } = small()
  observation.node(node('5', { heartbeat: 'h1' }))
  await clock.runFor(1_000)
  observation.node(node('8', { heartbeat: 'h2' }), 'live')
  await clock.runFor(1_000)
  observation.node(node('7', { heartbeat: 'h1' }))
  await clock.runFor(1_000)
  observation.node(node('9', { heartbeat: 'h2' }))
  assert.is(observation.row('node-2')?.ready.postedAt, 101_000)
})

test('the first sight of a node is no word of kubelet, a changed heartbeat is; what Ready was since stays while it stays', async () => {
  const { observation, clock } = small()
  observation.node(node('1'))
  const ready = () => observation.row('node-2')?.ready
  assert.is(ready()?.postedAt, -Infinity)
  await clock.runFor(1_000)
  observation.node(node('2', { heartbeat: 'h2' }))
  assert.is(ready()?.postedAt, 101_000)
  assert.is(ready()?.since, 100_000)
  await clock.runFor(1_000)
  observation.node(node('3', { heartbeat: 'h2', ready: 'Unknown' }))
  assert.is(ready()?.postedAt, 101_000)
  assert.is(ready()?.since, 102_000)
})

test('out-of-service is gone since it was first seen gone, and begins anew when it comes back', async () => {
  const { observation, clock } = small()
  const gone = () => observation.row('node-2')?.firstSeen.get(`gone ${outOfServiceKey}`)
  observation.node(node('1', { taints: [out] }))
  assert.is(gone(), undefined)
  await clock.runFor(1_000)
  observation.node(node('2'))
  await clock.runFor(1_000)
  observation.node(node('3'))
  assert.is(gone(), 101_000)
  observation.node(node('4', { taints: [out] }))
  assert.is(gone(), undefined)
})

test('a boot that kubelet tells of is known since it was first seen here', async () => {
  const { observation, clock } = small()
  const since = () => observation.row('node-2')?.firstSeen.get(kubeletsBootKey)
  observation.node(node('1'))
  await clock.runFor(1_000)
  observation.node(node('2', { heartbeat: 'h2' }))
  assert.is(since(), 100_000)
  observation.node(node('3', { heartbeat: 'h3', bootId: 'boot-2' }))
  assert.is(since(), 101_000)
})

test('a Node that is deleted is forgotten, with its agent\'s link; while an incident of it is open it is only marked', () => {
  const { observation, forgotten } = small()
  observation.node(node('1'))
  observation.nodeGone('node-2')
  assert.is(observation.row('node-2'), undefined)
  assert.equal(forgotten, ['node-2'])
  observation.node(node('2'))
  observation.incident(fenced({ phase: 'Running' }, '9'))
  observation.nodeGone('node-2')
  assert.is(observation.row('node-2')?.gone, true)
})

test('a deleted Node is forgotten once its last open incident has ended', () => {
  const { observation, forgotten } = small()
  observation.node(node('2'))
  observation.incident(fenced({ phase: 'Running' }, '9'))
  observation.incident(fenced({ phase: 'Running' }, '9', { name: 'node-2-abc-2' }))
  observation.nodeGone('node-2')
  observation.incident(fenced({ phase: 'Final' }, '10'))
  assert.is(observation.row('node-2')?.gone, true)
  observation.incident(fenced({ phase: 'Final' }, '11', { name: 'node-2-abc-2' }))
  assert.is(observation.row('node-2'), undefined)
  assert.equal(forgotten, ['node-2'])
})

test('an open incident of a Node that is not there has a row all the same, marked gone, and its times are counted on it', () => {
  const { clock, observation, forgotten } = small()
  observation.path('node-2', { levels: [], faults: ['none'] })
  observation.incident(fenced({ phase: 'Running', attempts: [attempt({ result: 'failed' })] }, '9'))
  const row = observation.row('node-2')
  assert.equal([row?.gone, row?.uid, row?.machine, row?.path.faults], [true, 'uid-node-2', 'machine-2', ['none']])
  assert.is(row?.firstSeen.get('began node-2-abc-1.1'), clock.now())
  observation.incident(fenced({ phase: 'Final' }, '10'))
  assert.is(observation.row('node-2'), undefined)
  assert.equal(forgotten, ['node-2'])
})

test('a Node that appears after its incident is no word of kubelet either, and not gone', () => {
  const { observation } = small()
  observation.incident(fenced({ phase: 'Running' }, '9'))
  observation.node(node('12'))
  const row = observation.row('node-2')
  assert.equal([row?.gone, row?.resourceVersion, row?.bootId, row?.ready.postedAt], [undefined, '12', 'boot-1', -Infinity])
})

test('of an incident that is over, and of one that cannot be read, no row is made', () => {
  const { observation } = small()
  observation.incident(fenced({ phase: 'Final' }, '9'))
  observation.incidentUnreadable({ name: 'node-3-abc-1', node: 'node-3', faults: 'spec.weather: not known' })
  assert.equal([observation.row('node-2'), observation.row('node-3')], [undefined, undefined])
})

test('a Node whose incident was deleted after it is forgotten', () => {
  const { observation } = small()
  observation.node(node('2'))
  observation.incident(fenced({ phase: 'Running' }, '9'))
  observation.nodeGone('node-2')
  observation.incidentGone('node-2-abc-1')
  assert.is(observation.row('node-2'), undefined)
})

test('volumes, records and paths that were read before their node are there when it appears', () => {
  const { observation } = small()
  observation.attachment(attachment('pv-1'))
  observation.record('node-2', record())
  observation.path('node-2', { levels: [], faults: ['none'] })
  observation.node(node('1'))
  const row = observation.row('node-2')
  assert.is(row?.volumes.length, 1)
  assert.is(row?.record?.boot, 'boot-1/100')
  assert.equal(row?.path.faults, ['none'])
  observation.attachmentGone(attachment('pv-1'))
  assert.equal(observation.row('node-2')?.volumes, [])
})

test('the beat of a row is what is heard now, not what was when the row was made', () => {
  const { observation, beats } = small()
  observation.node(node('1'))
  assert.is(observation.row('node-2')?.beat, undefined)
  beats.set('node-2', beat())
  assert.is(observation.row('node-2')?.beat?.boot, 'boot-1/100')
})

test('the highest term that any incident ever bore is known, also when that incident is gone', () => {
  const { observation } = small()
  assert.is(observation.highestTerm(), 0)
  observation.incident(fenced({ term: 7 }, '9'))
  observation.incident(fenced({ term: 4 }, '9', { name: 'other' }))
  assert.is(observation.highestTerm(), 7)
  observation.incidentGone('node-2-abc-1')
  assert.is(observation.highestTerm(), 7)
})

test.run()
