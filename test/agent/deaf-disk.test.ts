// The agent's own process on a node whose disk hangs whoever looks into it, kubelet's folder and its own: a file system whose server is gone, in a mount namespace of the test's.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath, env } from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeAuthority, makeServer } from '../../edge/certificate.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import type { Link } from '../../edge/link.ts'
import { listenTls, replicaName } from '../../edge/tls-link.ts'
import { frameOf, readAgentWord } from '../../core/frame.ts'
import type { AgentWord } from '../../core/beat.ts'
import { deafMount, noDeafMount } from './deaf-mount.ts'

const test = suite('deaf disk')
const patience = 60_000

/** Welcomes whoever says hello, and hears it. */
async function replica() {
  const life = { from: Date.now() - 3_600_000, until: Date.now() + 3_600_000 }
  const authority = { name: 'test', ...makeAuthority({ name: 'test', ...life }) }
  const serving = makeServer(authority, { name: replicaName, names: [replicaName], ...life })
  const heard: AgentWord[] = []
  let link: Link | undefined
  const listener = await listenTls({ clock, host: '127.0.0.1', port: 0, serving }, (one) => {
    link = one
    one.listen({
      frame(frame) {
        const read = readAgentWord(frame)
        if (!('word' in read)) return
        heard.push(read.word)
        if (read.word.say === 'hello') one.send(frameOf({ say: 'welcome', node: 'node-1', replica: 'replica-a', key: 'a key' }))
        if (read.word.say === 'beat') one.send(frameOf({ say: 'permit', count: read.word.count, leads: true, span: 20_000, replicas: [], says: 'permitted' }))
      },
      closed: () => undefined,
    })
  })
  const count = (say: AgentWord['say']): number => heard.filter((word) => word.say === say).length
  return {
    heard, count, authority: authority.certificate, address: listener.address, ask: () => link?.send(frameOf({ say: 'check', pods: [], list: 'a' })), cut: () => link?.close('cut'), close: () => listener.close(),
    async until(what: string, so: () => boolean) {
      for (const limit = clock.now() + patience; !so(); await clock.wait(50)) assert.ok(clock.now() < limit, `${what}: ${JSON.stringify(heard.slice(-5))}`)
    },
  }
}

async function started(...command: readonly string[]): Promise<ChildProcess> {
  const [program = '', ...input] = command
  const child = spawn(program, input, { stdio: ['ignore', 'pipe', 'ignore'] })
  await once(child.stdout, 'data')
  return child
}

const cannot = spawnSync('unshare', ['--mount', 'true']).status === 0 ? noDeafMount() : 'no mount namespace'
if (cannot !== undefined) console.log(`deaf disk: no file system that hangs can be had here: ${cannot}`)
else test('it beats on, says that it cannot tell whether the node is clean, and links itself again as often as it must', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-deaf-'))
  const kubelet = join(folder, 'kubelet')
  mkdirSync(kubelet)
  const holder = await started('unshare', '--mount', '--propagation', 'private', 'sh', '-c', 'echo there; exec sleep 300')
  const enter = ['nsenter', `--mount=/proc/${holder.pid}/ns/mnt`, '--']
  const server = deafMount(enter, kubelet)
  const on = await replica()
  writeFileSync(join(folder, 'ca.crt'), on.authority)
  writeFileSync(join(folder, 'token'), 'the token')
  const [program = '', ...input] = [...enter, execPath, join(import.meta.dirname, '../../agent/main.ts')]
  const agent = spawn(program, input, {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      NODE_COMPILE_CACHE: env['NODE_COMPILE_CACHE'], HOLDFAST_REPLICAS: on.address, HOLDFAST_PROC: '/proc', HOLDFAST_STATE: join(kubelet, 'state'), HOLDFAST_TOKEN_FILE: join(folder, 'token'),
      HOLDFAST_AUTHORITY_FILE: join(folder, 'ca.crt'), HOLDFAST_BIND: '127.0.0.1', HOLDFAST_WHISPER_PORT: '0', HOLDFAST_KUBELET_ROOT: kubelet, HOLDFAST_KUBELET_HEALTH: 'http://127.0.0.1:1/healthz', HOLDFAST_RUN: folder,
      HOLDFAST_LOG_LEVEL: 'error', HOLDFAST_ENTER: 'none',
    },
  })
  try {
    await on.until('it beats', () => on.count('beat') > 2)
    for (let links = 2; links < 5; links += 1) {
      on.ask()
      await clock.wait(1_000)
      on.cut()
      await on.until(`its link number ${links}`, () => on.count('hello') === links)
    }
    const before = on.count('beat')
    on.ask()
    await on.until('a report', () => on.heard.some((word) => word.say === 'clean' && word.list === 'a'))
    const report = on.heard.findLast((word) => word.say === 'clean')
    assert.match(report?.say === 'clean' && report.report.state === 'unknown' ? report.report.reason : JSON.stringify(report), /could not be read within|cannot be read/)
    await on.until('it beats on', () => on.count('beat') > before + 3)
    agent.kill('SIGTERM')
    await on.until('its goodbye', () => on.count('goodbye') === 1)
  } finally {
    server.letGo()
    agent.kill('SIGKILL')
    holder.kill('SIGKILL')
    await on.close()
    rmSync(folder, { recursive: true })
  }
})

test.run()
