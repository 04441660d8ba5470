import fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { keepRhythm, untilNext } from '../../agent/rhythm.ts'
import { waitOn, type Clock } from '../../edge/clock.ts'
import { virtualClock } from '../../sim/clock.ts'

const test = suite('rhythm')

test('runs come at the phase and then every second, for as long as it is wanted', async () => {
  const clock = virtualClock()
  const at: number[] = []
  const stop = new AbortController()
  keepRhythm(clock, 1_000, 300, stop.signal, () => at.push(clock.now()))
  await clock.runFor(3_500)
  stop.abort()
  await clock.runFor(5_000)
  assert.equal(at, [300, 1_300, 2_300, 3_300])
  assert.is(clock.pending(), 0)
})

test('timers that come late do not make it drift', async () => {
  const clock = virtualClock()
  const late: Clock = { ...clock, after: (span, run) => clock.after(span + 40, run), wait: (span, signal) => waitOn(late, span, signal) }
  const at: number[] = []
  const stop = new AbortController()
  keepRhythm(late, 1_000, 0, stop.signal, () => at.push(clock.now()))
  await clock.runFor(10_500)
  stop.abort()
  assert.equal(at, Array.from({ length: 11 }, (_, slot) => slot * 1_000 + 40))
})

test('after a stall of any length the next run is neither close upon the last nor far off, and falls into a slot', () => {
  fc.assert(fc.property(fc.integer({ min: 0, max: 1_000_000 }), (since) => {
    const left = untilNext(since, 1_000)
    assert.ok(left >= 250 && left <= 1_250)
    assert.is((since + left) % 1_000, 0)
  }))
})

test.run()
