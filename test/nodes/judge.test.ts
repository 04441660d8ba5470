// The judge itself: a second writer is found, a handover is none.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
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

test.run()
