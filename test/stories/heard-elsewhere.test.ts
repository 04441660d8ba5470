// A machine that its device called off runs on, and after the proof only another replica can hear it: the leader's own ears stay deaf.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { ended, killLeader, ourTaints, peace, theIncident, type Play } from './play.ts'

const test = suite('heard elsewhere')

/** Cut off from everybody, and proven off by a device that lies; no pod could be freed yet. */
async function provenFalsely(seed: number): Promise<{ readonly on: Play; readonly freed: readonly number[]; readonly heal: () => void }> {
  const on = await peace({ seed })
  const { world, victim } = on
  const device = world.devices.get(`bmc-${victim}`)
  assert.ok(device)
  device.fault = { does: 'lie' }
  const freed: number[] = []
  let works = false
  world.server?.faults.set([{
    does: 'answer', status: 500,
    strikes({ method, path, user }) {
      if (method === 'GET' || !path.includes('/pods/') || !user.name.includes('coordinator')) return false
      freed.push(world.clock.now())
      return !works
    },
  }])
  const end = world.isolate(victim)
  await on.until('a proof', async () => (await theIncident(on))?.status.proof !== undefined, 60_000)
  return { on, freed, heal() {
    works = true
    end()
  } }
}

/** Its own kubelet stays cut off from the API server: nobody tells it that its pods are gone. */
function deafened(on: Play, deaf: readonly string[]): () => void {
  const stops = [
    on.world.partition({ from: [...deaf], to: [on.victim] }),
    on.world.partition({ from: ['*'], to: [on.victim], planes: ['api', 'watch'] }),
  ]
  return () => stops.forEach((stop) => stop())
}

const leaderName = (on: Play): string => on.world.replicas.host(on.leader() ?? 0).name

for (const peers of [false, true]) {
  test(`${peers ? 'a peer that whispers' : 'the other replica'} hears the fenced boot, and its leader does not: nothing more is freed, and the proof is void`, async () => {
    const { on, freed, heal } = await provenFalsely(161)
    const others = ['replica-0', 'replica-1']
    const hears = deafened(on, peers ? others : [leaderName(on), 'node-1', 'node-2', 'node-3'].filter((name) => name !== on.victim))
    heal()
    const heardAt = on.world.clock.now()
    await on.until('the proof is void', async () => (await theIncident(on))?.status.voided.length === 1, 20_000)
    const voidAt = on.world.clock.now()
    await on.run(60_000)
    assert.equal(freed.filter((at) => at > voidAt), [], 'freed after the proof was void')
    assert.ok(voidAt - heardAt < 15_000, `void after ${voidAt - heardAt} ms`)
    assert.equal((ourTaints(on)).filter((taint) => taint.includes('out-of-service')), [])
    hears()
    const incident = await ended(on, 900_000)
    assert.is(incident.status.outcome, 'Void')
    assert.equal(ourTaints(on), [])
  })
}

test('the next leader cannot hear it either, and is told by the one that leads no more', async () => {
  const { on, freed, heal } = await provenFalsely(162)
  const deaf = deafened(on, [leaderName(on) === 'replica-0' ? 'replica-1' : 'replica-0', 'node-1', 'node-2', 'node-3'].filter((name) => name !== on.victim))
  const led = killLeader(on)
  on.world.startReplica(led)
  await on.until('another one leads', () => on.leader() !== undefined && on.leader() !== led, 30_000)
  heal()
  await on.until('the proof is void', async () => (await theIncident(on))?.status.voided.length === 1, 30_000)
  const voidAt = on.world.clock.now()
  await on.run(30_000)
  assert.equal(freed.filter((at) => at > voidAt), [])
  deaf()
  assert.is((await ended(on, 900_000)).status.outcome, 'Void')
})

test.run()
