// The storage of a node hears it still, when nobody else does: whoever watches the storage posts that on the Node.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { ended, findings, ourTaints, peace, programs, theIncident, transcript, workloadRuns, type Play } from './play.ts'

const test = suite('storage hears')

const hears = 'StorageHears'
const asks = { policy: { profile: 'fast', brakes: { skipIfStorageHears: hears } } } as const

/** Every ten seconds, as long as it is not stopped. */
function watchStorage({ world, victim }: Play, isHeard: () => boolean): () => void {
  let posts = 0
  let stopped = false
  const post = (): void => {
    if (stopped) return
    posts += 1
    const condition = { type: hears, status: isHeard() ? 'True' : 'False', lastHeartbeatTime: new Date(world.clock.wall()).toISOString(), reason: 'Sessions', message: `look ${posts}` }
    void world.api.patch(`/api/v1/nodes/${victim}/status`, 'strategic', { status: { conditions: [condition] } })
    world.clock.after(10_000, post)
  }
  post()
  return () => { stopped = true }
}

const held = async (on: Play): Promise<readonly string[]> => (await theIncident(on))?.status.holds.map(({ because, detail }) => `${because}: ${detail}`) ?? []

test('its network is cut and its storage hears it: it is held and not switched off, until its kernel stands still too', async () => {
  const on = await peace({ seed: 231, ...asks })
  let session = true
  watchStorage(on, () => session)
  await on.run(15_000)
  on.world.isolate(on.victim)
  await on.until('it is held', async () => (await held(on)).some((text) => text.startsWith('storage: its storage still hears')), 30_000)
  await on.run(120_000)
  assert.equal([programs(on, 'off'), findings(on)], [0, []])
  on.world.freeze(on.victim)
  session = false
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 90_000)
  assert.ok(programs(on, 'off') > 0)
  assert.equal(findings(on), [])
})

test('its network comes back: nothing was done to it', async () => {
  const on = await peace({ seed: 232, ...asks })
  watchStorage(on, () => true)
  await on.run(15_000)
  const heal = on.world.isolate(on.victim)
  await on.run(60_000)
  heal()
  const incident = await ended(on, 120_000)
  assert.is(incident.status.outcome, 'Withdrawn', transcript(incident))
  assert.equal([programs(on, 'off'), findings(on), ourTaints(on)], [0, [], []])
})

test('whoever watches the storage dies with the node: after half a minute its word is worth nothing', async () => {
  const on = await peace({ seed: 233, ...asks })
  const stop = watchStorage(on, () => true)
  await on.run(15_000)
  stop()
  on.world.freeze(on.victim)
  await on.run(15_000)
  assert.is(programs(on, 'off'), 0)
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 90_000)
  assert.equal(findings(on), [])
})

test.run()
