// What containerd's NRI speaks below its messages: ttrpc calls in both directions over one byte stream. Mux frames (connection id, length)
// carry two byte streams, one of calls that the runtime makes to us and one of ours to it; within each, ttrpc messages (length, stream id,
// type) hold one protobuf body. A message may span frames, and a frame may hold several.
import { bytesField, bytesOf, joined, readMessage, textField, textOf, wholeField, wholeOf } from './protobuf.ts'

/** The calls that the runtime makes and we serve, and those that we make. */
export const pluginService = 1
export const runtimeService = 2

export interface Frame {
  readonly connection: number
  /** A response bears the id of its request. */
  readonly stream: number
  readonly type: 'request' | 'response'
  readonly body: Uint8Array
}

/** Go's reader takes one frame a read into 4,096 bytes and fails on a longer one: then the plugin is dropped and every pod runs. */
const longestPiece = 4_096
const longestBody = 4 * 1024 * 1024
const muxHead = 8
const head = 10

const types = { request: 1, response: 2 } as const

/** Mux frames, each whole, to be written one after the other. */
export function piecesOf({ connection, stream, type, body }: Frame): readonly Uint8Array[] {
  const message = new Uint8Array(head + body.length)
  const view = new DataView(message.buffer)
  view.setUint32(0, body.length)
  view.setUint32(4, stream)
  view.setUint8(8, types[type])
  message.set(body, head)
  const pieces: Uint8Array[] = []
  for (let at = 0; at < message.length; at += longestPiece) {
    const payload = message.subarray(at, at + longestPiece)
    const piece = new Uint8Array(muxHead + payload.length)
    const header = new DataView(piece.buffer)
    header.setUint32(0, connection)
    header.setUint32(4, payload.length)
    piece.set(payload, muxHead)
    pieces.push(piece)
  }
  return pieces
}

export interface FrameReader {
  /** Undefined: read. A sentence: from here on nothing in this stream can be told apart, and it must be given up. */
  feed(bytes: Uint8Array): string | undefined
}

/** What has come of one connection and makes no whole message yet. It is joined once, when enough is there. */
interface Gathered {
  parts: Uint8Array[]
  size: number
  /** So much is needed before there is anything new to tell. */
  wanted: number
}

export function readFrames(take: (frame: Frame) => void): FrameReader {
  const streams = new Map<number, Gathered>([pluginService, runtimeService].map((connection) => [connection, { parts: [], size: 0, wanted: head }]))
  let pending: Uint8Array = new Uint8Array()
  let piece: { readonly connection: number; left: number } | undefined

  return {
    feed(bytes) {
      let rest = pending.length === 0 ? bytes : joined([pending, bytes])
      while (rest.length > 0) {
        if (piece === undefined) {
          if (rest.length < muxHead) break
          const view = new DataView(rest.buffer, rest.byteOffset)
          piece = { connection: view.getUint32(0), left: view.getUint32(4) }
          rest = rest.subarray(muxHead)
          if (piece.left > head + longestBody) return `a frame of ${piece.left} bytes`
        }
        const part = rest.subarray(0, piece.left)
        const fault = gather(piece.connection, part)
        if (fault !== undefined) return fault
        piece.left -= part.length
        rest = rest.subarray(part.length)
        if (piece.left === 0) piece = undefined
      }
      pending = Uint8Array.from(rest)
      return undefined
    },
  }

  function gather(connection: number, part: Uint8Array): string | undefined {
    const stream = streams.get(connection)
    if (stream === undefined) return undefined // reserved for what this release does not know
    stream.parts.push(Uint8Array.from(part)) // a copy: the reader's buffer is its owner's
    stream.size += part.length
    while (stream.size >= stream.wanted) {
      const bytes = joined(stream.parts)
      const view = new DataView(bytes.buffer)
      const length = view.getUint32(0)
      if (length > longestBody) return `a message of ${length} bytes`
      const whole = bytes.length >= head + length
      if (whole) tell(connection, view, bytes.slice(head, head + length))
      const left = whole ? bytes.slice(head + length) : bytes
      Object.assign(stream, { parts: [left], size: left.length, wanted: whole ? head : head + length })
    }
    return undefined
  }

  /** Other types are of streaming calls, which nobody makes to us. */
  function tell(connection: number, view: DataView, body: Uint8Array): void {
    const type = view.getUint8(8)
    if (type === types.request || type === types.response) take({ connection, stream: view.getUint32(4), type: type === types.request ? 'request' : 'response', body })
  }
}

export interface Call {
  readonly service: string
  readonly method: string
  readonly payload: Uint8Array
}

export function callBody({ service, method, payload }: Call, span: number): Uint8Array {
  return joined([textField(1, service), textField(2, method), bytesField(3, payload), wholeField(4, span * 1_000_000)])
}

/** Undefined: no call can be read of it. */
export function readCall(body: Uint8Array): Call | undefined {
  const message = readMessage(body)
  if (message === undefined) return undefined
  return { service: textOf(message, 1), method: textOf(message, 2), payload: bytesOf(message, 3) ?? new Uint8Array() }
}

export type Reply =
  | { readonly ok: true; readonly payload: Uint8Array }
  | { readonly ok: false; readonly code: number; readonly message: string }

/** An empty success is a body of no bytes. */
export function replyBody(reply: Reply): Uint8Array {
  if (!reply.ok) return bytesField(1, joined([wholeField(1, reply.code), textField(2, reply.message)]))
  return reply.payload.length === 0 ? new Uint8Array() : bytesField(2, reply.payload)
}

export function readReply(body: Uint8Array): Reply | undefined {
  const message = readMessage(body)
  if (message === undefined) return undefined
  const refusal = bytesOf(message, 1)
  const status = refusal === undefined ? undefined : readMessage(refusal)
  if (refusal !== undefined && status === undefined) return undefined
  if (status !== undefined && wholeOf(status, 1) !== 0) return { ok: false, code: wholeOf(status, 1), message: textOf(status, 2) }
  return { ok: true, payload: bytesOf(message, 2) ?? new Uint8Array() }
}
