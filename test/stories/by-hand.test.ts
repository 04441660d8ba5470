// A person has a node fenced by naming it, and nothing else.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { fencesPath } from '../../coordinator/node-fence.ts'
import { settled } from '../../sim/stage.ts'
import { ended, findings, happened, ourTaints, peace, programs, theIncident, transcript, workloadRuns, type Play } from './play.ts'

const test = suite('by hand')

async function fence(on: Play, nodeName: string, name = 'by-hand'): Promise<void> {
  const body = { apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeFence', metadata: { name }, spec: { nodeName } }
  const made = await settled(on.world, on.world.api.create<KubeObject>(fencesPath, body))
  if (!made.ok) throw new Error(made.error.message)
}

test('a node that runs is switched off, cleared and brought back, with its boot and its policy on record', async () => {
  const on = await peace({ seed: 141 })
  await fence(on, on.victim)
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 90_000)
  const incident = await ended(on, 400_000)
  assert.equal([incident.cause, incident.status.proof?.kind, incident.status.outcome], ['by-hand', 'off', 'Recovered'], transcript(incident))
  assert.is(incident.boot, incident.status.taken?.boot)
  assert.is(incident.policy.nodeDownPodDeletionPolicy, 'DeleteAllPods')
  assert.equal([findings(on), ourTaints(on)], [[], []])
})

test('of a node that nobody knows it ends at once, with a sentence', async () => {
  const on = await peace({ seed: 142 })
  await fence(on, 'node-of-elsewhere')
  const incident = await ended(on, 30_000)
  assert.is(incident.status.outcome, 'Refused')
  assert.match(transcript(incident), /closed \| Refused: there is no Node node-of-elsewhere: spec.nodeName must be the name of one/)
  assert.is(programs(on, 'off'), 0)
})

test('beside an open incident of a node that nobody takes for dead any more: that one orders it off, and the person\'s is a duplicate once it is proven', async () => {
  const on = await peace({ seed: 144 })
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(device)
  device.fault = { does: 'fail' }
  const heal = on.world.isolate(on.victim)
  await on.until('its orders came to nothing', async () => (await theIncident(on))?.status.holds.some(({ because }) => because === 'resting') === true, 60_000)
  on.world.killAgent(on.victim, true)
  on.world.killKubelet(on.victim)
  const answers = on.world.resetKubeletPort(on.victim)
  heal()
  device.fault = undefined
  await on.until('it is held, since it answers', async () => (await theIncident(on))?.status.holds.some(({ because }) => because === 'not-dead') === true, 120_000)
  await on.run(60_000)
  assert.is(happened(on, 'machine lost its power').length, 0)
  await fence(on, on.victim, 'a-person')
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 90_000)
  on.world.startAgent(on.victim)
  answers()
  await on.until('all is over', async () => (await on.incidents()).every(({ status }) => status.phase === 'Final'), 600_000)
  const ends = (await on.incidents()).map(({ cause, status }) => [cause, status.proof?.kind, status.outcome])
  assert.equal(ends.toSorted(), [['by-hand', undefined, 'Refused'], ['silence', 'off', 'Recovered']])
  assert.equal([findings(on), ourTaints(on)], [[], []])
})

test('of a node that is back and does not become clean: the incident that waits for it ends, and the person\'s goes on', async () => {
  const on = await peace({ seed: 145 })
  const node = on.world.nodes.get(on.victim)
  if (node !== undefined) node.faults.kept = 'staged mounts'
  on.world.freeze(on.victim)
  await on.until('it is back, and not clean', async () => (await theIncident(on))?.status.holds.some(({ because, detail }) => because === 'waiting-for-clean' && detail.includes('staging')) === true, 180_000)
  if (node !== undefined) node.faults.kept = 'nothing'
  await fence(on, on.victim, 'a-person')
  await on.until('all is over', async () => (await on.incidents()).every(({ status }) => status.phase === 'Final'), 600_000)
  assert.equal((await on.incidents()).map(({ cause, status }) => [cause, status.outcome]).toSorted(), [['by-hand', 'Recovered'], ['silence', 'Recovered']])
  assert.equal([happened(on, 'machine lost its power').length, findings(on), ourTaints(on), workloadRuns(on)], [2, [], [], true])
})

test('beside an open incident it is refused as a duplicate, and the open one goes on', async () => {
  const on = await peace({ seed: 143 })
  on.world.freeze(on.victim)
  await on.until('an incident is open', async () => await theIncident(on) !== undefined, 30_000)
  await fence(on, on.victim, 'a-duplicate')
  await on.until('the duplicate is over', async () => (await on.incidents()).some((one) => one.name === 'a-duplicate' && one.status.phase === 'Final'), 60_000)
  const [duplicate, other] = (await on.incidents()).toSorted((one) => (one.name === 'a-duplicate' ? -1 : 1))
  assert.is(duplicate?.status.outcome, 'Refused')
  assert.match(transcript(duplicate ?? await ended(on, 0)), /a duplicate: \S+ of the same node is open/)
  await on.until('the other is over', async () => (await on.incidents()).every((one) => one.status.phase === 'Final'), 400_000)
  assert.ok(other !== undefined)
  assert.equal([findings(on), ourTaints(on)], [[], []])
})

test.run()
