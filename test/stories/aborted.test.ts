// A person aborts, at every moment of an incident. The world says whether anything was freed of a machine that runs.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { fencesPath } from '../../coordinator/node-fence.ts'
import { settled } from '../../sim/stage.ts'
import { ended, findings, happened, ourTaints, peace, programs, steps, theIncident, workload, workloadRuns, type Play } from './play.ts'

const test = suite('aborted')

async function abort(on: Play): Promise<void> {
  const incident = await theIncident(on)
  assert.ok(incident)
  const patched = await settled(on.world, on.world.api.patch<KubeObject>(`${fencesPath}/${incident.name}`, 'merge', { spec: { abort: true } }))
  assert.ok(patched.ok)
}

async function nothingFreed(on: Play): Promise<void> {
  const uids = workload(on).map((pod) => pod.metadata.uid)
  assert.equal(on.pods.filter((uid) => !uids.includes(uid)), [])
  assert.is(happened(on, 'volume released').length, 0)
  assert.equal(findings(on), [])
}

async function waits(on: Play): Promise<readonly string[]> {
  return (await theIncident(on))?.status.holds.map(({ because }) => because) ?? []
}

async function over(on: Play): Promise<void> {
  const incident = await ended(on, 400_000)
  assert.is(incident.status.outcome, 'Withdrawn')
  assert.equal(findings(on), [])
  assert.equal(ourTaints(on), [])
  await on.until('the workload runs', () => workloadRuns(on), 120_000)
}

test('before any order: nothing is ordered, nothing is freed, and the same silence opens no other incident, whoever leads', async () => {
  const on = await peace({ seed: 101 })
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(device)
  device.fault = { does: 'hang' }
  const heal = on.world.isolate(on.victim)
  await on.until('an incident is open', async () => await theIncident(on) !== undefined, 30_000)
  await abort(on)
  await on.run(60_000)
  device.fault = undefined
  on.world.killReplica(on.leader() ?? 0)
  await on.run(300_000)
  assert.equal([await waits(on), programs(on, 'off'), (await on.incidents()).length], [['aborted'], 0, 1])
  await nothingFreed(on)
  heal()
  await over(on)
})

test('while an off is under way: it is waited out, and the node is switched on again', async () => {
  const on = await peace({ seed: 102 })
  on.world.freeze(on.victim)
  await on.until('an order is under way', async () => (await theIncident(on))?.status.attempts.some(({ result }) => result === 'running') === true, 30_000)
  await abort(on)
  await over(on)
  const incident = await theIncident(on)
  assert.equal([incident?.status.proof, steps(incident ?? assert.unreachable() as never).includes('proven')], [undefined, false])
  assert.is(happened(on, 'machine booted').length, 1, 'switched on once')
})

test('while an off may still land: not switched on before it has, and then it is', async () => {
  const on = await peace({ seed: 103 })
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(device)
  device.fault = { does: 'late', by: 40_000 }
  on.world.freeze(on.victim)
  await on.until('an order has failed', async () => (await theIncident(on))?.status.attempts.some(({ result }) => result === 'failed') === true, 30_000)
  await abort(on)
  device.fault = undefined
  await on.run(20_000)
  assert.equal([await waits(on), programs(on, 'on')], [['order-may-land'], 0])
  await over(on)
  assert.ok(programs(on, 'on') > 0)
})

test('after the proof it is refused, which stands on the record, and the sequence finishes', async () => {
  const on = await peace({ seed: 104 })
  on.world.freeze(on.victim)
  await on.until('it is proven', async () => (await theIncident(on))?.status.proof !== undefined, 60_000)
  await abort(on)
  await on.until('the refusal is told', async () => (await waits(on)).includes('abort-refused'), 60_000)
  const incident = await ended(on, 400_000)
  assert.equal([incident.status.outcome, incident.status.proof?.kind], ['Recovered', 'off'])
  assert.ok(steps(incident).includes('held: abort-refused'))
  assert.equal(findings(on), [])
  assert.equal(ourTaints(on), [])
  assert.ok(workloadRuns(on), 'the workload runs')
})

test('at any of many moments, the leader killed right after: it ends, and what it cut it gives back', async () => {
  for (let moment = 0; moment < 6; moment += 1) {
    const on = await peace({ seed: 110 + moment })
    on.world.freeze(on.victim)
    await on.until('an incident is open', async () => await theIncident(on) !== undefined, 30_000)
    await on.run(moment * 600)
    await abort(on)
    const leader = on.leader()
    assert.ok(leader !== undefined, 'somebody leads')
    on.world.killReplica(leader)
    await on.run(30_000)
    on.world.thaw(on.victim)
    const incident = await ended(on, 400_000)
    assert.is(incident.status.outcome, incident.status.proof === undefined ? 'Withdrawn' : 'Recovered', `moment ${moment}`)
    assert.equal(findings(on), [], `moment ${moment}`)
    assert.equal(ourTaints(on), [], `moment ${moment}`)
    assert.ok(workloadRuns(on), `moment ${moment}: the workload runs`)
  }
})

test('once the node is heard again, its next silence is a new one', async () => {
  const on = await peace({ seed: 105 })
  const heal = on.world.isolate(on.victim)
  await on.until('an incident is open', async () => await theIncident(on) !== undefined, 30_000)
  await abort(on)
  await on.run(30_000)
  heal()
  await on.run(90_000)
  on.world.cutPower(on.victim)
  await on.until('the next one is proven', async () => (await on.incidents()).some(({ status }) => status.proof !== undefined), 60_000)
  assert.equal(findings(on), [])
})

test.run()
