import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Attempt } from '../../core/incident.ts'
import type { Method, Reading } from '../../core/model.ts'
import { cuts, lost } from '../../core/cut.ts'
import { attempt, incident, method, node, reading, seenOrder } from './world.ts'

// How and when it is given back stands in decide-give-back.test.ts, with the states that lead there.
const test = suite('cut')

const second: Method = { ...method, name: 'plug-off', agent: 'pdu', device: 'pdu-1:161', digest: 'd2' }
const twoFeeds = { levels: [[method, second]], faults: [] }
const failed = (id: string): Attempt => attempt({ id, result: 'failed' })

const isCut = (...attempts: Attempt[]) => cuts(incident({ attempts }), node({ path: twoFeeds })).filter((one) => !one.givenBack).map((one) => one.method.name)

test('cut is what was ordered off and not, since, ordered on with success', () => {
  assert.equal(isCut(), [])
  assert.equal(isCut(attempt()), ['bmc-off'])
  assert.equal(isCut(failed('a')), ['bmc-off'])
  assert.equal(isCut(attempt(), attempt({ id: 'b', method: 'plug-off' })), ['bmc-off', 'plug-off'])
  assert.equal(isCut(attempt(), attempt({ id: 'b', action: 'on', result: 'on' })), [])
  assert.equal(isCut(attempt(), attempt({ id: 'b', action: 'on', result: 'failed' })), ['bmc-off'])
  assert.equal(isCut(attempt(), attempt({ id: 'b', action: 'on', result: 'on' }), attempt({ id: 'c' })), ['bmc-off'])
})

test('an order that was never given cuts nothing and gives nothing back', () => {
  const notGiven = attempt({ id: 'n', result: 'not-given' })
  assert.equal(isCut(notGiven), [])
  assert.equal(isCut(attempt(), notGiven), ['bmc-off'])
  assert.equal(isCut(attempt(), { ...notGiven, action: 'on' }), ['bmc-off'])
  assert.equal(isCut(attempt(), attempt({ id: 'b', action: 'on', result: 'on' }), notGiven), [])
})

const other: Method = { ...method, digest: 'd9' }
const isLost = (path: readonly Method[], ...attempts: Attempt[]) => lost(incident({ attempts }), node({ path: { levels: [path], faults: [] } }))

test('an order is of a method as it was configured then: what bears its name by now is another one', () => {
  const off = attempt({ digest: 'd1' })
  const given = attempt({ id: 'b', action: 'on', result: 'on', digest: 'd1' })
  assert.equal(isCut(off), ['bmc-off'])
  assert.equal(isCut({ ...off, digest: 'd9' }), [])
  assert.equal(isCut(off, { ...given, digest: 'd9' }), ['bmc-off'])
  assert.equal([isLost([method], off), isLost([other], off), isLost([], off)], [[], ['bmc-off'], ['bmc-off']])
  assert.equal([isLost([other], off, given), isLost([], off, given)], [[], []], 'it was given back while it was configured')
  assert.equal(isLost([other], off, { ...given, digest: 'd9' }), ['bmc-off'], 'another configuration gave nothing back')
  assert.equal(isLost([], { ...off, result: 'not-given' }), [])
  assert.equal(isLost([other], off, { ...off, id: 'c' }), ['bmc-off'], 'named once')
})

test('an order of an earlier version, whose configuration is not on record, is known by its name', () => {
  assert.equal([isLost([other], attempt()), isLost([second], attempt())], [[], ['bmc-off']])
})

const endedAt = 50_000
const says = (readings: readonly Reading[], attempts: readonly Attempt[] = [attempt()], firstSeen = seenOrder(endedAt - 2_000, endedAt)) =>
  cuts(incident({ attempts }), node({ readings, firstSeen: new Map(firstSeen) })).map((one) => one.says)

test('how the machine stands by what cut it is its last word on this machine since the order ended', () => {
  assert.equal(says([]), ['nothing yet'])
  assert.equal(says([reading('off', endedAt - 1)]), ['nothing yet'], 'from before the end')
  assert.equal(says([reading('off', endedAt)]), ['off'])
  assert.equal(says([reading('on', endedAt), reading('off', endedAt + 1_000), reading('unknown', endedAt + 2_000)]), ['off'])
  assert.equal(says([reading('unknown', endedAt)]), ['unknown'])
  assert.equal(says([reading('off', endedAt, endedAt + 100, { machine: 'machine-9' })]), ['unknown'], 'it speaks of another machine')
  assert.equal(says([reading('off', endedAt)], [attempt({ result: 'running' })], seenOrder(endedAt - 2_000)), ['unknown'], 'the order is under way')
  const on = attempt({ id: 'b', action: 'on', result: 'on' })
  const cut = cuts(incident({ attempts: [attempt(), on] }), node({ readings: [reading('off', endedAt + 9_000)], firstSeen: new Map([...seenOrder(1, 2), ...seenOrder(endedAt, endedAt + 5_000, 'b')]) }))
  assert.equal(cut.map(({ givenBack, says: word }) => [givenBack, word]), [[true, 'off']], 'given back, and cut again')
})

test.run()
