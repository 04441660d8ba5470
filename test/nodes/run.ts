// `npm run test:nodes`: builds what a node runs where it is not there yet, then runs every test of this folder in two rooms
// (enter.ts), each with a whole lab in it, control plane, machines and all: most of their time both wait for timers. `-- --kubernetes 1.36.4` chooses a
// version, further words choose files; `--chaos 60m --seed S` is the long run of random trouble. Without words it is the share of this commit; with HOLDFAST_ALL=1 it is all there is.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { argv, env, exit } from 'node:process'
import { fileURLToPath } from 'node:url'
import { runFiles, type Tally } from '../run.ts'
import { killAllFrozen } from './cgroups.ts'
import { buildNodes, enterRoom, hindrance } from './enter.ts'
import { openNetwork } from './network.ts'
import { room, said, theRoom } from './room.ts'
import { chaosVariable, readWords } from './share.ts'

const fileDeadline = 7_200_000
const roomsAtOnce = 2
const sumsWord = 'sums of a room: '
const claimOf = (claims: string, index: number): string => join(claims, String(index))

exit(room() === undefined ? await outside(argv.slice(2)) : await inside(argv.slice(2)))

async function outside(words: readonly string[]): Promise<number> {
  const commit = spawnSync('git', ['rev-parse', '--short=8', 'HEAD'], { encoding: 'utf8' }).stdout.trim()
  const asked = readWords(words, commit, env['HOLDFAST_ALL'] !== undefined)
  if (typeof asked === 'string') return failed(asked)
  if (asked.kubernetes !== undefined) env['HOLDFAST_KUBERNETES'] = asked.kubernetes
  env[chaosVariable] = JSON.stringify(asked.chaos)
  const cannot = hindrance()
  if (cannot !== undefined) return skipped(`real nodes need Linux, root and cgroup v1: ${cannot}`)
  const lacking = buildNodes(asked.files.some((file) => file.endsWith('/fence-agents.test.ts')))
  if (lacking !== undefined) return 'skipped' in lacking ? skipped(lacking.skipped) : failed(lacking.failed)
  if (asked.left.length > 0) console.log(`left out of the share of this commit (HOLDFAST_ALL=1 runs all): ${asked.left.join(', ')}`)
  const tally = await inRooms(asked.files)
  const skips = tally.skipped + asked.left.length
  console.log(`${tally.passed} passed, ${tally.failed} failed${skips > 0 ? `, ${skips} skipped` : ''}`)
  return tally.failed > 0 || tally.passed === 0 ? 1 : 0
}

/** Each room takes the next file that no other has taken. */
async function inRooms(files: readonly string[]): Promise<Tally> {
  const claims = mkdtempSync(join(tmpdir(), 'holdfast-rooms-'))
  const told = await Promise.all(files.slice(0, roomsAtOnce).map(() => inRoom([claims, ...files])))
  const never = files.filter((_, index) => !existsSync(claimOf(claims, index)))
  for (const file of never) console.log(`FAIL ${file}  never begun`)
  rmSync(claims, { recursive: true, force: true })
  const sum = (what: keyof Tally): number => told.reduce((total, one) => total + one[what], 0)
  return { passed: sum('passed'), failed: sum('failed') + never.length, skipped: sum('skipped') }
}

/** One that ends without its sums, or badly without a failure among them, has failed. */
async function inRoom(words: readonly string[]): Promise<Tally> {
  let tally: Tally | undefined
  const code = await enterRoom(fileURLToPath(import.meta.url), words, (line) => {
    if (line.startsWith(sumsWord)) tally = JSON.parse(line.slice(sumsWord.length)) as Tally // inside has written it
    else console.log(line)
  })
  if (tally !== undefined && (code === 0 || tally.failed > 0)) return tally
  console.log(`FAIL a room ended with ${code}${tally === undefined ? ', and without its sums' : ''}`)
  return { passed: tally?.passed ?? 0, failed: 1, skipped: tally?.skipped ?? 0 }
}

/** Where it cannot be it is not broken: counted, and no failure. */
function skipped(why: string): number {
  console.log(`${why}\n0 passed, 0 failed, 1 skipped`)
  return 0
}

function failed(why: string): number {
  console.log(`${why}\n0 passed, 1 failed`)
  return 1
}

/** As process 1 of a room. */
async function inside([claims = '', ...files]: readonly string[]): Promise<number> {
  await openNetwork()
  const sums: Tally = { passed: 0, failed: 0, skipped: 0 }
  for (const [index, file] of files.entries()) {
    try {
      mkdirSync(claimOf(claims, index))
    } catch {
      continue // the other room has it
    }
    const one = await runFiles([file], 1, fileDeadline)
    sums.passed += one.passed
    sums.failed += one.failed
    sums.skipped += one.skipped
  }
  killAllFrozen(theRoom().lab)
  console.log(said())
  console.log(`${sumsWord}${JSON.stringify(sums)}`)
  return sums.failed > 0 ? 1 : 0
}
