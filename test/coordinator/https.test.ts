import http from 'node:http'
import https from 'node:https'
import net, { type AddressInfo } from 'node:net'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createApi, type WatchEvent } from '../../coordinator/api.ts'
import { httpsTransport, type Credentials, type HttpsOptions } from '../../coordinator/https.ts'
import { makeAuthority, makeServer } from '../../edge/certificate.ts'
import { machineClock } from '../../edge/clock.ts'

const test = suite('https')

interface Served { readonly url: string; connections(): number; open(): number; close(): Promise<void> }

async function serve(handle: http.RequestListener, tls?: { cert: string; key: string }): Promise<Served> {
  const server = tls ? https.createServer(tls, handle) : http.createServer(handle)
  const sockets = new Set<net.Socket>()
  let connections = 0
  server.on('connection', (socket) => {
    connections++
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`, // a TCP server's address is always an object
    connections: () => connections,
    open: () => sockets.size,
    close: () => new Promise((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    }),
  }
}

function client(options: Partial<HttpsOptions> & { url: string }) {
  const transport = httpsTransport({ credentials: async () => ({}), ...options })
  return { transport, api: createApi({ transport, clock: machineClock, rate: { perSecond: 10_000, burst: 10_000 } }) }
}

const json = (response: http.ServerResponse, status: number, body: unknown) => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

test('five hundred calls in a row need one or two connections', async () => {
  const server = await serve((_request, response) => json(response, 200, { kind: 'Lease', pad: 'x'.repeat(2000) }))
  const { transport, api } = client({ url: server.url })
  for (let call = 0; call < 500; call++) assert.ok((await api.get('/apis/coordination.k8s.io/v1/leases/x')).ok)
  assert.ok(server.connections() <= 2, `${server.connections()} connections`)
  transport.close()
  await server.close()
})

test('over TLS, too, one connection carries hundreds of calls; another authority, or another name, is not believed', async () => {
  const span = { from: Date.now() - 60_000, until: Date.now() + 3_600_000 }
  const authority = { name: 'test', ...makeAuthority({ name: 'test', ...span }) }
  const { certificate: cert, key } = makeServer(authority, { name: 'api', names: ['127.0.0.1'], ...span })
  const server = await serve((_request, response) => json(response, 200, {}), { cert, key })
  const { transport, api } = client({ url: server.url, ca: authority.certificate })
  for (let call = 0; call < 200; call++) assert.ok((await api.get('/x')).ok)
  assert.ok(server.connections() <= 2, `${server.connections()} connections`)
  transport.close()

  const stranger = client({ url: server.url, ca: makeAuthority({ name: 'stranger', ...span }).certificate })
  const refused = await stranger.api.get('/x')
  assert.is(refused.ok ? '' : refused.error.kind, 'unreachable')
  stranger.transport.close()
  const misnamed = client({ url: server.url, ca: authority.certificate, servername: 'elsewhere.example' })
  const mistaken = await misnamed.api.get('/x')
  assert.is(mistaken.ok ? '' : mistaken.error.kind, 'unreachable')
  misnamed.transport.close()
  await server.close()
})

test('many calls at once are bounded in connections, and all are answered', async () => {
  const server = await serve((_request, response) => json(response, 200, {}))
  const { transport, api } = client({ url: server.url, maxSockets: 4 })
  const answers = await Promise.all(Array.from({ length: 200 }, () => api.get('/x')))
  assert.ok(answers.every(({ ok }) => ok))
  assert.ok(server.connections() <= 4, `${server.connections()} connections`)
  transport.close()
  await server.close()
})

test('watches that fill their pool do not keep a call from going out', async () => {
  const server = await serve((request, response) => {
    if (request.url?.includes('watch=1')) response.writeHead(200).write('{"type":"BOOKMARK","object":{"metadata":{"name":""}}}\n')
    else json(response, 200, {})
  })
  const { transport, api } = client({ url: server.url, maxSockets: 1, maxWatches: 2 })
  const stop = new AbortController()
  const first: WatchEvent[] = []
  const watches = [1, 2, 3].map(async () => {
    for await (const event of api.watch('/x?watch=1', 30_000, stop.signal)) first.push(event)
  })
  assert.ok((await api.get('/x')).ok)
  while (first.length < 2) await machineClock.wait(1)
  assert.ok((await api.get('/x')).ok)
  stop.abort()
  await Promise.all(watches)
  transport.close()
  await server.close()
})

test('a call or a watch on a path that is up and carries nothing ends at its deadline and frees its socket', async () => {
  const sockets = new Set<net.Socket>()
  const silent = net.createServer((socket) => {
    sockets.add(socket.on('close', () => sockets.delete(socket)).on('error', () => undefined).resume())
  })
  await new Promise<void>((resolve) => { silent.listen(0, '127.0.0.1', resolve) })
  const { transport, api } = client({ url: `http://127.0.0.1:${(silent.address() as AddressInfo).port}` }) // a TCP server's address is an object
  const answer = await api.get('/x', { deadline: 50 })
  assert.is(answer.ok ? '' : answer.error.kind, 'late')
  const events: WatchEvent[] = []
  for await (const event of api.watch('/x?watch=1', 50, new AbortController().signal)) events.push(event)
  assert.is(events.length, 1)
  while (sockets.size > 0) await machineClock.wait(1)
  transport.close()
  await new Promise((resolve) => { silent.close(resolve) })
})

test('a body that stalls half way ends at the deadline; the next call is answered', async () => {
  let calls = 0
  const server = await serve((_request, response) => {
    if (calls++ === 0) response.writeHead(200).write('{"half')
    else json(response, 200, {})
  })
  const { transport, api } = client({ url: server.url, maxSockets: 1 })
  const stalled = await api.get('/x', { deadline: 100 })
  assert.is(stalled.ok ? '' : stalled.error.kind, 'late')
  assert.ok((await api.get('/x')).ok)
  transport.close()
  await server.close()
})

test('a call given up while it waits for a connection is never sent', async () => {
  const paths: (string | undefined)[] = []
  let held: http.ServerResponse | undefined
  const server = await serve((request, response) => {
    paths.push(request.url)
    if (paths.length === 1) held = response
    else json(response, 200, {})
  })
  const { transport, api } = client({ url: server.url, maxSockets: 1 })
  const first = api.get('/first')
  while (paths.length === 0) await machineClock.wait(1)
  const queued = await api.create('/queued', {}, { deadline: 30 })
  assert.is(queued.ok ? '' : queued.error.kind, 'late')
  if (held) json(held, 200, {})
  assert.ok((await first).ok)
  assert.ok((await api.get('/third')).ok)
  assert.equal(paths, ['/first', '/third'])
  transport.close()
  await server.close()
})

test('an old token is read anew on 401, once, and the call goes through', async () => {
  const seen: (string | undefined)[] = []
  const server = await serve((request, response) => {
    seen.push(request.headers.authorization)
    json(response, request.headers.authorization === 'Bearer new' ? 200 : 401, {})
  })
  let asked = 0
  const credentials = async (renew: boolean): Promise<Credentials> => {
    asked++
    return { token: renew ? 'new' : 'old' }
  }
  const { transport, api } = client({ url: server.url, credentials })
  assert.ok((await api.get('/x')).ok)
  assert.ok((await api.get('/x')).ok)
  assert.equal(seen, ['Bearer old', 'Bearer new', 'Bearer new'])
  assert.is(asked, 2)
  transport.close()
  await server.close()
})

test('a 401 that a new token does not mend is said, and does not ask for tokens with each call', async () => {
  const server = await serve((_request, response) => json(response, 401, {}))
  let asked = 0
  const { transport, api } = client({ url: server.url, credentials: async () => (asked++, { token: 'same' }) })
  for (let call = 0; call < 5; call++) {
    const answer = await api.get('/x')
    assert.is(answer.ok ? '' : answer.error.kind, 'unauthorized')
  }
  assert.is(asked, 2)
  transport.close()
  await server.close()
})

test('credentials are read again when they are old', async () => {
  const server = await serve((_request, response) => json(response, 200, {}))
  let now = 0
  let asked = 0
  const { transport, api } = client({ url: server.url, clock: { ...machineClock, now: () => now }, credentials: async () => (asked++, { token: 't' }) })
  for (now of [0, 59_000, 61_000, 90_000]) await api.get('/x')
  assert.is(asked, 2)
  transport.close()
  await server.close()
})

test('another client certificate opens new connections, and the old ones are not kept', async () => {
  const server = await serve((_request, response) => json(response, 200, {}))
  let turn = 0
  const { transport, api } = client({ url: server.url, credentialAge: 0, credentials: async () => ({ cert: `${turn}`, key: `${turn}` }) })
  await api.get('/x')
  await api.get('/x')
  assert.is(server.connections(), 1)
  turn = 1
  await api.get('/x')
  assert.is(server.connections(), 2)
  while (server.open() > 1) await machineClock.wait(1)
  transport.close()
  await server.close()
})

test('a server behind a path is asked behind that path', async () => {
  const paths: (string | undefined)[] = []
  const server = await serve((request, response) => {
    paths.push(request.url)
    json(response, 200, {})
  })
  const { transport, api } = client({ url: `${server.url}/k8s/clusters/one/` })
  await api.get('/api/v1/nodes?limit=1')
  assert.equal(paths, ['/k8s/clusters/one/api/v1/nodes?limit=1'])
  transport.close()
  await server.close()
})

test('plain http is refused, but on this machine', () => {
  assert.throws(() => httpsTransport({ url: 'http://10.0.0.1:8080', credentials: async () => ({}) }), 'over https')
  assert.throws(() => httpsTransport({ url: 'ftp://127.0.0.1', credentials: async () => ({}) }), 'over https')
  httpsTransport({ url: 'http://localhost:8001', credentials: async () => ({}) }).close()
  httpsTransport({ url: 'http://[::1]:8001', credentials: async () => ({}) }).close()
})

test('after close nothing goes out and nothing stays open', async () => {
  const server = await serve((_request, response) => json(response, 200, {}))
  const { transport, api } = client({ url: server.url })
  await api.get('/x')
  transport.close()
  const answer = await api.get('/x')
  assert.is(answer.ok ? '' : answer.error.kind, 'unreachable')
  while (server.open() > 0) await machineClock.wait(1)
  await server.close()
})

test.run()
