import * as assert from 'uvu/assert'
import { buoy, configMap, make, maps, pod, pods } from '../objects.ts'
import { at, expect, listAt, textAt, versionOf } from '../world.ts'
import type { Case, World } from '../world.ts'

/** A pod bound to a node that is not there: no kubelet will hurry its end. */
async function boundPod(world: World, spec: object = {}) {
  return make(world, pods(world), pod(world.name('p'), world.name('nobody'), { terminationGracePeriodSeconds: 600, ...spec }))
}

const held = <T extends { metadata: { name: string } }>(object: T): T => ({ ...object, metadata: { ...object.metadata, finalizers: ['example.com/hold'] } })

export const deletionCases: readonly Case[] = [
  {
    name: 'a DELETE without finalizers is done at once and answers Success',
    async run(world) {
      const { path, answer } = await make(world, maps(world), configMap(world.name('m')))
      const gone = expect(await world.remove(path), 200)
      assert.is(textAt(gone.body, 'kind'), 'Status')
      assert.is(textAt(gone.body, 'status'), 'Success')
      assert.is(textAt(gone.body, 'details.uid'), textAt(answer.body, 'metadata.uid'))
      expect(await world.get(path), 404, 'NotFound')
    },
  },
  {
    name: 'a DELETE of what is not there is a 404',
    async run(world) {
      expect(await world.remove(`${maps(world)}/not-there`), 404, 'NotFound')
    },
  },
  {
    name: 'a DELETE whose uid precondition does not hold is refused with 409 and deletes nothing',
    async run(world) {
      const { path } = await make(world, maps(world), configMap(world.name('m')))
      expect(await world.remove(path, { preconditions: { uid: '11111111-1111-1111-1111-111111111111' } }), 409, 'Conflict')
      expect(await world.get(path), 200)
    },
  },
  {
    name: 'a DELETE whose uid precondition holds is done',
    async run(world) {
      const { path, answer } = await make(world, maps(world), configMap(world.name('m')))
      expect(await world.remove(path, { preconditions: { uid: textAt(answer.body, 'metadata.uid') } }), 200)
      expect(await world.get(path), 404)
    },
  },
  {
    name: 'a DELETE whose resourceVersion precondition is old is refused with 409 and deletes nothing',
    async run(world) {
      const { path, answer } = await make(world, maps(world), configMap(world.name('m'), { a: '1' }))
      expect(await world.merge(path, { data: { a: '2' } }), 200)
      expect(await world.remove(path, { preconditions: { resourceVersion: versionOf(answer) } }), 409, 'Conflict')
      expect(await world.get(path), 200)
    },
  },
  {
    name: 'a forced DELETE of a bound pod still heeds its uid and resourceVersion preconditions',
    async run(world) {
      const { path, answer } = await boundPod(world)
      const uid = textAt(answer.body, 'metadata.uid')
      expect(await world.merge(`${path}/status`, { status: { phase: 'Running' } }), 200)
      expect(await world.remove(path, { gracePeriodSeconds: 0, preconditions: { uid: '11111111-1111-1111-1111-111111111111' } }), 409, 'Conflict')
      expect(await world.remove(path, { gracePeriodSeconds: 0, preconditions: { uid, resourceVersion: versionOf(answer) } }), 409, 'Conflict')
      const now = versionOf(await world.get(path))
      expect(await world.remove(path, { gracePeriodSeconds: 0, preconditions: { uid, resourceVersion: now } }), 200)
      expect(await world.get(path), 404)
    },
  },
  {
    name: 'a DELETE of a bound pod marks it with its grace and leaves it',
    async run(world) {
      const { path } = await boundPod(world)
      const marked = expect(await world.remove(path), 200)
      assert.is(textAt(marked.body, 'kind'), 'Pod')
      const there = expect(await world.get(path), 200)
      assert.ok(textAt(there.body, 'metadata.deletionTimestamp') !== '')
      assert.is(at(there.body, 'metadata.deletionGracePeriodSeconds'), 600)
    },
  },
  {
    name: 'the deletionTimestamp of a bound pod lies its grace ahead',
    async run(world) {
      const { path, answer } = await boundPod(world)
      const marked = expect(await world.remove(path, { gracePeriodSeconds: 300 }), 200)
      const ahead = Date.parse(textAt(marked.body, 'metadata.deletionTimestamp')) - Date.parse(textAt(answer.body, 'metadata.creationTimestamp'))
      assert.ok(ahead >= 300_000 && ahead < 330_000, `${ahead} ms`)
    },
  },
  {
    name: 'a DELETE with grace 0 removes a bound pod at once',
    async run(world) {
      const { path } = await boundPod(world)
      expect(await world.remove(path, { gracePeriodSeconds: 0 }), 200)
      expect(await world.get(path), 404)
    },
  },
  {
    name: 'a second DELETE shortens the grace',
    async run(world) {
      const { path } = await boundPod(world)
      expect(await world.remove(path), 200)
      const shortened = expect(await world.remove(path, { gracePeriodSeconds: 60 }), 200)
      assert.is(at(shortened.body, 'metadata.deletionGracePeriodSeconds'), 60)
    },
  },
  {
    name: 'a second DELETE does not stretch the grace',
    async run(world) {
      const { path } = await boundPod(world)
      expect(await world.remove(path, { gracePeriodSeconds: 60 }), 200)
      expect(await world.remove(path, { gracePeriodSeconds: 500 }), 200)
      const there = expect(await world.get(path), 200)
      assert.is(at(there.body, 'metadata.deletionGracePeriodSeconds'), 60)
    },
  },
  {
    name: 'a pod that has failed is gone at once with any DELETE',
    async run(world) {
      const { path } = await boundPod(world)
      expect(await world.merge(`${path}/status`, { status: { phase: 'Failed' } }), 200)
      expect(await world.remove(path), 200)
      expect(await world.get(path), 404)
    },
  },
  {
    name: 'a pod that was never bound is gone at once with any DELETE',
    async run(world) {
      const { path } = await make(world, pods(world), pod(world.name('p'), undefined, { terminationGracePeriodSeconds: 600 }))
      expect(await world.remove(path), 200)
      expect(await world.get(path), 404)
    },
  },
  {
    name: 'a marked pod that then fails waits for another DELETE',
    async run(world) {
      const { path } = await boundPod(world)
      expect(await world.remove(path), 200)
      expect(await world.merge(`${path}/status`, { status: { phase: 'Failed' } }), 200)
      expect(await world.get(path), 200)
      expect(await world.remove(path, { gracePeriodSeconds: 0 }), 200)
      expect(await world.get(path), 404)
    },
  },
  {
    name: 'a finalizer keeps what is deleted, marked, until the last is taken off',
    async run(world) {
      const { path } = await make(world, maps(world), held(configMap(world.name('m'))))
      const marked = expect(await world.remove(path), 200)
      assert.is(textAt(marked.body, 'kind'), 'ConfigMap')
      assert.ok(textAt(marked.body, 'metadata.deletionTimestamp') !== '')
      assert.is(at(marked.body, 'metadata.deletionGracePeriodSeconds'), 0)
      expect(await world.get(path), 200)
      expect(await world.merge(path, { metadata: { finalizers: null } }), 200)
      expect(await world.get(path), 404)
    },
  },
  {
    name: 'a finalizer keeps even a pod that is deleted by force',
    async run(world) {
      const { path } = await make(world, pods(world), held(pod(world.name('p'), world.name('nobody'))))
      expect(await world.remove(path, { gracePeriodSeconds: 0 }), 200)
      const there = expect(await world.get(path), 200)
      assert.is(at(there.body, 'metadata.deletionGracePeriodSeconds'), 0)
      expect(await world.merge(path, { metadata: { finalizers: null } }), 200)
      expect(await world.get(path), 404)
    },
  },
  {
    name: 'no finalizer can be added to what is being deleted',
    async run(world) {
      const { path } = await make(world, maps(world), held(configMap(world.name('m'))))
      expect(await world.remove(path), 200)
      expect(await world.merge(path, { metadata: { finalizers: ['example.com/hold', 'example.com/more'] } }), 422, 'Invalid')
    },
  },
  {
    name: 'an update cannot take back a deletionTimestamp',
    async run(world) {
      const { path } = await make(world, maps(world), held(configMap(world.name('m'))))
      expect(await world.remove(path), 200)
      const next = expect(await world.merge(path, { metadata: { deletionTimestamp: null }, data: { a: '1' } }), 200)
      assert.ok(textAt(next.body, 'metadata.deletionTimestamp') !== '')
    },
  },
  {
    name: 'a DELETE of what is being deleted already is taken and changes nothing',
    async run(world) {
      const { path } = await make(world, world.buoys, held(buoy(world, world.name('b'))))
      const first = expect(await world.remove(path), 200)
      const again = expect(await world.remove(path), 200)
      assert.is(versionOf(again), versionOf(first))
      assert.is(textAt(again.body, 'metadata.deletionTimestamp'), textAt(first.body, 'metadata.deletionTimestamp'))
    },
  },
  {
    name: 'deletion counts as a new generation of a custom kind',
    async run(world) {
      const { path } = await make(world, world.buoys, held(buoy(world, world.name('b'))))
      const marked = expect(await world.remove(path), 200)
      assert.is(at(marked.body, 'metadata.generation'), 2)
    },
  },
  {
    name: 'a namesake made after a deletion has another uid',
    async run(world) {
      const object = configMap(world.name('m'))
      const { path, answer } = await make(world, maps(world), object)
      expect(await world.remove(path), 200)
      const next = expect(await world.post(maps(world), object), 201)
      assert.is.not(textAt(next.body, 'metadata.uid'), textAt(answer.body, 'metadata.uid'))
    },
  },
  {
    name: 'a collection is deleted by its label',
    async run(world) {
      const labels = { batch: world.name('x') }
      for (const name of [world.name('a'), world.name('b')]) await make(world, maps(world), { ...configMap(name), metadata: { name, labels } } as ReturnType<typeof configMap>)
      const other = await make(world, maps(world), configMap(world.name('c')))
      expect(await world.remove(`${maps(world)}?labelSelector=batch=${labels.batch}`), 200)
      assert.is(listAt((await world.get(`${maps(world)}?labelSelector=batch=${labels.batch}`)).body, 'items').length, 0)
      expect(await world.get(other.path), 200)
    },
  },
  {
    name: 'an eviction of a bound pod marks it',
    async run(world) {
      const { path } = await boundPod(world)
      const name = path.split('/').at(-1)
      expect(await world.post(`${path}/eviction`, { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: world.namespace } }), 201)
      assert.ok(textAt((await world.get(path)).body, 'metadata.deletionTimestamp') !== '')
    },
  },
  {
    name: 'a dry-run DELETE deletes nothing',
    async run(world) {
      const { path } = await make(world, maps(world), configMap(world.name('m')))
      expect(await world.remove(`${path}?dryRun=All`), 200)
      expect(await world.get(path), 200)
    },
  },
  {
    name: 'a DELETE takes its grace from the query too',
    async run(world) {
      const { path } = await boundPod(world)
      expect(await world.remove(`${path}?gracePeriodSeconds=0`), 200)
      expect(await world.get(path), 404)
    },
  },
]
