// A hibernated machine reads off and goes on where it stopped: the assumption that docs/safety.md states, broken on purpose.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { ended, ourTaints, peace, steps, workloadRuns } from './play.ts'

const test = suite('hibernated')

test('switched on it resumes the fenced boot: the proof is void at its first answered challenge, and what it writes it writes for seconds', async () => {
  const on = await peace({ seed: 91 })
  on.world.hibernate(on.victim)
  const incident = await ended(on, 300_000)
  assert.equal([incident.status.outcome, incident.status.voided[0]?.proof.kind], ['Void', 'found-off'])
  const after = steps(incident).slice(steps(incident).indexOf('proof void'))
  assert.not(after.some((what) => what === 'freed' || what === 'tainted'), after.join())
  const resumedAt = on.world.truth.entries.findLast((entry) => entry.what === 'machine thawed')?.at ?? Infinity
  // What it costs, and no more: a successor may be writing already, and each of the three is over within seconds.
  const { judges } = on.world
  const broken = [...judges.wroteAfterRelease(), ...judges.twoWriters(), ...judges.twins()]
  assert.ok(broken.length > 0, 'the assumption was broken')
  for (const one of broken) assert.ok((one.until ?? Infinity) < resumedAt + 5_000, JSON.stringify(one))
  assert.equal(ourTaints(on), [])
  assert.ok(workloadRuns(on), 'the workload runs')
})

test('where its kubelet does not run any more, its agent ends what runs of pods that are gone, and nothing else', async () => {
  const on = await peace({ seed: 92 })
  const { world, victim } = on
  world.killKubelet(victim)
  world.hibernate(victim)
  await on.until('the machine goes on', () => world.truth.entries.some((entry) => entry.what === 'machine thawed'), 300_000)
  const running = () => [...world.nodes.get(victim)?.runtime.containers.keys() ?? []]
  assert.ok(on.pods.some((uid) => running().includes(uid)), 'they run on at first')
  await on.until('they are ended', () => !on.pods.some((uid) => running().includes(uid)), 6_000)
  assert.ok(world.nodes.get(victim)?.agent() !== undefined, 'the agent itself runs on')
  world.startKubelet(victim)
  const incident = await ended(on, 600_000)
  assert.is(incident.status.outcome, 'Void')
  assert.equal(ourTaints(on), [])
})

test.run()
