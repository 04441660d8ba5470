import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { objectFromProtobuf } from '../../../sim/api-server/protobuf.ts'

const test = suite('protobuf')

/** One length-delimited field. */
const field = (number: number, content: Buffer | string) => Buffer.concat([Buffer.from([number * 8 + 2, Buffer.byteLength(content)]), Buffer.from(content)])
const enveloped = (apiVersion: string, kind: string, raw: Buffer) => (
  Buffer.concat([Buffer.from('k8s\0'), field(1, Buffer.concat([field(1, apiVersion), field(2, kind)])), field(2, raw)]))
const entry = (key: string, value: string) => Buffer.concat([field(1, key), field(2, value)])

test('a namespace as kubectl sends it', () => {
  const raw = Buffer.concat([field(1, Buffer.concat([field(1, 'harbour'), field(11, entry('a', 'b')), field(11, entry('c', ''))])), field(2, Buffer.alloc(0)), field(3, Buffer.alloc(0))])
  assert.equal(objectFromProtobuf(enveloped('v1', 'Namespace', raw)), {
    apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'harbour', labels: { a: 'b', c: '' } }, spec: {},
  })
})

test('bytes become base64, numbers and truths stay what they are', () => {
  const secret = Buffer.concat([field(1, field(1, 's')), field(2, entry('a', 'word')), Buffer.from([5 * 8, 1])])
  assert.equal(objectFromProtobuf(enveloped('v1', 'Secret', secret)), { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, data: { a: 'd29yZA==' }, immutable: true })
  const request = Buffer.concat([field(2, Buffer.concat([field(1, 'one'), field(1, 'two'), Buffer.from([4 * 8, 0x90, 0x1c])]))])
  assert.equal(objectFromProtobuf(enveloped('authentication.k8s.io/v1', 'TokenRequest', request)), {
    apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences: ['one', 'two'], expirationSeconds: 3600 },
  })
})

test('what is cut short, unknown or no protobuf at all is not read', () => {
  const whole = enveloped('v1', 'Namespace', field(1, field(1, 'harbour')))
  for (let length = 0; length < whole.length; length += 1) assert.is(objectFromProtobuf(whole.subarray(0, length)), undefined, `${length} bytes`)
  assert.is(objectFromProtobuf(enveloped('apps/v1', 'Deployment', Buffer.alloc(0))), undefined)
  assert.is(objectFromProtobuf(Buffer.from('{"kind":"Namespace"}')), undefined)
})

test.run()
