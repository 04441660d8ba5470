// A kernel that runs, and nothing on it but what writes: it answers at its port, and no word comes.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { ended, findings, ourTaints, peace, programs, theIncident, transcript, workloadRuns } from './play.ts'

const test = suite('hung')

test('userspace is stuck for good: after its time the node is fenced like a dead one, and comes back', async () => {
  const on = await peace({ seed: 151 })
  on.world.nodes.get(on.victim)?.machine.stick()
  await on.run(100_000)
  assert.equal([await theIncident(on), programs(on, 'off')], [undefined, 0], 'not before it')
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 200_000)
  const incident = await ended(on, 400_000)
  assert.equal([incident.cause, incident.status.proof?.kind, incident.status.outcome], ['hung', 'off', 'Recovered'], transcript(incident))
  assert.equal([findings(on), ourTaints(on)], [[], []])
})

test('one that goes on within its time is never touched', async () => {
  const on = await peace({ seed: 152 })
  const machine = on.world.nodes.get(on.victim)?.machine
  machine?.stick()
  await on.run(90_000)
  machine?.unstick()
  await on.run(200_000)
  assert.equal([await theIncident(on), programs(on, 'off'), findings(on)], [undefined, 0, []])
})

test.run()
