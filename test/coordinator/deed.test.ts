// Deeds that open, prove, end and record; those that cut or free have files of their own.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { takeIncident } from '../../coordinator/incident.ts'
import type { Deed } from '../../core/action.ts'
import { quarantineKey } from '../../core/clear.ts'
import { recall, type Proof } from '../../core/proof.ts'
import { silentLog } from '../../edge/log.ts'
import { attempt, boot, policy, proofRecord } from '../core/world.ts'
import { fault, fenced, freeing, off, opened, proofOf, record } from './deed-world.ts'
import { edgeWorld, fence, victim } from './edge-world.ts'

const test = suite('deed')

// open

test('an incident is opened with its evidence, its policy by value, and our term', async () => {
  const world = edgeWorld()
  const { metadata } = world.plantNode()
  const deed: Deed = { do: 'open', node: victim, name: fence, boot, cause: 'silence', policy, evidence: [{ source: 'probe', word: 'silent', at: '' }] }
  assert.ok(await world.do(deed))
  const { nodeUid, machine, policy: kept, status } = world.stored()
  assert.equal([nodeUid, machine, kept.name, status.term, status.phase], [metadata.uid, 'machine-2', 'all', 3, 'New'])
  assert.ok(status.timeline[0]?.detail.includes('probe silent'))
  assert.equal(world.said.map((one) => one.reason), ['IncidentOpened'])
  assert.ok(world.observation.seen.incidents.has(fence), 'it is seen before the watch brings it')
})

test('an incident that gives back what is owed does not say that its node is dead', async () => {
  const world = edgeWorld()
  world.plantNode()
  assert.ok(await world.do({ do: 'open', node: victim, name: fence, boot, cause: 'owed', policy, evidence: [{ source: 'feed-b-off', word: 'off', at: '' }] }))
  assert.equal(world.said.map(({ note }) => note), ['what an earlier incident left off of node-2 is switched on again: feed-b-off off'])
})

test('nobody opens an incident who does not lead, nor of a node that is not known, nor a second time', async () => {
  const world = edgeWorld()
  const deed: Deed = { do: 'open', node: victim, name: fence, boot, cause: 'silence', policy, evidence: [] }
  assert.is(await world.do(deed), false)
  world.plantNode()
  world.term = undefined
  assert.is(await world.do(deed), false)
  assert.equal(world.writes, [])
  world.term = 3
  assert.ok(await world.do(deed))
  assert.is(await world.do(deed), false)
  assert.is(world.stored().status.timeline.length, 1)
})

test('an incident that was made and whose status could not be written bears no term: whoever leads adopts it', async () => {
  const world = edgeWorld()
  world.plantNode()
  fault(world, 'answer 500', '/status')
  assert.is(await world.do({ do: 'open', node: victim, name: fence, boot, cause: 'silence', policy, evidence: [] }), false)
  world.server.faults.clear()
  assert.is(world.stored().status.term, 0)
  assert.ok(await world.do({ do: 'adopt', node: victim, incident: fence }))
  assert.is(world.stored().status.term, 3)
})

// proofs

test('a proof is recorded with its evidence and the volumes as they stand', async () => {
  const world = await opened({ phase: 'Running', attempts: [attempt()] })
  const evidence = [100, 1_600].map((ago) => ({ source: 'status bmc-off', word: 'off', at: world.clock.now() - ago }))
  const proof = { ...recall(proofRecord({ nodeUid: world.observation.row(victim)?.uid ?? '' })), evidence: [...evidence, { source: 'audit bmc-off', word: 'on', at: '' }] } as Proof // as the core makes them
  assert.ok(await world.do({ do: 'prove', node: victim, incident: fence, proof }))
  const { status } = world.stored()
  assert.equal([status.step, status.proof?.kind, status.proof?.evidence[0]?.word], ['clear', 'off', 'off'])
  const wall = world.clock.wall()
  assert.equal(status.proof?.evidence.map((one) => wall - Date.parse(one.at)), [100, 1_600, 0], 'when each was read, and of what says no time when it was written')
})

test('a proof of another Node of this name is not recorded', async () => {
  const world = await opened()
  assert.is(await world.do({ do: 'prove', node: victim, incident: fence, proof: recall(proofRecord({ nodeUid: 'another' })) }), false)
  assert.equal(world.writes, [])
})

const voided: Deed = { do: 'void', node: victim, incident: fence, evidence: 'it answered' }

test('a proof that was shown false comes off the record, and a person is told', async () => {
  const world = await fenced()
  assert.ok(await world.do(voided))
  const { status } = world.stored()
  assert.equal([status.proof, status.voided.length, status.step], [undefined, 1, 'power-management'])
  assert.ok(world.logged.some((one) => one.level === 'error'))
  assert.equal(world.said.map(({ reason }) => reason), ['ProofVoid'])
})

// ends

test('an incident that is withdrawn is Done, one that is closed is Final with its outcome and without holds', async () => {
  const world = await opened({ phase: 'Running', holds: [{ because: 'not-dead', detail: '', lifts: '', since: '2026-01-01T00:00:00.000Z' }] })
  assert.ok(await world.do({ do: 'withdraw', node: victim, incident: fence, because: 'heard again' }))
  assert.equal([world.stored().status.phase, world.stored().status.step], ['Done', 'recovery'])
  assert.ok(await world.do({ do: 'close', node: victim, incident: fence, outcome: 'Withdrawn', because: 'well' }))
  assert.equal([world.stored().status.phase, world.stored().status.outcome, world.stored().status.holds], ['Final', 'Withdrawn', []])
  assert.equal(world.said.map((one) => one.reason), ['Withdrawn', 'IncidentClosed'])
})

test('the incident of a Node that is gone, or was never seen here, is closed all the same, and that is told', async () => {
  for (const seen of [true, false]) {
    const world = await opened()
    const { nodeUid } = world.stored()
    world.observation.nodeGone(victim)
    if (!seen) {
      world.observation.incidentGone(fence)
      world.observation.incident(world.stored())
    }
    assert.ok(await world.do({ do: 'close', node: victim, incident: fence, outcome: 'NodeDeleted', because: 'gone' }))
    assert.is(world.stored().status.phase, 'Final')
    assert.equal(world.said.map((one) => [one.reason, one.type, one.regarding.uid]), [['IncidentClosed', 'Normal', nodeUid], ['SweptUnproven', 'Warning', nodeUid]])
  }
})

// what cannot be read

test('a NodeFence that another version wrote, and this one cannot read: nothing at all is done on its node until it can', async () => {
  const world = await fenced()
  const proof = proofOf(world)
  const pod = world.plantPod('db-0')
  const stored = world.server.peek('nodefences.holdfast.dev')[0] as KubeObject & { status: object } // as planted
  takeIncident({ ...stored, status: { ...stored.status, phase: 'Thinking' } } as KubeObject, world.observation, silentLog, 'watch')
  const deeds: Deed[] = [
    off, { ...off, do: 'restore' }, freeing(world, [pod], proof), { do: 'taint', node: victim, incident: fence, outOfService: true, proof }, { do: 'untaint', node: victim, key: quarantineKey, because: 'x', recovers: false },
    { do: 'open', node: victim, name: 'node-2-abc-2', boot, cause: 'silence', policy, evidence: [] }, { do: 'withdraw', node: victim, incident: fence, because: 'x' },
    { do: 'close', node: victim, incident: fence, outcome: 'Withdrawn', because: 'x' }, { do: 'adopt', node: victim, incident: fence }, { do: 'prove', node: victim, incident: fence, proof },
  ]
  for (const deed of deeds) assert.is(await world.do(deed), false, deed.do)
  assert.equal([world.writes, world.runs], [[], []])
  takeIncident(stored, world.observation, silentLog, 'watch')
  assert.ok(await world.do({ do: 'withdraw', node: victim, incident: fence, because: 'x' }))
})

// records

test('what was learned of a node is written whole, and over the version that is known', async () => {
  const world = edgeWorld()
  world.plantNode()
  const { resourceVersion: _, ...facts } = record()
  assert.ok(await world.do({ do: 'record', node: victim, record: facts }))
  assert.is(world.record()?.boot, boot)
  assert.ok(await world.do({ do: 'record', node: victim, record: { ...facts, boot: 'boot-2/900' } }))
  assert.equal(world.writes.map((write) => write.method), ['POST', 'PUT'])
  assert.is(world.observation.row(victim)?.record?.boot, 'boot-2/900')
})

test('another one wrote it first: nothing of ours is written, and what stands there is known from then on', async () => {
  const world = edgeWorld()
  world.plantNode()
  world.plantRecord(record({ machine: 'theirs' }))
  world.observation.record(victim, undefined)
  const { resourceVersion: _, ...facts } = record()
  assert.is(await world.do({ do: 'record', node: victim, record: facts }), false)
  assert.equal([world.record()?.machine, world.observation.row(victim)?.record?.machine], ['theirs', 'theirs'])
})

test('nobody writes a record who does not lead', async () => {
  const world = edgeWorld()
  world.plantNode()
  world.term = undefined
  const { resourceVersion: _, ...facts } = record()
  assert.is(await world.do({ do: 'record', node: victim, record: facts }), false)
  assert.equal(world.writes, [])
})

test.run()
