import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import fc from 'fast-check'
import type { CleanReport } from '../../core/beat.ts'
import { frameLimit, frameOf, mostLeftovers, readAgentWord } from '../../core/frame.ts'
import { cleanReport, isOfCsi, readMounts, stagedName, withName, type HostTables } from '../../core/mounts.ts'

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
  return cleanReport({
    mountinfo: [mount('/', '8:1'), ...lines, ''].join('\n'), podFolders: [mine], kubeletRoot: root, belonging: new Set([mine]), containers: [], mountTables: [], loopDevices: [], ...change,
  })
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
  assert.equal(report([mount(nfs, '0:60', 'nfs4')]), { state: 'dirty', leftovers: [{ kind: 'mount', path: nfs, pod: gone, volume: 'data', driver: 'kubernetes.io/nfs' }] })
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
  assert.equal(readMounts(mount('/mnt/with\\040space\\011tab\\134backslash')), { mounts: [{ device: '8:16', path: '/mnt/with space\ttab\\backslash', type: 'ext4' }] })
  const path = `${root}/pods/${gone}/volumes/kubernetes.io~csi/my volume/mount`
  assert.equal(found([mount(path.replace(' ', '\\040'))]), [`mount ${path}`])
})

test('a container that the runtime keeps is left over unless its pod belongs', () => {
  const containers = [{ id: 'aaaabbbbccccdddd', name: 'work/db-0 main', pod: gone }, { id: 'eeee', name: 'work/web', pod: mine }, { id: 'ffff', name: 'nobody', pod: '' }]
  assert.equal(report([], { containers }), { state: 'dirty', leftovers: [
    { kind: 'container', path: 'work/db-0 main aaaabbbbccccd', pod: gone }, { kind: 'container', path: 'nobody ffff' },
  ] })
})

test('a copy in another mount namespace is left over when the host has let go of it, and is its own when its pod belongs', () => {
  const csi = (pod: string) => `${root}/pods/${pod}/volumes/kubernetes.io~csi/pvc-2/mount`
  const table = (pod: string | undefined, ...lines: string[]) => ({ mountTables: [{ process: 71, ...(pod === undefined ? {} : { pod }), mountinfo: [mount('/', '0:99', 'overlay'), ...lines].join('\n') }] })
  const cases: [string, Partial<HostTables>, readonly string[]][] = [
    ['a volume of a pod that is gone, below kubelet\'s root', table(mine, mount(csi(gone), '8:32')), [`leaked mount ${csi(gone)} in process 71`]],
    ['the same where a container has the host\'s folders', table(mine, mount(`/host${csi(gone)}`, '8:32')), [`leaked mount ${csi(gone)} in process 71`]],
    ['a volume of a pod that belongs', table(mine, mount(csi(mine), '8:16')), ['clean']],
    ['the API\'s own data of a pod that is gone', table(mine, mount(`${root}/pods/${gone}/volumes/kubernetes.io~projected/x`, '0:70', 'tmpfs')), ['clean']],
    ['a disk that the host does not know any more, in a container of a pod that is gone', table(gone, mount('/data', '8:32')), ['leaked mount /data in process 71']],
    ['the same in a service of the host', table(undefined, mount('/data', '8:32')), ['leaked mount /data in process 71']],
    ['the same in a pod that belongs: it mounted it itself', table(mine, mount('/data', '8:32')), ['clean']],
    ['a disk of the host', table(undefined, mount('/etc/hosts', '8:1')), ['clean']],
    ['a server that the host does not know any more', table(undefined, mount('/data', '0:60', 'nfs4'), mount('/more', '0:61', 'fuse.s3fs')), ['leaked mount /data in process 71', 'leaked mount /more in process 71']],
    ['file systems on fuse that are of this machine alone', table(undefined, mount('/', '0:63', 'fuse.fuse-overlayfs'), mount('/proc/meminfo', '0:64', 'fuse.lxcfs')), ['clean']],
    ['what every container has', table(undefined, mount('/proc', '0:61', 'proc'), mount('/dev/shm', '0:62', 'tmpfs'), mount('/sys/fs/cgroup', '0:30', 'cgroup2')), ['clean']],
  ]
  for (const [what, tables, wanted] of cases) assert.equal(found([], tables), wanted, what)
})

const file = (pod: string) => `${root}/plugins/kubernetes.io/csi/volumeDevices/pvc-3/dev/${pod}`

test('a loop device that kubelet keeps on a block volume is left over unless its pod belongs', () => {
  assert.equal(report([], { loopDevices: [{ name: 'loop7', file: file(gone) }, { name: 'loop8', file: file(mine) }, { name: 'loop0', file: '/var/lib/snapd/snaps/core.snap' }] }), {
    state: 'dirty', leftovers: [{ kind: 'loop device', path: `loop7 on ${file(gone)}`, pod: gone, volume: 'pvc-3' }],
  })
  assert.equal(found([], { loopDevices: [{ name: 'loop8', file: `${file(mine)} (deleted)` }] }), ['clean'])
})

test('a staged volume is named by what kubelet wrote beside it, or not at all', () => {
  assert.equal(stagedName('{"driverName":"disk.example","volumeHandle":"vol-1","attachmentID":"csi-x"}'), { driver: 'disk.example', volume: 'vol-1' })
  for (const text of ['', '{', 'null', '[]', '{"driverName":5,"volumeHandle":"v"}', '{"driverName":"d"}']) assert.is(stagedName(text), undefined)
})

test('a pod\'s mount keeps the name that people know its volume by, and gets its driver\'s, or nothing that is none', () => {
  const own = { kind: 'mount', path: `${root}/pods/${gone}/volumes/kubernetes.io~csi/pvc-2/mount`, pod: gone, volume: 'pvc-2' } as const
  const staged = { kind: 'staging', path: 'x', volume: 'csi/disk.example/ff' } as const
  const text = '{"driverName":"disk.example","volumeHandle":"vol-1"}'
  assert.equal(withName(own, text), { ...own, driver: 'disk.example' })
  assert.equal(withName(staged, text), { ...staged, driver: 'disk.example', volume: 'vol-1' })
  for (const none of ['{', `{"driverName":"${'d'.repeat(64)}","volumeHandle":"v"}`, '{"driverName":"a b","volumeHandle":"v"}']) assert.equal(withName(own, none), own)
})

test('whatever cannot be known is unknown and never clean', () => {
  assert.is(report([], { belonging: undefined }).state, 'unknown')
  assert.is(report([], { mountinfo: undefined }).state, 'unknown')
  assert.is(report([], { podFolders: undefined }).state, 'unknown')
  assert.equal(report([], { containers: { failed: 'nobody listens' } }), { state: 'unknown', reason: 'the container runtime did not say what it runs: nobody listens' })
  assert.is(report([], { mountTables: undefined }).state, 'unknown')
  assert.is(report([], { loopDevices: undefined }).state, 'unknown')
  assert.equal(report([], { mountTables: [{ process: 7, mountinfo: 'garbage' }] }), { state: 'unknown', reason: 'of process 7: a line of the mount table cannot be read: garbage' })
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
    report([noise], { mountTables: [{ process: 1, mountinfo: noise }], loopDevices: [{ name: noise, file: noise }], containers: [{ id: noise, name: noise, pod: noise }] })
    stagedName(noise)
  }))
})

test('whatever pods, their owners and their volumes are called, a report fits a frame that a replica reads', () => {
  const odd = fc.string({ unit: 'binary', minLength: 1, maxLength: 4_000 }).map((text) => text.replaceAll(/[\s/\\]/g, '_'))
  fc.assert(fc.property(odd, odd, (name, handle) => {
    const lines = Array.from({ length: 60 }, (_, index) => mount(`${root}/pods/${index}${name}/volumes/kubernetes.io~csi/${name}/mount`))
    const stagings = Array.from({ length: 60 }, (_, index) => mount(`${root}/plugins/kubernetes.io/csi/${name}/${index}/globalmount`, '8:99'))
    const told = report([...stagings, ...lines], { containers: [{ id: name, name, pod: name }] })
    assert.is(told.state, 'dirty')
    const leftovers = told.state === 'dirty' ? told.leftovers : []
    assert.ok(leftovers.length > 10 && leftovers.length <= mostLeftovers)
    const named = leftovers.map((one) => (one.kind === 'staging' ? { ...one, ...stagedName(JSON.stringify({ driverName: handle, volumeHandle: handle })) } : one))
    const frame = frameOf({ say: 'clean', report: { state: 'dirty', leftovers: named } })
    assert.ok(frame.length <= frameLimit, String(frame.length))
    assert.ok('word' in readAgentWord(frame))
  }), { numRuns: 50 })
})

test('only what CSI has mounted has its driver\'s name beside it; what is mounted below it is never looked into', () => {
  const staging = `${root}/plugins/kubernetes.io/csi/disk.example/${hash}/globalmount`
  const own = `${root}/pods/${mine}/volumes/kubernetes.io~csi/pvc-1/mount`
  for (const path of [staging, own]) assert.is(isOfCsi(path), true)
  for (const path of [`${own}/mount`, `${own}/below`, `${root}/pods/${mine}/volumes/kubernetes.io~nfs/data/mount`, `${root}/pods/${mine}/volume-subpaths/pvc-1/app/0`, `${staging}/share`, `${staging}/share/globalmount`, `${root}/plugins/kubernetes.io/nfs/mounts/globalmount`, `${root}/pods/${mine}/volumes/kubernetes.io~csi/globalmount`]) assert.is(isOfCsi(path), false, path)
})

test.run()
