// What a replica gets from the machine under it: each thing is held against what another tool says of the same machine.
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { platform } from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { machineHost, type MachineHost } from '../../coordinator/machine-host.ts'
import { makeAuthority, makeServer } from '../../edge/certificate.ts'
import type { Link } from '../../edge/link.ts'
import { silentLog } from '../../edge/log.ts'
import { replicaName } from '../../edge/tls-link.ts'

const test = suite('machine-host')

const hour = 3_600_000
const authority = { name: 'authority', ...makeAuthority({ name: 'authority', from: Date.now() - hour, until: Date.now() + hour }) }
const serving = () => makeServer(authority, { name: replicaName, names: [replicaName], from: Date.now() - hour, until: Date.now() + hour })
const patient = 20_000

async function onMachine(use: (host: MachineHost, folder: string) => Promise<void>, port = 0): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-replica-host-'))
  const host = machineHost({
    log: silentLog, transport: { request: () => { throw new Error('nothing is asked of an API server here') } } as never, address: '127.0.0.1', port, bind: '127.0.0.1',
    kdumpPort: 0, serving: serving(), authorities: async () => authority.certificate, fenceAgents: [folder],
  })
  try {
    await use(host, folder)
  } finally {
    await host.close()
    rmSync(folder, { recursive: true })
  }
}

function shell(script: string): string {
  const ran = spawnSync('sh', ['-c', script], { encoding: 'utf8' })
  assert.is(ran.status, 0, `${script}: ${ran.stderr}`)
  return ran.stdout.trim()
}

test('its clock counts as the kernel does, and its wall is what date says', async () => {
  await onMachine(async ({ clock }) => {
    assert.ok(Number(shell('date +%s')) * 1_000 <= clock.wall() && clock.wall() < (Number(shell('date +%s')) + 1) * 1_000)
    if (platform !== 'linux') return
    const kernel = () => Number(shell("awk '{ print $1 * 1000 }' /proc/uptime"))
    const [before, first, after] = [clock.now(), kernel(), clock.now()]
    await clock.wait(200)
    const [beforeLast, last, afterLast] = [clock.now(), kernel(), clock.now()]
    const [least, most] = [beforeLast - after, afterLast - before]
    // The other tool counts in hundredths, and is read somewhere between two words of the clock.
    assert.ok(least >= 199 && least - 20 <= last - first && last - first <= most + 20, `${least} ${last - first} ${most}`)
  })
})

test('a secret is as long as was asked for, and never the same', async () => {
  await onMachine(async ({ secret, chance }) => {
    const all = Array.from({ length: 100 }, () => Buffer.from(secret(32)).toString('hex'))
    assert.is(new Set(all).size, 100)
    assert.ok(all.every((one) => one.length === 64))
    assert.is(secret(0).length, 0)
    const chances = Array.from({ length: 100 }, () => chance())
    assert.ok(chances.every((one) => one >= 0 && one < 1) && new Set(chances).size > 90)
  })
})

test('it listens where it says, the kernel shows the port while it does and not after, and frames come through', async () => {
  await onMachine(async (host) => {
    const links: Link[] = []
    const heard: string[] = []
    const { address, close } = await host.listen((link) => {
      links.push(link)
      link.listen({ frame: (frame) => link.send(frame), closed: () => undefined }) // an echo, until the other end goes
    })
    const port = Number(address.slice('127.0.0.1:'.length))
    assert.match(address, /^127\.0\.0\.1:\d+$/)
    const shown = () => shell(`awk '$4 == "0A" { print $2 }' /proc/net/tcp`).split('\n').some((local) => Number.parseInt(local.split(':')[1] ?? '', 16) === port)
    if (platform === 'linux') assert.ok(shown())
    const link = await host.dialer.dial(address, patient)
    await new Promise<void>((resolve) => {
      link.listen({ frame(frame) { heard.push(Buffer.from(frame).toString()); resolve() }, closed: () => undefined }) // closed by us, below
      link.send(Buffer.from('are you there?'))
    })
    assert.equal([heard, links.length], [['are you there?'], 1])
    link.close('enough')
    await close()
    if (platform === 'linux') assert.not(shown())
    assert.ok(await host.dialer.dial(address, patient).then(() => false, (error: unknown) => String(error).length > 0), 'a closed port is refused with a sentence')
  })
})

test('a port that is taken is refused, and the one who has it keeps it', async () => {
  const callers: Socket[] = []
  const other = createServer((socket) => void callers.push(socket))
  await new Promise<void>((resolve) => { other.listen(0, '127.0.0.1', resolve) })
  const { port } = other.address() as AddressInfo // it listens on TCP
  await onMachine(async (host) => {
    assert.match(await host.listen(() => undefined).then(() => 'listens', String), /EADDRINUSE/)
    assert.is(await host.probe('127.0.0.1', port, 300), 'open')
  }, port)
  for (const socket of callers) socket.destroy()
  await new Promise((resolve) => { other.close(resolve) })
})

test('a renewed certificate is what dialled links are shown from then on', async () => {
  const other = { name: 'other', ...makeAuthority({ name: 'other', from: Date.now() - hour, until: Date.now() + hour }) }
  await onMachine(async (host) => {
    const { address, close } = await host.listen((link) => link.listen({ frame: () => undefined, closed: () => undefined })) // only the handshake matters
    const dialled = () => host.dialer.dial(address, patient).then((link) => (link.close('enough'), 'linked'), () => 'refused')
    assert.is(await dialled(), 'linked')
    host.renew(makeServer(other, { name: replicaName, names: [replicaName], from: Date.now() - hour, until: Date.now() + hour }))
    assert.is(await dialled(), 'refused', 'nobody believes that authority')
    host.renew(serving())
    assert.is(await dialled(), 'linked')
    await close()
  })
})

test('a fence program is found in its folder and told on its stdin; one that is not there is an answer, not a fault', async () => {
  await onMachine(async ({ programs }, folder) => {
    writeFileSync(join(folder, 'fence_test'), '#!/bin/sh\ncat >&2\nexit 2\n')
    chmodSync(join(folder, 'fence_test'), 0o755)
    const run = (agent: string) => programs.run({ agent, stdin: 'action=status\n', environment: {}, within: patient })
    const end = await run('fence_test')
    assert.equal([end.exitCode, end.gone, end.stderr], [2, true, 'action=status\n'])
    for (const name of ['fence_none', '../fence_test', '/bin/true']) {
      const { exitCode, refused = '' } = await run(name)
      assert.equal([exitCode, refused.length > 0], [undefined, true], name)
    }
  })
})

test.run()
