// Seeds that nobody has played yet, another stretch for each commit: for half a minute, in one thread beside the other files.
import { execFileSync } from 'node:child_process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { runPool } from '../../../sim/search/pool.ts'
import { createTally } from '../../../sim/search/tally.ts'

const test = suite('search: fresh seeds')

const span = 30_000
/** Away from the stretches that the search in `.ci/run` takes. */
const apart = 100_000_000

/** Without a repository, as in an unpacked archive, everybody plays the same ones. */
function commit(): number {
  try {
    return Number.parseInt(execFileSync('git', ['rev-parse', '--short=6', 'HEAD'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).slice(0, 6), 16)
  } catch {
    return 0
  }
}

test('in half a minute of fresh schedules no judge finds anything', async () => {
  const from = apart + commit()
  const tally = createTally()
  const began = performance.now()
  let next = from
  await runPool({ jobs: 1, next: () => (performance.now() - began > span ? undefined : next++), told: (verdict) => { tally.add(verdict) } })
  assert.ok(next > from)
  assert.equal(tally.failed.map(({ seed, judge, what }) => `npm run sim -- --seed ${seed}: ${judge}: ${what}`), [])
})

test.run()
