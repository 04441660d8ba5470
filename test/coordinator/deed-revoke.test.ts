// Taking back a permit: by what the NodeRecord says at that moment, and by nothing older.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createApi, type KubeObject } from '../../coordinator/api.ts'
import { fencesPath } from '../../coordinator/node-fence.ts'
import { recordBody, recordsPath } from '../../coordinator/node-record.ts'
import type { NodeRecord } from '../../core/model.ts'
import type { WatchdogKept } from '../../core/watchdog.ts'
import { admin } from '../../sim/api-server/server.ts'
import { beat, boot, policy } from '../core/world.ts'
import { edgeWorld, fence, turned, victim, type EdgeWorld } from './edge-world.ts'

const test = suite('deed: revoke')

const watchdog: WatchdogKept = { boot, state: 'armed', identity: 'i6300ESB timer', timeout: 30_000, panic: 0, machine: 'real', epoch: 1, memberships: [{ epoch: 1, agents: ['node-1'], replicas: ['replica-0'] }] }

async function dogged(changes: Partial<WatchdogKept> = {}): Promise<EdgeWorld> {
  const world = edgeWorld()
  const planted = world.plantNode()
  const nodeUid = planted.metadata.uid ?? ''
  world.plantRecord({ resourceVersion: '', nodeUid, boot, machine: 'machine-2', paths: [], watchdog: { ...watchdog, ...changes } })
  await turned(world.clock, world.plantFence({ phase: 'Running' }, { nodeUid, policy: { ...policy, giveUp: 'watchdog', selfFenced: 'accept' } }))
  return world
}

const revoke = (world: EdgeWorld): Promise<boolean> => turned(world.clock, world.do({ do: 'revoke', node: victim, incident: fence }))
const person = (world: EdgeWorld) => createApi({ clock: world.clock, transport: world.server.transportFor(admin) })

test('it stands on the NodeFence by value, and is said', async () => {
  const world = await dogged()
  assert.is(await revoke(world), true)
  const { revoked, phase, step, timeline } = world.stored().status
  assert.equal([revoked?.boot, revoked?.watchdog, phase, step, timeline.at(-1)?.what], [boot, watchdog, 'Running', 'power-management', 'permit revoked'])
  assert.equal(world.said.map(({ reason }) => reason), ['PermitRevoked'])
})

test('once is enough, and what stands there is not replaced', async () => {
  const world = await dogged()
  await revoke(world)
  const before = world.stored().status
  await revoke(world)
  assert.equal([world.stored().status.revoked, world.stored().status.timeline.length], [before.revoked, before.timeline.length])
})

test('a watchdog that was let go of while the watch slept proves nothing', async () => {
  const world = await dogged()
  const kept = world.record()
  if (kept === undefined) return assert.unreachable('it was planted')
  const { resourceVersion, ...facts } = kept
  const later: Omit<NodeRecord, 'resourceVersion'> = { ...facts, watchdog: { ...watchdog, state: 'unarmed' } }
  assert.ok((await turned(world.clock, person(world).replace<KubeObject>(`${recordsPath}/${victim}`, recordBody(victim, later, world.clock.wall(), resourceVersion)))).ok)
  assert.is(await revoke(world), false)
  assert.equal([world.stored().status.revoked, world.said.length], [undefined, 0])
})

test('without an answer of the API server, or by one who does not lead, nothing is taken back', async () => {
  const away = await dogged()
  away.server.faults.set([{ does: 'answer', status: 503, strikes: ({ path, method }) => method === 'GET' && path.startsWith(recordsPath) }])
  assert.is(await revoke(away), false)
  const deposed = await dogged()
  deposed.term = undefined
  assert.is(await revoke(deposed), false)
  for (const world of [away, deposed]) assert.is(world.stored().status.revoked, undefined)
})

test('a node that is heard while its record is read keeps its permit', async () => {
  const world = await dogged()
  world.asked = ({ path }) => {
    if (path.startsWith(recordsPath)) world.beats.set(victim, beat({ at: world.clock.now() + 1 }))
  }
  assert.is(await revoke(world), false)
  assert.is(world.stored().status.revoked, undefined)
})

test('an abort that the watch has not brought yet is met there', async () => {
  const world = await dogged()
  assert.ok((await turned(world.clock, person(world).patch<KubeObject>(`${fencesPath}/${fence}`, 'merge', { spec: { abort: true } }))).ok)
  await revoke(world)
  assert.is(world.stored().status.revoked, undefined)
})

test.run()
