// Trouble that is nobody's death: an API server that is away in the middle of the story, watches that stand still, writes whose
// answers get lost, and configuration that is wrong.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { readIncident } from '../../coordinator/node-fence.ts'
import { ended, findings, happened, ourTaints, peace, programs, workloadRuns, type Play } from './play.ts'
import { settled } from '../../sim/stage.ts'

const test = suite('trouble')

/** The longest timeline there is, read past every fault. */
function moments(on: Play): number {
  const objects = on.world.server?.peek('nodefences.holdfast.dev') ?? []
  return Math.max(0, ...objects.map((object) => {
    const read = readIncident(object)
    return read.ok ? read.incident.status.timeline.length : 0
  }))
}

async function finishes(on: Play): Promise<void> {
  const incident = await ended(on, 600_000)
  assert.is(incident.status.outcome, 'Recovered')
  assert.equal(findings(on), [])
  assert.equal(ourTaints(on), [])
  assert.ok(workloadRuns(on), 'the workload runs')
  assert.is(happened(on, 'machine booted').length, 1)
}

for (const moment of [1, 2, 4, 6, 8]) {
  test(`the API server is away for a minute from moment ${moment} on: the story is finished all the same`, async () => {
    const on = await peace({ seed: 40 + moment })
    on.world.freeze(on.victim)
    while (moments(on) < moment) await on.run(5)
    on.world.server?.faults.set([{ does: 'unreachable' }])
    on.world.server?.faults.breakWatches()
    await on.run(60_000)
    on.world.server?.faults.clear()
    await finishes(on)
  })
}

test('the API server is away for a minute while all nodes are well: nobody is fenced', async () => {
  const on = await peace({ seed: 51 })
  on.world.server?.faults.set([{ does: 'unreachable' }])
  await on.run(60_000)
  on.world.server?.faults.clear()
  await on.run(120_000)
  assert.equal(await on.incidents(), [])
  assert.is(programs(on, 'off'), 0)
})

for (const [which, strikes] of [['watches stand', undefined], ['the watch of NodeFences alone stands', 'nodefences']] as const) {
  test(`${which} still while writes work: blind, and nothing is ordered`, async () => {
    const on = await peace({ seed: 52 })
    on.world.server?.faults.set([{ does: 'stall watch', strikes: (call) => call.path.includes(strikes ?? '') }])
    await on.run(15_000)
    on.world.freeze(on.victim)
    await on.run(20_000)
    assert.is(programs(on, 'off'), 0)
    assert.equal(await on.incidents(), [])
    on.world.server?.faults.clear()
    await finishes(on)
  })
}

test('every third answer to a write is lost: what was done is seen, and nothing is done twice', async () => {
  const on = await peace({ seed: 53 })
  let writes = 0
  on.world.server?.faults.set([{ does: 'lose answer', strikes: (call) => call.method !== 'GET' && call.user.name.includes('coordinator') && !call.path.includes('leases') && ++writes % 3 === 0 }])
  on.world.freeze(on.victim)
  await on.until('the pods are freed', async () => (await on.incidents()).some((incident) => incident.status.pods.length > 0), 120_000)
  on.world.server?.faults.clear()
  await finishes(on)
})

test('an edited policy takes effect; an incident under way keeps the one it began with', async () => {
  const on = await peace({ seed: 54 })
  on.world.freeze(on.victim)
  while (moments(on) < 2) await on.run(5)
  const path = '/apis/holdfast.dev/v1alpha1/holdfastpolicies/all'
  const patched = await settled(on.world, on.world.api.patch<KubeObject>(path, 'merge', { spec: { profile: 'balanced', nodeDownPodDeletionPolicy: 'DoNothing' } }))
  assert.ok(patched.ok)
  await finishes(on)
  assert.is([...on.coordinators.values()][0]?.policies()[0]?.profile, 'balanced')
})

test('a fence ConfigMap with faults: every one of them in one Event with its key and line, and the last good path stays in force', async () => {
  const on = await peace({ seed: 55 })
  const path = `/api/v1/namespaces/holdfast-system/configmaps/fence-config-${on.victim}`
  const patched = await settled(on.world, on.world.api.patch<KubeObject>(path, 'merge', {
    data: { 'config.properties': `node_name=${on.victim}\npower_management=bmc-off nothing\nretry=many\n`, 'fence-method-bmc-off': 'template=absent\nplug=1,2\naction=off\n' },
  }))
  assert.ok(patched.ok)
  await on.run(10_000)
  const events = await settled(on.world, on.world.api.get<{ items: { reason?: string; note?: string }[] }>('/apis/events.k8s.io/v1/events'))
  assert.ok(events.ok)
  const told = events.value.items.filter((event) => event.reason === 'FenceConfigInvalid')
  assert.is(told.length, 1)
  const note = told[0]?.note ?? ''
  for (const part of ['template= names no ConfigMap', 'plug names more than one outlet', 'retry= is not known', 'method 2 is written nowhere', 'config.properties, line 2', 'line 3']) assert.ok(note.includes(part), `${part} in: ${note}`)
  on.world.cutPower(on.victim)
  await finishes(on)
})

test('the pause is put there in the middle of an incident, before the order: nothing is ordered or freed until it is taken away', async () => {
  const on = await peace({ seed: 56 })
  const path = '/api/v1/namespaces/holdfast-system/configmaps'
  on.world.freeze(on.victim)
  while (moments(on) < 1) await on.run(1)
  on.world.server?.plant({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'holdfast-pause', namespace: 'holdfast-system' }, data: { reason: 'a look at it', by: 'on call' } } as KubeObject) // a ConfigMap has data
  await on.run(60_000)
  assert.is(programs(on, 'off'), 0)
  assert.equal(on.pods.filter((uid) => on.world.server?.peek('pods').every((pod) => pod.metadata.uid !== uid)), [])
  assert.is(happened(on, 'volume released').length, 0)
  const [incident] = await on.incidents()
  assert.equal(incident?.status.holds.map(({ because, detail }) => `${because}: ${detail}`), ['pause: paused by on call: a look at it'])
  assert.ok((await settled(on.world, on.world.api.remove(`${path}/holdfast-pause`))).ok)
  await finishes(on)
})

test.run()
