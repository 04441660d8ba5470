// `npm run test:nodes`: builds what a node runs where it is not there yet, then runs every test of this folder in a room of its
// own (enter.ts) in which the whole lab lives, control plane, machines and all. `-- --kubernetes 1.36.4` chooses a
// version, further words choose files; `--chaos 60m --seed S` is the long run of random trouble. Without words it is the share of this commit; with HOLDFAST_ALL=1 it is all there is.
import { spawnSync } from 'node:child_process'
import { argv, env, exit } from 'node:process'
import { fileURLToPath } from 'node:url'
import { runFiles } from '../run.ts'
import { buildNodes, enterRoom, hindrance } from './enter.ts'
import { openNetwork } from './network.ts'
import { room, said } from './room.ts'
import { chaosVariable, readWords } from './share.ts'

const fileDeadline = 7_200_000

exit(room() === undefined ? await outside(argv.slice(2)) : await inside(argv.slice(2)))

async function outside(words: readonly string[]): Promise<number> {
  const commit = spawnSync('git', ['rev-parse', '--short=8', 'HEAD'], { encoding: 'utf8' }).stdout.trim()
  const asked = readWords(words, commit, env['HOLDFAST_ALL'] !== undefined)
  if (typeof asked === 'string') return failed(asked)
  if (asked.kubernetes !== undefined) env['HOLDFAST_KUBERNETES'] = asked.kubernetes
  env[chaosVariable] = JSON.stringify(asked.chaos)
  const cannot = hindrance()
  if (cannot !== undefined) return skipped(`real nodes need Linux, root and cgroup v1: ${cannot}`)
  const lacking = buildNodes()
  if (lacking !== undefined) return 'skipped' in lacking ? skipped(lacking.skipped) : failed(lacking.failed)
  if (asked.left.length > 0) console.log(`left out of the share of this commit (HOLDFAST_ALL=1 runs all): ${asked.left.join(', ')}`)
  return await enterRoom(fileURLToPath(import.meta.url), [String(asked.left.length), ...asked.files])
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

/** As process 1 of the room. */
async function inside([left, ...files]: readonly string[]): Promise<number> {
  await openNetwork()
  const tally = await runFiles(files, 1, fileDeadline)
  const skips = tally.skipped + Number(left)
  console.log(said())
  console.log(`${tally.passed} passed, ${tally.failed} failed${skips > 0 ? `, ${skips} skipped` : ''}`)
  return tally.failed > 0 || tally.passed === 0 ? 1 : 0
}
