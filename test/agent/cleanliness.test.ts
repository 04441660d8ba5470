import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { watchCleanliness, type Cleanliness } from '../../agent/cleanliness.ts'
import { silentLog } from '../../edge/log.ts'
import { virtualClock, type VirtualClock } from '../../sim/clock.ts'
import { emptyMounts } from '../coordinator/beats-world.ts'

const test = suite('cleanliness')

/** A machine whose folder of pods takes a second to read; only the folder of pod `new` is in it. */
function slow(): { clock: VirtualClock; told: string[]; cleanliness: Cleanliness } {
  const clock = virtualClock()
  const told: string[] = []
  const cleanliness = watchCleanliness({
    clock, log: silentLog, read: async () => emptyMounts,
    podFolders: async () => {
      await clock.wait(1_000)
      return ['new']
    },
  }, '/var/lib/kubelet', (report) => told.push(report.state))
  return { clock, told, cleanliness }
}

test('a reading under way for an older list of pods answers no newer question', async () => {
  const { clock, told, cleanliness } = slow()
  cleanliness.check([])
  await clock.runFor(500)
  cleanliness.check(['new'])
  await clock.runFor(600)
  assert.equal(told, [], 'the reading for the older list is over, and tells nothing')
  await clock.runFor(1_500)
  assert.equal(told, ['clean'])
})

test('after the stop nothing is told of what was still being read', async () => {
  const { clock, told, cleanliness } = slow()
  cleanliness.check([])
  await clock.runFor(500)
  cleanliness.stop()
  await clock.runFor(10_000)
  assert.equal([told, clock.pending()], [[], 0])
})

test.run()
