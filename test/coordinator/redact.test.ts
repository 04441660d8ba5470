import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { redactor } from '../../coordinator/redact.ts'

const test = suite('redact')
const secret = 's3cret/"pass"+word'

for (const [name, text] of [
  ['as it is', `login ${secret} failed`],
  ['twice', `${secret}${secret}`],
  ['in a URL', `https://admin:${encodeURIComponent(secret)}@bmc/`],
  ['in JSON', JSON.stringify({ Password: secret })],
  ['in hex', Buffer.from(secret).toString('hex')],
  ['in an Authorization header of a user of four letters', Buffer.from(`root:${secret}`).toString('base64')],
  ['in an Authorization header of a user of five letters', Buffer.from(`admin:${secret}`).toString('base64')],
  ['in an Authorization header of a user of six letters', Buffer.from(`holder:${secret}:more`).toString('base64')],
] as const) {
  test(`a secret is taken out where it stands ${name}`, () => {
    const clean = redactor([secret])(text)
    assert.match(clean, /\[redacted\]/)
    assert.not.match(clean, /s3cret|pass/)
    assert.not.match(Buffer.from(clean, 'base64').toString(), /s3cret/)
  })
}

test('a secret that is part of another leaves no stump of it', () => {
  assert.is(redactor(['abc', 'abcdef'])('x abcdef y'), 'x [redacted] y')
})

test('each line of a key is a secret', () => {
  const key = '-----BEGIN KEY-----\nAAAABBBBCCCC\nDDDDEEEEFFFF\n-----END KEY-----'
  assert.not.match(redactor([key])('bad line DDDDEEEEFFFF'), /DDDD/)
})

test('no secrets, no change', () => {
  assert.is(redactor([''])('nothing to hide'), 'nothing to hide')
})

test.run()
