// Who answers is what counts, not what is said.
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { probePort } from '../../coordinator/probe.ts'
import { makeAuthority } from '../../edge/certificate.ts'
import { machineClock } from '../../edge/clock.ts'

const test = suite('probe')
const probe = (port: number, span = 3_000) => probePort(machineClock, '127.0.0.1', port, span)

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

test('a TLS server answers, whatever its certificate', async () => {
  const { certificate, key } = makeAuthority({ name: 'kubelet', from: Date.now() - 1_000, until: Date.now() + 600_000 })
  const server = createTlsServer({ cert: certificate, key })
  assert.is(await probe(await listening(server)), 'answered')
  server.close()
})

test('any byte is an answer', async () => {
  const server = createServer((socket) => socket.end('go away\n'))
  assert.is(await probe(await listening(server)), 'answered')
  server.close()
})

test('a port nobody listens on refuses: a kernel runs there', async () => {
  const server = createServer()
  const port = await listening(server)
  await new Promise((resolve) => { server.close(resolve) })
  assert.is(await probe(port), 'refused')
})

test('a connection that is accepted and on which nothing is said is open', async () => {
  const held: Socket[] = []
  const server = createServer((socket) => held.push(socket))
  assert.is(await probe(await listening(server), 300), 'open')
  for (const socket of held) socket.destroy()
  server.close()
})

test.run()
