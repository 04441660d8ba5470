// Nodes whose own watchdog ends them, where no device can. The world's log of writers is the judge.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { WatchdogPlan } from '../../sim/watchdog.ts'
import { findings, happened, killLeader, ourTaints, peace, steps, theIncident, workloadRuns, type Play } from './play.ts'

const test = suite('self-fenced')

const dog: WatchdogPlan = { identity: 'i6300ESB timer', timeout: 10_000, fires: 'at once' }
const policy = { profile: 'fast', giveUp: 'watchdog', selfFenced: 'accept' } as const

/** A settled cluster whose watchdogs are armed, and whose victim's device answers nobody. */
async function armed(seed: number, watchdog: WatchdogPlan = dog, own: object = policy, gate = false): Promise<Play> {
  const on = await peace({ seed, nodes: 5, policy: own, watchdog, gate })
  await on.run(20_000)
  const device = on.world.devices.get(`bmc-${on.victim}`)
  if (device === undefined) throw new Error('each node has a controller')
  device.fault = { does: 'hang' }
  return on
}

const machine = (on: Play) => on.world.nodes.get(on.victim)?.machine
const resets = (on: Play) => happened(on, 'watchdog resets the machine').filter(({ node }) => node === on.victim).length
const proof = async (on: Play) => (await theIncident(on))?.status.proof?.kind
const holds = async (on: Play) => (await theIncident(on))?.status.holds.map(({ because, detail }) => `${because}: ${detail}`) ?? []

async function isProven(on: Play): Promise<void> {
  await on.until('it is proven', async () => await proof(on) === 'self-fenced', 300_000)
  assert.ok(resets(on) > 0, 'and by then its watchdog had reset it')
}

async function comesBack(on: Play): Promise<void> {
  const device = on.world.devices.get(`bmc-${on.victim}`)
  if (device !== undefined) device.fault = undefined
  await on.until('it is as it was', async () => workloadRuns(on) && ourTaints(on).length === 0 && (await on.incidents()).every(({ status }) => status.phase === 'Final'), 900_000)
}

test('a node that is cut off is reset by its own watchdog, and only then its pods run elsewhere', async () => {
  for (const how of ['cut off', 'and its agent dead', 'and its kernel frozen', 'and its userspace stuck'] as const) {
    // Longer than Kubernetes takes to call a node lost: the time that is waited is what keeps two from writing.
    const on = await armed(130, { ...dog, timeout: 30_000 })
    assert.ok(machine(on)?.watchdog.armed())
    const heal = on.world.isolate(on.victim)
    if (how === 'and its agent dead') on.world.killAgent(on.victim)
    if (how === 'and its kernel frozen') on.world.freeze(on.victim)
    if (how === 'and its userspace stuck') on.world.stick(on.victim)
    await isProven(on)
    await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 60_000)
    assert.equal(findings(on), [], how)
    const incident = await theIncident(on)
    assert.equal(incident === undefined ? [] : steps(incident).filter((step) => step === 'permit revoked' || step === 'proven'), ['permit revoked', 'proven'])
    heal()
    if (how === 'and its agent dead') on.world.startAgent(on.victim)
    await comesBack(on)
    assert.equal(findings(on), [], how)
  }
})

test('an agent that ends just before its watchdog fires has its kernel feed it once more, and that is waited for too', async () => {
  const on = await armed(139, { identity: 'iTCO_wdt', timeout: 30_000, fires: 'at twice its time-out' })
  on.world.isolate(on.victim)
  await on.until('it is fed no more', () => happened(on, 'log').some(({ message, who }) => message === 'the watchdog is fed no more: this machine resets' && String(who).startsWith(on.victim)), 60_000)
  await on.run(57_000)
  assert.is(resets(on), 0)
  on.world.killAgent(on.victim)
  await isProven(on)
  await on.run(60_000)
  assert.equal([workloadRuns(on, on.victim), findings(on)], [true, []])
})

test('a leader that dies while it is waited for costs the wait once more, and nothing else', async () => {
  const on = await armed(131)
  on.world.isolate(on.victim)
  await on.until('its permit is taken back', async () => (await theIncident(on))?.status.revoked !== undefined, 200_000)
  await on.run(40_000)
  killLeader(on)
  const diedAt = on.world.clock.now()
  await isProven(on)
  assert.ok(on.world.clock.now() - diedAt >= 56_000, 'counted from the election')
  await on.run(60_000)
  assert.equal([workloadRuns(on, on.victim), findings(on)], [true, []])
})

test('while nobody needs it no machine is reset, whatever becomes of agents and leaders', async () => {
  // An agent that crashes again within ten minutes is kept waiting by its kubelet: 10 s, then 20.
  const on = await armed(132, { ...dog, timeout: 60_000 })
  for (let turn = 0; turn < 3; turn += 1) {
    killLeader(on)
    on.world.restartAgent(on.victim)
    await on.run(15_000)
    for (const number of [0, 1]) on.world.startReplica(number)
    await on.run(15_000)
  }
  const ends = [...on.world.nodes.keys(), 'replica-0', 'replica-1'].map((name) => on.world.partition({ from: [name], to: ['api'] }))
  await on.run(120_000)
  for (const end of ends) end()
  await on.run(30_000)
  assert.equal([happened(on, 'watchdog resets the machine'), await on.incidents()], [[], []])
})

test('an upgrade of the agent lets go of the watchdog by the record, and arms it again', async () => {
  const on = await armed(133)
  const record = () => on.world.server?.peek('noderecords.holdfast.dev').find(({ metadata }) => metadata.name === on.victim)
  const stands = () => Object(record())['spec']?.watchdog?.state
  assert.is(stands(), 'armed')
  on.world.restartAgent(on.victim)
  await on.until('it stands as unarmed', () => stands() === 'unarmed' && machine(on)?.watchdog.armed() === false, 10_000)
  await on.until('and as armed again', () => stands() === 'armed' && machine(on)?.watchdog.armed() === true, 30_000)
  assert.equal(happened(on, 'watchdog resets the machine'), [])
})

// What must not prove it.

test('where the policy does not accept it the node is reset all the same, and nothing is freed by that', async () => {
  const { selfFenced: _, ...own } = policy
  const on = await armed(134, dog, own)
  on.world.isolate(on.victim)
  await on.run(240_000)
  assert.equal([await proof(on), resets(on) > 0, workloadRuns(on, on.victim), findings(on)], [undefined, true, false, []])
})

test('a virtual machine that stands still, its watchdog with it, is not taken for ended; it goes on where it stood', async () => {
  const on = await armed(135, { ...dog, virtual: true })
  on.world.migrate(on.victim, 400_000)
  await on.run(390_000)
  assert.equal([await proof(on), resets(on), (await theIncident(on))?.status.revoked], [undefined, 0, undefined])
  assert.ok((await holds(on)).some((one) => one.startsWith('self-fencing: its watchdog proves nothing: it is a virtual machine')))
  await comesBack(on)
  assert.equal(findings(on), [])
})

test('a revocation that fewer than most of its members have heard of proves nothing', async () => {
  const on = await armed(136, dog, { ...policy, brakes: { stormPercent: 100 } })
  on.world.isolate(on.victim)
  for (const name of [...on.world.nodes.keys()].filter((one) => one !== on.victim).slice(0, 3)) on.world.killAgent(name)
  await on.until('its permit is taken back', async () => (await theIncident(on))?.status.revoked !== undefined, 300_000)
  await on.run(180_000)
  assert.equal([await proof(on), workloadRuns(on, on.victim), findings(on)], [undefined, false, []])
  assert.ok((await holds(on)).some((one) => one.startsWith('self-fencing: fewer than most of its members')), JSON.stringify(await holds(on)))
})

test('a machine that stands still against what was promised of it, and goes on: its first answer shows the proof false', async () => {
  const on = await armed(137)
  on.world.migrate(on.victim, 400_000)
  await on.until('it is taken for ended', async () => await proof(on) === 'self-fenced', 300_000)
  assert.is(resets(on), 0)
  await on.until('the proof is void', async () => (await theIncident(on))?.status.voided.some(({ how }) => how !== 'lapsed') === true, 400_000)
  await on.run(60_000)
  assert.is(await proof(on), undefined, 'and none is made of it again')
})

test('a watchdog that is wrongly wired and never fires: the node has stopped what it ran, and its beat shows the proof false', async () => {
  const on = await armed(138, { ...dog, fires: 'never' }, policy, true)
  const heal = on.world.isolate(on.victim)
  await on.until('it is taken for ended', async () => await proof(on) === 'self-fenced', 300_000)
  await on.run(60_000)
  assert.equal([workloadRuns(on, on.victim), findings(on)], [true, []])
  heal()
  await on.until('the proof is void', async () => (await theIncident(on))?.status.voided.length === 1, 60_000)
  assert.equal(findings(on), [])
})

test('what its agent said of it before it was cut off lets no node back: what was freed since may be left over', async () => {
  const on = await armed(140, { ...dog, fires: 'never' }, policy, true)
  const heal = on.world.isolate(on.victim)
  await on.until('it is taken for ended', async () => await proof(on) === 'self-fenced', 300_000)
  // Out-of-service is gone for long enough.
  await on.run(40_000)
  const node = on.world.nodes.get(on.victim)
  if (node === undefined) throw new Error('it is a node')
  node.faults.unmount = 'hangs'
  heal()
  await on.until('the proof is void', async () => (await theIncident(on))?.status.voided.length === 1, 60_000)
  await on.run(20_000)
  const left = () => [...node.machine.mounts.values()].filter(({ path }) => on.pods.some((uid) => path.includes(`/pods/${uid}/`))).length
  assert.equal([left() > 0, ourTaints(on)], [true, [`${on.victim} holdfast.dev/quarantine`]])
  node.faults.unmount = 'well'
  await on.until('it is let back', () => ourTaints(on).length === 0, 120_000)
  assert.equal([left(), findings(on)], [0, []])
})

test.run()
