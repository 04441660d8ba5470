// One beat for all workloads: each writes ten times a second for as long as it wants, and a world without one is left in peace.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { virtualClock } from '../../sim/clock.ts'
import { createWriters } from '../../sim/writers.ts'

const test = suite('writers')

test('each writer writes ten times a second until it ends, whenever it began', async () => {
  const clock = virtualClock()
  const writers = createWriters(clock)
  const writes = { one: 0, other: 0 }
  const end = writers.add(() => { writes.one += 1 })
  await clock.runFor(1_030)
  writers.add(() => { writes.other += 1 })
  await clock.runFor(1_000)
  end()
  await clock.runFor(1_000)
  assert.equal(writes, { one: 20, other: 20 })
})

test('a writer that ends in the middle of a beat keeps no other from its write', async () => {
  const clock = virtualClock()
  const writers = createWriters(clock)
  let writes = 0
  const end = writers.add(() => end())
  writers.add(() => { writes += 1 })
  await clock.runFor(250)
  assert.is(writes, 2)
})

test('nothing is armed when nobody writes, and the beat begins again with the next writer', async () => {
  const clock = virtualClock()
  const writers = createWriters(clock)
  const end = writers.add(() => undefined)
  await clock.runFor(150)
  end()
  await clock.runFor(150)
  assert.is(clock.pending(), 0)
  let writes = 0
  writers.add(() => { writes += 1 })
  await clock.runFor(310)
  assert.is(writes, 3)
})

test.run()
