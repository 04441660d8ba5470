import * as assert from 'uvu/assert'
import { buoy, configMap, make, maps, node, pod, pods } from '../objects.ts'
import { at, expect, listAt, textAt, versionOf } from '../world.ts'
import type { Case } from '../world.ts'

export const patchCases: readonly Case[] = [
  {
    name: 'a merge patch changes what it names, null removes, the rest stays',
    async run(world) {
      const { path } = await make(world, maps(world), configMap(world.name('m'), { a: '1', b: '2', c: '3' }))
      const next = expect(await world.merge(path, { data: { a: '9', b: null } }), 200)
      assert.equal(at(next.body, 'data'), { a: '9', c: '3' })
    },
  },
  {
    name: 'a merge patch with an older resourceVersion is refused with 409',
    async run(world) {
      const { path, answer } = await make(world, maps(world), configMap(world.name('m'), { a: '1' }))
      expect(await world.merge(path, { data: { a: '2' } }), 200)
      expect(await world.merge(path, { metadata: { resourceVersion: versionOf(answer) }, data: { a: '3' } }), 409, 'Conflict')
    },
  },
  {
    name: 'a merge patch with the current resourceVersion is taken',
    async run(world) {
      const { path, answer } = await make(world, maps(world), configMap(world.name('m'), { a: '1' }))
      expect(await world.merge(path, { metadata: { resourceVersion: versionOf(answer) }, data: { a: '3' } }), 200)
    },
  },
  {
    name: 'a merge patch that means another uid is refused with 422',
    async run(world) {
      const { path } = await make(world, pods(world), pod(world.name('p')))
      expect(await world.merge(`${path}/status`, { metadata: { uid: '11111111-1111-1111-1111-111111111111' }, status: { phase: 'Failed' } }), 422, 'Invalid')
      assert.is(at((await world.get(path)).body, 'status.phase'), 'Pending')
    },
  },
  {
    name: 'a merge patch with the pod\'s own uid and version is taken',
    async run(world) {
      const { path, answer } = await make(world, pods(world), pod(world.name('p')))
      const metadata = { uid: textAt(answer.body, 'metadata.uid'), resourceVersion: versionOf(answer) }
      const next = expect(await world.merge(`${path}/status`, { metadata, status: { phase: 'Failed' } }), 200)
      assert.is(at(next.body, 'status.phase'), 'Failed')
    },
  },
  {
    name: 'a merge patch replaces a list whole',
    async run(world) {
      const name = world.name('b')
      const { path } = await make(world, world.buoys, buoy(world, name, { colour: 'red', lights: [{ at: 'top' }, { at: 'side' }] }))
      const next = expect(await world.merge(path, { spec: { lights: [{ at: 'bottom' }] } }), 200)
      assert.equal(listAt(next.body, 'spec.lights').map((light) => textAt(light, 'at')), ['bottom'])
    },
  },
  {
    name: 'a patch that changes nothing keeps the version',
    async run(world) {
      const { path, answer } = await make(world, maps(world), configMap(world.name('m'), { a: '1' }))
      const same = expect(await world.merge(path, { data: { a: '1' } }), 200)
      assert.is(versionOf(same), versionOf(answer))
    },
  },
  {
    name: 'a JSON patch adds, replaces, removes and appends in order',
    async run(world) {
      const { path } = await make(world, world.buoys, buoy(world, world.name('b'), { colour: 'red', lights: [{ at: 'top' }] }))
      const next = expect(await world.json(path, [
        { op: 'test', path: '/spec/colour', value: 'red' },
        { op: 'replace', path: '/spec/colour', value: 'green' },
        { op: 'add', path: '/spec/lights/-', value: { at: 'side' } },
        { op: 'add', path: '/metadata/labels', value: { 'example.com/a': 'b' } },
        { op: 'add', path: '/metadata/labels/example.com~1c', value: 'd' },
        { op: 'remove', path: '/spec/lights/0' },
      ]), 200)
      assert.is(at(next.body, 'spec.colour'), 'green')
      assert.equal(listAt(next.body, 'spec.lights').map((light) => textAt(light, 'at')), ['side'])
      assert.equal(at(next.body, 'metadata.labels'), { 'example.com/a': 'b', 'example.com/c': 'd' })
    },
  },
  {
    name: 'a JSON patch whose test fails is refused with 422 and changes nothing',
    async run(world) {
      const { path } = await make(world, maps(world), configMap(world.name('m'), { a: '1' }))
      const refused = await world.json(path, [{ op: 'replace', path: '/data/a', value: '2' }, { op: 'test', path: '/data/a', value: '1' }])
      expect(refused, 422, 'Invalid')
      assert.is(at((await world.get(path)).body, 'data.a'), '1')
    },
  },
  {
    name: 'a JSON patch test on resourceVersion guards against another writer',
    async run(world) {
      const { path, answer } = await make(world, maps(world), configMap(world.name('m'), { a: '1' }))
      const guarded = [{ op: 'test', path: '/metadata/resourceVersion', value: versionOf(answer) }, { op: 'replace', path: '/data/a', value: '2' }]
      expect(await world.json(path, guarded), 200)
      expect(await world.json(path, guarded), 422, 'Invalid')
    },
  },
  {
    name: 'a JSON patch that removes what is not there is refused with 422',
    async run(world) {
      const { path } = await make(world, maps(world), configMap(world.name('m')))
      expect(await world.json(path, [{ op: 'remove', path: '/data/a' }]), 422, 'Invalid')
    },
  },
  {
    name: 'a JSON patch that replaces a field that is not there sets it',
    async run(world) {
      const { path } = await make(world, maps(world), configMap(world.name('m'), { b: '1' }))
      const next = expect(await world.json(path, [{ op: 'replace', path: '/data/a', value: 'x' }]), 200)
      assert.equal(at(next.body, 'data'), { a: 'x', b: '1' })
    },
  },
  {
    name: 'a JSON patch test for null holds where nothing is',
    async run(world) {
      const { path } = await make(world, maps(world), configMap(world.name('m'), { b: '1' }))
      expect(await world.json(path, [{ op: 'test', path: '/metadata/labels', value: null }, { op: 'add', path: '/metadata/labels', value: { a: 'b' } }]), 200)
    },
  },
  {
    name: 'a JSON patch that is no list is refused with 400',
    async run(world) {
      const { path } = await make(world, maps(world), configMap(world.name('m')))
      expect(await world.json(path, { data: {} }), 400, 'BadRequest')
    },
  },
  {
    name: 'a JSON patch that adds below what is not there is refused with 422',
    async run(world) {
      const { path } = await make(world, maps(world), configMap(world.name('m')))
      expect(await world.json(path, [{ op: 'add', path: '/metadata/annotations/a', value: 'x' }]), 422, 'Invalid')
    },
  },
  {
    name: 'a strategic merge patch merges a pod\'s conditions by type',
    async run(world) {
      const { path } = await make(world, pods(world), pod(world.name('p')))
      expect(await world.strategic(`${path}/status`, { status: { conditions: [{ type: 'Ready', status: 'False' }, { type: 'Other', status: 'True' }] } }), 200)
      const next = expect(await world.strategic(`${path}/status`, { status: { conditions: [{ type: 'Ready', status: 'True' }] } }), 200)
      const conditions = listAt(next.body, 'status.conditions').map((one) => `${textAt(one, 'type')}=${textAt(one, 'status')}`)
      assert.ok(conditions.includes('Ready=True'), conditions.join())
      assert.ok(conditions.includes('Other=True'), conditions.join())
    },
  },
  {
    name: 'a strategic merge patch replaces a node\'s taints whole',
    async run(world) {
      const name = world.name('n')
      const { path } = await make(world, '/api/v1/nodes', { ...node(name), spec: { taints: [{ key: 'example.com/a', effect: 'NoSchedule' }] } } as ReturnType<typeof node>)
      const next = expect(await world.strategic(path, { spec: { taints: [{ key: 'example.com/b', effect: 'NoSchedule' }] } }), 200)
      assert.equal(listAt(next.body, 'spec.taints').map((taint) => textAt(taint, 'key')).filter((key) => key.startsWith('example.com')), ['example.com/b'])
    },
  },
  {
    name: 'a strategic merge patch joins finalizers',
    async run(world) {
      const sketch = configMap(world.name('m'))
      const { path } = await make(world, maps(world), { ...sketch, metadata: { ...sketch.metadata, finalizers: ['example.com/a'] } } as typeof sketch)
      const next = expect(await world.strategic(path, { metadata: { finalizers: ['example.com/b'] } }), 200)
      assert.equal(listAt(next.body, 'metadata.finalizers').toSorted(), ['example.com/a', 'example.com/b'])
    },
  },
  {
    name: 'a strategic merge patch deletes one element by its key',
    async run(world) {
      const name = world.name('n')
      const { path } = await make(world, '/api/v1/nodes', node(name))
      expect(await world.strategic(`${path}/status`, { status: { conditions: [{ type: 'Odd', status: 'True' }, { type: 'Even', status: 'True' }] } }), 200)
      const next = expect(await world.strategic(`${path}/status`, { status: { conditions: [{ type: 'Odd', $patch: 'delete' }] } }), 200)
      const types = listAt(next.body, 'status.conditions').map((one) => textAt(one, 'type'))
      assert.ok(!types.includes('Odd') && types.includes('Even'), types.join())
    },
  },
  {
    name: 'a strategic merge patch on a custom kind is refused with 415',
    async run(world) {
      const { path } = await make(world, world.buoys, buoy(world, world.name('b')))
      expect(await world.strategic(path, { spec: { depth: 3 } }), 415, 'UnsupportedMediaType')
    },
  },
  {
    name: 'a PATCH of an unknown kind of patch is refused with 415',
    async run(world) {
      const { path } = await make(world, maps(world), configMap(world.name('m')))
      expect(await world.call('PATCH', path, {}, { 'content-type': 'application/json' }), 415, 'UnsupportedMediaType')
    },
  },
  {
    name: 'a PATCH of what is not there is a 404',
    async run(world) {
      expect(await world.merge(`${maps(world)}/not-there`, { data: {} }), 404, 'NotFound')
    },
  },
  {
    name: 'a patch cannot rename',
    async run(world) {
      const { path } = await make(world, maps(world), configMap(world.name('m')))
      expect(await world.merge(path, { metadata: { name: 'another' } }), 400, 'BadRequest')
    },
  },
  {
    name: 'an empty list in a patch of a built-in kind leaves no field behind',
    async run(world) {
      const sketch = configMap(world.name('m'))
      const { path } = await make(world, maps(world), { ...sketch, metadata: { ...sketch.metadata, finalizers: ['example.com/a'] } } as typeof sketch)
      const next = expect(await world.merge(path, { metadata: { finalizers: [] } }), 200)
      assert.is(at(next.body, 'metadata.finalizers'), undefined)
    },
  },
  {
    name: 'a dry-run patch answers as if and stores nothing',
    async run(world) {
      const { path } = await make(world, maps(world), configMap(world.name('m'), { a: '1' }))
      const next = expect(await world.merge(`${path}?dryRun=All`, { data: { a: '2' } }), 200)
      assert.is(at(next.body, 'data.a'), '2')
      assert.is(at((await world.get(path)).body, 'data.a'), '1')
    },
  },
]
