// The way into a room: what it needs of this computer, what a node runs, and a program of ours started as process 1 in network, process and
// mount namespaces of its own. When that ends, however it ends, the kernel ends everything in it; what is left on disk and of control groups a
// waiting shell clears away.
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { env, execPath, getuid, platform } from 'node:process'
import { createInterface } from 'node:readline'
import { missingControllers } from './cgroups.ts'
import { roomVariable } from './room.ts'

const noGo = 3

// A child that waits for the end of its input, which comes when we end and also when we are killed. By then the room is being
// torn down; a group can be removed only when its last process is gone, and nothing frozen dies, whoever froze it.
const clear = `cd /; read -r nothing
find /sys/fs/cgroup/freezer/"$2" -name freezer.state 2>/dev/null | while read -r state; do echo THAWED > "$state"; done
for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  find /sys/fs/cgroup/*/"$2" -depth -type d -exec rmdir {} \\; 2>/dev/null
  [ -z "$(find /sys/fs/cgroup/*/"$2" -maxdepth 0 2>/dev/null)" ] && rm -rf "$1" && break
  sleep 0.5
done`

/** Why there can be no room here. */
export function hindrance(): string | undefined {
  if (platform !== 'linux') return platform
  if (getuid?.() !== 0) return 'not root'
  return missingControllers()
}

/** What nodes run, told on standard error as it is made, where it is not there yet. `skipped`: it cannot be had here; `failed`: it should have been.
 *  `both`: the image with the fence agents of others, too, whose packages nobody can fetch from within a room. */
export function buildNodes(both: boolean): { readonly skipped: string } | { readonly failed: string } | undefined {
  for (const script of ['test/control-plane/build.sh', 'test/nodes/build.sh']) {
    const built = spawnSync('bash', [script], { stdio: ['ignore', 2, 2] })
    if (built.status === noGo) return { skipped: 'real nodes cannot be built here: Go is missing' }
    if (built.status !== 0) return { failed: `${script} ended with ${built.status}` }
  }
  const images = spawnSync(execPath, ['deploy/build.ts', both ? '--fence-agents' : '--images'], { stdio: ['ignore', 2, 2] })
  return images.status === 0 ? undefined : { failed: 'the image could not be built' }
}

/** The program with its words, as process 1 of a room; answers its end. `heard`: each line that it prints. */
export async function enterRoom(program: string, words: readonly string[], heard: (line: string) => void = console.log): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-nodes-'))
  const lab = `holdfast-${randomBytes(4).toString('hex')}`
  // A session of its own, or Ctrl-C would end it before its work.
  const remover = spawn('sh', ['-c', clear, 'sh', folder, lab], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  const namespaces = ['--net', '--mount', '--pid', '--mount-proc', '--propagation', 'private', '--fork', '--kill-child']
  const code = await new Promise<number>((resolve) => {
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', ...namespaces, execPath, program, ...words], {
      stdio: ['ignore', 'pipe', 'inherit'], env: { ...env, [roomVariable]: JSON.stringify({ folder, lab }) },
    })
    createInterface({ input: child.stdout }).on('line', heard)
    child.on('error', () => resolve(1))
    child.on('close', (ended) => resolve(ended ?? 1))
  })
  const cleared = new Promise<void>((resolve) => { remover.on('exit', () => resolve()) })
  remover.stdin.end()
  await cleared
  return code
}
