import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { FenceConfigMap } from '../../coordinator/fence-config.ts'
import { pack, unpack } from '../../coordinator/fence-kept.ts'

const test = suite('kept fence ConfigMaps')

const map = (name: string, text: string): FenceConfigMap => ({ name, data: { 'config.properties': text } })
const byName = (...maps: readonly FenceConfigMap[]): ReadonlyMap<string, FenceConfigMap> => new Map(maps.map((one) => [one.name, one]))
const template = map('fence-method-template-bmc', 'good')

test('what was packed is unpacked, the changed by its text and the unchanged from where it stands', () => {
  const own = map('fence-config-node-1', 'x=1')
  const present = byName(own, map(template.name, 'bad'))
  const { text, left } = pack(new Map([['node-1', [template, own]]]), present)
  assert.equal(left, [])
  assert.match(text, /good/)
  assert.not.match(text, /x=1/)
  assert.equal(unpack(text).of('node-1', present), [template, own])
  assert.is(unpack(text).of('node-1', byName(map(own.name, 'x=2'))), undefined, 'one that stood and stands no more')
  for (const nobody of ['node-2', '__proto__', 'toString']) assert.is(unpack(text).of(nobody, present), undefined, nobody)
})

test('a typo in the template of five thousand nodes fits into one object', () => {
  const names = Array.from({ length: 5_000 }, (_, index) => `worker-${index}.rack-7.example.com`)
  const owns = names.map((name) => map(`fence-config-${name}`, `node_name=${name}\n${'plug=1\n'.repeat(20)}`))
  const good = new Map(names.map((name, index) => [name, [template, owns[index] ?? template]]))
  const present = byName(...owns, map(template.name, 'bad'))
  const { text, left } = pack(good, present)
  assert.is(left.length, 0)
  assert.ok(Buffer.byteLength(text) < 1_000_000)
  const read = unpack(text)
  for (const name of names) assert.is(read.of(name, present)?.length, 2)
})

test('what has no room is left out by its name, and the rest is whole', () => {
  const good = new Map(['node-1', 'node-2', 'node-3'].map((name) => [name, [map(`fence-config-${name}`, 'é'.repeat(name === 'node-2' ? 400 : 10))]]))
  const { text, left } = pack(good, new Map(), 500)
  assert.equal(left, ['node-2'])
  assert.ok(Buffer.byteLength(text) <= 500)
  assert.equal(unpack(text).nodes(), ['node-1', 'node-3'])
  assert.equal(unpack(text).of('node-3', new Map()), good.get('node-3'))
})

test('the same is packed into the same text, in whatever order it came', () => {
  const entries = ['node-1', 'node-2'].map((name): [string, FenceConfigMap[]] => [name, [template, map(`fence-config-${name}`, name)]])
  assert.is(pack(new Map(entries.toReversed()), new Map()).text, pack(new Map(entries), new Map()).text)
})

test.run()
