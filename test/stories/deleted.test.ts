// The Node object is deleted in the middle of its fence. Kubernetes then deletes its pods within about a minute, whether the machine is off
// or not: so it is fenced all the same, for a while.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { conditionsOf } from '../../coordinator/node-fence-status.ts'
import { paths } from '../../coordinator/kubernetes.ts'
import type { Incident } from '../../core/incident.ts'
import { settled } from '../../sim/stage.ts'
import { ended, findings, happened, ourTaints, peace, programs, theIncident, workloadRuns, type Play } from './play.ts'

const test = suite('story: Node deleted')

/** Its Lease is its own, and is collected with it. */
async function deleteNode(on: Play): Promise<void> {
  for (const path of [paths.node(on.victim), paths.lease(on.victim)]) assert.ok((await settled(on.world, on.world.api.remove(path))).ok)
}

const isOff = (on: Play): boolean => on.world.nodes.get(on.victim)?.machine.state() === 'off'

interface Attachment extends KubeObject {
  spec: { nodeName: string }
}

const attachedTo = ({ world, victim }: Play): readonly string[] =>
  ((world.server?.peek('volumeattachments.storage.k8s.io') ?? []) as readonly Attachment[]).filter(({ spec }) => spec.nodeName === victim).map(({ metadata }) => metadata.name) // that collection's kind

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

const moments: readonly (readonly [string, (on: Play) => Promise<boolean>])[] = [
  ['once it is proven off', async (on) => (await theIncident(on))?.status.proof !== undefined],
  ['once its pods are freed', async (on) => (await theIncident(on))?.status.pods.some(({ fate }) => fate === 'freed') === true],
]
for (const [index, [what, so]] of moments.entries()) {
  test(`${what}: what is left is freed, and the workload runs again within a minute and a half`, async () => {
    const on = await peace({ seed: 44 + 4 * index })
    on.world.freeze(on.victim)
    await on.until(what, () => so(on), 60_000)
    await deleteNode(on)
    await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 90_000)
    const incident = await ended(on, 90_000)
    assert.equal([incident.status.outcome, succeeded(incident), incident.status.volumes.map(({ fate }) => fate)], ['NodeDeleted', 'True', incident.status.volumes.map(() => 'released')])
    assert.equal([attachedTo(on), isOff(on), programs(on, 'on'), findings(on), ourTaints(on), await told(on)], [[], true, 0, [], [], []])
  })
}

test('and one of its volumes cannot be detached: the incident says what it waits for, and ends all the same', async () => {
  const on = await peace({ seed: 49 })
  on.world.csi.settings.detachFault = 'error'
  on.world.freeze(on.victim)
  await on.until('it is proven off', async () => (await theIncident(on))?.status.proof !== undefined, 60_000)
  await deleteNode(on)
  await on.run(30_000)
  assert.equal((await theIncident(on))?.status.holds.map(({ because }) => because), ['waiting-for-volumes'])
  const incident = await ended(on, 700_000)
  assert.equal([incident.status.outcome, incident.status.volumes.some(({ fate, reason }) => fate === 'attached' && reason !== undefined)], ['NodeDeleted', true])
  assert.equal(findings(on), [])
})

test('and then its fenced boot is heard: the proof was false, nothing more is freed by it, and it ends as a failure', async () => {
  const on = await peace({ seed: 51 })
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(device)
  device.fault = { does: 'lie' }
  on.world.csi.settings.detachFault = 'error'
  const heal = on.world.isolate(on.victim)
  await on.until('it is proven off', async () => (await theIncident(on))?.status.proof !== undefined, 60_000)
  // It would make its Node anew.
  on.world.killKubelet(on.victim)
  await deleteNode(on)
  await on.run(35_000)
  heal()
  const incident = await ended(on, 60_000)
  assert.equal([incident.status.outcome, incident.status.proof, incident.status.voided.map(({ how }) => how), succeeded(incident), isOff(on)], ['NodeDeleted', undefined, [undefined], 'False', false])
})

test('made anew while its volumes are let go: it is given back like any other, and nothing more is freed', async () => {
  const on = await peace({ seed: 50 })
  on.world.csi.settings.detachFault = 'error'
  on.world.freeze(on.victim)
  await on.until('it is proven off', async () => (await theIncident(on))?.status.proof !== undefined, 60_000)
  await deleteNode(on)
  await on.run(15_000)
  assert.ok((await settled(on.world, on.world.api.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: on.victim } }))).ok)
  await on.run(1_000)
  on.world.csi.settings.detachFault = 'none'
  const incident = await ended(on, 900_000)
  assert.equal([incident.status.outcome, findings(on), ourTaints(on)], ['Recovered', [], []])
  await on.until('the workload runs', () => workloadRuns(on), 120_000)
})

test.run()
