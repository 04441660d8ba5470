// One gRPC question and its answer over a byte stream, and then the stream is closed: as much of HTTP/2 as that takes. Node's own http2
// costs the agent ten megabytes, and all it would do here is this (docs/decisions/0011-runtime-by-hand.md).
//
// Headers of the answer are not read: a gRPC server that fails ends the stream without a message, one that succeeds sends a whole one and
// then ends it. Whatever else happens is no answer.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { ByteStream } from './host.ts'
import { joined } from './protobuf.ts'

export interface Question {
  /** `/runtime.v1.RuntimeService/ListContainers`. */
  readonly path: string
  readonly message: Uint8Array
}

export type GrpcAnswer = { readonly message: Uint8Array } | { readonly failed: string }

const types = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goAway: 7, windowUpdate: 8 } as const
const flags = { endStream: 1, endHeaders: 4, ack: 1, padded: 8 } as const
const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
const frameHead = 9
/** Kubelet takes no longer answer from a runtime either. The whole window is given at once, so that nothing has to be given later. */
const longestAnswer = 16 * 1024 * 1024
const usualWindow = 65_535
/** What a peer may send in one frame unless it was told otherwise, and we tell it nothing. */
const longestFrame = 16_384
const initialWindow = 4
const messageHead = 5

export function askGrpc(stream: ByteStream, clock: Clock, { path, message }: Question, span: Ms): Promise<GrpcAnswer> {
  return new Promise((resolve) => {
    let pending: Uint8Array = new Uint8Array()
    const parts: Uint8Array[] = []
    let size = 0
    let over = false
    const late = clock.after(span, () => end({ failed: `no answer within ${span} ms` }))
    stream.listen({ bytes: read, closed: (reason) => end({ failed: `the connection ended: ${reason}` }) })
    stream.send(joined([
      encoder.encode(preface), frame(types.settings, 0, 0, setting(initialWindow, longestAnswer)), frame(types.windowUpdate, 0, 0, whole(longestAnswer - usualWindow)),
      frame(types.headers, flags.endHeaders, 1, requestHeaders(path)), frame(types.data, flags.endStream, 1, joined([Uint8Array.of(0), whole(message.length), message])),
    ]))

    function end(ended: GrpcAnswer): void {
      if (over) return
      over = true
      late()
      stream.close()
      resolve(ended)
    }

    function read(bytes: Uint8Array): void {
      pending = pending.length === 0 ? Uint8Array.from(bytes) : joined([pending, bytes])
      while (!over && pending.length >= frameHead) {
        const view = new DataView(pending.buffer, pending.byteOffset)
        const length = view.getUint32(0) >>> 8
        if (length > longestFrame) return end({ failed: `a frame of ${length} bytes` })
        if (pending.length < frameHead + length) return
        const payload = pending.subarray(frameHead, frameHead + length)
        const [type, flag, id] = [view.getUint8(3), view.getUint8(4), view.getUint32(5) & 0x7fffffff]
        pending = pending.subarray(frameHead + length)
        take(type, flag, id, payload)
      }
    }

    function take(type: number, flag: number, id: number, payload: Uint8Array): void {
      if (type === types.settings && (flag & flags.ack) === 0) return stream.send(frame(types.settings, flags.ack, 0, new Uint8Array()))
      if (type === types.ping && (flag & flags.ack) === 0) return stream.send(frame(types.ping, flags.ack, 0, payload))
      if (type === types.goAway) return end({ failed: 'the runtime goes away' })
      if (id !== 1) return
      if (type === types.reset) return end({ failed: 'the runtime ended the call' })
      if (type === types.data) gather((flag & flags.padded) === 0 ? payload : unpadded(payload))
      if ((type === types.data || type === types.headers) && (flag & flags.endStream) !== 0) end(answer())
    }

    function gather(payload: Uint8Array): void {
      size += payload.length
      if (size > longestAnswer) return end({ failed: `an answer of more than ${longestAnswer} bytes` })
      parts.push(Uint8Array.from(payload))
    }

    /** One message, whole and not compressed. */
    function answer(): GrpcAnswer {
      const bytes = joined(parts)
      if (bytes.length === 0) return { failed: 'the runtime refused the call' }
      const told = bytes.length < messageHead ? -1 : new DataView(bytes.buffer).getUint32(1)
      return bytes[0] === 0 && told === bytes.length - messageHead ? { message: bytes.subarray(messageHead) } : { failed: 'an answer that is not whole' }
    }
  })
}

function frame(type: number, flag: number, id: number, payload: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(frameHead + payload.length)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, payload.length << 8)
  view.setUint8(3, type)
  view.setUint8(4, flag)
  view.setUint32(5, id)
  bytes.set(payload, frameHead)
  return bytes
}

function setting(id: number, value: number): Uint8Array {
  return joined([Uint8Array.of(0, id), whole(value)])
}

function whole(value: number): Uint8Array {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setUint32(0, value)
  return bytes
}

function unpadded(payload: Uint8Array): Uint8Array {
  return payload.subarray(1, payload.length - (payload[0] ?? 0))
}

/** HPACK in its plainest form: each header spelt out and none remembered. All are shorter than 127 bytes, so a length is one byte. */
function requestHeaders(path: string): Uint8Array {
  const headers = [[':method', 'POST'], [':scheme', 'http'], [':path', path], [':authority', 'localhost'], ['content-type', 'application/grpc'], ['te', 'trailers']]
  return joined(headers.flatMap(([name = '', value = '']) => [Uint8Array.of(0), short(name), short(value)]))
}

function short(text: string): Uint8Array {
  const bytes = encoder.encode(text)
  if (bytes.length >= 127) throw new Error(`a header of ${bytes.length} bytes: ${text}`)
  return joined([Uint8Array.of(bytes.length), bytes])
}

const encoder = new TextEncoder()
