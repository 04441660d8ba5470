import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { virtualClock } from '../../sim/clock.ts'
import { startProcess } from '../../sim/process.ts'

const test = suite('process')

function world() {
  const clock = virtualClock()
  const process = startProcess(clock, 'p')
  const fired: [string, number][] = []
  const timer = (name: string, span: number) => process.clock.after(span, () => fired.push([name, clock.now()]))
  return { clock, process, fired, timer }
}

test('a killed process gets no timer and no promise any more', async () => {
  const { clock, process, fired, timer } = world()
  timer('before', 10)
  timer('after', 30)
  let resumed = false
  void process.hold(clock.wait(30)).then(() => { resumed = true })
  clock.after(20, () => process.kill())
  await clock.runFor(100)
  assert.equal(fired, [['before', 10]])
  assert.not.ok(resumed)
  assert.not.ok(process.alive())
  assert.is(clock.pending(), 0)
})

test('with standing clocks a timer comes as much later as the pause lasted, and the process cannot tell', async () => {
  const { clock, process, fired, timer } = world()
  timer('a', 50)
  clock.after(20, () => process.pause('test', 'standing'))
  clock.after(60_020, () => process.resume('test'))
  await clock.runFor(70_000)
  assert.equal(fired, [['a', 60_050]])
  assert.is(process.clock.now(), 10_000)
  assert.is(clock.wall() - process.clock.wall(), 60_000)
})

test('with running clocks the timers that came due fire at the end of the pause, in order', async () => {
  const { clock, process, fired, timer } = world()
  timer('second', 300)
  timer('first', 200)
  timer('later', 2_000)
  clock.after(100, () => process.pause('test', 'running'))
  clock.after(1_000, () => process.resume('test'))
  await clock.runFor(3_000)
  assert.equal(fired, [['first', 1_001], ['second', 1_001], ['later', 2_000]])
  assert.is(process.clock.now(), clock.now())
})

test('what arrives in a pause is handed over at its end, after the timers, in order', async () => {
  const { clock, process, fired, timer } = world()
  timer('timer', 50)
  process.pause('test', 'running')
  clock.after(10, () => process.deliver(() => fired.push(['one', clock.now()])))
  clock.after(20, () => process.deliver(() => fired.push(['two', clock.now()])))
  clock.after(100, () => process.resume('test'))
  await clock.runFor(200)
  assert.equal(fired, [['timer', 101], ['one', 101], ['two', 101]])
})

test('a process paused twice goes on when both have let go', async () => {
  const { clock, process, fired, timer } = world()
  timer('a', 10)
  process.pause('machine', 'standing')
  process.pause('person', 'running')
  clock.after(100, () => process.resume('machine'))
  clock.after(200, () => process.resume('person'))
  await clock.runFor(500)
  assert.equal(fired, [['a', 201]])
})

test('a fast clock brings timers early and its time runs ahead', async () => {
  const { clock, process, fired, timer } = world()
  process.setRate(2)
  timer('a', 100)
  await clock.runFor(80)
  assert.equal(fired, [['a', 50]])
  assert.is(process.clock.now(), 160)
})

test('a jump of the wall does not move the monotonic clock', async () => {
  const { clock, process } = world()
  process.jumpWall(3_600_000)
  assert.is(process.clock.wall() - clock.wall(), 3_600_000)
  assert.is(process.clock.now(), clock.now())
})

test('what the kernel does for a dead process is done once, at the kill', () => {
  const { process } = world()
  let ends = 0
  process.onEnd(() => ends++)
  process.onEnd(() => ends++)()
  process.kill()
  process.kill()
  assert.is(ends, 1)
})

test('what is called after so many things handed over comes right after the last of them, before any promise chain of it', async () => {
  const { clock, process, fired, timer } = world()
  timer('one', 10)
  timer('two', 20)
  timer('three', 40)
  process.afterHanded(3, () => process.kill())
  clock.after(30, () => process.deliver(() => {
    fired.push(['handed', clock.now()])
    void Promise.resolve().then(() => fired.push(['its chain', clock.now()]))
  }))
  await clock.runFor(100)
  assert.equal(fired, [['one', 10], ['two', 20], ['handed', 30], ['its chain', 30]])
  assert.not.ok(process.alive())
})

test.run()
