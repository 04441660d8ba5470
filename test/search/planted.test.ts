import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { searchWithout } from '../../sim/search/defence-table.ts'
import { defences } from '../../sim/search/defences.ts'
import { cutsOfPlant, planted, type Plant } from '../../sim/search/planted.ts'
import { runPool, type Verdict } from '../../sim/search/pool.ts'
import type { WorkerWish } from '../../sim/search/worker.ts'

const test = suite('search: planted bugs')

async function judged(plants: readonly Plant[], wish: WorkerWish = {}): Promise<readonly Verdict[]> {
  const queue = plants.map(({ schedule }) => schedule)
  const said: Verdict[] = []
  await runPool({ ...wish, jobs: 1, next: () => queue.shift(), told: (verdict) => said.push(verdict) })
  return said
}

const violations = (verdict: Verdict | undefined) => (verdict === undefined || 'broke' in verdict ? [{ judge: 'broke', what: verdict?.broke ?? 'no verdict' }] : verdict.said.violations)

for (const plant of planted) {
  test(`${plant.name}: ${plant.judge} fails`, async () => {
    const [verdict] = await judged([plant], { cuts: cutsOfPlant(plant) })
    assert.ok(violations(verdict).some(({ judge }) => judge === plant.judge), JSON.stringify(violations(verdict)))
  })
}

for (const plant of planted) {
  const { name, judge, cuts, beside } = plant
  if (beside === undefined) continue
  test(`${name}: alone no ${judge} fails, and without ${beside.name} alone no judge does`, async () => {
    const [[mistake], [other]] = [await judged([plant], { cuts }), await judged([plant], { cuts: beside.cuts })]
    assert.equal(violations(mistake).filter((one) => one.judge === judge || one.judge === 'broke'), [])
    assert.equal(violations(other), [])
  })
}

test('the product as it is passes every one of these schedules, and in each everything that is to go wrong did', async () => {
  const verdicts = await judged(planted)
  for (const [index, { name, schedule }] of planted.entries()) {
    const verdict = verdicts[index]
    assert.equal(violations(verdict), [], name)
    if (verdict === undefined || 'broke' in verdict) continue
    const missed = schedule.troubles.filter(({ does }) => !verdict.said.struck.includes(does))
    assert.equal(missed, [], `${name}: took no effect`)
  }
})

test('a product that decides nothing is caught at once', async () => {
  const [all] = defences.filter(({ name }) => name === 'decides-at-all')
  assert.ok(all)
  const found = await searchWithout(all, { seeds: 5, from: 1, jobs: 1 })
  assert.ok(found !== undefined && found.seeds <= 5, JSON.stringify(found))
})

test.run()
