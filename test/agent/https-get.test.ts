import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import fc from 'fast-check'
import { httpsGet, readAnswer } from '../../agent/https-get.ts'
import { makeAuthority, makeServer } from '../../edge/certificate.ts'
import { machineClock } from '../../edge/clock.ts'
import { createApiServer, admin } from '../../sim/api-server/server.ts'
import { serve } from '../../sim/api-server/https-server.ts'

const test = suite('https get')

const patient = 20_000
const wall = Date.now()

async function served() {
  const apiServer = createApiServer({ clock: machineClock, chance: Math.random })
  return await serve(apiServer, { tokens: { 'the-token': admin }, wall })
}

test('the API server is asked with the token, and its answer is whole', async () => {
  const server = await served()
  const ask = (token: string, path: string) => httpsGet(machineClock, { host: '127.0.0.1', port: server.port, authority: server.ca, token }, path, patient)
  const answer = await ask('the-token', '/api/v1/namespaces')
  assert.ok('body' in answer && answer.status === 200, JSON.stringify(answer))
  assert.is('body' in answer && JSON.parse(answer.body).kind, 'NamespaceList')
  const refused = await ask('another', '/api/v1/namespaces')
  assert.is('status' in refused && refused.status, 401)
  await server.close()
})

test('a server that another authority vouches for is not asked, nor one that nobody is', async () => {
  const server = await served()
  const stranger = makeAuthority({ name: 'stranger', from: wall - 60_000, until: wall + 60_000 })
  const answer = await httpsGet(machineClock, { host: '127.0.0.1', port: server.port, authority: stranger.certificate, token: 't' }, '/', patient)
  assert.ok('failed' in answer, JSON.stringify(answer))
  await server.close()
  assert.ok('failed' in await httpsGet(machineClock, { host: '127.0.0.1', port: server.port, authority: server.ca, token: 't' }, '/', patient))
})

test('a token or a path that would end the line is not sent', async () => {
  for (const [token, path] of [['a\r\nX: y', '/'], ['', '/'], ['t', '/ HTTP/1.0'], ['t', 'x']] as const) {
    assert.ok('failed' in await httpsGet(machineClock, { host: '127.0.0.1', port: 1, authority: '', token }, path, patient))
  }
})

test('one that does not answer, does not stop, or goes in the middle is given up', async () => {
  const span = { from: wall - 60_000, until: wall + 60_000 }
  const authority = makeAuthority({ name: 'a', ...span })
  const own = makeServer({ ...authority, name: 'a' }, { name: 's', names: ['127.0.0.1'], ...span })
  const mute = createServer()
  mute.listen(0, '127.0.0.1')
  const speaker = createTlsServer({ cert: own.certificate, key: own.key })
  speaker.listen(0, '127.0.0.1')
  await Promise.all([once(mute, 'listening'), once(speaker, 'listening')])
  const ask = (server: { address(): unknown }, within: number) => httpsGet(machineClock, { host: '127.0.0.1', port: (server.address() as AddressInfo).port, authority: authority.certificate, token: 't' }, '/', within)
  assert.match(failed(await ask(mute, 100)), /no answer within 100 ms/)
  const sockets = new Set<Socket>()
  speaker.on('secureConnection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf')
  })
  assert.match(failed(await ask(speaker, patient)), /4 bytes, of 100/)
  for (const socket of sockets) socket.destroy()
  mute.close()
  speaker.close()
})

function failed(answer: Awaited<ReturnType<typeof httpsGet>>): string {
  return 'failed' in answer ? answer.failed : JSON.stringify(answer)
}

test('an answer in chunks, without a head or of another protocol is none, and garbage never is', () => {
  assert.equal(readAnswer(Buffer.from('HTTP/1.0 404 Not Found\r\nX: y\r\n\r\nno')), { status: 404, body: 'no' })
  for (const text of ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 'HTTP/1.1 200 OK\r\n', 'HTTP/2 200\r\n\r\n', '']) assert.ok('failed' in readAnswer(Buffer.from(text)), text)
  fc.assert(fc.property(fc.uint8Array(), (bytes) => { assert.ok('failed' in readAnswer(Buffer.from(bytes))) }))
})

test.run()
