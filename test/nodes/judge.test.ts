// The judges themselves: a second writer is found, a handover is none; and an order that nobody has on record.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { attempt, incident } from '../core/world.ts'
import { unrecorded } from './chaos.ts'
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

test.run()
