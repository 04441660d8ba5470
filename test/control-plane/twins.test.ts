// The negative twins on a real control plane: what looks like the story and is not. Nothing may be freed, nobody needlessly
// fenced, and whoever waits says for what.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { machineClock as clock } from '../../edge/clock.ts'
import type { Lab } from './lab.ts'
import { comesBack, ended, findings, happened, incidents, keepLab, nothingFreed, ourTaints, theIncident, times, transcript, until, untouched } from './lab-play.ts'

const test = suite('twins on a real control plane')
const keeper = keepLab({ policy: { restAfter: '10s', returnPatience: '60s' } })

/** Reasons of the holds that a replica has told of since then. */
function holds(lab: Lab, since: number): readonly string[] {
  return lab.replicaLog().filter((line) => line['msg'] === 'held' && Number(line['time']) >= since).map((line) => String(line['because']))
}

test('the agent alone dies: the node is never fenced', async () => {
  const play = await keeper.peace()
  const node = play.lab.nodes.get(play.victim)
  await node?.killAgent()
  await clock.wait(90_000)
  await untouched(play)
  await node?.startAgent()
})

test('agent and kubelet are dead, and the port answers with a reset: a kernel runs there, so it is never dead', async () => {
  const play = await keeper.peace()
  const node = play.lab.nodes.get(play.victim)
  play.lab.world.killKubelet(play.victim)
  await node?.killAgent()
  // Beyond the loss of Ready, which is all that Kubernetes itself has to say.
  await clock.wait(75_000)
  assert.equal(incidents(play), [])
  assert.is(happened(play, 'device ordered').length, 0)
  await nothingFreed(play)
  play.lab.world.startKubelet(play.victim)
  await node?.startAgent()
})

test('a device that breaks every connection gets no order; one that ignores its orders proves nothing; once it is well the story ends', async () => {
  const play = await keeper.peace()
  const device = play.lab.devices.get(play.victim)
  const held = (because: string) => () => theIncident(play)?.status.holds.some((hold) => hold.because === because) === true
  device?.fault('refuse')
  play.lab.world.freeze(play.victim)
  await until('it is held, because the device does not answer', held('path-unverified'), 60_000)
  assert.is(theIncident(play)?.status.attempts.length, 0)
  device?.fault('ignore')
  await until('an order was given in vain', () => theIncident(play)?.status.attempts.some((attempt) => attempt.result === 'failed' || attempt.result === 'unknown') === true, 90_000)
  await nothingFreed(play)
  device?.fault(undefined)
  const incident = await ended(play, 240_000)
  console.log(`a device that fails: ${times(play, incident)}`)
  await comesBack(play, incident)
})

test('a device that says off and then on again releases nothing', async () => {
  const play = await keeper.peace()
  const device = play.lab.world.devices.get(`bmc-${play.victim}`)
  assert.ok(device)
  device.fault = { does: 'bounce', after: 1_000 }
  const heal = play.lab.isolate(play.victim)
  await until('the machine was off and is on again', () => happened(play, 'machine powered on').length > 0, 60_000)
  await clock.wait(10_000)
  await nothingFreed(play)
  device.fault = undefined
  heal()
  const incident = await ended(play, 300_000)
  console.log(`off, then on: ${incident.status.outcome}: ${times(play, incident)}`)
  assert.equal(findings(play), [])
  assert.equal(await ourTaints(play.lab), [])
})

test('the fenced boot is heard again after the proof: void, nothing more freed, its own word ends it', async () => {
  const play = await keeper.peace()
  const device = play.lab.devices.get(play.victim)
  device?.lie(true)
  const heal = play.lab.isolate(play.victim)
  await until('a proof', () => theIncident(play)?.status.proof !== undefined, 60_000)
  heal()
  await until('the proof is void', () => (theIncident(play)?.status.voided.length ?? 0) > 0, 60_000)
  device?.lie(false)
  const incident = await ended(play, 300_000)
  console.log(`void: ${times(play, incident)}`)
  assert.is(incident.status.outcome, 'Void', transcript(incident))
  const voidAt = Date.parse(incident.status.voided[0]?.at ?? '')
  assert.not.ok(incident.status.timeline.some(({ what, at }) => what === 'freed' && Date.parse(at) > voidAt), 'freed after the proof was void')
  assert.equal(await ourTaints(play.lab), [])
})

test('half of the nodes fall silent at once: held, with the reason, and no incident', async () => {
  const play = await keeper.peace()
  const silent = [play.victim, ...[...play.lab.nodes.keys()].filter((name) => name !== play.victim)].slice(0, 2)
  const heals = silent.map((name) => play.lab.isolate(name))
  await clock.wait(30_000)
  assert.ok(holds(play.lab, play.beganWall).includes('storm'), holds(play.lab, play.beganWall).join())
  await untouched(play)
  // One by one, so that for a while one alone is silent: it must not look like the only one.
  heals[0]?.()
  await clock.wait(20_000)
  heals[1]?.()
  await clock.wait(10_000)
  assert.equal(incidents(play), [])
  assert.equal(findings(play), [])
})

test('the leader is stopped for a minute in the middle, and wakes: it hits nothing', async () => {
  const play = await keeper.peace()
  play.lab.world.freeze(play.victim)
  await until('an order on the record', () => (theIncident(play)?.status.attempts.length ?? 0) > 0, 60_000)
  const leader = play.lab.replicas.running.get(await play.lab.replicas.leader() ?? -1)
  assert.ok(leader !== undefined)
  leader?.pause()
  await clock.wait(60_000)
  leader?.resume()
  const incident = await ended(play, 180_000)
  console.log(`leader stopped for a minute: ${times(play, incident)}`)
  await comesBack(play, incident)
})

test('the lab stops', async () => await keeper.stop())

test.run()
