// What a link looks like on a TCP stream: records of a kind, a length and that many bytes. The first ones carry a TLS
// handshake, all later ones frames under keys taken from it (docs/decisions/0001-beats-wire.md says why TLS itself does not
// stay on the stream).
//
// A *sealed* frame is AES-256-GCM, the record's head as associated data; its nonce is the direction's own twelve bytes with
// the record's number added in, as TLS 1.3 does it. A *signed* frame is readable and bears HMAC-SHA-256 of head, number and
// frame, cut to 128 bits (RFC 4868): for beats and permits, which hold no secret and come by the thousand, at a fifth of
// the cost. Both count in the same row of numbers, which are never sent: a record that is lost, changed, repeated or moved
// does not open, and the link ends.
import { createCipheriv, createDecipheriv } from 'node:crypto'
import { frameLimit } from '../core/frame.ts'
import { hmacOf, hmacStates } from './link-hmac.ts'

export type RecordKind = 'handshake' | 'sealed' | 'signed'

export const headSize = 4
const tagSize = 16
const sealKeySize = 32
const nonceSize = 12
const signKeySize = 32
/** What one direction's keys need of the handshake's keying material. */
export const directionSize = sealKeySize + nonceSize + signKeySize
/** Far below any bound of AES-GCM under one key, and a frame a second for a century. */
const mostRecords = 2 ** 32

const kinds: readonly (RecordKind | undefined)[] = [undefined, 'handshake', 'sealed', 'signed']

export function handshakeRecord(bytes: Uint8Array): Buffer {
  const record = Buffer.allocUnsafe(headSize + bytes.length)
  writeHead(record, 'handshake', bytes.length)
  record.set(bytes, headSize)
  return record
}

/** Undefined: no such record, or longer than any may be. */
export function readHead(bytes: Uint8Array, at: number): { readonly kind: RecordKind; readonly size: number } | undefined {
  const kind = kinds[bytes[at] ?? 0]
  const size = ((bytes[at + 1] ?? 0) << 16) | ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0)
  return kind === undefined || size > frameLimit + tagSize ? undefined : { kind, size }
}

/** One direction of one link. The number of records so far is part of every key's use: each record must pass here, once, in
 *  order. Small, because a replica holds ten thousand of these. */
export class Direction {
  readonly #material: Buffer
  readonly #signing: Int32Array
  #count = 0

  constructor(material: Buffer) {
    this.#material = material.subarray(0, sealKeySize + nonceSize)
    this.#signing = hmacStates(material.subarray(sealKeySize + nonceSize, directionSize))
  }

  /** The whole record, or undefined when the frame is too long or the keys are used up. */
  seal(frame: Uint8Array): Buffer | undefined {
    if (this.#count >= mostRecords || frame.length > frameLimit) return undefined
    const record = newRecord('sealed', frame.length)
    const cipher = createCipheriv('aes-256-gcm', this.#material.subarray(0, sealKeySize), this.#nonce(), { authTagLength: tagSize })
    cipher.setAAD(record.subarray(0, headSize))
    record.set(cipher.update(frame), headSize)
    cipher.final()
    record.set(cipher.getAuthTag(), headSize + frame.length)
    return record
  }

  /** Likewise, for a frame that anyone may read. */
  sign(frame: Uint8Array): Buffer | undefined {
    if (this.#count >= mostRecords || frame.length > frameLimit) return undefined
    const record = newRecord('signed', frame.length)
    record.set(frame, headSize)
    const right = signature(this.#signing, this.#next(), frame)
    for (let word = 0; word < tagSize / 4; word += 1) record.writeInt32BE(right[word] ?? 0, headSize + frame.length + word * 4)
    return record
  }

  /** The frame of a record without its head. Undefined: it is not the other end's next one. */
  open(kind: 'sealed' | 'signed', body: Uint8Array): Uint8Array | undefined {
    const size = body.length - tagSize
    if (size < 0 || this.#count >= mostRecords) return undefined
    const frame = body.subarray(0, size)
    if (kind === 'signed') return bears(body, size, signature(this.#signing, this.#next(), frame)) ? frame : undefined
    const decipher = createDecipheriv('aes-256-gcm', this.#material.subarray(0, sealKeySize), this.#nonce(), { authTagLength: tagSize })
    decipher.setAAD(newRecord('sealed', size).subarray(0, headSize))
    decipher.setAuthTag(body.subarray(size))
    const opened = decipher.update(frame)
    try {
      decipher.final()
      return opened
    } catch {
      return undefined // forged or out of turn: the caller ends the link
    }
  }

  #next(): number {
    this.#count += 1
    return this.#count - 1
  }

  #nonce(): Buffer {
    const nonce = Buffer.from(this.#material.subarray(sealKeySize, sealKeySize + nonceSize))
    nonce.writeUInt32BE((nonce.readUInt32BE(nonceSize - 4) ^ this.#next()) >>> 0, nonceSize - 4)
    return nonce
  }
}

function newRecord(kind: RecordKind, size: number): Buffer {
  const record = Buffer.allocUnsafe(headSize + size + tagSize)
  writeHead(record, kind, size + tagSize)
  return record
}

function writeHead(record: Buffer, kind: RecordKind, size: number): void {
  record[0] = kinds.indexOf(kind)
  record[1] = size >>> 16
  record[2] = size >>> 8
  record[3] = size
}

/** Every byte is compared whatever the others say: the time taken tells nothing of how much was right. */
function bears(body: Uint8Array, at: number, right: Int32Array): boolean {
  let difference = 0
  for (let index = 0; index < tagSize; index += 1) difference |= (body[at + index] ?? 0) ^ (((right[index >> 2] ?? 0) >>> (24 - (index & 3) * 8)) & 0xff)
  return difference === 0
}

const numbered = headSize + 8
/** Beats and permits are short: for each length one buffer that is used again and again. */
const mostShort = 512
const messages: Buffer[] = []

/** HMAC-SHA-256. The answer is shared, good until the next call. */
function signature(signing: Int32Array, number: number, frame: Uint8Array): Int32Array {
  const message = frame.length > mostShort ? newMessage(frame.length) : messages[frame.length] ??= newMessage(frame.length)
  message.writeUInt32BE(number, headSize + 4)
  message.set(frame, numbered)
  return hmacOf(signing, message)
}

/** The head, eight bytes for the number of which four stay zero, the frame's place. */
function newMessage(size: number): Buffer {
  const message = Buffer.alloc(numbered + size)
  writeHead(message, 'signed', size + tagSize)
  return message
}
