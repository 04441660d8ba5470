// A seed is played again in another thread, after other seeds and in another process than the one that found it: all of it must come
// out the same, byte for byte, whatever its cluster has.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { runPool } from '../../sim/search/pool.ts'
import { run } from '../../sim/search/run.ts'
import { draw, type Scene } from '../../sim/search/schedule.ts'

const test = suite('search: played again')

/** Of each part that a cluster may have the first seed that draws it: what is left to chance in one of them shows there. */
const parts: readonly (keyof Scene)[] = ['gate', 'givesUp', 'bare', 'watchdog', 'apart', 'audited', 'dumps', 'shared', 'remedy']

function firstWith(part: keyof Scene): number {
  for (let seed = 1; seed <= 1_000; seed += 1) {
    const { scene, troubles } = draw(seed)
    if (scene[part] !== undefined && troubles.length > 2) return seed
  }
  throw new Error(`no seed draws ${part}`)
}

async function inOneThread(seeds: readonly number[]): Promise<readonly (string | undefined)[]> {
  const queue = [...seeds]
  const told: (string | undefined)[] = []
  await runPool({ jobs: 1, transcripts: true, next: () => queue.shift(), told: (verdict) => told.push('broke' in verdict ? verdict.broke : verdict.transcript) })
  return told
}

test('the same seed is the same run, in this thread and in another one, and there a second time after others', async () => {
  const seeds = [...new Set(parts.map(firstWith))]
  assert.ok(seeds.length >= 5, seeds.join())
  const elsewhere = await inOneThread([...seeds, ...seeds.toReversed()])
  for (const [index, seed] of seeds.entries()) {
    const here = (await run(draw(seed))).transcript()
    assert.ok(here.split('\n').length > 200, `seed ${seed}: something happened`)
    // Whole transcripts would fill the screen.
    for (const [when, other] of [['in a thread', elsewhere[index]], ['there once more', elsewhere.at(-1 - index)]] as const) assert.ok(here === other, `seed ${seed}, ${when}: ${firstDifference(here, other ?? '')}`)
  }
})

function firstDifference(one: string, other: string): string {
  const [lines, others] = [one.split('\n'), other.split('\n')]
  const at = lines.findIndex((line, index) => line !== others[index])
  return `line ${at} of ${lines.length} and ${others.length}: ${lines[at]} / ${others[at]}`
}

test.run()
