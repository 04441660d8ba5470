import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { podRate } from '../../coordinator/pod-rate.ts'
import { virtualClock } from '../../sim/clock.ts'

const test = suite('pod rate')

test('a burst of 150 pods, then 300 a minute', async () => {
  const clock = virtualClock()
  const rate = podRate(clock)
  assert.is(rate.take(1_000), 150)
  assert.is(rate.take(1), 0)
  await clock.runFor(1_000)
  assert.is(rate.available(), 5)
  assert.is(rate.take(25), 5)
  await clock.runFor(60_000)
  assert.is(rate.available(), 150, 'a minute of rest fills it, and no more than that')
})

test('in any minute no more are freed than a burst and a minute\'s rate', async () => {
  const clock = virtualClock()
  const rate = podRate(clock)
  let freed = 0
  for (let tick = 0; tick < 240; tick += 1) {
    freed += rate.take(25)
    await clock.runFor(250)
  }
  assert.ok(freed <= 450, `${freed}`)
  assert.ok(freed >= 440, `${freed}`)
})

test('less than one pod is none, and is not lost', async () => {
  const clock = virtualClock()
  const rate = podRate(clock)
  rate.take(150)
  await clock.runFor(100)
  assert.is(rate.take(1), 0)
  await clock.runFor(100)
  assert.is(rate.take(1), 1)
})

test('what was taken and not freed is given back, and never more than the burst', () => {
  const rate = podRate(virtualClock())
  assert.is(rate.take(100), 100)
  rate.giveBack(40)
  assert.is(rate.available(), 90)
  rate.giveBack(1_000)
  assert.is(rate.available(), 150)
})

test.run()
