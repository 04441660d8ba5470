// The gate from the first second of a boot, on real machines: the runtime starts it out of its own plugin folder, is told to require it, and a pod that
// is bound to the node since before its death starts once the agent has opened the gate of the new boot, and not before.
import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { shimName } from '../../agent/boot-gate-install.ts'
import { yamlOf } from '../../deploy/manifest.ts'
import { manifests } from '../../deploy/manifests.ts'
import { names, usualValues, type Values } from '../../deploy/values.ts'
import { until } from './cluster.ts'
import { bootGateOf } from './guarded-node.ts'
import { labImage } from './lab-image.ts'
import { say, theRoom } from './room.ts'
import { startStage, type Stage } from './stage.ts'

const test = suite('boot gate')
const guarded = 'node-2'
const values: Values = { ...usualValues, gateFromBoot: 'on' }
/** A pod of a DaemonSet stays bound to its node, whatever becomes of that; none in this namespace is counted by anybody. */
const residents = 'residents'
let stage: Stage

const machine = () => stage.cluster.machine(guarded)
const onDisk = (...path: readonly string[]): string => join(machine().disk, ...path)
const running = (): Promise<string> => bootGateOf(machine())

async function resident(): Promise<{ readonly name: string; readonly uid: string; readonly startedAt: number } | undefined> {
  const pod = (await stage.pods(residents)).find(({ spec }) => spec.nodeName === guarded)
  const [status] = (pod?.status.containerStatuses ?? []) as readonly { readonly state?: { readonly running?: { readonly startedAt: string } } }[] // as kubelet tells it
  return pod === undefined ? undefined : { name: pod.metadata.name, uid: pod.metadata.uid ?? '', startedAt: Date.parse(status?.state?.running?.startedAt ?? '') }
}

test('installed, the shim and all that it needs are on each node, and nothing of it runs before its runtime is started again', async () => {
  stage = await startStage(say, { values })
  for (const { disk } of stage.cluster.machines.values()) {
    assert.is(statSync(join(disk, 'opt/nri/plugins', shimName)).mode & 0o777, 0o755)
    assert.ok(statSync(join(disk, 'var/lib/holdfast/boot-gate/node')).size > 0)
  }
  assert.is(await running(), '')
})

test('a machine that died comes up with it: what is bound there waits for the agent\'s word of this boot, and the node returns', async () => {
  const file = join(theRoom().folder, 'residents.json')
  const labels = { app: 'resident' }
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: residents } },
    { apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { name: 'resident', namespace: residents }, spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: {
      terminationGracePeriodSeconds: 1, automountServiceAccountToken: false, tolerations: [{ operator: 'Exists' }], containers: [{ name: 'main', image: labImage, command: ['/bin/sleep', 'infinity'] }],
    } } } },
  ] }))
  await stage.cluster.kubectl('apply', '--server-side', '--filename', file)
  await until('it runs on every node', async () => (await stage.pods(residents)).filter(({ status }) => status.phase === 'Running').length === 3, 120_000)
  const before = await resident()
  await stage.peace()
  await machine().powerOff()
  const offAt = Date.now()
  await until('an incident is open', async () => (await stage.incidents()).some(({ nodeName }) => nodeName === guarded), 60_000)
  // As an administrator does who wants pods to wait for a plugin that is not there.
  appendFileSync(onDisk('etc/containerd/config.toml'), `[plugins.'io.containerd.nri.v1.nri'.default_validator]\n  enable = true\n  required_plugins = ["holdfast"]\n  tolerate_missing_plugins_annotation = "holdfast.dev/tolerate-gate"\n`)
  await machine().powerOn()
  let said = ''
  await until('its Event says what it waits for', async () => {
    said = await stage.cluster.kubectl('get', 'events', '--namespace', residents, '--field-selector', `involvedObject.uid=${before?.uid ?? ''}`, '--output', 'jsonpath={.items[*].message}')
    return said.includes('its agent has not opened the gate of this boot')
  }, 120_000).catch((error: unknown) => { throw new Error(`${String(error)}: ${said}`, { cause: error }) })
  say(`boot gate: ${/holdfast: [^"]*this boot/.exec(said)?.[0] ?? said}`)
  assert.match(await running(), /^\d+$/)
  await until('it runs again', async () => (await resident())?.startedAt !== before?.startedAt && ((await resident())?.startedAt ?? 0) > offAt, 240_000)
  const gate = JSON.parse(readFileSync(onDisk('var/lib/holdfast/gate.json'), 'utf8')) as { boot: string; gate: string }
  assert.equal([gate.boot.split('/')[0], gate.gate], [machine().bootId(), 'open'])
  // A container's start is told to the second.
  assert.ok(((await resident())?.startedAt ?? 0) + 1_000 > statSync(onDisk('var/lib/holdfast/gate.json')).mtimeMs, 'not before the gate of this boot was open')
  await until('the incident is over', async () => (await stage.incidents()).every(({ status }) => status.phase === 'Final'), 240_000)
  await stage.peace()
})

test('installed without it, the agents take it away, and what runs of it ends', async () => {
  const file = join(theRoom().folder, 'without.yaml')
  writeFileSync(file, yamlOf(manifests({ ...values, gateFromBoot: 'off' })))
  await stage.cluster.kubectl('apply', '--server-side', '--filename', file)
  await stage.cluster.kubectl('--namespace', values.agentNamespace, 'rollout', 'status', `daemonset/${names.agent}`, '--timeout=240s')
  await until('nothing of it runs', async () => await running() === '', 30_000)
  await stage.peace()
})

test('the stage stops', async () => await stage.stop())

test.run()
