// The smallest audit: each fence path is asked within half a minute of a boot's first beat and of each change of its
// configuration. Without it no *off* that we did not order proves anything.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { settled } from '../../sim/stage.ts'
import { findings, peace, programs, type Play } from './play.ts'

const test = suite('story: audited')

const within = 30_000

interface Recorded extends KubeObject { spec?: { paths?: { state: string; digest: string; boot: string }[] } }

const recordOf = (on: Play): Recorded | undefined => on.world.server?.peek('noderecords.holdfast.dev').find(({ metadata }) => metadata.name === on.victim)
const pathOf = (on: Play) => recordOf(on)?.spec?.paths?.[0]

test('the path of a new boot is on record half a minute after its first beat', async () => {
  const on = await peace({ seed: 61 })
  const machine = on.world.nodes.get(on.victim)?.machine
  const before = machine?.boot()?.id
  assert.ok(before !== undefined && pathOf(on)?.boot.startsWith(before) === true)
  on.world.reboot(on.victim, 1_500)
  await on.until('its agent runs in a new boot', () => machine?.boot()?.id !== before && on.world.truth.entries.some(({ at, what, facts }) => at > on.beganAt && what === 'agent runs' && facts['node'] === on.victim), 60_000)
  const boot = machine?.boot()?.id ?? ''
  await on.until('it is on record', () => pathOf(on)?.state === 'verified' && pathOf(on)?.boot.startsWith(boot) === true, within)
  assert.equal(findings(on), [])
})

test('a path that is configured otherwise is asked anew, and nothing else is', async () => {
  const on = await peace({ seed: 62 })
  const [before, asked] = [pathOf(on), programs(on, 'status')]
  const path = `/api/v1/namespaces/holdfast-system/configmaps/fence-config-${on.victim}`
  const was = await settled(on.world, on.world.api.get<KubeObject & { data: Record<string, string> }>(path))
  assert.ok(was.ok && before !== undefined)
  const patched = await settled(on.world, on.world.api.patch<KubeObject>(path, 'merge', { data: { 'fence-method-bmc-off': `${was.value.data['fence-method-bmc-off']}login_timeout=7\n` } }))
  assert.ok(patched.ok)
  await on.until('it is on record', () => pathOf(on)?.state === 'verified' && pathOf(on)?.digest !== before.digest, within)
  assert.is(programs(on, 'status'), asked + 1)
  await on.run(within)
  assert.is(programs(on, 'status'), asked + 1, 'once')
})

test.run()
