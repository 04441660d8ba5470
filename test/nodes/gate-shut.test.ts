// A gate that is shut, through what may happen meanwhile: its agent is killed, or is not there at all, its runtime is started again, a hundred pods arrive. And what an
// open one costs a pod that starts. All of it on a node under quarantine, with the product told by a person to leave it alone.
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { yamlOf } from '../../deploy/manifest.ts'
import { manifests } from '../../deploy/manifests.ts'
import { names, usualValues, type Values } from '../../deploy/values.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { until } from './cluster.ts'
import { killContainer } from './containers.ts'
import { labImage } from './lab-image.ts'
import { say } from './room.ts'
import { startStage, type Pod, type Stage } from './stage.ts'
import { gateOf } from './story.ts'

const test = suite('shut gate')
const guarded = 'node-2'
const quarantine = 'holdfast.dev/quarantine'
const pauses = `/api/v1/namespaces/${usualValues.namespace}/configmaps`
/** None in this namespace is counted by anybody. */
const guests = 'guests'
const within = 120_000
/** Twice as long as kubelet leaves a pod alone that it could not start. */
const watchedFor = 30_000
let stage: Stage

const kubectl = (...words: readonly string[]): Promise<string> => stage.cluster.kubectl(...words)
const machine = () => stage.cluster.machine(guarded)

function guest(name: string, spec: object = { nodeName: guarded }): object {
  return {
    apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: guests },
    spec: { ...spec, terminationGracePeriodSeconds: 1, automountServiceAccountToken: false, enableServiceLinks: false, containers: [{ name: 'main', image: labImage, command: ['/bin/sleep', 'infinity'] }] },
  }
}

async function arrive(...pods: readonly object[]): Promise<void> {
  const file = join(stage.cluster.folder, 'guests.json')
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: pods }))
  await kubectl('apply', '--server-side', '--filename', file)
}

async function leave(): Promise<void> {
  await kubectl('delete', 'pods', '--namespace', guests, '--all', '--wait=false')
  await until('every guest is gone', async () => (await stage.pods(guests)).length === 0, 3 * within)
}

const phases = async (): Promise<ReadonlyMap<string, string>> => new Map((await stage.pods(guests)).map(({ metadata: { name }, status: { phase } }) => [name, phase]))

async function run(...pods: readonly string[]): Promise<void> {
  await until(`${pods.length} pods run`, async () => {
    const now = await phases()
    return pods.every((pod) => now.get(pod) === 'Running')
  }, within)
}

/** Which pods an Event says so of, in these words. */
async function toldOf(words: string): Promise<ReadonlySet<string>> {
  const events = JSON.parse(await kubectl('get', 'events', '--namespace', guests, '--output', 'json')) as { items: { message?: string; involvedObject: { name: string } }[] } // as kubectl prints them
  return new Set(events.items.flatMap(({ message, involvedObject: { name } }) => (message?.includes(words) === true ? [name] : [])))
}

/** Held, and its Event says by whom. */
async function held(words: string, ...pods: readonly string[]): Promise<void> {
  await until(`${pods.length} pods are told: ${words}`, async () => {
    const told = await toldOf(words)
    return pods.every((pod) => told.has(pod))
  }, 3 * within)
  const now = await phases()
  assert.equal(pods.filter((pod) => now.get(pod) !== 'Pending'), [])
}

const ours = `holdfast: ${guarded} is quarantined`
const theirs = 'required plugin "holdfast" not present'

/** Each was held all the while. */
async function stayHeld(...pods: readonly string[]): Promise<void> {
  for (const end = clock.now() + watchedFor; clock.now() < end; await clock.wait(250)) {
    const now = await phases()
    assert.equal(pods.filter((pod) => now.get(pod) !== 'Pending'), [])
  }
}

async function agent(): Promise<Pod | undefined> {
  return (await stage.pods(usualValues.agentNamespace)).find(({ spec }) => spec.nodeName === guarded)
}

const restarts = (pod: Pod | undefined): number => pod?.status.containerStatuses?.[0]?.restartCount ?? 0

/** How often its agent, as it runs now, was taken in by the runtime. */
async function takenIn(): Promise<number> {
  const pod = await agent()
  if (pod === undefined) return 0
  return await kubectl('logs', '--namespace', usualValues.agentNamespace, pod.metadata.name).then((said) => said.split('the runtime asks the gate').length - 1, () => 0) // it has just been started
}

const asks = async (): Promise<boolean> => await takenIn() > 0

/** On this node alone. */
async function agents(where: 'everywhere' | 'elsewhere'): Promise<void> {
  const elsewhere = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'NotIn', values: [guarded] }] }] } } }
  // So that nobody else's agent changes by it.
  const updateStrategy = where === 'elsewhere' ? { type: 'OnDelete', rollingUpdate: null } : { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '10%' } }
  const spec = { updateStrategy, template: { spec: { affinity: where === 'elsewhere' ? elsewhere : null } } }
  await kubectl('patch', 'daemonset', names.agent, '--namespace', usualValues.agentNamespace, '--type', 'merge', '--patch', JSON.stringify({ spec }))
  await until(`agents are ${where}`, async () => (await agent() === undefined) === (where === 'elsewhere'), within)
}

/** As the kernel kills what has taken too much memory; kubelet starts it again. */
async function killAgent(): Promise<void> {
  const before = await agent()
  if (before === undefined) throw new Error(`${guarded} has no agent`)
  await killContainer(stage, before)
  await until('kubelet has started it again', async () => restarts(await agent()) > restarts(before), within)
  await until('the runtime asks it', asks, within)
}

async function restartRuntime(): Promise<void> {
  const before = await machine().run(['cat', '/run/containerd.pid'])
  await machine().killService('containerd', 'starts again')
  await until('it is there again', async () => await machine().run(['cat', '/run/containerd.pid']) !== before, within)
  await until('it answers', () => machine().run(['ctr', 'version']).then(() => true, () => false), within)
}

async function roll(values: Values): Promise<void> {
  const file = join(stage.cluster.folder, 'rolled.yaml')
  writeFileSync(file, yamlOf(manifests(values)))
  await kubectl('apply', '--server-side', '--force-conflicts', '--filename', file)
  await kubectl('--namespace', values.agentNamespace, 'rollout', 'status', `daemonset/${names.agent}`, '--timeout=240s')
}

/** Of kubelet's own measures: what the runtime took for what the gate is asked in. */
async function spent(): Promise<readonly { readonly sum: number; readonly count: number }[]> {
  const measures = await kubectl('get', '--raw', `/api/v1/nodes/${guarded}/proxy/metrics`)
  const read = (what: 'sum' | 'count', operation: string): number => Number(new RegExp(`^kubelet_runtime_operations_duration_seconds_${what}\\{operation_type="${operation}"\\} (\\S+)$`, 'm').exec(measures)?.[1] ?? Number.NaN)
  return ['run_podsandbox', 'create_container'].map((operation) => ({ sum: read('sum', operation), count: read('count', operation) }))
}

/** Milliseconds, in the mean. */
async function startTakes(pods: number): Promise<number> {
  const before = await spent()
  for (let index = 0; index < pods; index += 1) {
    await arrive(guest(`one-${index}`))
    await run(`one-${index}`)
  }
  const after = await spent()
  await leave()
  assert.ok(after.every(({ count }, index) => count - (before[index]?.count ?? Number.NaN) >= pods), JSON.stringify([before, after]))
  return after.reduce((all, { sum, count }, index) => all + (sum - (before[index]?.sum ?? 0)) * 1_000 / (count - (before[index]?.count ?? 0)), 0)
}

test('the stage is set, and a gate that is open costs a pod\'s start less than the start itself', async () => {
  stage = await startStage(say)
  await kubectl('create', 'namespace', guests)
  await until('pods may be made there', () => kubectl('get', 'serviceaccount', 'default', '--namespace', guests).then(() => true, () => false), within)
  await arrive(guest('first'))
  await run('first')
  await leave()
  const without = await startTakes(15)
  await roll({ ...usualValues, gate: 'on' })
  await until('the runtime asks the gate', asks, within)
  await until('it is open', () => gateOf(machine()) === 'open', within)
  const asked = await startTakes(15)
  say(`a pod's sandbox and container: ${without.toFixed(0)} ms without a gate, ${asked.toFixed(0)} with one, ${(asked - without).toFixed(0)} added`)
  assert.ok(asked < 2 * without, `${asked} ms, and ${without} without`)
})

test('a node under quarantine has its gate shut, and an agent that is killed and started again goes on with that', async () => {
  await stage.peace()
  const made = await stage.cluster.api.create(pauses, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'holdfast-pause' }, data: { reason: 'a look at the gate', by: 'ops' } })
  assert.ok(made.ok, JSON.stringify(made))
  await kubectl('taint', 'node', guarded, `${quarantine}=holdfast:NoSchedule`)
  await until('it is shut', () => gateOf(machine()) === 'shut', within)
  await killAgent()
  await arrive(guest('after-the-agent'))
  await held(ours, 'after-the-agent')
  await stayHeld('after-the-agent')
})

test('without an agent, and nothing required: who is bound past the scheduler starts, and the taint alone holds the others', async () => {
  await leave()
  await agents('elsewhere')
  await arrive(guest('bound'), guest('scheduled', { nodeSelector: { 'kubernetes.io/hostname': guarded } }))
  await run('bound')
  assert.is((await stage.pods(guests)).find(({ metadata: { name } }) => name === 'scheduled')?.spec.nodeName, undefined)
  say('without an agent, and nothing required, a pod that is bound past the scheduler starts under quarantine, as docs/install.md says')
  await leave()
})

test('required, and without an agent: nobody starts, and the runtime says what it lacks', async () => {
  appendFileSync(join(machine().disk, 'etc/containerd/config.toml'), `[plugins.'io.containerd.nri.v1.nri'.default_validator]\n  enable = true\n  required_plugins = ["holdfast"]\n  tolerate_missing_plugins_annotation = "holdfast.dev/tolerate-gate"\n`)
  await restartRuntime()
  await arrive(guest('required'))
  await held(theirs, 'required')
  await stayHeld('required')
})

test('required: an agent that comes passes, and refuses in our words; killed three times and its runtime started again, nobody starts meanwhile', async () => {
  await agents('everywhere')
  await until('the runtime asks it', asks, within)
  // Its sandbox may stand since before there was somebody to refuse it: then it is its container that is refused.
  await held(ours, 'required')
  for (const time of [1, 2, 3]) {
    await killAgent()
    assert.is((await phases()).get('required'), 'Pending', `after ${time}`)
  }
  const before = await takenIn()
  await restartRuntime()
  await until('the runtime asks it', async () => await takenIn() > before, within)
  await arrive(guest('after-the-runtime'))
  await held(ours, 'after-the-runtime')
  await stayHeld('required', 'after-the-runtime')
})

test('a hundred pods arrive at a shut gate: each is told why it waits, none starts, and once it is open all do', async () => {
  const hundred = Array.from({ length: 98 }, (_, index) => `guest-${index}`)
  await arrive(...hundred.map((name) => guest(name)))
  await held(ours, ...hundred)
  const all = [...hundred, 'required', 'after-the-runtime']
  const resumed = await stage.cluster.api.remove(`${pauses}/holdfast-pause`)
  assert.ok(resumed.ok, JSON.stringify(resumed))
  const opened = await until('the gate opens', () => gateOf(machine()) === 'open', within)
  const ran = await until('all of them run', async () => [...(await phases()).values()].filter((phase) => phase === 'Running').length === all.length, 2 * within)
  say(`a hundred pods at a shut gate: open ${(opened / 1_000).toFixed(1)} s after the pause was lifted, all run ${(ran / 1_000).toFixed(1)} s later`)
  await leave()
  await stage.peace()
})

test('the stage is left', async () => await stage.stop())

test.run()
