// Where today's products failed, a StatefulSet that is scaled in an incident, a disruption budget in the way, on a real control plane. The texts are those of the simulated
// world; one is told here alone, since it wants real processes.
import { readdirSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { volume } from '../../sim/world/objects.ts'
import { usualWorld } from '../../sim/world/settings.ts'
import { budgetSaysNo } from '../stories/budget.ts'
import { othersFailed } from '../stories/others-failed.ts'
import { scaled } from '../stories/scaled.ts'
import { labGround } from './lab-ground.ts'
import { comesBack, happened } from './lab-judge.ts'
import { policy, steadyWorkload, workNamespace } from './lab-objects.ts'
import { ended, keepLab, theIncident, times, until } from './lab-play.ts'
import { environmentOf } from './process-environment.ts'

const test = suite('where others failed, on a real control plane')

const more = ['data-db-1', 'data-db-2'].flatMap((claim) => volume(claim, workNamespace, usualWorld.driver))
const keeper = keepLab({ nodes: 6, zones: 3, objects: [policy({ restAfter: '10s', evictWithin: '5m' }), ...steadyWorkload(), ...more] })

for (const { title, tell } of [...othersFailed, ...scaled, budgetSaysNo]) {
  test(title, async () => {
    const play = await keeper.peace()
    await tell(labGround(play))
    console.log(`${title}: ${(await labGround(play).incidents()).map((incident) => `${incident.nodeName} ${incident.status.outcome}: ${times(play, incident)}`).join('; ')}`)
  })
}

/** Fence programs that live and work on this attempt. */
const programsOf = (attempt: string): readonly number[] => readdirSync('/proc').map(Number).filter((pid) => pid > 0 && environmentOf(pid).includes(`HOLDFAST_ATTEMPT=${attempt}`))

test('a coordinator that is killed while its fence program lives on: one power cycle, never two', async () => {
  const play = await keeper.peace()
  const { lab, victim } = play
  const device = lab.world.devices.get(`bmc-${victim}`)
  assert.ok(device)
  device.timing.off = 6_000
  lab.world.freeze(victim)
  await until('its program is at work', () => theIncident(play)?.status.attempts.some(({ id, result }) => result === 'running' && programsOf(id).length > 0) === true, 60_000)
  const attempt = theIncident(play)?.status.attempts[0]?.id ?? ''
  const leader = await lab.replicas.leader()
  assert.ok(leader !== undefined)
  await lab.replicas.kill(leader ?? 0)
  assert.ok(programsOf(attempt).length > 0, 'it outlives its coordinator')
  await lab.replicas.start(leader ?? 0)
  const incident = await ended(play, 300_000)
  console.log(`a program that outlives its coordinator: ${times(play, incident)}`)
  assert.is(happened(play, 'machine lost its power').length, 1)
  await comesBack(play, incident)
})

test('the lab stops', async () => await keeper.stop())

test.run()
