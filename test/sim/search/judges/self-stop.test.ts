import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { fencesPath } from '../../../../coordinator/node-fence.ts'
import { judgeSelfStop } from '../../../../sim/search/judges/self-stop.ts'
import { settled } from '../../../../sim/stage.ts'
import { quietWorld, type Quiet } from './quiet-world.ts'

const test = suite('search: the judge of self-stop')

const asked = { policy: { giveUp: 'stop' } } as const

/** The replicas of a quiet world tell nobody anything, so no agent there gives up: as if it were broken. */
const found = ({ history }: Quiet) => judgeSelfStop(history)

test('a workload that runs on where nobody can be heard any more is a breach of safety, after a minute', async () => {
  const quiet = await quietWorld(asked)
  const judge = found(quiet)
  await quiet.run(20_000)
  quiet.world.isolate(quiet.victim)
  await quiet.run(60_000)
  assert.equal(judge.found(), [])
  await quiet.run(30_000)
  assert.ok(judge.found().length > 0 && judge.found().every(({ judge: whose, node }) => whose === 'safety' && node === quiet.victim))
})

test('it is none while one peer, or the API server alone, can be heard, nor once it has stopped, stands still, or its machine does', async () => {
  for (const what of ['peer', 'api', 'stopped', 'frozen', 'machine'] as const) {
    const quiet = await quietWorld(asked)
    const { world, victim } = quiet
    const judge = found(quiet)
    await quiet.run(20_000)
    const other = [...world.nodes.keys()].find((name) => name !== victim) ?? ''
    const heard = what === 'peer' ? other : what === 'api' ? 'api' : ''
    world.partition({ from: [victim], to: ['api', 'replica-0', 'replica-1', ...world.nodes.keys()].filter((name) => name !== victim && name !== heard) })
    if (what === 'machine') world.freeze(victim)
    for (let second = 0; second < 120; second += 1) {
      for (const container of world.nodes.get(victim)?.runtime.containers.values() ?? []) {
        if (container.pod.namespace !== 'work') continue
        if (what === 'stopped') container.kill()
        if (what === 'frozen') container.process.pause('test', 'running')
      }
      await quiet.run(1_000)
    }
    assert.equal(judge.found(), [], what)
  }
})

test('to give up while a leader, or the API server, would have permitted it is needless; cut off, proven off, or fenced by a person, it is not', async () => {
  for (const [what, needless] of [['well', true], ['replicas away', true], ['cut off', false], ['proven off', false], ['fenced by a person', false]] as const) {
    const quiet = await quietWorld(asked)
    const { world, victim } = quiet
    const judge = found(quiet)
    await quiet.run(20_000)
    if (what === 'replicas away') for (const number of [0, 1]) world.killReplica(number)
    if (what === 'cut off') world.isolate(victim)
    if (what === 'proven off') quiet.plantFence(`${victim}-x-1`, victim, { phase: 'Running', proof: { kind: 'off', boot: 'b', methods: [] } })
    if (what === 'fenced by a person') await settled(world, world.api.create(fencesPath, { apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeFence', metadata: { name: 'by-hand' }, spec: { nodeName: victim } }))
    await quiet.run(45_000)
    world.truth.note('log', { who: `${victim}/agent`, level: 'error', message: 'this node gives up its workloads' })
    assert.equal(judge.found().filter(({ judge: whose }) => whose === 'restraint').map(({ node }) => node), needless ? [victim] : [], what)
  }
})

test('with the whole control plane away most of the others would have permitted it, and fewer would not', async () => {
  for (const [peers, needless] of [[4, true], [2, false]] as const) {
    const quiet = await quietWorld({ ...asked, nodes: 5 })
    const { world, victim } = quiet
    const judge = found(quiet)
    await quiet.run(20_000)
    for (const name of [...world.nodes.keys(), 'replica-0', 'replica-1']) world.partition({ from: [name], to: ['api'] })
    for (const number of [0, 1]) world.killReplica(number)
    for (const other of [...world.nodes.keys()].filter((name) => name !== victim).slice(peers)) world.partition({ from: [victim], to: [other] })
    await quiet.run(45_000)
    world.truth.note('log', { who: `${victim}/agent`, level: 'error', message: 'this node gives up its workloads' })
    assert.is(judge.found().filter(({ judge: whose }) => whose === 'restraint').length, needless ? 1 : 0, `${peers}`)
  }
})

test('a machine that is reset by its watchdog while somebody would have permitted it was reset needlessly; cut off, or with its agent dead, it was not', async () => {
  for (const [what, needless] of [['well', true], ['cut off', false], ['agent dead', false]] as const) {
    const quiet = await quietWorld({ policy: { giveUp: 'watchdog' }, watchdog: { identity: 'i6300ESB timer', timeout: 10_000, fires: 'at once' } })
    const { world, victim } = quiet
    const judge = found(quiet)
    await quiet.run(45_000)
    const there = world.nodes.get(victim)
    const agent = there?.agent()
    if (there === undefined || agent === undefined) throw new Error('its agent runs')
    if (what === 'cut off') world.isolate(victim)
    there.machine.watchdog.forProcess(agent).open()
    if (what === 'agent dead') world.killAgent(victim)
    await quiet.run(12_000)
    assert.is(world.truth.entries.filter((entry) => entry.what === 'watchdog resets the machine').length, 1)
    assert.equal(judge.found().filter(({ judge: whose }) => whose === 'restraint').map(({ node }) => node), needless ? [victim] : [], what)
  }
})

test('where nobody is asked to give up there is nothing to judge', async () => {
  const quiet = await quietWorld()
  const judge = found(quiet)
  quiet.world.isolate(quiet.victim)
  await quiet.run(120_000)
  assert.equal(judge.found(), [])
})

test.run()
