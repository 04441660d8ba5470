// Nodes that are asked to give up when nobody permits them to run workloads any more.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readCluster } from '../../cli/cluster.ts'
import { listen } from '../../sim/search/judges/ears.ts'
import { judgeSelfStop } from '../../sim/search/judges/self-stop.ts'
import { watchWellness } from '../../sim/search/wellness.ts'
import { findings, happened, killLeader, ourTaints, peace, workloadRuns, type Play } from './play.ts'

const test = suite('self-stop')

const asked = { policy: { profile: 'fast', giveUp: 'stop' }, nodes: 5 } as const

/** Judged from now on. */
function court(on: Play): { found(): readonly unknown[] } {
  const wellness = watchWellness(on.world)
  const ears = listen(on.world, wellness)
  const judge = judgeSelfStop({ on, wellness, ears })
  return {
    found() {
      for (const one of [judge, ears, wellness]) one.stop()
      return judge.found()
    },
  }
}

const gaveUp = (on: Play) => happened(on, 'log').filter(({ message }) => message === 'this node gives up its workloads').map(({ who }) => String(who).split('/')[0])
const working = (on: Play) => [...on.world.nodes.get(on.victim)?.runtime.containers.values() ?? []].filter(({ pod, process }) => pod.namespace === 'work' && process.running()).length

/** Its device takes every order and does nothing, so that nobody but the node itself can end what runs there. */
function deafDevice(on: Play, node = on.victim): void {
  const device = on.world.devices.get(`bmc-${node}`)
  if (device === undefined) throw new Error('each node has a controller')
  device.fault = { does: 'ignore' }
}

test('a node that is cut off from everybody, and that no device can end, stops its workloads, and takes workloads again once it is heard', async () => {
  for (const gate of [true, false]) {
    const on = await peace({ seed: 120, ...asked, gate })
    const { found } = court(on)
    deafDevice(on)
    const heal = on.world.isolate(on.victim)
    const before = working(on)
    assert.ok(before > 0)
    await on.run(12_000)
    assert.is(working(on), before, 'its permit has not run out')
    await on.until('its workloads have stopped', () => working(on) === 0, 30_000)
    if (gate) {
      const started = () => happened(on, 'container runs').filter(({ node, pod }) => node === on.victim && String(pod).startsWith('work/')).length
      const after = started()
      await on.run(40_000)
      assert.equal([working(on), started()], [0, after], 'and none starts')
    }
    heal()
    const device = on.world.devices.get(`bmc-${on.victim}`)
    if (device !== undefined) device.fault = undefined
    await on.until('it is as it was', async () => workloadRuns(on) && ourTaints(on).length === 0 && (await on.incidents()).every(({ status }) => status.phase === 'Final'), 900_000)
    assert.equal([gaveUp(on), findings(on), found()], [[on.victim], [], []])
    const told = await readCluster(on.world.api, 'holdfast-system')
    assert.equal(told.gaveUp, { ok: true, value: [on.victim] }, 'and afterwards one can read that it did')
  }
})

test('with its runtime dead as well, what ran is frozen, and it is never let go', async () => {
  const on = await peace({ seed: 121, ...asked })
  const { found } = court(on)
  deafDevice(on)
  on.world.failRuntime(on.victim, 'dead')
  const heal = on.world.isolate(on.victim)
  await on.until('its workloads stand still', () => working(on) === 0, 40_000)
  const frozen = [...on.world.nodes.get(on.victim)?.runtime.containers.values() ?? []].filter(({ pod }) => pod.namespace === 'work')
  heal()
  await on.run(60_000)
  assert.ok(frozen.length > 0 && frozen.every(({ process }) => !process.running()))
  on.world.mendRuntime(on.victim)
  await on.until('they are ended', () => frozen.every(({ ended }) => ended()), 30_000)
  assert.equal(found(), [])
})

test('while the whole control plane is away, no node gives up', async () => {
  const on = await peace({ seed: 122, ...asked })
  const { found } = court(on)
  await on.run(20_000)
  const ends = ['node-1', 'node-2', 'node-3', 'node-4', 'node-5', 'replica-0', 'replica-1'].map((name) => on.world.partition({ from: [name], to: ['api'] }))
  on.world.killReplica(0)
  await on.run(180_000)
  assert.equal([gaveUp(on), working(on) > 0], [[], true])
  for (const end of ends) end()
  on.world.startReplica(0)
  await on.run(120_000)
  assert.equal([gaveUp(on), findings(on), found(), await on.incidents()], [[], [], [], []])
})

test('a zone that is cut off with its replica does not keep itself alive, and the rest goes on', async () => {
  const on = await peace({ seed: 123, ...asked, nodes: 7, zones: 1 })
  const { found } = court(on)
  await on.run(20_000)
  const zone = [on.victim, ...[...on.world.nodes.keys()].filter((name) => name !== on.victim).slice(0, 1)]
  for (const node of zone) deafDevice(on, node)
  const others = ['api', 'replica-1', ...[...on.world.nodes.keys()].filter((name) => !zone.includes(name))]
  on.world.partition({ from: [...zone, 'replica-0'], to: others })
  await on.run(60_000)
  assert.equal([gaveUp(on).toSorted(), working(on)], [zone.toSorted(), 0])
  assert.equal(found(), [])
})

test('a leader that is killed costs no node its permit, nor does an agent that is upgraded', async () => {
  const on = await peace({ seed: 124, ...asked })
  const { found } = court(on)
  for (let turn = 0; turn < 4; turn += 1) {
    killLeader(on)
    on.world.restartAgent(on.victim)
    await on.run(20_000)
    for (const number of [0, 1]) on.world.startReplica(number)
    await on.run(10_000)
  }
  assert.equal([gaveUp(on), found()], [[], []])
})

test('a device that lies, and a node that is only cut off: two writers, and none where the policy waits for the permit', async () => {
  for (const waitForPermit of [false, true]) {
    const on = await peace({ seed: 126, ...asked, gate: true, policy: { ...asked.policy, waitForPermit } })
    const device = on.world.devices.get(`bmc-${on.victim}`)
    if (device !== undefined) device.fault = { does: 'lie' }
    on.world.isolate(on.victim)
    await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 120_000)
    await on.run(30_000)
    assert.equal([findings(on).length > 0, gaveUp(on)], [!waitForPermit, [on.victim]], `${waitForPermit}`)
  }
})

test('where no policy asks for it a node that is cut off runs on', async () => {
  const on = await peace({ seed: 125, policy: { profile: 'fast' } })
  deafDevice(on)
  on.world.isolate(on.victim)
  await on.run(90_000)
  assert.ok(working(on) > 0)
})

test.run()
