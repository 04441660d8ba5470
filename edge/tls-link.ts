// Links on a machine: TCP streams, their keys from a TLS handshake (edge/link-handshake.ts), their frames sealed
// (edge/link-record.ts). A replica holds five thousand of them, so an open link is a socket, two keys and little else; and
// whoever does not read, does not finish a handshake or sends more than is allowed is closed, never waited for.
import { createServer, connect, type Server, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { Ms } from '../core/model.ts'
import type { Clock } from './clock.ts'
import { beginHandshake, type Handshake, type Keys, type Side } from './link-handshake.ts'
import { handshakeRecord, headSize, readHead } from './link-record.ts'
import type { Link, LinkDialer, LinkEars, LinkListener } from './link.ts'

export interface TlsListenOptions {
  readonly clock: Clock
  readonly host: string
  /** 0: any free one. */
  readonly port: number
  readonly serving: Serving
  readonly mostLinks?: number
}

/** PEM. */
export interface Serving { readonly certificate: string; readonly key: string }

export interface TlsListener extends LinkListener {
  /** For every handshake from now on. Links that are open stay. */
  renew(serving: Serving): void
}

export interface TlsDialOptions {
  readonly clock: Clock
  /** PEM of the authorities that are believed, read anew for each dial: a rotated one takes effect by itself. */
  authorities(): Promise<string>
  /** The name in every replica's certificate; addresses come and go. */
  readonly name?: string
}

export const replicaName = 'holdfast-coordinator'

const handshakeWithin: Ms = 10_000
/** Each costs a millisecond of ours: as many as can be served before the first of them gives up. Others dial again. */
const mostHandshakes = 1_000
const usualMostLinks = 12_000
/** Unsent bytes of one link. The longest list of pods comes to a little less, and is said once in five seconds at most: who
 *  lets more than that lie does not read. */
export const mostUnsent = 1024 * 1024
/** Two of the longest records: one in hand, one half arrived. */
const mostUnheard = 2 * 65_600
/** The kernel asks an idle peer after this long, then each second, ten times. */
const keepAliveAfter: Ms = 15_000
/** For the last words to leave before the socket is torn down. */
const closeWithin: Ms = 2_000
/** Only key agreement by this one curve: the hybrid default doubles what a handshake costs. */
const contextOptions = { minVersion: 'TLSv1.3', ecdhCurve: 'X25519', ciphers: 'TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256' } as const

/** Rejects when the port cannot be had. */
export function listenTls(options: TlsListenOptions, accept: (link: Link) => void): Promise<TlsListener> {
  const { clock } = options
  const sockets = new Set<Socket>()
  let context = servingContext(options.serving)
  let handshakes = 0
  const server = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveAfter }, (socket) => {
    if (handshakes >= mostHandshakes || sockets.size >= (options.mostLinks ?? usualMostLinks)) {
      socket.destroy()
      return
    }
    sockets.add(socket)
    handshakes += 1
    let shaking = true
    const shook = () => {
      if (shaking) handshakes -= 1
      shaking = false
    }
    socket.once('close', () => {
      shook()
      sockets.delete(socket)
    })
    makeLink(clock, socket, { is: 'listen', context }, (link) => {
      shook()
      // A handshake that fails is the dialler's to tell of: a port scanner must not fill our log.
      if (typeof link !== 'string') accept(link)
    })
  })
  return listening(server, options.host, options.port, {
    renew: (serving) => { context = servingContext(serving) },
    end: () => { for (const socket of sockets) socket.destroy() },
  })
}

export function tlsDialer(options: TlsDialOptions): LinkDialer {
  const { clock, name = replicaName } = options
  let known: { readonly authorities: string; readonly context: SecureContext } | undefined

  return {
    async dial(address, span) {
      const authorities = await options.authorities()
      if (known?.authorities !== authorities) known = { authorities, context: createSecureContext({ ...contextOptions, ca: authorities }) }
      const side: Side = { is: 'dial', context: known.context, name }
      const colon = address.lastIndexOf(':')
      const host = address.slice(0, colon).replace(/^\[(.*)\]$/, '$1')
      const socket = connect({ host, port: Number(address.slice(colon + 1)), noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveAfter })
      return await new Promise<Link>((resolve, reject) => {
        const late = clock.after(span, () => {
          reject(new Error(`no link to ${address} within ${Math.round(span)} ms`))
          socket.destroy()
        })
        makeLink(clock, socket, side, (link) => {
          late()
          if (typeof link === 'string') reject(new Error(`no link to ${address}: ${link}`))
          else resolve(link)
        })
      })
    },
  }
}

function servingContext({ certificate, key }: Serving): SecureContext {
  return createSecureContext({ ...contextOptions, cert: certificate, key })
}

function listening(server: Server, host: string, port: number, also: { renew(serving: Serving): void; end(): void }): Promise<TlsListener> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port, backlog: 4_096 }, () => {
      server.removeListener('error', reject)
      server.on('error', () => undefined) // one connection that could not be accepted: its dialler tries again
      const bound = server.address()
      const own = typeof bound === 'object' && bound !== null ? bound.port : port
      resolve({
        address: `${host.includes(':') ? `[${host}]` : host}:${own}`,
        renew: also.renew,
        close: () => new Promise((closed) => {
          server.close(() => closed())
          also.end()
        }),
      })
    })
  })
}

/** `made` gets the link, or why there is none, once. */
function makeLink(clock: Clock, socket: Socket, side: Side, made: (link: Link | string) => void): void {
  const link = new TlsLink(clock, socket, made)
  if (side.is === 'listen') link.shake(side)
  else socket.once('connect', () => link.shake(side))
}

/** One end of one link: closed once, told once, its records opened in the order of their numbers. A class because there are
 *  thousands, and what closures would hold for each is twice as much. */
class TlsLink implements Link {
  remote = ''
  readonly #clock: Clock
  readonly #socket: Socket
  #made: ((link: Link | string) => void) | undefined
  #handshake: Handshake | undefined
  #keys: Keys | undefined
  #ears: LinkEars | undefined
  /** A record that has not wholly arrived, or that nobody can take yet. */
  #rest: Buffer | undefined
  #late: (() => void) | undefined
  #endedBecause: string | undefined

  constructor(clock: Clock, socket: Socket, made: (link: Link | string) => void) {
    this.#clock = clock
    this.#socket = socket
    this.#made = made
    this.#late = clock.after(handshakeWithin, () => this.close('no handshake in time'))
    socket.on('error', (error) => this.close(error.message))
    socket.on('close', () => this.close('closed by the other end'))
    hearPieces(socket, (piece) => this.#take(piece))
  }

  shake(side: Side): void {
    this.#handshake = beginHandshake(side, (bytes) => { this.#socket.write(handshakeRecord(bytes)) }, (end) => {
      if (this.#endedBecause !== undefined) return
      if ('failed' in end) return this.close(end.failed)
      const { remoteAddress = '', remotePort = 0 } = this.#socket
      // A listener for both families sees IPv4 as a kind of IPv6; everyone else writes it as it is.
      const address = remoteAddress.replace(/^::ffff:(?=\d+\.)/, '')
      this.remote = `${address.includes(':') ? `[${address}]` : address}:${remotePort}`
      this.#keys = end.keys
      this.#handshake = undefined
      this.#late?.()
      this.#late = undefined
      this.#tell(this)
    })
  }

  send(frame: Uint8Array, secrecy?: 'public'): void {
    if (this.#endedBecause !== undefined) return
    const record = secrecy === 'public' ? this.#keys?.out.sign(frame) : this.#keys?.out.seal(frame)
    if (record === undefined) return this.close('a frame too long, or keys used up')
    this.#socket.write(record)
    if (this.#socket.writableLength > mostUnsent) this.close('the other end does not read')
  }

  listen(ears: LinkEars): void {
    if (this.#ears !== undefined) throw new Error('a link is listened to once')
    this.#ears = ears
    if (this.#endedBecause !== undefined) return ears.closed(this.#endedBecause)
    if (this.#rest !== undefined) this.#take(noBytes)
  }

  close(reason: string): void {
    if (this.#endedBecause !== undefined) return
    this.#endedBecause = reason
    this.#late?.()
    this.#handshake?.drop()
    this.#rest = undefined
    const socket = this.#socket
    if (socket.destroyed || socket.connecting || this.#keys === undefined) socket.destroy()
    else {
      // Words that were sent before still leave; then the socket goes, whether or not the other end agrees.
      socket.once('close', this.#clock.after(closeWithin, () => socket.destroy()))
      socket.destroySoon()
    }
    this.#tell(reason)
    this.#ears?.closed(reason)
  }

  #tell(link: Link | string): void {
    const made = this.#made
    this.#made = undefined
    made?.(link)
  }

  /** Records as they come, in pieces of any size. What is not whole yet waits, and is never more than one record. */
  #take(piece: Buffer): void {
    const bytes = this.#rest === undefined ? piece : Buffer.concat([this.#rest, piece])
    this.#rest = undefined
    let at = 0
    while (this.#endedBecause === undefined && bytes.length - at >= headSize) {
      const head = readHead(bytes, at)
      if (head === undefined) return this.close('not a record of ours')
      const from = at + headSize
      const end = from + head.size
      if (bytes.length < end) break
      if (head.kind === 'handshake') this.#handshake?.take(Buffer.from(bytes.subarray(from, end)))
      else {
        // The handshake's last word is being weighed, or nobody listens yet.
        if (this.#keys === undefined || this.#ears === undefined) break
        const frame = this.#keys.in.open(head.kind, bytes.subarray(from, end))
        if (frame === undefined) return this.close('a record that does not open')
        this.#ears.frame(frame)
      }
      at = end
    }
    if (this.#endedBecause !== undefined || at === bytes.length) return
    this.#rest = at === 0 ? bytes : bytes.subarray(at)
    if (this.#rest.length > mostUnheard) this.close('more than one record before anybody listens')
  }
}

/** What the socket reads, without the queue that a stream keeps for readers who are late: nobody here is, and it costs more than
 *  all that is done with a beat. The end takes the stream's own way. */
function hearPieces(socket: Socket, take: (piece: Buffer) => void): void {
  socket.push = (piece: Buffer | null) => {
    if (piece === null) return Readable.prototype.push.call(socket, null)
    take(piece)
    return true
  }
  socket.resume()
}

const noBytes = Buffer.alloc(0)
