// The kubelet ports of the embedded world: a real TLS server on loopback for each machine, and a prober that is the product's
// own. A real socket of this process could never be silent, only open or refused; so the world's network says first whether a
// packet gets there and what the machine's kernel does with it, and where it is accepted, the real port is asked.
import { createServer as createPlain, type AddressInfo, type Server, type Socket } from 'node:net'
import { createServer as createTls } from 'node:tls'
import { probePort } from '../coordinator/probe.ts'
import type { Ms, ProbeWord } from '../core/model.ts'
import { knock, type Host, type Network } from './network.ts'
import { selfSigned } from './redfish-certificate.ts'

export interface EmbeddedDoors {
  probe(from: Host, address: string, port: number, span: Ms): Promise<ProbeWord>
  close(): Promise<void>
}

const loopback = '127.0.0.1'

/** `machines` are the hosts whose kubelet ports are to be had. */
export async function openDoors(network: Network, machines: readonly Host[]): Promise<EmbeddedDoors> {
  const sockets = new Set<Socket>()
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined) // a prober that went away
    socket.on('close', () => sockets.delete(socket))
  }
  const doors = new Map<Host, { readonly server: Server; readonly port: number }>()
  for (const machine of machines) {
    const { key, certificate } = selfSigned(machine.name, loopback)
    const server = createTls({ key, cert: certificate }, (socket) => socket.on('error', () => undefined)) // likewise
    doors.set(machine, await listening(server))
  }
  // Where userspace is stuck a kernel accepts, and nobody ever reads.
  const mute = await listening(createPlain())
  for (const { server } of [...doors.values(), mute]) {
    server.on('connection', keep)
    server.on('tlsClientError', () => undefined) // likewise
  }

  return {
    probe: (from, address, port, span) => new Promise((resolve) => {
      let over = false
      const until = network.clock.now() + span
      const late = network.clock.after(span, () => end('silent'))
      const end = (word: ProbeWord) => {
        over = true
        late()
        resolve(word)
      }
      knock(network, from, address, port, 'probe', () => over, (word, to) => {
        const door = to.kernel === 'stuck' ? mute : doors.get(to)
        if (word === 'refused' || door === undefined) return end('refused')
        over = true
        late()
        void probePort(network.clock, loopback, door.port, Math.max(1, until - network.clock.now())).then(resolve)
      })
    }),
    async close() {
      for (const socket of sockets) socket.destroy()
      await Promise.all([...doors.values(), mute].map(({ server }) => new Promise((closed) => { server.close(closed) })))
    },
  }
}

function listening(server: Server): Promise<{ server: Server; port: number }> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, loopback, () => {
      server.off('error', reject)
      server.on('error', () => undefined) // one connection that could not be accepted is asked again
      resolve({ server, port: (server.address() as AddressInfo).port }) // a TCP server's address is always an object
    })
  })
}
