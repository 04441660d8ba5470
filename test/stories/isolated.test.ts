// A machine that is cut off from its storage before its power goes: what lay there alone runs elsewhere at once, and a machine that was
// merely out of reach keeps its power, its boot, and in the end its place.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Incident } from '../../core/incident.ts'
import { settled, type StageSettings } from '../../sim/stage.ts'
import { configure, ended, findings, happened, ourTaints, peace, steps, theIncident, workload, workloadRuns, type Play } from './play.ts'

const test = suite('isolated')

const scene = (seed: number, policy: object = {}): StageSettings => ({ seed, power: 'fabric, then bmc', policy })
const orders = (incident: Incident | undefined): readonly string[] => (incident?.status.attempts ?? []).map(({ method, action }) => `${method} ${action}`)
const dbRunsElsewhere = async (on: Play): Promise<boolean> =>
  workload(on).some(({ metadata, spec, status }) => metadata.name === 'db-0' && status.phase === 'Running' && spec.nodeName !== on.victim)

async function isWhole(on: Play): Promise<void> {
  assert.equal(findings(on), [])
  assert.equal(ourTaints(on), [])
  await on.until('the workload runs', () => workloadRuns(on), 60_000)
  assert.is(on.world.devices.get('fabric')?.plugs.get(on.victim)?.switched, 'on')
}

test('a partition, cut off from its storage: its volumes are written elsewhere while it runs, and once it is heard it comes back in its old boot', async () => {
  const on = await peace(scene(1, { powerAfter: '5m' }))
  const boot = on.world.nodes.get(on.victim)?.machine.boot()?.id
  const heal = on.world.isolate(on.victim)
  await on.until('the set\'s pod runs elsewhere', () => dbRunsElsewhere(on), 60_000)
  const open = await theIncident(on)
  assert.equal([open?.status.proof?.kind, orders(open), open?.status.holds.some(({ because }) => because === 'power-after')], ['isolated', ['fabric-off off'], true])
  assert.ok(on.world.judges.isPoweredOn(on.victim))
  await on.run(30_000)
  heal()
  const incident = await ended(on, 180_000)
  assert.equal([incident.status.outcome, orders(incident)], ['Recovered', ['fabric-off off', 'fabric-off on']])
  assert.is(on.world.nodes.get(on.victim)?.machine.boot()?.id, boot)
  await isWhole(on)
})

test('a partition whose kubelet is dead: its agent ends what was freed, and until its mounts are gone the machine stays cut off', async () => {
  const on = await peace(scene(5, { powerAfter: '5m' }))
  const heal = on.world.isolate(on.victim)
  await on.until('the set\'s pod runs elsewhere', () => dbRunsElsewhere(on), 60_000)
  on.world.killKubelet(on.victim)
  heal()
  await on.run(30_000)
  const containers = on.world.nodes.get(on.victim)?.runtime.containers
  const open = await theIncident(on)
  const runs = (uid: string): boolean => containers?.get(uid)?.ended() === false
  const freed = open?.status.pods.map(({ uid }) => uid) ?? []
  assert.equal([freed.length, freed.filter(runs), on.pods.filter(runs).length], [2, [], 1], 'what was freed does not run there, and what has no volume runs on')
  assert.equal([orders(open), open?.status.holds.map(({ because }) => because)], [['fabric-off off'], ['still-cut']])
  on.world.nodes.get(on.victim)?.startKubelet()
  assert.is((await ended(on, 240_000)).status.outcome, 'Recovered')
  await isWhole(on)
})

test('a partition whose mounts do not go, where the policy wants such a node fenced: past its patience its power ends it, though it is heard, and both are given back', async () => {
  for (const afterPatience of ['wait', 'fence'] as const) {
    const on = await peace(scene(8, { powerAfter: '30m', returnPatience: '60s', afterPatience }))
    const boot = on.world.nodes.get(on.victim)?.machine.boot()?.id
    const heal = on.world.isolate(on.victim)
    await on.until('the set\'s pod runs elsewhere', () => dbRunsElsewhere(on), 60_000)
    on.world.killKubelet(on.victim)
    heal()
    await on.run(50_000)
    const open = await theIncident(on)
    assert.equal([orders(open), open?.status.holds.map(({ because }) => because)], [['fabric-off off'], ['still-cut']], 'within its patience')
    if (afterPatience === 'wait') {
      await on.run(120_000)
      assert.equal([orders(await theIncident(on)), on.world.nodes.get(on.victim)?.machine.boot()?.id], [['fabric-off off'], boot])
      continue
    }
    const incident = await ended(on, 300_000)
    assert.equal([incident.status.outcome, orders(incident)], ['Recovered', ['fabric-off off', 'bmc-off off', 'bmc-off on', 'fabric-off on']])
    await isWhole(on)
    assert.is(happened(on, 'machine booted').length, 1)
  }
})

test('cut off in vain: what it does not come back from, its power ends, and both are given back', async () => {
  const on = await peace(scene(2, { powerAfter: '20s' }))
  on.world.freeze(on.victim)
  const incident = await ended(on, 300_000)
  assert.equal([incident.status.outcome, orders(incident)], ['Recovered', ['fabric-off off', 'bmc-off off', 'bmc-off on', 'fabric-off on']])
  const kinds = incident.status.timeline.filter(({ what }) => what === 'proven').map(({ detail }) => detail.split(':')[0])
  assert.equal(kinds, ['isolated', 'off'])
  assert.ok(steps(incident).indexOf('freed') < steps(incident).lastIndexOf('proven'), 'what it had there was freed before its power went')
  await isWhole(on)
  assert.is(happened(on, 'machine booted').length, 1)
})

test('a fabric that does not answer: the power goes at once', async () => {
  const on = await peace(scene(3, { powerAfter: '5m' }))
  const fabric = on.world.devices.get('fabric')
  if (fabric !== undefined) fabric.fault = { does: 'hang' }
  on.world.freeze(on.victim)
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 60_000)
  assert.equal(orders(await theIncident(on)).filter((order) => order.endsWith(' off')), ['bmc-off off'])
  if (fabric !== undefined) fabric.fault = undefined
  await ended(on, 240_000)
  await isWhole(on)
})

test('power lost with its controller while that was being asked: it is cut off once, not in every round, and its next boot has its storage back though the controller tells nothing', async () => {
  const device = { kind: 'chassis', feed: 'machine', timing: { off: 2_000, on: 1_000, status: 200 } } as const
  const on = await peace({ ...scene(6, { retries: 1, restAfter: '10s' }), device })
  const bmc = on.world.devices.get(`bmc-${on.victim}`)
  on.world.freeze(on.victim)
  await on.until('its power is being asked for', async () => orders(await theIncident(on)).includes('bmc-off off'), 60_000)
  on.world.cutPower(on.victim)
  await on.run(240_000)
  assert.equal([orders(await theIncident(on)), bmc?.plugs.get('1')?.switched], [['fabric-off off', 'bmc-off off'], 'on'])
  if (bmc !== undefined) bmc.fault = { does: 'hang' }
  on.world.powerOn(on.victim)
  await on.until('it has its storage back', () => on.world.devices.get('fabric')?.plugs.get(on.victim)?.switched === 'on', 120_000)
  await on.run(60_000)
  assert.equal([(await theIncident(on))?.status.phase, (await theIncident(on))?.status.holds.map(({ because }) => because)], ['Running', ['order-may-land']])
  bmc?.heal()
  assert.is((await ended(on, 120_000)).status.outcome, 'Recovered')
  await isWhole(on)
})

test('aborted when it is isolated and its power is being cut: what was ordered off is proven off and given back, since nobody else would', async () => {
  const on = await peace({ seed: 7, power: 'fabric, then bmc' })
  on.world.freeze(on.victim)
  await on.until('its power is ordered off', async () => (await theIncident(on))?.status.attempts.some(({ method }) => method === 'bmc-off') === true, 60_000)
  const incident = await theIncident(on)
  assert.is(incident?.status.proof?.kind, 'isolated')
  await settled(on.world, on.world.api.patch(`/apis/holdfast.dev/v1alpha1/nodefences/${incident?.name}`, 'merge', { spec: { abort: true } }))
  await ended(on, 300_000)
  assert.equal([on.world.judges.isPoweredOn(on.victim), findings(on), ourTaints(on)], [true, [], []])
})

test('the leader dies between the cut and the proof: the next one reads back, and frees nothing sooner', async () => {
  const on = await peace(scene(4, { powerAfter: '5m' }))
  const heal = on.world.isolate(on.victim)
  await on.until('it is cut off', async () => orders(await theIncident(on)).length > 0, 60_000)
  on.world.killReplica(on.leader() ?? 0)
  await on.until('the set\'s pod runs elsewhere', () => dbRunsElsewhere(on), 60_000)
  heal()
  assert.is((await ended(on, 240_000)).status.outcome, 'Recovered')
  await isWhole(on)
})

test('two of one switch that tells no machine, partitioned together: heard again and clean, neither waits for the other to be given back', async () => {
  const on = await peace({ seed: 9, power: 'fabric, then bmc', nodes: 7, zones: 1, policy: { profile: 'balanced', powerAfter: '5m', brakes: { concurrency: 3, stormPercent: 60, stormWindow: '60s' } } })
  const pair = [on.victim, on.victim === 'node-1' ? 'node-2' : 'node-1']
  const ports = () => pair.map((node) => on.world.devices.get('fabric')?.plugs.get(node)?.switched)
  const heals = pair.map((node) => on.world.isolate(node))
  await on.until('both are cut off', () => ports().every((port) => port === 'off'), 60_000)
  await on.until('the set\'s pod runs elsewhere', () => dbRunsElsewhere(on), 60_000)
  for (const heal of heals) heal()
  await on.until('both are over', async () => (await on.incidents()).every(({ status }) => status.phase === 'Final'), 240_000)
  assert.equal((await on.incidents()).map(({ nodeName, status }) => [nodeName, status.proof?.kind, status.outcome]).toSorted(), pair.map((node) => [node, 'isolated', 'Recovered']).toSorted())
  assert.equal([ports(), happened(on, 'machine booted').length], [['on', 'on'], 0])
  await isWhole(on)
})

test('silent again when it was ordered on, and the order lands late: what was not freed by then is not freed while that lets it in', async () => {
  const on = await peace(scene(10, { powerAfter: '30m', giveUp: 'never', onlyTerminating: true }))
  const [fabric, first] = [on.world.devices.get('fabric'), on.world.isolate(on.victim)]
  await on.until('it is proven isolated', async () => (await theIncident(on))?.status.proof?.kind === 'isolated', 60_000)
  if (fabric !== undefined) fabric.fault = { does: 'late', by: 40_000 }
  first()
  await on.until('it was ordered on, in vain', async () => (await theIncident(on))?.status.attempts.some(({ action, result }) => action === 'on' && result !== 'running') === true, 120_000)
  const second = on.world.isolate(on.victim)
  const [pod] = workload(on).filter(({ metadata }) => metadata.name === 'db-0')
  assert.is(pod?.spec.nodeName, on.victim)
  assert.ok((await settled(on.world, on.world.api.remove('/api/v1/namespaces/work/pods/db-0', { gracePeriodSeconds: 5 }))).ok)
  await on.run(90_000)
  assert.equal([fabric?.plugs.get(on.victim)?.switched, findings(on)], ['on', []])
  if (fabric !== undefined) fabric.fault = undefined
  second()
  await ended(on, 240_000)
  await isWhole(on)
})

const portOf = (on: Play) => on.world.devices.get('fabric')?.plugs.get(on.victim)

/** Its port was shut by a configuration that is another one by the time its next boot is heard. */
async function shutByAnother(seed: number): Promise<Play> {
  const on = await peace(scene(seed))
  on.world.freeze(on.victim)
  await on.until('it lost its power', () => !on.world.judges.isPoweredOn(on.victim), 60_000)
  await configure(on, 'login_timeout=7\n', 'fabric-off')
  await on.until('it is back', () => happened(on, 'machine booted').length === 1, 120_000)
  await on.run(120_000)
  const open = await theIncident(on)
  assert.equal([open?.status.phase, portOf(on)?.switched], ['Running', 'off'])
  assert.equal(open?.status.holds.map(({ because, detail, lifts }) => `${because}: ${detail}; ${lifts}`), [
    'still-cut: fabric-off was ordered off, and is not configured any more as it was then: nothing here can switch it on; that configuration, or on, read of it as it is configured now',
  ])
  return on
}

test('its switch is configured otherwise before its port is opened: the node waits with that said, and is whole once it is configured as it was', async () => {
  const on = await shutByAnother(12)
  await configure(on, '', 'fabric-off')
  assert.equal([(await ended(on, 120_000)).status.outcome, orders(await theIncident(on)).slice(2)], ['Recovered', ['bmc-off on', 'fabric-off on']])
  await isWhole(on)
})

test('the same, and a person opens the port: that is read by the configuration of now, and enough', async () => {
  const on = await shutByAnother(13)
  const port = portOf(on)
  if (port !== undefined) port.switched = 'on'
  assert.equal([(await ended(on, 120_000)).status.outcome, orders(await theIncident(on)).slice(2)], ['Recovered', ['bmc-off on']])
  await isWhole(on)
})

test.run()
