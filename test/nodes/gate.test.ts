// The gate against a real containerd and a real kubelet: who is refused, what a person reads, and that nobody who lives through an
// opened gate notices it.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { recordsPath } from '../../coordinator/node-record.ts'
import { usualValues } from '../../deploy/values.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { until } from './cluster.ts'
import { labImage } from './lab-image.ts'
import { say } from './room.ts'
import { startStage, type Stage } from './stage.ts'
import { workNamespace } from './workload.ts'

const test = suite('gate')
const quarantine = 'holdfast.dev/quarantine'
const guarded = 'node-2'
let stage: Stage

test('installed with the gates on, the workload runs, and every runtime asks the gate of its node', async () => {
  stage = await startStage(say)
  const gates = async (): Promise<readonly string[]> => {
    const answer = await stage.cluster.api.get<{ items: readonly { spec: { gate?: string } }[] }>(recordsPath)
    return answer.ok ? answer.value.items.map(({ spec }) => spec.gate ?? 'nothing') : [answer.error.message]
  }
  await until('every record says so', async () => (await gates()).every((gate) => gate === 'asks') && (await gates()).length === 3, 60_000)
})

const guest = {
  apiVersion: 'v1', kind: 'Pod', metadata: { name: 'guest', namespace: workNamespace },
  spec: { nodeName: guarded, terminationGracePeriodSeconds: 1, automountServiceAccountToken: false, containers: [{ name: 'main', image: labImage, command: ['/bin/sh', '-c', 'sleep 3600'] }] },
}
const welcome = { ...guest, metadata: { ...guest.metadata, name: 'welcome' }, spec: { ...guest.spec, tolerations: [{ key: quarantine, operator: 'Exists' }] } }

async function phaseOf(name: string): Promise<string> {
  const answer = await stage.cluster.api.get<{ status: { phase: string } }>(`/api/v1/namespaces/${workNamespace}/pods/${name}`)
  return answer.ok ? answer.value.status.phase : answer.error.message
}

test('under quarantine a pod waits, and its Event says for what; one that tolerates it starts; afterwards both run', async () => {
  const { api, kubectl } = stage.cluster
  const pauses = `/api/v1/namespaces/${usualValues.namespace}/configmaps`
  const made = await api.create(pauses, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'holdfast-pause' }, data: { reason: 'a look at the gate', by: 'ops' } })
  assert.ok(made.ok, JSON.stringify(made))
  await kubectl('taint', 'node', guarded, `${quarantine}=holdfast:NoSchedule`)
  // Past the scheduler: the gate is what is to hold it.
  for (const pod of [guest, welcome]) {
    const bound = await api.create(`/api/v1/namespaces/${workNamespace}/pods`, pod)
    assert.ok(bound.ok, JSON.stringify(bound))
  }
  let said = ''
  await until('its Event says why it waits', async () => {
    said = await kubectl('get', 'events', '--namespace', workNamespace, '--field-selector', 'involvedObject.name=guest', '--output', 'jsonpath={.items[*].message}')
    return said.includes(`holdfast: ${guarded} is quarantined`)
  }, 60_000).catch((error: unknown) => { throw new Error(`${String(error)}: ${said}`, { cause: error }) })
  say(said.slice(0, 400))
  await until('the one that tolerates runs', async () => await phaseOf('welcome') === 'Running', 90_000)
  assert.is(await phaseOf('guest'), 'Pending')
  const resumed = await api.remove(`${pauses}/holdfast-pause`)
  assert.ok(resumed.ok, JSON.stringify(resumed))
  await until('the quarantine is lifted', async () => !(await stage.cluster.node(guarded)).spec?.taints?.some(({ key }) => key === quarantine), 120_000)
  await until('it runs', async () => await phaseOf('guest') === 'Running', 90_000)
  await kubectl('delete', 'pod', '--namespace', workNamespace, '--wait=true', 'guest', 'welcome')
})

/** As many as a node takes beside what runs on it anyway. */
const many = 100
const crowd = 'crowd'
const manyWithin = 900_000

test('a hundred pods wait at a shut gate, through a runtime that is killed, and all of them start once it is open', async () => {
  await stage.peace()
  const { api, kubectl } = stage.cluster
  const machine = stage.cluster.machine(guarded)
  const pauses = `/api/v1/namespaces/${usualValues.namespace}/configmaps`
  const made = await api.create(pauses, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'holdfast-pause' }, data: { reason: 'a look at the gate', by: 'ops' } })
  assert.ok(made.ok, JSON.stringify(made))
  await kubectl('create', 'namespace', crowd)
  await kubectl('taint', 'node', guarded, `${quarantine}=holdfast:NoSchedule`)
  await until('its gate is shut', async () => JSON.parse(await machine.run(['cat', '/var/lib/holdfast/gate.json'])).gate === 'shut', 30_000)
  for (let index = 0; index < many; index += 1) {
    const bound = await api.create(`/api/v1/namespaces/${crowd}/pods`, { ...guest, metadata: { name: `guest-${index}`, namespace: crowd } })
    assert.ok(bound.ok, JSON.stringify(bound))
  }
  const refused = async (): Promise<ReadonlySet<string>> => new Set((await kubectl('get', 'events', '--namespace', crowd, '--output', 'jsonpath={range .items[*]}{.involvedObject.name} {.message}{"\\n"}{end}'))
    .split('\n').filter((line) => line.includes(`holdfast: ${guarded} is quarantined`)).map((line) => line.split(' ')[0] ?? ''))
  const took = await until('the Event of each says why it waits', async () => (await refused()).size === many, manyWithin)
  say(`${many} pods refused by the gate within ${(took / 1_000).toFixed(1)} s of the last one bound`)
  await machine.killService('containerd', 'starts again')
  await clock.wait(60_000)
  const phases = async (): Promise<Readonly<Record<string, number>>> => Object.fromEntries([...Map.groupBy(await stage.pods(crowd), ({ status }) => status.phase)].map(([phase, pods]) => [phase, pods.length]))
  assert.equal(await phases(), { Pending: many }, 'none of them has started')
  const resumed = await api.remove(`${pauses}/holdfast-pause`)
  assert.ok(resumed.ok, JSON.stringify(resumed))
  const ran = await until('all of them run', async () => (await phases())['Running'] === many, manyWithin)
  say(`${many} pods run ${(ran / 1_000).toFixed(1)} s after the pause was over`)
  await kubectl('delete', 'namespace', crowd, '--wait=true', '--timeout=300s')
})

test('a node whose power is cut returns through its gate, and takes workloads again', async () => {
  await stage.peace()
  const machine = stage.cluster.machine(guarded)
  await machine.powerOff()
  await until('an incident is open', async () => (await stage.incidents()).some(({ nodeName }) => nodeName === guarded), 60_000)
  await machine.powerOn()
  await until('it is over', async () => (await stage.incidents()).every(({ status }) => status.phase === 'Final'), 240_000)
  await stage.peace()
  // By the scheduler, which heeds taints, and through the gate.
  const { nodeName, ...spec } = guest.spec
  const bound = await stage.cluster.api.create(`/api/v1/namespaces/${workNamespace}/pods`, { ...guest, spec: { ...spec, nodeSelector: { 'kubernetes.io/hostname': nodeName } } })
  assert.ok(bound.ok, JSON.stringify(bound))
  await until('a pod runs there', async () => await phaseOf('guest') === 'Running', 90_000)
})

test('the stage stops', async () => await stage.stop())

test.run()
