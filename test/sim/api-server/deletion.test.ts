import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { at, map, maps, pod, pods, serverWorld } from './server-world.ts'

const test = suite('deletion')

test('the grace of a pod runs from its first deletion, not from the one that shortens it', async () => {
  const { ask, clock } = serverWorld()
  await ask('POST', pods, pod('p', 'n1', { terminationGracePeriodSeconds: 600 }))
  const first = await ask('DELETE', `${pods}/p`)
  await clock.runFor(10_000)
  const second = await ask('DELETE', `${pods}/p`, { gracePeriodSeconds: 60 })
  const moved = Date.parse(String(at(second.body, 'metadata.deletionTimestamp'))) - Date.parse(String(at(first.body, 'metadata.deletionTimestamp')))
  assert.is(moved, -540_000)
})

test('a grace shortened to less than has passed already becomes one second, for the kubelet\'s last word', async () => {
  const { ask, clock } = serverWorld()
  await ask('POST', pods, pod('p', 'n1', { terminationGracePeriodSeconds: 600 }))
  await ask('DELETE', `${pods}/p`)
  await clock.runFor(100_000)
  const shortened = await ask('DELETE', `${pods}/p`, { gracePeriodSeconds: 60 })
  assert.is(at(shortened.body, 'metadata.deletionGracePeriodSeconds'), 1)
  assert.is(at(shortened.body, 'metadata.deletionTimestamp'), new Date(clock.wall()).toISOString().replace(/\.\d+Z/, 'Z'))
})

test('a pod whose grace has passed is still there: only a kubelet or a force ends it', async () => {
  const { ask, clock } = serverWorld()
  await ask('POST', pods, pod('p'))
  await ask('DELETE', `${pods}/p`)
  await clock.runFor(3_600_000)
  assert.is((await ask('GET', `${pods}/p`)).status, 200)
  assert.is((await ask('DELETE', `${pods}/p`, { gracePeriodSeconds: 0 })).status, 200)
  assert.is((await ask('GET', `${pods}/p`)).status, 404)
})

test('a negative grace is one second', async () => {
  const { ask } = serverWorld()
  await ask('POST', pods, pod('p'))
  assert.is(at((await ask('DELETE', `${pods}/p`, { gracePeriodSeconds: -1 })).body, 'metadata.deletionGracePeriodSeconds'), 1)
})

test('orphaning and foreground deletion leave their finalizers for the garbage collector', async () => {
  const { ask } = serverWorld()
  await ask('POST', maps, map('a'))
  await ask('POST', maps, map('b'))
  assert.equal(at((await ask('DELETE', `${maps}/a`, { propagationPolicy: 'Orphan' })).body, 'metadata.finalizers'), ['orphan'])
  assert.equal(at((await ask('DELETE', `${maps}/b`, { propagationPolicy: 'Foreground' })).body, 'metadata.finalizers'), ['foregroundDeletion'])
  assert.is((await ask('GET', `${maps}/a`)).status, 200)
})

test('a deleted namespace takes what is in it along, and waits for what is held', async () => {
  const { ask } = serverWorld()
  await ask('POST', '/api/v1/namespaces', { metadata: { name: 'n' } })
  await ask('POST', '/api/v1/namespaces/n/configmaps', { metadata: { name: 'free' } })
  await ask('POST', '/api/v1/namespaces/n/configmaps', { metadata: { name: 'held', finalizers: ['example.com/hold'] } })
  assert.is(at((await ask('DELETE', '/api/v1/namespaces/n')).body, 'status.phase'), 'Terminating')
  assert.is((await ask('GET', '/api/v1/namespaces/n/configmaps/free')).status, 404)
  assert.is((await ask('GET', '/api/v1/namespaces/n')).status, 200)
  assert.is((await ask('POST', '/api/v1/namespaces/n/configmaps', { metadata: { name: 'late' } })).status, 403)
  await ask('PATCH', '/api/v1/namespaces/n/configmaps/held', { metadata: { finalizers: null } }, { type: 'application/merge-patch+json' })
  assert.is((await ask('GET', '/api/v1/namespaces/n')).status, 404)
})

test('a deleted definition takes its objects and its kind along', async () => {
  const { ask } = serverWorld()
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name: 'things.example.com' },
    spec: {
      group: 'example.com', scope: 'Cluster', names: { plural: 'things', kind: 'Thing' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } } }],
    },
  }
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
  assert.is((await ask('POST', definitions, definition)).status, 201)
  assert.is((await ask('POST', '/apis/example.com/v1/things', { apiVersion: 'example.com/v1', kind: 'Thing', metadata: { name: 'a' }, any: 1 })).status, 201)
  assert.is((await ask('DELETE', `${definitions}/things.example.com`)).status, 200)
  assert.is((await ask('POST', definitions, definition)).status, 201)
  assert.equal((await ask('GET', '/apis/example.com/v1/things')).body['items'], [])
})

test.run()
