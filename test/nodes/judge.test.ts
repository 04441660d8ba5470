// The judges themselves: a second writer is found, a handover is none; an order that nobody has on record; and one without cause.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { attempt, incident } from '../core/world.ts'
import { needless, unrecorded, type Trouble } from './chaos.ts'
import { secondWriters, turns } from './judge.ts'

const test = suite('judge')

test('one writer after another is a handover', () => {
  const found = turns('1.00 a x p\n1.10 a x p\n5.00 b y q\n5.10 b y q\n9.00 a z r\n')
  assert.equal(found.map(({ node, boot, lines }) => `${node} ${boot} ${lines}`), ['a x 2', 'b y 2', 'a z 1'])
  assert.equal(secondWriters(found), [])
})

test('one line of a boot after another had begun is a second writer', () => {
  const found = secondWriters(turns('1.00 a x p\n5.00 b y q\n5.05 a x p\n5.10 b y q\n'))
  assert.is(found.length, 2)
  assert.match(found[0] ?? '', /^a \(boot x\) wrote at 5.05 after b \(boot y\) had begun at 5$/)
})

test('two boots of one machine are two writers', () => {
  assert.is(secondWriters(turns('1.00 a x p\n2.00 a y p\n3.00 a x p\n')).length, 1)
})

test('a line that was cut off by the power counts for nobody', () => {
  assert.equal(secondWriters(turns('1.00 a x p\n1.1')), [])
})

const nothing = (): void => undefined

test('an order that an incident of its node has on record, before it and for as long as it may land, is the product\'s; any other is nobody\'s', () => {
  const at = Date.parse('2030-01-01T00:00:10Z')
  const orders = [{ order: 'ForceOff', at }] as const
  const management = { of: new Map([['n1', { orders, order: nothing, fault: nothing, takes: nothing, lies: nothing }]]), objects: () => [], close: () => Promise.resolve() }
  const found = (node: string, startedAt: string, result: 'off' | 'not-given' = 'off'): number => {
    const order = attempt({ action: 'off', startedAt, endedAt: '2030-01-01T00:00:12Z', late: 5_000, result })
    return unrecorded({ management }, [incident({ attempts: [order] }, { nodeName: node })], at - 60_000).length
  }
  assert.equal([found('n1', '2030-01-01T00:00:10Z'), found('n1', '2030-01-01T00:00:11Z'), found('n2', '2030-01-01T00:00:10Z'), found('n1', '2030-01-01T00:00:10Z', 'not-given')], [0, 1, 1, 1])
  assert.is(unrecorded({ management }, [], at + 1).length, 0, 'what was ordered before is of an earlier run')
})

const pulled = Date.parse('2030-01-01T00:00:00Z')
const trouble = (changes: Partial<Trouble> = {}): Trouble => ({ node: 'node-2', from: pulled, to: pulled + 5_000, deadly: false, ...changes })

for (const [what, troubles, openedAfter, found] of [
  ['without a trouble', [], 4_000, 1],
  ['while a cable is out for five seconds', [trouble()], 4_000, 0],
  ['a few seconds after it', [trouble()], 10_000, 0],
  ['long after it', [trouble()], 40_000, 1],
  ['while another machine\'s is out', [trouble({ node: 'node-3' })], 4_000, 1],
  ['before it is', [trouble({ from: pulled + 6_000, to: pulled + 9_000 })], 4_000, 1],
  ['after one that was out for half a second', [trouble({ to: pulled + 500 })], 4_000, 1],
  ['long after that', [trouble({ to: pulled + 500 })], 40_000, 1],
  ['half a second after a cable was pulled that stays out', [trouble({ to: Infinity })], 500, 1],
  ['some seconds after it', [trouble({ to: Infinity })], 4_000, 0],
  ['as soon as a machine has lost its power', [trouble({ to: pulled, deadly: true })], 500, 0],
  ['while it boots', [trouble({ to: pulled, deadly: true })], 40_000, 0],
  ['when it has long been there again', [trouble({ to: pulled, deadly: true })], 60_000, 1],
] as const) test(`ordered off ${what}: ${found === 1 ? 'found' : 'there is a cause'}`, () => {
  const timeline = [{ at: new Date(pulled + openedAfter).toISOString(), what: 'opened', detail: '' }] as const
  assert.is(needless(incident({ attempts: [attempt({ action: 'off' })], timeline }), troubles).length, found)
  assert.equal(needless(incident({ attempts: [attempt({ action: 'on' })], timeline }), troubles), [], 'nor is it found where it was ordered nothing')
})

test.run()
