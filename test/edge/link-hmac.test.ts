import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { hmacOf, hmacStates } from '../../edge/link-hmac.ts'

const test = suite('link-hmac')

function hexOf(states: Int32Array, message: Uint8Array): string {
  return Array.from(hmacOf(states, message), (word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
}

/** RFC 4231, cases 1 and 2. */
test('it says what the standard says', () => {
  assert.is(hexOf(hmacStates(Buffer.alloc(20, 0x0b)), Buffer.from('Hi There')), 'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7')
  assert.is(hexOf(hmacStates(Buffer.from('Jefe')), Buffer.from('what do ya want for nothing?')), '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843')
})

test('for messages of every length it says what OpenSSL says', () => {
  const key = Buffer.from('a key of thirty-two bytes, truly')
  const states = hmacStates(key)
  for (let size = 0; size <= 300; size += 1) {
    const message = Buffer.alloc(size, 0x80 + size)
    assert.is(hexOf(states, message), createHmac('sha256', key).update(message).digest('hex'), String(size))
  }
})

test('for any key and message it says what OpenSSL says, whatever was asked before', () => {
  const keys = fc.uint8Array({ maxLength: 64 })
  fc.assert(fc.property(fc.array(fc.tuple(keys, fc.uint8Array({ maxLength: 1_000 })), { maxLength: 6 }), (pairs) => {
    const all = pairs.map(([key, message]) => ({ key, message, states: hmacStates(key) }))
    for (const { key, message, states } of all) assert.is(hexOf(states, message), createHmac('sha256', key).update(message).digest('hex'))
  }))
})

test.run()
