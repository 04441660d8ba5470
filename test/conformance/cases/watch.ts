import * as assert from 'uvu/assert'
import { buoy, configMap, make, maps, pod, pods } from '../objects.ts'
import { at, expect, listAt, textAt, versionOf } from '../world.ts'
import type { Case, WatchedEvent, Watching, World } from '../world.ts'

const nameOf = (event: WatchedEvent | undefined) => textAt(event?.object, 'metadata.name')
const typeAndName = (event: WatchedEvent | undefined) => `${event?.type} ${nameOf(event)}`

async function latest(world: World, collection: string): Promise<string> {
  return versionOf(expect(await world.get(`${collection}?limit=1`), 200))
}

/** Watches the collection from now on and sees to it that the watch is closed. */
async function during(world: World, path: string, run: (watch: Watching) => Promise<void>): Promise<void> {
  const watch = await world.watch(path)
  try {
    assert.is(watch.status, 200)
    await run(watch)
  } finally {
    watch.close()
  }
}

const label = (world: World, object: { metadata: { name: string } }, labels: Record<string, string> = { watched: world.name('w') }) => (
  { ...object, metadata: { ...object.metadata, labels } })

export const watchCases: readonly Case[] = [
  {
    name: 'a watch from a version tells what happens after it, in order',
    async run(world) {
      const since = await latest(world, maps(world))
      const name = world.name('m')
      const { path } = await make(world, maps(world), configMap(name))
      expect(await world.merge(path, { data: { a: '1' } }), 200)
      expect(await world.remove(path), 200)
      await during(world, `${maps(world)}?watch=true&resourceVersion=${since}&fieldSelector=metadata.name=${name}`, async (watch) => {
        assert.equal([typeAndName(await watch.next()), typeAndName(await watch.next()), typeAndName(await watch.next())], [`ADDED ${name}`, `MODIFIED ${name}`, `DELETED ${name}`])
      })
    },
  },
  {
    name: 'a watch tells live what happens while it is open',
    async run(world) {
      const name = world.name('m')
      const since = await latest(world, maps(world))
      await during(world, `${maps(world)}?watch=true&resourceVersion=${since}&fieldSelector=metadata.name=${name}`, async (watch) => {
        const { path } = await make(world, maps(world), configMap(name))
        assert.is(typeAndName(await watch.next()), `ADDED ${name}`)
        expect(await world.merge(path, { data: { a: '1' } }), 200)
        const event = await watch.next()
        assert.is(typeAndName(event), `MODIFIED ${name}`)
        assert.is(at(event?.object, 'data.a'), '1')
      })
    },
  },
  {
    name: 'versions in a watch only rise, and are those of the objects',
    async run(world) {
      const name = world.name('m')
      const since = await latest(world, maps(world))
      const { path } = await make(world, maps(world), configMap(name))
      const changed = expect(await world.merge(path, { data: { a: '1' } }), 200)
      await during(world, `${maps(world)}?watch=true&resourceVersion=${since}&fieldSelector=metadata.name=${name}`, async (watch) => {
        const first = await watch.next()
        const second = await watch.next()
        assert.is(textAt(second?.object, 'metadata.resourceVersion'), versionOf(changed))
        assert.ok(Number(textAt(first?.object, 'metadata.resourceVersion')) < Number(versionOf(changed)))
      })
    },
  },
  {
    name: 'a DELETED event carries the last state under the version of the deletion',
    async run(world) {
      const name = world.name('m')
      const { path } = await make(world, maps(world), configMap(name, { a: 'last' }))
      const since = versionOf(await world.get(path))
      expect(await world.remove(path), 200)
      await during(world, `${maps(world)}?watch=true&resourceVersion=${since}&fieldSelector=metadata.name=${name}`, async (watch) => {
        const event = await watch.next()
        assert.is(typeAndName(event), `DELETED ${name}`)
        assert.is(at(event?.object, 'data.a'), 'last')
        assert.ok(Number(textAt(event?.object, 'metadata.resourceVersion')) > Number(since))
      })
    },
  },
  {
    name: 'objects in watch events say their kind',
    async run(world) {
      const name = world.name('m')
      const since = await latest(world, maps(world))
      await make(world, maps(world), configMap(name))
      await during(world, `${maps(world)}?watch=1&resourceVersion=${since}&fieldSelector=metadata.name=${name}`, async (watch) => {
        const event = await watch.next()
        assert.is(textAt(event?.object, 'kind'), 'ConfigMap')
        assert.is(textAt(event?.object, 'apiVersion'), 'v1')
      })
    },
  },
  {
    name: 'a watch without a version begins with what there is',
    async run(world) {
      const name = world.name('m')
      const { path } = await make(world, maps(world), configMap(name))
      await during(world, `${maps(world)}?watch=true&fieldSelector=metadata.name=${name}`, async (watch) => {
        assert.is(typeAndName(await watch.next()), `ADDED ${name}`)
        expect(await world.merge(path, { data: { a: '1' } }), 200)
        assert.is(typeAndName(await watch.next()), `MODIFIED ${name}`)
      })
    },
  },
  {
    name: 'a watch at resourceVersion 0 begins with what there is',
    async run(world) {
      const name = world.name('m')
      await make(world, maps(world), configMap(name))
      await during(world, `${maps(world)}?watch=true&resourceVersion=0&fieldSelector=metadata.name=${name}`, async (watch) => {
        assert.is(typeAndName(await watch.next()), `ADDED ${name}`)
      })
    },
  },
  {
    name: 'an object that begins to match a label selector is ADDED to the watch',
    async run(world) {
      const name = world.name('m')
      const { path } = await make(world, maps(world), configMap(name))
      const since = versionOf(await world.get(path))
      await during(world, `${maps(world)}?watch=true&resourceVersion=${since}&labelSelector=watched=${name}`, async (watch) => {
        expect(await world.merge(path, { data: { a: '1' } }), 200)
        expect(await world.merge(path, { metadata: { labels: { watched: name } } }), 200)
        assert.is(typeAndName(await watch.next()), `ADDED ${name}`)
      })
    },
  },
  {
    name: 'an object that ceases to match a label selector is DELETED from the watch',
    async run(world) {
      const name = world.name('m')
      const { path } = await make(world, maps(world), label(world, configMap(name), { watched: name }))
      const since = versionOf(await world.get(path))
      await during(world, `${maps(world)}?watch=true&resourceVersion=${since}&labelSelector=watched=${name}`, async (watch) => {
        expect(await world.merge(path, { metadata: { labels: null } }), 200)
        const event = await watch.next()
        assert.is(typeAndName(event), `DELETED ${name}`)
        assert.is(at(event?.object, 'metadata', 'labels', 'watched'), name)
        assert.ok(Number(textAt(event?.object, 'metadata.resourceVersion')) > Number(since))
      })
    },
  },
  {
    name: 'a pod that is bound to a node is ADDED to the watch of that node\'s pods',
    async run(world) {
      const node = world.name('nobody')
      const name = world.name('p')
      const { path } = await make(world, pods(world), pod(name))
      const since = versionOf(await world.get(path))
      await during(world, `/api/v1/pods?watch=true&resourceVersion=${since}&fieldSelector=spec.nodeName=${node}`, async (watch) => {
        expect(await world.post(`${path}/binding`, { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target: { apiVersion: 'v1', kind: 'Node', name: node } }), 201)
        const event = await watch.next()
        assert.is(typeAndName(event), `ADDED ${name}`)
        assert.is(at(event?.object, 'spec.nodeName'), node)
      })
    },
  },
  {
    name: 'a pod deleted by force is first seen marked, then gone',
    async run(world) {
      const node = world.name('nobody')
      const name = world.name('p')
      const { path } = await make(world, pods(world), pod(name, node))
      const since = versionOf(await world.get(path))
      expect(await world.remove(path, { gracePeriodSeconds: 0 }), 200)
      await during(world, `/api/v1/pods?watch=true&resourceVersion=${since}&fieldSelector=spec.nodeName=${node}`, async (watch) => {
        const marked = await watch.until('the mark', (event) => textAt(event.object, 'metadata.deletionTimestamp') !== '')
        assert.is(marked.type, 'MODIFIED')
        assert.is(at(marked.object, 'metadata.deletionGracePeriodSeconds'), 0)
        assert.is(typeAndName(await watch.next()), `DELETED ${name}`)
      })
    },
  },
  {
    name: 'an unbound pod is seen marked and gone as well',
    async run(world) {
      const name = world.name('p')
      const { path } = await make(world, pods(world), pod(name))
      const since = versionOf(await world.get(path))
      expect(await world.remove(path), 200)
      await during(world, `${pods(world)}?watch=true&resourceVersion=${since}&fieldSelector=metadata.name=${name}`, async (watch) => {
        assert.is(typeAndName(await watch.next()), `MODIFIED ${name}`)
        assert.is(typeAndName(await watch.next()), `DELETED ${name}`)
      })
    },
  },
  {
    name: 'what loses its last finalizer is gone without another change',
    async run(world) {
      const name = world.name('m')
      const sketch = configMap(name)
      const { path } = await make(world, maps(world), { ...sketch, metadata: { name, finalizers: ['example.com/hold'] } } as typeof sketch)
      expect(await world.remove(path), 200)
      const since = versionOf(await world.get(path))
      expect(await world.merge(path, { metadata: { finalizers: null } }), 200)
      await during(world, `${maps(world)}?watch=true&resourceVersion=${since}&fieldSelector=metadata.name=${name}`, async (watch) => {
        assert.is(typeAndName(await watch.next()), `DELETED ${name}`)
      })
    },
  },
  {
    name: 'a write that changes nothing is not told',
    async run(world) {
      const name = world.name('m')
      const { path, answer } = await make(world, maps(world), configMap(name, { a: '1' }))
      await during(world, `${maps(world)}?watch=true&resourceVersion=${versionOf(answer)}&fieldSelector=metadata.name=${name}`, async (watch) => {
        expect(await world.merge(path, { data: { a: '1' } }), 200)
        expect(await world.merge(path, { data: { a: '2' } }), 200)
        assert.is(at((await watch.next())?.object, 'data.a'), '2')
      })
    },
  },
  {
    name: 'a watch from a version long gone is told 410 in an ERROR event and ends',
    async run(world) {
      // Of a custom kind the server knows nothing older than its definition.
      await world.eventually('a server that is done with the definition', async () => (await world.get(`${world.buoys}?watch=true&timeoutSeconds=1`)).status === 200)
      await during(world, `${world.buoys}?watch=true&resourceVersion=1`, async (watch) => {
        const event = await watch.next()
        assert.is(event?.type, 'ERROR')
        assert.is(textAt(event?.object, 'kind'), 'Status')
        assert.is(at(event?.object, 'code'), 410)
        assert.is(textAt(event?.object, 'reason'), 'Expired')
        assert.match(textAt(event?.object, 'message'), 'too old resource version')
        assert.equal(await watch.rest(), [])
      })
    },
  },
  {
    name: 'timeoutSeconds ends a watch politely',
    async run(world) {
      const since = await latest(world, maps(world))
      await during(world, `${maps(world)}?watch=true&resourceVersion=${since}&timeoutSeconds=1&fieldSelector=metadata.name=${world.name('none')}`, async (watch) => {
        assert.equal(await watch.rest(), [])
      })
    },
  },
  {
    name: 'a WatchList begins with what there is and marks its end with a bookmark',
    async run(world) {
      const name = world.name('m')
      const { path, answer } = await make(world, maps(world), label(world, configMap(name), { watched: name }))
      const query = `watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=watched=${name}`
      await during(world, `${maps(world)}?${query}`, async (watch) => {
        assert.is(typeAndName(await watch.next()), `ADDED ${name}`)
        const mark = await watch.next()
        assert.is(mark?.type, 'BOOKMARK')
        assert.is(at(mark?.object, 'metadata', 'annotations', 'k8s.io/initial-events-end'), 'true')
        assert.ok(Number(textAt(mark?.object, 'metadata.resourceVersion')) >= Number(versionOf(answer)))
        assert.is(textAt(mark?.object, 'kind'), 'ConfigMap')
        expect(await world.merge(path, { data: { a: '1' } }), 200)
        assert.is(typeAndName(await watch.next()), `MODIFIED ${name}`)
      })
    },
  },
  {
    name: 'a WatchList of nothing is a bookmark alone',
    async run(world) {
      const query = `watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=watched=${world.name('none')}`
      await during(world, `${maps(world)}?${query}`, async (watch) => {
        const mark = await watch.next()
        assert.is(mark?.type, 'BOOKMARK')
        assert.is(at(mark?.object, 'metadata', 'annotations', 'k8s.io/initial-events-end'), 'true')
      })
    },
  },
  {
    name: 'a WatchList of a custom kind works alike',
    async run(world) {
      const name = world.name('b')
      await make(world, world.buoys, buoy(world, name))
      const query = `watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&fieldSelector=metadata.name=${name}`
      await during(world, `${world.buoys}?${query}`, async (watch) => {
        assert.is(typeAndName(await watch.next()), `ADDED ${name}`)
        const mark = await watch.next()
        assert.is(mark?.type, 'BOOKMARK')
        assert.is(textAt(mark?.object, 'kind'), 'Buoy')
      })
    },
  },
  {
    name: 'a bookmark comes before a short watch that asked for them ends, or the watch ends without one',
    async run(world) {
      const since = await latest(world, maps(world))
      await during(world, `${maps(world)}?watch=true&resourceVersion=${since}&timeoutSeconds=1&allowWatchBookmarks=true&fieldSelector=metadata.name=${world.name('none')}`, async (watch) => {
        for (const event of await watch.rest()) assert.is(event.type, 'BOOKMARK')
      })
    },
  },
  {
    name: 'no bookmark comes to a watch that did not ask',
    async run(world) {
      const since = await latest(world, maps(world))
      await during(world, `${maps(world)}?watch=true&resourceVersion=${since}&timeoutSeconds=2&fieldSelector=metadata.name=${world.name('none')}`, async (watch) => {
        assert.equal(await watch.rest(), [])
      })
    },
  },
  {
    name: 'sendInitialEvents without NotOlderThan is refused with 422',
    async run(world) {
      expect(await world.get(`${maps(world)}?watch=true&sendInitialEvents=true&allowWatchBookmarks=true`), 422, 'Invalid')
    },
  },
  {
    name: 'a watch in one namespace hears nothing of another',
    async run(world) {
      const name = world.name('m')
      const since = await latest(world, maps(world))
      await make(world, '/api/v1/namespaces/default/configmaps', configMap(name))
      await during(world, `${maps(world)}?watch=true&resourceVersion=${since}&timeoutSeconds=1&fieldSelector=metadata.name=${name}`, async (watch) => {
        assert.equal(await watch.rest(), [])
      })
    },
  },
  {
    name: 'two watches of the same hear the same',
    async run(world) {
      const name = world.name('m')
      const since = await latest(world, maps(world))
      const path = `${maps(world)}?watch=true&resourceVersion=${since}&fieldSelector=metadata.name=${name}`
      await during(world, path, (one) => during(world, path, async (other) => {
        await make(world, maps(world), configMap(name))
        assert.is(typeAndName(await one.next()), `ADDED ${name}`)
        assert.is(typeAndName(await other.next()), `ADDED ${name}`)
      }))
    },
  },
  {
    name: 'from the version of a list on, a watch misses nothing and repeats nothing',
    async run(world) {
      const watched = { watched: world.name('w') }
      await make(world, maps(world), label(world, configMap(world.name('a')), watched))
      const list = expect(await world.get(`${maps(world)}?labelSelector=watched=${watched.watched}`), 200)
      assert.is(listAt(list.body, 'items').length, 1)
      await make(world, maps(world), label(world, configMap(world.name('b')), watched))
      await during(world, `${maps(world)}?watch=true&resourceVersion=${versionOf(list)}&labelSelector=watched=${watched.watched}`, async (watch) => {
        assert.is(typeAndName(await watch.next()), `ADDED ${world.name('b')}`)
      })
    },
  },
]
