import { spawnSync } from 'node:child_process'
import { mkdtempSync, mkdirSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { createServer as createHttpServer } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { platform } from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { machineHost } from '../../agent/machine-host.ts'
import { readMachine } from '../../agent/machine.ts'
import { readEnvironment } from '../../agent/settings.ts'
import { readMounts } from '../../core/mounts.ts'
import { silentLog } from '../../edge/log.ts'

const test = suite('machine-host')

function host(variables: Readonly<Record<string, string>> = {}, ...names: [] | [() => Promise<readonly string[]>]) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-host-'))
  const read = readEnvironment({
    HOLDFAST_REPLICAS: '127.0.0.1:7443', HOLDFAST_PROC: join(folder, 'proc'), HOLDFAST_STATE: join(folder, 'deep', 'state'), HOLDFAST_AUTHORITY_FILE: join(folder, 'ca.crt'),
    HOLDFAST_TOKEN_FILE: join(folder, 'token'), HOLDFAST_KUBELET_ROOT: folder, ...variables,
  })
  if (!read.ok) throw new Error(read.faults.join())
  return { folder, host: machineHost(read.settings, silentLog, ...names), end: () => rmSync(folder, { recursive: true }) }
}

test('what is remembered is read back whole, and nothing half written stays', async () => {
  const one = host()
  assert.is(await one.host.disk.load('x.json'), undefined)
  await one.host.disk.save('x.json', 'first')
  await one.host.disk.save('x.json', 'second')
  assert.is(await one.host.disk.load('x.json'), 'second')
  assert.equal(readdirSync(join(one.folder, 'deep', 'state')), ['x.json'])
  one.end()
})

test('a text is on the disk before it takes its name, and its name is before it counts as saved: a power cut leaves the old one or the new one', async () => {
  const one = host()
  await one.host.disk.save('x.json', 'first')
  const state = realpathSync(join(one.folder, 'deep', 'state'))
  const opened = await open(state)
  const handles = Object.getPrototypeOf(opened) as { sync(this: { readonly fd: number }): Promise<void> } // what a file opened by fs/promises is
  await opened.close()
  const sync = handles.sync
  const synced: [string, string][] = []
  handles.sync = async function () {
    await sync.call(this)
    synced.push([relative(state, readlinkSync(`/proc/self/fd/${this.fd}`)), readFileSync(join(state, 'x.json'), 'utf8')])
  }
  await one.host.disk.save('x.json', 'second').finally(() => { handles.sync = sync })
  assert.equal(synced, [['x.json.new', 'first'], ['', 'second']])
  one.end()
})

test('of what is saved at once the last word stays, whole', async () => {
  const one = host()
  const texts = Array.from({ length: 20 }, (_, index) => String(index).repeat(1_000))
  await Promise.all(texts.map((text) => one.host.disk.save('x.json', text)))
  assert.is(await one.host.disk.load('x.json'), texts.at(-1))
  assert.equal(readdirSync(join(one.folder, 'deep', 'state')), ['x.json'])
  one.end()
})

/** The mount tables of a process of the host's. */
function writeTables(proc: string): void {
  for (const process of ['1', 'self']) {
    mkdirSync(join(proc, process), { recursive: true })
    writeFileSync(join(proc, process, 'mountinfo'), '22 1 8:1 / / rw - ext4 /dev/sda1 rw\n')
  }
}

test('files and folders that are not there are undefined, not an error', async () => {
  const one = host()
  assert.is(await one.host.read('boot-id'), undefined)
  assert.is(await one.host.podFolders(), undefined)
  mkdirSync(join(one.folder, 'pods', 'uid-1'), { recursive: true })
  mkdirSync(join(one.folder, 'proc', '1'), { recursive: true })
  writeFileSync(join(one.folder, 'proc', '1', 'mountinfo'), 'mounts')
  assert.equal(await one.host.podFolders(), ['uid-1'])
  assert.is(await one.host.read('mounts'), 'mounts')
  one.end()
})

test('replicas come from the name and from what is published beside the authority, whatever is written there', async () => {
  const one = host()
  assert.equal(await one.host.resolveReplicas(), ['127.0.0.1:7443'])
  writeFileSync(join(one.folder, 'replicas'), JSON.stringify([{ address: '10.0.0.1:7443' }, { address: 5 }, 'x', null]))
  assert.equal(await one.host.resolveReplicas(), ['127.0.0.1:7443', '10.0.0.1:7443'])
  for (const text of ['{', '{}', '5', '']) {
    writeFileSync(join(one.folder, 'replicas'), text)
    assert.equal(await one.host.resolveReplicas(), ['127.0.0.1:7443'])
  }
  one.end()
})

test('a name server that never answers does not hide what is published', async () => {
  const one = host({}, () => new Promise(() => undefined))
  writeFileSync(join(one.folder, 'replicas'), JSON.stringify([{ address: '10.0.0.1:7443' }]))
  assert.equal(await one.host.resolveReplicas(), ['10.0.0.1:7443'])
  one.end()
})

test('the first runtime that is there is asked, and where none is the answer says where it was looked for', async () => {
  const one = host({ HOLDFAST_RUN: '/nowhere' })
  assert.equal(await one.host.containers(1_000), { failed: 'none of /nowhere/containerd/containerd.sock, /nowhere/k3s/containerd/containerd.sock, /nowhere/crio/crio.sock is there' })
  mkdirSync(join(one.folder, 'k3s', 'containerd'), { recursive: true })
  const server = createServer((socket) => {
    socket.on('error', () => undefined) // it hangs up on us
    socket.resume().end()
  })
  server.listen(join(one.folder, 'k3s', 'containerd', 'containerd.sock'))
  await once(server, 'listening')
  const other = host({ HOLDFAST_RUN: one.folder })
  const told = await other.host.containers(20_000)
  assert.match('failed' in told ? told.failed : '', /the connection ended/)
  server.close()
  other.end()
  one.end()
})

test('a stream to a socket carries bytes both ways, and tells when the other end goes', async () => {
  const one = host({ HOLDFAST_NRI_SOCKET: '/nowhere/nri.sock' })
  assert.match(await one.host.connectNri(1_000).then(() => '', String), /\/nowhere\/nri.sock: .*ENOENT/)
  const path = join(one.folder, 'nri.sock')
  const server = createServer((socket) => socket.on('data', (bytes) => socket.end(bytes)))
  server.listen(path)
  await once(server, 'listening')
  const other = host({ HOLDFAST_NRI_SOCKET: path })
  const stream = await other.host.connectNri(20_000)
  const heard: number[] = []
  const ended = new Promise<string>((resolve) => stream.listen({ bytes: (bytes) => heard.push(...bytes), closed: resolve }))
  stream.send(Uint8Array.of(1, 2, 3))
  assert.is(await ended, 'the other end closed it')
  assert.equal(heard, [1, 2, 3])
  stream.send(Uint8Array.of(4))
  stream.close()
  server.close()
  other.end()
  one.end()
})

test('a staged volume is read beside its mount, and never in it', async () => {
  const one = host()
  writeTables(join(one.folder, 'proc'))
  const staging = join(one.folder, 'plugins', 'kubernetes.io', 'csi', 'disk.example', 'ff')
  mkdirSync(join(staging, 'globalmount'), { recursive: true })
  assert.is(await one.host.csiVolume(join(staging, 'globalmount')), undefined)
  writeFileSync(join(staging, 'vol_data.json'), '{"driverName":"disk.example"}')
  writeFileSync(join(staging, 'globalmount', 'vol_data.json'), 'of the volume itself')
  assert.is(await one.host.csiVolume(join(staging, 'globalmount')), '{"driverName":"disk.example"}')
  assert.is(await one.host.csiVolume(join(staging, 'globalmount', 'below')), undefined)
  one.end()
})

test('kubelet is ok when it says 200, ill when it says anything else or nothing, unknown when nobody listens', async () => {
  let answer: number | undefined = 200
  const server = createHttpServer((_, response) => { if (answer !== undefined) response.writeHead(answer).end('ok') })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // it listens on TCP
  const one = host({ HOLDFAST_KUBELET_HEALTH: `http://127.0.0.1:${port}/healthz` })
  const patient = 20_000
  assert.is(await one.host.kubeletHealth(patient), 'ok')
  answer = 500
  assert.is(await one.host.kubeletHealth(patient), 'ill')
  answer = undefined
  assert.is(await one.host.kubeletHealth(100), 'ill')
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
  assert.is(await one.host.kubeletHealth(patient), 'unknown')
  one.end()
})

test('storage is reached where its portal lets us in, or its path is mounted and answers; a folder that is not mounted is none', async () => {
  const server = createServer((socket) => socket.destroy())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const portal = `tcp://127.0.0.1:${(server.address() as AddressInfo).port}` // it listens on TCP
  const one = host({ HOLDFAST_ENTER: 'none' })
  const patient = 20_000
  assert.is(await one.host.reachStorage(portal, patient), 'reached')
  server.close()
  await once(server, 'close')
  assert.is(await one.host.reachStorage(portal, patient), 'unreached')
  assert.is(await one.host.reachStorage(one.folder, patient), 'unknown', 'there is no mount table')
  mkdirSync(join(one.folder, 'proc', '1'), { recursive: true })
  writeFileSync(join(one.folder, 'proc', '1', 'mountinfo'), `22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 8:2 / ${one.folder} rw - ext4 /dev/sdb rw\n`)
  assert.equal(await Promise.all([one.folder, join(one.folder, 'proc')].map((path) => one.host.reachStorage(path, patient))), ['reached', 'unreached'])
  one.end()
})

test('it tells where kubelet and the runtime are found, as the host calls the places, and of nothing that is not there', async () => {
  const bare = host()
  assert.equal(await bare.host.places(), { kubelet: '', runtime: '', gate: '' })
  for (const name of ['pods', 'k3s/containerd', 'nri']) mkdirSync(join(bare.folder, name), { recursive: true })
  for (const name of ['k3s/containerd/containerd.sock', 'nri/nri.sock']) writeFileSync(join(bare.folder, name), '')
  writeTables(join(bare.folder, 'proc'))
  const there = host({ HOLDFAST_PROC: join(bare.folder, 'proc'), HOLDFAST_RUN: bare.folder, HOLDFAST_KUBELET_ROOT: bare.folder })
  assert.equal(await there.host.places(), { kubelet: bare.folder, runtime: join(bare.folder, 'k3s/containerd/containerd.sock'), gate: join(bare.folder, 'nri/nri.sock') })
  for (const each of [bare, there]) each.end()
})

test('a runtime that is not there is unknown, and one that does not answer is ill', async () => {
  const one = host({ HOLDFAST_RUNTIME_SOCKET: '/nowhere/containerd.sock' })
  assert.is(await one.host.runtimeHealth(100), 'unknown')
  one.end()
  const other = host()
  const path = join(other.folder, 'cri.sock')
  const server = createServer(() => undefined)
  server.listen(path)
  await once(server, 'listening')
  const deaf = host({ HOLDFAST_RUNTIME_SOCKET: path })
  assert.is(await deaf.host.runtimeHealth(100), 'ill')
  server.close()
  for (const each of [deaf, other]) each.end()
})

test('what speaks another language on kubelet\'s port is ill', async () => {
  for (const speech of ['\n', 'SSH-2.0-x\r\n', 'x'.repeat(5_000), '']) {
    const server = createServer((socket) => {
      socket.on('error', () => undefined) // it hangs up on us
      socket.end(speech)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const one = host({ HOLDFAST_KUBELET_HEALTH: `http://127.0.0.1:${(server.address() as AddressInfo).port}/healthz` }) // it listens on TCP
    assert.is(await one.host.kubeletHealth(20_000), 'ill')
    server.close()
    one.end()
  }
})

/** What a shell's own tools read of this very machine: the other source that the host is held to. */
function shell(script: string): string {
  const ran = spawnSync('sh', ['-c', script], { encoding: 'utf8' })
  assert.is(ran.status, 0, `${script}: ${ran.stderr}`)
  return ran.stdout.trim()
}

/** In ticks, the field that a program with spaces in its name would move. */
const startOfPid1 = () => shell("sed 's/^.*) //' /proc/1/stat | awk '{ print $20 }'")
/** In ticks: since the kernel booted, less the start of pid 1. A product that awk itself prints has six figures, too few after three hours. */
const ran = () => Number(shell("awk '{ printf \"%.0f\", $1 * 100 }' /proc/uptime")) - Number(startOfPid1())
const mountsTold = () => shell("awk '{ print $3, $5 }' /proc/1/mountinfo")

/** The kernel's files are Linux's. Elsewhere there is nothing to compare. */
const linux = platform === 'linux'
const here = { HOLDFAST_PROC: '/proc' }

test('the boot of this machine is what other tools read of it', async () => {
  if (!linux) return
  const one = host(here)
  const machine = await readMachine(one.host)
  assert.is(machine?.boot, `${shell('cat /proc/sys/kernel/random/boot_id')}/${startOfPid1()}`)
  assert.is((await readMachine(one.host))?.boot, machine?.boot, 'it stays the same')
  one.end()
})

test('its uptime is that of pid 1, between one reading of another tool and the next', async () => {
  if (!linux) return
  const one = host(here)
  const before = ran()
  const machine = await readMachine(one.host)
  const uptime = machine?.uptime(one.host.clock.now()) ?? Number.NaN
  const after = ran()
  assert.ok(before * 10 <= uptime + 10 && uptime <= after * 10 + 10, `${before * 10} ${uptime} ${after * 10}`)
  one.end()
})

test('the mount table is pid 1\'s, line for line, and every line of it can be read', async () => {
  if (!linux) return
  const one = host(here)
  // Others may mount meanwhile: what is compared stood still while it was read.
  let [before, text, after] = ['', '', '.']
  for (let tries = 0; before !== after && tries < 20; tries += 1) [before, text, after] = [mountsTold(), await one.host.read('mounts') ?? '', mountsTold()]
  const read = readMounts(text)
  if ('fault' in read) return assert.unreachable(read.fault)
  // The tool shows what the kernel wrote; the product reads what it means.
  const meant = before.split('\n').map((line) => line.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8))))
  assert.equal(read.mounts.map(({ device, path }) => `${device} ${path}`), meant)
  one.end()
})

test('the machine\'s own id is what stands in its file, and nothing where it has none', async () => {
  if (!linux) return
  const file = '/sys/class/dmi/id/product_uuid'
  const one = host({ ...here, HOLDFAST_MACHINE_FILE: file })
  assert.is((await readMachine(one.host))?.id, shell(`cat ${file} 2>/dev/null || true`))
  writeFileSync(join(one.folder, 'uuid'), '4C4C4544-0042\n')
  const other = host({ ...here, HOLDFAST_MACHINE_FILE: join(one.folder, 'uuid') })
  assert.is((await readMachine(other.host))?.id, '4C4C4544-0042')
  one.end()
  other.end()
})

test('the pod folders are those that ls finds, hidden ones too', async () => {
  const one = host()
  for (const name of ['uid-1', '.hidden', 'with space']) mkdirSync(join(one.folder, 'pods', name), { recursive: true })
  assert.equal((await one.host.podFolders())?.toSorted(), shell(`ls -A '${join(one.folder, 'pods')}'`).split('\n').toSorted())
  one.end()
})

test('a machine whose boot cannot be read, wholly or in part, is none', async () => {
  const one = host()
  const proc = join(one.folder, 'proc')
  const bootFile = join(proc, 'sys', 'kernel', 'random', 'boot_id')
  const statFile = join(proc, '1', 'stat')
  mkdirSync(dirname(bootFile), { recursive: true })
  mkdirSync(dirname(statFile), { recursive: true })
  const good = ['c0ffee00-0000-4000-8000-000000000000\n', '1 (init) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9'] as const
  const cases: [string, string | undefined, string | undefined][] = [
    ['no boot id', undefined, good[1]], ['an empty boot id', '', good[1]], ['a boot id that is none', 'yesterday\n', good[1]],
    ['no stat', good[0], undefined], ['a stat cut short', good[0], '1 (init) S 0 1'], ['a stat without a start', good[0], good[1].replace('4711', 'x')],
  ]
  for (const [what, boot, stat] of cases) {
    for (const [file, text] of [[bootFile, boot], [statFile, stat]] as const) {
      if (text === undefined) rmSync(file, { force: true })
      else writeFileSync(file, text)
    }
    assert.is(await readMachine(one.host), undefined, what)
  }
  writeFileSync(bootFile, good[0])
  writeFileSync(statFile, good[1])
  assert.is((await readMachine(one.host))?.boot, 'c0ffee00-0000-4000-8000-000000000000/4711')
  rmSync(statFile)
  mkdirSync(statFile)
  assert.is(await readMachine(one.host), undefined, 'a folder where a file should be')
  one.end()
})

test.run()
