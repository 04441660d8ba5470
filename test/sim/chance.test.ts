import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { seededChance } from '../../sim/chance.ts'

const test = suite('chance')

const draws = (chance: { next(): number }, count = 50) => Array.from({ length: count }, () => chance.next())

test('the same seed draws the same, another seed draws otherwise', () => {
  assert.equal(draws(seededChance(7)), draws(seededChance(7)))
  assert.not.equal(draws(seededChance(7)), draws(seededChance(8)))
})

test('one consumer more does not shift what another draws', () => {
  const world = seededChance(7)
  const alone = draws(world.fork('network'))
  const crowded = seededChance(7)
  draws(crowded)
  draws(crowded.fork('devices'))
  assert.equal(draws(crowded.fork('network')), alone)
})

test('draws lie in their bounds and spread over them', () => {
  const chance = seededChance('spread')
  const counts = Array.from({ length: 10 }, () => 0)
  for (let draw = 0; draw < 10_000; draw++) {
    const value = chance.below(10)
    counts[value] = (counts[value] ?? 0) + 1
  }
  assert.ok(counts.every((count) => count > 800 && count < 1_200), counts.join(' '))
  const between = Array.from({ length: 1_000 }, () => chance.between(5, 6))
  assert.ok(between.every((value) => value >= 5 && value < 6))
})

test('a share of zero never happens and a share of one always does', () => {
  const chance = seededChance(1)
  assert.ok(draws({ next: () => (chance.yes(0) ? 1 : 0) }).every((value) => value === 0))
  assert.ok(draws({ next: () => (chance.yes(1) ? 1 : 0) }).every((value) => value === 1))
})

test('a pick comes from the choices, and a pick from nothing is a mistake', () => {
  const chance = seededChance(1)
  assert.ok(['a', 'b'].includes(chance.pick(['a', 'b'])))
  assert.throws(() => chance.pick([]))
  assert.is(chance.bytes(16).length, 16)
})

test.run()
