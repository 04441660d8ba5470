// The gate, in a world whose runtimes start no pod unasked.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listen } from '../../sim/search/judges/ears.ts'
import { judgeGate } from '../../sim/search/judges/gate.ts'
import { watchWellness } from '../../sim/search/wellness.ts'
import { ended, findings, happened, ourTaints, peace, workloadRuns, type Play } from './play.ts'

const test = suite('gate')

const gated = { gate: true, policy: { profile: 'fast' } } as const
const quarantined = async (on: Play) => ourTaints(on).includes(`${on.victim} holdfast.dev/quarantine`)
const runs = (on: Play, after: number) => happened(on, 'container runs').filter(({ node, pod }) => node === on.victim && String(pod).startsWith('work/')).length - after

test('the workload starts, dies with its node and goes on elsewhere, and the node takes workloads again once its boot is accepted', async () => {
  const on = await peace({ seed: 94, ...gated })
  on.world.cutPower(on.victim)
  const incident = await ended(on, 300_000)
  assert.is(incident.status.outcome, 'Recovered')
  await on.until('the workload runs', () => workloadRuns(on), 60_000)
  assert.equal(findings(on), [])
})

test('pods that the policy leaves on a node start there in no boot that bears the quarantine, and in the one that is accepted they do', async () => {
  const on = await peace({ seed: 95, gate: true, policy: { profile: 'fast', nodeDownPodDeletionPolicy: 'DeleteDeploymentPod' } })
  const wellness = watchWellness(on.world)
  const ears = listen(on.world, wellness)
  const judge = judgeGate(on.world, ears)
  on.world.cutPower(on.victim)
  await on.until('it is quarantined', () => quarantined(on), 60_000)
  const before = runs(on, 0)
  on.world.powerOn(on.victim)
  await on.until('it boots', () => on.world.nodes.get(on.victim)?.machine.state() === 'running', 60_000)
  await on.until('the quarantine is lifted', async () => !await quarantined(on), 180_000)
  assert.is(runs(on, before), 0, 'nothing has started under it')
  await on.until('they start', () => runs(on, before) > 0, 60_000)
  await on.until('the workload runs', () => workloadRuns(on), 120_000)
  assert.equal([judge.found(), findings(on), ourTaints(on)], [[], [], []])
  for (const one of [judge, ears, wellness]) one.stop()
})

test('without its agent such a machine starts only what tolerates that', async () => {
  const on = await peace({ seed: 96, ...gated })
  on.world.killAgent(on.victim, true)
  const [pod] = on.pods
  on.world.nodes.get(on.victim)?.runtime.containers.get(pod ?? '')?.kill()
  const before = runs(on, 0)
  await on.run(30_000)
  assert.is(runs(on, before), 0)
  on.world.startAgent(on.victim)
  await on.until('it starts again', () => runs(on, before) > 0, 600_000)
})

test.run()
