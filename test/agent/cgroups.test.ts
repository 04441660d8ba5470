import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, rmdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { freezeGroup } from '../../agent/cgroups.ts'
import { machineClock } from '../../edge/clock.ts'

const test = suite('cgroups')

const id = 'c0ffee00'.repeat(8)

/** Hierarchies of plain files. */
function machine(folder: string, files: Readonly<Record<string, string>>, unified = true) {
  const root = mkdtempSync(join(tmpdir(), 'holdfast-cgroups-'))
  mkdirSync(join(root, folder), { recursive: true })
  if (unified) writeFileSync(join(root, 'cgroup.controllers'), 'cpu memory\n')
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root, folder, name), text)
  return { freeze: () => freezeGroup(root, machineClock, id), read: (name: string) => readFileSync(join(root, folder, name), 'utf8'), end: () => rmSync(root, { recursive: true }) }
}

const still = { 'cgroup.events': 'populated 1\nfrozen 1\n' }

test('the group that is named after the container is told to stand still, as each driver names it', async () => {
  for (const folder of [`kubepods/burstable/pod1/${id}`, `kubepods.slice/kubepods-burstable.slice/kubepods-pod1.slice/cri-containerd-${id}.scope`, `kubepods.slice/kubepods-pod1.slice/crio-${id}.scope`]) {
    const on = machine(folder, still)
    assert.is(await on.freeze(), undefined, folder)
    assert.is(on.read('cgroup.freeze'), '1')
    on.end()
  }
})

test('on the older hierarchies it is the freezer\'s own', async () => {
  const on = machine(`freezer/kubepods/pod1/${id}`, {}, false)
  assert.is(await on.freeze(), undefined)
  assert.is(on.read('freezer.state'), 'FROZEN')
  on.end()
})

test('one that does not stand still in time, is not there, or cannot be told, is said', async () => {
  const busy = machine(`kubepods/pod1/${id}`, { 'cgroup.events': 'populated 1\nfrozen 0\n' })
  assert.match(await busy.freeze() ?? '', /sleeps in the kernel/)
  const other = machine('kubepods/pod1/another', still)
  assert.is(await other.freeze(), 'it has no control group here')
  const none = machine('elsewhere', still, false)
  assert.match(await none.freeze() ?? '', /ENOENT/)
  for (const bad of ['', '..', 'a/b', 'short']) assert.match(await freezeGroup('/nowhere', machineClock, bad) ?? '', /no control group can be told/, bad)
  for (const one of [busy, other, none]) one.end()
})

/** A group of our own in the kernel's freezer, of either hierarchy, as root may make one. */
function ownGroup(): { readonly root: string; readonly folder: string; readonly unified: boolean } | undefined {
  const root = '/sys/fs/cgroup'
  for (const unified of [true, false]) {
    const folder = join(root, unified ? '' : 'freezer', `holdfast-test-${process.pid}`, id)
    try {
      mkdirSync(folder, { recursive: true })
      if (existsSync(join(folder, unified ? 'cgroup.freeze' : 'freezer.state'))) return { root, folder, unified }
      rmdirSync(folder)
      rmdirSync(dirname(folder))
    } catch {
      // Not ours to write here: the other one is tried.
    }
  }
  return undefined
}

async function grows(child: ChildProcess, within: number): Promise<boolean> {
  let grew = false
  child.stdout?.once('data', () => { grew = true })
  await machineClock.wait(within)
  return grew
}

const group = ownGroup()
if (group === undefined) console.log('cgroups: no freezer of the kernel can be written here, so none was')
else test('a real process stands still from then on', async () => {
  const child = spawn('sh', ['-c', 'while :; do echo on; sleep 0.02; done'], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    writeFileSync(join(group.folder, 'cgroup.procs'), String(child.pid))
    // What it had started before it was moved ends by itself.
    await machineClock.wait(100)
    assert.ok(await grows(child, 2_000), 'it writes')
    assert.is(await freezeGroup(group.root, machineClock, id), undefined)
    child.stdout?.read()
    await machineClock.wait(100)
    assert.not(await grows(child, 500))
  } finally {
    writeFileSync(join(group.folder, group.unified ? 'cgroup.freeze' : 'freezer.state'), group.unified ? '0' : 'THAWED')
    child.kill('SIGKILL')
    await once(child, 'close')
    for (const until = machineClock.now() + 5_000; machineClock.now() < until;) {
      try {
        rmdirSync(group.folder)
        break
      } catch {
        await machineClock.wait(50) // its last process is being buried
      }
    }
    rmdirSync(dirname(group.folder))
  }
})

test.run()
