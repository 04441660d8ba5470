import * as assert from 'uvu/assert'
import { buoyDefinition } from '../buoy.ts'
import { buoy, make } from '../objects.ts'
import { at, expect, faults, listAt, textAt } from '../world.ts'
import type { Case, World } from '../world.ts'

const refusedSpec = async (world: World, spec: object) => expect(await world.post(world.buoys, buoy(world, world.name('b'), spec)), 422, 'Invalid')

export const customCases: readonly Case[] = [
  {
    name: 'a definition is established',
    async run(world) {
      const definition = expect(await world.get(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/buoys.${world.group}`), 200)
      const established = listAt(definition.body, 'status.conditions').filter((one) => textAt(one, 'type') === 'Established')
      assert.is(textAt(established[0], 'status'), 'True')
      assert.equal(at(definition.body, 'status.storedVersions'), ['v1'])
    },
  },
  {
    name: 'defaults are filled in, in list elements too',
    async run(world) {
      const { answer } = await make(world, world.buoys, buoy(world, world.name('b'), { colour: 'red', lights: [{ at: 'top' }] }))
      assert.is(at(answer.body, 'spec.depth'), 10)
      assert.is(at(answer.body, 'spec.lights.0.watts'), 5)
    },
  },
  {
    name: 'unknown fields are pruned',
    async run(world) {
      const { answer } = await make(world, world.buoys, { ...buoy(world, world.name('b'), { colour: 'red', flavour: 'salt', lights: [{ at: 'top', shade: 'x' }] }), extra: 1 } as ReturnType<typeof buoy>)
      assert.is(at(answer.body, 'spec.flavour'), undefined)
      assert.is(at(answer.body, 'spec.lights.0.shade'), undefined)
      assert.is(at(answer.body, 'extra'), undefined)
    },
  },
  {
    name: 'unknown fields are kept where the schema keeps them',
    async run(world) {
      const { answer } = await make(world, world.buoys, buoy(world, world.name('b'), { colour: 'red', anything: { goes: { here: [1, 'two'] } }, notes: { free: 'yes' } }))
      assert.equal(at(answer.body, 'spec.anything'), { goes: { here: [1, 'two'] } })
      assert.equal(at(answer.body, 'spec.notes'), { free: 'yes' })
    },
  },
  {
    name: 'a missing required field is refused with 422 naming it',
    async run(world) {
      assert.equal(faults(await refusedSpec(world, {})), ['spec.colour'])
    },
  },
  {
    name: 'a word outside the enum is refused with 422',
    async run(world) {
      const refused = await refusedSpec(world, { colour: 'blue' })
      assert.equal(faults(refused), ['spec.colour'])
      assert.is(textAt(refused.body, 'details', 'causes', 0, 'reason'), 'FieldValueNotSupported')
    },
  },
  {
    name: 'every fault is listed, each with its path',
    async run(world) {
      const refused = await refusedSpec(world, { colour: 'blue', depth: 0, name: 'X', lights: [{}, {}, {}, {}], notes: { a: 'b' } })
      const found = faults(refused)
      for (const field of ['spec.colour', 'spec.depth', 'spec.name', 'spec.lights']) assert.ok(found.includes(field), `${field} in ${found.join()}`)
    },
  },
  {
    name: 'a wrong type is refused with 422',
    async run(world) {
      assert.equal(faults(await refusedSpec(world, { colour: 'red', depth: 'deep' })), ['spec.depth'])
      assert.ok(faults(await refusedSpec(world, { colour: 'red', depth: 1.5 })).includes('spec.depth'))
      assert.equal(faults(await refusedSpec(world, { colour: 'red', lights: 'many' })), ['spec.lights'])
    },
  },
  {
    name: 'an element of a list is named by its place',
    async run(world) {
      assert.equal(faults(await refusedSpec(world, { colour: 'red', lights: [{ at: 'top' }, { watts: 3 }] })), ['spec.lights[1].at'])
    },
  },
  {
    name: 'a time that is none is refused with 422',
    async run(world) {
      assert.equal(faults(await refusedSpec(world, { colour: 'red', until: 'tomorrow' })), ['spec.until'])
    },
  },
  {
    name: 'null stands where it may, and is as good as absent where a default is',
    async run(world) {
      const { answer } = await make(world, world.buoys, buoy(world, world.name('b'), { colour: 'red', nothing: null, depth: null }))
      assert.is(at(answer.body, 'spec.nothing'), null)
      assert.is(at(answer.body, 'spec.depth'), 10)
    },
  },
  {
    name: 'a number or a word where both may stand',
    async run(world) {
      const { path } = await make(world, world.buoys, buoy(world, world.name('b'), { colour: 'red', fill: 3 }))
      assert.is(at(expect(await world.merge(path, { spec: { fill: '30%' } }), 200).body, 'spec.fill'), '30%')
      expect(await world.merge(path, { spec: { fill: true } }), 422, 'Invalid')
    },
  },
  {
    name: 'a patch is checked like a create',
    async run(world) {
      const { path } = await make(world, world.buoys, buoy(world, world.name('b')))
      assert.equal(faults(expect(await world.merge(path, { spec: { depth: 101 } }), 422, 'Invalid')), ['spec.depth'])
    },
  },
  {
    name: 'a status is checked and pruned too',
    async run(world) {
      const { path } = await make(world, world.buoys, buoy(world, world.name('b')))
      const next = expect(await world.merge(`${path}/status`, { status: { phase: 'afloat', rumour: 'x' } }), 200)
      assert.equal(at(next.body, 'status'), { phase: 'afloat' })
      expect(await world.merge(`${path}/status`, { status: { seen: 'often' } }), 422, 'Invalid')
    },
  },
  {
    name: 'two elements of one key in a list that is a map are refused with 422',
    async run(world) {
      const { path } = await make(world, world.buoys, buoy(world, world.name('b')))
      const twice = [{ type: 'Lit', status: 'True' }, { type: 'Lit', status: 'False' }]
      const refused = expect(await world.merge(`${path}/status`, { status: { conditions: twice } }), 422, 'Invalid')
      assert.is(textAt(refused.body, 'details', 'causes', 0, 'reason'), 'FieldValueDuplicate')
    },
  },
  {
    name: 'a custom object of another version than its path is refused with 400',
    async run(world) {
      expect(await world.post(world.buoys, { ...buoy(world, world.name('b')), apiVersion: `${world.group}/v2` }), 400, 'BadRequest')
    },
  },
  {
    name: 'a custom object without kind is refused with 400',
    async run(world) {
      expect(await world.post(world.buoys, { apiVersion: `${world.group}/v1`, metadata: { name: world.name('b') }, spec: { colour: 'red' } }), 400, 'BadRequest')
    },
  },
  {
    name: 'a definition whose name is not plural and group is refused with 422',
    async run(world) {
      const definition = buoyDefinition(`${world.name('x')}.example.com`)
      const refused = expect(await world.post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { ...definition, metadata: { name: 'buoys.another.example.com' } }), 422, 'Invalid')
      assert.ok(faults(refused).includes('metadata.name'))
    },
  },
  {
    name: 'a new definition is served soon, and not any more once it is deleted',
    async run(world) {
      const group = `${world.name('x')}.example.com`
      const path = world.made(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/buoys.${group}`)
      expect(await world.post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', buoyDefinition(group)), 201)
      await world.eventually('the new kind', async () => (await world.get(`/apis/${group}/v1/buoys`)).status === 200)
      expect(await world.remove(path), 200)
      await world.eventually('the end of the kind', async () => (await world.get(`/apis/${group}/v1/buoys`)).status === 404)
    },
  },
  {
    name: 'what stands there is read by the definition as it is now: new defaults filled in, fields that it has no more left out, under the same version',
    async run(world) {
      const group = `${world.name('x')}.example.com`
      const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
      const path = world.made(`${definitions}/buoys.${group}`)
      const definition = buoyDefinition(group)
      expect(await world.post(definitions, definition), 201)
      await world.eventually('the kind', async () => (await world.get(`/apis/${group}/v1/buoys`)).status === 200)
      const own = `/apis/${group}/v1/buoys/b`
      const made = expect(await world.post(`/apis/${group}/v1/buoys`, { apiVersion: `${group}/v1`, kind: 'Buoy', metadata: { name: 'b' }, spec: { colour: 'red', name: 'lone', depth: 3 } }), 201)
      const [version] = definition.spec.versions
      const { name: _, ...fewer } = version?.schema.openAPIV3Schema.properties.spec.properties ?? {}
      const properties = { spec: { type: 'object', properties: { ...fewer, colour: { type: 'string', enum: ['green'] }, beacon: { type: 'string', default: 'white' } } } }
      expect(await world.json(path, [{ op: 'replace', path: '/spec/versions/0/schema/openAPIV3Schema/properties', value: properties }]), 200)
      await world.eventually('the new definition', async () => at((await world.get(own)).body, 'spec.beacon') === 'white')
      const read = expect(await world.get(own), 200)
      assert.equal(at(read.body, 'spec'), { colour: 'red', depth: 3, beacon: 'white' })
      assert.is(textAt(read.body, 'metadata', 'resourceVersion'), textAt(made.body, 'metadata', 'resourceVersion'))
    },
  },
]
