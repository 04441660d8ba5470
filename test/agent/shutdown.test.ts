// systemd itself says the same in test/nodes/goodbye.test.ts.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { began, whyItEnds } from '../../agent/shutdown.ts'
import type { Goodbye } from '../../core/beat.ts'
import { answers, jobsBody } from './systemd-bytes.ts'

const test = suite('shutdown')

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
const begun = { 'kubelet/graceful_node_shutdown_state': at(1_790_000_500) }
const down = { 'run/nologin': goingDown }
const lastProgram = (way: string) => ({ 'proc/1/cmdline': ['/lib/systemd/systemd-shutdown', way, '--log-level', '6', ''].join('\0') })

interface Told {
  readonly files?: Readonly<Record<string, string>>
  /** Units that systemd starts or stops. Without: it does not answer. */
  readonly jobs?: readonly (readonly [unit: string, type: string])[]
}

async function whyOf({ files = {}, jobs }: Told): Promise<Goodbye> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-ends-'))
  mkdirSync(join(folder, 'run/systemd'), { recursive: true })
  for (const [name, text] of Object.entries({ 'proc/stat': 'btime 1790000000\n', 'proc/1/cmdline': '/sbin/init\0splash\0', ...files })) {
    mkdirSync(join(folder, dirname(name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  const server = jobs === undefined ? undefined : await listening(join(folder, 'run/systemd/private'), jobs)
  const why = await whyItEnds({ kubeletRoot: join(folder, 'kubelet'), proc: join(folder, 'proc'), run: join(folder, 'run') })
  server?.close()
  rmSync(folder, { recursive: true })
  return why
}

function listening(path: string, jobs: readonly (readonly [string, string])[]): Promise<Server> {
  const server = createServer((socket) => answers(socket, jobsBody(jobs)))
  return new Promise((resolve) => { server.listen(path, () => resolve(server)) })
}

test('by what systemd has to do: whatever takes the machine down is in its queue before anybody is told to end', async () => {
  const stops = [['kubelet.service', 'stop'], ['shutdown.target', 'start']] as const
  const cases: [string, Told, Goodbye][] = [
    ['it restarts us', { jobs: [['holdfast.service', 'restart']] }, 'restart'],
    ['nothing, and an upgrade', { jobs: [] }, 'restart'],
    ['it reboots, at once', { jobs: [...stops, ['reboot.target', 'start']] }, 'reboot'],
    ['it goes down for good', { jobs: [...stops, ['poweroff.target', 'start']] }, 'shutdown'],
    ['it halts', { jobs: [...stops, ['halt.target', 'start']] }, 'shutdown'],
    ['by another kernel', { jobs: [...stops, ['kexec.target', 'start']] }, 'reboot'],
    ['the same kernel begins anew', { jobs: [...stops, ['soft-reboot.target', 'start']] }, 'reboot'],
    ['a unit of that name is stopped', { jobs: [['reboot.target', 'stop']] }, 'restart'],
    ['a service of that name is started', { jobs: [['reboot.service', 'start']] }, 'restart'],
    ['upgraded in the last minutes before a planned reboot, when the door is closed already', { jobs: [], files: { ...down, ...plan('reboot') } }, 'restart'],
    ['kubelet shuts down, and systemd waits for it', { jobs: [], files: begun }, 'shutdown'],
    ['the same, planned to come back', { jobs: [], files: { ...begun, ...plan('reboot') } }, 'reboot'],
    ['another way than was planned', { jobs: [['poweroff.target', 'start']], files: plan('reboot') }, 'shutdown'],
  ]
  for (const [what, told, wanted] of cases) assert.is(await whyOf(told), wanted, what)
})

test('at the end, when what nobody else has ended is ended, by the words of the program that systemd has become', async () => {
  const cases: [string, Told, Goodbye][] = [
    ['to come back', { files: { ...down, ...lastProgram('reboot') } }, 'reboot'],
    ['by another kernel', { files: { ...down, ...lastProgram('kexec') } }, 'reboot'],
    ['for good', { files: { ...down, ...lastProgram('poweroff'), ...plan('reboot') } }, 'shutdown'],
    ['in a way that is not known', { files: lastProgram('dissolve') }, 'shutdown'],
    ['a program that only speaks of it', { files: { 'proc/1/cmdline': '/sbin/init\0/lib/systemd/systemd-shutdown\0reboot\0' } }, 'restart'],
  ]
  for (const [what, told, wanted] of cases) assert.is(await whyOf(told), wanted, what)
})

test('where systemd does not answer, by what kubelet and systemd have written', async () => {
  const cases: [string, Told['files'], Goodbye][] = [
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
  for (const [what, files = {}, wanted] of cases) assert.is(await whyOf({ files }), wanted, what)
})

test.run()
