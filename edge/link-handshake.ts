// How two ends of a link come to their keys: a TLS 1.3 handshake that proves the replica by its certificate, whose bytes
// travel in handshake records; then both take keying material from it (RFC 8446 §7.5) and TLS is let go.
import { Duplex } from 'node:stream'
import { connect, TLSSocket, type SecureContext } from 'node:tls'
import { Direction, directionSize } from './link-record.ts'

export interface Keys { readonly out: Direction; readonly in: Direction }

export type HandshakeEnd = { readonly keys: Keys } | { readonly failed: string }

export interface Handshake {
  /** What the other end's handshake records hold. */
  take(bytes: Uint8Array): void
  /** Ends it in silence. */
  drop(): void
}

/** `listen`: our certificate and key. `dial`: the authorities we believe, and the name the replica's certificate must bear. */
export type Side =
  | { readonly is: 'listen'; readonly context: SecureContext }
  | { readonly is: 'dial'; readonly context: SecureContext; readonly name: string }

const label = 'EXPORTER-holdfast-link-1'

/** `send` gets what goes into handshake records; `done` is called once, unless it was dropped before. */
export function beginHandshake(side: Side, send: (bytes: Buffer) => void, done: (end: HandshakeEnd) => void): Handshake {
  let over = false
  const wire = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, next) {
      if (!over) send(chunk)
      next()
    },
  })
  const tls = side.is === 'listen'
    ? new TLSSocket(wire, { isServer: true, secureContext: side.context })
    : connect({ socket: wire, secureContext: side.context, servername: side.name, rejectUnauthorized: true, minVersion: 'TLSv1.3' })

  const end = (ended: HandshakeEnd) => {
    if (over) return
    drop()
    done(ended)
  }
  if (side.is === 'listen') tls.once('secure', () => end(keysOf(tls, side.is)))
  else {
    tls.once('secureConnect', () => {
      const shaken = keysOf(tls, side.is)
      // Our handshake's last word may still be on its way out, and no sealed frame may overtake it: a byte that nobody reads
      // is behind it, and its callback says that both have left.
      tls.write('\0', () => end(shaken))
    })
  }
  tls.on('error', (error) => end({ failed: error.message }))
  tls.on('_tlsError', (error: Error) => end({ failed: error.message })) // how a listening side that is no tls.Server is told
  tls.once('close', () => end({ failed: 'the handshake was broken off' }))
  return { take: (bytes) => { if (!over) wire.push(bytes) }, drop }

  function drop(): void {
    over = true
    tls.destroy()
    wire.destroy()
  }
}

function keysOf(tls: TLSSocket, side: Side['is']): HandshakeEnd {
  if (tls.getProtocol() !== 'TLSv1.3') return { failed: `${tls.getProtocol()} instead of TLSv1.3` }
  const material = tls.exportKeyingMaterial(2 * directionSize, label, Buffer.alloc(0))
  const toReplica = new Direction(material.subarray(0, directionSize))
  const fromReplica = new Direction(material.subarray(directionSize))
  return { keys: side === 'dial' ? { out: toReplica, in: fromReplica } : { out: fromReplica, in: toReplica } }
}
