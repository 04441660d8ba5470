// A proof on record that two were joined to: a batch may stand on either part of it, and on nothing that is not there.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { ProofRecord } from '../../core/incident.ts'
import { partsOf, recall, type Proof } from '../../core/proof.ts'
import { attempt, proofRecord } from '../core/world.ts'
import { edgeWorld, fence, turned, victim, type EdgeWorld } from './edge-world.ts'

const test = suite('deed: joined')

async function proven(): Promise<{ readonly world: EdgeWorld; readonly proof: Proof }> {
  const world = edgeWorld()
  const { metadata: { uid: nodeUid = '' } } = world.plantNode()
  const at = '2026-01-01T00:00:14.000Z'
  const both: ProofRecord = { ...proofRecord({ kind: 'isolated', at, nodeUid, digests: ['d1'] }), joined: { kind: 'safe-detach', at, evidence: [{ source: 'CSIDriver disk.example.com', word: 'refuses', at }] } }
  await turned(world.clock, world.plantFence({ phase: 'Running', step: 'clear', attempts: [attempt()], proof: both }))
  world.read('off')
  return { world, proof: recall(both) }
}

async function frees(world: EdgeWorld, proof: Proof, name = 'db-0'): Promise<boolean> {
  return turned(world.clock, world.do({ do: 'delete', node: victim, incident: fence, pods: [world.plantPod(name)], proof }))
}

test('it is read back as it was written', async () => {
  const { world, proof } = await proven()
  assert.equal(world.stored().status.proof, proof)
})

test('the part that its devices bear out frees, though the other is not borne out', async () => {
  const { world, proof } = await proven()
  const [isolated] = partsOf(proof)
  assert.ok(isolated !== undefined && await frees(world, isolated))
})

test('the whole frees nothing then, nor does the other part, nor a part that is not on the record', async () => {
  const { world, proof } = await proven()
  const [isolated, refusing] = partsOf(proof)
  const wrong = { whole: proof, other: refusing, forged: isolated && { ...isolated, methods: ['another'] } }
  for (const [name, one] of Object.entries(wrong)) assert.is(one && await frees(world, one, name), false, name)
  assert.is(world.pods().length, 3)
})

test.run()
