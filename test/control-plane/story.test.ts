// The story on a real control plane: a node dies and comes back. Three ways of dying, one way back.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { forceEvictionKey } from '../../core/acknowledge.ts'
import type { Incident } from '../../core/incident.ts'
import { comesBack, rightsSuffice } from './lab-judge.ts'
import { ended, keepLab, times, until, workloadRuns } from './lab-play.ts'

const test = suite('story on a real control plane')
const keeper = keepLab()

/** The port and two witnesses, or the Lease where they could not say. */
const toldByAll = /: (probe silent; witness \S+ deaf; witness \S+ deaf|Lease not renewed for [\d.]+ s)/
const offByOrder = /^order bmc off; status bmc off; status bmc off/

test('power loss: found off twice, cleared, secured, switched on, back under its own word', async () => {
  const play = await keeper.peace()
  play.lab.world.cutPower(play.victim)
  await until('the volumes are released', () => play.lab.attachments(play.victim).length === 0, 60_000)
  await until('the workload runs elsewhere', () => workloadRuns(play.lab, play.victim), 60_000)
  const incident = await ended(play, 180_000)
  console.log(`power loss: ${times(play, incident)}`)
  assert.is(incident.status.proof?.kind, 'found-off')
  assert.match(evidence(incident), /^audit bmc on; status bmc off; status bmc off; probe silent; witness \S+ deaf$/)
  assert.is(incident.status.volumes.filter((volume) => volume.fate === 'released').length, 2)
  await comesBack(play, incident)
})

test('kernel freeze: ordered off, read off twice, cleared, switched on', async () => {
  const play = await keeper.peace()
  play.lab.world.freeze(play.victim)
  await until('the workload runs elsewhere', () => workloadRuns(play.lab, play.victim), 60_000)
  const incident = await ended(play, 180_000)
  console.log(`kernel freeze: ${times(play, incident)}`)
  assert.is(incident.status.proof?.kind, 'off')
  assert.match(opening(incident), toldByAll)
  assert.match(evidence(incident), offByOrder)
  await comesBack(play, incident)
})

test('network partition: fenced by its own device, and back once the network is', async () => {
  const play = await keeper.peace()
  const heal = play.lab.isolate(play.victim)
  await until('the workload runs elsewhere', () => workloadRuns(play.lab, play.victim), 60_000)
  heal()
  const incident = await ended(play, 180_000)
  console.log(`network partition: ${times(play, incident)}`)
  assert.is(incident.status.proof?.kind, 'off')
  assert.match(opening(incident), toldByAll)
  assert.match(evidence(incident), offByOrder)
  await comesBack(play, incident)
})

test('the admission policies were in force all the while', async () => {
  const { lab, victim } = await keeper.peace()
  const taints = [{ key: forceEvictionKey, effect: 'NoExecute' }]
  const tried = await lab.api.patch(`/api/v1/nodes/${victim}?dryRun=All`, 'merge', { spec: { taints } })
  assert.match(tried.ok ? 'it passed' : tried.error.message, /Ready is True/)
})

test('no replica lacked a right', async () => {
  const { lab } = await keeper.peace()
  rightsSuffice(lab)
})

test('the lab stops', async () => await keeper.stop())

function evidence({ status }: Incident): string {
  return (status.proof?.evidence ?? []).map(({ source, word }) => `${source} ${word}`).join('; ')
}

function opening({ status }: Incident): string {
  return status.timeline.find(({ what }) => what === 'opened')?.detail ?? ''
}

test.run()
