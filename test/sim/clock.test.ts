import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { virtualClock } from '../../sim/clock.ts'

const test = suite('clock')

test('timers fire by time, then by the order in which they were armed', async () => {
  const clock = virtualClock()
  const fired: string[] = []
  clock.after(20, () => fired.push('c'))
  clock.after(10, () => fired.push('a'))
  clock.after(10, () => fired.push('b'))
  await clock.runUntil(20)
  assert.equal(fired, ['a', 'b', 'c'])
  assert.is(clock.now(), 20)
})

test('of many timers of one instant each fires in its turn, whichever were cancelled', async () => {
  const clock = virtualClock()
  const fired: number[] = []
  const cancels = Array.from({ length: 40 }, (_, index) => clock.after(index % 2 === 0 ? 10 : 20, () => fired.push(index)))
  for (const index of [0, 7, 8, 21, 38]) cancels[index]?.()
  await clock.runUntil(20)
  const left = cancels.map((_, index) => index).filter((index) => ![0, 7, 8, 21, 38].includes(index))
  assert.equal(fired, [...left.filter((index) => index % 2 === 0), ...left.filter((index) => index % 2 === 1)])
})

test('a promise chain runs to its end before the next timer of the same instant', async () => {
  const clock = virtualClock()
  const fired: string[] = []
  clock.after(5, () => {
    void Promise.resolve().then(() => undefined).then(() => undefined).then(() => fired.push('chain'))
  })
  clock.after(5, () => fired.push('timer'))
  await clock.runUntil(5)
  assert.equal(fired, ['chain', 'timer'])
})

test('time does not pass while a chain goes through setImmediate', async () => {
  const clock = virtualClock()
  const seen: number[] = []
  clock.after(1, () => setImmediate(() => seen.push(clock.now())))
  clock.after(1_000, () => undefined)
  await clock.runUntil(2_000)
  assert.equal(seen, [1])
})

test('a cancelled timer does not fire, and counts no more', async () => {
  const clock = virtualClock()
  const cancel = clock.after(5, () => assert.unreachable())
  assert.is(clock.pending(), 1)
  cancel()
  cancel()
  assert.is(clock.pending(), 0)
  await clock.runUntil(10)
})

test('a wait ends at its span, and at once when its signal aborts', async () => {
  const clock = virtualClock()
  const stop = new AbortController()
  const ends: [string, number][] = []
  void clock.wait(50).then(() => ends.push(['span', clock.now()]))
  void clock.wait(1_000, stop.signal).then(() => ends.push(['abort', clock.now()]))
  clock.after(70, () => stop.abort())
  await clock.runFor(100)
  assert.equal(ends, [['span', 50], ['abort', 70]])
  assert.is(clock.pending(), 0)
})

test('a run ends as soon as what it waits for holds', async () => {
  const clock = virtualClock()
  let count = 0
  const tick = () => {
    count++
    clock.after(10, tick)
  }
  tick()
  assert.is(await clock.runWhen(() => count === 4, 1_000), true)
  assert.is(clock.now(), 30)
  assert.is(await clock.runWhen(() => count === 1_000, 100), false)
  assert.is(clock.now(), 130)
})

test('a timer that arms itself for now again and again lets time pass, as on a machine', async () => {
  const clock = virtualClock()
  let fired = 0
  const again = () => {
    fired++
    clock.after(0, again)
  }
  again()
  await clock.runFor(10)
  assert.is(fired, 11)
})

test('a chain that never waits for the clock is named, not endured', async () => {
  const clock = virtualClock()
  let running = true
  const again = () => {
    if (running) setImmediate(again)
  }
  again()
  let message = ''
  await clock.runFor(1).catch((error: Error) => { message = error.message })
  running = false
  assert.match(message, 'without waiting for the clock')
})

test('nobody turns the clock from inside', async () => {
  const clock = virtualClock()
  let message = ''
  clock.after(1, () => void clock.runFor(1).catch((error: Error) => { message = error.message }))
  await clock.runFor(5)
  assert.match(message, 'already being turned')
})

test('wall time goes with the clock', async () => {
  const clock = virtualClock()
  const began = clock.wall()
  await clock.runFor(90_000)
  assert.is(clock.wall() - began, 90_000)
})

test.run()
