// A kubelet that is dead and stays so, on a machine that runs: nobody is fenced for that, until a policy of its own wants it. Five minutes are the least that one can ask for.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { machineClock as clock } from '../../edge/clock.ts'
import { ready, until } from './cluster.ts'
import { say } from './room.ts'
import { startStage, writes, type Stage } from './stage.ts'
import { begin, comesBack, ended, incidentsOf, leftAlone, movedAway, tell } from './story.ts'
import { volumes } from './workload.ts'

const test = suite('remedy')
const condition = 'KubeletDead'
const period = 300_000
const within = 120_000
const postsEvery = 10_000
let stage: Stage

/** As a node problem detector does: again and again, each time with a new time. */
async function post(node: string, status: 'True' | 'False'): Promise<void> {
  const at = `${new Date().toISOString().slice(0, 19)}Z`
  const conditions = [{ type: condition, status, reason: 'SeenFromOutside', message: 'its kubelet does not run', lastHeartbeatTime: at, lastTransitionTime: at }]
  await stage.cluster.kubectl('patch', 'node', node, '--subresource', 'status', '--type', 'strategic', '--patch', JSON.stringify({ status: { conditions } }))
}

test('the stage is set, with a remedy for nodes whose kubelet is dead', async () => {
  stage = await startStage(say)
  const file = join(stage.cluster.folder, 'remedy.json')
  writeFileSync(file, JSON.stringify({
    apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeRemedy', metadata: { name: 'no-kubelet' }, spec: { remedy: 'fence', thresholds: [{ name: 'kubelet', condition, period: `${period / 1_000}s` }] },
  }))
  await stage.cluster.kubectl('apply', '--filename', file)
})

test('a dead kubelet is no death, for as long as its remedy is patient; then its machine is switched off, its work moved, and it is back with a kubelet', async () => {
  const story = await begin(stage)
  const { name } = story.machine
  await story.machine.killService('kubelet', 'stays away')
  let posted = -Infinity
  const goesOn = async (): Promise<void> => {
    if (clock.now() - posted < postsEvery) return
    posted = clock.now()
    await post(name, 'True')
  }
  const began = clock.now()
  await until('Kubernetes takes it for lost', async () => {
    await goesOn()
    return !ready(await stage.cluster.node(name))
  }, within)
  // Most of what the remedy waits: no word of Kubernetes' own is one of a death.
  while (clock.now() - began < period * 0.8) {
    await goesOn()
    await clock.wait(1_000)
  }
  await leftAlone(story)
  for (const volume of volumes) assert.ok(writes(stage, volume), `nobody writes ${volume}`)
  await until('its remedy opens an incident', async () => {
    await goesOn()
    return (await incidentsOf(story)).length > 0
  }, period)
  const asked = clock.now() - began
  const [{ cause } = {}] = await incidentsOf(story)
  assert.is(cause, 'remedy')
  await movedAway(story)
  await post(name, 'False')
  const incident = await ended(story)
  say(`kubelet dead: nothing done for ${(asked / 1_000).toFixed(0)} s, then by its remedy`)
  tell('kubelet dead, by its remedy', story, incident)
  assert.is(incident.status.proof?.kind, 'off')
  await comesBack(story, incident)
})

test('the stage is left', async () => await stage.stop())

test.run()
