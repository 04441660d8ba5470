// Our taints go on and come off over the version that was read; those of others stay.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { outOfServiceKey, quarantineKey } from '../../core/clear.ts'
import { recall, type Proof } from '../../core/proof.ts'
import { proofRecord } from '../core/world.ts'
import { fenced, opened, proofOf } from './deed-world.ts'
import { edgeWorld, fence, victim } from './edge-world.ts'

const test = suite('taint')

test('quarantine and out-of-service go on in one write, over the very version that was read', async () => {
  const world = await fenced()
  const row = world.observation.row(victim)
  const [uid, version] = [row?.uid, row?.resourceVersion]
  assert.ok(await world.do({ do: 'taint', node: victim, incident: fence, outOfService: true, proof: proofOf(world) }))
  assert.equal(world.taints(), [quarantineKey, outOfServiceKey])
  assert.equal(world.story, ['PATCH nodes/node-2', 'PUT node-2-abc-1/status'])
  const [uidTest, versionTest, added] = (world.writes[0]?.body ?? []) as { op: string; path: string; value: unknown }[] // a JSON patch
  assert.equal([uidTest, versionTest], [{ op: 'test', path: '/metadata/uid', value: uid }, { op: 'test', path: '/metadata/resourceVersion', value: version }])
  assert.equal(((added?.value ?? []) as { effect: string }[]).map((taint) => taint.effect), ['NoSchedule', 'NoSchedule']) // taints
  assert.is(world.observation.row(victim)?.taints.length, 2, 'seen before the watch brings it')
})

test('taints of others stay, and one that is there is not put on again', async () => {
  const world = edgeWorld()
  world.plantNode(victim, { spec: { taints: [{ key: 'theirs', effect: 'NoExecute' }, { key: quarantineKey, effect: 'NoSchedule' }] } })
  await world.plantFence()
  assert.is(await world.do({ do: 'taint', node: victim, incident: fence, outOfService: false }), false)
  assert.equal(world.writes, [])
  assert.ok(await world.do({ do: 'untaint', node: victim, incident: fence, key: quarantineKey, because: 'clean', recovers: false }))
  assert.equal(world.taints(), ['theirs'])
})

test('of two out-of-service taints only ours comes off; where there is none of ours the Node is not written, and the clear ends all the same', async () => {
  const theirs = { key: outOfServiceKey, value: 'nodeshutdown', effect: 'NoExecute' }
  for (const ours of [true, false]) {
    const world = edgeWorld()
    world.plantNode(victim, { spec: { taints: [theirs, ...(ours ? [{ key: outOfServiceKey, value: 'holdfast', effect: 'NoSchedule' }] : [])] } })
    await world.plantFence({ step: 'clear' })
    assert.ok(await world.do({ do: 'untaint', node: victim, incident: fence, key: outOfServiceKey, because: 'free', recovers: true }))
    assert.equal(world.observation.row(victim)?.taints, [theirs])
    assert.is(world.stored().status.step, 'recovery')
    assert.is(world.writes.filter((write) => write.path.includes('/nodes/')).length, ours ? 1 : 0)
    assert.is(world.said.length, ours ? 1 : 0)
  }
})

test('out-of-service without the very proof that stands on the record is not set', async () => {
  const world = await fenced()
  const proofs: (Proof | undefined)[] = [undefined, ...[{ boot: 'boot-9/1' }, { level: 1 }, { methods: ['pdu'] }, { digests: ['d9'] }, { kind: 'found-off' as const }, { nodeUid: 'another' }]
    .map((change) => recall({ ...proofRecord({ nodeUid: world.observation.row(victim)?.uid ?? '', digests: ['d1'] }), ...change }))]
  for (const proof of proofs) assert.is(await world.do({ do: 'taint', node: victim, incident: fence, outOfService: true, ...(proof === undefined ? {} : { proof }) }), false, JSON.stringify(proof))
  assert.equal([world.writes, world.taints()], [[], []])
})

test('quarantine alone needs no proof', async () => {
  const world = await opened()
  assert.ok(await world.do({ do: 'taint', node: victim, incident: fence, outOfService: false }))
  assert.equal(world.taints(), [quarantineKey])
})

test('quarantine without an incident is told on the Node itself; out-of-service is never set so', async () => {
  const world = edgeWorld()
  world.plantNode(victim, {})
  assert.is(await world.do({ do: 'taint', node: victim, outOfService: true, proof: recall(proofRecord()) }), false)
  assert.equal(world.logged.map(({ facts, message }) => [facts, message]), [[{ node: victim, incident: undefined, because: 'its proof does not stand on the record' }, 'out-of-service not set']])
  assert.ok(await world.do({ do: 'taint', node: victim, outOfService: false }))
  assert.equal(world.taints(), [quarantineKey])
  assert.match(world.said.map(({ note }) => note).join(), /cut off/)
})

test('nobody taints who does not lead', async () => {
  const world = await opened()
  world.term = undefined
  assert.is(await world.do({ do: 'taint', node: victim, incident: fence, outOfService: false }), false)
  assert.is(await world.do({ do: 'untaint', node: victim, key: quarantineKey, because: 'x', recovers: false }), false)
  assert.equal(world.writes, [])
})

test('somebody else wrote the Node meanwhile: nothing is written or recorded, and the Node is read again', async () => {
  const world = await opened()
  const person = world.server.transportFor({ name: 'a person', groups: ['system:masters'] })
  await person({ method: 'PATCH', path: `/api/v1/nodes/${victim}`, headers: { 'content-type': 'application/merge-patch+json' }, body: '{"spec":{"unschedulable":true},"metadata":{"labels":{"new":"one"}}}' }, new AbortController().signal)
  assert.is(await world.do({ do: 'taint', node: victim, incident: fence, outOfService: false }), false)
  assert.equal([world.taints(), world.stored().status.timeline], [[], []])
  assert.is(world.observation.row(victim)?.labels['new'], 'one')
  assert.ok(await world.do({ do: 'taint', node: victim, incident: fence, outOfService: false }))
})

test('taking out-of-service off at the end of the clear begins the recovery; taking it off for another reason does not', async () => {
  for (const recovers of [true, false]) {
    const world = edgeWorld()
    world.plantNode(victim, { spec: { taints: [{ key: outOfServiceKey, value: 'holdfast', effect: 'NoSchedule' }] } })
    await world.plantFence({ phase: 'Running', step: 'clear' })
    assert.ok(await world.do({ do: 'untaint', node: victim, incident: fence, key: outOfServiceKey, because: 'x', recovers }))
    assert.is(world.stored().status.step, recovers ? 'recovery' : 'clear')
    assert.equal(world.taints(), [])
  }
})

test.run()
