import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { frameLimit } from '../../core/frame.ts'
import { Direction, directionSize, headSize, readHead } from '../../edge/link-record.ts'

const test = suite('link-record')

function pair(fill = 7): { readonly out: Direction; readonly in: Direction } {
  const material = Buffer.alloc(directionSize, fill)
  material[0] = 1
  material[directionSize - 1] = 2
  return { out: new Direction(material), in: new Direction(Buffer.from(material)) }
}

type Kind = 'sealed' | 'signed'

function send(out: Direction, kind: Kind, frame: Uint8Array): Buffer {
  const record = kind === 'sealed' ? out.seal(frame) : out.sign(frame)
  if (record === undefined) throw new Error('the record could not be made')
  return record
}

const body = (record: Uint8Array) => record.subarray(headSize)
const kinds = fc.constantFrom<Kind>('sealed', 'signed')

test('every row of frames, of either kind and any length, opens as it was sent', () => {
  const frames = fc.array(fc.tuple(kinds, fc.uint8Array({ maxLength: 2_000 })), { maxLength: 30 })
  fc.assert(fc.property(frames, (sent) => {
    const { out, in: into } = pair()
    for (const [kind, frame] of sent) {
      const record = send(out, kind, frame)
      assert.equal(readHead(record, 0), { kind, size: record.length - headSize })
      assert.equal(Buffer.from(into.open(kind, body(record)) ?? []), Buffer.from(frame))
    }
  }))
})

test('a record with any one bit changed does not open', () => {
  fc.assert(fc.property(kinds, fc.uint8Array({ minLength: 1, maxLength: 100 }), fc.nat(), fc.integer({ min: 0, max: 7 }), (kind, frame, where, bit) => {
    const { out, in: into } = pair()
    const record = body(send(out, kind, frame))
    const at = where % record.length
    assert.is(into.open(kind, record.with(at, (record[at] ?? 0) ^ (1 << bit))), undefined)
  }))
})

test('a record that is repeated, left out or moved does not open', () => {
  for (const kind of ['sealed', 'signed'] as const) {
    const frame = Uint8Array.of(1, 2, 3)
    const repeated = pair()
    const record = body(send(repeated.out, kind, frame))
    assert.ok(repeated.in.open(kind, record))
    assert.is(repeated.in.open(kind, record), undefined)
    const skipped = pair()
    send(skipped.out, kind, frame)
    assert.is(skipped.in.open(kind, body(send(skipped.out, kind, frame))), undefined)
  }
})

test('the two kinds count in one row, so a signed record cannot overtake a sealed one', () => {
  const { out, in: into } = pair()
  send(out, 'sealed', Uint8Array.of(1))
  assert.is(into.open('signed', body(send(out, 'signed', Uint8Array.of(2)))), undefined)
})

test('a record of one kind does not open as the other', () => {
  const one = pair()
  assert.is(one.in.open('signed', body(send(one.out, 'sealed', new Uint8Array(20)))), undefined)
  const other = pair()
  assert.is(other.in.open('sealed', body(send(other.out, 'signed', new Uint8Array(20)))), undefined)
})

test('another key opens nothing', () => {
  for (const kind of ['sealed', 'signed'] as const) assert.is(pair(8).in.open(kind, body(send(pair(7).out, kind, Uint8Array.of(1)))), undefined)
})

test('a sealed frame cannot be read on the way; a signed one can', () => {
  const frame = Buffer.from('a secret that stands out')
  assert.not.ok(send(pair().out, 'sealed', frame).includes(frame))
  assert.ok(send(pair().out, 'signed', frame).includes(frame))
})

test('the same frame sealed twice looks different', () => {
  const { out } = pair()
  assert.not.equal(send(out, 'sealed', new Uint8Array(40)), send(out, 'sealed', new Uint8Array(40)))
})

test('a signature is HMAC-SHA-256 of head, number and frame, cut to half', () => {
  const { out } = pair()
  for (const size of [0, 6, 511, 512, 513, 5_000]) {
    const frame = Buffer.alloc(size, size)
    const number = Buffer.alloc(8)
    number.writeUInt32BE([0, 6, 511, 512, 513, 5_000].indexOf(size), 4)
    const record = send(out, 'signed', frame)
    const key = Buffer.alloc(32, 7)
    key[31] = 2
    const right = createHmac('sha256', key).update(Buffer.concat([record.subarray(0, headSize), number, frame])).digest().subarray(0, 16)
    assert.equal(record.subarray(headSize + size), right)
  }
})

test('a frame of the limit can be sent, one byte more cannot', () => {
  const { out, in: into } = pair()
  assert.is(into.open('sealed', body(send(out, 'sealed', new Uint8Array(frameLimit))))?.length, frameLimit)
  assert.is(out.seal(new Uint8Array(frameLimit + 1)), undefined)
  assert.is(out.sign(new Uint8Array(frameLimit + 1)), undefined)
})

test('a head of no kind of ours, or of more than any record, is none', () => {
  assert.is(readHead(Uint8Array.of(0, 0, 0, 1), 0), undefined)
  assert.is(readHead(Uint8Array.of(0x16, 3, 1, 2), 0), undefined)
  assert.is(readHead(Uint8Array.of(2, 1, 0, 17), 0), undefined)
  assert.equal(readHead(Uint8Array.of(2, 1, 0, 16), 0), { kind: 'sealed', size: 65_552 })
  assert.is(pair().in.open('sealed', new Uint8Array(15)), undefined)
})

test.run()
