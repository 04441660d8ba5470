// What was cut is given back before an incident ends, and what is not known to be cut or not is asked.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { outOfServiceKey } from '../../core/clear.ts'
import { goneKey, type Method, type NodeSeen, type Observed, type Reading } from '../../core/model.ts'
import { attempts, booted, cleared, lifted, on, ordered, proven, quarantine, recovering, withdrawn, type State } from './states.ts'
import { held, inState, looks, loose, passed, wants, wishes } from './wishes.ts'
import { attempt, beat, dead, method, now, policy, reading, seenOrder } from './world.ts'

const test = suite('decide: give back')

test('a node withdrawn before anything was ordered closes at once', () => {
  assert.equal(wants(inState(withdrawn)), ['close Withdrawn'])
})

test('withdrawn, what was cut is first switched on, under quarantine', () => {
  const firstSeen = new Map(seenOrder(now - 100_000, now - 98_000))
  const status = { ...withdrawn.status, attempts: [attempt({ result: 'failed' })] }
  const readings = [reading('on', now - 5_000)]
  assert.equal(wants(inState(withdrawn, { firstSeen, readings, taints: [quarantine] }, status)), ['restore bmc-off', 'hold still-cut'])
  assert.equal(wants(inState(withdrawn, { firstSeen, readings }, status)), ['taint quarantine', 'restore bmc-off', 'hold still-cut'])
})

const unansweredStates: readonly (readonly [string, State])[] = [
  ['an on', { node: { ...recovering.node, ...passed }, status: { ...recovering.status, attempts: [loose] } }],
  ['a return', { node: { ...lifted.node, ...passed, taints: [quarantine] }, status: { ...lifted.status, attempts: [loose, on] } }],
  ['the end of one that came back', { node: { ...lifted.node, ...passed }, status: { ...lifted.status, attempts: [loose, on] } }],
  ['giving back', { node: { ...withdrawn.node, ...passed, taints: [quarantine] }, status: { ...withdrawn.status, attempts: [loose] } }],
  ['the end of what was given back', { node: { ...withdrawn.node, ...passed, taints: [quarantine] }, status: { ...withdrawn.status, attempts: [loose, on] } }],
  ['the end of one whose machine was replaced', { node: { ...passed, machine: 'machine-9' }, status: { ...ordered.status, attempts: [loose] } }],
]
const unanswered: readonly (readonly [string, readonly Reading[], boolean])[] = [
  ['it was not asked', [], true],
  ['it was asked before that time had passed', [reading('on', now - 10_100, now - 9_000)], true],
  ['it did not answer', [reading('unknown', now - 5_000)], true],
  ['another configuration answered', [reading('on', now - 5_000, now - 4_900, { digest: 'd9' })], true],
  ['it says on', [reading('on', now - 5_000)], false],
  ['it says off', [reading('off', now - 5_000)], false],
  ['it said so, and has not answered since', [reading('off', now - 5_000), reading('unknown', now - 3_000)], false],
]
for (const [what, state] of unansweredStates) {
  for (const [how, readings, waits] of unanswered) {
    test(`the time of a loose off has passed, and ${how}: ${what} ${waits ? 'waits, and the device is asked' : 'is not held up'}`, () => {
      const observed = inState(state, { readings })
      const wished = wants(observed)
      if (!waits) return assert.not(wished.includes('hold order-may-land'), wished.join())
      assert.equal(wished, ['hold order-may-land'])
      assert.match(held(observed, 'order-may-land'), /bmc-off/)
      assert.equal(looks(observed).filter((look) => look.startsWith('askDevice')), ['askDevice bmc-off'])
    })
  }
}

test('what does not answer because its power hangs on what we cut does not keep that from being given back', () => {
  const plug: Method = { ...method, name: 'plug-off', device: 'pdu-1:161', digest: 'd2' }
  const offs = [loose, attempt({ id: 'p', level: 1, method: 'plug-off' })]
  const fed = { ...recovering.node, path: { levels: [[method], [plug]], faults: [] }, firstSeen: new Map([...passed.firstSeen, ...seenOrder(now - 97_000, now - 96_000, 'p')]) }
  const asleep = { node: { ...fed, readings: [reading('unknown', now - 3_000)] }, status: { ...recovering.status, attempts: offs } }
  assert.equal(wants(inState(asleep)), ['restore plug-off', 'hold order-may-land', 'hold waiting-for-boot'])
  assert.equal(wants(inState(asleep, { readings: [] })), ['hold order-may-land'], 'it is asked first')
  const done = { node: { ...asleep.node, taints: [quarantine] }, status: { ...withdrawn.status, attempts: offs } }
  assert.equal(wants(inState(done)), ['restore plug-off', 'hold order-may-land', 'hold still-cut'])
  assert.equal(wants(inState(done, { readings: [reading('on', now - 3_000)] })), ['restore bmc-off', 'hold still-cut'])
})

const byD1 = attempt({ digest: 'd1' })
const otherwise: readonly (readonly [string, Partial<NodeSeen>])[] = [
  ['taken out of the configuration', { path: { levels: [], faults: [] } }],
  ['configured otherwise', { path: { levels: [[{ ...method, digest: 'd9' }]], faults: [] } }],
]
for (const [how, changes] of otherwise) {
  test(`a method that was cut and then ${how} is named as still cut, and nothing is switched on by what is configured now`, () => {
    for (const [state, result] of [[recovering, 'off'], [withdrawn, 'off'], [withdrawn, 'failed']] as const) {
      const status = { attempts: [{ ...byD1, result }] }
      const was = { firstSeen: new Map([...(state.node.firstSeen ?? []), ...passed.firstSeen, ...seenOrder(now - 100_000, now - 98_000)]), taints: [quarantine] }
      const observed = inState(state, { ...was, ...changes }, status)
      assert.equal(wants(observed), ['hold still-cut'])
      assert.match(held(observed, 'still-cut'), /bmc-off/)
      assert.ok(wants(inState(state, { ...was, readings: [reading('off', now - 2_000)] }, status)).includes('restore bmc-off'), 'configured as it was, it is switched on')
    }
  })

  const lostIn = (state: State, more: Partial<NodeSeen>) => wants(inState(state, { ...more, ...changes, taints: [] }, { attempts: [byD1] }))
  test(`a method that was cut and then ${how} holds nobody up whose next boot is there, or who is another machine`, () => {
    assert.equal(lostIn(lifted, {}), ['close Recovered'])
    assert.equal(lostIn(withdrawn, { ...booted.node }), ['close Withdrawn'])
    assert.equal(lostIn(cleared, { gone: true, firstSeen: new Map([...cleared.node.firstSeen ?? [], [goneKey, now - 1_000]]) }), ['close NodeDeleted'])
    assert.equal(lostIn(proven, { machine: 'machine-9' }), ['close Replaced'])
  })
}

/** node-2 back in a new boot, by the one feed that was switched on. */
function backOnOneFeed(readings: readonly Reading[], changes: Partial<NodeSeen> = {}): Observed {
  const plug: Method = { ...method, name: 'plug-off', device: 'pdu-1:161', digest: 'd2' }
  const firstSeen = new Map([...(booted.node.firstSeen ?? []), ...seenOrder(now - 57_000, now - 56_000, 'p')])
  return inState(lifted, { firstSeen, path: { levels: [[method, plug]], faults: [] }, readings, ...changes }, { attempts: [...attempts, attempt({ id: 'p', method: 'plug-off' }), on] })
}
const plugReads = (state: Reading['state'], ago: number) => reading(state, now - ago, now - ago + 100, { method: 'plug-off', digest: 'd2' })

test('back by one feed, the other is not forgotten: it is asked, and switched on where it says off', () => {
  assert.ok(looks(backOnOneFeed([])).includes('askDevice plug-off'))
  assert.equal(wants(backOnOneFeed([])), ['hold still-cut'])
  assert.equal(wants(backOnOneFeed([plugReads('off', 57_000)])), ['hold still-cut'], 'read before the order had ended')
  assert.equal(wants(backOnOneFeed([plugReads('off', 2_000)])), ['restore plug-off', 'hold still-cut'])
  assert.equal(wants(backOnOneFeed([plugReads('on', 2_000)])), ['close Recovered'])
  assert.equal(wants(backOnOneFeed([plugReads('unknown', 2_000)])), ['close Recovered'], 'the machine has power')
  assert.equal(wants(backOnOneFeed([plugReads('off', 3_000), plugReads('unknown', 2_000)])), ['restore plug-off', 'hold still-cut'])
})

/** The other was ordered on so often, and called itself on each time. */
function calledOn(times: number, readings: readonly Reading[]): Observed {
  const ons = Array.from({ length: times }, (_, index) => attempt({ id: `p-${index}`, method: 'plug-off', action: 'on', result: 'on' }))
  const began = ons.flatMap(({ id }, index) => seenOrder(now - 56_000 + index * 10_000, now - 55_000 + index * 10_000, id))
  const back = backOnOneFeed(readings, { firstSeen: new Map([...(booted.node.firstSeen ?? []), ...seenOrder(now - 58_000, now - 57_000, 'p'), ...began]) })
  return { ...back, incidents: new Map([...back.incidents].map(([name, one]) => [name, { ...one, status: { ...one.status, attempts: [...one.status.attempts, ...ons] } }] as const)) }
}

test('back by one feed, the other called itself on and says off since: it is asked for again, a few times', () => {
  assert.equal(wants(calledOn(1, [plugReads('off', 2_000)])), ['restore plug-off', 'hold still-cut'])
  assert.equal(wants(calledOn(1, [plugReads('on', 2_000)])), ['close Recovered'])
  // Whoever goes on saying off of a machine that runs may be no feed of it: its audit tells of that, and nobody waits for it.
  assert.equal(wants(calledOn(4, [plugReads('off', 2_000)])), ['close Recovered'])
})

test('what never answers again is taken out of the configuration by a person, once the machine is back', () => {
  const back = inState({ node: { ...lifted.node, ...passed, readings: [reading('unknown', now - 3_000)] }, status: { ...lifted.status, attempts: [loose, on] } })
  const hold = wishes(back, [policy], now).find((action) => action.do === 'hold')
  assert.match(hold?.do === 'hold' ? hold.lifts : '', /bmc-off taken out of the configuration/)
  assert.equal(wants(inState({ node: { ...lifted.node, ...passed, path: { levels: [], faults: [] } }, status: { ...lifted.status, attempts: [loose, on] } })), ['close Recovered'])
})

test('withdrawn, nothing is switched on while an off may still land, and the quarantine is kept meanwhile', () => {
  const firstSeen = new Map(seenOrder(now - 10_000, now - 8_000))
  const status = { ...withdrawn.status, attempts: [attempt({ result: 'failed' })] }
  assert.equal(wants(inState(withdrawn, { firstSeen, taints: [quarantine] }, status)), ['hold order-may-land'])
  assert.equal(wants(inState(withdrawn, { firstSeen }, status)), ['taint quarantine', 'hold order-may-land'])
})

test('withdrawn and given back, a node keeps its quarantine until it is heard, well and clean', () => {
  const firstSeen = new Map([...seenOrder(now - 100_000, now - 98_000), ...seenOrder(now - 80_000, now - 79_000, 'node-2-abc-1.2'), [`gone ${outOfServiceKey}`, now - 99_000] as [string, number]])
  const status = { ...withdrawn.status, attempts: [attempt({ result: 'failed' }), on] }
  const state = { firstSeen, taints: [quarantine], readings: [reading('on', now - 5_000)] }
  assert.equal(wants(inState(withdrawn, state, status)), ['untaint quarantine'])
  assert.equal(wants(inState(withdrawn, { ...state, beat: beat({ at: now - 2_000 }) }, status)), ['hold waiting-for-boot'])
  assert.ok(looks(inState(withdrawn, { ...state, beat: beat({ at: now - 2_000 }) }, status)).includes('probe'), 'it is asked about')
  const soon = { ...state, ...dead, firstSeen: new Map([...firstSeen, ...seenOrder(now - 2_000, now - 1_000, 'node-2-abc-1.2')]) }
  assert.equal(wants(inState(withdrawn, soon, status)), ['hold waiting-for-boot'], 'it boots')
  assert.equal(wants(inState(withdrawn, { ...soon, firstSeen }, status)), ['close Withdrawn'], 'it was heard since')
  const longAgo = { firstSeen: new Map([...firstSeen, ...seenOrder(now - policy.bootWithin - 5_000, now - policy.bootWithin, 'node-2-abc-1.2')]) }
  assert.equal(wants(inState(withdrawn, { ...soon, ...longAgo, beat: beat({ at: now - policy.bootWithin - 6_000 }) }, status)), ['close Withdrawn'])
})

test('withdrawn and given back, a silent node whose device says off since is switched on again', () => {
  const firstSeen = new Map([...seenOrder(now - 40_000, now - 38_000), ...seenOrder(now - 31_000, now - 30_000, 'node-2-abc-1.2')])
  const status = { ...withdrawn.status, attempts: [attempt({ result: 'off' }), on] }
  const again = { ...dead, firstSeen, taints: [quarantine], readings: [reading('on', now - 29_000), reading('off', now - 900, now - 800)] }
  assert.equal(wants(inState(withdrawn, again, status)), ['restore bmc-off', 'hold still-cut'])
  assert.equal(wants(inState(withdrawn, { ...again, beat: beat({ at: now - 100 }) }, status)).includes('restore bmc-off'), false, 'it is heard')
  assert.equal(wants(inState(withdrawn, { ...again, readings: [reading('off', now - 35_000), reading('on', now - 900, now - 800)] }, status)).includes('restore bmc-off'), false, 'it says on')
})

test.run()
