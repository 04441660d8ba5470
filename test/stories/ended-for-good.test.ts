// The node's instance is terminated: its pods run elsewhere, nothing is switched on again, and the incident ends when its Node is deleted.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { settled } from '../../sim/stage.ts'
import { configure, ended, findings, killLeader, ourTaints, peace, programs, theIncident, workloadRuns, type Play } from './play.ts'

const test = suite('story: ended for good')

/** A cloud's machine, by a method that terminates. */
async function terminable(seed: number): Promise<Play> {
  const on = await peace({ seed })
  await configure(on, 'agent_name=aws\nterminate=1\n')
  await on.run(30_000)
  return on
}

const endedHolds = async (on: Play) => (await theIncident(on))?.status.holds.filter(({ detail }) => detail.includes('has ended the machine for good')).map(({ because }) => because)

test('it is cleared, stays off under whoever leads, and ends with its Node', async () => {
  const on = await terminable(51)
  on.world.freeze(on.victim)
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 60_000)
  await on.until('it says what it waits for', async () => (await endedHolds(on))?.join() === 'waiting-for-boot', 60_000)
  killLeader(on)
  await on.run(300_000)
  assert.equal([(await endedHolds(on)), programs(on, 'on'), programs(on, 'off')], [['waiting-for-boot'], 0, 1])
  assert.ok((await settled(on.world, on.world.api.remove(`/api/v1/nodes/${on.victim}`))).ok)
  const incident = await ended(on, 120_000)
  assert.equal([incident.status.outcome, incident.status.proof?.kind, programs(on, 'on')], ['NodeDeleted', 'off', 0])
  await on.run(120_000)
  assert.equal([(await on.incidents()).length, findings(on), ourTaints(on)], [1, [], []])
})

/** The cloud refuses to end a machine that nobody hears, and then it is heard again. */
async function refused(seed: number, meanwhile: (on: Awaited<ReturnType<typeof terminable>>) => Promise<void> = async () => undefined) {
  const on = await terminable(seed)
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(device)
  device.fault = { does: 'ignore' }
  const heal = on.world.isolate(on.victim)
  await on.until('an order has failed', async () => (await theIncident(on))?.status.attempts.some(({ result }) => result === 'failed') === true, 60_000)
  await meanwhile(on)
  heal()
  const incident = await ended(on, 400_000)
  assert.equal([incident.status.outcome, programs(on, 'on')], ['Withdrawn', 0])
  await on.run(60_000)
  assert.equal([workloadRuns(on), findings(on), ourTaints(on)], [true, [], []])
  return on
}

test('refused by the cloud, and heard again: it is withdrawn, and nothing is owed', async () => {
  const on = await refused(52)
  assert.is((await on.incidents()).length, 1)
})

test('refused by the cloud, and its credentials changed before it is heard again: it is withdrawn all the same, in its old boot', async () => {
  await refused(53, async (on) => configure(on, 'login_timeout=7\n'))
})

test.run()
