// Who may do what: the identity of a node, the tokens of service accounts.
import * as assert from 'uvu/assert'
import { make, node, pod, pods } from '../objects.ts'
import { at, expect, listAt, textAt } from '../world.ts'
import type { Case, World } from '../world.ts'

const accounts = (world: World) => `/api/v1/namespaces/${world.namespace}/serviceaccounts`
const reviews = '/apis/authentication.k8s.io/v1/tokenreviews'

async function token(world: World, spec: object) {
  return world.post(`${accounts(world)}/default/token`, { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata: {}, spec })
}

async function review(world: World, bearer: string, audiences?: string[]) {
  return expect(await world.post(reviews, { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', metadata: {}, spec: { token: bearer, ...(audiences === undefined ? {} : { audiences }) } }), 201)
}

async function podToken(world: World) {
  const name = world.name('p')
  const nodeName = world.name('n')
  await make(world, '/api/v1/nodes', node(nodeName))
  const made = await make(world, pods(world), pod(name, nodeName))
  const uid = textAt(made.answer.body, 'metadata.uid')
  const issued = expect(await token(world, { audiences: ['holdfast'], expirationSeconds: 600, boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid } }), 201)
  return { path: made.path, name, uid, nodeName, bearer: textAt(issued.body, 'status.token') }
}

function nodeLease(name: string) {
  return {
    apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name },
    spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: '2026-01-01T00:00:00.000000Z' },
  }
}

export const identityCases: readonly Case[] = [
  {
    name: 'a token is issued for an audience and is good for it alone',
    async run(world) {
      const bearer = textAt(expect(await token(world, { audiences: ['holdfast'] }), 201).body, 'status.token')
      const good = await review(world, bearer, ['holdfast'])
      assert.is(at(good.body, 'status.authenticated'), true)
      assert.equal(at(good.body, 'status.audiences'), ['holdfast'])
      assert.is(at(good.body, 'status.user.username'), `system:serviceaccount:${world.namespace}:default`)
      assert.is.not(at((await review(world, bearer, ['another'])).body, 'status.authenticated'), true)
      assert.is.not(at((await review(world, bearer)).body, 'status.authenticated'), true)
    },
  },
  {
    name: 'a token bound to a pod names the pod and its node',
    async run(world) {
      const bound = await podToken(world)
      const good = await review(world, bound.bearer, ['holdfast'])
      assert.is(at(good.body, 'status.authenticated'), true)
      const extra = at(good.body, 'status.user.extra')
      assert.equal(at(extra, 'authentication.kubernetes.io/pod-name', 0), bound.name)
      assert.equal(at(extra, 'authentication.kubernetes.io/pod-uid', 0), bound.uid)
      assert.equal(at(extra, 'authentication.kubernetes.io/node-name', 0), bound.nodeName)
      assert.match(textAt(extra, 'authentication.kubernetes.io/node-uid', 0), /^[0-9a-f-]{36}$/)
    },
  },
  {
    name: 'a token bound to a pod dies with the pod',
    async run(world) {
      const bound = await podToken(world)
      expect(await world.remove(bound.path, { gracePeriodSeconds: 0 }), 200)
      await world.eventually('the token\'s end', async () => at((await review(world, bound.bearer, ['holdfast'])).body, 'status.authenticated') !== true)
    },
  },
  {
    name: 'a token bound to a pod under another uid is refused with 409',
    async run(world) {
      const { answer } = await make(world, pods(world), pod(world.name('p')))
      const name = textAt(answer.body, 'metadata.name')
      expect(await token(world, { audiences: ['holdfast'], boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid: '11111111-1111-1111-1111-111111111111' } }), 409, 'Conflict')
    },
  },
  {
    name: 'a token of less than ten minutes is refused with 422',
    async run(world) {
      expect(await token(world, { audiences: ['holdfast'], expirationSeconds: 60 }), 422, 'Invalid')
    },
  },
  {
    name: 'a token that is none is not authenticated',
    async run(world) {
      const bad = await review(world, 'nonsense', ['holdfast'])
      assert.is.not(at(bad.body, 'status.authenticated'), true)
    },
  },
  {
    name: 'an access review answers whether one may',
    async run(world) {
      const asked = expect(await world.post('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
        apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', metadata: {}, spec: { resourceAttributes: { verb: 'get', resource: 'nodes', group: '' } },
      }), 201)
      assert.is(at(asked.body, 'status.allowed'), true)
    },
  },
  {
    name: 'a node makes its own Node, and not another\'s',
    async run(world) {
      const name = world.name('n')
      const self = world.as(world.driver.node(name))
      expect(await self.post('/api/v1/nodes', node(name)), 201)
      world.made(`/api/v1/nodes/${name}`)
      expect(await self.post('/api/v1/nodes', node(world.name('other'))), 403, 'Forbidden')
    },
  },
  {
    name: 'a node reads its own Node and no other',
    async run(world) {
      const name = world.name('n')
      await make(world, '/api/v1/nodes', node(name))
      await make(world, '/api/v1/nodes', node(world.name('other')))
      const self = world.as(world.driver.node(name))
      expect(await self.get(`/api/v1/nodes/${name}`), 200)
      expect(await self.get(`/api/v1/nodes/${world.name('other')}`), 403, 'Forbidden')
    },
  },
  {
    name: 'a node writes its own status, and not another\'s',
    async run(world) {
      const name = world.name('n')
      await make(world, '/api/v1/nodes', node(name))
      await make(world, '/api/v1/nodes', node(world.name('other')))
      const self = world.as(world.driver.node(name))
      expect(await self.merge(`/api/v1/nodes/${name}/status`, { status: { volumesInUse: ['a'] } }), 200)
      expect(await self.merge(`/api/v1/nodes/${world.name('other')}/status`, { status: { volumesInUse: ['a'] } }), 403, 'Forbidden')
    },
  },
  {
    name: 'a node cannot take off its own taint',
    async run(world) {
      const name = world.name('n')
      const taints = [{ key: 'holdfast.dev/quarantine', effect: 'NoSchedule' }]
      await make(world, '/api/v1/nodes', { ...node(name), spec: { taints } })
      const self = world.as(world.driver.node(name))
      expect(await self.merge(`/api/v1/nodes/${name}`, { spec: { taints: null } }), 403, 'Forbidden')
      expect(await self.merge(`/api/v1/nodes/${name}`, { metadata: { annotations: { 'example.com/a': 'b' } } }), 200)
    },
  },
  {
    name: 'a node does not delete its Node',
    async run(world) {
      const name = world.name('n')
      await make(world, '/api/v1/nodes', node(name))
      expect(await world.as(world.driver.node(name)).remove(`/api/v1/nodes/${name}`), 403, 'Forbidden')
    },
  },
  {
    name: 'a node renews its own Lease, and not another\'s',
    async run(world) {
      const name = world.name('n')
      const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
      const self = world.as(world.driver.node(name))
      const made = expect(await self.post(leases, nodeLease(name)), 201)
      world.made(`${leases}/${name}`)
      expect(await self.put(`${leases}/${name}`, { ...made.body, spec: { ...(made.body['spec'] as object), renewTime: '2026-01-01T00:00:10.000000Z' } }), 200)
      await make(world, leases, nodeLease(world.name('other')))
      expect(await self.merge(`${leases}/${world.name('other')}`, { spec: { leaseDurationSeconds: 1 } }), 403, 'Forbidden')
    },
  },
  {
    name: 'a node lists and watches the pods bound to it, and no others',
    async run(world) {
      const name = world.name('n')
      await make(world, '/api/v1/nodes', node(name))
      await make(world, pods(world), pod(world.name('p'), name))
      const self = world.as(world.driver.node(name))
      const list = expect(await self.get(`/api/v1/pods?fieldSelector=spec.nodeName=${name}`), 200)
      assert.is(listAt(list.body, 'items').length, 1)
      expect(await self.get('/api/v1/pods'), 403, 'Forbidden')
      expect(await self.get('/api/v1/pods?fieldSelector=spec.nodeName=another'), 403, 'Forbidden')
    },
  },
  {
    name: 'a node reports and finishes its own pod, and not another\'s',
    async run(world) {
      const name = world.name('n')
      await make(world, '/api/v1/nodes', node(name))
      const own = await make(world, pods(world), pod(world.name('p'), name))
      const foreign = await make(world, pods(world), pod(world.name('q'), world.name('other')))
      const self = world.as(world.driver.node(name))
      await world.eventually('the authorizer\'s view of the pod', async () => (await self.merge(`${own.path}/status`, { status: { phase: 'Running' } })).status === 200)
      expect(await self.merge(`${foreign.path}/status`, { status: { phase: 'Running' } }), 403, 'Forbidden')
      expect(await self.remove(foreign.path, { gracePeriodSeconds: 0 }), 403, 'Forbidden')
      expect(await self.remove(own.path, { gracePeriodSeconds: 0, preconditions: { uid: textAt(own.answer.body, 'metadata.uid') } }), 200)
      expect(await world.get(own.path), 404)
    },
  },
  {
    name: 'a node writes no VolumeAttachment',
    async run(world) {
      const name = world.name('n')
      expect(await world.as(world.driver.node(name)).post('/apis/storage.k8s.io/v1/volumeattachments', {
        apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment', metadata: { name: world.name('va') }, spec: { attacher: 'd', nodeName: name, source: { persistentVolumeName: 'x' } },
      }), 403, 'Forbidden')
    },
  },
]
