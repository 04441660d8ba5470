// Runs test files in processes of their own, and counts for itself: uvu exits 0 in several ways in which it should not (a suite
// never run, a throwing hook, `throw null`). A file passes only if it says how many tests it has, all of them passed, none was
// skipped, and its process ended by itself within the deadline.
import { spawn } from 'node:child_process'
import { globSync, mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { argv, execPath, exit } from 'node:process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export interface Tally { passed: number; failed: number; skipped: number }

/** Files that one process runs, one after the other. */
type Batch = readonly string[]

/** More than there are cores: a third of all time files wait for processes and real timers. */
const processesAtOnce = availableParallelism() + 2
/** For each file of a batch. */
const fileDeadline = 170_000
/** From the end of a process to that of its output. */
const letsGoWithin = 2_000
const host = fileURLToPath(new URL('host.ts', import.meta.url))
/** A process of its own each, and before all others: those that wait for real timers beside those that reckon. */
const alone = [
  'test/sim/start.', 'test/sim/search/fresh.', 'test/core/journey.',
  'test/coordinator/main.', 'test/coordinator/programs.', 'test/commands.', 'test/fence-agents/', 'test/deploy/', 'test/cli/',
]
/** What is left, by the start of its name: a process a row. */
const shared = ['test/stories/', 'test/coordinator/', 'test/sim/', 'test/core/', 'test/']
/** So many of those alone go before the batches. */
const longest = 4
const slowTiers = ['test/control-plane/', 'test/devices/', 'test/nodes/', 'test/bench/', 'test/search/']

/** What is to be ended or removed when this process ends, whoever ends it. */
const ends = new Set<() => void>()
process.once('exit', () => {
  for (const end of ends) end()
})

if (import.meta.main) {
  const named = filesNamed(argv.slice(2))
  const batches = named.length > 0 ? named.map((file) => [file]) : quickBatches()
  const tally = await runBatches(batches, processesAtOnce, fileDeadline)
  console.log(`${tally.passed} passed, ${tally.failed} failed${tally.skipped > 0 ? `, ${tally.skipped} skipped` : ''}`)
  exit(tally.failed > 0 || tally.passed === 0 ? 1 : 0)
}

/** A word that names nothing would be a tier that ran nothing, and was green. */
export function filesNamed(patterns: readonly string[]): readonly string[] {
  const idle = patterns.find((pattern) => globSync(pattern).length === 0)
  if (idle !== undefined) {
    console.error(`no file is named ${idle}; npm test -- PATTERN…, as test/core/*.test.ts`)
    exit(1)
  }
  return patterns.flatMap((pattern) => globSync(pattern))
}

function quickBatches(): readonly Batch[] {
  const left = new Set(globSync('test/**/*.test.ts').filter((file) => !slowTiers.some((tier) => file.startsWith(tier))).toSorted())
  const take = (start: string): Batch => {
    const taken = [...left].filter((file) => file.startsWith(start))
    for (const file of taken) left.delete(file)
    return taken
  }
  const lone = alone.flatMap((start) => take(start)).map((file) => [file])
  const batches = shared.map(take).filter((batch) => batch.length > 0)
  // The longest ones first, so that no core waits for the last of them; a batch is longer than all but a few files.
  return [...lone.slice(0, longest), ...batches, ...lone.slice(longest)]
}

export function runFiles(files: readonly string[], width: number, deadline: number): Promise<Tally> {
  return runBatches(files.map((file) => [file]), width, deadline)
}

export async function runBatches(batches: readonly Batch[], width: number, deadline: number): Promise<Tally> {
  const tally: Tally = { passed: 0, failed: 0, skipped: 0 }
  const queue = [...batches]
  if (queue.length === 0) return { passed: 0, failed: 1, skipped: 0 }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => exit(1))
  // Most of what a short process does is to compile the same modules: once is enough for all.
  const compiled = mkdtempSync(join(tmpdir(), 'holdfast-compiled-'))
  const remove = () => rmSync(compiled, { recursive: true, force: true })
  ends.add(remove)
  const worker = async () => {
    for (let batch = queue.shift(); batch !== undefined; batch = queue.shift()) {
      for (const { passed, failed, skipped } of await runBatch(batch, deadline, compiled)) {
        tally.passed += passed
        tally.failed += failed
        tally.skipped += skipped
      }
    }
  }
  await Promise.all(Array.from({ length: width }, worker))
  remove()
  ends.delete(remove)
  return tally
}

async function runBatch(batch: Batch, deadline: number, compiled: string): Promise<readonly Tally[]> {
  const run = await runHost(batch, deadline, compiled)
  return batch.map((file, index) => {
    const said = run.files.get(file)
    const tally = count(said?.output ?? '')
    // What a file left behind shows when the process is to end: nobody can tell whose it was, so the last one answers for it.
    const wellEnded = index < batch.length - 1 ? said?.ended !== undefined : run.wellEnded
    const honest = wellEnded && tally.total > 0 && tally.passed === tally.total && tally.skipped === 0
    const failed = honest ? 0 : Math.max(1, tally.total - tally.passed - tally.skipped)
    const took = said === undefined ? 'never begun' : `${(said.ended ?? run.ended) - said.began} ms`
    console.log(`${honest ? 'ok  ' : 'FAIL'} ${file}  ${tally.passed}/${tally.total}  ${took}${run.late && !wellEnded ? '  ended at the deadline' : ''}`)
    if (!honest) console.log((said?.output ?? '').slice(-40_000))
    return { passed: tally.passed, failed, skipped: tally.skipped }
  })
}

interface Said { readonly began: number; ended?: number; output: string }
interface HostRun { readonly files: ReadonlyMap<string, Said>; readonly ended: number; readonly late: boolean; readonly wellEnded: boolean }

function runHost(batch: Batch, deadline: number, compiled: string): Promise<HostRun> {
  return new Promise((resolve) => {
    // A group of its own, so that what it started ends with it.
    const child = spawn(execPath, [host, ...batch], { detached: true, env: { ...process.env, FORCE_COLOR: '0', NO_COLOR: '1', NODE_COMPILE_CACHE: compiled }, stdio: ['ignore', 'pipe', 'pipe'] })
    const files = new Map<string, Said>()
    let [current, late, ended, held, code]: [Said | undefined, boolean, boolean, boolean, number | null] = [undefined, false, false, false, null]
    const end = () => endGroup(child.pid)
    const kill = () => {
      late = true
      end()
    }
    ends.add(end)
    let timer = setTimeout(kill, deadline)
    const take = (line: string) => {
      const file = /^== (.*)$/.exec(line)?.[1]
      if (file === undefined || (file !== 'end' && !batch.includes(file))) {
        if (current !== undefined) current.output += `${line}\n`
        return
      }
      clearTimeout(timer)
      timer = setTimeout(kill, deadline)
      if (current !== undefined) current.ended = Date.now()
      if (file === 'end') ended = true
      else files.set(file, current = { began: Date.now(), output: '' })
    }
    for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', take)
    child.on('exit', (exitCode) => {
      code = exitCode
      // What it left running may hold its output for ever.
      setTimeout(() => {
        held = true
        end()
        for (const stream of [child.stdout, child.stderr]) stream.destroy()
      }, letsGoWithin).unref()
    })
    child.on('close', () => {
      clearTimeout(timer)
      ends.delete(end)
      resolve({ files, ended: Date.now(), late, wellEnded: ended && !late && !held && code === 0 })
    })
  })
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // All of it has ended.
  }
}

/** Sums over every suite of the file: uvu prints Total, Passed and Skipped once a process. */
function count(output: string): { total: number; passed: number; skipped: number } {
  const last = (word: string) => Number([...output.matchAll(new RegExp(`^\\s*${word}:\\s+(\\d+)`, 'gm'))].at(-1)?.[1] ?? 0)
  return { total: last('Total'), passed: last('Passed'), skipped: last('Skipped') }
}
