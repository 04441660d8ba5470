// A person's own out-of-service on the node that is being fenced: whatever stands there of others is theirs to take off.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { paths } from '../../coordinator/kubernetes.ts'
import { settled } from '../../sim/stage.ts'
import { ended, findings, happened, ourTaints, peace, programs, theIncident, type Play } from './play.ts'

const test = suite('another\'s taint')

interface Taint { readonly key: string; readonly value?: string; readonly effect: string }
const outOfService = 'node.kubernetes.io/out-of-service'

async function taints(on: Play, change?: (taints: readonly Taint[]) => readonly Taint[]): Promise<readonly Taint[]> {
  const node = await settled(on.world, on.world.api.get<KubeObject & { spec?: { taints?: readonly Taint[] } }>(paths.node(on.victim)))
  assert.ok(node.ok)
  const now = node.value.spec?.taints ?? []
  if (change === undefined) return now
  const written = await settled(on.world, on.world.api.patch<KubeObject>(paths.node(on.victim), 'merge', { spec: { taints: change(now) } }))
  assert.ok(written.ok, JSON.stringify(written))
  return change(now)
}

for (const effect of ['NoExecute', 'NoSchedule'] as const) {
  test(`a person puts out-of-service with ${effect} on the victim: it is cleared, not switched on under that taint, and recovers once the person has taken it off`, async () => {
    const on = await peace({ seed: effect === 'NoExecute' ? 81 : 82 })
    const theirs: Taint = { key: outOfService, value: 'nodeshutdown', effect }
    on.world.freeze(on.victim)
    await on.until('it is off', async () => happened(on, 'device switched').length > 0, 30_000)
    await taints(on, (now) => [...now, theirs])
    await on.until('it waits for the person', async () => (await theIncident(on))?.status.holds.some((hold) => hold.because === 'foreign-taint') === true, 60_000)
    await on.run(120_000)
    assert.is(programs(on, 'on'), 0)
    assert.equal((await taints(on)).filter((one) => one.key === outOfService), [theirs])
    assert.ok(happened(on, 'volume released').length > 0)
    await taints(on, (now) => now.filter((one) => one.key !== outOfService))
    const incident = await ended(on, 200_000)
    assert.is(incident.status.outcome, 'Recovered')
    assert.is(programs(on, 'on'), 1)
    assert.equal(findings(on), [])
    assert.equal(ourTaints(on), [])
  })
}

test('a person\'s out-of-service on a node that is well is none of ours', async () => {
  const on = await peace({ seed: 83 })
  const theirs: Taint = { key: outOfService, value: 'nodeshutdown', effect: 'NoSchedule' }
  await taints(on, (now) => [...now, theirs])
  await on.run(120_000)
  assert.equal(await taints(on), [theirs])
  assert.equal(await on.incidents(), [])
})

test.run()
