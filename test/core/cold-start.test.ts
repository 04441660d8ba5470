import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { coldWord, type ClusterSaid } from '../../core/cold-start.ts'

const test = suite('cold start')

const boot = 'b007-0001/4711'
const word = (change: Partial<ClusterSaid> = {}): string => {
  const said = coldWord(boot, { bootId: 'b007-0001', taints: ['node.kubernetes.io/not-ready'], fences: [{ name: 'node-2-abc-1', phase: 'Final' }], ...change })
  return said.clear ? 'clear' : said.reason
}

test('this boot on record, no taint of ours and no open incident: nothing speaks against it', () => {
  assert.is(word(), 'clear')
})

test('another boot on record, or none, speaks against it', () => {
  for (const bootId of ['', 'b007-0002', 'b007-0001/9', 'b007-00011']) assert.match(word({ bootId }), /has not told/, bootId)
})

test('so does a quarantine, and an out-of-service whoever put it there', () => {
  for (const taint of ['holdfast.dev/quarantine', 'node.kubernetes.io/out-of-service']) assert.match(word({ taints: ['x', taint] }), new RegExp(`bears ${taint}`))
})

test('so does an incident that is not Final, in whatever phase', () => {
  for (const phase of ['New', 'Running', 'Done', 'Error', 'of a later release', '']) assert.match(word({ fences: [{ name: 'a', phase: 'Final' }, { name: 'node-2-abc-2', phase }] }), /node-2-abc-2 is open/)
})

test.run()
