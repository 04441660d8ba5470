// What an agent says when it is told to end, heard by a replica, on a machine whose process 1 is a real systemd. An upgrade, a reboot and a shutdown send it the same signal.
import { mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Goodbye } from '../../core/beat.ts'
import { authority, replica, theToken, type Running } from '../agent/replica.ts'
import { binaries, until } from './cluster.ts'
import { createMachine, type Machine } from './machine.ts'
import { gateway } from './network.ts'
import { say, theRoom } from './room.ts'
import { dist } from './stage.ts'
import { agentUnit, ends, kubeletSays, makeSystemdDisk, markFile } from './systemd-disk.ts'

const test = suite('goodbye')
const bootedWithin = 60_000
const saidWithin = 30_000
/** `shutdown` plans in whole minutes. */
const plannedWithin = 60_000 + saidWithin
/** systemd's own patience with what does not end is 90 s. */
const offWithin = 120_000

const name = 'node-1'
let hearing: Running
let machine: Machine
let ended = ''

test('systemd boots on a machine of its own, with an agent that beats', async () => {
  const { folder: roomFolder, lab } = theRoom()
  const folder = mkdtempSync(join(roomFolder, 'systemd-'))
  const disk = join(folder, 'disk')
  const image = join(dist, 'image', 'root')
  hearing = await replica('replica-a', gateway)
  makeSystemdDisk(disk, { name, replica: hearing.address, authority: authority.certificate, token: theToken, image })
  machine = createMachine({ name, index: 0, machineId: '', lab, disk, binaries: binaries(), images: image, storage: '', logFile: join(folder, 'machine.log'), init: 'systemd-init.sh' })
  await boot('with the services')
  say((await machine.run(['systemctl', '--version'])).split('\n')[0] ?? '')
})

async function boot(when: Parameters<typeof ends>[1]): Promise<void> {
  ends(machine.disk, when)
  await machine.powerOn()
  await until('it is up', async () => /^(?:running|degraded)/.test(await machine.run(['sh', '-c', 'systemctl is-system-running || true'])), bootedWithin)
  await beating()
}

/** In another boot than the last that has ended, after whatever it said. */
function beats(): boolean {
  const seen = hearing.beats.heard(name)
  return seen !== undefined && seen.boot !== ended && seen.goodbye === undefined
}

async function beating(): Promise<void> {
  await until('its agent beats', beats, bootedWithin).catch(async (error: unknown) => { throw new Error(`${String(error)}\n${await journal()}`, { cause: error }) })
}

const journal = (): Promise<string> => machine.run(['journalctl', '--no-pager', '--lines=40'])

async function saidAfter(words: readonly string[], within = saidWithin): Promise<Goodbye | undefined> {
  const before = hearing.goodbyes.length
  let fault = ''
  // A machine that goes down takes the program with it that asked for it.
  await machine.run(words).catch((error: unknown) => { fault = String(error) })
  await until(`goodbye after ${words.join(' ')} ${fault}`, () => hearing.goodbyes.length > before, within)
  return hearing.goodbyes[before]
}

test('an upgrade is a restart, also in the last minute before a planned reboot, and once that is called off', async () => {
  const restart = ['systemctl', 'restart', agentUnit]
  assert.is(await saidAfter(restart), 'restart')
  await beating()
  await machine.run(['shutdown', '-r', '+1'])
  assert.match(await machine.run(['cat', '/run/nologin']), /^System is going down/, 'the door is closed')
  assert.is(await saidAfter(restart), 'restart')
  await beating()
  await machine.run(['shutdown', '-c'])
  assert.is(await saidAfter(restart), 'restart')
  await beating()
})

const downs: readonly [words: string, wanted: Goodbye, within?: number][] = [
  ['systemctl poweroff', 'shutdown'],
  ['systemctl reboot', 'reboot'],
  ['shutdown -r +1', 'reboot', plannedWithin],
  ['systemctl halt', 'shutdown'],
]

for (const when of ['with the services', 'at the end'] as const) {
  for (const [words, wanted, within] of downs) test(`ended ${when}, after \`${words}\` it says ${wanted}`, async () => {
    if (machine.power() === 'off') await boot(when)
    const boots = hearing.beats.heard(name)?.boot ?? ''
    assert.is(await saidAfter(words.split(' '), within), wanted)
    ended = boots
    await until('it is off', () => machine.power() === 'off', offWithin)
    assert.is((JSON.parse(readFileSync(join(machine.disk, markFile), 'utf8')) as { readonly ended: boolean }).ended, true, 'the next boot is to know that this one was shut down')
  })
}

const stops = ['systemctl', 'stop', agentUnit]
const login = ['org.freedesktop.login1', '/org/freedesktop/login1', 'org.freedesktop.login1.Manager'] as const
/** As `shutdown -r` does, which knows no seconds. */
const soon = `busctl call ${login.join(' ')} ScheduleShutdown st reboot $(( ($(busybox date +%s) + 1) * 1000000 ))`

for (const [how, words, wanted] of [['at once', 'systemctl reboot', 'shutdown'], ['as planned', soon, 'reboot']] as const) {
  test(`ended by kubelet, which delays a reboot ${how} until its pods are gone, it says ${wanted} by kubelet's word: nothing is queued yet`, async () => {
    await boot('with the services')
    await machine.run(['sh', '-c', 'systemd-inhibit --what=shutdown --mode=delay sleep 600 > /dev/null 2>&1 & echo $! > /run/delays'])
    await until('it is known that somebody delays', async () => (await machine.run(['systemd-inhibit', '--list'])).includes('sleep 600'), saidWithin)
    await machine.run(['sh', '-c', words])
    await until('the shutdown has begun', async () => (await machine.run(['busctl', 'get-property', ...login, 'PreparingForShutdown'])).includes('true'), saidWithin)
    kubeletSays(machine.disk, new Date())
    assert.is((await machine.run(['systemctl', 'list-jobs'])).trim(), 'No jobs running.')
    assert.is(await saidAfter(stops), wanted)
    ended = hearing.beats.heard(name)?.boot ?? ''
    await machine.run(['sh', '-c', 'kill $(cat /run/delays)'])
    await until('it is off', () => machine.power() === 'off', offWithin)
    kubeletSays(machine.disk, undefined)
  })
}

test('the next boot knows that the one before was shut down', async () => {
  await boot('with the services')
  assert.is(hearing.beats.heard(name)?.before, 'shut down')
})

test('its power is gone', async () => {
  await machine.powerOff()
  await hearing.stop()
})

test.run()
