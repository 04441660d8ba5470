import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { fillDefaults, prune, schemaFaults } from '../../../sim/api-server/schema.ts'
import type { Json, JsonObject } from '../../../sim/api-server/json.ts'

const test = suite('schema')

const fields = (schema: JsonObject, value: Json) => schemaFaults(schema, value, 'spec').map((fault) => `${fault.field} ${fault.reason.slice('FieldValue'.length)}`)

for (const { name, schema, value, gives } of [
  { name: 'a right value', schema: { type: 'object', properties: { a: { type: 'string' } } }, value: { a: 'x' }, gives: [] },
  { name: 'every fault at once, deep ones too', schema: { type: 'object', required: ['a', 'b'], properties: { c: { type: 'array', items: { type: 'integer', minimum: 1 } } } }, value: { c: [0, 'x', 2] }, gives: ['spec.a Required', 'spec.b Required', 'spec.c[0] Invalid', 'spec.c[1] TypeInvalid'] },
  { name: 'null where it may stand', schema: { type: 'string', nullable: true }, value: null, gives: [] },
  { name: 'null where it may not', schema: { type: 'string' }, value: null, gives: ['spec TypeInvalid'] },
  { name: 'a whole number is a number', schema: { type: 'number' }, value: 3, gives: [] },
  { name: 'a word or a number', schema: { 'x-kubernetes-int-or-string': true }, value: 1.5, gives: ['spec TypeInvalid'] },
  { name: 'an open end is not reached', schema: { type: 'integer', maximum: 5, exclusiveMaximum: true }, value: 5, gives: ['spec Invalid'] },
  { name: 'length before pattern', schema: { type: 'string', minLength: 3, pattern: '^x' }, value: 'a', gives: ['spec Invalid'] },
  { name: 'letters count, not bytes', schema: { type: 'string', maxLength: 2 }, value: 'äö', gives: [] },
  { name: 'a letter of two units is one', schema: { type: 'string', minLength: 2, maxLength: 2 }, value: '𝄞𝄢', gives: [] },
  { name: 'too few letters, however many units', schema: { type: 'string', minLength: 2 }, value: '𝄞', gives: ['spec Invalid'] },
  { name: 'too many letters', schema: { type: 'string', maxLength: 2 }, value: 'abc', gives: ['spec TooLong'] },
  { name: 'too many fields', schema: { type: 'object', maxProperties: 1, additionalProperties: { type: 'integer' } }, value: { a: 1, b: 'x' }, gives: ['spec TooMany', 'spec.b TypeInvalid'] },
  { name: 'too few elements', schema: { type: 'array', minItems: 2 }, value: [1], gives: ['spec Invalid'] },
  { name: 'the same element twice in a set', schema: { type: 'array', 'x-kubernetes-list-type': 'set' }, value: ['a', 'b', 'a'], gives: ['spec[2] Duplicate'] },
  { name: 'one of', schema: { type: 'object', oneOf: [{ required: ['a'] }, { required: ['b'] }] }, value: { a: 1, b: 1 }, gives: ['spec Invalid'] },
  { name: 'none of', schema: { type: 'object', not: { required: ['a'] } }, value: { a: 1 }, gives: ['spec Invalid'] },
  { name: 'all of', schema: { type: 'integer', allOf: [{ minimum: 2 }, { maximum: 0 }] }, value: 1, gives: ['spec Invalid', 'spec Invalid'] },
] satisfies { name: string; schema: JsonObject; value: Json; gives: string[] }[]) {
  test(`faults: ${name}`, () => assert.equal(fields(schema, value), gives))
}

test('unknown fields go, those of an embedded object and of an open map stay', () => {
  const schema: JsonObject = {
    type: 'object',
    properties: {
      known: { type: 'object', properties: { a: { type: 'string' } } },
      open: { type: 'object', additionalProperties: { type: 'object', properties: { a: { type: 'string' } } } },
      free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { tight: { type: 'object', properties: {} } } },
      inner: { type: 'object', 'x-kubernetes-embedded-resource': true, properties: {} },
    },
  }
  const value: JsonObject = { known: { a: '', b: 1 }, open: { x: { a: '', b: 1 } }, free: { any: 1, tight: { b: 1 } }, inner: { kind: 'A', other: 1 }, stray: 1 }
  prune(schema, value)
  assert.equal(value, { known: { a: '' }, open: { x: { a: '' } }, free: { any: 1, tight: {} }, inner: { kind: 'A' } })
})

test('defaults fill what is absent or null, and go on inside what they filled', () => {
  const schema: JsonObject = {
    type: 'object',
    properties: {
      a: { type: 'object', default: {}, properties: { b: { type: 'integer', default: 3 } } },
      n: { type: 'string', nullable: true, default: 'x' },
      z: { type: 'string' },
    },
  }
  const value: JsonObject = { a: null, n: null, z: null }
  fillDefaults(schema, value)
  assert.equal(value, { a: { b: 3 }, n: null })
})

test('a default is a copy, not the schema\'s own', () => {
  const schema: JsonObject = { type: 'object', properties: { a: { type: 'array', default: [] } } }
  const value: JsonObject = {}
  fillDefaults(schema, value)
  if (Array.isArray(value['a'])) value['a'].push(1)
  const other: JsonObject = {}
  fillDefaults(schema, other)
  assert.equal(other, { a: [] })
})

test.run()
