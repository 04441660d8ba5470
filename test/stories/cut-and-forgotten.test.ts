// A method is ordered off, and then its configuration is another one: what was cut by the old one is not forgotten, be it proven or not.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { settled } from '../../sim/stage.ts'
import { configure, ended, findings, ourTaints, peace, programs, theIncident, type Play } from './play.ts'

const test = suite('cut and forgotten')

/** The victim is heard again after an order whose end nobody knows, and its method has been configured otherwise meanwhile. */
async function cutAndForgotten(seed: number): Promise<Play> {
  const on = await peace({ seed })
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(device)
  device.fault = { does: 'ignore' }
  const heal = on.world.isolate(on.victim)
  await on.until('an order has ended', async () => (await theIncident(on))?.status.attempts.some((attempt) => attempt.result === 'failed') === true, 60_000)
  heal()
  await on.until('it is withdrawn', async () => (await theIncident(on))?.status.phase === 'Done', 60_000)
  await configure(on, 'login_timeout=7\n')
  device.fault = undefined
  await on.run(200_000)
  const incident = await theIncident(on)
  assert.is(incident?.status.phase, 'Done')
  assert.ok(incident?.status.holds.some((hold) => hold.because === 'still-cut' && hold.detail.includes('bmc-off')), JSON.stringify(incident?.status.holds))
  assert.is(programs(on, 'on'), 0)
  return on
}

async function over(on: Play): Promise<void> {
  const incident = await ended(on, 300_000)
  assert.is(incident.status.outcome, 'Withdrawn')
  assert.equal(findings(on), [])
  assert.equal(ourTaints(on), [])
}

test('configured again as it was, it is read, switched on and over', async () => {
  const on = await cutAndForgotten(71)
  await configure(on, '')
  await over(on)
  assert.is(programs(on, 'on'), 1)
})

test('the machine boots anew: it has power, and nobody has to restore anything', async () => {
  const on = await cutAndForgotten(72)
  on.world.reboot(on.victim, 1_500)
  await over(on)
  assert.is(programs(on, 'on'), 0)
})

test('before it is proven, it is named too, and is proven, freed and given back once it is configured again as it was', async () => {
  const on = await peace({ seed: 73 })
  on.world.freeze(on.victim)
  await on.until('it lost its power', () => on.world.nodes.get(on.victim)?.machine.state() === 'off', 60_000)
  await configure(on, 'login_timeout=7\n')
  await on.run(200_000)
  const held = await theIncident(on)
  assert.equal(held?.status.holds.map(({ because, detail }) => `${because}: ${detail}`), [
    'path-unverified: level 1: bmc-off was never read on in this boot',
    'still-cut: bmc-off was ordered off, and is not configured any more as it was then: nothing here can switch it on',
  ])
  await configure(on, '')
  const incident = await ended(on, 300_000)
  assert.equal([incident.status.outcome, incident.status.proof?.kind, findings(on), ourTaints(on)], ['Recovered', 'off', [], []])
})

test('one feed of two is struck from the configuration after its order failed, and put back a while later: the machine runs by it, and nothing is proven', async () => {
  const on = await peace({ seed: 74, power: 'two feeds on two strips' })
  const { world, victim } = on
  const path = '/api/v1/namespaces/holdfast-system/configmaps/fence-config-default'
  const was = await settled(world, world.api.get<KubeObject & { data: Record<string, string> }>(path))
  assert.ok(was.ok)
  const steps = was.value.data['config.properties'] ?? ''
  const write = async (properties: string): Promise<void> => assert.ok((await settled(world, world.api.patch<KubeObject>(path, 'merge', { data: { 'config.properties': properties } }))).ok)
  const other = [...world.devices.values()].find(({ name, plugs }) => name.startsWith('pdu-b') && plugs.has(victim))
  assert.ok(other)
  other.fault = { does: 'ignore' }
  world.isolate(victim)
  await on.until('an order has failed', async () => (await theIncident(on))?.status.attempts.some(({ result }) => result === 'failed') === true, 60_000)
  await write(steps.replace(/^power_management=.*$/m, 'power_management=feed-a-off'))
  await on.run(25_000)
  assert.equal([(await theIncident(on))?.status.proof, findings(on)], [undefined, []])
  await write(steps)
  other.fault = undefined
  await on.until('it is proven by both', async () => (await theIncident(on))?.status.proof !== undefined, 300_000)
  assert.equal((await theIncident(on))?.status.proof?.methods, ['feed-a-off', 'feed-b-off'])
  world.heal()
  const incident = await ended(on, 600_000)
  assert.equal([incident.status.outcome, findings(on), ourTaints(on)], ['Recovered', [], []])
})

test.run()
