import net from 'node:net'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { serveHealth, type HealthOptions } from '../../coordinator/health.ts'
import { silentLog } from '../../edge/log.ts'

const test = suite('health')

async function serve(more: Partial<HealthOptions> = {}) {
  const server = await serveHealth({ address: '127.0.0.1:0', live: { loop: () => undefined }, ready: { synced: () => undefined }, metrics: () => 'holdfast_up 1\n', log: silentLog, ...more })
  const ask = async (path: string, request: RequestInit = {}) => {
    const response = await fetch(`http://${server.address}${path}`, { ...request, headers: { connection: 'close', ...request.headers } })
    return { status: response.status, text: await response.text(), type: response.headers.get('content-type') }
  }
  return { server, ask }
}

test('a replica that is well says ok, and lists its checks when asked', async () => {
  const { server, ask } = await serve()
  for (const path of ['/livez', '/readyz', '/healthz']) assert.equal(await ask(path), { status: 200, text: 'ok', type: 'text/plain; charset=utf-8' })
  assert.is((await ask('/readyz?verbose')).text, '[+]synced ok\nreadyz check passed\n')
  await server.close()
})

test('a replica whose API server is away is not ready, says why, and is alive all the same', async () => {
  const { server, ask } = await serve({ ready: { synced: () => undefined, fresh: () => 'nodes: nothing heard for 12 s', odd: () => { throw new Error('cannot tell') } } })
  assert.equal(await ask('/readyz'), { status: 503, text: '[+]synced ok\n[-]fresh failed: nodes: nothing heard for 12 s\n[-]odd failed: cannot tell\nreadyz check failed\n', type: 'text/plain; charset=utf-8' })
  assert.is((await ask('/livez')).status, 200)
  await server.close()
})

test('metrics are served as Prometheus wants them', async () => {
  const { server, ask } = await serve()
  assert.equal(await ask('/metrics'), { status: 200, text: 'holdfast_up 1\n', type: 'text/plain; version=0.0.4; charset=utf-8' })
  await server.close()
})

test('what is not there, not to be written, or too long is refused', async () => {
  const { server, ask } = await serve()
  server.route('/page/', (_request, response) => void response.end('page'))
  assert.is((await ask('/nothing')).status, 404)
  assert.is((await ask('/livez', { method: 'POST', body: 'x' })).status, 405)
  assert.is((await ask('/page/x', { method: 'POST', body: 'x'.repeat(300_000) })).status, 413)
  await server.close()
})

test('further routes can be hung on; the longest wins, and one that fails costs one answer', async () => {
  const { server, ask } = await serve()
  server.route('/', (_request, response) => void response.end('page'))
  server.route('/api/', (_request, response, url) => void response.end(`api ${url.searchParams.get('node')}`))
  server.route('/broken', async () => { throw new Error('cannot') })
  assert.is((await ask('/some/where')).text, 'page')
  assert.is((await ask('/api/nodes?node=n1')).text, 'api n1')
  assert.is((await ask('/broken')).status, 500)
  assert.is((await ask('/livez')).text, 'ok')
  await server.close()
})

test('more connections than the limit are turned away; close ends those that are open', async () => {
  const { server } = await serve()
  const [host, port] = server.address.split(':')
  const ended = { count: 0 }
  const sockets = Array.from({ length: 150 }, () => net.connect({ host: host ?? '', port: Number(port) }).on('error', () => undefined).on('close', () => ended.count++))
  while (ended.count < 150 - 128) await new Promise((resolve) => { setImmediate(resolve) })
  assert.is(sockets.filter((socket) => socket.readyState === 'open').length <= 128, true)
  await server.close()
  while (ended.count < 150) await new Promise((resolve) => { setImmediate(resolve) })
})

test('an address that is taken stops the start', async () => {
  const { server } = await serve()
  try {
    await serve({ address: server.address })
    assert.unreachable()
  } catch (error) {
    assert.match(String(error), 'EADDRINUSE')
  }
  await server.close()
})

test.run()
