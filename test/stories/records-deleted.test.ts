// Every NodeRecord is deleted in the middle of an incident. Where the policy refuses paths of unproven identity, what the device tells of
// its machine in the incident itself is proof enough. Where the leader that had read the path on is killed as well, his order on the
// NodeFence tells the next one that it was: the machine that he switched off is not left dark.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { settled } from '../../sim/stage.ts'
import { ended, findings, ourTaints, peace, theIncident, workloadRuns } from './play.ts'

const test = suite('records deleted')

test('a frozen machine is fenced and freed all the same', async () => {
  const on = await peace({ seed: 151, policy: { identity: 'require' } })
  on.world.freeze(on.victim)
  // Of what beats, the record would be written again at once.
  await on.run(2_500)
  await settled(on.world, on.world.api.remove(`/apis/holdfast.dev/v1alpha1/noderecords/${on.victim}`))
  await on.until('an incident is open', async () => await theIncident(on) !== undefined, 60_000)
  await on.until('it is proven off', async () => (await theIncident(on))?.status.proof !== undefined, 60_000)
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 120_000)
  const incident = await ended(on, 300_000)
  assert.equal([incident.status.proof?.kind, findings(on), ourTaints(on)], ['off', [], []])
})

test('the leader that ordered it off is killed: the next one proves it off, frees and gives it back', async () => {
  const on = await peace({ seed: 152 })
  on.world.freeze(on.victim)
  await on.run(2_500)
  await settled(on.world, on.world.api.remove(`/apis/holdfast.dev/v1alpha1/noderecords/${on.victim}`))
  await on.until('it lost its power', () => on.world.nodes.get(on.victim)?.machine.state() === 'off', 60_000)
  const leader = on.leader()
  assert.ok(leader !== undefined)
  on.world.killReplica(leader)
  on.world.clock.after(20_000, () => on.world.startReplica(leader))
  const incident = await ended(on, 400_000)
  assert.equal([incident.status.outcome, incident.status.proof?.kind, findings(on), ourTaints(on)], ['Recovered', 'off', [], []])
  assert.ok(workloadRuns(on))
})

test.run()
