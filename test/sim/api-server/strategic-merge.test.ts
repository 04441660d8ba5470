import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { strategicMerge } from '../../../sim/api-server/strategic-merge.ts'
import type { Json, JsonObject } from '../../../sim/api-server/json.ts'

const test = suite('strategic merge')

const merged = (document: JsonObject, patch: JsonObject): Json => {
  const result = strategicMerge(structuredClone(document), patch)
  return 'fault' in result ? result.fault : result.document
}
const named = (...names: string[]): JsonObject[] => names.map((name) => ({ name }))

for (const { name, document, patch, gives } of [
  { name: 'an element is merged by its key and keeps its place', document: { containers: [{ name: 'a', image: '1', tty: true }, { name: 'b' }] }, patch: { containers: [{ name: 'a', image: '2' }] }, gives: { containers: [{ name: 'a', image: '2', tty: true }, { name: 'b' }] } },
  { name: 'an element that is new comes before those not named', document: { containers: named('a', 'b') }, patch: { containers: named('c') }, gives: { containers: named('c', 'a', 'b') } },
  { name: 'the order that is asked for is given', document: { containers: named('a', 'b') }, patch: { '$setElementOrder/containers': named('b', 'a', 'c'), containers: named('c') }, gives: { containers: named('b', 'a', 'c') } },
  { name: 'an element is deleted by its key', document: { conditions: [{ type: 'A' }, { type: 'B' }] }, patch: { conditions: [{ type: 'A', $patch: 'delete' }] }, gives: { conditions: [{ type: 'B' }] } },
  { name: 'deleting what is not there changes nothing', document: { conditions: [{ type: 'B' }] }, patch: { conditions: [{ type: 'A', $patch: 'delete' }] }, gives: { conditions: [{ type: 'B' }] } },
  { name: 'a list is replaced when the patch says so', document: { containers: named('a', 'b') }, patch: { containers: [{ $patch: 'replace' }, { name: 'c' }] }, gives: { containers: named('c') } },
  { name: 'a list without a key is replaced', document: { taints: [{ key: 'a' }], tolerations: [{ key: 'a' }] }, patch: { taints: [{ key: 'b' }], tolerations: [] }, gives: { taints: [{ key: 'b' }], tolerations: [] } },
  { name: 'finalizers are joined, new ones first', document: { finalizers: ['a'] }, patch: { finalizers: ['b', 'a'] }, gives: { finalizers: ['b', 'a'] } },
  { name: 'a finalizer is taken from the list', document: { finalizers: ['a', 'b'] }, patch: { '$deleteFromPrimitiveList/finalizers': ['a'] }, gives: { finalizers: ['b'] } },
  { name: 'null removes a field', document: { a: 1, b: 2 }, patch: { a: null }, gives: { b: 2 } },
  { name: 'an object is replaced when the patch says so', document: { strategy: { type: 'RollingUpdate', rollingUpdate: {} } }, patch: { strategy: { $patch: 'replace', type: 'Recreate' } }, gives: { strategy: { type: 'Recreate' } } },
  { name: 'only the keys that are retained stay', document: { strategy: { type: 'RollingUpdate', rollingUpdate: {} } }, patch: { strategy: { $retainKeys: ['type'], type: 'Recreate' } }, gives: { strategy: { type: 'Recreate' } } },
  { name: 'ports of a container and of a service have keys of their own', document: { ports: [{ containerPort: 1 }] }, patch: { ports: [{ containerPort: 1, name: 'a' }] }, gives: { ports: [{ containerPort: 1, name: 'a' }] } },
  { name: 'volume attachments in use are replaced whole', document: { volumesInUse: ['a', 'b'] }, patch: { volumesInUse: ['b'] }, gives: { volumesInUse: ['b'] } },
  { name: 'nulls in an element that is new are dropped', document: {}, patch: { containers: [{ name: 'a', image: null }] }, gives: { containers: named('a') } },
  { name: 'owners are merged by uid', document: { ownerReferences: [{ uid: '1', name: 'a' }] }, patch: { ownerReferences: [{ uid: '1', controller: true }] }, gives: { ownerReferences: [{ uid: '1', name: 'a', controller: true }] } },
] satisfies { name: string; document: JsonObject; patch: JsonObject; gives: JsonObject }[]) {
  test(name, () => assert.equal(merged(document, patch), gives))
}

test('an element without its key is refused', () => {
  assert.match(String(merged({ containers: named('a') }, { containers: [{ image: 'x' }] })), 'does not contain declared merge key: name')
})

test.run()
