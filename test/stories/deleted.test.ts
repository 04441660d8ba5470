// The Node object is deleted in the middle of its fence. Kubernetes then deletes its pods within about a minute, whether the machine is off
// or not: so it is fenced all the same, for a while.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { conditionsOf } from '../../coordinator/node-fence-status.ts'
import { paths } from '../../coordinator/kubernetes.ts'
import type { Incident } from '../../core/incident.ts'
import { settled } from '../../sim/stage.ts'
import { ended, findings, happened, ourTaints, peace, programs, theIncident, workloadRuns, type Play } from './play.ts'

const test = suite('story: Node deleted')

async function deleteNode(on: Play): Promise<void> {
  assert.ok((await settled(on.world, on.world.api.remove(paths.node(on.victim)))).ok)
}

const isOff = (on: Play): boolean => on.world.nodes.get(on.victim)?.machine.state() === 'off'

const succeeded = ({ status }: Incident): string | undefined => conditionsOf(status).find(({ type }) => type === 'Succeeded')?.status

async function told(on: Play): Promise<readonly string[]> {
  const events = await settled(on.world, on.world.api.get<{ items: { reason?: string; type?: string }[] }>('/apis/events.k8s.io/v1/events'))
  assert.ok(events.ok)
  return events.value.items.flatMap(({ reason, type }) => (reason === 'SweptUnproven' ? [type ?? ''] : []))
}

/** The victim is cut off from everything but its storage and its device, and writes on. */
async function cutOff(seed: number): Promise<Play> {
  const on = await peace({ seed })
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(device)
  device.timing.off = 20_000
  on.world.isolate(on.victim)
  await on.until('an incident is open', async () => (await theIncident(on)) !== undefined, 60_000)
  return on
}

test('before it was proven, and it writes on: it is ordered off and proven before its pods run anywhere else', async () => {
  const on = await cutOff(45)
  await deleteNode(on)
  await on.until('it is off', () => isOff(on), 60_000)
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 900_000)
  const incident = await ended(on, 900_000)
  assert.equal([incident.status.outcome, incident.status.proof?.kind, succeeded(incident), await told(on)], ['NodeDeleted', 'off', 'True', []])
  assert.equal([programs(on, 'on'), findings(on), ourTaints(on)], [0, [], []])
})

test('and whoever led is killed with the other replica after the order: a leader that never saw the Node reads the device, and proves it', async () => {
  const on = await cutOff(46)
  await on.until('an order is given', async () => ((await theIncident(on))?.status.attempts.length ?? 0) > 0, 60_000)
  await deleteNode(on)
  for (const number of [0, 1]) on.world.killReplica(number)
  await on.run(5_000)
  for (const number of [0, 1]) on.world.startReplica(number)
  await on.until('it is proven off', async () => (await theIncident(on))?.status.proof !== undefined, 200_000)
  assert.ok(isOff(on))
  const incident = await ended(on, 900_000)
  assert.equal([incident.status.outcome, incident.status.proof?.kind, programs(on, 'on'), findings(on), ourTaints(on)], ['NodeDeleted', 'off', 0, [], []])
})

test('and its device never answers: it ends by itself within minutes, a failure, and that is told', async () => {
  const on = await peace({ seed: 47 })
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(device)
  device.fault = { does: 'hang' }
  on.world.freeze(on.victim)
  await on.until('an incident is open', async () => (await theIncident(on)) !== undefined, 60_000)
  await deleteNode(on)
  await on.run(280_000)
  assert.is.not((await theIncident(on))?.status.phase, 'Final')
  const incident = await ended(on, 200_000)
  assert.equal([incident.status.outcome, incident.status.proof, succeeded(incident)], ['NodeDeleted', undefined, 'False'])
  await on.run(5_000)
  assert.equal([await told(on), happened(on, 'machine lost its power').length, ourTaints(on)], [['Warning'], 0, []])
})

test.run()
