// The gate from the first second of a boot, as the runtime finds it: a shell shim in its plugin folder, started with three variables and a socket
// at file descriptor 3, and asked by replayed frames.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath, kill } from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { looker } from '../../agent/boot-gate.ts'
import { installBootGate, removeBootGate, shimName, shimOf } from '../../agent/boot-gate-install.ts'
import { startOf } from '../../agent/machine.ts'
import { usualIndex } from '../../agent/nri.ts'
import { bytesField } from '../../agent/protobuf.ts'
import type { PodAsked } from '../../core/gate.ts'
import { bundle } from '../../deploy/build.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { podBytes } from '../../sim/runtime-nri.ts'
import { configure, runtimeOf, type Runtime } from '../bench/agent/gate.ts'

const test = suite('boot gate')

const root = mkdtempSync(join(tmpdir(), 'holdfast-boot-gate-'))
const [state, plugins, home] = [join(root, 'state'), join(root, 'plugins'), join(root, 'state', 'boot-gate')] as const
const boot = `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${startOf(readFileSync('/proc/1/stat', 'utf8'))}`
const db: PodAsked = { namespace: 'work', name: 'db-0', uid: 'u1', annotations: { 'kubernetes.io/config.source': 'api' } }
const settle = 60_000

interface Plugin {
  readonly child: ChildProcess
  readonly runtime: Runtime
  readonly ended: Promise<unknown>
}

/** As containerd starts what it finds in its folder, with no PATH. */
async function start(): Promise<Plugin> {
  const child = spawn(join(plugins, shimName), [], { stdio: ['ignore', 'ignore', 'inherit', 'pipe'], env: { NRI_PLUGIN_NAME: 'holdfast', NRI_PLUGIN_IDX: '06', NRI_PLUGIN_SOCKET: '3' } })
  const runtime = runtimeOf(child.stdio[3] as Socket) // 'pipe' beyond the first three is a pair of sockets
  await runtime.registered
  await configure(runtime)
  return { child, runtime, ended: once(child, 'exit') }
}

async function ask({ runtime }: Plugin, pod = db): Promise<string> {
  const reply = await runtime.call('RunPodSandbox', bytesField(1, podBytes(pod)))
  return reply.ok ? 'passes' : reply.message
}

async function becomes(plugin: Plugin, wanted: RegExp): Promise<void> {
  const limit = clock.now() + settle
  let last = ''
  while (!wanted.test(last = await ask(plugin))) {
    if (clock.now() > limit) throw new Error(`still: ${last}`)
    await clock.wait(20)
  }
}

const remember = (gate: 'open' | 'shut', of = boot): void => writeFileSync(join(state, 'gate.json'), JSON.stringify({ boot: of, gate }))
const end = async ({ child, ended }: Plugin): Promise<void> => {
  kill(child.pid ?? 0, 'SIGKILL')
  await ended
}
let marked = 0

test('installed, all that the shim needs is on the host\'s disk, and the shim came last', async () => {
  mkdirSync(plugins)
  const built = await bundle({ from: 'agent/boot-gate.ts', to: 'boot-gate.mjs' }, root)
  assert.ok(!('missing' in built), JSON.stringify(built))
  await installBootGate({ program: join(root, 'boot-gate.mjs'), node: execPath, folder: state, plugins, exemptNamespaces: ['kube-system'] })
  assert.equal(readdirSync(home).toSorted(), ['boot-gate.mjs', 'installed', 'ld.so', 'lib', 'node', 'settings.json'])
  assert.equal(readdirSync(plugins), [shimName])
  assert.is(statSync(join(plugins, shimName)).mode & 0o777, 0o755)
  assert.is(readFileSync(join(plugins, shimName), 'utf8'), shimOf(state))
  marked = statSync(join(home, 'node')).mtimeMs
})

test('a runtime, which asks its plugins in the order of their numbers, asks an agent first', () => {
  assert.ok(shimName.slice(0, 2) > usualIndex)
})

test('installed once more, nothing of it is copied again', async () => {
  await installBootGate({ program: join(root, 'boot-gate.mjs'), node: execPath, folder: state, plugins, exemptNamespaces: ['kube-system', 'cni'] })
  assert.is(statSync(join(home, 'node')).mtimeMs, marked)
  assert.is(readFileSync(join(home, 'settings.json'), 'utf8'), '{"exemptNamespaces":["kube-system","cni"]}')
})

test('where it cannot be installed it says so, and keeps nobody from starting', async () => {
  const failed = spawn(execPath, [join(root, 'boot-gate.mjs'), 'install', join(root, 'elsewhere'), join(root, 'no', 'such', 'folder'), 'kube-system'], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  failed.stderr.on('data', (piece: Buffer) => { said += piece.toString() })
  assert.is((await once(failed, 'close'))[0], 0)
  assert.match(said, /^holdfast: the gate of the boot is not installed: Error: ENOENT/)
})

const refusal = /^holdfast: this node starts nothing yet: its agent has not opened the gate of this boot$/

test('nothing stands on disk of this boot: pods are refused with the reason, but those that must start first', async () => {
  const plugin = await start()
  assert.match(await ask(plugin), refusal)
  const validated = await plugin.runtime.call('ValidateContainerAdjustment', bytesField(1, podBytes(db)))
  assert.ok(validated.ok && Buffer.from(validated.payload).toString().includes('its agent has not opened the gate of this boot'), 'and its containers too')
  for (const pod of [{ ...db, namespace: 'cni' }, { ...db, annotations: { 'kubernetes.io/config.source': 'file' } }, { ...db, annotations: { 'holdfast.dev/tolerate-gate': 'true' } }]) assert.is(await ask(plugin, pod), 'passes')
  await end(plugin)
})

for (const [what, text] of [
  ['an earlier boot\'s word', JSON.stringify({ boot: 'another/1', gate: 'open' })], ['a file that was cut short', '{"boot":"'], ['a word of another kind', JSON.stringify({ boot, gate: 'ajar' })], ['nothing', ''],
] as const) {
  test(`${what} opens nothing`, async () => {
    writeFileSync(join(state, 'gate.json'), text)
    const seen = await (await looker(state, join(home, 'boot-gate.mjs')))()
    assert.is(seen !== 'uninstalled' && seen.gate.open, false)
  })
}

test('a boot that cannot be read is never open', async () => {
  remember('open')
  const seen = await (await looker(state, join(home, 'boot-gate.mjs'), join(root, 'no-proc')))()
  assert.equal(seen === 'uninstalled' || seen.gate, { open: false, reason: 'holdfast: this node starts nothing: which boot of the machine this is cannot be read' })
})

test('the agent\'s own word of this boot opens it, and shuts it again', async () => {
  rmSync(join(state, 'gate.json'))
  const plugin = await start()
  assert.match(await ask(plugin), refusal)
  remember('open')
  await becomes(plugin, /^passes$/)
  remember('shut')
  await becomes(plugin, /its agent has not opened its gate again$/)
  await end(plugin)
})

test('started within a boot whose gate is open, as with its runtime, it lets pods pass at once', async () => {
  remember('open')
  const plugin = await start()
  assert.is(await ask(plugin), 'passes')
  await end(plugin)
})

test('uninstalled while it runs it lets go; and what is left of it at the next boot is a shim that ends well', async () => {
  remember('shut')
  const plugin = await start()
  assert.match(await ask(plugin), /its agent has not opened its gate again$/)
  await removeBootGate(state)
  const [code] = await plugin.ended as [number]
  assert.is(code, 0)
  assert.ok(!existsSync(home))
  const left = spawn(join(plugins, shimName), [], { stdio: ['ignore', 'ignore', 'inherit', 'pipe'], env: {} })
  assert.is((await once(left, 'exit'))[0], 0)
})

test('what was made for this is removed', () => rmSync(root, { recursive: true }))

test.run()
