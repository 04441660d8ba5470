import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { HostFile } from '../../agent/host.ts'
import { readMachine, startOf } from '../../agent/machine.ts'
import { virtualClock } from '../../sim/clock.ts'

const test = suite('machine')

const stat = '1 (systemd) S 0 1 1 0 -1 4194560 21837 995 131 18 40 80 64 52 20 0 1 0 25 22609920 3214 18446744073709551615'

function machine(change: Partial<Record<HostFile, string>> = {}) {
  const files: Partial<Record<HostFile, string>> = { 'boot-id': '3f2b4c55-7a10-4d8e-9d1f-aa0011223344\n', 'pid-1-stat': stat, uptime: '350735.47 234388.90\n', machine: '4C4C4544-0042\n', ...change }
  return readMachine({ clock: virtualClock(1_000), read: async (file) => files[file] })
}

test('a boot is the kernel\'s boot id and the start of pid 1', async () => {
  const read = await machine()
  assert.is(read?.boot, '3f2b4c55-7a10-4d8e-9d1f-aa0011223344/25')
  assert.is(read?.id, '4C4C4544-0042')
})

test('two machines in containers of one kernel are two boots', async () => {
  const other = await machine({ 'pid-1-stat': stat.replace(' 25 ', ' 9000 ') })
  assert.is.not(other?.boot, (await machine())?.boot)
})

test('a machine has run since its own pid 1 began, and goes on doing so', async () => {
  const read = await machine()
  assert.is(Math.round(read?.uptime(1_000) ?? 0), 350_735_470 - 250)
  assert.is(Math.round(read?.uptime(6_000) ?? 0), 350_740_470 - 250)
})

test('a program\'s name with spaces and brackets in it does not move the fields', () => {
  assert.is(startOf(stat.replace('(systemd)', '(a) b (c d)')), 25)
})

test('without a boot id or a start there is no machine; without the rest there is', async () => {
  assert.is(await machine({ 'boot-id': '' }), undefined)
  assert.is(await machine({ 'boot-id': 'not a boot id' }), undefined)
  assert.is(await machine({ 'pid-1-stat': '1 (init) S' }), undefined)
  const bare = await readMachine({ clock: virtualClock(), read: async (file) => ({ 'boot-id': 'aaaaaaaa-bbbb', 'pid-1-stat': stat })[file as 'boot-id'] })
  assert.equal({ id: bare?.id, uptime: bare?.uptime(0) }, { id: '', uptime: 0 })
})

test.run()
