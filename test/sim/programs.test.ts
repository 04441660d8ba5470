import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { ProgramEnd } from '../../coordinator/host.ts'
import { seededChance } from '../../sim/chance.ts'
import { virtualClock } from '../../sim/clock.ts'
import { createDevice, createFeeds, type DeviceFault, type DevicePlan } from '../../sim/device.ts'
import { createMachine } from '../../sim/machine.ts'
import { createNetwork } from '../../sim/network.ts'
import { startProcess } from '../../sim/process.ts'
import { simulatedPrograms } from '../../sim/programs.ts'

const test = suite('programs')

const timing = { off: 2_000, on: 1_000, status: 200 }
const note = () => undefined

async function world(plan: Partial<DevicePlan> = {}) {
  const clock = virtualClock()
  const network = createNetwork(clock, seededChance(1))
  const machines = ['n1', 'n2'].map((name, index) => createMachine(
    clock, seededChance(name), network.addHost(name, `10.0.0.${index}`), { name, zone: 'z', machineId: `${name}-board`, bootTime: [500, 600] }, note,
  ))
  for (const machine of machines) machine.powerOn()
  const feeds = createFeeds()
  const device = createDevice(clock, network.addHost('bmc', '10.2.0.1'), feeds, { name: 'bmc', feed: 'own', kind: 'chassis', timing, note, ...plan })
  for (const [index, machine] of machines.entries()) device.wire(String(index + 1), machine)
  const replica = startProcess(clock, 'replica')
  const from = network.addHost('replica-0', '10.1.0.1')
  const devices = new Map([['10.2.0.1', device]])
  const programs = simulatedPrograms(network, from, replica, devices, note)
  await clock.runFor(1_000)
  const start = (action: string, plug = '1', within = 30_000, signal?: AbortSignal) => {
    const ended: { end?: ProgramEnd } = {}
    void programs.run({
      agent: 'fence_test', stdin: `action=${action}\nip=10.2.0.1\nplug=${plug}\n`, environment: {}, within, ...(signal === undefined ? {} : { signal }),
    }).then((end) => { ended.end = end })
    return ended
  }
  const run = async (action: string, plug = '1', within = 30_000) => {
    const ended = start(action, plug, within)
    await clock.runWhen(() => ended.end !== undefined, 60_000)
    return ended.end as ProgramEnd
  }
  return { clock, network, machine: machines[0] as (typeof machines)[0], other: machines[1] as (typeof machines)[0], device, replica, run, start, from, feeds }
}

const withFault = async (fault: DeviceFault, plan: Partial<DevicePlan> = {}) => {
  const made = await world(plan)
  made.device.fault = fault
  return made
}

test('status tells on and off by exit code, with the board\'s identity', async () => {
  const { machine, run } = await world()
  const on = await run('status')
  assert.is(on.exitCode, 0)
  assert.match(on.stdout, '"machine":"n1-board"')
  machine.powerOff()
  assert.is((await run('status')).exitCode, 2)
})

test('off ends once the machine is off, and on once it is on', async () => {
  const { machine, run, clock } = await world()
  const began = clock.now()
  assert.is((await run('off')).exitCode, 0)
  assert.is(machine.state(), 'off')
  assert.ok(clock.now() - began >= timing.off)
  assert.is((await run('on')).exitCode, 0)
  assert.is.not(machine.state(), 'off')
})

test('an unknown outlet, a list of outlets, a missing or doubled action are refused', async () => {
  const { run, machine } = await world()
  assert.is((await run('status', '9')).exitCode, 1)
  assert.is((await run('off', '1,2')).exitCode, 1)
  assert.is((await run('off\naction=on')).exitCode, 1)
  assert.is((await run('')).exitCode, 1)
  assert.is(machine.state(), 'running')
})

test('a device that hangs ends at the deadline and is not called anything', async () => {
  const { run, machine } = await withFault({ does: 'hang' })
  const end = await run('off', '1', 5_000)
  assert.equal([end.exitCode, end.late, end.gone], [undefined, true, true])
  assert.is(machine.state(), 'running')
})

test('an order that was taken lands although its program was ended', async () => {
  const { start, clock, machine } = await world()
  const stop = new AbortController()
  const ended = start('off', '1', 30_000, stop.signal)
  await clock.runFor(800)
  stop.abort()
  await clock.runFor(100)
  assert.equal([ended.end?.exitCode, ended.end?.late], [undefined, false])
  assert.is(machine.state(), 'running')
  await clock.runFor(5_000)
  assert.is(machine.state(), 'off')
})

test('a program of a replica that is killed says nothing more, and its order lands all the same', async () => {
  const { start, clock, machine, replica } = await world()
  const ended = start('off')
  await clock.runFor(800)
  replica.kill()
  await clock.runFor(10_000)
  assert.is(ended.end, undefined)
  assert.is(machine.state(), 'off')
})

test('a late device fails the order and carries it out much later', async () => {
  const { run, machine, clock } = await withFault({ does: 'late', by: 40_000 })
  assert.is((await run('off')).exitCode, 1)
  assert.is(machine.state(), 'running')
  await clock.runFor(40_000)
  assert.is(machine.state(), 'off')
})

test('a device that speaks too early says off while the machine still runs', async () => {
  const { run, machine, clock } = await withFault({ does: 'early', by: 5_000 })
  assert.is((await run('off')).exitCode, 0)
  assert.is((await run('status')).exitCode, 2)
  assert.is(machine.state(), 'running')
  await clock.runFor(10_000)
  assert.is(machine.state(), 'off')
})

test('a liar says off in order and status, and the machine runs on', async () => {
  const { run, machine, clock } = await withFault({ does: 'lie' })
  assert.is((await run('off')).exitCode, 0)
  assert.is((await run('status')).exitCode, 2)
  await clock.runFor(60_000)
  assert.is(machine.state(), 'running')
})

test('an outlet whose back end vanished reads as off after an order, and as nothing in status', async () => {
  const { run, machine } = await withFault({ does: 'vanish' })
  assert.is((await run('off')).exitCode, 0)
  assert.is((await run('status')).exitCode, 1)
  assert.is(machine.state(), 'running')
})

test('a device that ignores orders tells the truth, so the program gives up', async () => {
  const { run, machine } = await withFault({ does: 'ignore' })
  assert.is((await run('off')).exitCode, 1)
  assert.is((await run('status')).exitCode, 0)
  assert.is(machine.state(), 'running')
})

test('a device that bounces has the machine on again after its off', async () => {
  const { run, machine, clock } = await withFault({ does: 'bounce', after: 3_000 })
  assert.is((await run('off')).exitCode, 0)
  await clock.runFor(10_000)
  assert.is(machine.state(), 'running')
})

test('a device that says off once says on when it is asked again', async () => {
  const { run } = await withFault({ does: 'say-off-once' })
  assert.equal([(await run('status')).exitCode, (await run('status')).exitCode], [2, 0])
})

test('a device that calls an unknown outlet off does so in status', async () => {
  const { run } = await withFault({ does: 'call-missing-off' })
  assert.equal([(await run('status', '9')).exitCode, (await run('status', '1')).exitCode], [2, 0])
})

test('swapped outlets switch the other machine', async () => {
  const { run, machine, other, device } = await world()
  device.wire('1', other)
  device.wire('2', machine)
  assert.is((await run('off')).exitCode, 0)
  assert.equal([machine.state(), other.state()], ['running', 'off'])
})

test('a device on the machine\'s own feed is gone with that, and answers on when the machine was only switched off', async () => {
  const { run, machine, feeds } = await world({ feed: 'machine' })
  assert.is((await run('status')).exitCode, 0)
  assert.is((await run('off')).exitCode, 0)
  assert.is((await run('status')).exitCode, 2)
  feeds.mains(machine, false)
  assert.is((await run('status', '1', 2_000)).late, true)
})

test('without that feed it does nothing: not what it was ordered before, nor when somebody presses its button', async () => {
  const { run, start, clock, machine, feeds, device } = await world({ feed: 'machine' })
  assert.is((await run('off')).exitCode, 0)
  start('on')
  await clock.runFor(500)
  feeds.mains(machine, false)
  await clock.runFor(5_000)
  device.turn('1', 'on')
  await clock.runFor(5_000)
  assert.is(machine.state(), 'off')
  feeds.mains(machine, true)
  device.turn('1', 'on')
  await clock.runFor(5_000)
  assert.equal([machine.state(), (await run('status')).exitCode], ['running', 0])
})

test('one of two feeds keeps a machine running', async () => {
  const { device, run, machine } = await world({ kind: 'outlet' })
  device.wire('2', machine)
  assert.is((await run('off', '1')).exitCode, 0)
  assert.is(machine.state(), 'running')
  assert.is((await run('off', '2')).exitCode, 0)
  assert.is(machine.state(), 'off')
})

test('a strip that loses its feed takes its machines with it, answers nothing, and starts them when it is back', async () => {
  const { device, run, machine, other, clock } = await world({ kind: 'outlet' })
  assert.is((await run('off', '2')).exitCode, 0)
  device.mains(false)
  assert.is(machine.state(), 'off')
  assert.is((await run('status', '1', 2_000)).late, true)
  device.mains(true)
  await clock.runFor(1_000)
  assert.equal([machine.state(), other.state()], ['running', 'off'], 'what was switched off stays so')
})

test('two cables that change places switch nothing while both outlets are on', async () => {
  const { device, run, machine, other, clock } = await world({ kind: 'outlet' })
  device.wire('1', other)
  device.wire('2', machine)
  await clock.runFor(1_000)
  assert.equal([machine.state(), other.state()], ['running', 'running'])
  assert.is((await run('off', '1')).exitCode, 0)
  assert.equal([machine.state(), other.state()], ['running', 'off'])
})

test('a fault of one outlet leaves the others well', async () => {
  const { device, run, machine, other } = await world({ kind: 'outlet' })
  device.setPlugFault('1', { does: 'fail' })
  assert.is((await run('off', '1')).exitCode, 1)
  assert.is((await run('off', '2')).exitCode, 0)
  assert.equal([machine.state(), other.state()], ['running', 'off'])
  device.heal()
  assert.is((await run('off', '1')).exitCode, 0)
})

test('a device that forgets its outlets calls them off, and switches nothing', async () => {
  const { run, machine } = await withFault({ does: 'forget' })
  assert.is((await run('status')).exitCode, 2)
  assert.is((await run('off')).exitCode, 0)
  assert.is(machine.state(), 'running')
})

test('a device without a status carries out what it is told, and no program can verify it', async () => {
  const { run, machine } = await withFault({ does: 'no-status' })
  assert.is((await run('status')).exitCode, 1)
  assert.is((await run('off')).exitCode, 1)
  assert.is(machine.state(), 'off')
})

test('an order that times out may land long after', async () => {
  const { run, machine, clock } = await withFault({ does: 'late', by: 35_000, answers: 'never' })
  assert.is((await run('off', '1', 30_000)).late, true)
  assert.is(machine.state(), 'running')
  await clock.runFor(6_000)
  assert.is(machine.state(), 'off')
})

test('a device behind a cut network fails without having heard anything', async () => {
  const { run, network, machine } = await world()
  network.rule((_from, _to, plane) => (plane === 'device' ? 'silent' : 'open'))
  assert.is((await run('off')).exitCode, 1)
  assert.is(machine.state(), 'running')
})

test.run()
