// A node whose gate is looked at: guests that arrive at it past the scheduler, and what may happen meanwhile to its agent and its runtime. A person
// has put it under quarantine, and has told the product to leave it alone.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import type { Ms } from '../../core/model.ts'
import { names, usualValues } from '../../deploy/values.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { until } from './cluster.ts'
import { killContainer } from './containers.ts'
import { labImage } from './lab-image.ts'
import type { Machine } from './machine.ts'
import type { Pod, Stage } from './stage.ts'
import { gateOf } from './story.ts'

export interface GuardedNode {
  readonly machine: Machine
  /** What its gate says of a guest. */
  readonly words: string
  quarantine(): Promise<void>
  /** How long until the gate was open. */
  release(): Promise<Ms>
  /** A pod for this node; where it is to run is its spec's, if that is given. */
  guest(name: string, spec?: object): object
  arrive(...guests: readonly object[]): Promise<void>
  /** Every guest. */
  leave(): Promise<void>
  guests(): Promise<readonly Pod[]>
  phases(): Promise<ReadonlyMap<string, string>>
  /** All of these, with their containers. How long until then. */
  run(...guests: readonly string[]): Promise<Ms>
  /** An Event of each guest says so. */
  told(words: string, ...guests: readonly string[]): Promise<void>
  /** Told, and none has started. */
  held(words: string, ...guests: readonly string[]): Promise<void>
  /** None starts, for longer than kubelet leaves a pod alone. */
  stayHeld(...guests: readonly string[]): Promise<void>
  /** Whether the runtime asks the agent that runs now. */
  asks(): Promise<boolean>
  /** Everywhere but on this node, or there again. */
  agents(where: 'everywhere' | 'elsewhere'): Promise<void>
  /** As the kernel kills what has taken too much memory; kubelet starts it again. */
  killAgent(): Promise<void>
  /** Killed; its init starts it again. Where there is an agent, until that is asked again. */
  restartRuntime(): Promise<void>
}

const taint = 'holdfast.dev/quarantine'
const pauses = `/api/v1/namespaces/${usualValues.namespace}/configmaps`
/** None in this namespace is counted by anybody. */
const namespace = 'guests'
const within = 120_000
/** Twice as long as kubelet leaves a pod alone that it could not start. */
const watchedFor = 30_000

export async function guardedNode(stage: Stage, name: string): Promise<GuardedNode> {
  const { kubectl } = stage.cluster
  const machine = stage.cluster.machine(name)
  await kubectl('create', 'namespace', namespace)
  await until('pods may be made there', () => kubectl('get', 'serviceaccount', 'default', '--namespace', namespace).then(() => true, () => false), within)
  const node: GuardedNode = {
    machine, words: `holdfast: ${name} is quarantined`, phases, asks,
    async quarantine() {
      const made = await stage.cluster.api.create(pauses, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'holdfast-pause' }, data: { reason: 'a look at the gate', by: 'ops' } })
      assert.ok(made.ok, JSON.stringify(made))
      await kubectl('taint', 'node', name, `${taint}=holdfast:NoSchedule`)
      await until('its gate is shut', () => gateOf(machine) === 'shut', within)
    },
    async release() {
      const resumed = await stage.cluster.api.remove(`${pauses}/holdfast-pause`)
      assert.ok(resumed.ok, JSON.stringify(resumed))
      return await until('its gate opens', () => gateOf(machine) === 'open', within)
    },
    guest: (guest, spec = { nodeName: name }) => ({
      apiVersion: 'v1', kind: 'Pod', metadata: { name: guest, namespace },
      spec: { ...spec, terminationGracePeriodSeconds: 1, automountServiceAccountToken: false, enableServiceLinks: false, containers: [{ name: 'main', image: labImage, command: ['/bin/sleep', 'infinity'] }] },
    }),
    async arrive(...guests) {
      const file = join(stage.cluster.folder, 'guests.json')
      writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: guests }))
      await kubectl('apply', '--server-side', '--filename', file)
    },
    async leave() {
      await kubectl('delete', 'pods', '--namespace', namespace, '--all', '--wait=false')
      await until('every guest is gone', async () => (await node.guests()).length === 0, 3 * within)
    },
    guests: () => stage.pods(namespace),
    async run(...guests) {
      return await until(`${guests.length} guests run`, async () => {
        const running = new Set((await node.guests()).filter(({ status }) => status.conditions?.some(({ type, status: word }) => type === 'Ready' && word === 'True')).map(({ metadata }) => metadata.name))
        return guests.every((guest) => running.has(guest))
      }, within)
    },
    async told(words, ...guests) {
      await until(`${guests.length} guests are told: ${words}`, async () => {
        const told = await toldOf(words)
        return guests.every((guest) => told.has(guest))
      }, 3 * within)
    },
    async held(words, ...guests) {
      await node.told(words, ...guests)
      await noneOf(guests)
    },
    async stayHeld(...guests) {
      for (const end = clock.now() + watchedFor; clock.now() < end; await clock.wait(250)) await noneOf(guests)
    },
    async agents(where) {
      const elsewhere = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'NotIn', values: [name] }] }] } } }
      // So that nobody else's agent changes by it.
      const updateStrategy = where === 'elsewhere' ? { type: 'OnDelete', rollingUpdate: null } : { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '10%' } }
      const spec = { updateStrategy, template: { spec: { affinity: where === 'elsewhere' ? elsewhere : null } } }
      await kubectl('patch', 'daemonset', names.agent, '--namespace', usualValues.agentNamespace, '--type', 'merge', '--patch', JSON.stringify({ spec }))
      await until(`agents are ${where}`, async () => (await agent() === undefined) === (where === 'elsewhere'), within)
      if (where === 'everywhere') await until('the runtime asks it', asks, within)
    },
    async killAgent() {
      const before = await agent()
      if (before === undefined) throw new Error(`${name} has no agent`)
      await killContainer(stage, before)
      await until('kubelet has started it again', async () => restarts(await agent()) > restarts(before), within)
      await until('the runtime asks it', asks, within)
    },
    async restartRuntime() {
      const [before, asked] = [await machine.run(['cat', '/run/containerd.pid']), await takenIn()]
      await machine.killService('containerd', 'starts again')
      await until('it is there again', async () => await machine.run(['cat', '/run/containerd.pid']) !== before, within)
      await until('it answers', () => machine.run(['ctr', 'version']).then(() => true, () => false), within)
      if (await agent() !== undefined) await until('it asks the agent again', async () => await takenIn() > asked, within)
    },
  }
  return node

  async function phases(): Promise<ReadonlyMap<string, string>> {
    return new Map((await node.guests()).map(({ metadata, status: { phase } }) => [metadata.name, phase]))
  }

  async function noneOf(guests: readonly string[]): Promise<void> {
    const now = await phases()
    assert.equal(guests.filter((guest) => now.get(guest) !== 'Pending'), [])
  }

  async function toldOf(words: string): Promise<ReadonlySet<string>> {
    const events = JSON.parse(await kubectl('get', 'events', '--namespace', namespace, '--output', 'json')) as { items: { message?: string; involvedObject: { name: string } }[] } // as kubectl prints them
    return new Set(events.items.flatMap(({ message, involvedObject }) => (message?.includes(words) === true ? [involvedObject.name] : [])))
  }

  async function agent(): Promise<Pod | undefined> {
    return (await stage.pods(usualValues.agentNamespace)).find(({ spec }) => spec.nodeName === name)
  }

  /** How often its agent, as it runs now, was taken in by the runtime. */
  async function takenIn(): Promise<number> {
    const pod = await agent()
    if (pod === undefined) return 0
    return await kubectl('logs', '--namespace', usualValues.agentNamespace, pod.metadata.name).then((said) => said.split('the runtime asks the gate').length - 1, () => 0) // it has just been started
  }

  async function asks(): Promise<boolean> {
    return await takenIn() > 0
  }
}

/** The program of the boot's gate: its pid as the machine counts, or nothing. The brackets keep the one that asks from finding itself. */
export async function bootGateOf(machine: Machine): Promise<string> {
  const found = await machine.run(['sh', '-c', 'for one in /proc/[0-9]*; do tr "\\0" " " < $one/cmdline | grep -q "[b]oot-gate/boot-gate.mjs /var" && echo ${one#/proc/}; done; true'])
  return found.trim()
}

const restarts = (pod: Pod | undefined): number => pod?.status.containerStatuses?.[0]?.restartCount ?? 0
