// Nodes that Kubernetes itself takes for lost, or could, and that are let be, because somebody hears their agent. Each waits out
// Kubernetes' own minutes.
import { suite } from 'uvu'
import { usualValues } from '../../deploy/values.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { ready, until } from './cluster.ts'
import { partition, theApi } from './partition.ts'
import { say } from './room.ts'
import { startStage, type Stage } from './stage.ts'
import { begin, leftAlone, untouched } from './story.ts'

const test = suite('patience')
let stage: Stage

/** Kubernetes' own patience with a node is most of a minute; kubelet's with a call of its runtime is two. */
const notReadyWithin = 300_000

test('the stage is set', async () => {
  stage = await startStage(say)
})

test('cut off from the API server only: not Ready, and let be, since its agent is heard', async () => {
  const story = await begin(stage)
  const mend = await partition(story.machine, theApi, 'both ways')
  const lost = await until('Kubernetes takes it for lost', async () => !ready(await stage.cluster.node(story.machine.name)), notReadyWithin)
  await leftAlone(story)
  await mend()
  say(`cut off from the API server: not Ready after ${(lost / 1_000).toFixed(1)} s, nothing done`)
  await untouched(story)
})

test('cut off from the coordinators only: let be, since its peers hear it and its Lease moves', async () => {
  const story = await begin(stage)
  const replicas = (await stage.pods(usualValues.namespace)).map(({ status: { podIP = '' } }) => `${podIP}/32`)
  const mend = await partition(story.machine, replicas, 'both ways')
  // Longer than the most patient profile.
  await clock.wait(60_000)
  await leftAlone(story)
  await mend()
  say('cut off from the coordinators: nothing done in 60 s')
  await untouched(story)
})

test('a runtime that hangs is no death: not Ready, and let be, since its agent is heard', async () => {
  const story = await begin(stage)
  await story.machine.run(['sh', '-c', 'kill -STOP $(cat /run/containerd.pid)'])
  const lost = await until('its kubelet says so', async () => !ready(await stage.cluster.node(story.machine.name)), notReadyWithin)
  await leftAlone(story)
  await story.machine.run(['sh', '-c', 'kill -CONT $(cat /run/containerd.pid)'])
  say(`runtime hung: not Ready after ${(lost / 1_000).toFixed(1)} s, nothing done`)
  await untouched(story)
})

test('the stage is left', async () => await stage.stop())

test.run()
