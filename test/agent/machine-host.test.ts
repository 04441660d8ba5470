import { mkdtempSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { createServer as createHttpServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { machineHost } from '../../agent/machine-host.ts'
import { readEnvironment } from '../../agent/settings.ts'
import { silentLog } from '../../edge/log.ts'

const test = suite('machine-host')

function host(variables: Readonly<Record<string, string>> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-host-'))
  const read = readEnvironment({
    HOLDFAST_REPLICAS: '127.0.0.1:7443', HOLDFAST_PROC: join(folder, 'proc'), HOLDFAST_STATE: join(folder, 'deep', 'state'), HOLDFAST_AUTHORITY_FILE: join(folder, 'ca.crt'),
    HOLDFAST_TOKEN_FILE: join(folder, 'token'), HOLDFAST_KUBELET_ROOT: folder, ...variables,
  })
  if (!read.ok) throw new Error(read.faults.join())
  return { folder, host: machineHost(read.settings, silentLog), end: () => rmSync(folder, { recursive: true }) }
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

test.run()
