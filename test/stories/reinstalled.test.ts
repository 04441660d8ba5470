// Holdfast is deleted in the middle of an incident, its kinds with every NodeFence, NodeRecord and policy, its ConfigMaps and its Lease, and
// is installed again a minute later. All that is left of the incident is a taint on the node, and perhaps a machine that is off: nobody who
// comes then knows by whom. The machine is not fenced again for that; the taint is found, told, and comes off once the node is well.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { fencesPath } from '../../coordinator/node-fence.ts'
import type { Incident } from '../../core/incident.ts'
import { isStaged } from '../../sim/mounts.ts'
import { settled } from '../../sim/stage.ts'
import { ended, findings, happened, killLeader, ourTaints, peace, programs, theIncident, workloadRuns, type Play } from './play.ts'

const test = suite('reinstalled')

const collections: Readonly<Record<string, string>> = {
  'customresourcedefinitions.apiextensions.k8s.io': '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
  configmaps: '/api/v1/namespaces/holdfast-system/configmaps', 'leases.coordination.k8s.io': '/apis/coordination.k8s.io/v1/namespaces/holdfast-system/leases',
}

type First = 'its coordinator' | 'its kinds'

/** What goes first; the rest goes five seconds later. The answer installs it again as it was. */
async function uninstall({ world, run }: Play, first: First): Promise<() => void> {
  const { server } = world
  if (server === undefined) throw new Error('a story stands in a world of its own')
  const kept = [...server.peek('customresourcedefinitions.apiextensions.k8s.io'), ...server.peek('holdfastpolicies.holdfast.dev'), ...server.peek('configmaps')]
  const killReplicas = (): void => {
    for (const number of [0, 1]) world.killReplica(number)
  }
  if (first === 'its coordinator') killReplicas()
  for (const [collection, path] of Object.entries(collections)) {
    const ours = server.peek(collection).filter(({ metadata }) => collection !== 'leases.coordination.k8s.io' || metadata.name === 'holdfast-coordinator')
    for (const { metadata } of ours) assert.ok((await settled(world, world.api.remove(`${path}/${metadata.name}`))).ok, metadata.name)
  }
  await run(5_000)
  killReplicas()
  for (const name of world.nodes.keys()) world.killAgent(name, true)
  assert.equal([...server.peek('nodefences.holdfast.dev'), ...server.peek('noderecords.holdfast.dev'), ...server.peek('holdfastpolicies.holdfast.dev')], [])
  return () => {
    for (const object of kept) server.plant(asWritten(object))
    for (const name of world.nodes.keys()) world.startAgent(name)
    for (const number of [0, 1]) world.startReplica(number)
  }
}

function asWritten(object: KubeObject): KubeObject {
  const { status: _, metadata: { name, namespace }, ...rest } = object as KubeObject & { status?: unknown } // what was reached goes with it
  return { ...rest, metadata: { name, ...(namespace === undefined ? {} : { namespace }) } }
}

const powerLosses = (on: Play): number => happened(on, 'machine lost its power').length
const isOff = ({ world, victim }: Play): boolean => world.nodes.get(victim)?.machine.state() === 'off'
const quarantined = (on: Play): readonly string[] => [`${on.victim} holdfast.dev/quarantine`]
const holds = (on: Play): readonly string[] => [...on.coordinators.values()].filter((one) => one.leads() !== undefined).flatMap((one) => one.holds().filter(({ node }) => node === on.victim).map(({ because }) => because))

/** The node is frozen, and Holdfast is gone once that is so. */
async function forgotten(seed: number, first: First, so: (incident: Incident, on: Play) => boolean): Promise<{ readonly on: Play; readonly install: () => void }> {
  const on = await peace({ seed })
  on.world.freeze(on.victim)
  await on.until('it is so', async () => {
    const incident = await theIncident(on)
    return incident !== undefined && so(incident, on)
  }, 100_000)
  const install = await uninstall(on, first)
  await on.run(60_000)
  assert.ok(ourTaints(on).includes(quarantined(on)[0] ?? ''), 'nobody is there to take it off')
  return { on, install }
}

async function allIsWell(on: Play): Promise<void> {
  await on.until('no taint of ours is left', () => ourTaints(on).length === 0, 400_000)
  await on.until('the workload runs', () => workloadRuns(on), 120_000)
  await on.run(60_000)
  assert.equal([findings(on), ourTaints(on), powerLosses(on)], [[], [], 1])
  assert.ok((await on.incidents()).every(({ status }) => status.phase === 'Final'))
}

const dark: readonly (readonly [string, (incident: Incident, on: Play) => boolean])[] = [
  ['it was ordered off', (_, on) => isOff(on)],
  ['it was proven off', ({ status }) => status.proof !== undefined],
  ['its pods were freed', ({ status }) => status.pods.length > 0],
]
for (const [index, [what, so]] of dark.entries()) for (const first of ['its coordinator', 'its kinds'] as const) {
  test(`${first} goes once ${what}: the machine is off and nobody knows why; it is held, and switched on by a person it is not switched off again`, async () => {
    const { on, install } = await forgotten(310 + index, first, so)
    assert.ok(isOff(on))
    install()
    await on.until('the taint is told', () => holds(on).includes('waiting-for-boot'), 30_000)
    const orders = programs(on, 'off') + programs(on, 'on')
    await on.run(240_000)
    assert.equal([holds(on), ourTaints(on), isOff(on), programs(on, 'off') + programs(on, 'on')], [['path-unverified'], quarantined(on), true, orders], 'out-of-service is gone, nothing was ordered')
    on.world.powerOn(on.victim)
    await allIsWell(on)
    assert.is((await theIncident(on))?.status.outcome, 'Withdrawn')
  })
}

for (const [index, when] of ['once it has power', 'before a person switches it on'].entries()) {
  test(`its leader is killed ${when}: the next one, to which its device never said off, does not switch it off as it comes up`, async () => {
    const { on, install } = await forgotten(340 + index, 'its kinds', (_, play) => isOff(play))
    install()
    await on.until('it is held', () => holds(on).includes('path-unverified'), 300_000)
    const orders = programs(on, 'off')
    const killed = when === 'once it has power' ? undefined : killLeader(on)
    on.world.nodes.get(on.victim)?.machine.powerOn(180_000)
    await on.run(5_000)
    if (killed === undefined) killLeader(on)
    await on.until('the next one holds it', () => holds(on).includes('path-unverified'), 90_000)
    await on.run(60_000)
    assert.equal([holds(on), programs(on, 'off')], [['path-unverified'], orders], 'and says so')
    await allIsWell(on)
    assert.is((await theIncident(on))?.status.outcome, 'Withdrawn')
  })
}

test('who knows that the machine is off frees by a word what was not freed before', async () => {
  const { on, install } = await forgotten(320, 'its kinds', (_, play) => isOff(play))
  assert.not.ok(workloadRuns(on, on.victim))
  install()
  await on.until('it is held', () => holds(on).includes('path-unverified'), 300_000)
  const incident = await theIncident(on)
  assert.ok(incident)
  const word = { boot: incident.boot, by: 'on call', reason: 'its plugs are in my hand', until: new Date(on.world.clock.wall() + 600_000).toISOString() }
  assert.ok((await settled(on.world, on.world.api.patch<KubeObject>(`${fencesPath}/${incident.name}`, 'merge', { spec: { acknowledge: word } }))).ok)
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 120_000)
  on.world.powerOn(on.victim)
  await allIsWell(on)
  assert.is((await ended(on, 60_000)).status.proof?.kind, 'vouched')
})

for (const kept of ['nothing', 'staged mounts'] as const) {
  test(`once it was switched on again: it is back by itself, and the taint ${kept === 'nothing' ? 'comes off' : 'stays until nothing is left over on it'}`, async () => {
    const { on, install } = await forgotten(330, 'its coordinator', ({ status }, { world, victim }) => {
      const node = world.nodes.get(victim)
      if (node !== undefined) node.faults.kept = kept
      return status.attempts.some(({ action, result }) => action === 'on' && result === 'on')
    })
    assert.not.ok(isOff(on))
    install()
    if (kept === 'staged mounts') {
      await on.run(200_000)
      assert.equal([holds(on), ourTaints(on)], [['waiting-for-clean'], quarantined(on)])
      const mounts = on.world.nodes.get(on.victim)?.machine.mounts
      for (const [path, mount] of mounts ?? []) if (isStaged(mount)) mounts?.delete(path)
    }
    await allIsWell(on)
    assert.equal(await on.incidents(), [])
  })
}

test.run()
