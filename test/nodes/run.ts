// `npm run test:nodes`: builds what a node runs where it is not there yet, then runs every test of this folder in a room of its
// own: network, process and mount namespaces in which the whole lab lives, control plane, machines and all. When the room's first
// process ends, however it ends, the kernel ends everything in it; what is left on disk and of control groups a waiting shell
// clears away. `-- --kubernetes 1.36.4` chooses a version, further words choose files; `--chaos 60m --seed S` is the long run of
// random trouble. Without words it is the share of this commit; with HOLDFAST_ALL=1 it is all there is.
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { argv, env, execPath, exit, getuid, platform } from 'node:process'
import { fileURLToPath } from 'node:url'
import { runFiles } from '../run.ts'
import { missingControllers } from './cgroups.ts'
import { openNetwork } from './network.ts'
import { room, roomVariable, said } from './room.ts'
import { chaosVariable, readWords } from './share.ts'

const fileDeadline = 7_200_000
const noGo = 3

// A child that waits for the end of its input, which comes when we end and also when we are killed. By then the room is being
// torn down; a group can be removed only when its last process is gone, and nothing frozen dies.
const clear = `cd /; read -r nothing
for state in /sys/fs/cgroup/freezer/"$2"/*/freezer.state; do [ -e "$state" ] && echo THAWED > "$state"; done
for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  find /sys/fs/cgroup/*/"$2" -depth -type d -exec rmdir {} \\; 2>/dev/null
  [ -z "$(find /sys/fs/cgroup/*/"$2" -maxdepth 0 2>/dev/null)" ] && rm -rf "$1" && break
  sleep 0.5
done`

exit(room() === undefined ? await outside(argv.slice(2)) : await inside(argv.slice(2)))

async function outside(words: readonly string[]): Promise<number> {
  const commit = spawnSync('git', ['rev-parse', '--short=8', 'HEAD'], { encoding: 'utf8' }).stdout.trim()
  const asked = readWords(words, commit, env['HOLDFAST_ALL'] !== undefined)
  if (typeof asked === 'string') return failed(asked)
  if (asked.kubernetes !== undefined) env['HOLDFAST_KUBERNETES'] = asked.kubernetes
  env[chaosVariable] = JSON.stringify(asked.chaos)
  const cannot = hindrance()
  if (cannot !== undefined) return skipped(`real nodes need Linux, root and cgroup v1: ${cannot}`)
  for (const script of ['test/control-plane/build.sh', 'test/nodes/build.sh']) {
    const built = spawnSync('bash', [script], { stdio: ['ignore', 'inherit', 'inherit'] })
    if (built.status === noGo) return skipped('real nodes cannot be built here: Go is missing')
    if (built.status !== 0) return failed(`${script} ended with ${built.status}`)
  }
  const images = spawnSync(execPath, ['deploy/build.ts', '--images'], { stdio: ['ignore', 'ignore', 'inherit'] })
  if (images.status !== 0) return failed('the image could not be built')
  if (asked.left.length > 0) console.log(`left out of the share of this commit (HOLDFAST_ALL=1 runs all): ${asked.left.join(', ')}`)
  return await enter(asked.files, asked.left.length)
}

function hindrance(): string | undefined {
  if (platform !== 'linux') return platform
  if (getuid?.() !== 0) return 'not root'
  return missingControllers()
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

/** The same file once more, as process 1 of the room. */
async function enter(files: readonly string[], left: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-nodes-'))
  const lab = `holdfast-${randomBytes(4).toString('hex')}`
  // A session of its own, or Ctrl-C would end it before its work.
  const remover = spawn('sh', ['-c', clear, 'sh', folder, lab], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  const namespaces = ['--net', '--mount', '--pid', '--mount-proc', '--propagation', 'private', '--fork', '--kill-child']
  const code = await new Promise<number>((resolve) => {
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', ...namespaces, execPath, fileURLToPath(import.meta.url), String(left), ...files], {
      stdio: ['ignore', 'inherit', 'inherit'], env: { ...env, [roomVariable]: JSON.stringify({ folder, lab }) },
    })
    child.on('error', () => resolve(1))
    child.on('close', (ended) => resolve(ended ?? 1))
  })
  const cleared = new Promise<void>((resolve) => { remover.on('exit', () => resolve()) })
  remover.stdin.end()
  await cleared
  return code
}

async function inside([left, ...files]: readonly string[]): Promise<number> {
  await openNetwork()
  const tally = await runFiles(files, 1, fileDeadline)
  const skips = tally.skipped + Number(left)
  console.log(said())
  console.log(`${tally.passed} passed, ${tally.failed} failed${skips > 0 ? `, ${skips} skipped` : ''}`)
  return tally.failed > 0 || tally.passed === 0 ? 1 : 0
}
