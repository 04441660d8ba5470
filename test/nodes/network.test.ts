// Partitions from everybody. Whoever is heard by nobody is cut off before its work is done elsewhere, also where it hears, or is
// heard, on a way that carries no answers; and where nobody can cut it off, nothing is moved.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { machineClock as clock } from '../../edge/clock.ts'
import { everybody, partition, type Way } from './partition.ts'
import { say } from './room.ts'
import { startStage, writes, type Stage } from './stage.ts'
import { begin, comesBack, ended, holding, movedAway, tell, untouched } from './story.ts'
import { volumes } from './workload.ts'

const test = suite('network')
let stage: Stage

test('the stage is set', async () => {
  stage = await startStage(say)
})

test('cable cut, with the management network alive: ordered off, moved, back once the cable is', async () => {
  const story = await begin(stage)
  await story.machine.cutCable()
  await movedAway(story)
  await story.machine.mendCable()
  const incident = await ended(story)
  tell('cable cut', story, incident)
  assert.is(incident.status.proof?.kind, 'off')
  await comesBack(story, incident)
})

test('cable cut, and the management network with it: held with the reason, nothing is moved, withdrawn once it is heard again', async () => {
  const story = await begin(stage)
  const controller = stage.management.of.get(story.machine.name)
  controller?.fault('refuse')
  await story.machine.cutCable()
  const held = await holding(story)
  // Long enough for whoever guesses.
  await clock.wait(30_000)
  for (const volume of volumes) {
    assert.ok(writes(stage, volume), `nobody writes ${volume}`)
    assert.is(stage.turns(volume).at(-1)?.boot, story.bootId)
  }
  controller?.fault(undefined)
  await story.machine.mendCable()
  const incident = await ended(story)
  tell(`nothing answers (held: ${held})`, story, incident)
  assert.is(incident.status.proof, undefined)
  assert.is(incident.status.outcome, 'Withdrawn')
  await untouched(story, incident)
})

for (const way of ['from the machine', 'towards the machine'] as const satisfies readonly Way[]) {
  test(`nothing arrives ${way}: ordered off, moved, back once the way is mended`, async () => {
    const story = await begin(stage)
    const mend = await partition(story.machine, everybody, way)
    await movedAway(story)
    await mend()
    const incident = await ended(story)
    tell(`nothing arrives ${way}`, story, incident)
    assert.is(incident.status.proof?.kind, 'off')
    await comesBack(story, incident)
  })
}

test('the stage is left', async () => await stage.stop())

test.run()
