import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import fc from 'fast-check'
import type { CleanReport } from '../../core/beat.ts'
import { cleanReport, readMounts, type HostTables } from '../../core/mounts.ts'

const test = suite('mounts')

const root = '/var/lib/kubelet'
const mine = '11111111-1111-1111-1111-111111111111'
const gone = '22222222-2222-2222-2222-222222222222'
const hash = 'f'.repeat(64)

/** A line of /proc/1/mountinfo. */
function mount(path: string, device = '8:16', type = 'ext4'): string {
  return `36 35 ${device} / ${path} rw,noatime shared:1 master:2 - ${type} /dev/sdb rw`
}

function report(lines: readonly string[], change: Partial<HostTables> = {}): CleanReport {
  return cleanReport({ mountinfo: [mount('/', '8:1'), ...lines, ''].join('\n'), podFolders: [mine], kubeletRoot: root, belonging: new Set([mine]), ...change })
}

function found(lines: readonly string[], change: Partial<HostTables> = {}): readonly string[] {
  const told = report(lines, change)
  return told.state === 'dirty' ? told.leftovers.map((one) => `${one.kind} ${one.path}`) : [told.state]
}

test('a node that holds only what its own pods have mounted is clean', () => {
  assert.equal(report([
    mount(`${root}/pods/${mine}/volumes/kubernetes.io~csi/pvc-1/mount`),
    mount(`${root}/plugins/kubernetes.io/csi/disk.example/${hash}/globalmount`),
    mount(`${root}/pods/${mine}/volume-subpaths/pvc-1/app/0`),
  ]), { state: 'clean' })
})

test('a volume of a pod that does not belong is left over', () => {
  const path = `${root}/pods/${gone}/volumes/kubernetes.io~csi/pvc-2/mount`
  assert.equal(report([mount(path)]), { state: 'dirty', leftovers: [{ kind: 'mount', path, pod: gone, volume: 'pvc-2' }] })
})

test('what kubelet makes of the API\'s own data and of scratch space is no leftover', () => {
  const kinds = ['secret', 'configmap', 'projected', 'downward-api', 'empty-dir']
  assert.equal(report(kinds.map((kind) => mount(`${root}/pods/${gone}/volumes/kubernetes.io~${kind}/x`, '0:50', 'tmpfs'))), { state: 'clean' })
})

test('an NFS volume and a subpath of a pod that is gone are left over', () => {
  const nfs = `${root}/pods/${gone}/volumes/kubernetes.io~nfs/data`
  const subpath = `${root}/pods/${gone}/volume-subpaths/data/app/0`
  assert.equal(found([mount(nfs, '0:60', 'nfs4'), mount(subpath, '0:60', 'nfs4')]), [`mount ${nfs}`, `mount ${subpath}`])
})

test('a staging mount without a pod that uses its device is left over', () => {
  const staging = `${root}/plugins/kubernetes.io/csi/disk.example/${hash}/globalmount`
  assert.equal(found([mount(staging, '8:32'), mount(`${root}/pods/${mine}/volumes/kubernetes.io~csi/pvc-1/mount`, '8:16')]), [`staging ${staging}`])
})

test('a staging mount whose only user does not belong is left over together with it', () => {
  const staging = `${root}/plugins/kubernetes.io/csi/disk.example/${hash}/globalmount`
  const volume = `${root}/pods/${gone}/volumes/kubernetes.io~csi/pvc-2/mount`
  assert.equal(found([mount(staging), mount(volume)]), [`staging ${staging}`, `mount ${volume}`])
})

test('the older form of the staging folder and other plugins\' shared mounts count too', () => {
  const old = `${root}/plugins/kubernetes.io/csi/pv/pvc-9/globalmount`
  const iscsi = `${root}/plugins/kubernetes.io/iscsi/iface-default/target-lun-0`
  assert.equal(found([mount(old), mount(iscsi, '8:48')]), [`staging ${old}`, `staging ${iscsi}`])
})

test('a block volume is left over unless the pod that it was published for belongs', () => {
  const folder = `${root}/plugins/kubernetes.io/csi/volumeDevices`
  const device = '0:6'
  assert.equal(report([
    mount(`${folder}/staging/pvc-1`, device, 'devtmpfs'), mount(`${folder}/publish/pvc-1/${mine}`, device, 'devtmpfs'), mount(`${folder}/pvc-1/dev/${mine}`, device, 'devtmpfs'),
    mount(`${root}/pods/${mine}/volumeDevices/kubernetes.io~csi/pvc-1`, device, 'devtmpfs'),
  ]), { state: 'clean' })
  assert.equal(found([mount(`${folder}/staging/pvc-2`, device, 'devtmpfs'), mount(`${folder}/publish/pvc-2/${gone}`, device, 'devtmpfs'), mount(`${folder}/publish/pvc-1/${mine}`, device, 'devtmpfs')]),
    [`block volume ${folder}/staging/pvc-2`, `block volume ${folder}/publish/pvc-2/${gone}`])
})

test('a folder of a pod that does not belong is left over even without a mount', () => {
  assert.equal(found([], { podFolders: [mine, gone] }), [`pod directory ${root}/pods/${gone}`])
})

test('mounts outside kubelet\'s folder, and folders that only begin like it, are none of its leftovers', () => {
  assert.equal(report([mount('/mnt/backup'), mount('/var/lib/kubelet-old/pods/x/volumes/kubernetes.io~csi/y/mount'), mount('/var/lib/containerd/overlay')]), { state: 'clean' })
})

test('another kubelet root is looked at where it is', () => {
  const path = `/data/kubelet/pods/${gone}/volumes/kubernetes.io~csi/pvc-2/mount`
  assert.equal(found([mount(path)], { kubeletRoot: '/data/kubelet/' }), [`mount ${path}`])
})

test('escaped characters of a path are read as the kernel meant them', () => {
  assert.equal(readMounts(mount('/mnt/with\\040space\\011tab\\134backslash')), { mounts: [{ device: '8:16', path: '/mnt/with space\ttab\\backslash' }] })
  const path = `${root}/pods/${gone}/volumes/kubernetes.io~csi/my volume/mount`
  assert.equal(found([mount(path.replace(' ', '\\040'))]), [`mount ${path}`])
})

test('whatever cannot be known is unknown and never clean', () => {
  assert.is(report([], { belonging: undefined }).state, 'unknown')
  assert.is(report([], { mountinfo: undefined }).state, 'unknown')
  assert.is(report([], { podFolders: undefined }).state, 'unknown')
  assert.is(report([], { mountinfo: '' }).state, 'unknown')
  assert.is(report(['a line that is none']).state, 'unknown')
})

test('a long list of leftovers is cut, not refused', () => {
  const told = report([], { podFolders: Array.from({ length: 500 }, (_, index) => `pod-${index}`) })
  assert.is(told.state === 'dirty' && told.leftovers.length, 100)
})

test('no text makes it throw, and a leftover among any other lines is found', () => {
  const path = `${root}/pods/${gone}/volumes/kubernetes.io~csi/pvc-2/mount`
  const folders = fc.array(fc.constantFrom('pods', 'volumes', mine, 'kubernetes.io~csi', 'plugins', 'kubernetes.io', 'volumeDevices', 'csi', '..', 'x'), { maxLength: 8 })
  fc.assert(fc.property(fc.array(folders), fc.string(), (paths, noise) => {
    assert.ok(found([...paths.map((parts) => mount(`${root}/${parts.join('/')}`, '8:99')), mount(path)]).includes(`mount ${path}`))
    report([noise])
  }))
})

test.run()
