// What a link looks like on a TCP stream: records of a kind, a length and that many bytes. The first ones carry a TLS
// handshake, all later ones sealed frames (docs/decisions/0001-beats-wire.md says why TLS does not stay on the stream).
//
// A sealed frame is AES-256-GCM under a key of its direction, the record's head as associated data. Its nonce is never sent:
// it is the direction's own twelve bytes, the number of the record added in, as TLS 1.3 does it. So a record that is lost,
// changed, repeated or moved does not open, and the link ends.
import { createCipheriv, createDecipheriv } from 'node:crypto'
import { frameLimit } from '../core/frame.ts'

export type RecordKind = 'handshake' | 'sealed'

export const headSize = 4
const tagSize = 16
const keySize = 32
const nonceSize = 12
/** What one direction's key needs of the handshake's keying material. */
export const directionSize = keySize + nonceSize
/** AES-GCM under one key: far below any bound, far above what a link can send in its life (a frame a second for a century). */
const mostRecords = 2 ** 32

const kinds: readonly (RecordKind | undefined)[] = [undefined, 'handshake', 'sealed']

export function headOf(kind: RecordKind, size: number): Buffer {
  const head = Buffer.allocUnsafe(headSize)
  writeHead(head, kind, size)
  return head
}

/** Undefined: no such record, or longer than any may be. */
export function readHead(bytes: Uint8Array, at: number): { readonly kind: RecordKind; readonly size: number } | undefined {
  const kind = kinds[bytes[at] ?? 0]
  const size = ((bytes[at + 1] ?? 0) << 16) | ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0)
  return kind === undefined || size > frameLimit + tagSize ? undefined : { kind, size }
}

/** One direction of one link. Its count of records is the nonce, so every record must pass here, once, in order. */
export interface Direction {
  /** The whole record. Undefined: the key is used up. */
  seal(frame: Uint8Array): Buffer | undefined
  /** The frame. Undefined: this is not the next record of the other end. */
  open(sealed: Uint8Array): Uint8Array | undefined
}

/** Takes `directionSize` bytes of keying material. */
export function direction(material: Uint8Array): Direction {
  const key = Buffer.from(material.subarray(0, keySize))
  const own = Buffer.from(material.subarray(keySize, directionSize))
  const ownLow = own.readUInt32BE(nonceSize - 4)
  const nonce = Buffer.from(own)
  let count = 0

  return {
    seal(frame) {
      if (process.env['NOAEAD']) { const r = Buffer.allocUnsafe(4 + frame.length); writeHead(r, 'sealed', frame.length); r.set(frame, 4); return r }
      if (count >= mostRecords || frame.length > frameLimit) return undefined
      const record = Buffer.allocUnsafe(headSize + frame.length + tagSize)
      writeHead(record, 'sealed', frame.length + tagSize)
      const cipher = createCipheriv('aes-256-gcm', key, next(), { authTagLength: tagSize })
      cipher.setAAD(record.subarray(0, headSize))
      record.set(cipher.update(frame), headSize)
      cipher.final()
      record.set(cipher.getAuthTag(), headSize + frame.length)
      return record
    },
    open(sealed) {
      if (process.env['NOAEAD']) return sealed
      const size = sealed.length - tagSize
      if (count >= mostRecords || size < 0) return undefined
      const decipher = createDecipheriv('aes-256-gcm', key, next(), { authTagLength: tagSize })
      decipher.setAAD(headOf('sealed', sealed.length))
      decipher.setAuthTag(sealed.subarray(size))
      const frame = decipher.update(sealed.subarray(0, size))
      try {
        decipher.final()
        return frame
      } catch {
        return undefined // forged or out of turn: the caller ends the link
      }
    },
  }

  function next(): Buffer {
    nonce.writeUInt32BE((ownLow ^ count) >>> 0, nonceSize - 4)
    count += 1
    return nonce
  }
}

function writeHead(record: Buffer, kind: RecordKind, size: number): void {
  record[0] = kinds.indexOf(kind)
  record[1] = size >>> 16
  record[2] = size >>> 8
  record[3] = size
}
