// Pods are freed on the very proof that stands there, on readings of now, and no further than the moment something speaks against it.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { keepNode } from '../../coordinator/kubernetes.ts'
import type { PodSeen } from '../../core/model.ts'
import { recall } from '../../core/proof.ts'
import { beat, policy, proofRecord } from '../core/world.ts'
import { fault, faulty, fenced, freeing, opened, phases, podWrites } from './deed-world.ts'
import { fence, turned, victim, type EdgeWorld } from './edge-world.ts'

const test = suite('free')

test('pods are recorded, then doomed, then deleted, each under its uid and version', async () => {
  const world = await fenced()
  const pod = world.plantPod('db-0')
  assert.ok(await world.do(freeing(world, [pod])))
  assert.equal(world.story, ['PUT node-2-abc-1/status', 'PATCH db-0/status', 'DELETE pods/db-0'])
  const [doomed, deleted] = podWrites(world).map((write) => write.body as { metadata?: object; status?: { phase: string; conditions: { type: string; reason: string; message: string }[] }; preconditions?: object; gracePeriodSeconds?: number }) // a patch, and DeleteOptions
  assert.equal(doomed?.metadata, { uid: pod.uid, resourceVersion: pod.resourceVersion })
  assert.equal([doomed?.status?.phase, doomed?.status?.conditions[0]?.type, doomed?.status?.conditions[0]?.reason], ['Failed', 'DisruptionTarget', 'HoldfastFenced'])
  assert.is(doomed?.status?.conditions[0]?.message, 'its node node-2 was fenced (node-2-abc-1)')
  assert.equal([deleted?.preconditions, deleted?.gracePeriodSeconds], [{ uid: pod.uid }, 0])
  assert.equal(world.pods(), [])
  assert.equal(world.stored().status.pods.map((fate) => [fate.name, fate.fate]), [['db-0', 'freed']])
  assert.ok(world.said.at(-1)?.note.includes('work/db-0'))
})

test('a pod that is over already is only deleted, under its uid and version', async () => {
  const world = await fenced()
  const pod = world.plantPod('job-1', { status: { phase: 'Succeeded' } })
  assert.ok(await world.do(freeing(world, [pod])))
  assert.equal(podWrites(world).map((write) => [write.method, (write.body as { preconditions: object }).preconditions]), [['DELETE', { uid: pod.uid, resourceVersion: pod.resourceVersion }]]) // DeleteOptions
})

for (const does of faulty.filter((one) => one !== 'lose answer')) {
  test(`no record, no pod: ${does}`, async () => {
    const world = await fenced()
    const pod = world.plantPod('db-0')
    fault(world, does, '/nodefences/')
    assert.is(await turned(world.clock, world.do(freeing(world, [pod]))), false)
    assert.equal(phases(world), ['db-0 Running'])
  })
}

test('every answer to a write on the record is lost: it is read instead, and the pod is freed', async () => {
  const world = await fenced()
  const pod = world.plantPod('db-0')
  fault(world, 'lose answer', '/nodefences/')
  assert.is(await turned(world.clock, world.do(freeing(world, [pod]))), true)
  assert.equal([phases(world), world.stored().status.pods.map(({ name }) => name)], [[], ['db-0']])
})

test('what was doomed and not deleted is buried under its uid and version, also without a proof; another pod of its name is not hit', async () => {
  const world = await fenced()
  const pod = world.plantPod('db-0', { status: { phase: 'Failed' } })
  assert.ok(await world.do({ do: 'bury', node: victim, incident: fence, pods: [pod] }))
  assert.equal(podWrites(world).map((write) => [write.method, (write.body as { preconditions: object }).preconditions]), [['DELETE', { uid: pod.uid, resourceVersion: pod.resourceVersion }]]) // DeleteOptions
  const next = world.plantPod('db-0')
  assert.is(await world.do({ do: 'bury', node: victim, incident: fence, pods: [pod] }), false)
  assert.equal(world.pods().map((one) => one.metadata.uid), [next.uid])
})

test('a leader that is none any more buries nothing', async () => {
  const world = await fenced()
  const pod = world.plantPod('db-0', { status: { phase: 'Failed' } })
  world.term = undefined
  assert.is(await world.do({ do: 'bury', node: victim, incident: fence, pods: [pod] }), false)
  assert.equal(podWrites(world), [])
})

test('what was not recorded is given back to the rate', async () => {
  const world = await fenced()
  const pods = Array.from({ length: 25 }, (_, index) => world.plantPod(`p-${index}`))
  fault(world, 'answer 500', '/nodefences/')
  for (let times = 0; times < 12; times += 1) await world.do(freeing(world, pods))
  world.server.faults.clear()
  world.read('off')
  assert.ok(await world.do(freeing(world, pods)))
  assert.equal(world.pods(), [])
})

test('the proof on record is another one, or none: no pod is touched', async () => {
  for (const change of [{ boot: 'boot-9/1' }, { nodeUid: 'another' }, { level: 1 }, { methods: ['pdu'] }]) {
    const world = await fenced()
    const pod = world.plantPod('db-0')
    await world.do(freeing(world, [pod], recall({ ...proofRecord({ nodeUid: world.observation.row(victim)?.uid ?? '', digests: ['d1'] }), ...change })))
    assert.equal(podWrites(world), [])
  }
  const world = await opened({ phase: 'Running' })
  world.read('off')
  const pod = world.plantPod('db-0')
  await world.do(freeing(world, [pod], recall(proofRecord({ nodeUid: world.observation.row(victim)?.uid ?? '' }))))
  assert.equal(podWrites(world), [])
})

test('no pod is touched on a reading older than a second, or that says anything but off', async () => {
  for (const [state, ago] of [['off', 1_001], ['on', 100], ['unknown', 100]] as const) {
    const world = await fenced()
    const pod = world.plantPod('db-0')
    await world.clock.runFor(2_000)
    world.read(state, world.clock.now() - ago)
    assert.is(await world.do(freeing(world, [pod])), false)
    assert.equal(podWrites(world), [])
    assert.equal(world.said.filter((one) => one.reason === 'PodsFreed'), [])
  }
})

test('the record took so long to write that the reading is old by then: no pod is touched', async () => {
  const world = await fenced()
  const pod = world.plantPod('db-0')
  world.server.faults.set([{ does: 'slow', by: 1_500, times: 1 }])
  assert.is(await turned(world.clock, world.do(freeing(world, [pod]))), false)
  assert.equal(podWrites(world), [])
})

/** Ten pods, and something happens as the third is patched. */
async function midway(happens: (world: EdgeWorld) => void): Promise<EdgeWorld> {
  const world = await fenced()
  const pods = Array.from({ length: 20 }, (_, index) => world.plantPod(`p-${String(index).padStart(2, '0')}`))
  let patches = 0
  world.asked = (request) => {
    if (request.method === 'PATCH' && ++patches === 3) happens(world)
  }
  await turned(world.clock, world.do(freeing(world, pods)))
  return world
}

const happenings: Record<string, (world: EdgeWorld) => void> = {
  'the lease is lost': (world) => { world.term = undefined },
  'another term begins here': (world) => { world.term = 4 },
  'its device says on': (world) => world.read('on'),
  'its device does not answer': (world) => world.read('unknown'),
  'the node is heard': (world) => void world.beats.set(victim, beat({ at: world.clock.now() + 1 })),
  'others bring its seal': (world) => world.observation.witnessed(victim, [{ witness: 'replica-1', kind: 'replica', askedAt: world.clock.now(), answeredAt: world.clock.now() + 1, word: 'hears', proven: true }]),
  'a person pauses everything': (world) => { world.observation.seen.self.pause = { by: 'ada', reason: 'a look' } },
  'its policy becomes a dry run': (world) => { world.policies = [{ ...policy, mode: 'dryRun' }] },
  'the Node is deleted': (world) => world.observation.nodeGone(victim),
  'another Node bears the name': (world) => world.observation.node(keepNode({ metadata: { name: victim, uid: 'another', resourceVersion: '9999' } })),
  'the NodeFence is deleted': (world) => world.observation.incidentGone(fence),
  'the proof is off the record': (world) => {
    const incident = world.observation.seen.incidents.get(fence)
    if (incident === undefined) return
    const { proof: _, ...status } = incident.status
    world.observation.incident({ ...incident, resourceVersion: '99999', status })
  },
}

for (const [what, happens] of Object.entries(happenings)) {
  test(`in the middle of a batch ${what}: at most what was under way is finished`, async () => {
    const world = await midway(happens)
    assert.ok(podWrites(world).filter((write) => write.method === 'PATCH').length <= 5, `${podWrites(world).length} writes`)
    assert.ok(phases(world).filter((one) => one.endsWith('Running')).length >= 15)
    const told = world.said.filter((one) => one.reason === 'PodsFreed').flatMap((one) => one.note.split(', '))
    assert.ok(told.length <= 5, 'and only what was freed is told')
  })
}

test('what ended a batch is told once, in words', async () => {
  const because = { 'its device says on': 'its proof is not borne out', 'the node is heard': 'the node is heard again', 'others bring its seal': 'the node is heard again', 'the Node is deleted': 'its Node was deleted, or is there again', 'the NodeFence is deleted': 'the incident is gone' }
  for (const [what, words] of Object.entries(because)) {
    const world = await midway((on) => happenings[what]?.(on))
    const told = world.logged.filter(({ message }) => message === 'nothing more is freed')
    assert.equal(told.map(({ level, facts }) => [level, facts]), [['warn', { node: victim, incident: fence, because: words }]], what)
  }
  assert.equal((await midway(() => undefined)).logged.filter(({ message }) => message === 'nothing more is freed'), [])
})

test('what was doomed is deleted as long as we lead, whatever is heard by then: nobody else ever would', async () => {
  for (const what of ['its device says on', 'the node is heard', 'the proof is off the record']) {
    const world = await midway((on) => happenings[what]?.(on))
    assert.ok(podWrites(world).some((write) => write.method === 'PATCH'))
    assert.equal(phases(world).filter((one) => one.endsWith('Failed')), [], what)
  }
})

test('nothing is deleted after the lease is lost, not even what was doomed just before', async () => {
  const world = await midway((on) => { on.term = undefined })
  const lost = world.story.findIndex((what) => what.startsWith('PATCH p-02'))
  assert.equal(world.story.slice(lost + 1).filter((what) => what.startsWith('DELETE')), [])
})

test('a batch ends before a machine could have booted', async () => {
  const world = await fenced()
  const pods = Array.from({ length: 25 }, (_, index) => world.plantPod(`p-${index}`))
  world.server.faults.set([{ does: 'slow', by: 1_500, strikes: (call) => call.path.includes('/pods/') }])
  const began = world.clock.now()
  await turned(world.clock, world.do(freeing(world, pods)))
  assert.ok(world.clock.now() - began < 8_000)
  assert.ok(phases(world).some((one) => one.endsWith('Running')))
})

test('nothing of a batch lands once it is over, however slow the API server is', async () => {
  const world = await fenced()
  const pods = Array.from({ length: 6 }, (_, index) => world.plantPod(`p-${index}`))
  // Five are written at once, and the sixth after them.
  world.server.faults.set([{ does: 'slow', by: 3_500, strikes: (call) => call.method === 'PATCH' }])
  await turned(world.clock, world.do(freeing(world, pods)))
  await world.clock.runFor(10_000)
  assert.equal(phases(world), ['p-5 Running'])
})

test('a pod that is gone, another one of its name, or changed since is left alone, and the others are freed', async () => {
  const world = await fenced()
  const [gone, other, changed, well] = ['gone', 'other', 'changed', 'well'].map((name) => world.plantPod(name)) as [PodSeen, PodSeen, PodSeen, PodSeen]
  const person = world.server.transportFor({ name: 'a person', groups: ['system:masters'] })
  const never = new AbortController().signal
  await person({ method: 'DELETE', path: '/api/v1/namespaces/work/pods/gone', headers: {}, body: '{"gracePeriodSeconds":0}' }, never)
  await person({ method: 'PATCH', path: '/api/v1/namespaces/work/pods/changed', headers: { 'content-type': 'application/merge-patch+json' }, body: '{"metadata":{"labels":{"a":"b"}}}' }, never)
  assert.ok(await world.do(freeing(world, [gone, { ...other, uid: 'another uid' }, changed, well])))
  assert.equal(phases(world).toSorted(), ['changed Running', 'other Running'])
  assert.equal(podWrites(world).filter((write) => write.method === 'DELETE').map((write) => write.path.split('/').at(-1)), ['well'])
})

test('a doom whose answer is lost is followed by no deletion: the next list tells', async () => {
  const world = await fenced()
  const pod = world.plantPod('db-0')
  fault(world, 'lose answer', '/pods/db-0/status')
  assert.is(await turned(world.clock, world.do(freeing(world, [pod]))), false)
  assert.equal(phases(world), ['db-0 Failed'])
  assert.equal(podWrites(world).map((write) => write.method), ['PATCH'])
})

test('after a batch the pods are listed anew', async () => {
  const world = await fenced()
  const pod = world.plantPod('db-0')
  world.observation.listed(victim, { askedAt: 0, listedAt: 0, items: [pod] })
  await world.do(freeing(world, [pod]))
  assert.is(world.observation.row(victim)?.pods, undefined)
})

test('of a batch larger than the rate allows only so many are freed, and only those are recorded', async () => {
  const world = await fenced()
  const pods = Array.from({ length: 160 }, (_, index) => world.plantPod(`p-${index}`))
  await world.do(freeing(world, pods))
  assert.is(world.pods().length, 10)
  assert.is(world.stored().status.pods.length, 150)
})

test('what is over goes past the rate, and takes nothing from it', async () => {
  const world = await fenced()
  const [over, living] = [[0, 1, 2].map((index) => world.plantPod(`over-${index}`, { status: { phase: 'Succeeded' } })), Array.from({ length: 152 }, (_, index) => world.plantPod(`p-${index}`))]
  await world.do(freeing(world, [...over, ...living]))
  assert.equal(world.pods().map(({ metadata }) => metadata.name).filter((name) => name.startsWith('over')), [])
  assert.is(world.pods().length, 2)
})

test.run()
