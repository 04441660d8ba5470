// A leader that slept through an incident wakes, and hits nothing; and both replicas are killed in the middle. That one is killed between any two changes: `killed-writes.test.ts`.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { ended, findings, happened, ourTaints, peace, workloadRuns, type Play } from './play.ts'

const test = suite('killed leader')

/** Turns the world until the leader's own copy of the record has so many moments; false when it never has. */
function untilMoment(on: Play, moment: number): Promise<boolean> {
  const has = (): boolean => [...on.coordinators.values()].some(({ seen }) => [...seen.incidents.values()].some(({ status }) => status.timeline.length >= moment))
  return on.world.turn().runWhen(has, 120_000)
}

async function finishes(on: Play, told: string): Promise<void> {
  const incident = await ended(on, 400_000)
  assert.is(incident.status.outcome, 'Recovered', told)
  assert.equal(findings(on), [], told)
  assert.equal(ourTaints(on), [], told)
  assert.ok(workloadRuns(on), `${told}: the workload runs`)
  assert.is(happened(on, 'machine booted').length, 1, `${told}: the machine booted once`)
  assert.is(happened(on, 'machine lost its power').length, 1, `${told}: it lost its power once`)
  const freed = incident.status.pods.filter((pod) => pod.fate === 'freed').map((pod) => pod.uid)
  assert.equal(freed.toSorted(), [...new Set(freed)].toSorted(), `${told}: freed once each`)
  assert.equal(freed.filter((uid) => !on.pods.includes(uid)), [], `${told}: no successor was freed`)
}

for (const clocks of ['standing', 'running'] as const) {
  for (const moment of [1, 2, 4, 6, 8]) {
    test(`the leader is paused for a minute at moment ${moment}, its clocks ${clocks}, and wakes: it hits nothing`, async () => {
      const on = await peace({ seed: 33 })
      on.world.freeze(on.victim)
      assert.ok(await untilMoment(on, moment), 'the story has that many moments')
      const leader = on.leader()
      assert.ok(leader !== undefined)
      on.world.pauseReplica(leader, 60_000, clocks)
      await on.run(60_000)
      await on.run(30_000)
      await finishes(on, `paused at moment ${moment}`)
    })
  }
}

test('both replicas are killed in the middle; the next ones read the same facts', async () => {
  const on = await peace({ seed: 34 })
  on.world.freeze(on.victim)
  assert.ok(await untilMoment(on, 4))
  for (const number of [0, 1]) on.world.killReplica(number)
  await on.run(30_000)
  for (const number of [0, 1]) on.world.startReplica(number)
  await finishes(on, 'both killed')
})

test.run()
