// Runs test files in processes of their own, and counts for itself: uvu exits 0 in several ways in which it should not (a suite
// never run, a throwing hook, `throw null`). A file passes only if it says how many tests it has, all of them passed, none was
// skipped, and its process ended by itself within the deadline.
import { spawn } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, constants, setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { argv, execPath, exit } from 'node:process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export interface Tally { passed: number; failed: number; skipped: number }

/** Files that one process runs, one after the other, or several: each takes the next one that is left. */
interface Batch {
  readonly files: readonly string[]
  readonly processes: number
  /** What asks no clock of the machine goes behind what does. */
  readonly priority?: number
}

/** Of files that were named: more than there are cores, since half of them wait for processes and timers of the machine. */
const processesAtOnce = availableParallelism() + 4
/** For each file of a batch: what hangs is ended. How long a slow machine needs is no claim, so there is room for several times of it. */
const fileDeadline = 420_000
/** From the end of a process to that of its output. */
const letsGoWithin = 2_000
const host = fileURLToPath(new URL('host.ts', import.meta.url))
/** A process of its own: a world in real time. */
const living = { parts: ['test/sim/start.'], processes: 1 } as const
/** Likewise: it has half a minute. */
const timed = { parts: ['test/sim/search/fresh.'], processes: 1, priority: constants.priority.PRIORITY_LOW } as const
/** What plays the world is warm after some seconds of it, so two processes play all of it, those with the most to play first. */
const playing = {
  parts: ['test/stories/killed-leader.', 'test/stories/self-fenced.', 'test/stories/twins.', 'test/stories/racks.', 'test/stories/', 'test/sim/', 'test/core/'],
  processes: 2, priority: constants.priority.PRIORITY_LOW,
} as const
/** All others, first those that wait for processes and timers of the machine most of their time. */
const waiting = { parts: ['test/deploy/build.', 'test/coordinator/main.', 'test/agent/main.', 'test/commands.', 'test/run.', 'test/fence-agents/', 'test/'], processes: 4 } as const
const slowTiers = ['test/control-plane/', 'test/devices/', 'test/nodes/', 'test/bench/', 'test/search/']

/** What is to be ended or removed when this process ends, whoever ends it. */
const ends = new Set<() => void>()
process.once('exit', () => {
  for (const end of ends) end()
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => exit(1))

if (import.meta.main) {
  const named = filesNamed(argv.slice(2))
  const batches = named.length > 0 ? named.map(alone) : quickBatches()
  const width = named.length > 0 ? processesAtOnce : Infinity
  const tally = await runBatches(batches, width, fileDeadline)
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

function alone(file: string): Batch {
  return { files: [file], processes: 1 }
}

function quickBatches(): readonly Batch[] {
  const left = new Set(globSync('test/**/*.test.ts').filter((file) => !slowTiers.some((tier) => file.startsWith(tier))).toSorted())
  const take = (start: string): readonly string[] => {
    const taken = [...left].filter((file) => file.startsWith(start))
    for (const file of taken) left.delete(file)
    return taken
  }
  const quick = [living, timed, playing, waiting].map(({ parts, ...rest }) => ({ ...rest, files: parts.flatMap(take) }))
  return quick.filter(({ files }) => files.length > 0)
}

export function runFiles(files: readonly string[], width: number, deadline: number): Promise<Tally> {
  return runBatches(files.map(alone), width, deadline)
}

export async function runBatches(batches: readonly Batch[], width: number, deadline: number): Promise<Tally> {
  const tally: Tally = { passed: 0, failed: 0, skipped: 0 }
  const add = ({ passed, failed, skipped }: Tally): void => {
    tally.passed += passed
    tally.failed += failed
    tally.skipped += skipped
  }
  const queue = batches.flatMap((batch) => Array.from({ length: batch.processes }, () => batch))
  if (queue.length === 0) return { passed: 0, failed: 1, skipped: 0 }
  // Most of what a short process does is to compile the same modules: once is enough for all.
  const compiled = mkdtempSync(join(tmpdir(), 'holdfast-compiled-'))
  const remove = () => rmSync(compiled, { recursive: true, force: true })
  ends.add(remove)
  const begun = new Set<string>()
  const worker = async () => {
    for (let batch = queue.shift(); batch !== undefined; batch = queue.shift()) {
      const claims = join(compiled, `batch-${batches.indexOf(batch)}`)
      mkdirSync(claims, { recursive: true })
      await runHost({ batch, claims, compiled, deadline, begun, add })
    }
  }
  await Promise.all(Array.from({ length: Math.min(width, queue.length) }, worker))
  for (const file of batches.flatMap(({ files }) => files)) {
    if (begun.has(file)) continue
    console.log(`FAIL ${file}  never begun`)
    add({ passed: 0, failed: 1, skipped: 0 })
  }
  remove()
  ends.delete(remove)
  return tally
}

/** `ended`: undefined is that its process was gone before it had come to the file's end. */
function judge({ file, began, ended, output }: Said, wellEnded: boolean, late: boolean): Tally {
  const tally = count(output)
  const honest = wellEnded && tally.total > 0 && tally.passed === tally.total && tally.skipped === 0
  console.log(`${honest ? 'ok  ' : 'FAIL'} ${file}  ${tally.passed}/${tally.total}  ${(ended ?? Date.now()) - began} ms${late ? '  ended at the deadline' : ''}`)
  if (!honest) console.log(output.slice(-40_000))
  return { passed: tally.passed, failed: honest ? 0 : Math.max(1, tally.total - tally.passed - tally.skipped), skipped: tally.skipped }
}

interface Said { readonly file: string; readonly began: number; ended?: number; output: string }

interface HostRun {
  readonly batch: Batch
  readonly claims: string
  readonly compiled: string
  readonly deadline: number
  readonly begun: Set<string>
  add(tally: Tally): void
}

/** One process, until no file of the batch is left to take, or it ends. */
function runHost({ batch, claims, compiled, deadline, begun, add }: HostRun): Promise<void> {
  return new Promise((resolve) => {
    // A group of its own, so that what it started ends with it.
    const child = spawn(execPath, [host, claims, ...batch.files], { detached: true, env: { ...process.env, FORCE_COLOR: '0', NO_COLOR: '1', NODE_COMPILE_CACHE: compiled }, stdio: ['ignore', 'pipe', 'pipe'] })
    if (batch.priority !== undefined && child.pid !== undefined) setPriority(child.pid, batch.priority)
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
      if (file === undefined || (file !== 'end' && !batch.files.includes(file))) {
        if (current !== undefined) current.output += `${line}\n`
        return
      }
      clearTimeout(timer)
      timer = setTimeout(kill, deadline)
      if (current !== undefined) current.ended = Date.now()
      if (file === 'end') {
        ended = true
        return
      }
      if (current !== undefined) add(judge(current, true, false))
      begun.add(file)
      current = { file, began: Date.now(), output: '' }
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
      // What a file left behind shows when the process is to end: nobody can tell whose it was, so the last one answers for it.
      if (current !== undefined) add(judge(current, ended && !late && !held && code === 0, late))
      resolve()
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
