// A pod is freed by two writes: the one that dooms it, on which its owner replaces it, and the deletion of its object. What if
// nobody makes the second one, and then the boot that was proven off is heard, because its device had lied?
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { settled } from '../../sim/stage.ts'
import { ended, ourTaints, peace, theIncident, workload, type Play } from './play.ts'

const test = suite('half freed')

const ways = ['the leader is killed between the two writes', 'no deletion reaches the API server until the proof is void'] as const

/** Pods of the victim that were doomed and never deleted. */
async function halfFreed(on: Play) {
  return (await workload(on)).filter((pod) => on.pods.includes(pod.metadata.uid ?? '') && pod.status.phase === 'Failed')
}

/** Pods that have written the volume in the last seconds. */
function writersNow(on: Play, volume: string): readonly string[] {
  const since = on.world.clock.now() - 5_000
  return [...new Set(on.world.judges.writersOf(volume).filter((stretch) => stretch.lastAt >= since).map((stretch) => stretch.podUid))]
}

async function halfway(way: typeof ways[number]): Promise<Play> {
  const on = await peace({ seed: way === ways[0] ? 41 : 42 })
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(device && on.world.server)
  device.fault = { does: 'lie' }
  on.world.server.faults.set([{ does: 'unreachable', strikes: ({ user, method, path }) => user.name.endsWith(':holdfast-coordinator') && method === 'DELETE' && path.includes('/pods/') }])
  const heal = on.world.isolate(on.victim)
  await on.until('pods are doomed', async () => (await halfFreed(on)).length > 0, 60_000)
  await on.run(50)
  const leader = on.leader()
  assert.ok(leader !== undefined)
  if (way === ways[0]) {
    on.world.killReplica(leader)
    on.world.clock.after(20_000, () => on.world.startReplica(leader))
  }
  heal()
  await on.until('the proof is void', async () => ((await theIncident(on))?.status.voided.length ?? 0) > 0, 30_000)
  on.world.server.faults.clear()
  return on
}

for (const way of ways) {
  test(`${way}: as long as the old pods may run beside their successors the node is quarantined, and it says for what`, async () => {
    const on = await halfway(way)
    await on.run(180_000)
    const left = await halfFreed(on)
    assert.ok(left.length > 0, 'nobody deletes them')
    assert.is(writersNow(on, 'vol-web').length, 2, 'which is what it is about')
    const incident = await theIncident(on)
    assert.is(incident?.status.phase, 'Done')
    assert.match(incident?.status.holds.find((hold) => hold.because === 'waiting-for-clean')?.detail ?? '', /left over on/)
    assert.equal(await ourTaints(on), [`${on.victim} holdfast.dev/quarantine`])

    for (const { metadata } of left) {
      const gone = await settled(on.world, on.world.api.remove(`/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}`, {}))
      assert.ok(gone.ok, 'a person deletes it')
    }
    assert.is((await ended(on, 120_000)).status.outcome, 'Void')
    await on.run(10_000)
    assert.equal(['vol-web', 'vol-data-db-0'].map((volume) => writersNow(on, volume).length), [1, 1])
    assert.equal(await ourTaints(on), [])
  })
}

test.run()
