// Whispers on a machine: one UDP datagram asks, one answers. Nothing is retried here, and whoever does not answer within the
// span has said nothing. An answer may come from another address than the one that was asked: the kernel of a node with several chooses
// the one that it sends from. What tells an answer is the nonce of its question, which nobody can guess who has not seen it; the first
// that brings it back ends the question, and its socket with it. What it is worth, the seal in it tells.
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import type { Ms } from '../core/model.ts'
import type { Clock } from './clock.ts'
import type { Whispers } from './link.ts'

/** The longest whisper is a nonce, a boot and a seal. */
const longest = 1_024
const mostAsking = 64
/** Of datagrams that come to a question and are no answer to it: what sends more means to be in the way. */
const mostStrays = 100

export function machineWhispers(clock: Clock, bind?: string): Whispers {
  let asking = 0
  return {
    async ask(address, question, span, isAnswer) {
      const to = hostAndPort(address)
      if (to === undefined || asking >= mostAsking) return undefined
      asking += 1
      try {
        return await exchange({ clock, to, question, span, isAnswer, bind })
      } finally {
        asking -= 1
      }
    },
    async answer(port, reply) {
      if (bind !== undefined) return await listen(isIPv6(bind) ? 'udp6' : 'udp4', bind, port, reply)
      try {
        return await listen('udp6', bind, port, reply) // one socket for both families
      } catch (error) {
        // A machine without IPv6 refuses the family itself; any other refusal is the same for both.
        if (!(error instanceof Error && 'code' in error && (error.code === 'EAFNOSUPPORT' || error.code === 'EADDRNOTAVAIL'))) throw error
        return await listen('udp4', bind, port, reply)
      }
    },
  }
}

type Reply = Parameters<Whispers['answer']>[1]

function listen(type: 'udp4' | 'udp6', bind: string | undefined, port: number, reply: Reply): ReturnType<Whispers['answer']> {
  return new Promise((resolve, reject) => {
    const socket = createSocket({ type, ipv6Only: false })
    socket.once('error', (error) => {
      socket.close()
      reject(error)
    })
    socket.on('message', (question, from) => {
      const answer = question.length > longest ? undefined : reply(question, `${from.address}:${from.port}`)
      if (answer !== undefined) socket.send(answer, from.port, from.address, () => undefined) // a peer that is gone again is nobody's fault
    })
    socket.bind(port, bind, () => {
      socket.removeAllListeners('error')
      socket.on('error', () => undefined) // an unreachable asker comes back as an error of the socket, which goes on
      resolve({ port: socket.address().port, close: () => socket.close() })
    })
  })
}

interface Exchange {
  readonly clock: Clock
  readonly to: Peer
  readonly question: Uint8Array
  readonly span: Ms
  readonly bind: string | undefined
  isAnswer(answer: Uint8Array): boolean
}

function exchange({ clock, to, question, span, isAnswer, bind }: Exchange): Promise<Uint8Array | undefined> {
  return new Promise((resolve) => {
    const socket: Socket = createSocket(isIPv6(to.host) ? 'udp6' : 'udp4')
    let over = false
    let strays = 0
    const end = (answer: Uint8Array | undefined): void => {
      if (over) return
      over = true
      cancel()
      socket.close()
      resolve(answer)
    }
    const cancel = clock.after(span, () => end(undefined))
    socket.on('error', () => end(undefined)) // refused or unreachable: no answer, like silence
    socket.on('message', (answer: Buffer, from: RemoteInfo) => {
      // Whatever address it leaves from, it leaves from the socket that was asked.
      if (from.port === to.port && answer.length <= longest && isAnswer(answer)) return end(answer)
      strays += 1
      if (strays === mostStrays) end(undefined)
    })
    const send = (): void => socket.send(question, to.port, to.host, (error) => (error === null ? undefined : end(undefined)))
    if (bind === undefined || isIPv6(bind) !== isIPv6(to.host)) send()
    else socket.bind(0, bind, send)
  })
}

interface Peer {
  readonly host: string
  readonly port: number
}

function hostAndPort(address: string): Peer | undefined {
  const at = address.lastIndexOf(':')
  const [host, port] = [address.slice(0, at).replace(/^\[(.*)\]$/, '$1'), Number(address.slice(at + 1))]
  return at > 0 && Number.isInteger(port) && port > 0 && port < 65_536 ? { host, port } : undefined
}
