import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { markBoot } from '../../agent/boot-mark.ts'
import type { Goodbye } from '../../core/beat.ts'
import { began, whyItEnds } from '../../agent/shutdown.ts'
import { silentLog } from '../../edge/log.ts'
import { virtualClock } from '../../sim/clock.ts'
import { beatsWorld } from '../coordinator/beats-world.ts'

const test = suite('boot-mark')

function disk(held = new Map<string, string>()) {
  const clock = virtualClock()
  return { held, start: (boot: string) => markBoot({ clock, log: silentLog, disk: { load: async (name) => held.get(name), save: async (name, text) => void held.set(name, text) } }, boot) }
}

test('a boot after an orderly shutdown knows it, and one after a power cut knows that', async () => {
  const { start } = disk()
  const first = await start('b1')
  assert.is(first.before, undefined)
  await first.shutDown()
  assert.is((await start('b2')).before, 'shut down')
  assert.is((await start('b3')).before, 'cut off')
})

test('an agent that is started again in a boot still knows how the one before ended', async () => {
  const { start } = disk()
  await start('b1')
  assert.is((await start('b2')).before, 'cut off')
  assert.is((await start('b2')).before, 'cut off')
  const last = await start('b2')
  await last.shutDown()
  // The shutdown was called off: the agent runs on in the same boot, which then loses its power.
  assert.is((await start('b2')).before, 'cut off')
  assert.is((await start('b3')).before, 'cut off')
})

test('a mark that is spoilt, or was never written, is no word of order', async () => {
  for (const text of ['', '{', 'null', '7', '{"boot":"b1"}', '{"ended":true}', '{"boot":1,"ended":true}']) {
    assert.is((await disk(new Map([['boot.json', text]])).start('b2')).before, undefined, text)
  }
  assert.is((await disk(new Map([['boot.json', '{"boot":"b1","ended":"yes"}']])).start('b2')).before, 'cut off')
})

const refuse = async () => Promise.reject(new Error('EROFS: read-only file system'))
const never = () => new Promise<never>(() => undefined)

test('a disk that is full, read-only, gone or hanging tells nothing and holds nothing up for long', async () => {
  const clock = virtualClock()
  const readOnly = await markBoot({ clock, log: silentLog, disk: { load: refuse, save: refuse } }, 'b1')
  assert.is(readOnly.before, undefined)
  await readOnly.shutDown()
  const hanging = markBoot({ clock, log: silentLog, disk: { load: never, save: never } }, 'b1')
  await clock.runFor(4_100)
  assert.is((await hanging).before, undefined)
})

test('the hello tells it to every replica', async () => {
  const world = beatsWorld()
  world.replica('replica-a')
  const first = world.agent('node-1')
  await world.clock.runFor(3_000)
  await first.agent.stop('shutdown')
  assert.equal(JSON.parse(first.disk.get('boot.json') ?? ''), { boot: 'b007-0001/4711', ended: true })
  const second = world.agent('node-1', { boot: 'b007-0002', disk: first.disk })
  await world.clock.runFor(3_000)
  assert.equal(JSON.parse(second.disk.get('boot.json') ?? ''), { boot: 'b007-0002/4711', ended: false, before: 'shut down' })
  await second.agent.stop('restart')
  assert.is(JSON.parse(second.disk.get('boot.json') ?? '').ended, false)
})

const at = (seconds: number) => JSON.stringify({ startTime: new Date(seconds * 1_000).toISOString(), endTime: '0001-01-01T00:00:00Z' })

test('a shutdown is one that kubelet says began in this boot', () => {
  const stat = 'cpu  1 2 3\nbtime 1790000000\nprocesses 7\n'
  const cases: [string, string, string, boolean][] = [
    ['begun in this boot', at(1_790_000_500), stat, true],
    ['begun and ended in this boot', JSON.stringify({ startTime: '2027-01-01T00:00:00.5Z', endTime: '2027-01-01T00:00:30Z' }), stat, true],
    ['of the boot before', at(1_789_999_000), stat, false],
    ['none', '', stat, false], ['a file cut short', '{"startTime":"2027-', stat, false], ['no time', '{"startTime":"soon"}', stat, false], ['never', '{"startTime":"0001-01-01T00:00:00Z"}', stat, false],
    ['an unknown boot', at(1_790_000_500), 'cpu 1 2 3\n', false],
  ]
  for (const [what, state, procStat, wanted] of cases) assert.is(began(state, procStat), wanted, what)
})

const plan = (mode: string) => ({ 'run/systemd/shutdown/scheduled': `USEC=1790000900000000\nWARN_WALL=1\nMODE=${mode}\n` })
const goingDown = 'System is going down. Unprivileged users are not permitted to log in anymore. For technical details, see pam_nologin(8).\n'

test('an agent that is told to end says why, by what kubelet and systemd have written of it', async () => {
  const begun = { 'kubelet/graceful_node_shutdown_state': at(1_790_000_500) }
  const down = { 'run/nologin': goingDown }
  const cases: [string, Readonly<Record<string, string>>, Goodbye][] = [
    ['nothing tells', {}, 'restart'],
    ['kubelet shuts down', begun, 'shutdown'],
    ['systemd does, and kubelet knows of none', down, 'shutdown'],
    ['both, as it was planned', { ...begun, ...down, ...plan('poweroff') }, 'shutdown'],
    ['to come back', { ...down, ...plan('reboot') }, 'reboot'],
    ['by another kernel', { ...begun, ...plan('kexec') }, 'reboot'],
    ['planned for later, and only upgraded now', plan('reboot'), 'restart'],
    ['nobody may log in yet', { 'run/nologin': 'System is booting up. Unprivileged users are not permitted to log in yet.' }, 'restart'],
    ['an administrator lets nobody in', { 'run/nologin': '' }, 'restart'],
  ]
  for (const [what, files, wanted] of cases) {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-ends-'))
    for (const [name, text] of Object.entries({ 'proc/stat': 'btime 1790000000\n', ...files })) {
      mkdirSync(join(folder, dirname(name)), { recursive: true })
      writeFileSync(join(folder, name), text)
    }
    assert.is(await whyItEnds({ kubeletRoot: join(folder, 'kubelet'), proc: join(folder, 'proc'), run: join(folder, 'run') }), wanted, what)
    rmSync(folder, { recursive: true })
  }
})

test.run()
