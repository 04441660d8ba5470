// A replica as a process of its own: what it says of a bad start, how it waits, how it ends.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process, { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { incidentBody, statusBody } from '../../coordinator/node-fence.ts'
import { defaultPolicy } from '../../core/policy.ts'
import { freshStatus } from '../../core/timeline.ts'
import { customResourceDefinitions } from '../../deploy/crd.ts'
import { machineClock } from '../../edge/clock.ts'
import { admin, createApiServer } from '../../sim/api-server/server.ts'
import { serve } from '../../sim/api-server/https-server.ts'

const test = suite('main')

const program = fileURLToPath(new URL('../../coordinator/main.ts', import.meta.url))
const patience = 30_000

interface Replica {
  readonly child: ChildProcess
  output(): string
  /** Undefined: ended by a signal. */
  readonly ended: Promise<number | undefined>
  /** The first log line with this message. */
  line(message: string): Promise<Record<string, unknown>>
}

function start(environment: Record<string, string>): Replica {
  const child = spawn(execPath, [program], { env: { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ...environment }, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  const waiting = new Set<() => void>()
  const hear = (piece: Buffer): void => {
    output += piece.toString()
    for (const look of waiting) look()
  }
  child.stdout.on('data', hear)
  child.stderr.on('data', hear)
  const guard = setTimeout(() => child.kill('SIGKILL'), patience)
  const ended = new Promise<number | undefined>((resolve) => {
    child.on('close', (code) => {
      clearTimeout(guard)
      for (const look of waiting) look()
      resolve(code ?? undefined)
    })
  })
  return {
    child, ended, output: () => output,
    line: (message) => new Promise((resolve, reject) => {
      const look = (): void => {
        const found = output.split('\n').find((line) => line.includes(`"msg":"${message}"`))
        if (found === undefined && child.exitCode === null && child.signalCode === null) return
        waiting.delete(look)
        if (found === undefined) reject(new Error(`it ended without saying ${message}: ${output}`))
        else resolve(JSON.parse(found) as Record<string, unknown>) // pino writes objects
      }
      waiting.add(look)
      look()
    }),
  }
}

function ask(address: string, path: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    http.get(`http://${address}${path}`, (response) => {
      let text = ''
      response.on('data', (piece: Buffer) => { text += piece.toString() })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    }).on('error', reject)
  })
}

const settings = {
  HOLDFAST_NAMESPACE: 'holdfast-system', HOLDFAST_AGENT_NAMESPACE: 'holdfast-system', HOLDFAST_IDENTITY: 'replica-0', HOLDFAST_ADDRESS: '127.0.0.1', HOLDFAST_BIND: '127.0.0.1',
  HOLDFAST_BEATS_PORT: '0', HOLDFAST_HTTP_PORT: '0', HOLDFAST_KDUMP_PORT: '0', HOLDFAST_TOKEN_FILE: '/nonexistent/token', HOLDFAST_FENCE_AGENTS: '/nonexistent',
}

async function withKubeconfig(url: string, ca: string, run: (file: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-main-'))
  const file = join(folder, 'kubeconfig')
  writeFileSync(file, JSON.stringify({
    apiVersion: 'v1', kind: 'Config', 'current-context': 'c', contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }], users: [{ name: 'u', user: { token: 'the-token' } }],
  }))
  try {
    await run(file)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('settings that are wrong end the start, every fault of them told', async () => {
  const replica = start({ HOLDFAST_BEATS_PORT: 'many', HOLDFAST_LOG_LEVEL: 'loud' })
  assert.is(await replica.ended, 2)
  for (const name of ['HOLDFAST_IDENTITY', 'HOLDFAST_ADDRESS', 'HOLDFAST_BEATS_PORT', 'HOLDFAST_LOG_LEVEL']) assert.ok(replica.output().includes(name), replica.output())
})

test('no cluster to speak to ends the start with a sentence, not with a stack', async () => {
  const replica = start(settings)
  assert.is(await replica.ended, 1)
  assert.ok(replica.output().includes('holdfast coordinator: no cluster'), replica.output())
  assert.not.ok(replica.output().includes('    at '), replica.output())
})

const moduleAt = (file: string) => JSON.stringify(new URL(`../../${file}`, import.meta.url).href)
const coreLimit = /^Max core file size +0 +0 /m

test('a process that refuses core dumps writes none, and neither does a fence program that it starts', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-cores-'))
  try {
    writeFileSync(join(folder, 'teller'), '#!/bin/sh\ncat /proc/self/limits /proc/self/coredump_filter\n', { mode: 0o755 })
    const asked = spawnSync('sh', ['-c', 'ulimit -c unlimited 2>/dev/null; exec "$@"', 'sh', execPath, '--input-type=module', '--eval', [
      `import { refuseCoreDumps } from ${moduleAt('coordinator/core-dumps.ts')}`, `import { machinePrograms } from ${moduleAt('coordinator/programs.ts')}`, `import { machineClock } from ${moduleAt('edge/clock.ts')}`,
      'console.log(JSON.stringify(refuseCoreDumps()))',
      `const programs = machinePrograms({ folders: [${JSON.stringify(folder)}], clock: machineClock })`,
      "console.log((await programs.run({ agent: 'teller', stdin: '', environment: {}, within: 20_000 })).stdout)", 'await programs.close()',
    ].join('\n')], { encoding: 'utf8' })
    assert.match(asked.stdout, /^\[\]\n/, asked.stderr)
    assert.match(asked.stdout, coreLimit)
    assert.match(asked.stdout.trimEnd(), /\n00000000$/)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('while the API server is away a replica lives, is not ready and says why, and ends at once when asked', async () => {
  await withKubeconfig('https://127.0.0.1:9', '', async (file) => {
    const replica = start({ ...settings, KUBECONFIG: file })
    const address = String((await replica.line('replica starts'))['http'])
    assert.is((await ask(address, '/livez')).status, 200)
    assert.is(Number.parseInt(readFileSync(`/proc/${replica.child.pid}/coredump_filter`, 'utf8'), 16), 0, 'a crash writes nothing of its memory')
    assert.match(readFileSync(`/proc/${replica.child.pid}/limits`, 'utf8'), coreLimit)
    const ready = await ask(address, '/readyz')
    assert.is(ready.status, 503)
    assert.ok(ready.text.includes('it waits for the API server'), ready.text)
    replica.child.kill('SIGTERM')
    assert.is(await replica.ended, 0)
  })
})

/** An incident that ended two months ago. */
function longOver(): KubeObject {
  const at = new Date(Date.now() - 60 * 24 * 3_600_000).toISOString()
  const body = incidentBody({ name: 'long-over', nodeName: 'node-1', nodeUid: 'uid', boot: 'boot/1', machine: 'machine', cause: 'silence', policy: { ...defaultPolicy, name: 'usual' } })
  return { ...body as KubeObject, status: Object(statusBody('long-over', '1', 'uid', { ...freshStatus(1), phase: 'Final', outcome: 'Recovered', timeline: [{ at, what: 'closed', detail: '' }] })).status } as KubeObject // it has all that the kind asks
}

test('a replica leads, begins the turns of the audit at their time, deletes history that is old, is measured, and asked to end gives up its lease and its address', async () => {
  const server = createApiServer({ clock: machineClock, chance: Math.random })
  for (const definition of customResourceDefinitions()) server.plant(definition as unknown as KubeObject) // as a person would apply it
  server.plant({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'holdfast-system' } })
  server.plant(longOver())
  const served = await serve(server, { tokens: { 'the-token': admin }, wall: Date.now() })
  try {
    await withKubeconfig(served.url, served.ca, async (file) => {
      const replica = start({ ...settings, HOLDFAST_AUDIT_AT: '* * * * * *', HOLDFAST_PRUNE_AT: '* * * * * *', KUBECONFIG: file })
      const address = String((await replica.line('replica runs'))['http'])
      await replica.line('this replica leads')
      await replica.line('every fence path was audited again')
      await replica.line('history pruned')
      assert.equal(server.peek('nodefences.holdfast.dev').map(({ metadata }) => metadata.name), [])
      const metrics = (await ask(address, '/metrics')).text
      for (const line of ['holdfast_leader 1', 'holdfast_nodes 0', 'holdfast_audit_age_seconds ', 'holdfast_build_info{version=']) assert.ok(metrics.includes(line), line)
      replica.child.kill('SIGTERM')
      replica.child.kill('SIGTERM')
      assert.is(await replica.ended, 0)
      const [lease] = server.peek('leases.coordination.k8s.io').filter((one) => one.metadata.name === 'holdfast-coordinator') as (KubeObject & { spec: { holderIdentity?: string } })[] // a Lease
      assert.is(lease?.spec.holderIdentity ?? '', '')
      const [map] = server.peek('configmaps').filter((one) => one.metadata.name === 'holdfast-authority') as (KubeObject & { data: Record<string, string> })[] // a ConfigMap
      assert.is(map?.data['replicas'], '[]')
      for (const secret of ['the-token', 'PRIVATE KEY']) assert.not.ok(replica.output().includes(secret), secret)
    })
  } finally {
    await served.close()
  }
})

test.run()
