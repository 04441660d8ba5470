// Files as the kernel has them. Nothing here opens a device.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { machineKind, machineWatchdog, panicIn } from '../../agent/watchdog.ts'

const test = suite('watchdog')

async function within(play: (folder: string, sysfs: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-watchdog-'))
  const sysfs = join(folder, 'sys', 'class', 'watchdog', 'watchdog0')
  mkdirSync(sysfs, { recursive: true })
  try {
    await play(folder, sysfs)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('what the kernel says of it, under either of its names', () => within(async (folder, sysfs) => {
  writeFileSync(join(sysfs, 'identity'), 'i6300ESB timer\n')
  writeFileSync(join(sysfs, 'timeout'), '30\n')
  for (const name of ['watchdog', 'watchdog0']) assert.equal(await machineWatchdog(join(folder, name), join(folder, 'sys')).look(), { identity: 'i6300ESB timer', timeout: 30_000 })
  writeFileSync(join(sysfs, 'nowayout'), '1\n')
  assert.is((await machineWatchdog(join(folder, 'watchdog0'), join(folder, 'sys')).look())?.nowayout, true)
  assert.is(await machineWatchdog(join(folder, 'watchdog1'), join(folder, 'sys')).look(), undefined)
  for (const timeout of ['', '0', '-3', 'soon']) {
    writeFileSync(join(sysfs, 'timeout'), `${timeout}\n`)
    assert.is(await machineWatchdog(join(folder, 'watchdog0'), join(folder, 'sys')).look(), undefined, timeout)
  }
}))

test('each word feeds it, and the last one before it is closed disarms it', () => within(async (folder, sysfs) => {
  const device = join(folder, 'watchdog0')
  writeFileSync(device, '')
  writeFileSync(join(sysfs, 'state'), 'active\n')
  const opened = machineWatchdog(device, join(folder, 'sys'), () => true).open()
  if ('failed' in opened) return assert.unreachable(opened.failed)
  assert.equal([opened.feed(), opened.feed(), readFileSync(device, 'utf8')], [undefined, undefined, '..'])
  assert.equal([opened.disarm(), readFileSync(device, 'utf8')], [undefined, '..V'])
  assert.is(opened.feed(), 'EBADF')
}))

test('a file in the place of the device is none, and none is made where there is nothing', () => within(async (folder, sysfs) => {
  const device = join(folder, 'watchdog0')
  writeFileSync(join(sysfs, 'state'), 'active\n')
  assert.equal([machineWatchdog(device, join(folder, 'sys')).open(), existsSync(device)], [{ failed: 'ENOENT' }, false])
  writeFileSync(device, '')
  assert.equal([machineWatchdog(device, join(folder, 'sys')).open(), readFileSync(device, 'utf8')], [{ failed: 'it is no device' }, ''])
}))

test('one of which the kernel does not say that it counts is let go of, and is not armed', () => within(async (folder, sysfs) => {
  const of = () => machineWatchdog('/dev/null', join(folder, 'sys')).open()
  mkdirSync(join(folder, 'sys', 'class', 'watchdog', 'null0'))
  const state = join(folder, 'sys', 'class', 'watchdog', 'null0', 'state')
  assert.equal(of(), { failed: 'the kernel does not say that it counts' })
  writeFileSync(state, 'inactive\n')
  assert.equal(of(), { failed: 'the kernel does not say that it counts' })
  writeFileSync(state, 'active\n')
  assert.not.ok('failed' in of(), sysfs)
}))

test('one that cannot be opened says why', () => within(async (folder) => {
  assert.equal(machineWatchdog(join(folder, 'nothing', 'watchdog0'), folder).open(), { failed: 'ENOENT' })
}))

test('whether the machine is one, and what becomes of a panic', () => {
  const cases: [string | undefined, string][] = [
    ['processor\t: 0\nflags\t\t: fpu vme de pse hypervisor lahf_lm\n', 'virtual'], ['processor\t: 0\nflags\t\t: fpu vme de\n', 'real'], ['flags\t\t: fpu hypervisors\n', 'real'],
    ['processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\n', 'unknown'], ['', 'unknown'], [undefined, 'unknown'],
  ]
  for (const [text, kind] of cases) assert.is(machineKind(text), kind, text)
  assert.equal(['10\n', '0\n', '-1\n', '', 'x', undefined].map(panicIn), [10, 0, -1, undefined, undefined, undefined])
})

test.run()
