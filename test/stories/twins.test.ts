// The negative twins: what looks like the story and is not. Nothing may be freed, nobody needlessly fenced, and whoever waits
// says for what.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { readIncident } from '../../coordinator/node-fence.ts'
import { ended, findings, happened, ourTaints, peace, programs, theIncident, workload, workloadRuns, type Play } from './play.ts'

const test = suite('twins')

async function untouched(on: Play): Promise<void> {
  assert.equal(await on.incidents(), [])
  assert.is(programs(on, 'off'), 0)
  await nothingFreed(on)
  assert.equal(ourTaints(on), [])
}

async function nothingFreed(on: Play): Promise<void> {
  const uids = workload(on).map((pod) => pod.metadata.uid)
  assert.equal(on.pods.filter((uid) => !uids.includes(uid)), [])
  assert.is(happened(on, 'volume released').length, 0)
  assert.equal(findings(on), [])
}

function holds(on: Play): readonly string[] {
  return [...on.coordinators.values()].flatMap((coordinator) => coordinator.holds().map((hold) => hold.because))
}

test('the agent alone dies: the node is never fenced', async () => {
  const on = await peace({ seed: 11 })
  on.world.killAgent(on.victim)
  await on.run(300_000)
  await untouched(on)
})

test('agent and kubelet are dead, the Lease stands still, and the kubelet port answers with a reset: a kernel runs there, never dead', async () => {
  const on = await peace({ seed: 12 })
  on.world.killAgent(on.victim, true)
  on.world.killKubelet(on.victim)
  on.world.resetKubeletPort(on.victim)
  await on.run(300_000)
  await untouched(on)
})

for (const reboots of [false, true]) {
  test(`only the leader cannot reach a node${reboots ? ', nor could since it booted' : ''}, and no peer can whisper: another replica hears it, and it is never fenced`, async () => {
    const on = await peace({ seed: 23, nodes: 5 })
    const leader = on.world.replicas.host(on.leader() ?? 0).name
    on.world.partition({ from: ['*'], to: [on.victim], planes: ['whisper'] })
    on.world.partition({ from: [leader], to: [on.victim], planes: ['link', 'probe'] })
    if (reboots) on.world.reboot(on.victim, 1_500)
    await on.run(300_000)
    const later = on.world.truth.entries.filter((entry) => entry.what === 'device ordered' && entry.facts['to'] === 'off' && entry.at > on.beganAt + 45_000)
    assert.equal(later, [])
    assert.equal(findings(on), [])
    if (!reboots) await untouched(on)
  })
}

test('a kubelet port that was never heard to answer, and a dead agent: the Lease that moves keeps the node alive', async () => {
  const on = await peace({ seed: 13, before: (world) => ['node-1', 'node-2', 'node-3'].forEach(world.firewallKubeletPort) })
  on.world.killAgent(on.victim)
  await on.run(300_000)
  await untouched(on)
})

test('a fence program that fails releases nothing, says so, and tries again after a rest', async () => {
  const on = await peace({ seed: 14 })
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(device)
  device.fault = { does: 'fail' }
  on.world.freeze(on.victim)
  await on.run(50_000)
  await nothingFreed(on)
  assert.ok(holds(on).includes('resting'), holds(on).join())
  device.fault = undefined
  assert.is((await ended(on, 300_000)).status.outcome, 'Recovered')
  assert.equal(findings(on), [])
})

test('a fence program that hangs is ended at its deadline and proves nothing', async () => {
  const on = await peace({ seed: 15 })
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(device)
  const off = async () => (await theIncident(on))?.status.attempts.filter(({ action }) => action === 'off') ?? []
  on.world.freeze(on.victim)
  await on.until('an order', async () => (await off()).length > 0, 30_000)
  device.fault = { does: 'hang' }
  await on.run(120_000)
  await nothingFreed(on)
  assert.equal((await off()).map(({ result, reason }) => [result, reason?.split('. ')[0]])[0], ['unknown', 'timeout: ended at its deadline'])
  const status = (await theIncident(on))?.status
  assert.equal([status?.phase === 'Final', status?.proof], [false, undefined])
})

test('a device that hangs before anything was ordered is given no order, and the hold names it', async () => {
  const on = await peace({ seed: 15 })
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(device)
  on.world.freeze(on.victim)
  device.fault = { does: 'hang' }
  await on.run(120_000)
  await nothingFreed(on)
  const status = (await theIncident(on))?.status
  assert.equal([status?.attempts, status?.holds.map(({ because }) => because)], [[], ['path-unverified']])
})

test('a device that says off once and on again releases nothing', async () => {
  const on = await peace({ seed: 16 })
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(device)
  device.fault = { does: 'bounce', after: 400 }
  const heal = on.world.isolate(on.victim)
  await on.run(20_000)
  await nothingFreed(on)
  device.fault = undefined
  heal()
  await ended(on, 400_000)
  assert.equal(findings(on), [])
})

test('a device that says off before any order, once, is no proof', async () => {
  const on = await peace({ seed: 17 })
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(device)
  device.fault = { does: 'say-off-once' }
  const heal = on.world.isolate(on.victim)
  await on.run(2_000)
  heal()
  await on.run(120_000)
  await untouched(on)
})

/** Whether the API server's own copy says so. */
function isVoid(on: Play): boolean {
  return (on.world.server?.peek('nodefences.holdfast.dev') ?? []).some((object) => {
    const read = readIncident(object)
    return read.ok && read.incident.status.voided.length > 0
  })
}

/** The pods of the workload that the API server binds to the victim and nobody has asked to end. */
function onVictim(on: Play): readonly string[] {
  return (on.world.server?.peek('pods') ?? []).map((pod) => pod as KubeObject & { spec: { nodeName?: string } }) // a Pod has it
    .filter(({ metadata, spec }) => metadata.namespace === 'work' && spec.nodeName === on.victim && metadata.deletionTimestamp === undefined)
    .map((pod) => pod.metadata.uid ?? '')
}

test('the fenced boot is heard again after the proof: void, out-of-service off, nothing more freed, its own word ends it', async () => {
  const on = await peace({ seed: 18 })
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(device)
  device.fault = { does: 'lie' }
  const freedAfterVoid: string[] = []
  // Until then each deletion fails, so that there is something left; from then on each would be carried out.
  on.world.server?.faults.set([{
    does: 'answer', status: 500,
    strikes({ method, path, user }) {
      if (method === 'GET' || !path.includes('/pods/') || !user.name.includes('coordinator')) return false
      if (isVoid(on)) freedAfterVoid.push(`${method} ${path}`)
      return !isVoid(on)
    },
  }])
  const heal = on.world.isolate(on.victim)
  await on.until('a proof', async () => (await theIncident(on))?.status.proof !== undefined, 60_000)
  await on.run(200)
  heal()
  await on.until('the proof is void', async () => isVoid(on), 30_000)
  const released = happened(on, 'volume released').length
  const kept = onVictim(on)
  assert.is.not(kept.length, 0, 'there is something left that could be freed')
  await on.run(60_000)
  assert.equal(freedAfterVoid, [], 'freed after the proof was void')
  const incident = await ended(on, 600_000)
  assert.is(incident.status.outcome, 'Void')
  assert.equal(kept.filter((uid) => !onVictim(on).includes(uid)), [], 'what was not freed by then runs on where it ran')
  assert.is(happened(on, 'volume released').length, released)
  assert.is(happened(on, 'machine lost its power').length + happened(on, 'machine booted').length, 0, 'its own word ends it')
  assert.equal(ourTaints(on), [])
})

test('most nodes fall silent at once: held, with the reason, and no incident', async () => {
  const on = await peace({ seed: 19 })
  const heals = ['node-1', 'node-2'].map((node) => on.world.isolate(node))
  await on.run(60_000)
  assert.ok(holds(on).includes('storm'), holds(on).join())
  assert.equal(await on.incidents(), [])
  assert.is(programs(on, 'off'), 0)
  for (const heal of heals) heal()
  await on.run(120_000)
  assert.equal(await on.incidents(), [])
  assert.equal(findings(on), [])
})

test('the replicas lose the nodes, the nodes keep the API server: their Leases move, nobody is fenced', async () => {
  const on = await peace({ seed: 23 })
  on.world.partition({ from: ['replica-0', 'replica-1'], to: ['node-1', 'node-2', 'node-3'] })
  await on.run(180_000)
  await untouched(on)
  on.world.heal()
  await on.run(60_000)
  await untouched(on)
})

test('the network of a node is gone for two seconds: nothing happens', async () => {
  const on = await peace({ seed: 20 })
  const heal = on.world.isolate(on.victim)
  await on.run(2_000)
  heal()
  await on.run(120_000)
  await untouched(on)
})

test('a device without power of its own: held, named, never guessed', async () => {
  const on = await peace({ seed: 21, device: { kind: 'chassis', feed: 'machine', timing: { off: 2_000, on: 1_000, status: 200 } } })
  on.world.cutPower(on.victim)
  await on.run(120_000)
  await nothingFreed(on)
  const incident = await theIncident(on)
  assert.ok(incident?.status.holds.some((hold) => hold.because === 'path-unverified' && hold.detail.includes('bmc-off')), JSON.stringify(incident?.status.holds))
})

test('two nodes of ten lose power: both are cleared; one that nobody here switched off rests until it boots', async () => {
  const on = await peace({ seed: 22, nodes: 10 })
  const other = on.victim === 'node-1' ? 'node-2' : 'node-1'
  on.world.cutPower(on.victim)
  on.world.cutPower(other)
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 60_000)
  await on.run(60_000)
  on.world.powerOn(other)
  await on.until('both incidents are Final', async () => {
    const all = await on.incidents()
    return all.length === 2 && all.every((incident) => incident.status.phase === 'Final' && incident.status.outcome === 'Recovered')
  }, 300_000)
  assert.ok(workloadRuns(on))
  assert.equal(ourTaints(on), [])
  assert.equal(findings(on), [])
})

test.run()
