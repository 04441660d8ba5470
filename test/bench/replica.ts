// What a replica costs in a cluster of five thousand nodes, everything it does included: the coordinator as its image runs it, two
// replicas of it, against an API server in another process that holds the cluster and posts its nodes' statuses; all agents beat to
// both. Scenes, one after the other: nothing happens; three machines lose their power; they come back; a turn of the audit.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { bundle } from '../../deploy/build.ts'
import { ownLease, type ClusterTold, type ClusterWord, type Counted } from './replica/cluster.ts'
import type { CrowdTold, CrowdWord } from './replica/crowd.ts'
import { startReplica, type Metrics, type Replica, type Usage } from './replica/process.ts'
import type { ProbeTold } from './replica/probe.ts'
import type { Flag } from './run.ts'

export const flags: Readonly<Record<string, Flag>> = {
  nodes: { wants: 'N', fits: /^[1-9]\d{2,3}$/ },
  seconds: { wants: 'N, of each scene', fits: /^[1-9]\d{0,3}$/ },
  /** Of the four, from the first on. */
  scenes: { wants: 'N, from 1 to 4', fits: /^[1-4]$/ },
  /** Where the processor profile of each scene and replica goes; to make it costs some itself. */
  profile: { wants: 'FOLDER', fits: /./ },
}

const usualNodes = 5_000
const usualSeconds = 60
const crowds = 2
const settle = 20_000
/** Two replicas review each token, at the rate that they allow themselves; on a machine where other work runs. */
const linkedWithin = (nodes: number): number => 30_000 + nodes * 60
const minute = 60_000

export interface ReplicaFigures {
  readonly scene: string
  readonly replica: 'leader' | 'follower'
  readonly seconds: number
  /** To each replica. */
  readonly beatsPerSecond: number
  /** Links that had to be made anew, of all replicas: what the machine was too busy for. */
  readonly redials: number
  /** Of one core. */
  readonly cpuPercent: number
  readonly programsPercent: number
  readonly rssMb: number
  readonly anonMb: number
  readonly peakMb: number
  readonly heapMb: number
  readonly longestStallMs: number
  readonly p99StallMs: number
  readonly garbagePercent: number
  readonly longestGarbageMs: number
  readonly decisionsPerSecond: number
  readonly decisionMeanMs: number
  readonly decisionsOver3Ms: number
  readonly decisionsOver20Ms: number
  readonly decisionsOver50Ms: number
  /** Beside its own Lease. */
  readonly requestsPerSecond: number
  readonly requests: Readonly<Record<string, number>>
}

interface Stage {
  readonly cluster: ChildProcess
  readonly crowds: readonly ChildProcess[]
  readonly replicas: readonly Replica[]
  readonly seconds: number
  readonly profile: string | undefined
  show(figures: ReplicaFigures): void
}

export async function bench(json: boolean, options: ReadonlyMap<string, string>): Promise<void> {
  const nodes = Number(options.get('nodes') ?? usualNodes)
  const seconds = Number(options.get('seconds') ?? usualSeconds)
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-replica-'))
  const children: ChildProcess[] = []
  const replicas: Replica[] = []
  const figures: ReplicaFigures[] = []
  const tell = (text: string): void => {
    if (!json) console.log(text)
  }
  try {
    await programs(folder)
    mkdirSync(join(folder, 'devices'))
    const doomed = [0.1, 0.4, 0.8].map((share, index) => Math.floor(nodes * share) + index)
    const cluster = part(children, 'cluster', [folder, String(nodes), doomed.join(',')])
    const told = await word<ClusterTold>(cluster)
    const dying = doomed.map((index) => told.nodes[index] ?? '')
    tell(`${nodes} nodes of ${told.nodeBytes} bytes, ${told.pods} pods`)
    const auditAt = new Date(Math.ceil((Date.now() + linkedWithin(nodes) + settle * 2 + seconds * 3_000) / minute) * minute)
    for (const [index, tokens] of told.tokens.entries()) {
      replicas.push(await startReplica({
        folder, index, linkToken: tokens.links, auditAt: `${auditAt.getMinutes()} ${auditAt.getHours()} * * *`, api: { url: told.url, ca: told.ca, token: tokens.api },
      }))
    }
    const authority = join(folder, 'authority.crt')
    writeFileSync(authority, told.authority)
    const addresses = replicas.map(({ beats }) => beats).join(',')
    const crowd = Array.from({ length: crowds }, (_, index) => part(children, 'crowd', [folder, authority, addresses, String(index), String(crowds)]))
    const began = performance.now()
    await within(linkedWithin(nodes), Promise.all(crowd.map((one) => word(one))), 'not all agents were linked in time')
    tell(`linked in ${Math.round((performance.now() - began) / 1_000)} s; at their start the replicas peaked at ${replicas.map((one) => one.usage().peakMb).join(' and ')} MiB`)
    await wait(settle)
    const stage: Stage = {
      cluster, crowds: crowd, replicas, seconds, profile: options.get('profile'),
      show(one) {
        figures.push(one)
        tell(Object.entries(one).map(([name, value]) => `${name} ${typeof value === 'object' ? JSON.stringify(value) : value}`).join('  '))
      },
    }
    const scenes: readonly (readonly [string, () => void | Promise<void>])[] = [
      ['quiet', () => undefined],
      ['three incidents', () => send(crowd, { do: 'silence', nodes: dying })],
      ['three return', () => {
        send([cluster], { do: 'boot', nodes: dying })
        send(crowd, { do: 'boot', nodes: dying })
      }],
      ['a turn of the audit', () => wait(Math.max(0, auditAt.getTime() - Date.now()) + settle)],
    ]
    for (const [name, begin] of scenes.slice(0, Number(options.get('scenes') ?? scenes.length))) {
      await begin()
      await scene(stage, name)
    }
    for (const [index, { warnings }] of replicas.entries()) for (const line of warnings) tell(`replica ${index} warned: ${line}`)
    if (json) console.log(JSON.stringify(figures))
  } finally {
    for (const child of children.slice(1)) child.kill('SIGKILL')
    await Promise.all(replicas.map((replica) => replica.stop()))
    for (const child of children) child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
}

/** As they are in the image, and the device beside them. */
async function programs(folder: string): Promise<void> {
  for (const [from, to] of [['coordinator/main.ts', 'coordinator.mjs'], ['fence-agents/test-device/test-device.ts', 'fence-agents/test-device/test-device.mjs']] as const) {
    const built = await bundle({ from, to }, folder)
    if ('missing' in built) throw new Error(built.missing)
  }
  cpSync(join(import.meta.dirname, '../../coordinator/page'), join(folder, 'page'), { recursive: true })
}

function part(children: ChildProcess[], name: string, input: readonly string[]): ChildProcess {
  const child = fork(join(import.meta.dirname, 'replica', `${name}.ts`), input, { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  children.push(child)
  return child
}

async function word<T>(child: ChildProcess): Promise<T> {
  const over = new AbortController()
  const ended = once(child, 'exit', { signal: over.signal }).then(() => { throw new Error('a process of the benchmark ended by itself') })
  ended.catch(() => undefined) // it is ended by us in the end
  const [message] = await Promise.race([once(child, 'message'), ended])
  over.abort()
  return message as T // our own child's word
}

async function within<T>(span: number, work: Promise<T>, otherwise: string): Promise<T> {
  const over = new AbortController()
  const late = wait(span, undefined, { signal: over.signal }).then(() => { throw new Error(otherwise) })
  late.catch(() => undefined) // not late
  const done = await Promise.race([work, late])
  over.abort()
  return done
}

function send(to: readonly ChildProcess[], what: CrowdWord | ClusterWord): void {
  for (const child of to) child.send(what)
}

async function scene({ cluster, crowds: crowd, replicas, seconds, profile, show }: Stage, name: string): Promise<void> {
  const said = async (): Promise<CrowdTold> => {
    const counts = crowd.map((one) => word<CrowdTold>(one))
    send(crowd, { do: 'count' })
    return (await Promise.all(counts)).reduce((sum, one) => ({ sent: sum.sent + one.sent, redials: sum.redials + one.redials }))
  }
  const saidBefore = await said()
  const before = await Promise.all(replicas.map(async (replica, index) => {
    replica.forgetPeak()
    replica.begin(profile === undefined ? undefined : join(profile, `${name.replaceAll(' ', '-')}-${index}.cpuprofile`))
    return { usage: replica.usage(), metrics: await replica.metrics() }
  }))
  send([cluster], { do: 'begin' })
  const began = performance.now()
  await wait(seconds * 1_000)
  const span = performance.now() - began
  const counts = word<Counted>(cluster)
  send([cluster], { do: 'end' })
  const counted = await counts
  const saidAfter = await said()
  const beats = { beatsPerSecond: Math.round((saidAfter.sent - saidBefore.sent) / replicas.length / span * 1_000), redials: saidAfter.redials - saidBefore.redials }
  for (const [index, replica] of replicas.entries()) {
    const first = before[index]
    if (first === undefined) continue
    const usage = replica.usage()
    show(figuresOf(name, span, beats, first, { usage, metrics: await replica.metrics() }, await replica.end(), counted[index] ?? {}))
  }
}

interface Moment { readonly usage: Usage; readonly metrics: Metrics }

function figuresOf(name: string, span: number, beats: Pick<ReplicaFigures, 'beatsPerSecond' | 'redials'>, before: Moment, after: Moment, probe: ProbeTold, requests: Readonly<Record<string, number>>): ReplicaFigures {
  const rise = (sample: string): number => (after.metrics.get(sample) ?? 0) - (before.metrics.get(sample) ?? 0)
  const decisions = rise('holdfast_decision_seconds_count')
  const over = (bound: string): number => decisions - rise(`holdfast_decision_seconds_bucket{le="${bound}"}`)
  const asked = Object.entries(requests).filter(([key]) => key !== ownLease).reduce((sum, [, count]) => sum + count, 0)
  const percent = (spent: number): number => round(spent / span * 100)
  return {
    scene: name, replica: after.metrics.get('holdfast_leader') === 1 ? 'leader' : 'follower', seconds: Math.round(span / 1_000), ...beats,
    cpuPercent: percent(after.usage.ownMs - before.usage.ownMs), programsPercent: percent(after.usage.programsMs - before.usage.programsMs),
    rssMb: after.usage.rssMb, anonMb: after.usage.anonMb, peakMb: after.usage.peakMb, heapMb: probe.heapMb, longestStallMs: probe.longestStallMs, p99StallMs: probe.p99StallMs,
    garbagePercent: percent(probe.garbageMs), longestGarbageMs: probe.longestGarbageMs,
    decisionsPerSecond: round(decisions / span * 1_000), decisionMeanMs: round(rise('holdfast_decision_seconds_sum') / Math.max(1, decisions) * 1_000),
    decisionsOver3Ms: over('0.003'), decisionsOver20Ms: over('0.02'), decisionsOver50Ms: over('0.05'),
    requestsPerSecond: round(asked / span * 1_000), requests,
  }
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
