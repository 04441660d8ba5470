// What is kept for coordination and for people: Leases, Events, ConfigMaps, Secrets, workloads.
import * as assert from 'uvu/assert'
import { leases, make } from '../objects.ts'
import { at, expect, faults, listAt, textAt, versionOf } from '../world.ts'
import type { Case, World } from '../world.ts'

function lease(name: string, spec: object = { holderIdentity: 'one', leaseDurationSeconds: 4, renewTime: '2026-01-01T00:00:00.000000Z', leaseTransitions: 0 }) {
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name }, spec }
}

function coreEvent(world: World, name: string) {
  return {
    apiVersion: 'v1', kind: 'Event', metadata: { name },
    involvedObject: { apiVersion: 'v1', kind: 'ConfigMap', namespace: world.namespace, name: 'x' },
    reason: 'Tried', message: 'words', type: 'Normal', source: { component: 'conformance' }, firstTimestamp: '2026-01-01T00:00:00Z', lastTimestamp: '2026-01-01T00:00:00Z', count: 1,
  }
}

function newEvent(world: World, name: string) {
  return {
    apiVersion: 'events.k8s.io/v1', kind: 'Event', metadata: { name }, eventTime: '2026-01-01T00:00:00.000000Z',
    reportingController: 'holdfast.dev/coordinator', reportingInstance: 'one', action: 'Fence', reason: 'Fenced', type: 'Warning', note: 'words',
    regarding: { apiVersion: 'v1', kind: 'ConfigMap', namespace: world.namespace, name: 'x' },
  }
}

const events = (world: World) => `/apis/events.k8s.io/v1/namespaces/${world.namespace}/events`
const coreEvents = (world: World) => `/api/v1/namespaces/${world.namespace}/events`

function workload(kind: string, name: string, more: object = {}) {
  return {
    apiVersion: 'apps/v1', kind, metadata: { name },
    spec: { replicas: 0, selector: { matchLabels: { app: name } }, template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'main', image: 'registry.invalid/nothing:1' }] } }, ...more },
  }
}

const apps = (world: World, plural: string) => `/apis/apps/v1/namespaces/${world.namespace}/${plural}`

export const recordCases: readonly Case[] = [
  {
    name: 'a Lease keeps its times to the microsecond',
    async run(world) {
      const { answer } = await make(world, leases(world), lease(world.name('l')))
      assert.is(at(answer.body, 'spec.renewTime'), '2026-01-01T00:00:00.000000Z')
    },
  },
  {
    name: 'a Lease time with three fraction digits is refused with 400',
    async run(world) {
      expect(await world.post(leases(world), lease(world.name('l'), { holderIdentity: 'one', renewTime: '2026-01-01T00:00:00.000Z' })), 400, 'BadRequest')
    },
  },
  {
    name: 'a Lease time without a fraction is refused with 400',
    async run(world) {
      expect(await world.post(leases(world), lease(world.name('l'), { holderIdentity: 'one', renewTime: '2026-01-01T00:00:00Z' })), 400, 'BadRequest')
    },
  },
  {
    name: 'a Lease patched with three fraction digits is refused with 422',
    async run(world) {
      const { path } = await make(world, leases(world), lease(world.name('l')))
      expect(await world.merge(path, { spec: { renewTime: '2026-01-01T00:00:01.000Z' } }), 422, 'Invalid')
    },
  },
  {
    name: 'a Lease is taken over only under the version read',
    async run(world) {
      const { path, answer } = await make(world, leases(world), lease(world.name('l')))
      const held = (by: string) => ({ ...answer.body, spec: { ...(answer.body['spec'] as object), holderIdentity: by } })
      expect(await world.put(path, held('two')), 200)
      expect(await world.put(path, held('three')), 409, 'Conflict')
      assert.is(at((await world.get(path)).body, 'spec.holderIdentity'), 'two')
    },
  },
  {
    name: 'a PUT of a Lease without a version is refused with 422',
    async run(world) {
      const name = world.name('l')
      const { path } = await make(world, leases(world), lease(name))
      expect(await world.put(path, lease(name)), 422, 'Invalid')
    },
  },
  {
    name: 'a PUT of a Lease that is not there makes it',
    async run(world) {
      const name = world.name('l')
      expect(await world.put(world.made(`${leases(world)}/${name}`), lease(name)), 201)
    },
  },
  {
    name: 'a Lease of no length is refused with 422',
    async run(world) {
      const refused = expect(await world.post(leases(world), lease(world.name('l'), { holderIdentity: 'one', leaseDurationSeconds: 0 })), 422, 'Invalid')
      assert.equal(faults(refused), ['spec.leaseDurationSeconds'])
    },
  },
  {
    name: 'an Event of events.k8s.io is the same Event in core, under the older names',
    async run(world) {
      const name = world.name('e')
      await make(world, events(world), newEvent(world, name))
      const core = expect(await world.get(`${coreEvents(world)}/${name}`), 200)
      assert.is(at(core.body, 'involvedObject.name'), 'x')
      assert.is(at(core.body, 'message'), 'words')
      assert.is(at(core.body, 'reportingComponent'), 'holdfast.dev/coordinator')
      assert.is(at(core.body, 'regarding'), undefined)
    },
  },
  {
    name: 'a core Event is the same Event in events.k8s.io, under the newer names',
    async run(world) {
      const name = world.name('e')
      await make(world, coreEvents(world), coreEvent(world, name))
      const newer = expect(await world.get(`${events(world)}/${name}`), 200)
      assert.is(at(newer.body, 'regarding.name'), 'x')
      assert.is(at(newer.body, 'note'), 'words')
      assert.is(at(newer.body, 'deprecatedCount'), 1)
    },
  },
  {
    name: 'an Event of events.k8s.io without action and reporter is refused with 422',
    async run(world) {
      const { action: _action, reportingController: _reporter, ...bare } = newEvent(world, world.name('e'))
      expect(await world.post(events(world), bare), 422, 'Invalid')
    },
  },
  {
    name: 'an Event of the older kind stands in the namespace of what it is about',
    async run(world) {
      const stray = { ...coreEvent(world, world.name('e')), involvedObject: { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default', name: 'x' } }
      expect(await world.post(coreEvents(world), stray), 422, 'Invalid')
    },
  },
  {
    name: 'an Event about a cluster-scoped object does not stand in just any namespace',
    async run(world) {
      const stray = { ...newEvent(world, world.name('e')), regarding: { apiVersion: 'v1', kind: 'Node', name: 'x' } }
      expect(await world.post(events(world), stray), 422, 'Invalid')
    },
  },
  {
    name: 'an Event about a cluster-scoped object stands in default',
    async run(world) {
      const name = world.name('e')
      const about = { ...newEvent(world, name), regarding: { apiVersion: 'v1', kind: 'Node', name: 'x' } }
      await make(world, '/apis/events.k8s.io/v1/namespaces/default/events', about)
    },
  },
  {
    name: 'an Event becomes a series by a patch',
    async run(world) {
      const { path } = await make(world, events(world), newEvent(world, world.name('e')))
      const next = expect(await world.merge(path, { series: { count: 2, lastObservedTime: '2026-01-01T00:00:09.000000Z' } }), 200)
      assert.is(at(next.body, 'series.count'), 2)
    },
  },
  {
    name: 'Events are listed by what they are about',
    async run(world) {
      const name = world.name('e')
      const about = world.name('target')
      await make(world, coreEvents(world), { ...coreEvent(world, name), involvedObject: { apiVersion: 'v1', kind: 'ConfigMap', namespace: world.namespace, name: about } })
      const list = expect(await world.get(`${coreEvents(world)}?fieldSelector=involvedObject.name=${about},involvedObject.kind=ConfigMap`), 200)
      assert.equal(listAt(list.body, 'items').map((one) => textAt(one, 'metadata.name')), [name])
    },
  },
  {
    name: 'a Secret\'s stringData becomes its data',
    async run(world) {
      const { answer } = await make(world, `/api/v1/namespaces/${world.namespace}/secrets`, { apiVersion: 'v1', kind: 'Secret', metadata: { name: world.name('s') }, stringData: { a: 'word' } } as { metadata: { name: string } })
      assert.is(at(answer.body, 'data.a'), 'd29yZA==')
      assert.is(at(answer.body, 'stringData'), undefined)
      assert.is(at(answer.body, 'type'), 'Opaque')
    },
  },
  {
    name: 'a StatefulSet\'s spec is fixed but for what may change: 422',
    async run(world) {
      const name = world.name('s')
      const { path } = await make(world, apps(world, 'statefulsets'), workload('StatefulSet', name, { serviceName: name }))
      expect(await world.merge(path, { spec: { serviceName: 'another' } }), 422, 'Invalid')
      assert.is(at(expect(await world.merge(path, { spec: { replicas: 0, minReadySeconds: 1 } }), 200).body, 'metadata.generation'), 2)
    },
  },
  {
    name: 'a Deployment whose selector does not fit its template is refused with 422',
    async run(world) {
      const name = world.name('d')
      expect(await world.post(apps(world, 'deployments'), workload('Deployment', name, { selector: { matchLabels: { app: 'another' } } })), 422, 'Invalid')
    },
  },
  {
    name: 'a Deployment is scaled by its scale subresource',
    async run(world) {
      const name = world.name('d')
      const { path } = await make(world, apps(world, 'deployments'), workload('Deployment', name, { paused: true }))
      const scale = expect(await world.get(`${path}/scale`), 200)
      assert.is(textAt(scale.body, 'kind'), 'Scale')
      const scaled = expect(await world.merge(`${path}/scale`, { spec: { replicas: 1 } }), 200)
      assert.is(at(scaled.body, 'spec.replicas'), 1)
      assert.is(at((await world.get(path)).body, 'spec.replicas'), 1)
      expect(await world.merge(path, { spec: { replicas: 0 } }), 200)
    },
  },
  {
    name: 'a namespace carries its own name as a label',
    async run(world) {
      const read = expect(await world.get(`/api/v1/namespaces/${world.namespace}`), 200)
      assert.is(at(read.body, 'metadata', 'labels', 'kubernetes.io/metadata.name'), world.namespace)
      assert.is(at(read.body, 'status.phase'), 'Active')
      assert.match(versionOf(read), /^\d+$/)
    },
  },
]
