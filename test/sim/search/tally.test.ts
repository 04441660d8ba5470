import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { effectNames } from '../../../sim/search/effects.ts'
import type { Violation } from '../../../sim/search/judgement.ts'
import type { ExcuseReason } from '../../../sim/search/judges/excuse-reasons.ts'
import type { Verdict } from '../../../sim/search/pool.ts'
import { kinds, type Schedule } from '../../../sim/search/schedule.ts'
import { createTally } from '../../../sim/search/tally.ts'

const test = suite('search: the sums')

const scene: Schedule['scene'] = { nodes: 5, zones: 3, replicas: 2, profile: 'fast', feed: 'own' }
const plain: Schedule = { seed: 1, reliefAt: 0, shortest: 0, scene, troubles: [{ does: 'power is lost', at: 0, span: 1, on: 'victim' }] }
const verdict = (seed: number, violations: readonly Violation[] = [], schedule = plain): Verdict => ({
  seed, said: { schedule, violations, excused: [], struck: ['power is lost'], effects: ['a driver proves'], incidents: 1, quarantined: 2, marks: ['proof off'], simulated: 86_400_000 },
})

test('sums are sums', () => {
  const tally = createTally()
  tally.add(verdict(1))
  tally.add(verdict(2, [{ judge: 'safety', what: 'two writers' }]))
  tally.add({ seed: 3, broke: 'it threw' })
  const sums = tally.sums()
  assert.equal([sums.seeds, sums.simulatedDays, sums.incidents, sums.quarantined, sums.faults['power is lost'], sums.scenes['a driver proves']], [3, 2, 2, 4, 2, 2])
  assert.equal(sums.violations, { safety: 1, liveness: 0, restraint: 0, progress: 0 })
  assert.equal(tally.failed.map(({ seed, judge }) => [seed, judge]), [[2, 'safety'], [3, 'broke']])
  assert.is(tally.marks.get('proof off'), 2)
})

test('one plain death of a hundred may be late, two are a violation', () => {
  const late: Violation = { judge: 'progress', what: 'late' }
  const tally = createTally()
  for (let seed = 1; seed <= 150; seed += 1) tally.add(verdict(seed, seed === 7 ? [late] : []))
  assert.equal([tally.failed.length, tally.sums().violations.progress, tally.sums().plain], [0, 0, { seeds: 150, late: 1, inTime: 0.9933 }])
  tally.add(verdict(151, [late]))
  assert.equal([tally.failed.length, tally.sums().violations.progress], [2, 2])
  tally.add(verdict(152, [{ judge: 'safety', what: 'two writers' }]))
  assert.equal(tally.failed.map(({ seed }) => seed), [7, 151, 152], 'as they came')
})

function excused(...reasons: readonly ExcuseReason[]): Verdict {
  const { said, seed } = verdict(1) as Extract<Verdict, { said: object }> // it has a word
  return { seed, said: { ...said, excused: reasons.map((reason) => ({ of: { judge: 'safety', what: 'two writers' }, judge: 'safety', what: 'two writers', reason, because: '' })) } }
}

test('what was excused is counted seed by seed, in all and for each reason', () => {
  const tally = createTally()
  for (const one of [excused('a lie told twice', 'a lie told twice', 'a false oath'), excused('a false oath'), excused()]) tally.add(one)
  const { excused: seeds, excuses } = tally.sums()
  assert.equal([seeds, excuses['a lie told twice'], excuses['a false oath'], excuses['an image resumed']], [2, 1, 2, 0])
})

test('a kind of trouble, or a part of a scene, that almost never took effect is named in the sums', () => {
  const tally = createTally()
  for (let seed = 1; seed <= 200; seed += 1) tally.add(verdict(seed))
  assert.equal([...tally.sums().rare].toSorted(), [...Object.keys(kinds), ...effectNames].filter((name) => name !== 'power is lost' && name !== 'a driver proves').toSorted())
})

test.run()
