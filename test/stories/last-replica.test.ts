// Both replicas die with their nodes, and one comes up alone elsewhere, which has heard none of the two. It cannot have peers asked for their
// agents, and gives no order, since so many have fallen silent at once: what their devices say, and their Leases, must be enough.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findings, happened, ourTaints, peace, workloadRuns } from './play.ts'

const test = suite('last replica')

test('two of three machines lose their power with both replicas: the next one finds them off, alone, and both come back', async () => {
  const on = await peace({ seed: 41 })
  const { world } = on
  const dead = [...world.nodes.keys()].filter((name) => name !== on.victim).slice(0, 1).concat(on.victim)
  for (const number of [0, 1]) world.killReplica(number)
  for (const name of dead) world.cutPower(name)
  await on.run(60_000)
  assert.is(world.startReplica(0), undefined)
  await on.until('both have power', () => dead.every((name) => world.nodes.get(name)?.machine.state() === 'running'), 300_000)
  await on.until('both incidents are over', async () => {
    const own = await on.incidents()
    return own.length === 2 && own.every(({ status }) => status.phase === 'Final')
  }, 300_000)
  const incidents = await on.incidents()
  assert.equal(incidents.map(({ status }) => [status.proof?.kind, status.outcome]), [['found-off', 'Recovered'], ['found-off', 'Recovered']])
  assert.equal([findings(on), ourTaints(on), workloadRuns(on), happened(on, 'machine lost its power').length], [[], [], true, 2])
})

test.run()
