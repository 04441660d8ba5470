import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { jsonPath, shortSpan } from '../../../sim/api-server/json-path.ts'

const test = suite('JSONPath')

const object = { spec: { colour: 'red', deep: { list: [{ a: 1 }, { a: 2 }] } }, metadata: { labels: { 'example.com/zone': 'a' } }, status: { conditions: [{ type: 'Ready', status: 'True' }, { type: 'Odd', status: 'False' }] } }

for (const [path, gives] of [
  ['.spec.colour', ['red']], ['.spec.none', []], ['.spec.deep.list[0].a', [1]], ['.spec.deep.list[-1].a', [2]], ['.spec.deep.list[*].a', [1, 2]],
  ['.status.conditions[?(@.type=="Ready")].status', ['True']], ['.status.conditions[?(@.type!="Ready")].type', ['Odd']], ['.status.conditions[?(@.type==\'None\')].status', []],
  ['.metadata.labels.example\\.com/zone', ['a']], ['.metadata.labels[\'example.com/zone\']', ['a']],
] as const) {
  test(`${path} finds ${JSON.stringify(gives)}`, () => assert.equal(jsonPath(object, path), [...gives]))
}

for (const [seconds, text] of [[0, '0s'], [119, '119s'], [120, '2m'], [121, '2m1s'], [600, '10m'], [3_599, '59m'], [10_800, '3h'], [10_860, '3h1m'], [28_800, '8h'], [172_800, '2d'], [176_400, '2d1h'], [691_200, '8d']] as const) {
  test(`${seconds} seconds are ${text}`, () => assert.is(shortSpan(seconds * 1000), text))
}

test.run()
