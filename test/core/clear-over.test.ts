// Pods that are over, on a node that is cleared: there may be thousands, and nobody waits for them.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { left } from '../../core/clear.ts'
import { incident, node, now, pod, podsOf, proofRecord } from './world.ts'

const test = suite('clear: what is over')

const over = Array.from({ length: 1_000 }, (_, index) => pod(`job-${index}`, { owner: 'Job', phase: index % 2 === 0 ? 'Succeeded' : 'Failed', ended: true, priority: 1_000 }))
const rest = (living: number, budget: number) => {
  const pods = [...over, ...Array.from({ length: living }, (_, index) => pod(`web-${index}`))]
  return left(incident({ phase: 'Running', step: 'clear', proof: proofRecord() }), node({ pods: podsOf(pods) }), budget, now - 10_000, now)
}

test('what runs goes first, whatever its priority, and what is over fills the batch', () => {
  assert.equal(rest(3, 150)?.batch.slice(0, 4).map(({ phase }) => phase), ['Running', 'Running', 'Running', 'Succeeded'])
  assert.equal([rest(3, 150)?.batch.length, rest(3, 150)?.waiting], [25, 978])
})

test('it goes past the rate, which is for what other nodes have to start', () => {
  assert.equal([rest(3, 0)?.batch.length, rest(3, 0)?.batch.every(({ phase }) => phase !== 'Running'), rest(3, 0)?.waiting], [25, true, 978])
  assert.equal(rest(40, 10)?.batch.filter(({ phase }) => phase === 'Running').length, 10)
})

test.run()
