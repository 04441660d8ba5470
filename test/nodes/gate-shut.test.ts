// A gate that is shut, through what may happen meanwhile: its agent is killed, or is not there at all, its runtime is started again, a hundred pods arrive. And what an
// open one costs a pod that starts. All of it on a node under quarantine, with the product told by a person to leave it alone.
import { appendFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { yamlOf } from '../../deploy/manifest.ts'
import { manifests } from '../../deploy/manifests.ts'
import { names, usualValues, type Values } from '../../deploy/values.ts'
import { until } from './cluster.ts'
import { killContainer } from './containers.ts'
import { guardedNode, type GuardedNode } from './guarded-node.ts'
import { say } from './room.ts'
import { startStage, type Stage } from './stage.ts'
import { gateOf } from './story.ts'

const test = suite('shut gate')
const guarded = 'node-2'
const within = 120_000
/** Of a container, where the sandbox is not asked about again: ValidateContainerAdjustment. */
const notCreated = 'rejected container adjustment, reason: holdfast'
const theirs = 'required plugin "holdfast" not present'
let stage: Stage
let node: GuardedNode

async function roll(values: Values): Promise<void> {
  const file = join(stage.cluster.folder, 'rolled.yaml')
  writeFileSync(file, yamlOf(manifests(values)))
  await stage.cluster.kubectl('apply', '--server-side', '--force-conflicts', '--filename', file)
  await stage.cluster.kubectl('--namespace', values.agentNamespace, 'rollout', 'status', `daemonset/${names.agent}`, '--timeout=240s')
}

/** Of kubelet's own measures: what the runtime took for what the gate is asked in. */
async function spent(): Promise<readonly { readonly sum: number; readonly count: number }[]> {
  const measures = await stage.cluster.kubectl('get', '--raw', `/api/v1/nodes/${guarded}/proxy/metrics`)
  const read = (what: 'sum' | 'count', operation: string): number => Number(new RegExp(`^kubelet_runtime_operations_duration_seconds_${what}\\{operation_type="${operation}"\\} (\\S+)$`, 'm').exec(measures)?.[1] ?? Number.NaN)
  return ['run_podsandbox', 'create_container'].map((operation) => ({ sum: read('sum', operation), count: read('count', operation) }))
}

/** Milliseconds, in the mean. */
async function startTakes(pods: number): Promise<number> {
  const before = await spent()
  for (let index = 0; index < pods; index += 1) {
    await node.arrive(node.guest(`one-${index}`))
    await node.run(`one-${index}`)
  }
  const after = await spent()
  await node.leave()
  assert.ok(after.every(({ count }, index) => count - (before[index]?.count ?? Number.NaN) >= pods), JSON.stringify([before, after]))
  return after.reduce((all, { sum, count }, index) => all + (sum - (before[index]?.sum ?? 0)) * 1_000 / (count - (before[index]?.count ?? 0)), 0)
}

test('the stage is set, and a gate that is open costs a pod\'s start less than the start itself', async () => {
  stage = await startStage(say, { values: { ...usualValues, gate: 'off' } })
  node = await guardedNode(stage, guarded)
  await node.arrive(node.guest('first'))
  await node.run('first')
  await node.leave()
  const without = await startTakes(15)
  await roll(usualValues)
  await until('the runtime asks the gate', node.asks, within)
  await until('it is open', () => gateOf(node.machine) === 'open', within)
  const asked = await startTakes(15)
  say(`a pod's sandbox and container: ${without.toFixed(0)} ms without a gate, ${asked.toFixed(0)} with one, ${(asked - without).toFixed(0)} added`)
  assert.ok(asked < 2 * without, `${asked} ms, and ${without} without`)
})

test('shut, it refuses a container in a sandbox that stands since before, and says why', async () => {
  await stage.peace()
  await node.arrive(node.guest('lodger'))
  await node.run('lodger')
  await node.quarantine()
  const [lodger] = await node.guests()
  if (lodger === undefined) throw new Error('the lodger is gone')
  await killContainer(stage, lodger)
  await node.told(notCreated, 'lodger')
  await node.told(node.words, 'lodger')
})

test('a node under quarantine has its gate shut, and an agent that is killed and started again goes on with that', async () => {
  await node.killAgent()
  await node.arrive(node.guest('after-the-agent'))
  await node.held(node.words, 'after-the-agent')
  await node.stayHeld('after-the-agent')
})

test('a static pod starts while the gate is shut, and nobody else by that', async () => {
  const manifest = join(node.machine.disk, 'etc/kubernetes/manifests/static.json')
  writeFileSync(manifest, JSON.stringify(node.guest('static', {})))
  await node.run(`static-${guarded}`)
  assert.is((await node.phases()).get('after-the-agent'), 'Pending')
  assert.is(gateOf(node.machine), 'shut')
  rmSync(manifest)
  await until('it is gone', async () => !(await node.phases()).has(`static-${guarded}`), within)
})

test('without an agent, and nothing required: who is bound past the scheduler starts, and the taint alone holds the others', async () => {
  await node.leave()
  await node.agents('elsewhere')
  await node.arrive(node.guest('bound'), node.guest('scheduled', { nodeSelector: { 'kubernetes.io/hostname': guarded } }))
  await node.run('bound')
  assert.is((await node.guests()).find(({ metadata: { name } }) => name === 'scheduled')?.spec.nodeName, undefined)
  say('without an agent, and nothing required, a pod that is bound past the scheduler starts under quarantine, as docs/install.md says')
  await node.leave()
})

test('required, and without an agent: nobody starts, and the runtime says what it lacks', async () => {
  appendFileSync(join(node.machine.disk, 'etc/containerd/config.toml'), `[plugins.'io.containerd.nri.v1.nri'.default_validator]\n  enable = true\n  required_plugins = ["holdfast"]\n  tolerate_missing_plugins_annotation = "holdfast.dev/tolerate-gate"\n`)
  await node.restartRuntime()
  await node.arrive(node.guest('required'))
  await node.held(theirs, 'required')
  await node.stayHeld('required')
})

test('required: an agent that comes passes, and refuses in our words; killed three times and its runtime started again, nobody starts meanwhile', async () => {
  await node.agents('everywhere')
  // Its sandbox may stand since before there was somebody to refuse it: then it is its container that is refused.
  await node.held(node.words, 'required')
  for (const time of [1, 2, 3]) {
    await node.killAgent()
    assert.is((await node.phases()).get('required'), 'Pending', `after ${time}`)
  }
  await node.restartRuntime()
  await node.arrive(node.guest('after-the-runtime'))
  await node.held(node.words, 'after-the-runtime')
  await node.stayHeld('required', 'after-the-runtime')
})

test('a hundred pods arrive at a shut gate: each is told why it waits, none starts, and once it is open all do', async () => {
  const hundred = Array.from({ length: 98 }, (_, index) => `guest-${index}`)
  await node.arrive(...hundred.map((name) => node.guest(name)))
  await node.held(node.words, ...hundred)
  const all = [...hundred, 'required', 'after-the-runtime']
  const opened = await node.release()
  const ran = await until('all of them run', async () => [...(await node.phases()).values()].filter((phase) => phase === 'Running').length === all.length, 2 * within)
  say(`a hundred pods at a shut gate: open ${(opened / 1_000).toFixed(1)} s after the pause was lifted, all run ${(ran / 1_000).toFixed(1)} s later`)
  await node.leave()
  await stage.peace()
})

test('the stage is left', async () => await stage.stop())

test.run()
