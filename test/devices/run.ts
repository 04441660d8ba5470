// `npm run test:devices`: installs what is missing, then runs every test of this folder against real device protocols and a
// machine that really dies, two files at a time: most of their time they wait for machines to boot. Words behind `--` choose
// files.
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { argv, env, exit } from 'node:process'
import { filesNamed, runFiles } from '../run.ts'

/** What hangs is ended. Conformance, every program at every device, is the longest: more than a quarter of an hour. */
const fileDeadline = 2_400_000
const filesAtOnce = 2
/** Minutes each, of machines that boot in software: one of them for each commit. */
const inTurn = ['panic', 'watchdog'].map((name) => `test/devices/${name}.test.ts`)
/** Run where time is no matter (HOLDFAST_ALL), or by name. */
const longOnes = ['aws', 'azure', 'conformance', 'gce', 'libvirt', 'reservation', 'vmware'].map((name) => `test/devices/${name}.test.ts`)

const named = filesNamed(argv.slice(2))
const left = named.length > 0 || env['HOLDFAST_ALL'] !== undefined ? [] : notThisTime()
const files = named.length > 0 ? named : globSync('test/devices/*.test.ts').filter((file) => !left.includes(file)).toSorted()
if (left.length > 0) console.log(`left out of the share of this commit (HOLDFAST_ALL=1 runs all): ${left.join(', ')}`)
const installed = spawnSync('bash', ['test/devices/install.sh', ...(files.some(isLong) ? ['all'] : [])], { encoding: 'utf8', stdio: ['ignore', 'inherit', 'pipe'] })
if (installed.status !== 0) {
  // It may be this machine, or the packages are out of reach: in one line, whatever apt and pip had to say.
  const said = installed.stderr.trim().split('\n').at(-1)?.replace(/^install\.sh: /, '') ?? ''
  console.log(`real devices cannot be had here: ${said === '' ? `install.sh ended with ${installed.status ?? installed.signal}` : said}`)
  console.log('0 passed, 0 failed, 1 skipped')
  exit(1)
}
const tally = await runFiles(files, filesAtOnce, fileDeadline)
console.log(`${tally.passed} passed, ${tally.failed} failed${tally.skipped > 0 ? `, ${tally.skipped} skipped` : ''}`)
exit(tally.failed > 0 || tally.passed === 0 ? 1 : 0)

function notThisTime(): readonly string[] {
  const commit = spawnSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' }).stdout.trim()
  const turn = Number.parseInt(commit.slice(0, 6), 16) % inTurn.length
  return [...longOnes, ...inTurn.filter((_, index) => index !== turn)]
}

function isLong(file: string): boolean {
  return longOnes.includes(file)
}
