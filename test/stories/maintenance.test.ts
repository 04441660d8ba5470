// While a node is quarantined it says so by the condition that Kubernetes 1.37 has for it; an older API server is told nothing of it.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { NodeObject } from '../../sim/objects.ts'
import { ended, findings, ourTaints, peace, type Play } from './play.ts'

const test = suite('maintenance')

function nodeOf(on: Play): NodeObject | undefined {
  return on.world.server?.peek('nodes').find(({ metadata }) => metadata.name === on.victim) as NodeObject | undefined // by its collection
}

function condition(on: Play): string | undefined {
  const said = nodeOf(on)?.status?.conditions?.find(({ type }) => type === 'MaintenanceInProgress')
  return said && `${said.status} ${said.reason}`
}

test('said while it is quarantined, through its reboot and over its kubelet\'s own posts, and taken back after it', async () => {
  const on = await peace({ seed: 161, kubernetesVersion: 'v1.37.0' })
  assert.is(condition(on), undefined)
  on.world.freeze(on.victim)
  await on.until('it is said', () => condition(on) === 'True HoldfastQuarantine', 60_000)
  const boot = nodeOf(on)?.status?.nodeInfo?.bootID
  await on.until('its kubelet has posted in a new boot', () => nodeOf(on)?.status?.nodeInfo?.bootID !== boot, 120_000)
  assert.equal([condition(on), ourTaints(on).length > 0], ['True HoldfastQuarantine', true])
  const incident = await ended(on, 400_000)
  await on.until('it is taken back', () => condition(on) === 'False HoldfastQuarantineLifted', 30_000)
  assert.equal([incident.status.outcome, findings(on), ourTaints(on)], ['Recovered', [], []])
})

test('an API server of 1.36 has no such condition', async () => {
  const on = await peace({ seed: 161 })
  on.world.freeze(on.victim)
  await ended(on, 400_000)
  assert.equal([condition(on), findings(on)], [undefined, []])
})

test.run()
