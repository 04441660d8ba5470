import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { seededChance } from '../../sim/chance.ts'
import { virtualClock } from '../../sim/clock.ts'
import { createMachine } from '../../sim/machine.ts'
import { mountInfo, volumePath } from '../../sim/mounts.ts'
import { createNetwork } from '../../sim/network.ts'

const test = suite('machine')

async function world() {
  const clock = virtualClock()
  const network = createNetwork(clock, seededChance(1))
  const host = network.addHost('n1', '10.0.0.11')
  const machine = createMachine(clock, seededChance(2), host, { name: 'n1', zone: 'z', machineId: 'board-1', bootTime: [10_000, 12_000] }, () => undefined)
  const boots: string[] = []
  machine.atBoot(({ id }) => boots.push(id))
  machine.powerOn()
  await clock.runFor(20_000)
  const ticks: number[] = []
  const start = (kind: 'system' | 'workload' = 'system') => {
    const process = machine.start('ticker', kind)
    const tick = () => {
      ticks.push(clock.now())
      process.clock.after(100, tick)
    }
    tick()
    return process
  }
  return { clock, host, machine, boots, ticks, start }
}

test('a clock that is set is what every program on the machine reads, those begun later too, and outlasts a boot; its monotonic clocks go on', async () => {
  const { clock, machine, start } = await world()
  const before = start()
  machine.setClock(-60_000)
  const differs = (process = start()) => [process.clock.wall() - clock.wall(), process.clock.now() - clock.now()]
  assert.equal([differs(before), differs(), machine.wall() - clock.wall()], [[-60_000, 0], [-60_000, 0], -60_000])
  machine.powerOff()
  machine.powerOn()
  await clock.runFor(20_000)
  assert.equal(differs(), [-60_000, 0])
  machine.setClock(0)
  assert.equal(differs(), [0, 0])
})

test('a machine boots after its time, with an identity of its own each time', async () => {
  const { clock, machine, boots } = await world()
  assert.is(machine.state(), 'running')
  machine.powerOn()
  machine.powerOff()
  assert.is(machine.boot(), undefined)
  machine.powerOn()
  await clock.runFor(9_000)
  assert.is(machine.state(), 'booting')
  await clock.runFor(4_000)
  assert.is(boots.length, 2)
  assert.is.not(boots[0], boots[1])
})

test('power off in the middle of a boot ends it', async () => {
  const { clock, machine, boots } = await world()
  machine.powerOff()
  machine.powerOn()
  await clock.runFor(1_000)
  machine.powerOff()
  await clock.runFor(60_000)
  assert.is(machine.state(), 'off')
  assert.is(boots.length, 1)
})

test('a power loss ends everything at once, and leaves what is on the disk', async () => {
  const { clock, host, machine, ticks, start } = await world()
  const process = start()
  machine.mounts.set('/m', { path: '/m', source: 'ext4 /dev/x', volume: 'v' })
  machine.podFolders.add('u1')
  machine.disk.set('file', 'text')
  machine.powerOff()
  const before = ticks.length
  await clock.runFor(1_000)
  assert.is(ticks.length, before)
  assert.not.ok(process.alive())
  assert.is(host.kernel, 'down')
  assert.is(machine.mounts.size, 0)
  assert.equal([[...machine.podFolders], machine.disk.get('file')], [['u1'], 'text'])
  assert.is(machine.read('boot-id'), undefined)
  assert.throws(() => machine.start('late', 'system'))
})

test('a frozen machine stands still and goes on at its thaw where it was', async () => {
  const { clock, host, machine, ticks, start } = await world()
  start()
  await clock.runFor(250)
  machine.freeze()
  assert.is(host.kernel, 'frozen')
  const before = ticks.length
  await clock.runFor(60_000)
  assert.is(ticks.length, before)
  machine.thaw()
  await clock.runFor(60)
  assert.is(ticks.length, before + 1)
  assert.is(host.kernel, 'up')
})

test('a kernel that panics has nothing mounted and runs nothing any more, and only its power ends it', async () => {
  const { clock, host, machine, ticks, start } = await world()
  start()
  machine.mounts.set('/m', { path: '/m', source: 'ext4 /dev/x', volume: 'v' })
  machine.panic()
  const before = ticks.length
  machine.crashKernel()
  machine.thaw()
  await clock.runFor(1_000)
  assert.equal([ticks.length, machine.mounts.size, machine.frozen(), host.kernel], [before, 0, true, 'crash'])
})

test('what starts on a frozen machine does not run before the thaw', async () => {
  const { clock, machine, ticks, start } = await world()
  machine.freeze()
  start()
  const before = ticks.length
  await clock.runFor(1_000)
  assert.is(ticks.length, before)
  machine.thaw()
  await clock.runFor(1_000)
  assert.ok(ticks.length > before)
})

test('a stuck userspace stops the kubelet and not the workload', async () => {
  const { clock, machine, ticks, start } = await world()
  start('workload')
  machine.stick()
  const before = ticks.length
  await clock.runFor(1_000)
  assert.ok(ticks.length > before)
  const kubelet = start('system')
  assert.not.ok(kubelet.running())
  machine.unstick()
  assert.ok(kubelet.running())
})

test('the boot is in the files that an agent reads', async () => {
  const { machine } = await world()
  assert.is(machine.read('boot-id')?.trim(), machine.boot()?.id)
  assert.is(machine.read('pid-1-stat')?.split(' ')[21], machine.boot()?.start)
  assert.is(machine.read('machine')?.trim(), 'board-1')
  assert.ok(Number(machine.read('uptime')?.split(' ')[0]) > 0)
})

test('mounts are written as the kernel writes them, and a bind mount bears its volume\'s device', () => {
  const source = 'ext4 /dev/disk/by-id/v'
  const text = mountInfo([{ path: volumePath('u 1', 'pv'), source, volume: 'v' }, { path: '/copy', source }])
  const lines = text.trim().split('\n').map((line) => line.split(' '))
  const [mounted, copy] = lines.slice(-2)
  assert.is(mounted?.[4], '/var/lib/kubelet/pods/u\\0401/volumes/kubernetes.io~csi/pv/mount')
  assert.is(mounted?.[2], copy?.[2])
  assert.ok(lines.every((line) => line.includes('-')))
})

test.run()
