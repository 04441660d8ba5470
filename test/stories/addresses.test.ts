// A machine is cut off by its addresses, and given back by them: those on its record, from the first order to the last, whatever its Node comes to
// name meanwhile.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { readRecord } from '../../coordinator/node-record.ts'
import type { NodeRecord } from '../../core/model.ts'
import { settled } from '../../sim/stage.ts'
import { ended, findings, happened, ourTaints, peace, workloadRuns, type Play } from './play.ts'

const test = suite('story: addresses')

const within = 60_000
const external = '203.0.113.9'

function recordOf(on: Play): NodeRecord | undefined {
  const object = on.world.server?.peek('noderecords.holdfast.dev').find(({ metadata }) => metadata.name === on.victim)
  const read = object && readRecord(object)
  return read?.ok === true ? read.record : undefined
}

const othersOf = (record: NodeRecord | undefined) => record?.paths.filter(({ method }) => method !== 'fabric-off')
const fabricOf = (record: NodeRecord | undefined) => record?.paths.find(({ method }) => method === 'fabric-off')

/** Beside the one that its kubelet posts, which leaves it there. */
async function nameAnother(on: Play): Promise<void> {
  const patched = await settled(on.world, on.world.api.patch<KubeObject>(`/api/v1/nodes/${on.victim}/status`, 'strategic', { status: { addresses: [{ type: 'ExternalIP', address: external }] } }))
  assert.ok(patched.ok)
}

/** The switch of every node's storage is told its addresses. */
async function scene(seed: number): Promise<Play> {
  const on = await peace({ seed, power: 'fabric, then bmc' })
  const before = fabricOf(recordOf(on))?.digest
  const path = '/api/v1/namespaces/holdfast-system/configmaps/fence-method-template-fabric'
  const was = await settled(on.world, on.world.api.get<KubeObject & { data: Record<string, string> }>(path))
  assert.ok(was.ok && before !== undefined)
  const patched = await settled(on.world, on.world.api.patch<KubeObject>(path, 'merge', { data: { 'template.properties': `${was.value.data['template.properties']}cidrs={addresses}\n` } }))
  assert.ok(patched.ok)
  await on.until('its path is audited as it is now', () => fabricOf(recordOf(on))?.state === 'verified' && fabricOf(recordOf(on))?.digest !== before, within)
  return on
}

test('a node that names another address is audited by it, once that is on its record', async () => {
  const on = await scene(91)
  const before = recordOf(on)
  await nameAnother(on)
  await on.until('its path is audited with it', () => fabricOf(recordOf(on))?.state === 'verified' && fabricOf(recordOf(on))?.digest !== fabricOf(before)?.digest, within)
  assert.equal(recordOf(on)?.addresses, [...before?.addresses ?? [], external].toSorted())
  assert.equal(othersOf(recordOf(on)), othersOf(before), 'and no other path is')
})

test('what the Node of a machine that was cut off comes to name changes no order: it is given back though it boots with another address, and has that on record once all is over', async () => {
  const on = await scene(92)
  const before = recordOf(on)
  assert.is(before?.addresses?.length, 1)
  on.world.freeze(on.victim)
  await on.until('its power was cut too', () => on.world.nodes.get(on.victim)?.machine.state() === 'off', within)
  const fabric = on.world.devices.get('fabric')
  assert.ok(fabric)
  fabric.fault = { does: 'ignore' }
  await nameAnother(on)
  await on.until('the new boot is heard', () => happened(on, 'agent runs').some(({ node }) => node === on.victim), within)
  await on.run(within)
  fabric.fault = undefined
  const incident = await ended(on, 300_000)
  assert.is(incident.status.outcome, 'Recovered')
  assert.equal([...new Set(incident.status.attempts.filter(({ method }) => method === 'fabric-off').map(({ action, digest }) => `${action} ${digest}`))], ['off', 'on'].map((action) => `${action} ${fabricOf(before)?.digest}`))
  assert.equal([findings(on), ourTaints(on), fabric.plugs.get(on.victim)?.switched], [[], [], 'on'])
  await on.until('the workload runs', () => workloadRuns(on), within)
  await on.until('the new boot has its own on record', () => recordOf(on)?.addresses?.includes(external) === true && fabricOf(recordOf(on))?.state === 'verified', within)
})

test.run()
