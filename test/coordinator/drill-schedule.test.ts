// The hours of drills follow the policies in force: real cron, each second.
import { setTimeout } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { drillSchedule } from '../../coordinator/drill-schedule.ts'
import { silentLog } from '../../edge/log.ts'
import { policy } from '../core/world.ts'

const test = suite('drill schedule')

const asking = (name: string, schedule: string) => ({ ...policy, name, drills: { schedule, again: 3_600_000 } })

async function until(so: () => boolean): Promise<void> {
  while (!so()) await setTimeout(20)
}

test('each policy that asks has its hours, until it asks for others, or for none', async () => {
  const due: string[] = []
  const hours = drillSchedule((name) => due.push(name), silentLog)
  hours.keep([asking('often', '* * * * * *'), asking('never yet', '0 0 1 1 *'), { ...policy, name: 'quiet' }])
  await until(() => due.length >= 2)
  assert.equal([...new Set(due)], ['often'])
  hours.keep([asking('often', '0 0 1 1 *'), asking('never yet', '* * * * * *')])
  due.length = 0
  await until(() => due.length >= 2)
  assert.equal([...new Set(due)], ['never yet'])
  hours.keep([asking('often', '* * * * * *')])
  due.length = 0
  await until(() => due.length >= 2)
  assert.equal([...new Set(due)], ['often'])
  hours.stop()
  due.length = 0
  await setTimeout(1_500)
  assert.equal(due, [])
})

test.run()
