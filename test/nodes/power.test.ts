// The product as a user installs it, on machines that really die: what it does, how long it takes, and what comes of it. The file
// that the workload writes is the judge.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { usualValues } from '../../deploy/values.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { until } from './cluster.ts'
import { say } from './room.ts'
import { startStage, writes, type Stage } from './stage.ts'
import { begin, comesBack, ended, holding, movedAway, tell, untouched } from './story.ts'
import { volumes } from './workload.ts'

const test = suite('power')
let stage: Stage

interface Agent { readonly pid: number; readonly restarts: number }

/** The container of the agent on a node: its process, as the machine itself numbers it, and how often kubelet has started it. */
async function agentOf(node: string): Promise<Agent> {
  const pod = (await stage.pods(usualValues.agentNamespace)).find(({ spec }) => spec.nodeName === node)
  const { restartCount, containerID } = pod?.status.containerStatuses?.[0] ?? { restartCount: 0, containerID: '' }
  const tasks = await stage.cluster.machine(node).run(['ctr', 'tasks', 'list'])
  const pid = Number(tasks.split('\n').find((line) => line.startsWith(containerID.replace('containerd://', '')))?.split(/\s+/)[1])
  return { pid, restarts: restartCount }
}

test('installed from one file, it runs as pods and audits every node', async () => {
  stage = await startStage(say)
})

test('power cut of a worker: found off, moved, switched on, back under its own word', async () => {
  const story = await begin(stage)
  await story.machine.powerOff()
  await movedAway(story)
  const incident = await ended(story)
  tell('power cut', story, incident)
  assert.is(incident.status.proof?.kind, 'found-off')
  await comesBack(story, incident)
})

test('kernel freeze: ordered off, moved, switched on, back', async () => {
  const story = await begin(stage)
  await story.machine.freeze()
  await movedAway(story)
  const incident = await ended(story)
  tell('kernel freeze', story, incident)
  assert.is(incident.status.proof?.kind, 'off')
  await comesBack(story, incident)
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

test('a freeze of a second is nothing', async () => {
  const story = await begin(stage)
  await story.machine.freeze()
  await clock.wait(1_000)
  await story.machine.thaw()
  await untouched(story)
})

test('its agent killed is nothing', async () => {
  const story = await begin(stage)
  const agent = await agentOf(story.machine.name)
  await story.machine.run(['sh', '-c', `kill -KILL ${agent.pid}`])
  await until('kubelet has started it again', async () => (await agentOf(story.machine.name)).restarts > agent.restarts, 60_000)
  await untouched(story)
})

test('kubelet killed is nothing', async () => {
  const story = await begin(stage)
  await story.machine.killService('kubelet', 'starts again')
  await untouched(story)
})

test('the stage is left', async () => await stage.stop())

test.run()
