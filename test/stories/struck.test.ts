// Two cables in each other's sockets, and the one who should notice is not heard just then: the machine that is struck says nothing that could
// be missed, and the one that was meant writes on.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { settled } from '../../sim/stage.ts'
import { findings, killLeader, peace, type Play } from './play.ts'

const test = suite('story: struck')

interface Exchanged extends Play {
  /** Its outlet feeds the victim, and the victim's outlet feeds it. */
  readonly other: string
}

async function exchanged(seed: number): Promise<Exchanged> {
  const on = await peace({ seed, power: 'outlet', nodes: 5, zones: 1 })
  const other = neighbourOf(on)
  const strip = on.world.devices.get('pdu-a-1')
  strip?.wire(on.victim, on.world.nodes.get(other)?.machine)
  strip?.wire(other, on.world.nodes.get(on.victim)?.machine)
  return { ...on, other }
}

const neighbourOf = ({ victim }: Play): string => (victim === 'node-1' ? 'node-2' : 'node-1')

async function struck(on: Exchanged): Promise<void> {
  await on.until('the neighbour is dark', () => on.world.nodes.get(on.other)?.machine.state() === 'off', 60_000)
}

async function unproven(on: Exchanged, span: number): Promise<void> {
  await on.run(span)
  const own = (await on.incidents()).filter(({ nodeName }) => nodeName === on.victim)
  assert.equal(own.map(({ status }) => status.proof), [undefined])
  assert.ok(own[0]?.status.timeline.some(({ detail }) => detail.includes(`${on.other} on the same device has not answered`) || detail.includes('it may have struck another machine')), 'it is told')
  assert.equal(findings(on), [])
}

test('both replicas die with the order, and the next ones begin when the one that was struck is NotReady already', async () => {
  const on = await exchanged(35)
  on.world.isolate(on.victim)
  await struck(on)
  for (const number of [0, 1]) on.world.killReplica(number)
  await on.run(90_000)
  for (const number of [0, 1]) on.world.startReplica(number)
  await unproven(on, 400_000)
})

test('the leader dies with its order, and the watch brings it to the next one ten seconds later', async () => {
  const on = await exchanged(36)
  // Else what fences the neighbour would cut the victim by accident.
  on.world.devices.get('pdu-a-1')?.setPlugFault(on.other, { does: 'fail' })
  const standby = on.world.replicas.host(1 - (on.leader() ?? 0)).name
  on.world.isolate(on.victim)
  await on.run(1_000)
  const heal = on.world.partition({ from: [standby], to: ['api'], planes: ['watch'] })
  await struck(on)
  killLeader(on)
  await on.run(8_000)
  heal()
  await unproven(on, 300_000)
})

for (const before of [300, 2_000]) {
  test(`the agent of the one that is struck ended ${before} ms before the victim fell silent, to be upgraded`, async () => {
    const on = await exchanged(37)
    void on.world.nodes.get(on.other)?.sayGoodbye('restart').then(() => on.world.killAgent(on.other))
    await on.run(before)
    on.world.isolate(on.victim)
    await unproven(on, 120_000)
  })
}

test('the agent of the one that is struck was dead, and its kubelet well', async () => {
  const on = await exchanged(37)
  on.world.killAgent(on.other)
  await on.run(30_000)
  on.world.isolate(on.victim)
  await unproven(on, 120_000)
})

test('the leader alone did not hear the one that is struck', async () => {
  const on = await exchanged(37)
  on.world.partition({ from: [on.world.replicas.host(on.leader() ?? 0).name], to: [on.other], planes: ['link', 'probe'] })
  await on.run(30_000)
  on.world.isolate(on.victim)
  await unproven(on, 120_000)
})

test('the agent of a neighbour is dead, and no cable is where it should not be: its Lease, renewed after the off, is its answer', async () => {
  const on = await peace({ seed: 37, power: 'outlet', nodes: 5, zones: 1 })
  on.world.killAgent(neighbourOf(on))
  await on.run(30_000)
  on.world.freeze(on.victim)
  await on.until('it is proven off', async () => (await on.incidents())[0]?.status.proof?.kind === 'off', 40_000)
  assert.equal(findings(on), [])
})

test('a cable that leads to the strip of another rack: its machine falls silent with the order, and that is no proof', async () => {
  const on = await peace({ seed: 38, power: 'bmc, then outlet', nodes: 6, zones: 2 })
  const stripOf = (node: string): string => on.world.switches(node)[1]?.[0]?.device ?? ''
  const other = [...on.world.nodes.keys()].find((node) => stripOf(node) !== stripOf(on.victim)) ?? ''
  on.world.devices.get(stripOf(on.victim))?.wire(on.victim, on.world.nodes.get(other)?.machine)
  on.world.devices.get(stripOf(other))?.wire(other, on.world.nodes.get(on.victim)?.machine)
  const controller = on.world.devices.get(`bmc-${on.victim}`)
  if (controller !== undefined) controller.fault = { does: 'hang' }
  on.world.isolate(on.victim)
  await on.until('the other is dark', () => on.world.nodes.get(other)?.machine.state() === 'off', 60_000)
  await on.run(200_000)
  const own = (await on.incidents()).filter(({ nodeName }) => nodeName === on.victim)
  assert.equal(own.map(({ status }) => status.proof), [undefined])
  assert.ok(own[0]?.status.timeline.some(({ detail }) => detail.includes(`${other} has not beaten since the first off`)))
  assert.is(on.world.nodes.get(other)?.machine.state(), 'running')
  assert.equal(findings(on), [])
})

test('whose device may take its time to say off: who was struck is not dark for longer than that', async () => {
  const on = await exchanged(39)
  const path = '/api/v1/namespaces/holdfast-system/configmaps/fence-method-template-pdu'
  const template = await settled(on.world, on.world.api.get<KubeObject & { readonly data: Readonly<Record<string, string>> }>(path))
  assert.ok(template.ok)
  const slow = { 'template.properties': `${template.value.data['template.properties']}verify=60s\n` }
  assert.ok((await settled(on.world, on.world.api.patch(path, 'merge', { data: slow }))).ok)
  await on.run(10_000)
  on.world.isolate(on.victim)
  await struck(on)
  await on.until('the neighbour has its power again', () => on.world.nodes.get(on.other)?.machine.state() !== 'off', 60_000)
  await unproven(on, 120_000)
})

test.run()
