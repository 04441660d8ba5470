// What a person's kubectl and our own start-up look at: discovery, versions, tables.
import * as assert from 'uvu/assert'
import { buoy, make, node, pod, pods } from '../objects.ts'
import { at, expect, listAt, textAt } from '../world.ts'
import type { Case } from '../world.ts'

const table = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json' }

export const surfaceCases: readonly Case[] = [
  {
    name: 'the version is said without a name',
    async run(world) {
      const version = expect(await world.get('/version'), 200)
      assert.is(at(version.body, 'major'), '1')
      assert.match(textAt(version.body, 'gitVersion'), /^v1\.\d+\.\d+/)
    },
  },
  {
    name: 'readyz and livez say ok',
    async run(world) {
      for (const path of ['/readyz', '/livez', '/healthz']) assert.is(expect(await world.get(path), 200).text, 'ok')
    },
  },
  {
    name: 'the core group lists its resources',
    async run(world) {
      const list = expect(await world.get('/api/v1'), 200)
      assert.is(textAt(list.body, 'kind'), 'APIResourceList')
      const listed = listAt(list.body, 'resources').map((one) => textAt(one, 'name'))
      for (const name of ['pods', 'pods/status', 'pods/binding', 'nodes', 'nodes/status', 'events', 'configmaps', 'secrets', 'namespaces', 'serviceaccounts/token']) assert.ok(listed.includes(name), name)
      const nodes = listAt(list.body, 'resources').find((one) => textAt(one, 'name') === 'nodes')
      assert.is(at(nodes, 'namespaced'), false)
      assert.is(at(nodes, 'kind'), 'Node')
    },
  },
  {
    name: 'the groups list the custom kind\'s own, and the group lists the kind',
    async run(world) {
      const groups = expect(await world.get('/apis'), 200)
      assert.is(textAt(groups.body, 'kind'), 'APIGroupList')
      const named = listAt(groups.body, 'groups').map((one) => textAt(one, 'name'))
      for (const group of ['apps', 'storage.k8s.io', 'coordination.k8s.io', 'events.k8s.io', world.group]) assert.ok(named.includes(group), group)
      const own = expect(await world.get(`/apis/${world.group}/v1`), 200)
      const kinds = listAt(own.body, 'resources')
      assert.ok(kinds.some((one) => textAt(one, 'name') === 'buoys' && listAt(one, 'shortNames').includes('bu')))
      assert.ok(kinds.some((one) => textAt(one, 'name') === 'buoys/status'))
    },
  },
  {
    name: 'a list is a table for who asks for one',
    async run(world) {
      await make(world, '/api/v1/nodes', node(world.name('n')))
      const answer = expect(await world.call('GET', `/api/v1/nodes?fieldSelector=metadata.name=${world.name('n')}`, undefined, table), 200)
      assert.is(textAt(answer.body, 'kind'), 'Table')
      assert.equal(listAt(answer.body, 'columnDefinitions').map((column) => textAt(column, 'name')).slice(0, 5), ['Name', 'Status', 'Roles', 'Age', 'Version'])
      assert.is(at(answer.body, 'rows', 0, 'cells', 0), world.name('n'))
      assert.is(textAt(answer.body, 'rows', 0, 'object', 'kind'), 'PartialObjectMetadata')
    },
  },
  {
    name: 'a table of pods shows readiness, status, restarts and age',
    async run(world) {
      await make(world, pods(world), pod(world.name('p')))
      const answer = expect(await world.call('GET', `${pods(world)}/${world.name('p')}`, undefined, table), 200)
      assert.equal(listAt(answer.body, 'columnDefinitions').map((column) => textAt(column, 'name')).slice(0, 5), ['Name', 'Ready', 'Status', 'Restarts', 'Age'])
      assert.equal(listAt(answer.body, 'rows', 0, 'cells').slice(0, 4), [world.name('p'), '0/1', 'Pending', '0'])
    },
  },
  {
    name: 'a terminating pod says so in its table',
    async run(world) {
      const { path } = await make(world, pods(world), pod(world.name('p'), world.name('nobody'), { terminationGracePeriodSeconds: 600 }))
      expect(await world.remove(path), 200)
      const answer = expect(await world.call('GET', path, undefined, table), 200)
      assert.is(at(answer.body, 'rows', 0, 'cells', 2), 'Terminating')
    },
  },
  {
    name: 'a table of a custom kind shows the columns of its definition',
    async run(world) {
      const { path } = await make(world, world.buoys, buoy(world, world.name('b')))
      expect(await world.merge(`${path}/status`, { status: { conditions: [{ type: 'Lit', status: 'True' }] } }), 200)
      const answer = expect(await world.call('GET', path, undefined, table), 200)
      assert.equal(listAt(answer.body, 'columnDefinitions').map((column) => textAt(column, 'name')), ['Name', 'Colour', 'Lit', 'Depth', 'Age'])
      assert.equal(listAt(answer.body, 'rows', 0, 'cells').slice(0, 4), [world.name('b'), 'red', 'True', 10])
      assert.is(at(answer.body, 'columnDefinitions', 3, 'priority'), 1)
    },
  },
  {
    name: 'a watch is a table for who asks for one',
    async run(world) {
      const { path, answer } = await make(world, world.buoys, buoy(world, world.name('b')))
      expect(await world.merge(path, { spec: { colour: 'green' } }), 200)
      const since = textAt(answer.body, 'metadata.resourceVersion')
      const watched = await world.call('GET', `${world.buoys}?watch=true&timeoutSeconds=1&resourceVersion=${since}&fieldSelector=metadata.name=${world.name('b')}`, undefined, table)
      const [first = ''] = watched.text.split('\n')
      const event: unknown = JSON.parse(first)
      assert.is(at(event, 'type'), 'MODIFIED')
      assert.is(at(event, 'object', 'kind'), 'Table')
      assert.is(at(event, 'object', 'rows', 0, 'cells', 1), 'green')
    },
  },
]
