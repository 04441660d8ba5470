// Whispers of the embedded world: real UDP datagrams on loopback, each of which the world's network lets pass or loses first.
import { createSocket, type Socket } from 'node:dgram'
import type { Whispers } from '../edge/link.ts'
import type { Host, Network } from './network.ts'
import type { Process } from './process.ts'

export interface EmbeddedWhispers {
  of(host: Host, process: Process): Whispers
  close(): Promise<void>
}

const loopback = '127.0.0.1'

export function embeddedWhispers(network: Network): EmbeddedWhispers {
  // Who is behind a port: every machine has the one address of the loopback.
  const behind = new Map<number, Host>()
  const sockets = new Set<Socket>()

  return {
    of: (host, process) => ({
      ask: (address, question, span) => process.hold(ask(host, address, Uint8Array.from(question), span)),
      answer: (port, reply) => process.hold(answer(host, process, port, reply)),
    }),
    close: async () => void await Promise.all([...sockets].map(shut)),
  }

  async function ask(from: Host, address: string, question: Uint8Array, span: number): Promise<Uint8Array | undefined> {
    const port = Number(address.slice(address.lastIndexOf(':') + 1))
    const to = behind.get(port)
    if (to === undefined || !passes(from, to)) {
      await network.clock.wait(span)
      return undefined
    }
    const socket = await bound(from, 0)
    try {
      return await new Promise<Uint8Array | undefined>((resolve) => {
        const late = network.clock.after(span, () => resolve(undefined))
        socket.on('message', (message) => {
          late()
          resolve(Uint8Array.from(message))
        })
        socket.send(question, port, loopback)
      })
    } finally {
      await shut(socket)
    }
  }

  async function answer(host: Host, process: Process, port: number, reply: (question: Uint8Array, from: string) => Uint8Array | undefined): Promise<{ port: number; close(): void }> {
    const socket = await bound(host, port)
    const { boot } = host
    socket.on('message', (question, { address, port: asker }) => {
      // A machine that stands still, or booted meanwhile, reads nothing; a late answer would be none.
      if (host.boot !== boot || host.kernel !== 'up' || !process.running()) return
      process.deliver(() => {
        const said = reply(Uint8Array.from(question), address)
        const to = behind.get(asker)
        if (said !== undefined && to !== undefined && passes(host, to)) socket.send(said, asker, address)
      })
    })
    const close = () => void shut(socket)
    process.onEnd(close)
    return { port: socket.address().port, close }
  }

  function passes(from: Host, to: Host): boolean {
    return from.kernel === 'up' && to.kernel === 'up' && network.reach(from, to, 'whisper') === 'open' && !network.chance.yes(network.weather.loss)
  }

  function bound(host: Host, port: number): Promise<Socket> {
    const socket = createSocket('udp4')
    sockets.add(socket)
    return new Promise((resolve, reject) => {
      socket.once('error', (error) => {
        void shut(socket)
        reject(error)
      })
      socket.bind({ address: loopback, port, exclusive: true }, () => {
        socket.removeAllListeners('error')
        socket.on('error', () => undefined) // a datagram that could not be sent is a datagram that was lost
        behind.set(socket.address().port, host)
        resolve(socket)
      })
    })
  }

  function shut(socket: Socket): Promise<void> {
    if (!sockets.delete(socket)) return Promise.resolve()
    return new Promise((resolve) => {
      try {
        behind.delete(socket.address().port)
      } catch {
        // Not bound: it stands behind no port.
      }
      socket.close(() => resolve())
    })
  }
}
