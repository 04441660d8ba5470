// Which beats count as late and which as lost, and what is neither.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { tallyBeat } from '../../coordinator/beats-tally.ts'
import type { BeatSeen } from '../../core/model.ts'
import { beatsWorld } from './beats-world.ts'
import { beat, boot } from '../core/world.ts'
import { hello, puppet } from './puppet.ts'

const test = suite('beats tally')

const seen = (changes: Partial<BeatSeen> = {}): BeatSeen => beat({ at: 10_000, ...changes })

/** [late, lost] by one beat that comes so long after the one before it, which had number 7. */
function tallied(count: number, gap: number, before: BeatSeen | undefined = seen(), of = boot): readonly [number, number] {
  const tally = { late: 0, lost: 0 }
  tallyBeat(tally, { seen: before, count: 7 }, of, count, 10_000 + gap)
  return [tally.late, tally.lost]
}

for (const [what, counted, expected] of [
  ['in time', tallied(8, 1_000), [0, 0]],
  ['a little late, as networks are', tallied(8, 1_499), [0, 0]],
  ['late', tallied(8, 1_500), [1, 0]],
  ['very late, and none is missing: late once', tallied(8, 9_000), [1, 0]],
  ['one is missing', tallied(9, 1_900), [0, 1]],
  ['a minute of them is missing: lost, and not late too', tallied(67, 60_000), [0, 59]],
  ['an agent that counts in thousands: no more are lost than there were seconds', tallied(9_000, 3_000), [0, 3]],
  ['as many in one second', tallied(9_000, 200), [0, 0]],
  ['an agent that began anew', tallied(1, 30_000), [0, 0]],
  ['the first after a goodbye', tallied(8, 30_000, seen({ goodbye: { at: 10_000, why: 'reboot' } })), [0, 0]],
  ['the first of another boot', tallied(30, 30_000, seen(), 'boot-2/9'), [0, 0]],
  ['a node never heard before', (() => { const tally = { late: 0, lost: 0 }; tallyBeat(tally, { seen: undefined }, boot, 500, 10_000); return [tally.late, tally.lost] })(), [0, 0]],
] as const) test(what, () => assert.equal(counted, expected))

test('beats that found no link are lost to the replica, by their own count, once the agent is back; those of another agent are not its', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address)
  const say = async (count: number): Promise<void> => {
    one.say({ say: 'beat', count, kubelet: 'ok' })
    await world.clock.runFor(1_000)
  }
  for (const count of [1, 2, 3]) await say(count)
  assert.equal(replica.beats.tally(), { late: 0, lost: 0 })
  one.link.close('the network')
  await world.clock.runFor(4_000)
  const again = await puppet(world, replica.address, { ...hello })
  again.say({ say: 'beat', count: 8, kubelet: 'ok' })
  await world.clock.runFor(2_000)
  assert.equal(replica.beats.tally(), { late: 0, lost: 4 })
  again.say({ say: 'beat', count: 9, kubelet: 'ok' })
  await world.clock.runFor(10)
  assert.equal(replica.beats.tally(), { late: 1, lost: 4 })
})

test.run()
