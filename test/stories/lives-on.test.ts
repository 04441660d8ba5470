// A fenced boot that lives, because its device lied, and that cannot end what it still runs: the next level ends it; without one it is held.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Power } from '../../sim/world/power.ts'
import { findings, happened, ourTaints, peace, workloadRuns, type Play } from './play.ts'

const test = suite('lives on')

/** Cut off, called off by its first device, freed, and heard again, with a runtime that ends nothing. */
async function back(seed: number, power: Power): Promise<{ readonly on: Play; readonly mend: () => void }> {
  const on = await peace({ seed, power, policy: { profile: 'fast', returnPatience: '60s' } })
  await on.run(60_000)
  const device = on.world.devices.get(`bmc-${on.victim}`)
  if (device === undefined) throw new Error('each node has a controller')
  device.fault = { does: 'lie' }
  const heal = on.world.isolate(on.victim)
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 120_000)
  on.world.failRuntime(on.victim, 'hangs')
  heal()
  await on.until('the proof is void', async () => (await on.incidents()).some(({ status }) => status.voided.length > 0), 60_000)
  // What it says of the power from now on is true, and it stays marked.
  device.fault = undefined
  return { on, mend: () => on.world.mendRuntime(on.victim) }
}

const offs = (on: Play): number => happened(on, 'machine lost its power').length

test('not clean within its patience it is ended by the next level, whatever its policy says of patience', async () => {
  const { on } = await back(250, 'bmc, then outlet')
  await on.run(40_000)
  assert.is(offs(on), 0, 'its agent is given time')
  await on.until('its power goes', () => offs(on) === 1, 60_000)
  await on.until('it is over', async () => (await on.incidents()).every(({ status }) => status.phase === 'Final'), 600_000)
  const ends = (await on.incidents()).map(({ cause, status }) => [cause, status.outcome, status.proof?.methods.join()])
  assert.equal(ends.toSorted(), [['leftover', 'Recovered', 'outlet-off'], ['silence', 'Void', undefined]])
  assert.equal([ourTaints(on), workloadRuns(on), offs(on)], [[], true, 1])
})

test('without a next level it is held, with the path that lied named, and ends by its own word once its agent can end what runs', async () => {
  const { on, mend } = await back(251, 'bmc')
  await on.until('it is held', async () => (await on.incidents()).some(({ cause, status }) => cause === 'leftover' && status.holds.some(({ because, detail }) => because === 'path-unverified' && detail.includes('bmc-off'))), 120_000)
  await on.run(60_000)
  assert.equal([offs(on), ourTaints(on)], [0, [`${on.victim} holdfast.dev/quarantine`]])
  mend()
  await on.until('it is over', async () => ourTaints(on).length === 0 && (await on.incidents()).every(({ status }) => status.phase === 'Final'), 300_000)
  assert.equal([(await on.incidents()).map(({ status }) => status.outcome).toSorted(), offs(on), workloadRuns(on)], [['Void', 'Withdrawn'], 0, true])
  const writing = findings(on).length
  await on.run(60_000)
  assert.is(findings(on).length, writing, 'nobody writes beside another any more')
})

test.run()
