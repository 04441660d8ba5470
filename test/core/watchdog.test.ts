import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { BeatSeen } from '../../core/model.ts'
import { distrusted, endedWithin, mostSince, unfit, watchdogKept, type Membership, type WatchdogKept, type WatchdogSaid } from '../../core/watchdog.ts'
import { beat, boot, newBoot, record } from './world.ts'

const test = suite('watchdog')

const armed: WatchdogSaid = { state: 'armed', identity: 'i6300ESB timer', timeout: 30_000, panic: 0, machine: 'real', epoch: 1 }

test('of which watchdogs nothing is certain', () => {
  const cases: [string, Partial<WatchdogSaid>, RegExp | undefined][] = [
    ['hardware that is known', {}, undefined],
    ['hardware that is not', { identity: 'iTCO_wdt' }, undefined],
    ['one that is not armed', { state: 'unarmed' }, /not armed/],
    ['one that has no name', { identity: '' }, /what its watchdog is/],
    ['a time-out of none', { timeout: 0 }, /of no use/],
    ['a time-out that is shorter than a busy machine stands still', { timeout: 9_000 }, /less than 10 s/],
    ['a time-out of hours', { timeout: 3_600_000 }, /the most is 600 s/],
    ['the kernel\'s own, where a panic stays', { identity: 'Software Watchdog' }, /kernel\.panic/],
    ['the kernel\'s own, where a panic reboots at once, which is not what is asked for', { identity: 'Software Watchdog', panic: -1 }, /kernel\.panic/],
    ['the kernel\'s own, where a panic reboots after a while', { identity: 'Software Watchdog', panic: 10 }, undefined],
    ['a virtual machine', { machine: 'virtual' }, /virtual machine/],
    ['a machine of which nobody knows', { machine: 'unknown' }, /nothing tells whether/],
  ]
  for (const [what, change, lacks] of cases) {
    const told = distrusted({ ...armed, ...change })
    if (lacks === undefined) assert.is(told, undefined, what)
    else assert.match(told ?? '', lacks, what)
  }
})

test('which may be armed at all', () => {
  assert.equal([10_000, 600_000].map((timeout) => unfit({ identity: '', timeout })), [undefined, undefined])
  assert.match(unfit({ identity: '', timeout: 30_000, nowayout: true }) ?? '', /nowayout/)
  assert.ok([9_999, 600_001].every((timeout) => unfit({ identity: '', timeout }) !== undefined))
})

test('how long after the last word a reset is certain: the permit and what follows it; its time-out, for a word that was on its way to the device, and for its kernel\'s as its agent ends; each twice where nobody has measured it', () => {
  assert.is(endedWithin({ identity: 'i6300ESB timer', timeout: 30_000 }), 30_000 + 3 * 30_000 + 5_000 + 2_400)
  assert.is(endedWithin({ identity: 'Software Watchdog', timeout: 60_000 }), 30_000 + 3 * 60_000 + 5_000 + 4_200)
  assert.is(endedWithin({ identity: 'iTCO_wdt', timeout: 30_000 }), 30_000 + 3 * 60_000 + 5_000 + 4_200)
})

const membership = (agents: string[], replicas: string[], epoch = 1): Membership => ({ epoch, agents, replicas })

test('most of a membership has said so when more than half of all has', () => {
  const said: Record<string, number> = { a: 10, b: 30, c: 20, 'replica-0': 5 }
  const cases: [string, Membership, number | undefined][] = [
    ['all of three', membership(['a', 'b', 'c'], []), 20],
    ['three of four, a replica among them', membership(['a', 'c', 'x'], ['replica-0']), 20],
    ['half of four', membership(['a', 'c', 'x', 'y'], []), undefined],
    ['two of three', membership(['a', 'b', 'x'], []), 30],
    ['one of one', membership(['a'], []), 10],
    ['a replica alone, of two', membership(['x'], ['replica-0']), undefined],
    ['nobody, of nobody', membership([], []), undefined],
  ]
  for (const [what, of, at] of cases) assert.is(mostSince(of, (member) => said['agent' in member ? member.agent : member.replica]), at, what)
})

const kept = (changes: Partial<WatchdogKept> = {}): WatchdogKept => ({ boot, state: 'armed', identity: 'i6300ESB timer', timeout: 30_000, panic: 0, machine: 'real', epoch: 1, memberships: [membership(['a', 'b'], ['r'])], ...changes })
const members = { agents: ['a', 'b'], replicas: ['r'] }
const others = { agents: ['a', 'c'], replicas: ['r'] }

const hears = (watchdog?: WatchdogSaid): BeatSeen => beat(watchdog === undefined ? {} : { watchdog })

test('what is to stand on record', () => {
  const cases: [string, WatchdogKept | undefined, typeof members | undefined, BeatSeen, WatchdogKept | undefined][] = [
    ['nobody wants one and nobody has one', undefined, undefined, hears(), undefined],
    ['it is wanted, and the agent has not told: its members come first', undefined, members, hears(), { boot, state: 'unarmed', identity: '', timeout: 0, panic: 0, machine: 'unknown', epoch: 0, memberships: [membership(['a', 'b'], ['r'])] }],
    ['it is armed and its members confirmed', kept({ state: 'unarmed', epoch: 0 }), members, hears(armed), kept()],
    ['nothing new', kept(), members, hears(armed), kept()],
    ['an agent that has not told since it was started again', kept(), members, hears(), kept()],
    ['it asks to disarm it', kept(), members, hears({ ...armed, disarm: 4 }), kept({ state: 'unarmed' })],
    ['other members, told of none yet', kept(), others, hears(armed), kept({ memberships: [membership(['a', 'b'], ['r']), membership(['a', 'c'], ['r'], 2)] })],
    ['these are confirmed: it holds no earlier ones', kept({ memberships: [membership(['a', 'b'], ['r']), membership(['a', 'c'], ['r'], 2)] }), others, hears({ ...armed, epoch: 2 }), kept({ epoch: 2, memberships: [membership(['a', 'c'], ['r'], 2)] })],
    ['yet others, while three are on record unconfirmed', kept({ memberships: [1, 2, 3].map((epoch) => membership(['a', String(epoch)], ['r'], epoch)) }), others, hears(armed), kept({ memberships: [1, 2, 3].map((epoch) => membership(['a', String(epoch)], ['r'], epoch)) })],
    ['a record that somebody has deleted: no number is given out twice, not even one that was told and not confirmed', undefined, members, hears({ ...armed, epoch: 7 }), kept({ epoch: 7, memberships: [membership(['a', 'b'], ['r'], 10)] })],
    ['the next boot', kept({ boot: newBoot }), members, hears({ ...armed, epoch: 0, state: 'unarmed' }), kept({ state: 'unarmed', epoch: 0 })],
    ['nobody wants it any more, and it is armed still', kept(), undefined, hears(armed), kept()],
    ['nobody wants it any more: its numbers stay given out', kept(), undefined, hears({ ...armed, state: 'unarmed' }), kept({ state: 'unarmed' })],
    ['a replica that has just begun to lead, and names nobody yet', kept({ state: 'unarmed', epoch: 0 }), undefined, hears(), kept({ state: 'unarmed', epoch: 0 })],
  ]
  for (const [what, before, wanted, said, after] of cases) assert.equal(watchdogKept({ record: record(before === undefined ? {} : { watchdog: before }), members: wanted }, said), after, what)
})

test.run()
