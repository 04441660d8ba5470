// `npm run test:search`: whether the search sees what it is to see. Each planted mistake must fail a judge, each kind of trouble must take
// effect, each defence that others stand before must be missed by its tests, and a seed must be the same run wherever it is played. It needs
// nothing that `npm test` does not have, but some minutes of two cores. Words behind `--` choose files.
import { availableParallelism } from 'node:os'
import { globSync } from 'node:fs'
import { argv, exit } from 'node:process'
import { filesNamed, runFiles } from '../run.ts'

const fileDeadline = 600_000

const named = filesNamed(argv.slice(2))
const tally = await runFiles(named.length > 0 ? named : globSync('test/search/*.test.ts').toSorted(), availableParallelism(), fileDeadline)
console.log(`${tally.passed} passed, ${tally.failed} failed${tally.skipped > 0 ? `, ${tally.skipped} skipped` : ''}`)
exit(tally.failed > 0 || tally.passed === 0 ? 1 : 0)
