import * as assert from 'uvu/assert'
import { make, pod, pods } from '../objects.ts'
import { at, expect, faults, listAt, textAt, versionOf } from '../world.ts'
import type { Case } from '../world.ts'

export const podCases: readonly Case[] = [
  {
    name: 'a new pod is Pending, with the defaults that everything later relies on',
    async run(world) {
      const { answer } = await make(world, pods(world), pod(world.name('p')))
      assert.is(at(answer.body, 'status.phase'), 'Pending')
      assert.is(at(answer.body, 'status.qosClass'), 'BestEffort')
      assert.is(at(answer.body, 'spec.terminationGracePeriodSeconds'), 30)
      assert.is(at(answer.body, 'spec.restartPolicy'), 'Always')
      assert.is(at(answer.body, 'spec.serviceAccountName'), 'default')
      assert.is(at(answer.body, 'spec.priority'), 0)
    },
  },
  {
    name: 'a pod is given five minutes on a node that is lost',
    async run(world) {
      const { answer } = await make(world, pods(world), pod(world.name('p')))
      const tolerated = listAt(answer.body, 'spec.tolerations').map((one) => `${textAt(one, 'key')}:${textAt(one, 'effect')}:${at(one, 'tolerationSeconds')}`)
      assert.ok(tolerated.includes('node.kubernetes.io/unreachable:NoExecute:300'), tolerated.join())
      assert.ok(tolerated.includes('node.kubernetes.io/not-ready:NoExecute:300'), tolerated.join())
    },
  },
  {
    name: 'a pod made with a status does not keep it',
    async run(world) {
      const { answer } = await make(world, pods(world), { ...pod(world.name('p')), status: { phase: 'Running' } } as ReturnType<typeof pod>)
      assert.is(at(answer.body, 'status.phase'), 'Pending')
    },
  },
  {
    name: 'a pod may be made bound',
    async run(world) {
      const { answer } = await make(world, pods(world), pod(world.name('p'), world.name('nobody')))
      assert.is(at(answer.body, 'spec.nodeName'), world.name('nobody'))
    },
  },
  {
    name: 'a pod\'s node is not changed by an update: 422',
    async run(world) {
      const { path } = await make(world, pods(world), pod(world.name('p'), world.name('nobody')))
      expect(await world.merge(path, { spec: { nodeName: 'another' } }), 422, 'Invalid')
    },
  },
  {
    name: 'an unbound pod is not bound by an update: 422',
    async run(world) {
      const { path } = await make(world, pods(world), pod(world.name('p')))
      expect(await world.merge(path, { spec: { nodeName: 'another' } }), 422, 'Invalid')
    },
  },
  {
    name: 'a pod\'s grace and volumes are not changed by an update: 422',
    async run(world) {
      const { path } = await make(world, pods(world), pod(world.name('p')))
      expect(await world.merge(path, { spec: { terminationGracePeriodSeconds: 5 } }), 422, 'Invalid')
      expect(await world.merge(path, { spec: { volumes: [{ name: 'v', emptyDir: {} }] } }), 422, 'Invalid')
    },
  },
  {
    name: 'a pod\'s image and labels may be changed',
    async run(world) {
      const name = world.name('p')
      const { path } = await make(world, pods(world), pod(name))
      const next = expect(await world.strategic(path, { metadata: { labels: { more: 'yes' } }, spec: { containers: [{ name: 'main', image: 'registry.invalid/nothing:2' }] } }), 200)
      assert.is(at(next.body, 'spec.containers.0.image'), 'registry.invalid/nothing:2')
      assert.equal(at(next.body, 'metadata.labels'), { app: name, more: 'yes' })
    },
  },
  {
    name: 'a pod may be given a toleration, and none is taken away',
    async run(world) {
      const { path, answer } = await make(world, pods(world), pod(world.name('p')))
      const there = listAt(answer.body, 'spec.tolerations')
      expect(await world.merge(path, { spec: { tolerations: [...there, { key: 'example.com/a', operator: 'Exists' }] } }), 200)
      expect(await world.merge(path, { spec: { tolerations: [] } }), 422, 'Invalid')
    },
  },
  {
    name: 'a pod without containers is refused with 422',
    async run(world) {
      const refused = expect(await world.post(pods(world), { apiVersion: 'v1', kind: 'Pod', metadata: { name: world.name('p') }, spec: { containers: [] } }), 422, 'Invalid')
      assert.ok(faults(refused).includes('spec.containers'))
    },
  },
  {
    name: 'a pod of an account that is not there is refused with 403',
    async run(world) {
      expect(await world.post(pods(world), pod(world.name('p'), undefined, { serviceAccountName: 'nobody-at-all' })), 403, 'Forbidden')
    },
  },
  {
    name: 'a binding binds once, a second one is refused with 409',
    async run(world) {
      const name = world.name('p')
      const { path } = await make(world, pods(world), pod(name))
      const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target: { apiVersion: 'v1', kind: 'Node', name: world.name('nobody') } }
      expect(await world.post(`${path}/binding`, binding), 201)
      const bound = expect(await world.get(path), 200)
      assert.is(at(bound.body, 'spec.nodeName'), world.name('nobody'))
      assert.ok(listAt(bound.body, 'status.conditions').some((one) => textAt(one, 'type') === 'PodScheduled' && textAt(one, 'status') === 'True'))
      expect(await world.post(`${path}/binding`, binding), 409, 'Conflict')
    },
  },
  {
    name: 'a pod being deleted is not bound any more: 409',
    async run(world) {
      const name = world.name('p')
      const { path } = await make(world, pods(world), { ...pod(name), metadata: { name, labels: { app: name }, finalizers: ['example.com/hold'] } } as ReturnType<typeof pod>)
      expect(await world.remove(path), 200)
      expect(await world.post(`${path}/binding`, { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target: { kind: 'Node', name: 'x' } }), 409, 'Conflict')
    },
  },
  {
    name: 'a status patch with the disruption condition and phase Failed is the word that frees a pod',
    async run(world) {
      const { path, answer } = await make(world, pods(world), pod(world.name('p'), world.name('nobody'), { terminationGracePeriodSeconds: 600 }))
      const condition = { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByHoldfast', message: 'the node is off', lastTransitionTime: '2026-01-01T00:00:00Z' }
      const failed = expect(await world.strategic(`${path}/status`, {
        metadata: { uid: textAt(answer.body, 'metadata.uid'), resourceVersion: versionOf(answer) }, status: { phase: 'Failed', conditions: [condition] },
      }), 200)
      assert.is(at(failed.body, 'status.phase'), 'Failed')
      assert.ok(listAt(failed.body, 'status.conditions').some((one) => textAt(one, 'reason') === 'DeletionByHoldfast'))
      expect(await world.remove(path, { preconditions: { uid: textAt(answer.body, 'metadata.uid') } }), 200)
      expect(await world.get(path), 404)
    },
  },
  {
    name: 'a strategic status patch that means another uid is refused with 422',
    async run(world) {
      const { path } = await make(world, pods(world), pod(world.name('p')))
      expect(await world.strategic(`${path}/status`, { metadata: { uid: '11111111-1111-1111-1111-111111111111' }, status: { phase: 'Failed' } }), 422, 'Invalid')
    },
  },
  {
    name: 'a JSON status patch guarded by a test on uid is refused with 422 for another pod',
    async run(world) {
      const { path } = await make(world, pods(world), pod(world.name('p')))
      expect(await world.json(`${path}/status`, [
        { op: 'test', path: '/metadata/uid', value: '11111111-1111-1111-1111-111111111111' }, { op: 'replace', path: '/status/phase', value: 'Failed' },
      ]), 422, 'Invalid')
    },
  },
  {
    name: 'a status write keeps a pod\'s owner',
    async run(world) {
      const name = world.name('p')
      const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: '22222222-2222-2222-2222-222222222222' }
      const made = await make(world, pods(world), { ...pod(name), metadata: { name, labels: { app: name }, ownerReferences: [owner] } } as ReturnType<typeof pod>)
      const next = await world.merge(`${made.path}/status`, { metadata: { ownerReferences: null }, status: { message: 'x' } })
      // The garbage collector may have taken a pod whose owner is not there.
      if (next.status !== 404) assert.is(listAt(expect(next, 200).body, 'metadata.ownerReferences').length, 1)
    },
  },
  {
    name: 'a pod\'s generation counts changes of its spec',
    async run(world) {
      const { path, answer } = await make(world, pods(world), pod(world.name('p')))
      assert.is(at(answer.body, 'metadata.generation'), 1)
      assert.is(at(expect(await world.merge(path, { spec: { activeDeadlineSeconds: 1000 } }), 200).body, 'metadata.generation'), 2)
      assert.is(at(expect(await world.merge(`${path}/status`, { status: { message: 'x' } }), 200).body, 'metadata.generation'), 2)
    },
  },
]
