// A pod is freed by two writes: the one that dooms it, on which its owner replaces it, and the deletion of its object. What if
// nobody makes the second one, and then the boot that was proven off is heard, because its device had lied, or a new one is?
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Fault } from '../../sim/api-server/faults.ts'
import { settled } from '../../sim/stage.ts'
import { ended, findings, ourTaints, peace, theIncident, workload, workloadRuns, type Play } from './play.ts'

const test = suite('half freed')

const ways = ['the leader is killed between the two writes', 'no deletion reaches the API server until the proof is void'] as const

const noDeletion: Fault = { does: 'unreachable', strikes: ({ user, method, path }) => user.name.endsWith(':holdfast-coordinator') && method === 'DELETE' && path.includes('/pods/') }

/** Pods of the victim that were doomed and never deleted. */
async function halfFreed(on: Play) {
  return workload(on).filter((pod) => on.pods.includes(pod.metadata.uid ?? '') && pod.status.phase === 'Failed')
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
  on.world.server.faults.set([noDeletion])
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
  test(`${way}: their objects go as soon as the proof is void, so that kubelet stops them, and the node is quarantined until it has`, async () => {
    const on = await halfway(way)
    await on.run(2_000)
    assert.equal(await halfFreed(on), [])
    assert.equal(ourTaints(on), [`${on.victim} holdfast.dev/quarantine`])
    assert.is((await ended(on, 300_000)).status.outcome, 'Void')
    assert.equal(on.world.judges.twoWriters(), [], 'the old pods are stopped before their successors write')
    await on.run(10_000)
    assert.equal(['vol-web', 'vol-data-db-0'].map((volume) => writersNow(on, volume).length), [1, 1])
    assert.equal(ourTaints(on), [])
  })
}

test('power returns between the two writes: what was doomed runs in no boot, and its object goes before the end', async () => {
  const on = await peace({ seed: 43 })
  assert.ok(on.world.server)
  on.world.server.faults.set([noDeletion])
  on.world.cutPower(on.victim)
  await on.until('pods are doomed', async () => (await halfFreed(on)).length > 0, 60_000)
  on.world.powerOn(on.victim)
  await on.run(5_000)
  on.world.server.faults.clear()
  assert.is((await ended(on, 300_000)).status.outcome, 'Recovered')
  assert.equal(await halfFreed(on), [])
  assert.equal(ourTaints(on), [])
  assert.equal(findings(on), [])
})

test('its Node is deleted between the two writes: the incident ends, and Kubernetes sweeps what was doomed within two minutes', async () => {
  const on = await peace({ seed: 44 })
  assert.ok(on.world.server)
  on.world.server.faults.set([noDeletion])
  on.world.cutPower(on.victim)
  await on.until('pods are doomed', async () => (await halfFreed(on)).length > 0, 60_000)
  const removed = await settled(on.world, on.world.api.remove(`/api/v1/nodes/${on.victim}`))
  assert.ok(removed.ok)
  assert.is((await ended(on, 300_000)).status.outcome, 'NodeDeleted')
  await on.until('nothing doomed is left', async () => (await halfFreed(on)).length === 0, 120_000)
  await on.until('the workload runs elsewhere, once Kubernetes has detached by its own clock', () => workloadRuns(on, on.victim), 480_000)
  assert.equal(findings(on), [])
})

test.run()
