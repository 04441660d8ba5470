// `npm run test:nodes`: builds what a node runs where it is not there yet, then runs every test of this folder in a room of its
// own: network, process and mount namespaces in which the whole lab lives, control plane, machines and all. When the room's first
// process ends, however it ends, the kernel ends everything in it; what is left on disk and of control groups a waiting shell
// clears away. `-- --kubernetes 1.36.4` chooses a version, further words choose files.
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { globSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { argv, env, execPath, exit, getuid, platform } from 'node:process'
import { fileURLToPath } from 'node:url'
import { runFiles } from '../run.ts'
import { missingControllers } from './cgroups.ts'
import { openNetwork } from './network.ts'
import { room, roomVariable, said } from './room.ts'

const fileDeadline = 2_400_000

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
  const wanted = [...words]
  const at = wanted.indexOf('--kubernetes')
  if (at !== -1) env['HOLDFAST_KUBERNETES'] = wanted.splice(at, 2)[1] ?? ''
  const cannot = hindrance()
  if (cannot !== undefined) return skipped(`real nodes need Linux, root and cgroup v1: ${cannot}`)
  for (const script of ['test/control-plane/build.sh', 'test/nodes/build.sh']) {
    const built = spawnSync('bash', [script], { stdio: ['ignore', 'inherit', 'inherit'] })
    if (built.status === 3) return skipped('Go is missing')
    if (built.status !== 0) return failed(`${script} ended with ${built.status}`)
  }
  const images = spawnSync(execPath, ['deploy/build.ts', '--images'], { stdio: ['ignore', 'ignore', 'inherit'] })
  if (images.status !== 0) return failed('the image could not be built')
  return await enter(wanted)
}

function hindrance(): string | undefined {
  if (platform !== 'linux') return platform
  if (getuid?.() !== 0) return 'not root'
  return missingControllers()
}

function skipped(why: string): number {
  console.log(`${why}\n0 passed, 0 failed, 1 skipped`)
  return 1
}

function failed(why: string): number {
  console.log(`${why}\n0 passed, 1 failed`)
  return 1
}

/** The same file once more, as process 1 of the room. */
async function enter(words: readonly string[]): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-nodes-'))
  const lab = `holdfast-${randomBytes(4).toString('hex')}`
  // A session of its own, or Ctrl-C would end it before its work.
  const remover = spawn('sh', ['-c', clear, 'sh', folder, lab], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  const namespaces = ['--net', '--mount', '--pid', '--mount-proc', '--propagation', 'private', '--fork', '--kill-child']
  const code = await new Promise<number>((resolve) => {
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', ...namespaces, execPath, fileURLToPath(import.meta.url), ...words], {
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

async function inside(wanted: readonly string[]): Promise<number> {
  await openNetwork()
  const files = wanted.length > 0 ? wanted.flatMap((pattern) => globSync(pattern)) : globSync('test/nodes/*.test.ts').toSorted()
  const tally = await runFiles(files, 1, fileDeadline)
  console.log(said())
  console.log(`${tally.passed} passed, ${tally.failed} failed${tally.skipped > 0 ? `, ${tally.skipped} skipped` : ''}`)
  return tally.failed > 0 || tally.passed === 0 ? 1 : 0
}
