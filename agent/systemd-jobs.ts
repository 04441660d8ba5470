// What systemd still has to do, by its own word: whatever takes the machine down stands in its queue before anybody is told to end. The word is asked for on
// the socket that it keeps for root, so no bus need run, which may be one of the first to end. As much of D-Bus as one question takes.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { ByteStream } from './host.ts'
import { joined } from './protobuf.ts'

export interface Job {
  readonly unit: string
  readonly type: string
}

/** Below the host's /run. */
export const systemdSocket = 'systemd/private'

/** Five hundred bytes a job, and a job for each mount and each process group of a node that is full. */
const longestAnswer = 4 * 1024 * 1024
const types = { call: 1, reply: 2, refusal: 3 } as const
const fields = { path: 1, interface: 2, member: 3 } as const
const headLength = 16

/** `connect` makes a stream within the span. Undefined: nobody can tell. */
export async function queuedJobs(connect: (span: Ms) => Promise<ByteStream>, clock: Clock, span: Ms): Promise<readonly Job[] | undefined> {
  const until = clock.now() + span
  try {
    return await ask(await connect(span), clock, Math.max(1, until - clock.now()))
  } catch {
    return undefined // no systemd, or it has made way for the program that ends the rest
  }
}

function ask(stream: ByteStream, clock: Clock, span: Ms): Promise<readonly Job[] | undefined> {
  return new Promise((resolve) => {
    let pending: Uint8Array = new Uint8Array()
    let size = 0
    let greeted = false
    const late = clock.after(span, () => end(undefined))
    stream.listen({ bytes: read, closed: () => end(undefined) })
    // That we are root, which it sees for itself.
    stream.send(encoder.encode('\0AUTH EXTERNAL 30\r\nBEGIN\r\n'))

    function end(jobs: readonly Job[] | undefined): void {
      late()
      stream.close()
      resolve(jobs)
    }

    function read(bytes: Uint8Array): void {
      size += bytes.length
      if (size > longestAnswer) return end(undefined)
      pending = joined([pending, bytes])
      if (!greeted) {
        const line = pending.indexOf(10)
        if (line === -1) return
        if (!decoder.decode(pending.subarray(0, line)).startsWith('OK ')) return end(undefined)
        greeted = true
        // Not before: what it reads in one piece with that greeting it leaves lying until more comes.
        stream.send(listJobs())
        pending = pending.subarray(line + 1)
      }
      for (let message = firstOf(pending); message !== undefined; message = firstOf(pending)) {
        if (message === 'garbage' || message.type === types.refusal) return end(undefined)
        if (message.type === types.reply) return end(readJobs(message.body))
        // It tells everybody on this socket what becomes of its units, asked or not.
        pending = pending.subarray(message.length)
      }
    }
  })
}

function listJobs(): Uint8Array {
  // Each begins at a multiple of eight, and so does what comes after the last; what fills the gap behind that is not counted.
  const told = joined([
    filled(field(fields.path, 'o', '/org/freedesktop/systemd1')), filled(field(fields.interface, 's', 'org.freedesktop.systemd1.Manager')), field(fields.member, 's', 'ListJobs'),
  ])
  const head = new DataView(new ArrayBuffer(headLength))
  head.setUint8(0, littleEndian)
  head.setUint8(1, types.call)
  head.setUint8(3, 1) // the protocol's version
  head.setUint32(8, 1, true) // this call's number
  head.setUint32(12, told.length, true)
  return joined([new Uint8Array(head.buffer), filled(told)])
}

function filled(bytes: Uint8Array): Uint8Array {
  return joined([bytes, new Uint8Array(upTo(8, bytes.length) - bytes.length)])
}

/** Code, type, then the text with its length before it and a zero behind. */
function field(code: number, type: string, value: string): Uint8Array {
  const text = encoder.encode(value)
  const bytes = new Uint8Array(8 + text.length + 1)
  bytes.set([code, 1, type.charCodeAt(0), 0])
  new DataView(bytes.buffer).setUint32(4, text.length, true)
  bytes.set(text, 8)
  return bytes
}

const littleEndian = 'l'.charCodeAt(0)

interface Message {
  readonly type: number
  readonly body: Uint8Array
  readonly length: number
}

/** Undefined: not whole yet. */
function firstOf(bytes: Uint8Array): Message | 'garbage' | undefined {
  if (bytes.length < headLength) return undefined
  const view = viewOf(bytes)
  // Of a machine with the other order of bytes there is no agent.
  if (view.getUint8(0) !== littleEndian) return 'garbage'
  const [long, from] = [view.getUint32(4, true), upTo(8, headLength + view.getUint32(12, true))]
  if (from + long > longestAnswer) return 'garbage'
  return from + long > bytes.length ? undefined : { type: view.getUint8(1), body: bytes.subarray(from, from + long), length: from + long }
}

/** `a(usssoo)`: number, unit, type, state, and two paths of its own. */
export function readJobs(body: Uint8Array): readonly Job[] | undefined {
  try {
    const view = viewOf(body)
    const end = 8 + view.getUint32(0, true)
    const jobs: Job[] = []
    if (end > body.length) return undefined
    for (let at = 8; at < end;) {
      at = upTo(8, at) + 4
      const texts = Array.from({ length: 5 }, () => {
        const from = upTo(4, at) + 4
        const to = from + view.getUint32(from - 4, true)
        at = to + 1
        if (at > end) throw new RangeError('a text that goes on behind the list')
        return decoder.decode(body.subarray(from, to))
      })
      jobs.push({ unit: texts[0] ?? '', type: texts[1] ?? '' })
    }
    return jobs
  } catch {
    return undefined // cut short, or another list
  }
}

const upTo = (multiple: number, length: number): number => Math.ceil(length / multiple) * multiple
const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
const [encoder, decoder] = [new TextEncoder(), new TextDecoder()]
