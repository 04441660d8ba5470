// `npm run sim`: the whole product under schedules of trouble, each drawn from a seed, until one is found in which a promise is
// broken. `--seeds N [--from S] [--jobs J] [--minutes M] [--marks]` searches; `--seed S` plays one again and prints what happened;
// `--without NAME` cuts a defence out first (`--without list` names them). A failing schedule is made smaller before it is shown, with
// what happened under it and the command that plays its seed again.
// `--defences [--only NAME]` cuts out one defence after the other, searches until a judge fails, and writes the table of them.
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import process, { argv, exit } from 'node:process'
import { findings } from './search/coverage.ts'
import { cutOut } from './search/cut.ts'
import { lacking, withRow } from './search/defence-page.ts'
import { searchWithout } from './search/defence-table.ts'
import { defences } from './search/defences.ts'
import { findingOf } from './search/finding.ts'
import { runPool } from './search/pool.ts'
import type { Outcome } from './search/run.ts'
import { draw, sentence, type Schedule } from './search/schedule.ts'
import { createTally } from './search/tally.ts'
import { read, type Wanted } from './search/wanted.ts'

const usage = 'npm run sim -- [--seeds N] [--from S] [--jobs J] [--minutes M] [--seed S] [--without NAME, or list] [--marks] [--defences [--only NAME, or all]]'

const wanted = read(argv.slice(2))
if (typeof wanted === 'string') {
  console.error(`${wanted}; ${usage}`)
  exit(2)
}
const { without, seed: replayed } = wanted
/** More failures than these need not be made smaller: they are the same one, or the product is badly broken. */
const mostShrunk = 3
const saysEvery = 20_000

if (without === 'list') {
  for (const { name, against } of defences) console.log(`${name}: ${against}`)
} else if (wanted.defences) {
  exit(await tabulate(wanted) ? 0 : 1)
} else if (replayed === undefined) {
  exit(await search(wanted) ? 0 : 1)
} else {
  // Not at once: a transcript is long, and a pipe takes it in its own time.
  process.exitCode = await replay(replayed) ? 0 : 1
}

async function search({ seeds: most, from = 1, minutes = Infinity, jobs, marks }: Wanted): Promise<boolean> {
  const seeds = most ?? (minutes === Infinity ? 50 : Infinity)
  const tally = createTally()
  const began = performance.now()
  let [next, ended, saidAt] = [from, 0, began]
  await runPool({
    jobs: jobs ?? Math.max(1, Math.min(4, availableParallelism())), ...(without === undefined ? {} : { without }),
    next: () => (next >= from + seeds || performance.now() - began > minutes * 60_000 ? undefined : next++),
    told(verdict) {
      const before = tally.failed.length
      tally.add(verdict)
      ended += 1
      // At once: a search that is ended from outside has shown what it had found.
      for (const { seed, judge, what } of tally.failed.slice(before)) console.log(`seed ${seed} fails: ${judge}: ${what}`)
      if (performance.now() - saidAt < saysEvery) return
      saidAt = performance.now()
      console.log(`${ended} seeds, ${(ended / ((saidAt - began) / 1_000)).toFixed(1)} a second, ${tally.failed.length} violations`)
    },
  })
  const bySeed = Map.groupBy(tally.failed, ({ seed }) => seed)
  for (const [count, [, [first]]] of [...bySeed].entries()) {
    // Here the product is whole: what was cut out of it was cut in the threads.
    const means = without !== undefined ? { without } : count < mostShrunk ? { play } : {}
    if (first !== undefined) for (const line of await findingOf(first, means)) console.log(line)
  }
  const sums = tally.sums()
  if (ended >= 1_000 && sums.rare.length > 0) console.log(`took effect in fewer than one seed of a hundred: ${sums.rare.join(', ')}`)
  const unreached = findings({ seeds: ended, marks: tally.marks.keys(), asked: marks })
  if (unreached.length > 0) console.log(`never reached in ${ended} seeds: ${unreached.join(', ')}`)
  if (marks) for (const [mark, times] of [...tally.marks].toSorted()) console.log(`${String(times).padStart(7)}  ${mark}`)
  console.log(`${(ended / ((performance.now() - began) / 1_000)).toFixed(1)} seeds a second`)
  console.log(`${ended - bySeed.size} passed, ${bySeed.size} failed`)
  console.log(JSON.stringify({ from, ...sums }))
  return bySeed.size === 0
}

/** Row by row, so that what was found stands there when this is ended. */
async function tabulate({ seeds = 600, from = 1, jobs = 1, only }: Wanted): Promise<boolean> {
  const page = new URL('../docs/safety.md', import.meta.url)
  const text = () => readFileSync(page, 'utf8')
  const due = only === undefined ? lacking(text()) : defences.filter(({ name }) => only === 'all' || name === only)
  let uncaught = 0
  for (const defence of due) {
    const began = performance.now()
    const caught = await searchWithout(defence, { seeds, from, jobs })
    if (caught === undefined) uncaught += 1
    writeFileSync(page, withRow(text(), defence.name, caught, seeds))
    const found = caught === undefined ? `no judge fails in ${seeds} seeds` : `seed ${caught.seed}, ${caught.judge}: ${caught.what}`
    console.log(`${defence.name} (${((performance.now() - began) / 1_000).toFixed(0)} s): ${found}`)
  }
  console.log(`${due.length - uncaught} caught, ${uncaught} not`)
  return uncaught === 0
}

async function play(schedule: Schedule): Promise<Outcome> {
  const { run } = await import('./search/run.ts')
  return run(schedule)
}

async function replay(seed: number): Promise<boolean> {
  const sure = without === undefined ? undefined : cutOut(without)
  const { run } = await import('./search/run.ts')
  sure?.()
  const outcome = await run(draw(seed))
  console.log(outcome.transcript())
  console.log(JSON.stringify(outcome.schedule.scene))
  for (const trouble of outcome.schedule.troubles) console.log(sentence(trouble))
  for (const { what, because } of outcome.excused) console.log(`excused: ${what}, because ${because}`)
  for (const { judge, what } of outcome.violations) console.log(`${judge}: ${what}`)
  console.log(outcome.violations.length === 0 ? '1 passed, 0 failed' : '0 passed, 1 failed')
  return outcome.violations.length === 0
}
