// An abort that the watch has not brought yet: each write on the NodeFence meets it there, before a device is touched or a proof stands.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createApi, type KubeObject } from '../../coordinator/api.ts'
import { fencesPath } from '../../coordinator/node-fence.ts'
import { recall } from '../../core/proof.ts'
import { admin } from '../../sim/api-server/server.ts'
import { method, proofRecord } from '../core/world.ts'
import { edgeWorld, fence, turned, victim, type EdgeWorld } from './edge-world.ts'

const test = suite('deed: abort')

async function aborted(): Promise<EdgeWorld> {
  const world = edgeWorld()
  world.plantNode()
  await turned(world.clock, world.plantFence())
  const person = createApi({ clock: world.clock, transport: world.server.transportFor(admin) })
  const patched = await turned(world.clock, person.patch<KubeObject>(`${fencesPath}/${fence}`, 'merge', { spec: { abort: true } }))
  assert.ok(patched.ok)
  assert.is(world.observation.seen.incidents.get(fence)?.abort, false, 'the watch has not brought it')
  return world
}

test('an order that was decided before it is not given', async () => {
  const world = await aborted()
  await turned(world.clock, world.do({ do: 'fence', node: victim, incident: fence, method, level: 0, round: 1 }))
  assert.equal(world.runs, [])
  assert.equal(world.stored().status.attempts.map(({ result, reason }) => [result, reason]), [['not-given', 'a person aborted it']])
})

test('but what was cut is switched on', async () => {
  const world = await aborted()
  await turned(world.clock, world.do({ do: 'restore', node: victim, incident: fence, method, level: 0, round: 1 }))
  assert.equal(world.runs.map(({ action }) => action), ['on'])
})

test('a proof that was made before it is not written', async () => {
  const world = await aborted()
  const proof = recall(proofRecord({ nodeUid: world.observation.row(victim)?.uid ?? '' }))
  assert.is(await turned(world.clock, world.do({ do: 'prove', node: victim, incident: fence, proof })), false)
  assert.is(world.stored().status.proof, undefined)
  assert.equal(world.said, [])
})

test.run()
