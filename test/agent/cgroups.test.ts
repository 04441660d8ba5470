import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, rmdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
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
  return { root, freeze: () => freezeGroup(root, machineClock, id), read: (name: string) => readFileSync(join(root, folder, name), 'utf8'), end: () => rmSync(root, { recursive: true }) }
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
  assert.is(await none.freeze(), 'no freezer of the kernel is here')
  for (const bad of ['', '..', 'a/b', 'short']) assert.match(await freezeGroup('/nowhere', machineClock, bad) ?? '', /no control group can be told/, bad)
  for (const one of [busy, other, none]) one.end()
})

test('where a host has both, it is the freezer\'s own, and the unified one of a container that has none there', async () => {
  const older = machine(`freezer/kubepods/pod1/${id}`, {}, false)
  mkdirSync(join(older.root, 'unified', 'kubepods', 'pod1', id), { recursive: true })
  assert.is(await older.freeze(), undefined)
  assert.is(older.read('freezer.state'), 'FROZEN')
  const unified = machine(`unified/kubepods/pod1/${id}`, still, false)
  mkdirSync(join(unified.root, 'freezer', 'kubepods', 'pod1', 'another'), { recursive: true })
  assert.is(await unified.freeze(), undefined)
  assert.is(unified.read('cgroup.freeze'), '1')
  for (const one of [older, unified]) one.end()
})

const root = '/sys/fs/cgroup'
/** Where the kernel may have its freezers. */
const freezers = [
  { name: 'the only hierarchy', within: '', file: 'cgroup.freeze', thawed: '0' }, { name: 'the older freezer', within: 'freezer', file: 'freezer.state', thawed: 'THAWED' },
  { name: 'the unified hierarchy beside older ones', within: 'unified', file: 'cgroup.freeze', thawed: '0' },
] as const

/** A group of our own there, as root may make one; no two bear one name, since the first of a name would be found. */
function ownGroup({ within, file }: typeof freezers[number]): string | undefined {
  const folder = join(root, within, `holdfast-test-${process.pid}`, `${within}-${id}`)
  if (!existsSync(join(root, within, 'cgroup.procs'))) return undefined
  try {
    mkdirSync(folder, { recursive: true })
    if (existsSync(join(folder, file))) return folder
    rmdirSync(folder)
    rmdirSync(dirname(folder))
  } catch {
    // Not ours to write here.
  }
  return undefined
}

async function grows(child: ChildProcess, within: number): Promise<boolean> {
  let grew = false
  child.stdout?.once('data', () => { grew = true })
  await machineClock.wait(within)
  return grew
}

for (const freezer of freezers) {
  const group = ownGroup(freezer)
  // Not counted: it was not tried.
  if (group === undefined) console.log(`cgroups: ${freezer.name} is not here, or may not be written`)
  else test(`in ${freezer.name} of the kernel a real process stands still from then on`, async () => await standsStill(group, freezer))
}

async function standsStill(group: string, { file, thawed }: typeof freezers[number]): Promise<void> {
  const child = spawn('sh', ['-c', 'while :; do echo on; sleep 0.02; done'], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    writeFileSync(join(group, 'cgroup.procs'), String(child.pid))
    // What it had started before it was moved ends by itself.
    await machineClock.wait(100)
    assert.ok(await grows(child, 2_000), 'it writes')
    assert.is(await freezeGroup(root, machineClock, basename(group)), undefined)
    child.stdout?.read()
    await machineClock.wait(100)
    assert.not(await grows(child, 500))
  } finally {
    writeFileSync(join(group, file), thawed)
    child.kill('SIGKILL')
    await once(child, 'close')
    await removed(group)
  }
}

async function removed(group: string): Promise<void> {
  for (const until = machineClock.now() + 5_000; machineClock.now() < until;) {
    try {
      rmdirSync(group)
      break
    } catch {
      await machineClock.wait(50) // its last process is being buried
    }
  }
  rmdirSync(dirname(group))
}

test.run()
