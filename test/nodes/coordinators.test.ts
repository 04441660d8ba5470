// The coordinator on machines that die too: its own node, the leader together with the node of the workload, all at once. On nodes with a gate.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { names, usualValues } from '../../deploy/values.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { until } from './cluster.ts'
import type { Machine } from './machine.ts'
import { say } from './room.ts'
import { startStage, writes, type Stage } from './stage.ts'
import { requestsIn } from './api-journal.ts'
import { agentsOnlyRead, begin, comesBack, ended, gateOf, incidentsOf, movedAway, neverTwoWriters, tell, writtenAgain } from './story.ts'
import { volumes } from './workload.ts'

const test = suite('coordinators')
let stage: Stage

async function leader(): Promise<Machine> {
  const { namespace } = usualValues
  const lease = await stage.cluster.api.get<{ spec?: { holderIdentity?: string } }>(`/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${names.coordinator}`)
  const holder = lease.ok ? lease.value.spec?.holderIdentity ?? '' : ''
  const pod = (await stage.pods(namespace)).find(({ metadata: { name } }) => holder.startsWith(`${name}-`))
  return stage.cluster.machine(pod?.spec.nodeName ?? '')
}

test('the stage is set', async () => {
  stage = await startStage(say)
})

test('the leader and the node of the workload die together: what is proven is moved, and both come back', async () => {
  const story = await begin(stage)
  const other = await leader()
  // On a fresh stage the workload is where no replica is; else both would die here, which is another story.
  assert.not((await stage.pods(usualValues.namespace)).some(({ spec }) => spec.nodeName === story.machine.name), `a replica is on ${story.machine.name} too`)
  await Promise.all([story.machine.powerOff(), other.powerOff()])
  await movedAway(story)
  await stage.peace()
  say(`leader and worker: ${writtenAgain(story)}`)
  neverTwoWriters(story)
})

test('the leader dies with its node: the other replica finds it off, and it comes back', async () => {
  const story = await begin(stage, await leader())
  await story.machine.powerOff()
  const incident = await ended(story)
  tell('the leader\'s node', story, incident)
  assert.is(incident.status.proof?.kind, 'found-off')
  await comesBack(story, incident)
  assert.is.not((await leader()).name, story.machine.name)
})

test('the only machine that lives is under quarantine, and no replica lives: one starts there, and everything comes back', async () => {
  const { namespace } = usualValues
  const replicas = new Set((await stage.pods(namespace)).map(({ spec }) => spec.nodeName))
  const [last, ...others] = [...stage.cluster.machines.values()].toSorted((one, other) => Number(replicas.has(one.name)) - Number(replicas.has(other.name)))
  if (last === undefined) throw new Error('no machine')
  assert.equal([replicas.has(last.name), others.every(({ name }) => replicas.has(name))], [false, true])
  const story = await begin(stage, last)
  await last.powerOff()
  // It is held for half a minute yet: controllers' caches outlive a taint.
  await until('it is back, under quarantine', async () => last.power() === 'on' && last.bootId() !== story.bootId && (await incidentsOf(story)).some(({ status }) => status.holds.some(({ because }) => because === 'waiting-for-controllers')), 120_000)
  await Promise.all(others.map((machine) => machine.powerOff()))
  const [dark, darkWall] = [clock.now(), clock.wall()]
  await until('a replica runs on it', async () => (await stage.pods(namespace)).some(({ spec, status }) => spec.nodeName === last.name && status.phase === 'Running'), 180_000)
  say(`no replica lives: one runs under quarantine ${((clock.now() - dark) / 1_000).toFixed(1)} s later`)
  await until('every machine has power', () => others.every((machine) => machine.power() === 'on'), 300_000)
  await stage.peace()
  say(`no replica lives: peace ${((clock.now() - dark) / 1_000).toFixed(1)} s later`)
  neverTwoWriters(story)
  agentsOnlyRead(story)
  // Its gate is shut, and nobody but the API server could tell it more: so the journal that shows no writing is kept.
  assert.ok(requestsIn(stage.cluster.folder).some(({ node, at }) => node === last.name && at >= darkWall), 'what its agent asked')
})

test('all machines lose their power and get it back: every gate opens by itself, and the cluster comes up', async () => {
  const story = await begin(stage)
  const machines = [...stage.cluster.machines.values()]
  await Promise.all(machines.map((machine) => machine.powerOff()))
  await clock.wait(5_000)
  await Promise.all(machines.map((machine) => machine.powerOn()))
  const back = clock.now()
  await until('every gate of the new boots is open', () => machines.every((machine) => gateOf(machine) === 'open'), 240_000)
  say(`all machines: every gate open ${((clock.now() - back) / 1_000).toFixed(1)} s after power on`)
  await until('the workload writes again', () => volumes.every((volume) => writes(stage, volume) && stage.turns(volume).at(-1)?.boot !== story.bootId), 240_000)
  say(`all machines: written again ${((clock.now() - back) / 1_000).toFixed(1)} s after power on`)
  neverTwoWriters(story)
  await stage.peace()
  neverTwoWriters(story)
  agentsOnlyRead(story)
})

test('the stage is left', async () => await stage.stop())

test.run()
