// `npm run test:cluster`: builds the real control plane where it is not there yet, then runs every test of this folder
// against it, one file at a time; the longest take turns by commit, unless HOLDFAST_ALL=1. `-- --kubernetes 1.36.4` chooses a
// version, further words choose files.
import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { argv, env, exit } from 'node:process'
import { filesNamed, runFiles } from '../run.ts'
import { saidVariable, skipsOf } from './said.ts'

/** The leader is killed some seventy times, where all of them are wanted: forty-three minutes on two cores, and a machine may be slower. */
const fileDeadline = 3_600_000
const noGo = 3
/** Each commit runs one of these, beside what every commit runs. */
const turns = [['floor', 'liars', 'twins'], ['others-failed'], ['vouched', 'pitfalls']].map((names) => names.map((name) => `test/control-plane/${name}.test.ts`))

const wanted = argv.slice(2)
const at = wanted.indexOf('--kubernetes')
if (at !== -1) env['HOLDFAST_KUBERNETES'] = wanted.splice(at, 2)[1] ?? ''
const named = filesNamed(wanted)

const built = spawnSync('bash', ['test/control-plane/build.sh'], { stdio: ['ignore', 'inherit', 'inherit'] })
if (built.status !== 0) {
  console.log(built.status === noGo ? 'the real control plane cannot be built here: Go is missing' : 'the real control plane could not be built')
  console.log(`0 passed, ${built.status === noGo ? '0 failed, 1 skipped' : '1 failed'}`)
  exit(1)
}
const left = named.length > 0 || env['HOLDFAST_ALL'] === '1' ? [] : notThisTime()
const files = named.length > 0 ? named : globSync('test/control-plane/*.test.ts').filter((file) => !left.includes(file)).toSorted()
if (left.length > 0) console.log(`their turn is with another commit: ${left.join(', ')}`)
const folder = mkdtempSync(join(tmpdir(), 'holdfast-said-'))
process.once('exit', () => rmSync(folder, { recursive: true }))
const told = join(folder, 'said')
writeFileSync(told, '')
env[saidVariable] = told
const tally = await runFiles(files, 1, fileDeadline)
const said = readFileSync(told, 'utf8')
if (said !== '') console.log(said.trimEnd())
const late = skipsOf(said)
const [passed, skipped] = [tally.passed - late, tally.skipped + late]
console.log(`${passed} passed, ${tally.failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
exit(tally.failed > 0 || passed === 0 ? 1 : 0)

function notThisTime(): readonly string[] {
  const commit = spawnSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' }).stdout.trim()
  const turn = Number.parseInt(commit.slice(0, 6), 16) % turns.length
  return turns.flatMap((names, index) => (index === turn ? [] : names))
}
