// How many runs a device bears at once is for the more careful of those who share it.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { deviceQueue } from '../../coordinator/fence-queue.ts'
import { virtualClock } from '../../sim/clock.ts'

const test = suite('fence queue')

test('a run whose configuration says that its device bears one is alone on it, whatever another one says of the device', async () => {
  const clock = virtualClock()
  const queue = deviceQueue(clock)
  let [now, most] = [0, 0]
  const work = async () => {
    now += 1
    most = Math.max(most, now)
    await clock.wait(1_000)
    now -= 1
  }
  const all = [queue.inTurn('pdu', 1, 'incident', 30_000, undefined, work), queue.inTurn('pdu', 2, 'incident', 30_000, undefined, work), queue.inTurn('pdu', 2, 'incident', 30_000, undefined, work)]
  await clock.runFor(5_000)
  await Promise.all(all)
  assert.is(most, 2, 'two that say two are together, and the one is alone')
  let alone = true
  const one = queue.inTurn('pdu', 1, 'incident', 30_000, undefined, async () => { now += 1; await clock.wait(1_000); alone &&= now === 1; now -= 1 })
  const two = queue.inTurn('pdu', 2, 'incident', 30_000, undefined, work)
  await clock.runFor(5_000)
  await Promise.all([one, two])
  assert.ok(alone)
})

test.run()
