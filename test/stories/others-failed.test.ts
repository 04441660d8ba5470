import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { settled } from '../../sim/stage.ts'
import { stageGround } from './ground.ts'
import { othersFailed } from './others-failed.ts'
import { ended, findings, happened, peace, workloadRuns } from './play.ts'

const test = suite('where others failed')

for (const [index, { title, tell }] of othersFailed.entries()) {
  test(title, async () => await tell(await stageGround({ seed: 240 + index, nodes: 6, zones: 3, policy: { restAfter: '10s' } })))
}

test('a device that calls a machine off which is only cut off, and an outlet beside it in the level: the outlet ends it, and nobody writes twice', async () => {
  const on = await peace({ seed: 245, power: 'bmc, then outlet' })
  const map = `/api/v1/namespaces/holdfast-system/configmaps/fence-config-${on.victim}`
  const one = { 'config.properties': `node_name=${on.victim}\npower_management=bmc-off outlet-off\nrecovery=bmc-on outlet-on\n` }
  assert.ok((await settled(on.world, on.world.api.patch(map, 'merge', { data: one }))).ok)
  await on.run(60_000)
  const device = on.world.devices.get(`bmc-${on.victim}`)
  if (device === undefined) throw new Error('the victim has no device')
  device.fault = { does: 'lie' }
  const heal = on.world.isolate(on.victim)
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 120_000)
  assert.equal([happened(on, 'machine lost its power').length, findings(on)], [1, []])
  device.fault = undefined
  heal()
  const incident = await ended(on, 600_000)
  assert.equal([incident.status.proof?.methods, incident.status.outcome, findings(on)], [['bmc-off', 'outlet-off'], 'Recovered', []])
})

test.run()
