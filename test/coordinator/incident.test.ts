import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createApi, type KubeObject } from '../../coordinator/api.ts'
import { fencesPath, statusBody } from '../../coordinator/node-fence.ts'
import type { IncidentStatus } from '../../core/incident.ts'
import type { Change } from '../../core/timeline.ts'
import { admin } from '../../sim/api-server/server.ts'
import { boot, policy, proofRecord } from '../core/world.ts'
import { edgeWorld, fence, turned, victim, type EdgeWorld } from './edge-world.ts'

const test = suite('incident writer')

const at = '2026-01-01T00:00:00.000Z'
const moment = (what: string): Change => (status) => ({ ...status, timeline: [...status.timeline, { at, what, detail: '' }] })

async function opened(status: Partial<IncidentStatus> = {}): Promise<EdgeWorld> {
  const world = edgeWorld()
  world.plantNode()
  await world.plantFence(status)
  return world
}

/** Another one writes the status, and the watch has not brought it yet. */
async function meanwhile(world: EdgeWorld, change: Partial<IncidentStatus>): Promise<void> {
  const stored = world.stored()
  const answer = await createApi({ clock: world.clock, transport: world.server.transportFor(admin) })
    .replace<KubeObject>(`${fencesPath}/${fence}/status`, statusBody(fence, stored.resourceVersion, stored.uid, { ...stored.status, ...change }))
  if (!answer.ok) throw new Error(answer.error.message)
}

const moments = (world: EdgeWorld): string[] => world.stored().status.timeline.map((one) => one.what)
const seen = (world: EdgeWorld): IncidentStatus | undefined => world.observation.seen.incidents.get(fence)?.status

test('a change is written over the version it was made from, and seen before the watch brings it', async () => {
  const world = await opened()
  const { resourceVersion, uid } = world.stored()
  assert.ok(await world.incidents.change(fence, moment('one')))
  assert.equal((world.writes[0]?.body as KubeObject | undefined)?.metadata, { name: fence, resourceVersion, uid }) // a NodeFence
  assert.equal([moments(world), seen(world)?.timeline.length], [['one'], 1])
})

const proven = (status: IncidentStatus): IncidentStatus => ({ ...status, proof: proofRecord(), timeline: [...status.timeline, { at: '2026-01-01T00:00:03Z', what: 'proven', detail: '' }] })

test('what a write has made of an incident is told once it stands there, and not before', async () => {
  const world = await opened({ timeline: [{ at: '2026-01-01T00:00:00Z', what: 'opened', detail: '' }] })
  world.server.faults.set([{ does: 'answer', status: 500, times: 1, strikes: ({ method }) => method === 'PUT' }])
  assert.is(await turned(world.clock, world.incidents.change(fence, proven)), false)
  assert.equal(world.wrote, [])
  assert.ok(await world.incidents.change(fence, proven))
  assert.equal(world.wrote, [`${fence}: 1 moments, then proven`])
})

test('a change that changes nothing writes nothing and is well', async () => {
  const world = await opened()
  assert.ok(await world.incidents.change(fence, (status) => status))
  assert.equal(world.writes, [])
})

test('a conflict with a copy that bears a newer term writes nothing more', async () => {
  const world = await opened()
  await meanwhile(world, { term: 4 })
  assert.is(await world.incidents.change(fence, moment('late')), false)
  assert.is(world.writes.length, 1)
  assert.equal([moments(world), seen(world)?.term], [[], 4])
  assert.is(await world.incidents.change(fence, moment('later')), false)
  assert.is(world.writes.length, 1)
})

test('nobody adopts what bears a newer term', async () => {
  const world = await opened({ term: 9 })
  assert.is(await world.incidents.adopt(fence, moment('adopted')), false)
  assert.equal(world.writes, [])
  assert.equal(world.logged.map(({ facts }) => facts), [{ incident: fence, because: 'a later leader has written on it' }])
})

test('a conflict with a copy that bears our term: the change is applied again to that copy, and nothing of it is lost', async () => {
  const world = await opened()
  await meanwhile(world, { timeline: [{ at, what: 'theirs', detail: '' }] })
  assert.ok(await world.incidents.change(fence, moment('ours')))
  assert.equal(moments(world), ['theirs', 'ours'])
})

test('what bears an older term is changed only by adopting it', async () => {
  const world = await opened({ term: 2 })
  assert.is(await world.incidents.change(fence, moment('one')), false)
  assert.equal([world.writes, world.logged.map(({ facts }) => facts)], [[], [{ incident: fence, because: 'it does not bear our term yet' }]])
  assert.ok(await world.incidents.adopt(fence, (status) => ({ ...status, term: 3 })))
  assert.ok(await world.incidents.change(fence, moment('one')))
  assert.equal([moments(world), world.stored().status.term], [['one'], 3])
})

test('an adoption that meets a conflict is made again, unless a newer leader was first', async () => {
  const world = await opened({ term: 2 })
  await meanwhile(world, { timeline: [{ at, what: 'theirs', detail: '' }] })
  assert.ok(await world.incidents.adopt(fence, (status) => ({ ...status, term: 3 })))
  assert.equal([moments(world), world.stored().status.term], [['theirs'], 3])
  const other = await opened({ term: 2 })
  await meanwhile(other, { term: 5 })
  assert.is(await other.incidents.adopt(fence, (status) => ({ ...status, term: 3 })), false)
  assert.is(other.stored().status.term, 5)
})

test('a conflict that never ends is given up', async () => {
  const world = await opened()
  world.server.faults.set([{ does: 'answer', status: 409, strikes: (call) => call.method === 'PUT' }])
  assert.is(await world.incidents.change(fence, moment('one')), false)
  assert.ok(world.writes.length <= 3)
})

test('the lease lost between a conflict and the next try: nothing more is written', async () => {
  const world = await opened()
  await meanwhile(world, { level: 1 })
  world.asked = (request) => {
    if (request.method === 'GET') world.term = undefined
  }
  assert.is(await world.incidents.change(fence, moment('one')), false)
  assert.is(world.writes.length, 1)
})

test('an incident that was deleted and made again under its name is another one: nothing is written on it', async () => {
  const world = await opened()
  const person = createApi({ clock: world.clock, transport: world.server.transportFor(admin) })
  assert.ok((await person.remove(`${fencesPath}/${fence}`)).ok)
  const { metadata: { uid } } = (await person.create<KubeObject>(fencesPath, {
    apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeFence', metadata: { name: fence }, spec: { nodeName: victim, nodeUid: 'u', boot, machine: '', cause: 'by-hand', policy: { name: policy.name } },
  }) as { value: KubeObject }).value // it is well, or the next line fails
  assert.ok(uid !== undefined)
  assert.is(await world.incidents.change(fence, moment('one')), false)
  assert.equal(moments(world), [])
})

test('changes of one incident follow each other in the order in which they were wanted', async () => {
  const world = await opened()
  const all = ['one', 'two', 'three', 'four'].map((what) => world.incidents.change(fence, moment(what)))
  assert.equal(await Promise.all(all), [true, true, true, true])
  assert.equal(moments(world), ['one', 'two', 'three', 'four'])
  assert.is(world.writes.length, 4, 'none met a conflict')
})

test('a change that fails by a fault of its own keeps no other one from being written', async () => {
  const world = await opened()
  const broken = world.incidents.change(fence, () => { throw new Error('a fault of ours') })
  const next = world.incidents.change(fence, moment('one'))
  assert.is(await broken.catch(() => 'threw'), 'threw')
  assert.ok(await next)
  assert.equal(moments(world), ['one'])
})

test('a server that never answers holds up an incident for seconds, not for ever', async () => {
  const world = await opened()
  world.server.faults.set([{ does: 'slow', by: 3_600_000, strikes: (call) => call.method === 'PUT' }])
  const began = world.clock.now()
  assert.is(await turned(world.clock, world.incidents.change(fence, moment('one'))), false)
  assert.ok(world.clock.now() - began <= 5_000)
})

test('a change whose answer was lost, and that stands there, is written', async () => {
  const world = await opened()
  world.server.faults.set([{ does: 'lose answer', times: 1, strikes: (call) => call.method === 'PUT' }])
  assert.ok(await turned(world.clock, world.incidents.change(fence, moment('one'))))
  assert.equal([world.writes.length, moments(world), seen(world)?.timeline.length], [1, ['one'], 1])
})

test('a change whose answer was lost is not known to be written where it does not stand there, or another one has written over it', async () => {
  const absent = await opened()
  absent.server.faults.set([{ does: 'answer', status: 503, times: 1, strikes: (call) => call.method === 'PUT' }])
  assert.is(await turned(absent.clock, absent.incidents.change(fence, moment('one'))), false)
  assert.equal([absent.writes.length, moments(absent)], [1, []])

  const over = await opened()
  over.server.faults.set([{ does: 'lose answer', times: 1, strikes: (call) => call.method === 'PUT' }, { does: 'slow', by: 1_000, strikes: (call) => call.method === 'GET' }])
  over.asked = ({ method }) => {
    if (method === 'GET') void meanwhile(over, { term: 4 })
  }
  assert.is(await turned(over.clock, over.incidents.change(fence, moment('one'))), false)
  assert.equal([over.writes.length, moments(over), seen(over)?.term], [1, ['one'], 4])
})

test('nobody writes who does not lead, and nothing is opened', async () => {
  const world = await opened()
  world.term = undefined
  const draft = { name: 'another', nodeName: victim, nodeUid: 'u', boot, machine: '', cause: 'silence', policy } as const
  assert.equal([await world.incidents.change(fence, moment('one')), await world.incidents.adopt(fence, moment('one')), await world.incidents.open(draft, moment('one'))], [false, false, false])
  assert.equal(world.writes, [])
})

test('an incident that is not known cannot be changed', async () => {
  const world = await opened()
  assert.is(await world.incidents.change('another', moment('one')), false)
  assert.equal(world.writes, [])
})

test.run()
