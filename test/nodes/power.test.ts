// The product as a user installs it, on machines that really die: what it does, how long it takes, and what comes of it. The file
// that the workload writes is the judge.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { usualValues } from '../../deploy/values.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { until } from './cluster.ts'
import { killContainer } from './containers.ts'
import { say } from './room.ts'
import { startStage, type Pod, type Stage } from './stage.ts'
import { begin, comesBack, ended, movedAway, refusedNobody, tell, untouched } from './story.ts'

const test = suite('power')
let stage: Stage

const restarts = ({ status }: Pod): number => status.containerStatuses?.[0]?.restartCount ?? 0

async function agentOf(node: string): Promise<Pod> {
  const pod = (await stage.pods(usualValues.agentNamespace)).find(({ spec }) => spec.nodeName === node)
  if (pod === undefined) throw new Error(`no agent on ${node}`)
  return pod
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
  refusedNobody(story)
})

test('kernel freeze: ordered off, moved, switched on, back', async () => {
  const story = await begin(stage)
  await story.machine.freeze()
  await movedAway(story)
  const incident = await ended(story)
  tell('kernel freeze', story, incident)
  assert.match(incident.status.timeline[0]?.detail ?? '', /probe silent; witness .* deaf/, 'its peers tell of it, long before the Lease does')
  assert.is(incident.status.proof?.kind, 'off')
  await comesBack(story, incident)
  refusedNobody(story)
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
  const before = restarts(await agentOf(story.machine.name))
  await killContainer(stage, await agentOf(story.machine.name))
  await until('kubelet has started it again', async () => restarts(await agentOf(story.machine.name)) > before, 60_000)
  await untouched(story)
})

test('kubelet killed is nothing', async () => {
  const story = await begin(stage)
  await story.machine.killService('kubelet', 'starts again')
  await untouched(story)
})

test('the stage is left', async () => await stage.stop())

test.run()
