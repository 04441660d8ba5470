// `npm run test:devices`: installs what is missing, then runs every test of this folder against real device protocols and a
// machine that really dies, two files at a time: most of their time they wait for machines to boot. Words behind `--` choose
// files.
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { argv, env, exit } from 'node:process'
import { filesNamed, runFiles } from '../run.ts'

const fileDeadline = 900_000
const filesAtOnce = 2
/** Run where time is no matter (HOLDFAST_ALL), or by name. */
const longOnes = ['aws', 'azure', 'conformance', 'gce', 'vmware'].map((name) => `test/devices/${name}.test.ts`)

const named = filesNamed(argv.slice(2))
const files = named.length > 0 ? named : globSync('test/devices/*.test.ts').filter((file) => env['HOLDFAST_ALL'] !== undefined || !isLong(file)).toSorted()
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

function isLong(file: string): boolean {
  return longOnes.includes(file)
}
