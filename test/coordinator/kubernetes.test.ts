import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { attachmentName } from '../../sim/mounts.ts'
import type { KubeObject } from '../../coordinator/api.ts'
import { attachmentOf, claimsOf, keepAttachment, keepNode, readPod, saysMore } from '../../coordinator/kubernetes.ts'

const test = suite('kubernetes')

/** As the API server sends it: more fields than the common type names. */
const object = (metadata: object, rest: object = {}): KubeObject => ({ metadata: { name: 'x', ...metadata }, ...rest } as KubeObject)

test('a node without a status is a node of which nothing is known', () => {
  const kept = keepNode(object({}))
  assert.is(kept.ready.status, 'Unknown')
  assert.is(kept.kubeletPort, 10_250)
  assert.equal(kept.taints, [])
})

test('of a node\'s annotations only ours are kept', () => {
  const kept = keepNode(object({ annotations: { 'holdfast.dev/exclude': 'yes', 'other/long': 'x'.repeat(9_000) } }))
  assert.equal(kept.metadata.annotations, { 'holdfast.dev/exclude': 'yes' })
})

test('what a Node says of its instance is kept, where it says anything', () => {
  assert.is(keepNode(object({}, { spec: { providerID: 'aws:///eu-west-1a/i-0a1' } })).providerID, 'aws:///eu-west-1a/i-0a1')
  assert.is('providerID' in keepNode(object({})), false)
})

test('conditions that are True are kept by their names, Ready apart', () => {
  const conditions = [{ type: 'Ready', status: 'True' }, { type: 'StorageUnreachable', status: 'True' }, { type: 'DiskPressure', status: 'False' }, { type: 'Odd', status: 'Unknown' }]
  assert.equal(keepNode(object({}, { status: { conditions } })).conditions, [{ type: 'StorageUnreachable', heartbeat: '' }])
  assert.is('conditions' in keepNode(object({}, { status: { conditions: conditions.slice(0, 1) } })), false)
})

test('a kubelet that posts again what it posted before says nothing new, whatever else it says does', () => {
  const said = { nodeInfo: { bootID: 'b' }, conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: 'then' }], volumesInUse: ['kubernetes.io/csi/csi.example.com^vol'] }
  const node = (version: string, status: object = {}, spec: object = {}, labels: object = {}) => keepNode(object({ resourceVersion: version, labels }, { status: { ...said, ...status }, spec }))
  const before = node('1')
  assert.is(saysMore(node('2', { conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: 'now' }] }), before), false)
  const heard = (at: string) => node('2', { conditions: [...said.conditions, { type: 'StorageHears', status: 'True', lastHeartbeatTime: at }] })
  assert.is(saysMore(heard('now'), heard('then')), false)
  const others = [
    node('2', { conditions: [{ type: 'Ready', status: 'Unknown', lastHeartbeatTime: 'then' }] }), node('2', { conditions: [...said.conditions, { type: 'StorageUnreachable', status: 'True' }] }),
    node('2', { nodeInfo: { bootID: 'c' } }), node('2', { addresses: [{ type: 'ExternalIP', address: '203.0.113.7' }] }), node('2', { volumesInUse: [] }), node('2', {}, { taints: [{ key: 'k', effect: 'NoSchedule' }] }), node('2', {}, {}, { pool: 'other' }),
  ]
  assert.equal(others.map((other) => saysMore(other, before)), others.map(() => true))
})

test('the address is the internal one', () => {
  const kept = keepNode(object({}, { status: { addresses: [{ type: 'Hostname', address: 'a' }, { type: 'InternalIP', address: '10.0.0.7' }] } }))
  assert.is(kept.address, '10.0.0.7')
})

test('a VolumeAttachment tells its volume, its node and what is wrong with it', () => {
  const { node, seen } = keepAttachment(object({ uid: 'u', deletionTimestamp: 'now' }, {
    spec: { attacher: 'csi', nodeName: 'node-1', source: { persistentVolumeName: 'pv-1' } }, status: { attached: true, detachError: { message: 'busy' } },
  }))
  assert.is(node, 'node-1')
  assert.equal(seen, { attachment: 'x', uid: 'u', driver: 'csi', volume: 'pv-1', attached: true, deleting: true, error: 'busy' })
})

test('a mirror pod and a DaemonSet pod are exempt, each with its reason', () => {
  assert.match(readPod(object({ annotations: { 'kubernetes.io/config.mirror': 'h' } })).exempt ?? '', /static/)
  const owned = readPod(object({ ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', uid: 'u', controller: true }] }))
  assert.match(owned.exempt ?? '', /DaemonSet/)
})

test('a pod of a kind nobody here knows is somebody\'s, and not exempt', () => {
  const pod = readPod(object({ ownerReferences: [{ apiVersion: 'example/v1', kind: 'Cluster', name: 'c', uid: 'u', controller: true }] }))
  assert.is(pod.owner, 'other')
  assert.is(pod.exempt, undefined)
})

test('claims are the pod\'s own and those of its generic ephemeral volumes', () => {
  const claims = claimsOf(object({ name: 'db-0', namespace: 'work' }, { spec: { volumes: [
    { name: 'data', persistentVolumeClaim: { claimName: 'data-db-0' } }, { name: 'scratch', ephemeral: {} }, { name: 'config', configMap: {} },
  ] } }))
  assert.equal(claims, ['work/data-db-0', 'work/db-0-scratch'])
})

test('what a node is said to use leads to its VolumeAttachment, named as Kubernetes names it', () => {
  assert.is(attachmentOf('kubernetes.io/csi/csi.holdfast.dev^vol-1', 'node-1'), attachmentName('vol-1', 'csi.holdfast.dev', 'node-1'))
  assert.is(attachmentOf('kubernetes.io/csi/ebs.csi.aws.com^a^b', 'node-1'), attachmentName('a^b', 'ebs.csi.aws.com', 'node-1'), 'a handle may bear the mark itself')
  assert.is(attachmentOf('kubernetes.io/nfs/server', 'node-1'), undefined)
})

const volumes = (...of: object[]) => readPod(object({ name: 'p' }, { spec: { volumes: of } })).beside
test('a volume without a claim that others may write too is named; the pod\'s own are not', () => {
  assert.is(volumes({ name: 'a', emptyDir: {} }, { name: 'b', configMap: {} }, { name: 'c', persistentVolumeClaim: { claimName: 'x' } }, { name: 'd', hostPath: { path: '/x' } }), undefined)
  assert.is(volumes({ name: 'a', emptyDir: {} }, { name: 'share', nfs: { server: 's', path: '/x' } }), 'share')
  assert.is(volumes({ name: 'new', whatever: {} }), 'new', 'of a kind that nobody here knows')
  assert.is(volumes({ name: 'secrets', csi: { driver: 'secrets-store.csi.k8s.io', readOnly: true } }), undefined)
  assert.is(volumes({ name: 'secrets', csi: { driver: 'secrets-store.csi.k8s.io', readOnly: true } }, { name: 'share', csi: { driver: 'nfs.csi.k8s.io' } }), 'share', 'what its driver mounts to be written')
})

const excused = (...tolerations: object[]) => readPod(object({ name: 'p' }, { spec: { tolerations } })).toleratesEviction
test('a pod tolerates force-eviction by its key, or by a star', () => {
  assert.ok(excused({ operator: 'Exists' }))
  assert.ok(excused({ key: 'holdfast.dev/force-eviction', operator: 'Exists', effect: 'NoSchedule' }))
  assert.not(excused({ operator: 'Exists', effect: 'NoExecute' }))
  assert.not(excused({ key: 'node.kubernetes.io/unreachable', operator: 'Exists' }))
  assert.not(excused())
})

test('a static pod\'s folder bears the hash of its file', () => {
  assert.is(readPod(object({ uid: 'mirror', annotations: { 'kubernetes.io/config.hash': 'abc', 'kubernetes.io/config.mirror': 'abc' } })).folder, 'abc')
  assert.is(readPod(object({ uid: 'u', annotations: { 'kubernetes.io/config.hash': 'uid-of-another' } })).folder, undefined, 'anybody may write that on a pod, and what is left over of another would belong')
  assert.is(readPod(object({ uid: 'u' })).folder, undefined)
})

const askedAt = (...addresses: { type: string; address: string }[]) => keepNode(object({}, { status: { addresses } })).address

test('a Node without an internal address is asked at its external one, and never by a name', () => {
  assert.is(askedAt({ type: 'Hostname', address: 'node-1' }, { type: 'ExternalIP', address: '203.0.113.7' }), '203.0.113.7')
  assert.is(askedAt({ type: 'InternalIP', address: '2001:db8::7' }), '2001:db8::7')
  assert.is(askedAt({ type: 'Hostname', address: 'node-1' }, { type: 'InternalDNS', address: 'node-1.internal' }), '')
})

const addressesOf = (...addresses: string[]) => keepNode(object({}, { status: { addresses: addresses.map((address) => ({ type: 'InternalIP', address })) } })).addresses

test('of what a Node names its IP addresses are kept, each once, written in one way and in one order', () => {
  const named = [{ type: 'Hostname', address: 'node-1' }, { type: 'ExternalIP', address: '203.0.113.7' }, { type: 'InternalIP', address: 'FD00:0:0::7' }, { type: 'InternalIP', address: '10.0.0.7' }, { type: 'InternalIP', address: 'fd00::7' }]
  for (const addresses of [named, named.toReversed()]) assert.equal(keepNode(object({}, { status: { addresses } })).addresses, ['10.0.0.7', '203.0.113.7', 'fd00::7'])
  assert.is(addressesOf('node-1', '10.0.0.0/8', '10.0.0.7 10.0.0.8', '10.0.0.7,10.0.0.8', 'fe80::1%eth0', ''), undefined, 'no other text is one')
})

test('of more addresses than a record holds none is kept: who is cut off by some of them writes by the others', () => {
  const many = Array.from({ length: 17 }, (_, index) => `10.0.0.${index}`)
  assert.is(addressesOf(...many.slice(1))?.length, 16)
  assert.is(addressesOf(...many), undefined)
})

const tolerates = (...tolerations: object[]): boolean => readPod(object({}, { spec: { tolerations } })).tolerates === true

test('a pod tolerates the quarantine as the scheduler would have it', () => {
  const key = 'holdfast.dev/quarantine'
  for (const yes of [{ operator: 'Exists' }, { key, operator: 'Exists' }, { key, value: 'holdfast' }, { key, operator: 'Equal', value: 'holdfast', effect: 'NoSchedule' }, { operator: 'Exists', effect: 'NoSchedule' }]) {
    assert.is(tolerates({ key: 'other' }, yes), true, JSON.stringify(yes))
  }
  for (const no of [{ operator: 'Exists', effect: 'NoExecute' }, { key }, { key, value: 'other' }, { key: 'node.kubernetes.io/unreachable', operator: 'Exists' }, {}]) {
    assert.is(tolerates(no), false, JSON.stringify(no))
  }
  assert.is(tolerates(), false)
})

test.run()
