// Two nodes of one strip that tells no machine, both silent before either was ordered off, as behind one switch that failed: an outlet that
// reads off says nothing of the machine that it was meant for while the other one cannot tell that it lives.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { settled } from '../../sim/stage.ts'
import { findings, happened, ourTaints, peace, workload, type Play } from './play.ts'

const test = suite('story: exchanged')

interface Pair extends Play {
  readonly other: string
}

async function pair(seed: number, concurrency: number, wired: 'right' | 'exchanged'): Promise<Pair> {
  const on = await peace({ seed, power: 'outlet', nodes: 7, zones: 1, policy: { profile: 'balanced', brakes: { concurrency, stormPercent: 60, stormWindow: '60s' } } })
  const other = on.victim === 'node-1' ? 'node-2' : 'node-1'
  if (wired === 'exchanged') {
    const strip = on.world.devices.get('pdu-a-1')
    strip?.wire(on.victim, on.world.nodes.get(other)?.machine)
    strip?.wire(other, on.world.nodes.get(on.victim)?.machine)
  }
  return { ...on, other }
}

async function bothFenced(on: Pair): Promise<void> {
  await on.until('both are over', async () => {
    const all = await on.incidents()
    return all.length >= 2 && all.every(({ status }) => status.phase === 'Final')
  }, 100_000)
  assert.equal([findings(on), ourTaints(on)], [[], []])
  assert.equal((await on.incidents()).map(({ nodeName, status }) => [nodeName, status.proof?.kind, status.outcome]).toSorted(), [on.victim, on.other].toSorted().map((name) => [name, 'off', 'Recovered']))
}

for (const concurrency of [1, 3]) {
  test(`outlets that changed places, ${concurrency} fenced at once, and one switch fails for both: nothing is freed before both are off`, async () => {
    const on = await pair(41, concurrency, 'exchanged')
    const heals = [on.victim, on.other].map((node) => on.world.isolate(node))
    await on.until('both are dark', () => [on.victim, on.other].every((node) => on.world.nodes.get(node)?.machine.state() === 'off'), 60_000)
    for (const heal of heals) heal()
    await bothFenced(on)
  })

  test(`two of one strip lose their power at once, ${concurrency} fenced at once: both are freed`, async () => {
    const on = await pair(42, concurrency, 'right')
    for (const node of [on.victim, on.other]) on.world.cutPower(node)
    await bothFenced(on)
  })
}

test('outlets that changed places, and the other one is in a person\'s hands: nothing is freed, it is told whom it waits for, and the power is given back', async () => {
  const on = await pair(43, 1, 'exchanged')
  const patched = await settled(on.world, on.world.api.patch<KubeObject>(`/api/v1/nodes/${on.other}`, 'merge', { metadata: { annotations: { 'holdfast.dev/maintenance': 'new disks' } } }))
  assert.ok(patched.ok)
  for (const node of [on.victim, on.other]) on.world.isolate(node)
  const own = async () => (await on.incidents()).find(({ nodeName }) => nodeName === on.victim)
  await on.until('it is told', async () => (await own())?.status.holds.some(({ because, detail }) => because === 'identity-unproven' && detail.includes(`${on.other} on the same device was silent before the order`)) === true, 60_000)
  const plug = () => on.world.devices.get('pdu-a-1')?.plugs.get(on.victim)?.switched
  assert.is(plug(), 'off')
  await on.until('it is switched on again', () => plug() === 'on', 60_000)
  await on.run(200_000)
  assert.equal([(await on.incidents()).map(({ nodeName, status }) => [nodeName, status.proof]), happened(on, 'device ordered').filter(({ to }) => to === 'off').map((one) => one['plug'])], [[[on.victim, undefined]], [on.victim]])
  assert.is(workload(on).filter(({ metadata }) => on.pods.includes(metadata.uid ?? '') && metadata.deletionTimestamp === undefined).length, on.pods.length)
  assert.equal(findings(on), [])
})

test.run()

