import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import fc from 'fast-check'
import { bytesField, joined, mapOf, messagesOf, readMessage, textField, textOf, wholeField, wholeOf } from '../../agent/protobuf.ts'
import { callBody, piecesOf, readCall, readFrames, readReply, replyBody, type Frame } from '../../agent/ttrpc.ts'

const test = suite('ttrpc')

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const text = (words: string) => Buffer.from(words).toString('hex')

/** What was written by hand from a recording of containerd 2.3.7. */
const registration = `00000002000000570000004d000000010100${'0a1c'}${text('nri.pkg.api.v1alpha1.Runtime')}${'120e'}${text('RegisterPlugin')}${'1a17'}0a08${text('holdfast')}1202${text('05')}1a07${text('v0.12.0')}20d0a9f9cf12`

test('a registration is the bytes that a real runtime took', () => {
  const payload = joined([textField(1, 'holdfast'), textField(2, '05'), textField(3, 'v0.12.0')])
  // What was left of the recorded client's five seconds, in nanoseconds. Our own span is whole milliseconds.
  const body = joined([textField(1, 'nri.pkg.api.v1alpha1.Runtime'), textField(2, 'RegisterPlugin'), bytesField(3, payload), wholeField(4, 4_999_501_008)])
  assert.is(piecesOf({ connection: 2, stream: 1, type: 'request', body }).map(hex).join(''), registration)
  const read = readCall(callBody({ service: 's', method: 'm', payload }, 5_000))
  assert.equal(read, { service: 's', method: 'm', payload })
})

const answered = (stream: number, body: Uint8Array) => piecesOf({ connection: 1, stream, type: 'response', body }).map(hex).join('')

test('answers are the bytes that a real runtime took: an empty one, an event mask, a refusal', () => {
  assert.is(answered(1, replyBody({ ok: true, payload: new Uint8Array() })), '000000010000000a00000000000000010200')
  assert.is(answered(1, replyBody({ ok: true, payload: wholeField(2, 0x2029) })), '000000010000000f00000005000000010200120310a940')
  const refused = replyBody({ ok: false, code: 2, message: 'x'.repeat(88) })
  assert.is(answered(5, refused), `00000001000000680000005e0000000502000a5c08021258${text('x'.repeat(88))}`)
})

function all(chunks: readonly Uint8Array[]): { frames: Frame[]; fault: string | undefined } {
  const frames: Frame[] = []
  const reader = readFrames((frame) => frames.push(frame))
  let fault: string | undefined
  for (const chunk of chunks) fault ??= reader.feed(chunk)
  return { frames, fault }
}

/** The bytes of it all, cut wherever a socket may cut them. */
function cut(bytes: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const chunks: Uint8Array[] = []
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? 1
    chunks.push(bytes.slice(at, at + size))
    at += size
  }
  return chunks
}

const frame: fc.Arbitrary<Frame> = fc.record({
  connection: fc.constantFrom(1, 2), stream: fc.nat(), type: fc.constantFrom('request' as const, 'response' as const), body: fc.uint8Array({ maxLength: 12_000 }),
})
const plain = (frames: readonly Frame[]) => frames.map(({ connection, stream, type, body }) => `${connection} ${stream} ${type} ${hex(body)}`)

test('no piece is longer than the other end can take, and however it is cut all is read as it was sent', () => {
  fc.assert(fc.property(fc.array(frame, { maxLength: 6 }), fc.array(fc.integer({ min: 1, max: 9_000 }), { minLength: 1, maxLength: 4 }), (frames, sizes) => {
    const pieces = frames.flatMap(piecesOf)
    assert.ok(pieces.every((piece) => piece.length <= 4_096 + 8))
    const read = all(cut(joined(pieces), sizes))
    assert.is(read.fault, undefined)
    assert.equal(plain(read.frames), plain(frames))
  }), { numRuns: 100 })
})

test('a message in one piece of many kilobytes is read, as a real runtime sends them', () => {
  const body = new Uint8Array(9_945).fill(7)
  const pieces = piecesOf({ connection: 1, stream: 3, type: 'request', body })
  const message = joined(pieces.map((piece) => piece.subarray(8)))
  const head = Uint8Array.of(0, 0, 0, 1, 0, 0, message.length >> 8, message.length & 255)
  assert.equal(plain(all([head, message]).frames), [`1 3 request ${hex(body)}`])
})

/** How many bytes are moved to read one message of so many pieces: a count, since times on a busy machine say little. */
function moved(kilobytes: number): number {
  const pieces = piecesOf({ connection: 1, stream: 1, type: 'request', body: new Uint8Array(kilobytes * 1_024) })
  const { set } = Uint8Array.prototype
  let bytes = 0
  Reflect.set(Uint8Array.prototype, 'set', function counted(this: Uint8Array, from: ArrayLike<number>, at?: number) {
    bytes += from.length
    set.call(this, from, at)
  })
  try {
    assert.is(all(pieces).frames.length, 1)
  } finally {
    Reflect.set(Uint8Array.prototype, 'set', set)
  }
  return bytes
}

test('a message in a thousand pieces costs as much a piece as one in a hundred', () => {
  const ratio = moved(4_000) / moved(400)
  assert.ok(ratio < 11, `${ratio.toFixed(1)} times as much for ten times the pieces`)
})

test('pieces of connections and types that nobody knows are passed over', () => {
  const strange = Uint8Array.of(0, 0, 0, 9, 0, 0, 0, 3, 1, 2, 3)
  const data = piecesOf({ connection: 1, stream: 1, type: 'request', body: Uint8Array.of(1) }).map((piece) => Uint8Array.from(piece, (byte, at) => (at === 16 ? 3 : byte)))
  const good = piecesOf({ connection: 2, stream: 5, type: 'response', body: Uint8Array.of(9) })
  assert.equal(plain(all([strange, ...data, ...good]).frames), ['2 5 response 09'])
})

test('a length beyond all reason is a fault at once, before anything is kept for it', () => {
  assert.match(all([Uint8Array.of(0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff)]).fault ?? '', /4294967295 bytes/)
  assert.match(all([Uint8Array.of(0, 0, 0, 1, 0, 0, 0, 10, 0x7f, 0, 0, 0, 0, 0, 0, 1, 1, 0)]).fault ?? '', /2130706432 bytes/)
})

test('a reply is read as it was said, and what is none is none', () => {
  const reply = fc.oneof(
    fc.record({ ok: fc.constant(true as const), payload: fc.uint8Array({ maxLength: 50 }) }),
    fc.record({ ok: fc.constant(false as const), code: fc.integer({ min: 1, max: 16 }), message: fc.string() }),
  )
  fc.assert(fc.property(reply, (said) => assert.equal(JSON.stringify(readReply(replyBody(said))), JSON.stringify(said))))
  assert.is(readReply(Uint8Array.of(0xff)), undefined)
  assert.is(readReply(bytesField(1, Uint8Array.of(0xff))), undefined)
})

test('whatever bytes come, nothing throws and nothing is made up', () => {
  fc.assert(fc.property(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 5 }), (chunks) => {
    for (const { body } of all(chunks).frames) {
      readCall(body)
      readReply(body)
    }
  }), { numRuns: 300 })
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
    const message = readMessage(bytes)
    if (message === undefined) return
    for (const number of message.keys()) {
      textOf(message, number)
      wholeOf(message, number)
      messagesOf(message, number)
      mapOf(message, number)
    }
  }), { numRuns: 500 })
})

const entry = (key: string, value: string) => bytesField(6, joined([textField(1, key), textField(2, value)]))

test('a map takes every key as a text, and a message that is cut anywhere is none, or a shorter one', () => {
  const whole = joined([entry('__proto__', 'x'), entry('constructor', 'y'), entry('ä', 'ö')])
  const read = readMessage(whole)
  const map = read === undefined ? undefined : mapOf(read, 6)
  assert.equal(Object.entries(map ?? {}).toSorted(), [['__proto__', 'x'], ['constructor', 'y'], ['ä', 'ö']].toSorted())
  assert.is(map?.['toString'], undefined)
  for (let length = 0; length < whole.length; length += 1) assert.ok((readMessage(whole.slice(0, length))?.get(6)?.length ?? 0) < 3)
})

test.run()
