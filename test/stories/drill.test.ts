// A drill: a cordoned, drained node is switched off while everybody listens. What it finds is what a wrong cable would do in earnest.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { fencesPath, incidentBody } from '../../coordinator/node-fence.ts'
import { readRecord } from '../../coordinator/node-record.ts'
import type { PathAudit } from '../../core/model.ts'
import { settled } from '../../sim/stage.ts'
import { findings, happened, ourTaints, peace, workload, type Play } from './play.ts'

const test = suite('story: drill')

function recordOf(on: Play, node: string) {
  const object = on.world.server?.peek('noderecords.holdfast.dev').find(({ metadata }) => metadata.name === node)
  const read = object === undefined ? undefined : readRecord(object)
  return read?.ok === true ? read.record : undefined
}

const identities = (on: Play, node: string): readonly PathAudit['identity'][] => (recordOf(on, node)?.paths ?? []).map(({ identity }) => identity)

/** As a person would before it. */
async function cordonAndDrain(on: Play, node: string): Promise<void> {
  await settled(on.world, on.world.api.patch(`/api/v1/nodes/${node}`, 'merge', { spec: { unschedulable: true } }))
  for (const { metadata: { name, namespace }, spec } of workload(on)) {
    if (spec.nodeName === node) await settled(on.world, on.world.api.remove(`/api/v1/namespaces/${namespace}/pods/${name}`, {}))
  }
  const attached = () => on.world.server?.peek('volumeattachments.storage.k8s.io').some((object) => (object as KubeObject & { spec: { nodeName: string } }).spec.nodeName === node)
  await on.until('it is drained', async () => workload(on).every(({ spec }) => spec.nodeName !== node) && attached() === false, 120_000)
}

/** What the command line writes. */
async function begin(on: Play, node: string): Promise<void> {
  const record = recordOf(on, node)
  const leader = on.coordinators.get(on.leader() ?? -1)
  const row = leader?.seen.nodes.get(node)
  const [policy] = leader?.policies() ?? []
  if (record === undefined || row === undefined || policy === undefined) throw new Error(`${node} is not known`)
  const body = incidentBody({ name: `${node}-drill-1`, nodeName: node, nodeUid: row.uid, boot: record.boot, machine: row.machine, cause: 'drill', policy })
  const made = await settled(on.world, on.world.api.create(fencesPath, body))
  if (!made.ok) throw new Error(made.error.message)
}

const theDrill = async (on: Play) => (await on.incidents()).find(({ cause }) => cause === 'drill')
const over = (on: Play) => on.until('the drill is over', async () => (await theDrill(on))?.status.phase === 'Final', 240_000)

for (const power of ['outlet', 'two feeds on two strips'] as const) {
  test(`${power}: off, silent alone, on, a new boot; its identity is proven by it, and stays so`, async () => {
    const on = await peace({ seed: 51, power, nodes: 5, zones: 1 })
    const node = on.victim
    assert.ok(identities(on, node).every((identity) => identity === 'unproven'))
    await cordonAndDrain(on, node)
    const boot = recordOf(on, node)?.boot
    await begin(on, node)
    await over(on)
    const drill = await theDrill(on)
    assert.equal([drill?.status.outcome, drill?.status.drill?.passed, drill?.status.proof], ['Drilled', true, undefined])
    assert.is(happened(on, 'machine lost its power').filter((one) => one['node'] === node).length, 1)
    await on.until('it is on record', () => identities(on, node).every((identity) => identity === 'proven'), 60_000)
    assert.is.not(recordOf(on, node)?.boot, boot)
    assert.equal([ourTaints(on), findings(on)], [[], []])

    on.world.reboot(node, 1_000)
    await on.until('another boot is audited', () => recordOf(on, node)?.boot !== undefined && recordOf(on, node)?.paths.every(({ boot: at }) => at === recordOf(on, node)?.boot) === true, 120_000)
    await on.run(60_000)
    assert.ok(identities(on, node).every((identity) => identity === 'proven'))
  })
}

test('outlets that changed places: the neighbour falls silent, the drill fails by name, everything is on again, and the path is marked', async () => {
  const on = await peace({ seed: 52, power: 'outlet', nodes: 5, zones: 1 })
  const strip = on.world.devices.get('pdu-a-1')
  const node = on.victim
  const other = node === 'node-1' ? 'node-2' : 'node-1'
  await cordonAndDrain(on, node)
  strip?.wire(node, on.world.nodes.get(other)?.machine)
  strip?.wire(other, on.world.nodes.get(node)?.machine)
  await begin(on, node)
  await over(on)
  const drill = await theDrill(on)
  assert.equal([drill?.status.outcome, drill?.status.drill?.passed], ['Withdrawn', false])
  assert.match(drill?.status.drill?.detail ?? '', /beats on: the path leads to another machine|node-\d fell silent with it/)
  await on.until('the neighbour runs again', () => on.world.nodes.get(other)?.machine.state() === 'running', 120_000)
  await on.until('its path is marked', () => recordOf(on, node)?.paths.every(({ state }) => state === 'marked') === true, 60_000)
  assert.equal(happened(on, 'device ordered').filter(({ plug }) => plug === node).map(({ to }) => to), ['off', 'on'])
  assert.equal(findings(on), [])
})

test('a neighbour hangs on the same outlet: silent with it, so nothing is proven', async () => {
  const on = await peace({ seed: 53, power: 'outlet', nodes: 5, zones: 1 })
  const node = on.victim
  const other = node === 'node-1' ? 'node-2' : 'node-1'
  await cordonAndDrain(on, node)
  await begin(on, node)
  await on.until('it is off', () => on.world.nodes.get(node)?.machine.state() === 'off', 60_000)
  on.world.cutPower(other)
  await over(on)
  const drill = await theDrill(on)
  assert.equal([drill?.status.drill?.passed, drill?.status.drill?.detail], [false, `${other} fell silent with it`])
  assert.equal(identities(on, node), ['unproven'])
})

for (const [name, spoil, why] of [
  ['that is not cordoned', undefined, /not cordoned/],
  ['that runs pods still', async (on: Play) => { await settled(on.world, on.world.api.patch(`/api/v1/nodes/${on.victim}`, 'merge', { spec: { unschedulable: true } })) }, /drain it first/],
] as const) {
  test(`a node ${name} is refused, and no device is asked anything but its status`, async () => {
    const on = await peace({ seed: 54, power: 'outlet', nodes: 5, zones: 1 })
    await spoil?.(on)
    await on.run(2_000)
    await begin(on, on.victim)
    await over(on)
    const drill = await theDrill(on)
    assert.equal([drill?.status.drill?.passed, drill?.status.attempts], [false, []])
    assert.match(drill?.status.drill?.detail ?? '', why)
    assert.equal(happened(on, 'device ordered'), [])
    assert.equal(ourTaints(on), [])
  })
}

test('the leader is killed in the dark half: it fails, since nobody has listened all the while, and the machine is on again', async () => {
  const on = await peace({ seed: 55, power: 'outlet', nodes: 5, zones: 1 })
  await cordonAndDrain(on, on.victim)
  await begin(on, on.victim)
  await on.until('it is off', () => on.world.nodes.get(on.victim)?.machine.state() === 'off', 60_000)
  on.world.killReplica(on.leader() ?? -1)
  await over(on)
  assert.is((await theDrill(on))?.status.drill?.passed, false)
  assert.is(on.world.nodes.get(on.victim)?.machine.state(), 'running')
  assert.equal([identities(on, on.victim), findings(on)], [['unproven'], []])
})

test.run()
