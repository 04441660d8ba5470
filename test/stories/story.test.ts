// The story: a node dies and comes back. Three ways of dying, one way back.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { ended, findings, happened, ourTaints, peace, programs, steps, workloadRuns, type Play } from './play.ts'

const test = suite('story')

async function comesBack(on: Play): Promise<void> {
  assert.equal(findings(on), [])
  assert.equal(ourTaints(on), [])
  assert.ok(workloadRuns(on), 'the workload runs')
  assert.ok(on.world.judges.isPoweredOn(on.victim))
  assert.is(happened(on, 'machine booted').length, 1, 'the machine booted once')
}

test('power loss: found off twice, cleared, secured, switched on, back under its own word', async () => {
  const on = await peace({ seed: 1 })
  on.world.cutPower(on.victim)
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 60_000)
  const incident = await ended(on, 120_000)
  assert.is(incident.status.outcome, 'Recovered')
  assert.is(incident.status.proof?.kind, 'found-off')
  assert.equal(steps(incident).filter((what) => !what.startsWith('held')), [
    'opened', 'proven', 'tainted', 'freed', 'ordered off', 'order ended', 'untainted', 'volumes released', 'ordered on', 'order ended', 'untainted', 'closed',
  ])
  assert.ok(incident.status.proof?.evidence.some((one) => one.source === 'audit bmc-off' && one.word === 'on'))
  assert.is(incident.status.volumes.filter((volume) => volume.fate === 'released').length, 2)
  await comesBack(on)
})

test('kernel freeze: ordered off, read off twice, cleared, switched on', async () => {
  const on = await peace({ seed: 2 })
  on.world.freeze(on.victim)
  const incident = await ended(on, 180_000)
  assert.is(incident.status.outcome, 'Recovered')
  assert.is(incident.status.proof?.kind, 'off')
  assert.is(programs(on, 'off'), 1)
  await comesBack(on)
})

test('network partition: fenced by its own device, and back once the network is', async () => {
  const on = await peace({ seed: 3 })
  const heal = on.world.isolate(on.victim)
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 60_000)
  await on.run(30_000)
  heal()
  const incident = await ended(on, 180_000)
  assert.is(incident.status.outcome, 'Recovered')
  await comesBack(on)
})

test('out-of-service comes off while the machine is still off, and quarantine stays until it is clean', async () => {
  const on = await peace({ seed: 4 })
  on.world.cutPower(on.victim)
  const incident = await ended(on, 180_000)
  const moments = incident.status.timeline
  const at = (what: string, detail: string): number => moments.findIndex((moment) => moment.what === what && moment.detail.includes(detail))
  assert.ok(at('untainted', 'out-of-service') < at('ordered on', 'bmc-off'), 'out-of-service first')
  assert.ok(at('ordered on', 'bmc-off') < at('untainted', 'quarantine'), 'quarantine last')
})

test('the same seed gives the same transcript, byte for byte', async () => {
  assert.is(await written(5), await written(5))
})

async function written(seed: number): Promise<string> {
  const on = await peace({ seed })
  on.world.cutPower(on.victim)
  await on.run(60_000)
  return on.world.truth.text()
}

test.run()
