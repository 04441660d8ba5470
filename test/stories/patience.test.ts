// Where a policy has nodes fenced for want of patience: what was never asked since its agent's first word is no leftover.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { fencesPath } from '../../coordinator/node-fence.ts'
import { settled } from '../../sim/stage.ts'
import { findings, happened, ourTaints, peace, programs, theIncident, transcript, workloadRuns, type Play } from './play.ts'

const test = suite('patience')
const budget = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'db', namespace: 'work' }, spec: { minAvailable: 1, selector: { matchLabels: { app: 'db' } } } } as KubeObject

async function fence(on: Play): Promise<void> {
  const made = await settled(on.world, on.world.api.create<KubeObject>(fencesPath, { apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeFence', metadata: { name: 'by-hand' }, spec: { nodeName: on.victim } }))
  if (!made.ok) throw new Error(made.error.message)
}

test('a person who takes a fence back before anything was ordered keeps a node that runs well', async () => {
  const on = await peace({ seed: 301, policy: { evictWithin: '10m', returnPatience: '60s', afterPatience: 'fence' }, controlLoops: { disruption: true }, objects: [budget] })
  await on.run(120_000)
  await fence(on)
  await on.until('its budget holds it', async () => (await theIncident(on))?.status.holds.some(({ because }) => because === 'disruption-budget') === true, 60_000)
  await settled(on.world, on.world.api.patch(`${fencesPath}/by-hand`, 'merge', { spec: { abort: true } }))
  await on.run(120_000)
  const all = await on.incidents()
  assert.equal([all.map(({ cause, status }) => [cause, status.outcome]), programs(on, 'off'), happened(on, 'machine lost its power').length], [[['by-hand', 'Withdrawn']], 0, 0], all.map(transcript).join('\n\n'))
  assert.equal([findings(on), ourTaints(on), workloadRuns(on)], [[], [], true])
})

test('a person who aborts a fence for what is left over is not answered by another one', async () => {
  const on = await peace({ seed: 303, policy: { returnPatience: '60s', afterPatience: 'fence' } })
  const node = on.world.nodes.get(on.victim)
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(node !== undefined && device !== undefined)
  node.faults.kept = 'staged mounts'
  on.world.freeze(on.victim)
  await on.until('it is back, and not clean', async () => (await theIncident(on))?.status.holds.some(({ because, detail }) => because === 'waiting-for-clean' && detail.includes('staging')) === true, 180_000)
  device.fault = { does: 'fail' }
  await on.until('it is to be fenced for it', async () => (await on.incidents()).some(({ cause }) => cause === 'leftover'), 120_000)
  const name = (await on.incidents()).find(({ cause }) => cause === 'leftover')?.name ?? ''
  await settled(on.world, on.world.api.patch(`${fencesPath}/${name}`, 'merge', { spec: { abort: true } }))
  device.fault = undefined
  const before = happened(on, 'machine lost its power').length
  await on.run(400_000)
  const all = await on.incidents()
  assert.equal([all.filter(({ cause }) => cause === 'leftover').length, happened(on, 'machine lost its power').length - before], [1, 0], all.map(transcript).join('\n\n'))
})

test.run()
