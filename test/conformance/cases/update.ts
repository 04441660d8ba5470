import * as assert from 'uvu/assert'
import { buoy, configMap, make, maps, pod, pods } from '../objects.ts'
import { at, expect, faults, textAt, versionOf } from '../world.ts'
import type { Case } from '../world.ts'

export const updateCases: readonly Case[] = [
  {
    name: 'a PUT under the version read is taken and gets a higher version',
    async run(world) {
      const { path, answer } = await make(world, maps(world), configMap(world.name('m'), { a: '1' }))
      const next = expect(await world.put(path, { ...answer.body, data: { a: '2' } }), 200)
      assert.is(at(next.body, 'data.a'), '2')
      assert.ok(Number(versionOf(next)) > Number(versionOf(answer)))
      assert.is(textAt(next.body, 'metadata.uid'), textAt(answer.body, 'metadata.uid'))
    },
  },
  {
    name: 'a PUT under an older version is refused with 409 Conflict and changes nothing',
    async run(world) {
      const { path, answer } = await make(world, maps(world), configMap(world.name('m'), { a: '1' }))
      expect(await world.put(path, { ...answer.body, data: { a: '2' } }), 200)
      const refused = expect(await world.put(path, { ...answer.body, data: { a: '3' } }), 409, 'Conflict')
      assert.match(textAt(refused.body, 'message'), 'the object has been modified')
      assert.is(at((await world.get(path)).body, 'data.a'), '2')
    },
  },
  {
    name: 'a PUT without a version replaces a built-in kind whatever it is by now',
    async run(world) {
      const { path } = await make(world, maps(world), configMap(world.name('m'), { a: '1' }))
      const name = path.split('/').at(-1) ?? ''
      const next = expect(await world.put(path, configMap(name, { b: '2' })), 200)
      assert.equal(at(next.body, 'data'), { b: '2' })
    },
  },
  {
    name: 'a PUT without a version on a custom kind is refused with 422',
    async run(world) {
      const name = world.name('b')
      const { path } = await make(world, world.buoys, buoy(world, name))
      const refused = expect(await world.put(path, buoy(world, name, { colour: 'green' })), 422, 'Invalid')
      assert.equal(faults(refused), ['metadata.resourceVersion'])
    },
  },
  {
    name: 'a PUT to what is not there is a 404',
    async run(world) {
      const name = world.name('m')
      expect(await world.put(`${maps(world)}/${name}`, configMap(name)), 404, 'NotFound')
    },
  },
  {
    name: 'a PUT whose body has another name than the path is refused with 400',
    async run(world) {
      const { path } = await make(world, maps(world), configMap(world.name('m')))
      expect(await world.put(path, configMap('another')), 400, 'BadRequest')
    },
  },
  {
    name: 'a PUT that means another uid is refused with 409',
    async run(world) {
      const name = world.name('m')
      const { path } = await make(world, maps(world), configMap(name))
      const other = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, uid: '11111111-1111-1111-1111-111111111111' } }
      expect(await world.put(path, other), 409, 'Conflict')
    },
  },
  {
    name: 'a PUT that changes nothing keeps the version',
    async run(world) {
      const { path, answer } = await make(world, maps(world), configMap(world.name('m'), { a: '1' }))
      const same = expect(await world.put(path, answer.body), 200)
      assert.is(versionOf(same), versionOf(answer))
    },
  },
  {
    name: 'a PUT does not move creationTimestamp or generation',
    async run(world) {
      const name = world.name('b')
      const { path, answer } = await make(world, world.buoys, buoy(world, name))
      const bent = { ...answer.body, metadata: { name, resourceVersion: versionOf(answer), creationTimestamp: '2001-01-01T00:00:00Z', generation: 99 } }
      const next = expect(await world.put(path, bent), 200)
      assert.is(textAt(next.body, 'metadata.creationTimestamp'), textAt(answer.body, 'metadata.creationTimestamp'))
      assert.is(at(next.body, 'metadata.generation'), 1)
    },
  },
  {
    name: 'generation counts changes of a custom kind\'s spec and of nothing else',
    async run(world) {
      const name = world.name('b')
      const { path } = await make(world, world.buoys, buoy(world, name))
      const labelled = expect(await world.merge(path, { metadata: { labels: { a: 'b' } } }), 200)
      assert.is(at(labelled.body, 'metadata.generation'), 1)
      const reported = expect(await world.merge(`${path}/status`, { status: { phase: 'afloat' } }), 200)
      assert.is(at(reported.body, 'metadata.generation'), 1)
      const changed = expect(await world.merge(path, { spec: { depth: 20 } }), 200)
      assert.is(at(changed.body, 'metadata.generation'), 2)
    },
  },
  {
    name: 'a spec PUT leaves the status of a custom kind as it was',
    async run(world) {
      const { path } = await make(world, world.buoys, buoy(world, world.name('b')))
      const reported = expect(await world.merge(`${path}/status`, { status: { phase: 'afloat' } }), 200)
      const next = expect(await world.put(path, { ...reported.body, spec: { colour: 'green' }, status: { phase: 'sunk' } }), 200)
      assert.is(at(next.body, 'status.phase'), 'afloat')
      assert.is(at(next.body, 'spec.colour'), 'green')
    },
  },
  {
    name: 'a status PUT leaves spec and labels of a custom kind as they were',
    async run(world) {
      const { path, answer } = await make(world, world.buoys, buoy(world, world.name('b')))
      const meta = { ...(answer.body['metadata'] as object), labels: { a: 'b' } }
      const next = expect(await world.put(`${path}/status`, { ...answer.body, metadata: meta, spec: { colour: 'green' }, status: { phase: 'afloat' } }), 200)
      assert.is(at(next.body, 'spec.colour'), 'red')
      assert.is(at(next.body, 'metadata.labels'), undefined)
      assert.is(at(next.body, 'status.phase'), 'afloat')
    },
  },
  {
    name: 'a status PUT under an older version is refused with 409',
    async run(world) {
      const { path, answer } = await make(world, world.buoys, buoy(world, world.name('b')))
      expect(await world.put(`${path}/status`, { ...answer.body, status: { phase: 'afloat' } }), 200)
      expect(await world.put(`${path}/status`, { ...answer.body, status: { phase: 'sunk' } }), 409, 'Conflict')
    },
  },
  {
    name: 'a create with a status leaves it out where status is a subresource',
    async run(world) {
      const { answer } = await make(world, world.buoys, { ...buoy(world, world.name('b')), status: { phase: 'afloat' } } as ReturnType<typeof buoy>)
      assert.is(at(answer.body, 'status'), undefined)
    },
  },
  {
    name: 'the status of a pod is its own part: spec writes do not reach it, status writes do not reach the spec',
    async run(world) {
      const { path, answer } = await make(world, pods(world), pod(world.name('p')))
      const asSpec = expect(await world.merge(path, { status: { phase: 'Failed' } }), 200)
      assert.is(at(asSpec.body, 'status.phase'), 'Pending')
      const asStatus = expect(await world.merge(`${path}/status`, { spec: { activeDeadlineSeconds: 5 }, status: { phase: 'Failed', reason: 'Tried' } }), 200)
      assert.is(at(asStatus.body, 'status.phase'), 'Failed')
      assert.is(at(asStatus.body, 'spec.activeDeadlineSeconds'), undefined)
      assert.is(at(answer.body, 'status.phase'), 'Pending')
    },
  },
  {
    name: 'two writers under one version: one is taken, the other hears 409',
    async run(world) {
      const { path, answer } = await make(world, maps(world), configMap(world.name('m'), { a: '0' }))
      const both = await Promise.all(['1', '2'].map((value) => world.put(path, { ...answer.body, data: { a: value } })))
      assert.equal(both.map((one) => one.status).toSorted(), [200, 409])
    },
  },
  {
    name: 'a dry-run PUT answers as if and stores nothing',
    async run(world) {
      const { path, answer } = await make(world, maps(world), configMap(world.name('m'), { a: '1' }))
      expect(await world.put(`${path}?dryRun=All`, { ...answer.body, data: { a: '2' } }), 200)
      assert.is(at((await world.get(path)).body, 'data.a'), '1')
    },
  },
]
