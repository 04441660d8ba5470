import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { platform } from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { podOfCgroup, readLoopDevices, readMountTables } from '../../agent/proc-tables.ts'
import { readMounts } from '../../core/mounts.ts'

const test = suite('proc-tables')

const uid = '0d8f3b1c-1234-4abc-9def-0123456789ab'

test('the pod of a process is told by its cgroup, as each driver and hierarchy writes it', () => {
  const cases: [string, string | undefined][] = [
    [`0::/kubepods/burstable/pod${uid}/4711\n`, uid],
    [`12:memory:/kubepods/pod${uid}/4711\n3:cpu,cpuacct:/kubepods/pod${uid}/4711\n`, uid],
    [`0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod${uid.replaceAll('-', '_')}.slice/cri-containerd-4711.scope\n`, uid],
    [`0::/../../pod${uid}/4711\n`, uid],
    [`0::/kubepods/burstable/pod0123456789abcdef0123456789abcdef/4711\n`, '0123456789abcdef0123456789abcdef'],
    ['0::/system.slice/containerd.service\n', undefined],
    ['0::/\n', undefined],
    ['', undefined],
    [`0::/user/podcast-${uid}\n`, undefined],
  ]
  for (const [cgroup, pod] of cases) assert.is(podOfCgroup(cgroup), pod, cgroup)
})

interface Fake { readonly cgroup?: string; readonly mountinfo?: string; readonly namespace?: string }

function proc(processes: Readonly<Record<string, Fake>>): { folder: string; end(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-proc-'))
  for (const [process, { cgroup, mountinfo, namespace }] of Object.entries(processes)) {
    mkdirSync(join(folder, process, 'ns'), { recursive: true })
    if (cgroup !== undefined) writeFileSync(join(folder, process, 'cgroup'), cgroup)
    if (mountinfo !== undefined) writeFileSync(join(folder, process, 'mountinfo'), mountinfo)
    if (namespace !== undefined) symlinkSync(namespace, join(folder, process, 'ns', 'mnt'))
  }
  mkdirSync(join(folder, 'sys'))
  return { folder, end: () => rmSync(folder, { recursive: true }) }
}

const pod = `0::/kubepods/pod${uid}/c1\n`

test('each namespace is told once, by its first process, and the host\'s own not at all', async () => {
  const { folder, end } = proc({
    1: { cgroup: '0::/init\n', mountinfo: 'host', namespace: 'mnt:[1]' },
    20: { cgroup: '0::/system.slice/a\n', mountinfo: 'host', namespace: 'mnt:[1]' },
    21: { cgroup: pod, mountinfo: 'one', namespace: 'mnt:[2]' },
    22: { cgroup: pod, mountinfo: 'one', namespace: 'mnt:[2]' },
    23: { cgroup: pod, mountinfo: 'two', namespace: 'mnt:[3]' },
  })
  assert.equal(await readMountTables(folder), [{ process: 21, mountinfo: 'one', pod: uid }, { process: 23, mountinfo: 'two', pod: uid }])
  end()
})

test('where namespaces cannot be told apart one process of each cgroup stands for it', async () => {
  const { folder, end } = proc({
    1: { cgroup: '0::/init\n', mountinfo: 'host' },
    20: { cgroup: '0::/system.slice/a\n', mountinfo: 'host' },
    21: { cgroup: pod, mountinfo: 'one' },
    22: { cgroup: pod, mountinfo: 'one' },
    23: { cgroup: '0::/system.slice/b\n', mountinfo: 'private' },
    24: { cgroup: '0::/system.slice/a\n', mountinfo: 'beside' },
    25: { cgroup: '0::/\n', mountinfo: 'host' },
    26: { cgroup: '0::/\n', mountinfo: 'of no thread of the kernel' },
  })
  assert.equal(await readMountTables(folder), [{ process: 21, mountinfo: 'one', pod: uid }, { process: 23, mountinfo: 'private' }, { process: 24, mountinfo: 'beside' }])
  end()
})

test('one that sees cgroups from a namespace of its own knows the kernel\'s threads as well', async () => {
  const { folder, end } = proc({
    1: { cgroup: '0::/../../../../init.scope\n', mountinfo: 'host' },
    2: { cgroup: '0::/../../../..\n', mountinfo: 'host' },
    3: { cgroup: '0::/../../../..\n', mountinfo: 'never read' },
    4: { cgroup: '0::/../../../../system.slice/a\n', mountinfo: 'host' },
    5: { cgroup: '0::/../../../../system.slice/a\n', mountinfo: 'beside' },
  })
  assert.equal(await readMountTables(folder), [{ process: 5, mountinfo: 'beside' }])
  end()
})

test('a process that ended meanwhile, or is dead and not buried, is none, and another of its kind stands for it', async () => {
  const { folder, end } = proc({
    1: { cgroup: '0::/init\n', mountinfo: 'host' }, 20: { cgroup: pod }, 21: { cgroup: pod, mountinfo: '' }, 22: { mountinfo: 'x' }, 23: { cgroup: pod, mountinfo: 'one' },
  })
  assert.equal(await readMountTables(folder), [{ process: 23, mountinfo: 'one', pod: uid }])
  end()
})

test('tables that cannot be read are unknown, not empty', async () => {
  assert.is(await readMountTables('/nowhere'), undefined)
  assert.is(await readLoopDevices('/nowhere'), undefined)
  const { folder, end } = proc({ 1: { cgroup: '0::/init\n', mountinfo: 'host' }, 20: { cgroup: pod } })
  mkdirSync(join(folder, '20', 'mountinfo'))
  assert.is(await readMountTables(folder), undefined)
  end()
})

test('loop devices are told with the file behind them, and free ones not at all', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-sys-'))
  for (const name of ['loop0', 'loop7', 'sda']) mkdirSync(join(folder, 'block', name), { recursive: true })
  mkdirSync(join(folder, 'block', 'loop7', 'loop'))
  writeFileSync(join(folder, 'block', 'loop7', 'loop', 'backing_file'), '/var/lib/kubelet/with space\n')
  assert.equal(await readLoopDevices(folder), [{ name: 'loop7', file: '/var/lib/kubelet/with space' }])
  rmSync(folder, { recursive: true })
})

// Not counted where it cannot be tried.
if (platform !== 'linux' || spawnSync('unshare', ['--mount', 'true']).status !== 0) console.log('proc-tables: no right to a mount namespace of one\'s own here')
else test('on this machine: a copy of a mount that another namespace keeps is found, with its process', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-leak-'))
  const child = spawn('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', `mount -t tmpfs leak '${folder}' && echo ready && exec sleep 60`], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  const tables = await readMountTables('/proc')
  const found = (tables ?? []).filter(({ mountinfo }) => {
    const read = readMounts(mountinfo)
    return 'mounts' in read && read.mounts.some(({ path, type }) => path === folder && type === 'tmpfs')
  })
  assert.equal(found.map(({ process }) => process), [child.pid])
  assert.not.match(readFileSync('/proc/1/mountinfo', 'utf8'), new RegExp(folder))
  child.kill('SIGKILL')
  await once(child, 'exit')
  rmSync(folder, { recursive: true })
})

test.run()
