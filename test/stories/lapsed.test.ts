// A proof whose device falls silent for good frees nothing more by itself, and is not the end: the next level, the same one once it
// answers, or a person makes another; and where nothing is left to free, nobody needs its word.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { fencesPath } from '../../coordinator/node-fence.ts'
import type { Power } from '../../sim/world/power.ts'
import { settled } from '../../sim/stage.ts'
import { ended, findings, happened, ourTaints, peace, steps, theIncident, workload, workloadRuns, type Play } from './play.ts'

const test = suite('lapsed')

/** Cut off from the network, ordered off and proven so; and its controller has said its last word before anything was freed. */
async function mute(seed: number, power: Power): Promise<Play> {
  const on = await peace({ seed, power })
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(device)
  on.world.server?.faults.set([{ does: 'answer', status: 503, strikes: ({ method, path }) => method === 'GET' && path.startsWith('/api/v1/pods') }])
  on.world.isolate(on.victim)
  await on.until('it is proven', async () => (await theIncident(on))?.status.proof !== undefined, 60_000)
  device.fault = { does: 'hang' }
  await on.run(5_000)
  on.world.server?.faults.clear()
  assert.equal((await gone(on)), [], 'nothing is freed yet')
  return on
}

async function gone(on: Play): Promise<readonly string[]> {
  const uids = workload(on).map((pod) => pod.metadata.uid)
  return on.pods.filter((uid) => !uids.includes(uid))
}

test('the next level is ordered off and proves anew; until then nothing is freed', async () => {
  const on = await mute(131, 'bmc, then outlet')
  await on.until('the proof has lapsed', async () => steps(await theIncident(on) ?? assert.unreachable() as never).includes('proof lapsed'), 90_000)
  assert.equal(await gone(on), [])
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 180_000)
  const { status } = await theIncident(on) ?? assert.unreachable('there is one') as never
  assert.equal([status.proof?.level, status.voided.map(({ how, proof }) => [how, proof.level])], [1, [['lapsed', 0]]])
  on.world.heal()
  for (const device of on.world.devices.values()) device.heal()
  const incident = await ended(on, 900_000)
  assert.is(incident.status.outcome, 'Recovered')
  assert.equal([findings(on), ourTaints(on)], [[], []])
})

test('a level that answers again proves anew by itself, and the leader may be killed in between', async () => {
  const on = await mute(132, 'bmc')
  await on.until('the proof has lapsed', async () => steps(await theIncident(on) ?? assert.unreachable() as never).includes('proof lapsed'), 90_000)
  await on.run(60_000)
  const held = (await theIncident(on))?.status.holds ?? []
  assert.match(held.map(({ detail }) => detail).join(), /bmc-off does not answer/)
  assert.match(held.map(({ lifts }) => lifts).join(), /spec\.acknowledge/)
  assert.equal([await gone(on), ourTaints(on)], [[], [`${on.victim} holdfast.dev/quarantine`]], 'out-of-service does not stand without a proof')
  on.world.killReplica(on.leader() ?? 0)
  const device = on.world.devices.get(`bmc-${on.victim}`)
  if (device !== undefined) device.fault = undefined
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 300_000)
  on.world.heal()
  const incident = await ended(on, 900_000)
  assert.is(incident.status.outcome, 'Recovered')
  assert.equal(findings(on), [])
})

test('with no level left a person\'s word proves', async () => {
  const on = await mute(133, 'bmc')
  await on.until('the proof has lapsed', async () => steps(await theIncident(on) ?? assert.unreachable() as never).includes('proof lapsed'), 90_000)
  const incident = await theIncident(on) ?? assert.unreachable() as never
  const until = new Date(on.world.clock.wall() + 600_000).toISOString()
  const word = { boot: incident.boot, by: 'on call', reason: 'its plugs are in my hand', until }
  assert.ok((await settled(on.world, on.world.api.patch<KubeObject>(`${fencesPath}/${incident.name}`, 'merge', { spec: { acknowledge: word } }))).ok)
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 180_000)
  assert.is((await theIncident(on))?.status.proof?.kind, 'vouched')
  assert.equal(findings(on), [])
})

test('somebody switches it on while its proof has lapsed: a new boot ends the incident, and nothing is freed by force', async () => {
  const on = await mute(134, 'bmc')
  await on.until('the proof has lapsed', async () => steps(await theIncident(on) ?? assert.unreachable() as never).includes('proof lapsed'), 90_000)
  on.world.heal()
  on.world.powerOn(on.victim)
  await on.run(120_000)
  const device = on.world.devices.get(`bmc-${on.victim}`)
  if (device !== undefined) device.fault = undefined
  const incident = await ended(on, 600_000)
  assert.is(incident.status.outcome, 'Recovered')
  assert.equal([incident.status.pods, findings(on), ourTaints(on)], [[], [], []])
})

test('all is free when it falls silent: its word is not waited for', async () => {
  const on = await peace({ seed: 135 })
  on.world.csi.settings.detachFault = 'stuck'
  on.world.isolate(on.victim)
  await on.until('its pods are freed', async () => (await gone(on)).length === on.pods.length, 120_000)
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(device)
  device.fault = { does: 'hang' }
  on.world.csi.settings.detachFault = 'none'
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 180_000)
  await on.until('recovery has begun', async () => (await theIncident(on))?.status.step === 'recovery', 120_000)
  assert.equal(happened(on, 'machine booted').length, 0)
  on.world.heal()
  device.fault = undefined
  const incident = await ended(on, 900_000)
  assert.is(incident.status.outcome, 'Recovered')
  assert.equal(findings(on), [])
})

test('a path that was mute says on of a machine that another one called off: once it had the time to boot it is ordered off by that path, and proven', async () => {
  const on = await peace({ seed: 136, power: 'bmc, then outlet', policy: { bootWithin: '60s' } })
  const { world, victim } = on
  const [controller, strip] = [world.devices.get(`bmc-${victim}`), [...world.devices.values()].find(({ plugs }) => plugs.has(victim))]
  assert.ok(controller !== undefined && strip !== undefined)
  controller.fault = { does: 'hang' }
  strip.fault = { does: 'lie' }
  world.server?.faults.set([{ does: 'answer', status: 500, strikes: ({ method, path, user }) => method !== 'GET' && path.includes('/pods/') && user.name.includes('coordinator') }])
  world.isolate(victim)
  await on.until('it is proven', async () => (await theIncident(on))?.status.proof?.level === 1, 120_000)
  controller.fault = undefined
  await on.until('that is doubted', async () => (await theIncident(on))?.status.holds.some(({ because }) => because === 'proof-doubted') === true, 30_000)
  world.server?.faults.clear()
  await on.until('the proof has lapsed', async () => steps(await theIncident(on) ?? assert.unreachable() as never).includes('proof lapsed'), 90_000)
  assert.equal(await gone(on), [], 'nothing is freed while it runs')
  await on.until('the workload runs elsewhere', () => workloadRuns(on, victim), 180_000)
  const { status } = await theIncident(on) ?? assert.unreachable('there is one') as never
  assert.equal([status.proof?.level, status.voided.map(({ how, proof }) => [how, proof.level])], [0, [['lapsed', 1]]])
  world.heal()
  for (const device of world.devices.values()) device.heal()
  assert.is((await ended(on, 900_000)).status.outcome, 'Recovered')
  assert.equal([findings(on), ourTaints(on)], [[], []])
})

test.run()
