// A path whose proof was shown false is marked on the NodeRecord by whoever leads, as soon as the API server takes the write: the
// NodeFence that bears the false proof is all that has to be remembered.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { fencesPath } from '../../coordinator/node-fence.ts'
import { readRecord } from '../../coordinator/node-record.ts'
import { settled } from '../../sim/stage.ts'
import { ended, killLeader, peace, theIncident, type Play } from './play.ts'

const test = suite('marked')

function marks(on: Play): readonly string[] {
  const object = on.world.server?.peek('noderecords.holdfast.dev').find(({ metadata }) => metadata.name === on.victim)
  const read = object === undefined ? undefined : readRecord(object)
  return read?.ok === true ? read.record.paths.map(({ method, state }) => `${method} ${state}`) : []
}

for (const killed of [false, true]) {
  test(`its record is refused for a while${killed ? ', and the leader that voided the proof is killed meanwhile' : ''}: the path is marked in the end`, async () => {
    const on = await peace({ seed: killed ? 94 : 95 })
    on.world.hibernate(on.victim)
    on.world.server?.faults.set([{ does: 'answer', status: 503, strikes: ({ method, path }) => method !== 'GET' && path.includes('/noderecords') }])
    await on.until('the proof is void', async () => ((await theIncident(on))?.status.voided.length ?? 0) > 0, 300_000)
    if (killed) killLeader(on)
    await on.run(10_000)
    assert.equal(marks(on), ['bmc-off verified'], 'nobody could write it')
    on.world.server?.faults.clear()
    await on.until('the path is marked', () => marks(on).join() === 'bmc-off marked', 30_000)
    await ended(on, 300_000)
    assert.equal(marks(on), ['bmc-off marked'])
  })
}

test('its NodeFence is deleted before the void of its proof could be written: the path is marked all the same', async () => {
  const on = await peace({ seed: 96 })
  const { world, victim } = on
  const goesOn = () => world.truth.entries.some(({ what }) => what === 'machine thawed')
  world.server?.faults.set([{ does: 'answer', status: 503, strikes: ({ method, path }) => method === 'PUT' && path.includes('/nodefences/') && goesOn() }])
  world.hibernate(victim)
  await on.until('it goes on', goesOn, 300_000)
  await on.run(15_000)
  const name = (await theIncident(on))?.name
  assert.is((await theIncident(on))?.status.voided.length, 0)
  world.server?.faults.clear()
  assert.ok((await settled(world, world.api.remove(`${fencesPath}/${name}`))).ok)
  await on.run(10_000)
  assert.equal(marks(on), ['bmc-off marked'])
})

test.run()
