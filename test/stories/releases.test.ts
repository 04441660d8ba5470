// Two releases that differ, side by side, as in each upgrade and each way back: the kinds go first, then one replica and one agent after the
// other. The leader of one opens an incident and is killed while its order is under way; the leader of the other goes on from its record.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { settled } from '../../sim/stage.ts'
import { findings, happened, killLeader, ourTaints, peace, workloadRuns, type Play } from './play.ts'
import { news, nextRelease, thisRelease, type Release } from './release.ts'

const test = suite('releases')
const next = await nextRelease()

interface Fence extends KubeObject {
  readonly status?: {
    readonly phase: string
    readonly outcome?: string
    readonly attempts: readonly { readonly action: string; readonly replica: string; readonly result: string }[]
    readonly holds: readonly { readonly because: string }[]
    readonly timeline: readonly { readonly what: string }[]
    readonly pods: readonly { readonly uid: string; readonly fate: string }[]
  }
}

/** As it stands there, whoever can read it. */
function record(on: Play): Required<Fence>['status'] | undefined {
  const [fence, ...others] = (on.world.server?.peek('nodefences.holdfast.dev') ?? []) as readonly Fence[] // ours wrote it
  assert.is(others.length, 0, 'one incident')
  return fence?.status
}

interface Cluster {
  readonly on: Play
  /** A replica stops, and starts anew with the code of a release. */
  roll(number: number, release: Release): Promise<void>
}

/** Both replicas of one release; of its agents, one is of the other. */
async function cluster(seed: number, release: Release, policy: object = {}): Promise<Cluster> {
  const codes = new Map<number, Release>()
  const on = await peace({
    seed, policy, kinds: release.kinds, codeOf: (number) => (codes.get(number) ?? release).startCoordinator, device: { kind: 'chassis', feed: 'own', timing: { off: 6_000, on: 1_000, status: 200 } },
    startAgent: (host, { node }) => (node === 'node-1' ? thisRelease : next).startAgent(host, { version: 'test', kubeletRoot: '/var/lib/kubelet', whisperPort: 7_416, exemptNamespaces: ['holdfast-system'] }),
  })
  return {
    on,
    async roll(number, to) {
      codes.set(number, to)
      on.world.stopReplica(number)
      await on.run(5_000)
      on.world.startReplica(number)
      await on.run(30_000)
    },
  }
}

/** As `kubectl apply` does. */
async function applyKinds({ world }: Play, { kinds }: Release): Promise<void> {
  for (const { metadata: { name }, ...definition } of kinds) {
    const { spec } = definition as { readonly spec?: object } // a definition has one
    assert.ok((await settled(world, world.api.patch(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`, 'merge', { spec }))).ok)
  }
}

/** The machine freezes, and its order is under way, with what the leader has to say of it on record. */
async function orderedOff(on: Play): Promise<void> {
  on.world.freeze(on.victim)
  const ordered = (): boolean => record(on)?.attempts.some(({ result }) => result === 'running') === true
  assert.ok(await on.world.turn().runWhen(ordered, 20_000), 'an order is under way')
  await on.run(1_500)
  assert.ok(ordered(), 'and goes on')
}

/** Nothing was lost, and nothing was done twice. */
async function recovered(on: Play): Promise<void> {
  await on.until('the incident is Final', () => record(on)?.phase === 'Final', 300_000)
  const status = record(on)
  assert.is(status?.outcome, 'Recovered')
  assert.equal([findings(on), ourTaints(on)], [[], []])
  assert.equal([happened(on, 'machine lost its power').length, happened(on, 'machine booted').length], [1, 1])
  const freed = status?.pods.filter(({ fate }) => fate === 'freed').map(({ uid }) => uid) ?? []
  assert.equal(freed.toSorted(), [...new Set(freed)].toSorted(), 'freed once each')
  assert.equal(on.pods.filter((uid) => !freed.includes(uid)), [], 'what stood there was freed')
  assert.equal(freed.filter((uid) => !on.pods.includes(uid)), [], 'no successor was freed')
  assert.ok(workloadRuns(on))
}

for (const [way, first, second] of [['upgraded', thisRelease, next], ['taken back', next, thisRelease]] as const) {
  test(`${way} in the middle of an incident: the other release's leader finishes what was begun`, async () => {
    const { on, roll } = await cluster(way === 'upgraded' ? 281 : 282, first)
    await applyKinds(on, next)
    await roll(1 - (on.leader() ?? 0), second)
    for (const { seen } of on.coordinators.values()) for (const { name, record: kept } of seen.nodes.values()) assert.ok((kept?.paths.length ?? 0) > 0, `both releases know the audits of ${name}`)
    await orderedOff(on)
    const holds = record(on)?.holds.map(({ because }) => because) ?? []
    assert.is(holds.includes(news.hold), first === next, holds.join())
    const replica = on.world.replicas.running.get(killLeader(on))?.identity
    await recovered(on)
    const { attempts, timeline } = record(on) ?? { attempts: [], timeline: [] }
    assert.ok(timeline.some(({ what }) => what === (second === next ? 'taken over' : 'adopted')), 'the other release led')
    assert.ok(attempts.some((one) => one.replica !== replica))
  })
}

test('what the operator asked of the next release this one does not understand: it does nothing, says so, and the next release goes on', async () => {
  const { on, roll } = await cluster(283, next, { [news.field]: 'storm' })
  const other = 1 - (on.leader() ?? 0)
  await roll(other, thisRelease)
  await orderedOff(on)
  const killed = killLeader(on)
  const before = JSON.stringify(record(on))
  await on.run(60_000)
  assert.is(on.leader(), other)
  assert.is(JSON.stringify(record(on)), before, 'nothing is written')
  assert.equal([happened(on, 'volume released'), ourTaints(on)], [[], [`${on.victim} holdfast.dev/quarantine`]])
  const seen = happened(on, 'log').filter(({ because }) => because === 'unreadable')
  assert.match(JSON.stringify(seen), /spec\.policy\.weather.*a release that knows what stands there/)
  await roll(killed, next)
  await roll(other, next)
  await recovered(on)
})

test('the kinds taken back with the release: the API server leaves out what they do not know, and the incident goes on', async () => {
  const { on, roll } = await cluster(284, next, { [news.field]: 'storm' })
  await orderedOff(on)
  for (const number of [0, 1]) on.world.killReplica(number)
  await applyKinds(on, thisRelease)
  for (const number of [0, 1]) await roll(number, thisRelease)
  await recovered(on)
})

test.run()
