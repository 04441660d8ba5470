// A storage that refuses to detach what is being written, by its own controller's check, and a policy that takes its word: the one place where it is not the product alone that keeps two writers apart.
// The node is cut off from everybody, its management controller too, and writes on.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { machineClock as clock } from '../../edge/clock.ts'
import { until } from './cluster.ts'
import { say } from './room.ts'
import { nodesOf, ourTaint, startStage, writes, type Stage } from './stage.ts'
import { begin, ended, holding, incidentsOf, movedAway, neverTwoWriters, tell, transcript } from './story.ts'
import { driver, volumes } from './workload.ts'

const test = suite('refusal')
const within = 120_000
/** As often as the attacher tries again in its first half minute. */
const watchedFor = 30_000
let stage: Stage

test('the stage is set', async () => {
  stage = await startStage(say, { exclusive: true })
})

test('what it writes is not taken from it, though its pods are freed; heard again it lets go, and then its work moves', async () => {
  await stage.cluster.kubectl('patch', 'holdfastpolicy', 'lab', '--type', 'merge', '--patch', JSON.stringify({ spec: { safeDetach: [driver] } }))
  const story = await begin(stage)
  const controller = stage.management.of.get(story.machine.name)
  controller?.fault('refuse')
  await story.machine.cutCable()
  await until('its pods are freed by the storage\'s own word', async () => (await incidentsOf(story))[0]?.status.proof?.kind === 'safe-detach', within)
  let why = ''
  await until('the refusal is quoted', async () => (why = await holding(story, 'waiting-for-volumes')).includes('is in use by'), within)
  for (const end = clock.now() + watchedFor; clock.now() < end; await clock.wait(1_000)) {
    for (const volume of volumes) {
      assert.ok(writes(stage, volume), `nobody writes ${volume}`)
      assert.is(stage.turns(volume).at(-1)?.boot, story.bootId)
    }
  }
  await story.machine.mendCable()
  await movedAway(story)
  controller?.fault(undefined)
  const incident = await ended(story)
  tell(`a storage that refuses (held: ${why})`, story, incident)
  assert.is(incident.status.outcome, 'Recovered', transcript(incident))
  assert.is(story.machine.bootId(), story.bootId, 'nobody switched it off')
  await stage.peace()
  assert.equal((await nodesOf(stage)).flatMap(({ spec }) => spec?.taints?.filter(ourTaint) ?? []), [])
  neverTwoWriters(story)
})

test('the stage is left', async () => await stage.stop())

test.run()
