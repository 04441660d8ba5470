// A device that shares its machine's power cannot tell that the machine is off; a person who stands before it can.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { fencesPath } from '../../coordinator/node-fence.ts'
import { settled } from '../../sim/stage.ts'
import { ended, findings, happened, ourTaints, peace, theIncident, workload, workloadRuns, type Play } from './play.ts'

const test = suite('acknowledged')

async function acknowledge(on: Play, changes: object = {}): Promise<boolean> {
  const incident = await theIncident(on)
  assert.ok(incident)
  const until = new Date(on.world.clock.wall() + 600_000).toISOString()
  const word = { boot: incident.boot, by: 'on call', reason: 'its plugs are in my hand', until, ...changes }
  const patched = await settled(on.world, on.world.api.patch<KubeObject>(`${fencesPath}/${incident.name}`, 'merge', { spec: { acknowledge: word } }))
  return patched.ok
}

async function refused(on: Play, says: RegExp): Promise<void> {
  await on.run(90_000)
  const incident = await theIncident(on)
  assert.is(incident?.status.proof, undefined)
  assert.match(incident?.status.holds.find(({ because }) => because === 'unvouched')?.detail ?? '', says)
  const uids = workload(on).map((pod) => pod.metadata.uid)
  assert.equal(on.pods.filter((uid) => !uids.includes(uid)), [])
  assert.equal(findings(on), [])
}

function deviceOf(on: Play) {
  const device = on.world.devices.get(`bmc-${on.victim}`)
  return device ?? assert.unreachable('the victim has a device') as never
}

/** The whole place of the machine has no power, its device included. */
async function dark(seed: number): Promise<Play> {
  const on = await peace({ seed })
  deviceOf(on).fault = { does: 'hang' }
  on.world.cutPower(on.victim)
  await on.run(60_000)
  const incident = await theIncident(on)
  assert.equal([incident?.status.proof, findings(on)], [undefined, []], 'held, never guessed')
  return on
}

for (const killed of [false, true]) {
  test(`a word frees what nothing else could${killed ? ', though the leader is killed at the proof' : ''}: cleared, left to the person, and back by itself`, async () => {
    const on = await dark(killed ? 121 : 122)
    assert.ok(await acknowledge(on))
    await on.until('it is proven', async () => (await theIncident(on))?.status.proof !== undefined, 60_000)
    if (killed) on.world.killReplica(on.leader() ?? 0)
    await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 120_000)
    const { status } = await theIncident(on) ?? assert.unreachable('there is one') as never
    assert.equal([status.proof?.kind, status.proof?.evidence[0]?.word], ['vouched', 'off: its plugs are in my hand'])
    assert.match(status.proof?.evidence[0]?.source ?? '', /^acknowledged by on call until /)
    deviceOf(on).fault = undefined
    await on.run(60_000)
    assert.is(happened(on, 'machine booted').length, 0, 'nobody but the person switches it on')
    on.world.powerOn(on.victim)
    const incident = await ended(on, 400_000)
    assert.is(incident.status.outcome, 'Recovered')
    assert.equal(findings(on), [])
    assert.equal(ourTaints(on), [])
  })
}

test('a word against a device that says on is refused, and says so', async () => {
  const on = await peace({ seed: 123 })
  deviceOf(on).fault = { does: 'ignore' }
  on.world.isolate(on.victim)
  await on.until('an incident is open', async () => await theIncident(on) !== undefined, 30_000)
  assert.ok(await acknowledge(on))
  await refused(on, /bmc-off says on/)
})

test('a word of another boot, and one that ran out, are refused', async () => {
  const on = await dark(124)
  await acknowledge(on, { boot: 'another/1' })
  await refused(on, /it is of boot another\/1/)
  assert.ok(await acknowledge(on, { until: new Date(on.world.clock.wall() - 1_000).toISOString() }))
  await refused(on, /it ran out at/)
})

test('without a name or a reason it is refused at the API server', async () => {
  const on = await dark(125)
  assert.equal([await acknowledge(on, { by: '' }), await acknowledge(on, { reason: '' }), await acknowledge(on, { until: 'soon' })], [false, false, false])
})

test('a false word of a node that was only cut off: at its first answer the proof is void, and nothing more follows from that word', async () => {
  const on = await peace({ seed: 126 })
  deviceOf(on).fault = { does: 'hang' }
  const heal = on.world.isolate(on.victim)
  await on.run(60_000)
  assert.ok(await acknowledge(on))
  await on.until('it is proven', async () => (await theIncident(on))?.status.proof !== undefined, 60_000)
  heal()
  await on.until('it is void', async () => ((await theIncident(on))?.status.voided.length ?? 0) > 0, 60_000)
  const first = await theIncident(on)
  on.world.isolate(on.victim)
  await on.run(120_000)
  const all = await on.incidents()
  assert.equal(all.map(({ status }) => status.proof), all.map(() => undefined))
  assert.equal(all.find(({ name }) => name === first?.name)?.status.pods, first?.status.pods)
})

test.run()
