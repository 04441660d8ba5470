// A person's word was refuted by the node itself, and nobody who heard that leads any more.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { fencesPath } from '../../coordinator/node-fence.ts'
import { settled } from '../../sim/stage.ts'
import { findings, peace, theIncident } from './play.ts'

const test = suite('word outlived')

test('a node was heard after the word and is silent again: it proves nothing to replicas that began since, either', async () => {
  const on = await peace({ seed: 971 })
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(device)
  device.fault = { does: 'hang' }
  const made = await settled(on.world, on.world.api.create<KubeObject>(fencesPath, { apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeFence', metadata: { name: 'by-hand' }, spec: { nodeName: on.victim } }))
  assert.ok(made.ok)
  await on.run(60_000)
  const boot = (await theIncident(on))?.boot
  const word = { boot, by: 'on call', reason: 'its plugs are in my hand', until: new Date(on.world.clock.wall() + 7_200_000).toISOString() }
  const said = await settled(on.world, on.world.api.patch<KubeObject>(`${fencesPath}/by-hand`, 'merge', { spec: { acknowledge: word } }))
  assert.ok(said.ok)
  // It runs all the while, and is heard.
  await on.run(30_000)
  on.world.isolate(on.victim)
  await on.run(120_000)
  assert.is((await theIncident(on))?.status.proof, undefined)
  assert.match((await theIncident(on))?.status.holds.find(({ because }) => because === 'unvouched')?.detail ?? '', /heard after it/)
  for (const number of [0, 1]) on.world.killReplica(number)
  for (const number of [0, 1]) on.world.startReplica(number)
  await on.run(400_000)
  assert.equal([(await theIncident(on))?.status.proof?.kind, findings(on)], [undefined, []])
})

test.run()
