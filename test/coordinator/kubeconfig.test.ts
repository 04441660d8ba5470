import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { stringify } from 'yaml'
import { createApi } from '../../coordinator/api.ts'
import { clusterTransport } from '../../coordinator/kubeconfig.ts'
import { machineClock } from '../../edge/clock.ts'

const test = suite('kubeconfig')

async function inFolder(run: (write: (content: object) => Promise<string>) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-kubeconfig-'))
  try {
    await run(async (content) => {
      const file = join(folder, 'config')
      await writeFile(file, stringify(content))
      return file
    })
  } finally {
    await rm(folder, { recursive: true })
  }
}

function config(server: string, user: object, more: object = {}) {
  return {
    apiVersion: 'v1', kind: 'Config', 'current-context': 'here',
    clusters: [{ name: 'here', cluster: { server, ...more } }],
    users: [{ name: 'me', user }],
    contexts: [{ name: 'here', context: { cluster: 'here', user: 'me', namespace: 'holdfast-system' } }],
  }
}

test('server, namespace and who we are come from the kubeconfig, and a token that changed there is found on 401', async () => {
  const seen: (string | undefined)[] = []
  const server = http.createServer((request, response) => {
    seen.push(request.headers.authorization)
    response.writeHead(request.headers.authorization === 'Bearer first' && seen.length > 1 ? 401 : 200).end('{}')
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}` // a TCP server's address is always an object
  await inFolder(async (write) => {
    const file = await write(config(url, { token: 'first' }))
    const transport = await clusterTransport(file)
    assert.equal([transport.server, transport.namespace], [url, 'holdfast-system'])
    const api = createApi({ transport, clock: machineClock })
    assert.ok((await api.get('/version')).ok)
    await write(config(url, { token: 'second' }))
    assert.ok((await api.get('/version')).ok)
    assert.equal(seen, ['Bearer first', 'Bearer first', 'Bearer second'])
    transport.close()

    const basic = await clusterTransport(await write(config(url, { username: 'me', password: 'secret' })))
    assert.ok((await createApi({ transport: basic, clock: machineClock }).get('/version')).ok)
    assert.is(seen.at(-1), `Basic ${Buffer.from('me:secret').toString('base64')}`)
    basic.close()
  })
  await new Promise((resolve) => { server.close(resolve) })
})

async function refusal(content: object): Promise<string> {
  let said = ''
  await inFolder(async (write) => {
    const file = await write(content)
    await clusterTransport(file).then((transport) => transport.close(), (error: unknown) => { said = String(error) })
  })
  return said
}

test('a kubeconfig that cannot work is refused at the start, in a sentence', async () => {
  assert.match(await refusal({ ...config('https://127.0.0.1:6443', {}), 'current-context': 'nowhere' }), '"nowhere" names no cluster')
  assert.match(await refusal(config('https://127.0.0.1:6443', {}, { 'proxy-url': 'http://proxy:3128' })), 'through a proxy (http://proxy:3128)')
  assert.match(await refusal(config('http://10.0.0.1:8080', {})), 'over https')
  await clusterTransport('/nowhere/config').then(() => assert.unreachable(), (error: unknown) => assert.match(String(error), 'cannot be read'))
})

test.run()
