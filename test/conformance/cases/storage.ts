import * as assert from 'uvu/assert'
import { attachments, make } from '../objects.ts'
import { at, expect, faults, listAt, textAt, versionOf } from '../world.ts'
import type { Case, World } from '../world.ts'

function attachment(world: World, more: object = {}) {
  return {
    apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment', metadata: { name: world.name('va') },
    spec: { attacher: 'driver.example.com', nodeName: world.name('nobody'), source: { persistentVolumeName: world.name('pv') } }, ...more,
  }
}

export const storageCases: readonly Case[] = [
  {
    name: 'a new VolumeAttachment is not attached, whatever it is made with',
    async run(world) {
      const { answer } = await make(world, attachments, attachment(world, { status: { attached: true } }))
      assert.is(at(answer.body, 'status.attached'), false)
    },
  },
  {
    name: 'a VolumeAttachment\'s spec never changes: 422',
    async run(world) {
      const { path } = await make(world, attachments, attachment(world))
      const refused = expect(await world.merge(path, { spec: { nodeName: 'another' } }), 422, 'Invalid')
      assert.equal(faults(refused), ['spec'])
    },
  },
  {
    name: 'an attacher reports by the status subresource, and only its status is taken',
    async run(world) {
      const { path } = await make(world, attachments, attachment(world))
      const next = expect(await world.merge(`${path}/status`, { metadata: { labels: { a: 'b' } }, status: { attached: true } }), 200)
      assert.is(at(next.body, 'status.attached'), true)
      assert.is(at(next.body, 'metadata.labels'), undefined)
      assert.is(at(expect(await world.merge(path, { status: { attached: false } }), 200).body, 'status.attached'), true)
    },
  },
  {
    name: 'an attacher\'s finalizer keeps a deleted VolumeAttachment until it is detached',
    async run(world) {
      const { path } = await make(world, attachments, attachment(world))
      expect(await world.merge(path, { metadata: { finalizers: ['external-attacher/driver-example-com'] } }), 200)
      const marked = expect(await world.remove(path), 200)
      assert.is(textAt(marked.body, 'kind'), 'VolumeAttachment')
      expect(await world.get(path), 200)
      expect(await world.json(path, [{ op: 'remove', path: '/metadata/finalizers' }]), 200)
      expect(await world.get(path), 404)
    },
  },
  {
    name: 'a VolumeAttachment without a finalizer is gone at once',
    async run(world) {
      const { path } = await make(world, attachments, attachment(world))
      expect(await world.remove(path), 200)
      expect(await world.get(path), 404)
    },
  },
  {
    name: 'a VolumeAttachment without a node or a source is refused with 422 naming both',
    async run(world) {
      const bare = { apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment', metadata: { name: world.name('va') }, spec: { attacher: 'd.example.com', nodeName: '', source: {} } }
      const refused = expect(await world.post(attachments, bare), 422, 'Invalid')
      assert.ok(faults(refused).includes('spec.nodeName') && faults(refused).includes('spec.source'), faults(refused).join())
    },
  },
  {
    name: 'a PUT of a VolumeAttachment needs its version',
    async run(world) {
      const { path } = await make(world, attachments, attachment(world))
      expect(await world.put(path, attachment(world)), 422, 'Invalid')
    },
  },
  {
    name: 'a CSIDriver says attachRequired unless told otherwise',
    async run(world) {
      const { answer } = await make(world, '/apis/storage.k8s.io/v1/csidrivers', { apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: { name: `${world.name('d')}.example.com` }, spec: {} } as { metadata: { name: string } })
      assert.is(at(answer.body, 'spec.attachRequired'), true)
      assert.is(at(answer.body, 'spec.podInfoOnMount'), false)
    },
  },
  {
    name: 'a CSINode names each driver once, with its node id',
    async run(world) {
      const name = world.name('n')
      const drivers = [{ name: 'a.example.com', nodeID: name, topologyKeys: [] }]
      const { path, answer } = await make(world, '/apis/storage.k8s.io/v1/csinodes', { apiVersion: 'storage.k8s.io/v1', kind: 'CSINode', metadata: { name }, spec: { drivers } } as { metadata: { name: string } })
      assert.is(listAt(answer.body, 'spec.drivers').length, 1)
      expect(await world.merge(path, { spec: { drivers: [...drivers, ...drivers] } }), 422, 'Invalid')
      expect(await world.merge(path, { spec: { drivers: [{ name: 'a.example.com', nodeID: 'another' }] } }), 422, 'Invalid')
    },
  },
  {
    name: 'a persistent volume is protected while it is used, and its source never changes',
    async run(world) {
      const volume = {
        apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: world.name('pv') },
        spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], csi: { driver: 'driver.example.com', volumeHandle: 'v1' } },
      }
      const { path, answer } = await make(world, '/api/v1/persistentvolumes', volume)
      assert.ok(listAt(answer.body, 'metadata.finalizers').includes('kubernetes.io/pv-protection'))
      assert.is(at(answer.body, 'spec.persistentVolumeReclaimPolicy'), 'Retain')
      expect(await world.merge(path, { spec: { csi: { volumeHandle: 'v2' } } }), 422, 'Invalid')
    },
  },
  {
    name: 'a claim begins Pending',
    async run(world) {
      const claim = {
        apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: world.name('c') },
        spec: { storageClassName: 'nobody', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      }
      const { answer } = await make(world, `/api/v1/namespaces/${world.namespace}/persistentvolumeclaims`, claim)
      assert.is(at(answer.body, 'status.phase'), 'Pending')
      assert.is(at(answer.body, 'spec.volumeMode'), 'Filesystem')
    },
  },
  {
    name: 'a VolumeAttachment under the version read is replaced whole',
    async run(world) {
      const { path, answer } = await make(world, attachments, attachment(world))
      const next = expect(await world.put(path, { ...answer.body, metadata: { ...(answer.body['metadata'] as object), annotations: { a: 'b' } } }), 200)
      assert.is(at(next.body, 'metadata.annotations.a'), 'b')
      expect(await world.put(path, answer.body), 409, 'Conflict')
      assert.is.not(versionOf(next), versionOf(answer))
    },
  },
]
