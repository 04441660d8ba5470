// What a crash kernel's word frees, on the rows of a real observation: a beat ends it, whatever is disregarded of its machine.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { withoutRefusals } from '../../core/dump.ts'
import { recall } from '../../core/proof.ts'
import { beat, proofRecord } from '../core/world.ts'
import { freeing, podWrites } from './deed-world.ts'
import { edgeWorld, fence, turned, victim, type EdgeWorld } from './edge-world.ts'

const test = suite('free by dump')

/** Proven by its crash kernel's word, which refuses since, and everything that could speak was read just now. */
async function crashed(proven = true): Promise<EdgeWorld> {
  const world = edgeWorld()
  const { metadata } = world.plantNode(victim, {
    status: { addresses: [{ type: 'InternalIP', address: '10.0.0.2' }], nodeInfo: { bootID: 'boot-1', systemUUID: 'machine-2' }, conditions: [{ type: 'Ready', status: 'Unknown', lastHeartbeatTime: '2026-01-01T00:00:00Z' }] },
  })
  world.beats.set(victim, beat({ at: 80_000 }))
  world.observation.leased(victim, world.clock.now(), 'then')
  await world.clock.runFor(15_000)
  await world.plantFence(proven ? { phase: 'Running', step: 'clear', proof: proofRecord({ kind: 'kdump', level: -1, methods: [], nodeUid: metadata.uid ?? '' }) } : { phase: 'Running' })
  const now = world.clock.now()
  world.observation.leased(victim, now, 'then')
  world.observation.probed(victim, { askedAt: now, answeredAt: now, word: 'refused' })
  const row = world.observation.row(victim)
  if (row !== undefined) row.readAt = now
  return world
}

test('while nothing speaks its pods are freed, whatever its port refuses', async () => {
  const world = await crashed()
  assert.ok(await turned(world.clock, world.do(freeing(world, [world.plantPod('db-0')]))))
  assert.equal(podWrites(world).map(({ method }) => method), ['PATCH', 'DELETE'])
})

test('a beat that comes while the batch is written down frees none of it', async () => {
  const world = await crashed()
  const pod = world.plantPod('db-0')
  world.asked = ({ method }) => {
    if (method === 'PUT') world.beats.set(victim, beat({ at: world.clock.now() + 0.5 }))
  }
  world.server.faults.set([{ does: 'slow', by: 10, times: 1 }])
  assert.is(await turned(world.clock, world.do(freeing(world, [pod]))), false)
  assert.equal(podWrites(world), [])
})

test('a proof lapses at once whose node was heard while it was written down, and stands where it was heard before', async () => {
  for (const [after, stands] of [[0.5, false], [-0.5, true]] as const) {
    const world = await crashed(false)
    const proof = recall(proofRecord({ kind: 'kdump', level: -1, methods: [], nodeUid: world.observation.row(victim)?.uid ?? '' }))
    const beganAt = world.clock.now()
    world.asked = ({ method }) => {
      if (method === 'PUT') world.beats.set(victim, beat({ at: beganAt + after }))
    }
    world.server.faults.set([{ does: 'slow', by: 10, times: 1 }])
    assert.ok(await turned(world.clock, world.do({ do: 'prove', node: victim, incident: fence, proof })))
    const { proof: standing, voided } = world.stored().status
    assert.equal([standing?.kind, voided.map(({ how }) => how)], stands ? ['kdump', []] : [undefined, ['lapsed']])
  }
})

test('without its refusals a row tells all else that it told', async () => {
  const row = (await crashed()).observation.row(victim)
  assert.ok(row?.beat !== undefined)
  if (row === undefined) return
  const { probe: _, ...rest } = withoutRefusals(row)
  assert.equal([rest.beat, rest.auditedUntil, withoutRefusals(row).probe?.spokeAt], [row.beat, row.auditedUntil, undefined])
})

test.run()
