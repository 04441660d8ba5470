// The agent on a real node, in a room of the real nodes: containerd and kubelet, 110 pods, some 500 mounts, the gate on. It is looked at by what
// the kernel says of its process, beside a Node that does nothing in the same minutes. The last line is JSON.
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { argv, execPath, kill } from 'node:process'
import { readMounts } from '../../../core/mounts.ts'
import type { Ms } from '../../../core/model.ts'
import { usualValues } from '../../../deploy/values.ts'
import { machineClock as clock } from '../../../edge/clock.ts'
import { requestsIn, writing } from '../../nodes/api-journal.ts'
import { until } from '../../nodes/cluster.ts'
import { labImage } from '../../nodes/lab-image.ts'
import { openNetwork } from '../../nodes/network.ts'
import { startStage, type Stage } from '../../nodes/stage.ts'
import { workNamespace } from '../../nodes/workload.ts'
import { agentOf, childrenOf, startedAt, usageOf, type Usage } from './process.ts'

export interface NodeFigures {
  readonly minutes: number
  readonly pods: number
  readonly mounts: number
  readonly mountsReadMs: number
  readonly rssMiB: number
  readonly rssAnonMiB: number
  readonly cpuPercent: number
  /** From the start of its process to the welcome, on which the first beat goes out; of three starts the middle one. */
  readonly startMs: number
  /** Of its agent, in those minutes. */
  readonly apiRequests: number
  readonly apiWrites: number
  readonly bare: Pick<Usage, 'rssMiB' | 'rssAnonMiB'> & { readonly cpuPercent: number }
  readonly vitals: { readonly cpuPercent: number; readonly peakRssMiB: number; readonly looks: number }
}

/** What a kubelet takes. */
const mostPods = 110
const runWithin: Ms = 900_000
const settle: Ms = 30_000
const starts = 3
const startWithin: Ms = 180_000
const looksEvery: Ms = 200

const [minutes = '10'] = argv.slice(2)
await openNetwork()
const stage = await startStage((line) => console.error(line))
try {
  console.log(JSON.stringify(await measure(stage, Number(minutes))))
} finally {
  await stage.stop()
}

async function measure(on: Stage, span: number): Promise<NodeFigures> {
  const node = await fill(on)
  await clock.wait(settle)
  const agent = must(agentOf(node), 'the agent does not run')
  const bare = spawn(execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'ignore' })
  const idle = must(bare.pid, 'a bare Node does not start')
  const [before, idleBefore] = [usageOf(agent), usageOf(idle)]
  const [began, beganWall] = [clock.now(), clock.wall()]
  const watched = watchChildren(agent)
  await clock.wait(span * 60_000)
  const took = clock.now() - began
  const { peakRssMiB, looks } = watched()
  const asked = requestsIn(on.cluster.folder).filter((request) => request.node === node && request.at >= beganWall)
  const [after, idleAfter] = [usageOf(agent), usageOf(idle)]
  bare.kill('SIGKILL')
  const share = (ms: number): number => Math.round(ms / took * 10_000) / 100
  const table = join('/proc', String(agent), 'root', 'host', 'proc', '1', 'mountinfo')
  const reading = performance.now()
  const read = readMounts(readFileSync(table, 'utf8'))
  const mountsReadMs = Math.round((performance.now() - reading) * 10) / 10
  if ('fault' in read) throw new Error(read.fault)
  const started: number[] = []
  for (let count = 0; count < starts; count += 1) started.push(await restart(on, node))
  console.error(`starts: ${started.join(', ')} ms`)
  return {
    minutes: Math.round(took / 6_000) / 10, pods: (await podsOn(on, node)).length, mounts: read.mounts.length, mountsReadMs,
    rssMiB: after.rssMiB, rssAnonMiB: after.rssAnonMiB, cpuPercent: share(after.ownMs - before.ownMs), startMs: started.toSorted((one, other) => one - other)[1] ?? Number.NaN,
    apiRequests: asked.length, apiWrites: asked.filter(writing).length,
    bare: { rssMiB: idleAfter.rssMiB, rssAnonMiB: idleAfter.rssAnonMiB, cpuPercent: share(idleAfter.ownMs - idleBefore.ownMs) },
    vitals: { cpuPercent: share(after.childrenMs - before.childrenMs), peakRssMiB, looks },
  }
}

/** The node of the workload, where no replica is, takes as many pods as it can. */
async function fill(on: Stage): Promise<string> {
  const node = must((await on.pods(workNamespace))[0]?.spec.nodeName, 'the workload has no node')
  const free = mostPods - (await podsOn(on, node)).length
  for (let index = 0; index < free; index += 1) {
    const made = await on.cluster.api.create(`/api/v1/namespaces/${workNamespace}/pods`, podOf(`crowd-${index}`, node))
    if (!made.ok) throw new Error(made.error.message)
  }
  const took = await until('all of them run', async () => (await podsOn(on, node)).filter(({ status }) => status.phase === 'Running').length >= mostPods, runWithin)
  console.error(`${free} pods run after ${(took / 1_000).toFixed(1)} s`)
  return node
}

/** Besides its sandbox each has two file systems in memory, which are mounts of the host. */
function podOf(name: string, nodeName: string): object {
  const volumes = ['a', 'b'].map((volume) => ({ name: volume, emptyDir: { medium: 'Memory' } }))
  return {
    apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: workNamespace },
    spec: {
      nodeName, terminationGracePeriodSeconds: 1, automountServiceAccountToken: false, volumes,
      containers: [{ name: 'main', image: labImage, command: ['/bin/sleep', 'infinity'], volumeMounts: volumes.map((volume) => ({ name: volume.name, mountPath: `/${volume.name}` })) }],
    },
  }
}

async function podsOn(on: Stage, node: string): ReturnType<Stage['pods']> {
  const all = await Promise.all([workNamespace, 'kube-system', usualValues.namespace, usualValues.agentNamespace].map((namespace) => on.pods(namespace)))
  return all.flat().filter(({ spec }) => spec.nodeName === node)
}

/** The program that looks at the vitals lives for a second, every other minute. */
function watchChildren(pid: number): () => { readonly peakRssMiB: number; readonly looks: number } {
  const seen = new Set<number>()
  let peakRssMiB = 0
  const timer = setInterval(() => {
    for (const child of childrenOf(pid)) {
      seen.add(child)
      try {
        const { rssMiB } = usageOf(child)
        // One that has ended, and that nobody has asked about yet, has none.
        if (rssMiB > peakRssMiB) peakRssMiB = rssMiB
      } catch {
        // it has just ended
      }
    }
  }, looksEvery)
  return () => {
    clearInterval(timer)
    return { peakRssMiB, looks: seen.size }
  }
}

/** Killed, it is started again by kubelet, later each time; its log says when it was welcomed. */
async function restart(on: Stage, node: string): Promise<number> {
  const old = must(agentOf(node), 'the agent does not run')
  kill(old, 'SIGKILL')
  let linked: number | undefined
  await until('it is welcomed', () => {
    const pid = agentOf(node)
    linked = pid === undefined || pid === old ? undefined : linkedAt(on, node, startedAt(pid))
    return linked !== undefined
  }, startWithin)
  await clock.wait(settle)
  return must(linked, 'it was not welcomed')
}

/** Counted from the start of its process. A runtime writes each line behind its own time and the stream. */
function linkedAt(on: Stage, node: string, began: number): number | undefined {
  const folder = join(on.cluster.machine(node).disk, 'var/log/pods')
  const own = readdirSync(folder).filter((name) => name.startsWith(`${usualValues.agentNamespace}_`)).map((name) => join(folder, name, 'agent'))
  const lines = own.flatMap((one) => readdirSync(one).flatMap((file) => readFileSync(join(one, file), 'utf8').split('\n')))
  const times = lines.filter((line) => line.includes('"msg":"linked"')).map((line) => Number((JSON.parse(line.slice(line.indexOf('{'))) as { time: number }).time)).filter((time) => time >= began)
  return times.length === 0 ? undefined : Math.round(Math.min(...times) - began)
}

function must<T>(value: T | undefined, otherwise: string): T {
  if (value === undefined) throw new Error(otherwise)
  return value
}
