// A machine whose clock is set while its containers run, as at each boot whose hardware clock was wrong (local time instead of UTC, a dead battery).
// What a container's making is stamped with is of the clock of then; what it is compared with is of the clock of now.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { isOlder, withoutProcess } from '../../agent/container-age.ts'
import type { ContainerSeen, MountTable } from '../../core/mounts.ts'
import { createRuntimeNri } from '../../sim/runtime-nri.ts'
import { beatsWorld } from '../coordinator/beats-world.ts'
import { peace, workloadRuns } from '../stories/play.ts'

const test = suite('container age')
const gone = '22222222-1111-4111-8111-111111111111'
const etcd = '0123456789abcdef0123456789abcdef'
const minute = 60_000
const hour = 60 * minute
const container = (pod: string): ContainerSeen => ({ id: `c-${pod}`, name: pod, pod })

test('older is what was made before, what nobody says when, and what seems to be made only in the future', () => {
  const cases: [number | undefined, boolean][] = [[undefined, true], [9_999, true], [10_000, false], [20_000, false], [20_000.7, false], [20_000 + minute, true]]
  for (const [since, wanted] of cases) assert.is(isOlder(since === undefined ? container(gone) : { ...container(gone), since }, 10_000, 20_000), wanted, String(since))
})

test('of a pod that has a process no stamp is needed', () => {
  const tables: MountTable[] = [{ process: 1, mountinfo: '' }, { process: 77, pod: etcd, mountinfo: '' }]
  assert.equal(withoutProcess([etcd, gone, ''].map(container), tables).map(({ pod }) => pod), [gone, ''])
})

test('a fenced boot that lives: a container that has run for long is stopped, though the clock was an hour ahead when it was made', async () => {
  const world = beatsWorld()
  const leader = world.replica('replica-a', true)
  // Made ten minutes ago; the clock was set back by an hour five minutes ago.
  const running: ContainerSeen[] = [{ id: 'c-gone', name: 'work/db-0 main', pod: gone, since: world.clock.wall() - 10 * minute + hour }]
  world.agent('node-1', {
    containers: async () => [...running],
    stopContainer: async () => { running.length = 0; return undefined },
  })
  await world.clock.runFor(3_000)
  leader.beats.check('node-1', [], { stop: true })
  await world.clock.runFor(1_000)
  assert.equal(running, [])
})

test('called off by a device that lied, and without a kubelet: its agent ends what runs elsewhere by now, though its clock was set back by an hour meanwhile', async () => {
  const on = await peace({ seed: 250, power: 'bmc', policy: { profile: 'fast', returnPatience: '60s' } })
  const device = on.world.devices.get(`bmc-${on.victim}`)
  const runtime = on.world.nodes.get(on.victim)?.runtime
  if (device === undefined || runtime === undefined) throw new Error('each node has a controller and a runtime')
  device.fault = { does: 'lie' }
  on.world.killKubelet(on.victim)
  const heal = on.world.isolate(on.victim)
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 120_000)
  on.world.setClock(on.victim, -hour)
  heal()
  await on.until('the proof is void', async () => (await on.incidents()).some(({ status }) => status.voided.length > 0), 60_000)
  await on.until('it ends what it ran', () => [...runtime.containers.values()].every(({ pod: { namespace } }) => namespace !== 'work'), 20_000)
})

/** A cluster that starts cold, with a node that booted less than a minute ago and a container of that age by its stamp. What a pod is told that asks to start. */
async function cold(age: number, mountTables: readonly MountTable[]): Promise<string> {
  const world = beatsWorld()
  const runtime = createRuntimeNri(world.clock)
  const since = world.clock.wall() - age
  world.agent('node-1', {
    gate: { node: 'node-1' }, connectNri: async () => runtime.connect(), mountTables: async () => mountTables,
    askApi: async (path) => ({ status: 200, body: JSON.stringify(path.startsWith('/api/v1/')
      ? { metadata: { name: 'node-1' }, spec: {}, status: { nodeInfo: { bootID: 'b007-0001' } } } : { metadata: {}, items: [] }) }),
    containers: async () => [{ id: 'c1', name: 'kube-system/etcd-node-1 etcd', pod: etcd, since }],
  })
  await world.clock.runFor(10 * minute)
  const answer = runtime.ask({ namespace: 'work', name: 'web', uid: 'u1', annotations: {} })
  await world.clock.runFor(100)
  return await answer ?? 'starts'
}

test('a cluster that starts cold: what runs began in this boot, though the clock was set since, by half a minute or by hours, ahead or back', async () => {
  const runs: MountTable[] = [{ process: 77, pod: etcd, mountinfo: '22 1 0:50 / / rw - overlay overlay rw\n' }]
  for (const age of [40_000, 70_000, hour, -hour]) assert.is(await cold(age, runs), 'starts', String(age))
})

test('a cluster that starts cold: what the runtime lists, nothing runs of, and no stamp shows to be of this boot, keeps the gate shut', async () => {
  assert.is(await cold(40_000, []), 'starts')
  for (const age of [70_000, hour, -hour]) assert.match(await cold(age, []), /older than its boot/, String(age))
})

test.run()
