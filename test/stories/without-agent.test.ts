// A node on which no agent ever ran: judged at Kubernetes' own pace, fenced like any other, and back by its kubelet's word.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readRecord } from '../../coordinator/node-record.ts'
import type { Incident } from '../../core/incident.ts'
import { isKubeletsWord } from '../../core/model.ts'
import { ended, findings, ourTaints, peace, theIncident, transcript, workloadRuns, type Play } from './play.ts'

const test = suite('without an agent')

/** The node of the set's pod, in the world of this seed. */
async function played(seed: number): Promise<Play> {
  const { victim, world } = await peace({ seed })
  world.stop()
  const on = await peace({ seed, before: ({ killAgent, nodes }) => { for (const name of nodes.keys()) if (name === victim) killAgent(name) } })
  assert.is(on.victim, victim)
  return on
}

test('its kernel freezes: ordered off, cleared, switched on, and back once an agent would have been heard', async () => {
  const on = await played(1)
  await on.run(150_000)
  on.world.freeze(on.victim)
  const incident = await ended(on, 900_000)
  assert.equal([incident.status.outcome, incident.status.proof?.kind], ['Recovered', 'off'])
  assert.equal([findings(on), ourTaints(on)], [[], []])
  await on.until('the workload runs', () => workloadRuns(on), 60_000)
})

test('its network is cut and comes back before it is proven off: nothing is done to it', async () => {
  const on = await played(2)
  await on.run(150_000)
  const device = on.world.devices.get(`bmc-${on.victim}`)
  if (device !== undefined) device.fault = { does: 'fail' }
  const heal = on.world.isolate(on.victim)
  await on.until('an incident is open', async () => (await on.incidents()).length > 0, 300_000)
  heal()
  if (device !== undefined) device.fault = undefined
  assert.is((await ended(on, 300_000)).status.outcome, 'Withdrawn')
  assert.equal([findings(on), ourTaints(on)], [[], []])
})

test('it loses its power just as the leader is lost: its device said on of this boot, and that stands on record', async () => {
  const on = await played(3)
  await on.run(200_000)
  const record = on.world.server?.peek('noderecords.holdfast.dev').map((object) => readRecord(object)).find((read) => read.ok && isKubeletsWord(read.record.boot))
  assert.equal(record?.ok === true && record.record.paths.map(({ state, identity }) => `${state} ${identity}`), ['verified proven'])
  on.world.killReplica(on.leader() ?? 0)
  on.world.cutPower(on.victim)
  const cutAt = on.world.clock.now()
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 180_000)
  const span = on.world.clock.now() - cutAt
  const incident = await ended(on, 900_000)
  assert.equal([incident.status.outcome, incident.status.proof?.kind, incident.cause], ['Recovered', 'found-off', 'found-off'], transcript(incident))
  assert.match(transcript(incident), /Lease not renewed for a whole interval/)
  assert.ok(span < 60_000, `${span}`)
  assert.equal([findings(on), ourTaints(on)], [[], []])
})

test('its device says off of it while it runs: that is no audit of the path, and nothing is opened', async () => {
  const on = await played(4)
  const device = on.world.devices.get(`bmc-${on.victim}`)
  if (device !== undefined) device.fault = { does: 'deny' }
  await on.run(300_000)
  assert.equal([(await on.incidents()).length, findings(on), ourTaints(on)], [0, [], []])
  const paths = on.world.server?.peek('noderecords.holdfast.dev').flatMap((object) => {
    const read = readRecord(object)
    return read.ok && isKubeletsWord(read.record.boot) ? read.record.paths.map(({ state }) => state) : []
  })
  assert.equal(paths, ['mismatch'])
})

test('its device calls it off, and it was only cut off: once its network is back its kubelet renews its Lease, and that shows the proof false', async () => {
  const on = await played(5)
  await on.run(150_000)
  const device = on.world.devices.get(`bmc-${on.victim}`)
  if (device !== undefined) device.fault = { does: 'lie' }
  const heal = on.world.isolate(on.victim)
  await on.until('it is called proven', async () => (await theIncident(on))?.status.proof !== undefined, 300_000)
  await on.run(20_000)
  assert.is((await theIncident(on))?.status.voided.length, 0, 'nobody can know yet')
  heal()
  await on.until('the proof is void', async () => ((await theIncident(on))?.status.voided.length ?? 0) > 0, 60_000)
  assert.match(transcript(await theIncident(on) as Incident), /renewed its Lease 3 times after the proof/)
  await on.until('its path is marked', () => on.world.server?.peek('noderecords.holdfast.dev').some((object) => {
    const read = readRecord(object)
    return read.ok && read.record.paths.some(({ state }) => state === 'marked')
  }) === true, 30_000)
})

test.run()
