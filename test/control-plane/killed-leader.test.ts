// The leader is killed as a step comes onto the record, and the next one finishes: nothing is lost, and nothing is done twice
// that must not be. Every step of two stories on the in-memory server at each run; here ten of them, others with each commit,
// and all with HOLDFAST_ALL=1. And the API server is away for a minute in the middle.
//
// A story goes on while its node is brought back, which takes half a minute of waiting: the next one begins meanwhile, on
// another node, so its kills meet the last steps of those before it as well.
import { execFileSync } from 'node:child_process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { machineClock as clock } from '../../edge/clock.ts'
import { comesBack, happened, rightsSuffice } from './lab-judge.ts'
import { ended, keepLab, theIncident, times, transcript, until, workloadRuns, type Play } from './lab-play.ts'

const test = suite('killed leader on a real control plane')
const keeper = keepLab({ nodes: 6, zones: 3 })

const faults = ['cutPower', 'freeze'] as const
/** More than a story has that nothing delays: what a leader says of its waiting is on the record, too. */
const moments = 18
const some = 10
const all = faults.flatMap((fault) => Array.from({ length: moments }, (_, index) => ({ fault, moment: index + 1 })))
/** Both replicas at work again before the next kill. */
const startedAgain = 3_000
const ends: Promise<string | undefined>[] = []

function chosen(): typeof all {
  if (process.env['HOLDFAST_ALL'] === '1') return all
  const commit = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' })
  const first = Number.parseInt(commit.slice(0, 8), 16) % all.length
  return Array.from({ length: some }, (_, index) => all[(first + index) % all.length]).filter((one) => one !== undefined)
}

for (const { fault, moment } of chosen()) {
  test(`${fault}: the leader is killed as moment ${moment} is on the record`, async () => {
    const play = await keeper.next()
    const { lab, victim } = play
    const told = `${fault}, killed at moment ${moment}`
    lab.world[fault](victim)
    ends.push(endOf(play, told))
    await until('the story has that many moments, or is over', () => {
      const status = theIncident(play)?.status
      return status !== undefined && (status.phase === 'Final' || status.timeline.length >= moment)
    }, 180_000)
    const leader = await lab.replicas.leader()
    assert.ok(leader !== undefined, 'somebody leads')
    await lab.replicas.kill(leader ?? 0)
    await clock.wait(startedAgain)
    await lab.replicas.start(leader ?? 0)
    await until('the volumes are released', () => lab.attachments(victim).length === 0, 120_000)
    await until('the workload runs elsewhere', () => workloadRuns(lab, victim), 60_000)
    await until('the machine is on again', () => happened(play, 'machine booted').length > 0, 180_000)
  })
}

test('every one of these stories ends well', async () => {
  assert.equal((await Promise.all(ends)).filter((fault) => fault !== undefined), [])
})

/** What was wrong with it, once it is over: judged then, because a later story may have the same victim. */
async function endOf(play: Play, told: string): Promise<string | undefined> {
  try {
    const incident = await ended(play, 300_000)
    console.log(`${told}: ${times(play, incident)}`)
    await comesBack(play, incident)
    return undefined
  } catch (error) {
    return `${told}: ${error instanceof Error ? error.message : String(error)}`
  }
}

test('the API server is away for a minute in the middle: the story is finished all the same', async () => {
  const play = await keeper.peace()
  play.lab.world.freeze(play.victim)
  await until('an order on the record', () => (theIncident(play)?.status.attempts.length ?? 0) > 0, 60_000)
  await play.lab.plane.stopApiServer()
  await clock.wait(60_000)
  await play.lab.plane.startApiServer()
  const incident = await ended(play, 300_000)
  console.log(`the API server away for a minute: ${times(play, incident)}`)
  assert.is(incident.status.outcome, 'Recovered', transcript(incident))
  await comesBack(play, incident)
})

test('no replica lacked a right', async () => {
  const { lab } = await keeper.peace()
  rightsSuffice(lab)
})

test('the lab stops', async () => await keeper.stop())

test.run()
