import * as assert from 'uvu/assert'
import { buoy, configMap, make, maps, pod, pods } from '../objects.ts'
import { at, expect, faults, listAt, textAt, versionOf } from '../world.ts'
import type { Case } from '../world.ts'

export const createCases: readonly Case[] = [
  {
    name: 'create answers 201 with uid, resourceVersion and creationTimestamp',
    async run(world) {
      const { answer } = await make(world, maps(world), configMap(world.name('m'), { a: '1' }))
      assert.match(textAt(answer.body, 'metadata.uid'), /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/)
      assert.match(versionOf(answer), /^\d+$/)
      assert.match(textAt(answer.body, 'metadata.creationTimestamp'), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
      assert.is(at(answer.body, 'data.a'), '1')
      assert.is(textAt(answer.body, 'kind'), 'ConfigMap')
    },
  },
  {
    name: 'a second create under the same name is refused with 409 AlreadyExists',
    async run(world) {
      const object = configMap(world.name('m'))
      await make(world, maps(world), object)
      const again = expect(await world.post(maps(world), object), 409, 'AlreadyExists')
      assert.is(textAt(again.body, 'details.name'), object.metadata.name)
    },
  },
  {
    name: 'a create in a namespace that is not there is refused with 404',
    async run(world) {
      expect(await world.post('/api/v1/namespaces/nowhere-at-all/configmaps', configMap('m')), 404, 'NotFound')
    },
  },
  {
    name: 'an invalid name is refused with 422 naming metadata.name',
    async run(world) {
      const refused = expect(await world.post(maps(world), configMap('Not_A_Name')), 422, 'Invalid')
      assert.equal(faults(refused), ['metadata.name'])
    },
  },
  {
    name: 'a create without a name is refused with 422',
    async run(world) {
      const refused = expect(await world.post(maps(world), { apiVersion: 'v1', kind: 'ConfigMap', metadata: {} }), 422, 'Invalid')
      assert.equal(faults(refused), ['metadata.name'])
    },
  },
  {
    name: 'generateName makes a name of its own each time',
    async run(world) {
      const sketch = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: world.name('g-') } }
      const names = [await world.post(maps(world), sketch), await world.post(maps(world), sketch)].map((answer) => textAt(expect(answer, 201).body, 'metadata.name'))
      for (const name of names) world.made(`${maps(world)}/${name}`)
      assert.is.not(names[0], names[1])
      for (const name of names) assert.match(name, new RegExp(`^${sketch.metadata.generateName}[a-z0-9]{5}$`))
    },
  },
  {
    name: 'a create whose body names another namespace is refused with 400',
    async run(world) {
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: world.name('m'), namespace: 'default' } }
      expect(await world.post(maps(world), object), 400, 'BadRequest')
    },
  },
  {
    name: 'a create of another kind than the path serves is refused with 400',
    async run(world) {
      expect(await world.post(maps(world), { apiVersion: 'v1', kind: 'Secret', metadata: { name: world.name('m') } }), 400, 'BadRequest')
    },
  },
  {
    name: 'a create in another version than the path serves is refused with 400',
    async run(world) {
      expect(await world.post(maps(world), { apiVersion: 'v2', kind: 'ConfigMap', metadata: { name: world.name('m') } }), 400, 'BadRequest')
    },
  },
  {
    name: 'a body that is not JSON is refused with 400',
    async run(world) {
      expect(await world.call('POST', maps(world), '{"kind":', {}), 400, 'BadRequest')
    },
  },
  {
    name: 'a create does not let the client set uid, generation or deletionTimestamp',
    async run(world) {
      const name = world.name('p')
      const sketch = pod(name)
      const meta = { ...sketch.metadata, uid: '11111111-1111-1111-1111-111111111111', generation: 7, deletionTimestamp: '2020-01-01T00:00:00Z' }
      const { answer } = await make(world, pods(world), { ...sketch, metadata: meta })
      assert.is.not(textAt(answer.body, 'metadata.uid'), meta.uid)
      assert.is(at(answer.body, 'metadata.deletionTimestamp'), undefined)
      assert.is(at(answer.body, 'metadata.generation'), 1)
    },
  },
  {
    name: 'a create that carries a resourceVersion is refused',
    async run(world) {
      const name = world.name('m')
      world.made(`${maps(world)}/${name}`)
      const refused = await world.post(maps(world), { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, resourceVersion: '5' } })
      expect(refused, 500)
    },
  },
  {
    name: 'a dry-run create answers as if and stores nothing',
    async run(world) {
      const object = configMap(world.name('m'))
      expect(await world.post(`${maps(world)}?dryRun=All`, object), 201)
      expect(await world.get(`${maps(world)}/${object.metadata.name}`), 404, 'NotFound')
    },
  },
  {
    name: 'a label value that is no label value is refused with 422',
    async run(world) {
      const refused = expect(await world.post(maps(world), { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: world.name('m'), labels: { a: 'not a value!' } } }), 422, 'Invalid')
      assert.equal(faults(refused), ['metadata.labels'])
    },
  },
  {
    name: 'an annotation key that is no key is refused with 422',
    async run(world) {
      const refused = expect(await world.post(maps(world), { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: world.name('m'), annotations: { 'a b': 'x' } } }), 422, 'Invalid')
      assert.equal(faults(refused), ['metadata.annotations'])
    },
  },
  {
    name: 'an owner reference without uid is refused with 422',
    async run(world) {
      const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: '' }
      const refused = expect(await world.post(maps(world), { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: world.name('m'), ownerReferences: [owner] } }), 422, 'Invalid')
      assert.equal(faults(refused), ['metadata.ownerReferences.uid'])
    },
  },
  {
    name: 'a get of what is not there is a 404 with the name in its details',
    async run(world) {
      const missing = expect(await world.get(`${maps(world)}/not-there`), 404, 'NotFound')
      assert.is(textAt(missing.body, 'details.name'), 'not-there')
      assert.is(textAt(missing.body, 'details.kind'), 'configmaps')
      assert.is(textAt(missing.body, 'message'), 'configmaps "not-there" not found')
    },
  },
  {
    name: 'a kind that is not served is a 404 without a name',
    async run(world) {
      const missing = expect(await world.get('/apis/nobody.example/v1/things'), 404)
      assert.is(at(missing.body, 'details.name'), undefined)
    },
  },
  {
    name: 'the refusals of a custom kind carry its group in their details',
    async run(world) {
      const missing = expect(await world.get(`${world.buoys}/not-there`), 404, 'NotFound')
      assert.is(textAt(missing.body, 'details', 'group'), world.group)
      assert.is(textAt(missing.body, 'message'), `buoys.${world.group} "not-there" not found`)
    },
  },
  {
    name: 'one counter of writes serves every kind',
    async run(world) {
      const first = await make(world, maps(world), configMap(world.name('a')))
      const second = await make(world, world.buoys, buoy(world, world.name('b')))
      const third = await make(world, maps(world), configMap(world.name('c')))
      const versions = [first, second, third].map(({ answer }) => Number(versionOf(answer)))
      assert.equal(versions, versions.toSorted((one, other) => one - other))
      assert.is(new Set(versions).size, 3)
    },
  },
  {
    name: 'POST to an object is not a method',
    async run(world) {
      const { path } = await make(world, maps(world), configMap(world.name('m')))
      expect(await world.post(path, configMap('x')), 405, 'MethodNotAllowed')
    },
  },
  {
    name: 'a list item of a built-in kind does not say its kind, the list does',
    async run(world) {
      const name = world.name('m')
      await make(world, maps(world), configMap(name))
      const list = expect(await world.get(`${maps(world)}?fieldSelector=metadata.name=${name}`), 200)
      assert.is(textAt(list.body, 'kind'), 'ConfigMapList')
      assert.is(textAt(list.body, 'apiVersion'), 'v1')
      assert.is(listAt(list.body, 'items').length, 1)
      assert.is(at(list.body, 'items', 0, 'kind'), undefined)
    },
  },
]
