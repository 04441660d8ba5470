import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { pruner } from '../../coordinator/pruning.ts'
import { silentLog } from '../../edge/log.ts'
import { record } from '../core/world.ts'
import { edgeWorld, fence, turned, type EdgeWorld } from './edge-world.ts'

const test = suite('pruning')

const month = 31 * 24 * 3_600_000

/** An incident that ended a month ago, and a record of a node that is not there. */
async function old(ready = true): Promise<{ world: EdgeWorld; prune: () => Promise<number> }> {
  const world = edgeWorld()
  world.plantNode()
  const at = new Date(world.clock.wall() - month).toISOString()
  await world.plantFence({ phase: 'Final', outcome: 'Recovered', timeline: [{ at, what: 'closed', detail: '' }] })
  const { probe: _probe, ...facts } = record({ paths: [] })
  world.plantRecord(facts)
  world.observation.record('node-9', facts)
  const { api, clock, observation } = world
  world.writes.length = 0
  return { world, prune: pruner({ api, clock, log: silentLog, observation, leads: () => world.term, ready: () => ready }) }
}

test('what is over for long is deleted under its uid and version, and the record of a node that is there stays', async () => {
  const { world, prune } = await old()
  const { uid, resourceVersion } = world.stored()
  assert.is(await turned(world.clock, prune()), 1)
  assert.equal(world.writes.map(({ method, path }) => `${method} ${path.split('/').slice(-2).join('/')}`), [`DELETE nodefences/${fence}`, 'DELETE noderecords/node-9'])
  assert.equal(Object(world.writes[0]?.body).preconditions, { uid, resourceVersion })
  assert.equal([world.server.peek('nodefences.holdfast.dev').length, world.server.peek('noderecords.holdfast.dev').length], [0, 1])
})

test('nothing is deleted by who does not lead, or has not seen all yet', async () => {
  const follower = await old()
  follower.world.term = undefined
  assert.is(await turned(follower.world.clock, follower.prune()), 0)
  const beginner = await old(false)
  assert.is(await turned(beginner.world.clock, beginner.prune()), 0)
  assert.equal([follower.world.writes, beginner.world.writes], [[], []])
})

test.run()
