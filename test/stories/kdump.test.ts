// Nodes whose kernels panic, and whose crash kernels tell of it. The world's log of writers is the judge.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { CrashPlan } from '../../sim/world/levers.ts'
import { ended, findings, happened, killLeader, ourTaints, peace, programs, steps, theIncident, workload, workloadRuns, type Play } from './play.ts'

const test = suite('kdump')

const dump: CrashPlan = { after: 8_000, speaksAfter: 2_000 }
const accepts = { profile: 'fast', kdump: 'accept' } as const

/** A settled cluster whose configuration waits for crash kernels as this says. */
async function quiet(seed: number, policy: object = accepts, kdump = 'kdump=3m\nkdump_within=30s'): Promise<Play> {
  const on = await peace({ seed, policy, objects: [configured(kdump)] })
  await on.run(20_000)
  return on
}

/** Below what is written for each node's own controller. */
function configured(kdump: string) {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'fence-config-default', namespace: 'holdfast-system' }, data: { 'config.properties': `${kdump}\n` } }
}

const proof = async (on: Play) => (await theIncident(on))?.status.proof?.kind
const holds = async (on: Play) => (await theIncident(on))?.status.holds.map(({ because }) => because) ?? []
const boots = (on: Play) => happened(on, 'machine booted').filter(({ node }) => node === on.victim).length
const isFree = (on: Play) => async () => workload(on).every(({ metadata }) => !on.pods.includes(metadata.uid ?? ''))

async function isOver(on: Play, within = 900_000): Promise<void> {
  await on.until('it is as it was', async () => workloadRuns(on) && ourTaints(on).length === 0 && (await on.incidents()).every(({ status }) => status.phase === 'Final'), within)
  assert.equal(findings(on), [])
}

test('its pods run elsewhere while it writes its dump; and when that is over it boots, and nobody has touched its power', async () => {
  const on = await quiet(150)
  on.world.panic(on.victim, { ...dump, writes: 120_000 })
  await on.until('it is proven', async () => await proof(on) === 'kdump', 90_000)
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 20_000)
  assert.ok((await holds(on)).includes('dumping'))
  await isOver(on)
  assert.equal([programs(on, 'off'), boots(on)], [0, 1])
})

test('one that hangs is ordered off when the time of its dump is over, and switched on', async () => {
  const on = await quiet(151, accepts, 'kdump=100s\nkdump_within=30s')
  on.world.panic(on.victim, dump)
  await on.until('its pods are free', isFree(on), 90_000)
  assert.is(programs(on, 'off'), 0)
  const incident = await ended(on, 900_000)
  assert.equal(steps(incident).filter((step) => step === 'proven').length, 2)
  assert.is(incident.status.proof?.kind, 'off')
  await isOver(on)
  assert.is(boots(on), 1)
})

test('a leader that is killed in between costs no dump: the next one waits by the record, and by what it heard itself', async () => {
  const on = await quiet(152)
  on.world.panic(on.victim, { ...dump, writes: 150_000 })
  await on.until('it is written down', async () => (await theIncident(on))?.status.dump !== undefined, 30_000)
  killLeader(on)
  await on.until('it is proven', async () => await proof(on) === 'kdump', 90_000)
  killLeader(on)
  on.world.startReplica(0)
  on.world.startReplica(1)
  await on.until('its pods are free', isFree(on), 60_000)
  await isOver(on)
  assert.equal([programs(on, 'off'), boots(on)], [0, 1])
})

test('not accepted, its pods wait for its power, and that for the dump', async () => {
  const on = await quiet(153, { profile: 'fast' }, 'kdump=100s\nkdump_within=30s')
  on.world.panic(on.victim, { ...dump, writes: 60_000 })
  await on.run(60_000)
  assert.equal([await proof(on), await isFree(on)(), programs(on, 'off')], [undefined, false, 0])
  await isOver(on)
})

test('nor for ever: one that hangs is ordered off when the time of its dump is over, also by a leader that began after the crash', async () => {
  for (const begins of [false, true]) {
    const on = await quiet(157, { profile: 'fast' }, 'kdump=100s\nkdump_within=30s')
    on.world.panic(on.victim, dump)
    await on.until('it is written down', async () => (await theIncident(on))?.status.dump !== undefined, 60_000)
    if (begins) for (const replica of [0, 1]) {
      on.world.killReplica(replica)
      on.world.startReplica(replica)
    }
    await on.run(60_000)
    assert.equal([await proof(on), await isFree(on)(), programs(on, 'off')], [undefined, false, 0])
    const incident = await ended(on, 900_000)
    assert.equal([incident.status.proof?.kind, incident.status.outcome], ['off', 'Recovered'])
    await isOver(on)
    assert.is(boots(on), 1)
  }
})

test('a word that somebody forged frees nothing of a machine that runs, whatever died on it', async () => {
  for (const dies of ['nothing', 'its agent', 'its agent and its kubelet'] as const) {
    const on = await quiet(154)
    if (dies !== 'nothing') on.world.killAgent(on.victim)
    if (dies === 'its agent and its kubelet') on.world.killKubelet(on.victim)
    for (let turn = 0; turn < 12; turn += 1) {
      on.world.forgeDumpWord(on.victim)
      await on.run(10_000)
    }
    assert.equal([await isFree(on)(), programs(on, 'off'), findings(on)], [false, 0, []], dies)
    const proofs = (await on.incidents()).map(({ status }) => status.proof?.kind)
    assert.not.ok(proofs.includes('kdump'), dies)
  }
})

test('nor of one that lost its network and has it back, with its agent dead; where it lost both and stays away, its power goes', async () => {
  const back = await quiet(155)
  back.world.killAgent(back.victim)
  back.world.killKubelet(back.victim)
  await back.run(3_000)
  const heal = back.world.isolate(back.victim)
  await back.run(4_000)
  heal()
  for (let turn = 0; turn < 8; turn += 1) {
    back.world.forgeDumpWord(back.victim)
    await back.run(10_000)
  }
  assert.equal([(await back.incidents()).some(({ status }) => status.proof?.kind === 'kdump'), findings(back)], [false, []])
})

test('where it is cut off, and a word is forged, what is proven is shown false as soon as it is heard', async () => {
  const on = await quiet(156)
  const heal = on.world.partition({ from: [on.victim], to: ['*'], planes: ['link', 'whisper', 'probe', 'api', 'watch'] })
  await on.run(15_000)
  on.world.forgeDumpWord(on.victim)
  await on.until('it is proven, wrongly: an assumption does not hold', async () => await proof(on) === 'kdump', 90_000)
  heal()
  await on.until('it is void', async () => (await theIncident(on))?.status.voided.length === 1, 30_000)
  await on.until('the incident is over', async () => (await on.incidents()).every(({ status }) => status.phase === 'Final'), 900_000)
  assert.is((await theIncident(on))?.status.outcome, 'Void')
})

test.run()
