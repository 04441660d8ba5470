// Drills that a policy asks for: a spare node is switched off and on by itself, and whatever speaks against that keeps it on.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { readDrillTurns, type DrillTurnEnd } from '../../coordinator/drill-turns.ts'
import { readRecord } from '../../coordinator/node-record.ts'
import { settled } from '../../sim/stage.ts'
import { findings, happened, killLeader, ourTaints, peace, workload, type Play } from './play.ts'

const test = suite('story: scheduled drill')

const asking = { drills: { schedule: '0 3 * * 6', again: '2160h' } }
const spared = (seed: number, policy: object = asking) => peace({ seed, power: 'outlet', nodes: 5, zones: 1, policy })

function due(on: Play): void {
  assert.ok(on.coordinators.get(on.leader() ?? -1)?.drillSpare('all'), 'a drill is due')
}

function latest(on: Play): DrillTurnEnd | undefined {
  const lease = on.world.server?.peek('leases.coordination.k8s.io').find(({ metadata }) => metadata.name === 'holdfast-coordinator')
  return readDrillTurns(lease?.metadata.annotations)[0]
}

const cordon = (on: Play, node: string, unschedulable: boolean | null = true) => settled(on.world, on.world.api.patch(`/api/v1/nodes/${node}`, 'merge', { spec: { unschedulable } }))

async function cordonAndDrain(on: Play, node: string): Promise<void> {
  await cordon(on, node)
  for (const { metadata: { name, namespace }, spec } of workload(on)) {
    if (spec.nodeName === node) await settled(on.world, on.world.api.remove(`/api/v1/namespaces/${namespace}/pods/${name}`, {}))
  }
  const attached = () => on.world.server?.peek('volumeattachments.storage.k8s.io').some((object) => (object as KubeObject & { spec: { nodeName: string } }).spec.nodeName === node)
  await on.until('it is drained', async () => workload(on).every(({ spec }) => spec.nodeName !== node) && attached() === false, 120_000)
}

function identities(on: Play, node: string): readonly string[] {
  const object = on.world.server?.peek('noderecords.holdfast.dev').find(({ metadata }) => metadata.name === node)
  const read = object === undefined ? undefined : readRecord(object)
  return read?.ok === true ? read.record.paths.map(({ identity }) => identity) : []
}

const drills = async (on: Play) => (await on.incidents()).filter(({ cause }) => cause === 'scheduled-drill')
const ordered = (on: Play) => happened(on, 'device ordered').map(({ plug, to }) => `${String(plug)} ${String(to)}`)

test('a spare node is switched off and on, alone; its path is proven, and it is not drilled again', async () => {
  const on = await spared(61)
  await cordonAndDrain(on, on.victim)
  due(on)
  await on.until('the drill is over', async () => (await drills(on)).some(({ status }) => status.phase === 'Final'), 240_000)
  const [drill] = await drills(on)
  assert.equal([drill?.nodeName, drill?.status.outcome, drill?.status.proof], [on.victim, 'Drilled', undefined])
  assert.equal(latest(on)?.chosen, { node: on.victim, incident: drill?.name })
  assert.equal(ordered(on), [`${on.victim} off`, `${on.victim} on`])
  await on.until('it is on record', () => identities(on, on.victim).join() === 'proven', 60_000)
  due(on)
  await on.until('the next hour is over', () => latest(on)?.refused !== undefined, 30_000)
  assert.equal(latest(on)?.nodes.map(({ node, because }) => [node, because]), [[on.victim, 'proven']])
  assert.equal([(await drills(on)).length, ordered(on).length, ourTaints(on), findings(on)], [1, 2, [], []])
})

test('of two spare nodes one is drilled at a time, and at the next hour the other', async () => {
  const on = await spared(62)
  const spare = on.victim === 'node-1' ? 'node-2' : 'node-1'
  for (const node of [on.victim, spare]) await cordonAndDrain(on, node)
  const over = (many: number) => on.until(`${many} are over`, async () => {
    const all = await drills(on)
    return all.length === many && all.every(({ status }) => status.phase === 'Final')
  }, 240_000)
  due(on)
  await over(1)
  await on.run(120_000)
  assert.is((await drills(on)).length, 1)
  due(on)
  await over(2)
  assert.equal((await drills(on)).map(({ nodeName, status }) => `${nodeName} ${status.outcome}`).toSorted(), [`${on.victim} Drilled`, `${spare} Drilled`].toSorted())
  assert.equal(findings(on), [])
})

test('a policy that does not ask has no hour; one that asks and finds no spare node says why', async () => {
  const quiet = await spared(63, {})
  assert.is(quiet.coordinators.get(quiet.leader() ?? -1)?.drillSpare('all'), false)
  const on = await spared(63)
  due(on)
  await on.until('the hour is over', () => latest(on) !== undefined, 30_000)
  assert.is(latest(on)?.refused?.detail, 'no node of policy all is cordoned')
  await cordon(on, on.victim)
  due(on)
  await on.until('the next one', () => latest(on)?.nodes.length === 1, 30_000)
  assert.match(latest(on)?.nodes[0]?.detail ?? '', /drain it first/)
  assert.equal([await on.incidents(), ordered(on)], [[], []])
})

test('while a node is being fenced nothing is drilled', async () => {
  const on = await spared(64)
  const spare = on.victim === 'node-1' ? 'node-2' : 'node-1'
  await cordonAndDrain(on, spare)
  on.world.freeze(on.victim)
  await on.until('an incident', async () => (await on.incidents()).length > 0, 60_000)
  due(on)
  await on.until('the hour is over', () => latest(on) !== undefined, 30_000)
  assert.match(latest(on)?.refused?.detail ?? '', new RegExp(`of ${on.victim} is open`))
  await on.run(180_000)
  assert.equal([await drills(on), ordered(on).filter((order) => order.startsWith(`${spare} `))], [[], []])
})

test('uncordoned, or a pod bound to it, once its NodeFence stands: nothing is ordered', async () => {
  for (const disturb of [
    (on: Play) => cordon(on, on.victim, null),
    (on: Play) => settled(on.world, on.world.api.create('/api/v1/namespaces/work/pods', { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'landed', namespace: 'work' }, spec: { nodeName: on.victim, containers: [{ name: 'one', image: 'one' }] } })),
  ]) {
    const on = await spared(65)
    await cordonAndDrain(on, on.victim)
    // No order before its device was read.
    const strip = on.world.devices.get('pdu-a-1')
    assert.ok(strip)
    strip.fault = { does: 'hang' }
    await on.run(15_000)
    due(on)
    await on.until('it is chosen', async () => (await drills(on)).length === 1, 30_000)
    const told = await disturb(on)
    assert.ok(told.ok)
    await on.run(1_000)
    strip.heal()
    await on.until('it is over', async () => (await drills(on)).every(({ status }) => status.phase === 'Final'), 240_000)
    const [drill] = await drills(on)
    assert.equal([drill?.status.outcome, drill?.status.drill?.passed, ordered(on)], ['Withdrawn', false, []])
    assert.match(drill?.status.drill?.detail ?? '', /not cordoned|work\/landed is on the node still/)
  }
})

test('the leader is killed in the hour: the next one drills nobody but by a NodeFence that stands, and at most once', async () => {
  const on = await spared(66)
  await cordonAndDrain(on, on.victim)
  due(on)
  const leader = killLeader(on)
  await on.until('another one leads', () => on.leader() !== undefined && on.leader() !== leader, 20_000)
  await on.run(240_000)
  assert.ok((await drills(on)).every(({ status }) => status.phase === 'Final'))
  assert.ok((await drills(on)).length <= 1)
  assert.ok(ordered(on).filter((order) => order.endsWith(' off')).length <= 1)
  assert.is(on.world.nodes.get(on.victim)?.machine.state(), 'running')
  assert.equal(findings(on), [])
})

test.run()
