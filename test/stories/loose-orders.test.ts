// Orders that nobody can take back: what was sent may land long after its program failed, and the incident that sent it is not over
// before that.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { paths } from '../../coordinator/kubernetes.ts'
import { settled } from '../../sim/stage.ts'
import { ended, findings, happened, ourTaints, peace, programs, theIncident, type Play } from './play.ts'

const test = suite('loose orders')

/** The victim stands still, and its device takes the order, says that it failed, and obeys so long after. */
async function ordered(seed: number, late: number): Promise<Play> {
  const on = await peace({ seed })
  on.world.freeze(on.victim)
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(device)
  device.fault = { does: 'late', by: late }
  await on.until('an order has failed', async () => (await theIncident(on))?.status.attempts.some((attempt) => attempt.result === 'failed') === true, 30_000)
  return on
}

async function deleteNode(on: Play): Promise<void> {
  const removed = await settled(on.world, on.world.api.remove(paths.node(on.victim), {}))
  assert.ok(removed.ok)
}

for (const restarted of [false, true]) {
  test(`the Node is deleted while an order may still land${restarted ? ', and every replica is started anew' : ''}: the incident ends by itself, and not before`, async () => {
    const on = await ordered(restarted ? 61 : 62, 40_000)
    await deleteNode(on)
    if (restarted) {
      for (const number of [0, 1]) on.world.killReplica(number)
      await on.run(5_000)
      for (const number of [0, 1]) on.world.startReplica(number)
    }
    await on.until('the order has landed', () => happened(on, 'device switched').length > 0, 60_000)
    assert.is.not((await theIncident(on))?.status.phase, 'Final')
    const incident = await ended(on, 400_000)
    assert.equal([incident.status.outcome, incident.status.proof?.kind, programs(on, 'on')], ['NodeDeleted', 'off', 0])
    assert.equal(findings(on), [])
    assert.equal(ourTaints(on), [])
  })
}

test('a device hangs while its node is heard again: nothing is given back or ended before it has told how it stands, and then it is', async () => {
  const on = await peace({ seed: 63 })
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(device)
  const heal = on.world.isolate(on.victim)
  await on.until('an order is given', async () => ((await theIncident(on))?.status.attempts.length ?? 0) > 0, 30_000)
  device.fault = { does: 'hang' }
  await on.run(60_000)
  heal()
  await on.run(200_000)
  assert.is(programs(on, 'on'), 0, 'not switched on')
  const waiting = await theIncident(on)
  assert.equal([waiting?.status.phase, waiting?.status.holds.map((hold) => hold.because)], ['Done', ['order-may-land']])
  assert.match(waiting?.status.holds[0]?.lifts ?? '', /bmc-off/)
  device.fault = undefined
  const incident = await ended(on, 200_000)
  assert.is(incident.status.outcome, 'Withdrawn')
  assert.equal(findings(on), [])
  assert.equal(ourTaints(on), [])
})

test('the securing off lands on the next boot: what it cut is switched on, and nobody takes it for another death', async () => {
  const on = await peace({ seed: 92 })
  on.world.cutPower(on.victim)
  await on.until('it is found off', async () => (await theIncident(on))?.status.proof !== undefined, 30_000)
  on.world.nodes.get(on.victim)?.machine.powerOn(300)
  const incident = await ended(on, 200_000)
  const boots = happened(on, 'machine booted').length
  assert.is(boots, 2, 'the boot that the order cut, and the one after')
  assert.equal([incident.status.proof?.kind, incident.status.outcome], ['found-off', 'Recovered'])
  assert.equal(findings(on), [])
  assert.equal(ourTaints(on), [])
})

test.run()
