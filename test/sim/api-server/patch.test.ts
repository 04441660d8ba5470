import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { jsonPatch, mergePatch } from '../../../sim/api-server/patch.ts'
import type { Json } from '../../../sim/api-server/json.ts'

const test = suite('patch')

const patched = (document: Json, ...steps: Json[]) => {
  const result = jsonPatch(structuredClone(document), steps)
  return 'fault' in result ? 'refused' : result.document
}

for (const { name, document, steps, gives } of [
  { name: 'add into a list at a place', document: { a: [1, 3] }, steps: [{ op: 'add', path: '/a/1', value: 2 }], gives: { a: [1, 2, 3] } },
  { name: 'add at the end of a list', document: { a: [1] }, steps: [{ op: 'add', path: '/a/-', value: 2 }], gives: { a: [1, 2] } },
  { name: 'add past the end of a list', document: { a: [1] }, steps: [{ op: 'add', path: '/a/3', value: 2 }], gives: 'refused' },
  { name: 'add without a value', document: {}, steps: [{ op: 'add', path: '/a' }], gives: 'refused' },
  { name: 'add below nothing', document: {}, steps: [{ op: 'add', path: '/a/b', value: 1 }], gives: 'refused' },
  { name: 'replace in a list', document: { a: [1, 2] }, steps: [{ op: 'replace', path: '/a/0', value: 9 }], gives: { a: [9, 2] } },
  { name: 'replace past the end of a list', document: { a: [1] }, steps: [{ op: 'replace', path: '/a/1', value: 9 }], gives: 'refused' },
  { name: 'replace what is not there', document: {}, steps: [{ op: 'replace', path: '/a', value: 9 }], gives: { a: 9 } },
  { name: 'replace everything', document: { a: 1 }, steps: [{ op: 'replace', path: '', value: { b: 2 } }], gives: { b: 2 } },
  { name: 'remove from the end of a list', document: { a: [1, 2] }, steps: [{ op: 'remove', path: '/a/-1' }], gives: { a: [1] } },
  { name: 'remove what is not there', document: {}, steps: [{ op: 'remove', path: '/a' }], gives: 'refused' },
  { name: 'move', document: { a: 1 }, steps: [{ op: 'move', from: '/a', path: '/b' }], gives: { b: 1 } },
  { name: 'move from nowhere', document: {}, steps: [{ op: 'move', from: '/a', path: '/b' }], gives: 'refused' },
  { name: 'copy', document: { a: { c: 1 } }, steps: [{ op: 'copy', from: '/a', path: '/b' }, { op: 'replace', path: '/b/c', value: 2 }], gives: { a: { c: 1 }, b: { c: 2 } } },
  { name: 'test that holds', document: { a: [{ b: 1, c: 2 }] }, steps: [{ op: 'test', path: '/a/0', value: { c: 2, b: 1 } }], gives: { a: [{ b: 1, c: 2 }] } },
  { name: 'test that fails', document: { a: 1 }, steps: [{ op: 'test', path: '/a', value: 2 }], gives: 'refused' },
  { name: 'test for absence', document: {}, steps: [{ op: 'test', path: '/a', value: null }], gives: {} },
  { name: 'test below nothing', document: {}, steps: [{ op: 'test', path: '/a/b', value: null }], gives: 'refused' },
  { name: 'escapes in a path', document: { 'a/b': { 'c~d': 1 } }, steps: [{ op: 'remove', path: '/a~1b/c~0d' }], gives: { 'a/b': {} } },
  { name: 'an unknown operation', document: {}, steps: [{ op: 'frob', path: '/a' }], gives: 'refused' },
]) {
  test(`JSON patch: ${name}`, () => assert.equal(patched(document, ...steps), gives))
}

test('a JSON patch that is no list is malformed, one that fails is not', () => {
  const malformed = jsonPatch({}, {})
  const failed = jsonPatch({}, [{ op: 'remove', path: '/a' }])
  assert.ok('fault' in malformed && malformed.malformed)
  assert.ok('fault' in failed && !failed.malformed)
})

// The table of RFC 7386, appendix A.
for (const [document, patch, gives] of [
  [{ a: 'b' }, { a: 'c' }, { a: 'c' }], [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }], [{ a: 'b' }, { a: null }, {}], [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
  [{ a: ['b'] }, { a: 'c' }, { a: 'c' }], [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }], [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
  [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }], [['a', 'b'], ['c', 'd'], ['c', 'd']], [{ a: 'b' }, ['c'], ['c']], [{ a: 'foo' }, null, null], [{ a: 'foo' }, 'bar', 'bar'],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }], [[1, 2], { a: 'b', c: null }, { a: 'b' }], [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
] satisfies [Json, Json, Json][]) {
  test(`merge patch: ${JSON.stringify(patch)} on ${JSON.stringify(document)}`, () => assert.equal(mergePatch(structuredClone(document), patch), gives))
}

test.run()
