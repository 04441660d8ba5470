// Who answers is what counts, not what is said.
import { createServer, type Server, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { createServer as createTlsServer } from 'node:tls'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { probeAddress, probePort } from '../../coordinator/probe.ts'
import { makeAuthority } from '../../edge/certificate.ts'
import { machineClock } from '../../edge/clock.ts'

const test = suite('probe')
const probe = (port: number, span = 3_000, host = '127.0.0.1') => probePort(machineClock, host, port, span)

async function listening(server: Server, host = '127.0.0.1'): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.on('error', reject)
    server.listen(0, host, resolve)
  })
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

test('a machine is asked over IPv6 as over IPv4', async () => {
  if (!Object.values(networkInterfaces()).flat().some((one) => one?.address === '::1')) return // a machine without IPv6 has nothing to show
  const server = createServer((socket) => socket.end('go away\n'))
  assert.is(await probe(await listening(server, '::1'), 3_000, probeAddress([{ type: 'InternalIP', address: '::1' }])), 'answered')
  server.close()
})

const offers: [string, [type: string, address: string][], string][] = [
  ['its internal address', [['Hostname', 'node-1'], ['ExternalIP', '203.0.113.7'], ['InternalIP', '10.0.0.7']], '10.0.0.7'],
  ['the first of two of a kind', [['InternalIP', '2001:db8::7'], ['InternalIP', '10.0.0.7']], '2001:db8::7'],
  ['its external one where there is no other', [['Hostname', 'node-1'], ['ExternalIP', '203.0.113.7']], '203.0.113.7'],
  ['the external one rather than an internal that is none', [['InternalIP', 'node-1.internal'], ['ExternalIP', '203.0.113.7']], '203.0.113.7'],
  ['a host name that is an address', [['Hostname', '10.0.0.7']], '10.0.0.7'],
  ['nothing by a name', [['Hostname', 'node-1'], ['InternalDNS', 'node-1.internal'], ['ExternalDNS', 'node-1.example.org']], ''],
  ['nothing by an address of an unknown kind', [['CarrierPigeon', '10.0.0.7']], ''],
  ['nothing where nothing is offered', [], ''],
]
for (const [what, offered, asked] of offers) {
  test(`a Node is asked at ${what}`, () => {
    assert.is(probeAddress(offered.map(([type, address]) => ({ type, address }))), asked)
  })
}

test.run()
