// Real cron, in a process that stands still when something is due.
import { setTimeout } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { byCalendar } from '../../coordinator/calendar.ts'
import { silentLog } from '../../edge/log.ts'

const test = suite('calendar')

/** Until the next whole second, or one that `at` names. */
const secondsTo = (count: number): number => Math.floor(Date.now() / 1_000) + count

test('what was due while this process stood still is begun late, once', async () => {
  // A busy machine may be that late before it stands still.
  const second = secondsTo(6)
  const begun: number[] = []
  const task = byCalendar(`${second % 60} ${Math.floor(second / 60) % 60} * * * *`, () => begun.push(Date.now()), silentLog)
  await setTimeout(50)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, (second + 3) * 1_000 - Date.now())
  assert.equal(begun, [])
  while (begun.length === 0) await setTimeout(20)
  await setTimeout(1_500)
  assert.is(begun.length, 1)
  void task.destroy()
})

test('its words go into the log, and nowhere else', async () => {
  const told: string[] = []
  const task = byCalendar('* * * * * *', () => { throw new Error('a fault of ours') }, { ...silentLog, error: (facts, message) => told.push(`${message} ${JSON.stringify(facts)}`) })
  while (told.length === 0) await setTimeout(20)
  assert.match(told[0] ?? '', /^the calendar fails .*a fault of ours/)
  void task.destroy()
})

test.run()
