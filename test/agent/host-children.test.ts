// Real mounts, in a mount namespace of their own.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { bareStagings, hostChildren } from '../../agent/host-children.ts'
import { readLoopDevices, readMountTables } from '../../agent/proc-tables.ts'
import { cleanReport, readMounts } from '../../core/mounts.ts'
import { machineClock } from '../../edge/clock.ts'
import { deafMount, noDeafMount } from './deaf-mount.ts'

const test = suite('host-children')

const patient = 20_000

interface Host {
  readonly folder: string
  /** As an agent's setting would bring its programs there. */
  readonly enter: readonly string[]
  /** What it says. */
  run(...command: readonly string[]): string
  /** Runs until the host ends, and has said something by then. */
  start(script: string): Promise<ChildProcess>
  mounts(): readonly string[]
  /** Of pid 1, were it a machine of its own. */
  mountinfo(): string
}

/** Another mount namespace, with a tmpfs of its own; whatever becomes of the test, nothing of it stays. */
async function within(play: (on: Host) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-host-'))
  const processes: ChildProcess[] = []
  const start = async (program: string, ...input: readonly string[]): Promise<ChildProcess> => {
    const child = spawn(program, input, { stdio: ['ignore', 'pipe', 'ignore'] })
    processes.push(child)
    await once(child.stdout, 'data')
    return child
  }
  try {
    const holder = await start('unshare', '--mount', '--propagation', 'private', 'sh', '-c', `mount -t tmpfs none ${folder} && echo there && exec sleep 60`)
    const enter = ['nsenter', `--mount=/proc/${holder.pid}/ns/mnt`, '--'] as const
    await play({
      folder, enter, start: (script) => start(enter[0], enter[1], enter[2], 'sh', '-c', script),
      run(...command) {
        const ran = spawnSync(enter[0], [enter[1], enter[2], ...command], { encoding: 'utf8' })
        if (ran.status !== 0) throw new Error(`${command.join(' ')}: ${ran.stderr}`)
        return ran.stdout.trim()
      },
      mountinfo: () => readFileSync(`/proc/${holder.pid}/mountinfo`, 'utf8'),
      mounts() {
        const read = readMounts(this.mountinfo())
        return 'mounts' in read ? read.mounts.map(({ path }) => path).filter((path) => path.startsWith(`${folder}/`)) : []
      },
    })
  } finally {
    for (const child of processes) {
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    }
    rmSync(folder, { recursive: true })
  }
}

/** A mount below the host's own tmpfs. */
function mounted(on: Host, name: string): string {
  const path = join(on.folder, name)
  on.run('mkdir', '-p', path)
  on.run('mount', '-t', 'tmpfs', 'none', path)
  return path
}

const namespaces = spawnSync('unshare', ['--mount', 'true']).status === 0
if (!namespaces) console.log('host-children: no mount namespace can be made here, so nothing was unmounted in one')

if (namespaces) test('a mount of the host is let go of in its own namespace, and its folder is there still', () => within(async (on) => {
  const path = mounted(on, 'a volume')
  assert.equal(on.mounts(), [path])
  assert.is(await hostChildren(machineClock, on.enter).end({ do: 'unmount', path }, patient), undefined)
  assert.equal(on.mounts(), [])
  on.run('test', '-d', path)
}))

/** A volume as kubelet and a CSI driver mount it: staged once, and bound into the pod's folder and, of a subpath, into it once more; beside it one that is
 *  an overlay, scratch space, and the overlay of a container, which is none of kubelet's. */
function volumesOf(on: Host, kubeletRoot: string, pod: string): { readonly [place in 'staging' | 'volume' | 'subpath' | 'overlay']: string } {
  const own = (path: string): string => join(kubeletRoot, 'pods', pod, path)
  const staging = join(kubeletRoot, 'plugins/kubernetes.io/csi/disk.example/abc/globalmount')
  const [volume, subpath, overlay] = [own('volumes/kubernetes.io~csi/pvc-1/mount'), own('volume-subpaths/pvc-1/main/0'), own('volumes/kubernetes.io~csi/pvc-2/mount')]
  const [scratch, rootfs, layers] = [own('volumes/kubernetes.io~empty-dir/scratch'), join(on.folder, 'run/containerd/rootfs'), join(on.folder, 'layers')]
  on.run('mkdir', '-p', staging, volume, subpath, overlay, scratch, rootfs, ...['lower', 'upper', 'work', 'upper-2', 'work-2'].map((layer) => join(layers, layer)))
  on.run('mount', '-t', 'tmpfs', 'none', staging)
  on.run('mkdir', join(staging, 'sub'))
  on.run('mount', '--bind', staging, volume)
  on.run('mount', '--bind', join(staging, 'sub'), subpath)
  on.run('mount', '-t', 'tmpfs', 'none', scratch)
  for (const [path, number] of [[overlay, ''], [rootfs, '-2']] as const) {
    on.run('mount', '-t', 'overlay', 'overlay', '-o', `lowerdir=${layers}/lower,upperdir=${layers}/upper${number},workdir=${layers}/work${number}`, path)
  }
  return { staging, volume, subpath, overlay }
}

if (namespaces) test('of bind mounts and overlays those of a pod that does not belong are left over, as the kernel tells of them, and nothing else; let go of in their order they leave it clean', () => within(async (on) => {
  const pod = '11111111-1111-4111-8111-111111111111'
  const kubeletRoot = join(on.folder, 'a kubelet')
  const { staging, volume, subpath, overlay } = volumesOf(on, kubeletRoot, pod)
  const found = (belonging: readonly string[]) => {
    const report = cleanReport({ mountinfo: on.mountinfo(), podFolders: [], containers: [], mountTables: [], loopDevices: [], kubeletRoot, belonging: new Set(belonging) })
    return report.state === 'dirty' ? report.leftovers.map(({ kind, path, pod: of = 'nobody' }) => `${kind} ${path} of ${of}`).toSorted() : report.state
  }
  assert.is(found([pod]), 'clean')
  const left = { [volume]: `mount ${volume} of ${pod}`, [subpath]: `mount ${subpath} of ${pod}`, [overlay]: `mount ${overlay} of ${pod}`, [staging]: `staging ${staging} of nobody` }
  assert.equal(found([]), Object.values(left).toSorted())
  const children = hostChildren(machineClock, on.enter)
  for (const path of [subpath, overlay, volume, staging]) {
    assert.is(await children.end({ do: 'unmount', path }, patient), undefined)
    delete left[path]
    assert.equal(found([]), Object.keys(left).length === 0 ? 'clean' : Object.values(left).toSorted())
  }
}))

if (namespaces) test('one that somebody has open stays mounted, and the reason is said: it is never let go of lazily', () => within(async (on) => {
  const path = mounted(on, 'busy')
  const user = await on.start(`cd '${path}' && echo in && exec sleep 60`)
  const children = hostChildren(machineClock, on.enter)
  assert.match(await children.end({ do: 'unmount', path }, patient) ?? '', /busy/)
  assert.equal(on.mounts(), [path])
  user.kill('SIGKILL')
  await once(user, 'exit')
  assert.is(await children.end({ do: 'unmount', path }, patient), undefined)
}))

if (namespaces) test('a file system that answers is told, and where the host may not be entered nothing is said of it', () => within(async (on) => {
  const children = hostChildren(machineClock, on.enter)
  assert.is(await children.answers(mounted(on, 'a'), patient), 'reached')
  assert.is(await children.answers(join(on.folder, 'none'), patient), 'unreached')
  assert.is(await hostChildren(machineClock, ['nsenter', '--mount=/proc/0/ns/mnt', '--']).answers(on.folder, patient), 'unknown')
}))

const noFuse = namespaces ? noDeafMount() : 'no mount namespace'
if (noFuse !== undefined) console.log(`host-children: no file system that hangs can be had here: ${noFuse}`)

if (noFuse === undefined) test('a file system whose server answers nothing is not reached, and is let go of by a call that takes no look at it', () => within(async (on) => {
  const path = join(on.folder, 'deaf')
  on.run('mkdir', path)
  const server = deafMount(on.enter, path)
  try {
    const children = hostChildren(machineClock, on.enter)
    assert.equal(await Promise.all([children.answers(path, 500), children.answers(mounted(on, 'well'), patient)]), ['unreached', 'reached'])
    // Beside a real one that hangs the tables are read whole: they are text of the kernel's.
    const tables = await readMountTables('/proc')
    assert.ok(tables?.some(({ mountinfo }) => mountinfo.includes(` ${path} `)))
    assert.is(await children.end({ do: 'unmount', path }, patient), undefined)
    assert.equal(on.mounts(), [join(on.folder, 'well')])
  } finally {
    server.letGo()
  }
}))

test('a file system that does not answer in time is not reached, and is not asked by a second child meanwhile', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-hang-'))
  const deaf = join(folder, 'deaf')
  writeFileSync(deaf, '#!/bin/sh\nexec sleep 60\n', { mode: 0o755 })
  const children = hostChildren(machineClock, [deaf])
  assert.equal(await Promise.all([children.answers('/x', 300), children.answers('/x', 300)]), ['unreached', 'unreached'])
  rmSync(folder, { recursive: true })
})

if (namespaces) test('what is not mounted, or not there, is said', () => within(async (on) => {
  const children = hostChildren(machineClock, on.enter)
  assert.match(await children.end({ do: 'unmount', path: `${mounted(on, 'a')}/none` }, patient) ?? '', /no mount point|not mounted|not found|No such file/i)
  assert.match(await children.end({ do: 'detach', device: 'loop4095', file: '/x' }, patient) ?? '', /loop4095/)
}))

const loops = namespaces && spawnSync('losetup', ['--find']).status === 0
if (!loops) console.log('host-children: no loop device can be had here, so none was let go of')
else test('a loop device is let go of', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-loop-'))
  const file = join(folder, 'disk')
  writeFileSync(file, Buffer.alloc(1 << 20))
  const made = spawnSync('losetup', ['--find', '--show', file], { encoding: 'utf8' })
  const name = made.stdout.trim().slice('/dev/'.length)
  try {
    assert.ok((await readLoopDevices('/sys'))?.some((one) => one.name === name && one.file === file), made.stderr)
    assert.is(await hostChildren(machineClock, []).end({ do: 'detach', device: name, file }, patient), undefined)
    assert.not((await readLoopDevices('/sys'))?.some((one) => one.name === name && one.file === file))
  } finally {
    spawnSync('losetup', ['--detach', `/dev/${name}`])
    rmSync(folder, { recursive: true })
  }
})

if (loops && noFuse === undefined) test('an unmount that hangs beyond SIGKILL is left behind, and nothing else waits for it', () => within(async (on) => {
  const file = join(on.folder, 'disk')
  on.run('truncate', '--size', '1M', file)
  const device = on.run('losetup', '--find', '--show', file)
  const path = join(on.folder, 'deaf')
  on.run('mkdir', path)
  const server = deafMount(on.enter, path, device)
  let over = false
  try {
    const children = hostChildren(machineClock, on.enter)
    assert.match(await children.end({ do: 'unmount', path }, 500) ?? '', /did not end within 500 ms/)
    await machineClock.wait(500)
    assert.match(await children.end({ do: 'unmount', path }, 500) ?? '', /an earlier child hangs/, 'its SIGKILL was half a second ago')
    assert.is(await children.end({ do: 'unmount', path: mounted(on, 'well') }, patient), undefined)
    server.letGo()
    over = true
    for (let tried = 0; /hangs/.test(await children.end({ do: 'unmount', path }, 500) ?? ''); tried += 1) {
      assert.ok(tried < 100, 'it was let go, and ends')
      await machineClock.wait(100)
    }
  } finally {
    if (!over) server.letGo()
    spawnSync('losetup', ['--detach', device])
  }
}))

test('a staging folder is removed with the one around it, if that is empty too, and never with anything in it', async () => {
  const root = mkdtempSync(join(tmpdir(), 'holdfast-staging-'))
  const children = hostChildren(machineClock, [])
  const staged = (volume: string): string => {
    const folder = join(root, 'plugins', 'kubernetes.io', 'csi', 'disk.example', volume, 'globalmount')
    mkdirSync(folder, { recursive: true })
    return folder
  }
  const [bare, known, full] = ['bare', 'known', 'full'].map(staged) as [string, string, string] // three in, three out
  writeFileSync(join(known, '..', 'vol_data.json'), '{}')
  writeFileSync(join(full, 'data'), 'of somebody')
  const mountedOn = staged('mounted')
  assert.equal(await bareStagings(root, (folder) => folder === mountedOn), [bare])
  assert.is(await children.end({ do: 'remove', path: bare }, patient), undefined)
  await children.end({ do: 'remove', path: full }, patient)
  assert.equal([existsSync(join(bare, '..')), existsSync(join(full, 'data'))], [false, true])
  assert.equal(await bareStagings(join(root, 'nowhere'), () => false), [])
  rmSync(root, { recursive: true })
})

test('a child that hangs is left behind at its deadline, and no second one is sent after the same thing until it has ended', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-hang-'))
  const deaf = join(folder, 'deaf')
  // What ignores every signal but the last is still ended by that.
  writeFileSync(deaf, '#!/bin/sh\ntrap "" TERM INT HUP\nexec sleep 600\n', { mode: 0o755 })
  const children = hostChildren(machineClock, [deaf])
  const began = machineClock.now()
  const [first, second] = await Promise.all([children.end({ do: 'unmount', path: '/x' }, 500), children.end({ do: 'unmount', path: '/x' }, 500)])
  assert.match(first ?? '', /did not end within 500 ms/)
  assert.match(second ?? '', /an earlier child hangs/)
  assert.ok(machineClock.now() - began < patient)
  await machineClock.wait(500)
  assert.match(await children.end({ do: 'unmount', path: '/x' }, 500) ?? '', /did not end within/, 'that one is over')
  rmSync(folder, { recursive: true })
})

test('a program that is not there is said', async () => {
  assert.match(await hostChildren(machineClock, ['/nowhere/nsenter']).end({ do: 'unmount', path: '/x' }, patient) ?? '', /ENOENT/)
})

test.run()
