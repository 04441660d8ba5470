import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import { suite } from 'uvu'
import * as assert from 'uvu/assert'

import { startControlPlane } from './control-plane.ts'
import type { ControlPlane } from './control-plane.ts'

const test = suite('control-plane')

// One for the tests that only use it, since a start costs some ten seconds. The last that uses it stops it.
let started: ControlPlane | undefined

test('a control plane starts and calls itself ready', async () => {
  started = await startControlPlane()
  assert.is(await kubectl(started, 'admin', ['get', '--raw', '/readyz']), 'ok')
})

test('a namespace can be made, and the controllers fill it', async () => {
  await kubectl(running(), 'admin', ['create', 'namespace', 'harbour'])
  await eventually('its ServiceAccount', () =>
    succeeds(kubectl(running(), 'admin', ['get', 'serviceaccount', 'default', '--namespace=harbour'])))
})

test('a node makes its own Node and not that of another', async () => {
  await kubectl(running(), 'system:node:anchor', ['create', '--filename=-'], node('anchor'))
  const refusal = await refused(kubectl(running(), 'system:node:anchor', ['create', '--filename=-'], node('buoy')))
  assert.match(refusal, 'node "anchor" is not allowed to modify node "buoy"')
})

test('a stopped apiserver is gone, and comes back where it was with what it knew', async () => {
  const { port } = running()
  await running().stopApiServer()
  assert.match(await refused(kubectl(running(), 'admin', ['get', 'node', 'anchor'])), 'refused')
  await running().startApiServer()
  assert.is(running().port, port)
  assert.is(await kubectl(running(), 'admin', ['get', 'node', 'anchor', '--output=name']), 'node/anchor')
  assert.is(await kubectl(running(), 'admin', ['get', 'namespace', 'harbour', '--output=name']), 'namespace/harbour')
})

test('a scheduler that ends by itself is started again', async () => {
  const before = schedulerPid()
  process.kill(before, 'SIGKILL')
  await eventually('another one', async () => schedulerPid() !== before)
  assert.ok(alive(schedulerPid()))
})

test('stopping leaves no process and no file behind', async () => {
  const { dir } = running()
  const pids = running().processes().map(({ pid }) => pid)
  assert.is(pids.length, 4)
  assert.ok(pids.every(alive), 'all run before the stop')
  await running().stop()
  assert.equal(pids.filter(alive), [])
  assert.not(existsSync(dir))
})

test('a program that does not start says why, and nothing of the rest stays', async () => {
  const pids: number[] = []
  const log = (line: string): void => {
    const pid = /pid (\d+)/.exec(line)?.[1]
    if (pid !== undefined) pids.push(Number(pid))
  }
  const refusal = await refused(startControlPlane({ log, flags: { 'kube-apiserver': ['--holystone'] } }))
  assert.match(refusal, 'unknown flag: --holystone')
  assert.is(pids.length, 2)
  assert.equal(pids.filter(alive), [])
})

test('a version that was never built is refused with the command that builds it', async () => {
  assert.match(await refused(startControlPlane({ version: '1.2.3' })), 'build.sh 1.2.3')
})

test('a parent that is killed leaves no process and no file behind', async () => {
  const parent = spawn(process.execPath, ['--input-type=module', '--eval', PARENT], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const [line] = await once(createInterface(parent.stdout), 'line', { signal: AbortSignal.timeout(LIMIT_MS) })
    // Written by PARENT below, so its shape is ours.
    const { pids, dir } = JSON.parse(line) as { pids: number[]; dir: string }
    assert.is(pids.length, 4)
    assert.ok(pids.every(alive), 'all run before the kill')
    parent.kill('SIGKILL')
    await eventually('the end of all its processes', async () => !pids.some(alive))
    await eventually('the end of its directory', async () => !existsSync(dir))
  } finally {
    parent.kill('SIGKILL')
  }
})

const PARENT = `
  import { startControlPlane } from ${JSON.stringify(new URL('./control-plane.ts', import.meta.url))}
  const { processes, dir } = await startControlPlane()
  console.log(JSON.stringify({ dir, pids: processes().map(({ pid }) => pid) }))
`

function running(): ControlPlane {
  if (started === undefined) throw new Error('the control plane did not start, see the first test')
  return started
}

function schedulerPid(): number {
  const scheduler = running().processes().find(({ name }) => name === 'kube-scheduler')
  if (scheduler === undefined) throw new Error('no scheduler runs')
  return scheduler.pid
}

type Who = Parameters<ControlPlane['kubeconfig']>[0]

async function kubectl(plane: ControlPlane, user: Who, args: readonly string[], input = ''): Promise<string> {
  const own = [`--kubeconfig=${plane.kubeconfig(user)}`, `--cache-dir=${join(plane.dir, 'kubectl')}`]
  const answer = promisify(execFile)(plane.kubectl, [...own, ...args], { timeout: LIMIT_MS })
  answer.child.stdin?.end(input)
  return (await answer).stdout.trim()
}

function node(name: string): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name } })
}

async function refused(attempt: Promise<unknown>): Promise<string> {
  const outcome = await attempt.then(() => undefined, (cause: unknown) => cause)
  if (outcome instanceof Error) return outcome.message
  throw new Error('it went through, and should have been refused')
}

function succeeds(attempt: Promise<unknown>): Promise<boolean> {
  return attempt.then(() => true, () => false)
}

// A limit against hanging for ever, not a claim about speed.
const LIMIT_MS = 120_000

async function eventually(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadlineAt = performance.now() + LIMIT_MS
  while (!(await holds())) {
    if (performance.now() > deadlineAt) throw new Error(`waited in vain for ${what}`)
    await sleep(100)
  }
}

// From /proc rather than by signal 0, which also reaches the dead that nobody has reaped: orphans belong to
// process 1, and in a container that one may never look.
function alive(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  } catch {
    // No such file: no such process.
    return false
  }
}

test.run()
