// One replica as its image starts it: the bundle, the flags of its container, its settings in the environment; and what the kernel and
// its own metrics say of it.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { coordinatorManifests } from '../../../deploy/coordinator.ts'
import { usualValues } from '../../../deploy/values.ts'
import { at, type JsonObject } from '../../../sim/api-server/json.ts'
import type { ProbeTold, ProbeWord } from './probe.ts'

export interface ReplicaOptions {
  /** Where the bundles are, and where it may write. */
  readonly folder: string
  readonly index: number
  readonly api: { readonly url: string; readonly ca: string; readonly token: string }
  /** For the links to other replicas. */
  readonly linkToken: string
  /** As cron has it. */
  readonly auditAt: string
}

export interface Replica {
  readonly beats: string
  /** What it warned of, latest last. */
  readonly warnings: readonly string[]
  metrics(): Promise<Metrics>
  begin(profile?: string): void
  end(): Promise<ProbeTold>
  usage(): Usage
  /** The peak is that from here on. */
  forgetPeak(): void
  stop(): Promise<void>
}

/** By the name and labels of each sample. */
export type Metrics = ReadonlyMap<string, number>

export interface Usage {
  readonly ownMs: number
  /** Of its programs that have ended. */
  readonly programsMs: number
  readonly rssMb: number
  readonly anonMb: number
  readonly peakMb: number
}

/** What the kernel counts processor time in. */
const tickMs = 10
const warningsKept = 20
const warning = 40

/** As deploy/coordinator.ts makes it. */
interface DeploymentManifest { readonly spec: { readonly template: { readonly spec: { readonly containers: readonly { readonly command: readonly string[] }[] } } } }

/** As in the container: what stands between the program and the bundle. */
function flags(): readonly string[] {
  const deployment = coordinatorManifests(usualValues).find(({ kind }) => kind === 'Deployment')
  const { command = [] } = (deployment as unknown as DeploymentManifest | undefined)?.spec.template.spec.containers[0] ?? {}
  return command.slice(1, -1)
}

export async function startReplica(options: ReplicaOptions): Promise<Replica> {
  const { folder, index, api } = options
  const name = `holdfast-coordinator-${index}`
  const kubeconfig = join(folder, `${name}.kubeconfig`)
  writeFileSync(kubeconfig, JSON.stringify({
    apiVersion: 'v1', kind: 'Config', 'current-context': 'all', contexts: [{ name: 'all', context: { cluster: 'all', user: 'all' } }],
    clusters: [{ name: 'all', cluster: { server: api.url, 'certificate-authority-data': Buffer.from(api.ca).toString('base64') } }], users: [{ name: 'all', user: { token: api.token } }],
  }), { mode: 0o600 })
  const tokenFile = join(folder, `${name}.token`)
  writeFileSync(tokenFile, options.linkToken, { mode: 0o600 })
  const child = fork(join(folder, 'coordinator.mjs'), [], {
    execArgv: [...flags(), '--import', join(import.meta.dirname, 'probe.ts')], stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    env: {
      PATH: process.env['PATH'], TMPDIR: folder, KUBECONFIG: kubeconfig, HOLDFAST_IDENTITY: name, HOLDFAST_ADDRESS: '127.0.0.1', HOLDFAST_BIND: '127.0.0.1',
      HOLDFAST_BEATS_PORT: '0', HOLDFAST_HTTP_PORT: '0', HOLDFAST_KDUMP_PORT: '0', HOLDFAST_TOKEN_FILE: tokenFile, HOLDFAST_FENCE_AGENTS: join(folder, 'fence-agents'), HOLDFAST_AUDIT_AT: options.auditAt,
    },
  })
  const warnings: string[] = []
  const { beats, http } = await started(child, warnings)
  return {
    beats, warnings,
    // A connection that is kept may be closed by the replica, which is done with it, just as it is asked again.
    metrics: async () => readMetrics(await (await fetch(`http://${http}/metrics`, { headers: { connection: 'close' } })).text()),
    begin: (profile) => say(child, { do: 'begin', ...(profile === undefined ? {} : { profile }) }),
    async end() {
      say(child, { do: 'end' })
      const [told] = await once(child, 'message')
      return told as ProbeTold // the probe's one answer
    },
    usage() {
      // Behind the name, which is in brackets and may hold anything.
      const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ').map(Number)
      const [user = 0, system = 0, programsUser = 0, programsSystem = 0] = fields.slice(11, 15)
      const memory = readFileSync(`/proc/${child.pid}/status`, 'utf8')
      const [rssMb = 0, anonMb = 0, peakMb = 0] = ['VmRSS', 'RssAnon', 'VmHWM'].map((field) => Math.round(Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(memory)?.[1]) / 1024))
      return { ownMs: (user + system) * tickMs, programsMs: (programsUser + programsSystem) * tickMs, rssMb, anonMb, peakMb }
    },
    forgetPeak: () => writeFileSync(`/proc/${child.pid}/clear_refs`, '5'),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    },
  }
}

function say(child: ChildProcess, word: ProbeWord): void {
  child.send(word)
}

async function started(child: ChildProcess, warnings: string[]): Promise<{ beats: string; http: string }> {
  const { stdout } = child
  if (stdout === null) throw new Error('the replica was started without a log')
  return await new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the replica ended with ${code}: ${warnings.join('\n')}`)))
    createInterface({ input: stdout }).on('line', (line) => {
      const said = JSON.parse(line) as JsonObject // its log is one object a line
      if (at(said, 'msg') === 'replica runs') resolve({ beats: String(at(said, 'beats')), http: String(at(said, 'http')) })
      if (Number(at(said, 'level')) < warning) return
      warnings.push(line)
      if (warnings.length > warningsKept) warnings.shift()
    })
  })
}

function readMetrics(text: string): Metrics {
  return new Map(text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).map((line): [string, number] => {
    const space = line.lastIndexOf(' ')
    return [line.slice(0, space), Number(line.slice(space + 1))]
  }))
}
