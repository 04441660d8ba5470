import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { sealHolds, sealOf } from '../../edge/link-seal.ts'

const test = suite('link-seal')

const key = Buffer.alloc(32, 1).toString('base64url')
const other = Buffer.alloc(32, 2).toString('base64url')
const seal = sealOf(key, 'nonce', 'boot/1')

test('a seal holds for its key, nonce and boot', () => {
  assert.ok(sealHolds(key, 'nonce', 'boot/1', seal))
})

test('a seal holds for no other key, nonce or boot', () => {
  assert.not.ok(sealHolds(other, 'nonce', 'boot/1', seal))
  assert.not.ok(sealHolds(key, 'nonce2', 'boot/1', seal))
  assert.not.ok(sealHolds(key, 'nonce', 'boot/2', seal))
})

test('moving a letter from the nonce to the boot breaks the seal', () => {
  assert.not.ok(sealHolds(key, 'nonceb', 'oot/1', seal))
})

test('what is no seal does not hold and does not throw', () => {
  for (const text of ['', 'x', seal.slice(0, -2), `${seal}AA`, '\u{1f600}']) assert.not.ok(sealHolds(key, 'nonce', 'boot/1', text))
})

test.run()
