// Runs test files, each in a process of its own, and counts for itself: uvu exits 0 in several ways in which it should not
// (a suite never run, a throwing hook, `throw null`). A file passes only if it says how many tests it has, all of them
// passed, none was skipped, and it ended by itself within the deadline.
import { spawn } from 'node:child_process'
import { globSync, mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { argv, execPath, exit } from 'node:process'

export interface Tally { passed: number; failed: number; skipped: number }

/** One more than there are cores: the longest files wait for processes and real timers most of their time. */
const filesAtOnce = availableParallelism() + 1
const fileDeadline = 110_000
/** In this order, before all others: those that wait beside those that reckon. */
const longOnes = [
  'test/sim/start.', 'test/sim/search/planted.', 'test/sim/search/run.', 'test/stories/killed-leader.', 'test/sim/search/fresh.', 'test/fence-agents/contract.', 'test/core/journey.', 'test/core/decide-properties.',
  'test/stories/', 'test/fence-agents/', 'test/deploy/', 'test/cli/', 'test/commands.', 'test/coordinator/main.', 'test/coordinator/programs.', 'test/sim/search/',
]
const slowTiers = ['test/control-plane/', 'test/devices/', 'test/nodes/', 'test/bench/']

if (import.meta.main) {
  const wanted = argv.slice(2)
  const idle = wanted.find((pattern) => globSync(pattern).length === 0)
  if (idle !== undefined) {
    console.error(`no file is named ${idle}; npm test -- PATTERN…, as test/core/*.test.ts`)
    exit(1)
  }
  const files = wanted.length > 0 ? wanted.flatMap((pattern) => globSync(pattern)) : quickFiles()
  const tally = await runFiles(files, filesAtOnce)
  console.log(`${tally.passed} passed, ${tally.failed} failed${tally.skipped > 0 ? `, ${tally.skipped} skipped` : ''}`)
  exit(tally.failed > 0 || tally.passed === 0 ? 1 : 0)
}

function quickFiles(): string[] {
  const files = globSync('test/**/*.test.ts').filter((file) => !slowTiers.some((tier) => file.startsWith(tier))).toSorted()
  // The longest ones first, so that no core waits for the last of them.
  return files.toSorted((one, other) => place(one) - place(other))
}

function place(file: string): number {
  const found = longOnes.findIndex((start) => file.startsWith(start))
  return found === -1 ? longOnes.length : found
}

export async function runFiles(files: readonly string[], width: number, deadline = fileDeadline): Promise<Tally> {
  const tally: Tally = { passed: 0, failed: 0, skipped: 0 }
  const queue = [...files]
  if (queue.length === 0) return { passed: 0, failed: 1, skipped: 0 }
  // Each file is a process, and most of what the short ones do is to compile the same modules: once is enough for all.
  const compiled = mkdtempSync(join(tmpdir(), 'holdfast-compiled-'))
  const worker = async () => {
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      const ended = await runFile(file, deadline, compiled)
      tally.passed += ended.passed
      tally.failed += ended.failed
      tally.skipped += ended.skipped
    }
  }
  await Promise.all(Array.from({ length: width }, worker))
  rmSync(compiled, { recursive: true, force: true })
  return tally
}

async function runFile(file: string, deadline: number, compiled: string): Promise<Tally> {
  const began = Date.now()
  const { output, code, late } = await run(file, deadline, compiled)
  const tally = count(output)
  const honest = !late && code === 0 && tally.total > 0 && tally.passed === tally.total && tally.skipped === 0
  const failed = honest ? 0 : Math.max(1, tally.total - tally.passed - tally.skipped)
  const verdict = honest ? 'ok  ' : 'FAIL'
  console.log(`${verdict} ${file}  ${tally.passed}/${tally.total}  ${Date.now() - began} ms${late ? '  ended at the deadline' : ''}`)
  if (!honest) console.log(output.slice(-12_000))
  return { passed: tally.passed, failed, skipped: tally.skipped }
}

function run(file: string, deadline: number, compiled: string): Promise<{ output: string; code: number | null; late: boolean }> {
  return new Promise((resolve) => {
    const child = spawn(execPath, [file], { env: { ...process.env, FORCE_COLOR: '0', NO_COLOR: '1', NODE_COMPILE_CACHE: compiled }, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    let late = false
    const timer = setTimeout(() => {
      late = true
      child.kill('SIGKILL')
    }, deadline)
    const take = (piece: Buffer) => { output += piece.toString() }
    child.stdout.on('data', take)
    child.stderr.on('data', take)
    child.on('close', (code) => {
      clearTimeout(timer)
      resolve({ output, code, late })
    })
  })
}

/** Sums over every suite of the file: uvu prints Total, Passed and Skipped once a process. */
function count(output: string): { total: number; passed: number; skipped: number } {
  const last = (word: string) => Number([...output.matchAll(new RegExp(`^\\s*${word}:\\s+(\\d+)`, 'gm'))].at(-1)?.[1] ?? 0)
  return { total: last('Total'), passed: last('Passed'), skipped: last('Skipped') }
}
