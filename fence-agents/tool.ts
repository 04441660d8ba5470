// Another program that does the asking: started without a shell, given its words as they are, ended in time. It stays in our
// process group, so that whoever ends us ends it too.
import { spawn } from 'node:child_process'
import { basename } from 'node:path'
import { Failure, environment } from './contract.ts'

export interface ToolRun {
  readonly words: readonly string[]
  readonly within: number
  readonly stdin?: string
  readonly more?: Readonly<Record<string, string>>
}

export interface ToolEnd {
  /** Null where a signal ended it. */
  readonly code: number | null
  readonly output: string
  readonly errors: string
}

const longestOutput = 64 * 1024

export async function runTool(file: string, { words, within, stdin, more = {} }: ToolRun): Promise<ToolEnd> {
  const name = basename(file)
  const child = spawn(file, words, { env: { PATH: environment()['PATH'], LANG: 'C', LC_ALL: 'C', ...ours(), ...more }, stdio: 'pipe' })
  let output = ''
  let errors = ''
  child.stdout.on('data', (piece: Buffer) => { output = (output + piece.toString()).slice(-longestOutput) })
  child.stderr.on('data', (piece: Buffer) => { errors = (errors + piece.toString()).slice(-longestOutput) })
  child.stdin.on('error', () => undefined) // it ended, or closed its stdin, before it had read all: its exit code tells
  child.stdin.end(stdin ?? '')
  let late = false
  const timer = setTimeout(() => {
    late = true
    child.kill('SIGKILL')
    // What it had started may hold the other ends for ever; our runner ends that with our group.
    child.stdout.destroy()
    child.stderr.destroy()
  }, within)
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', (error) => reject(new Failure('config', causeOf(name, error))))
    child.once('close', (ended) => resolve(ended))
  }).finally(() => clearTimeout(timer))
  if (late) throw new Failure('timeout', `${name} gave no answer within ${Math.round(within)} ms`)
  return { code, output, errors }
}

/** Who runs for whom: by it the runner finds what left our group. */
function ours(): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(environment()).filter(([name]) => name.startsWith('HOLDFAST_')))
}

function causeOf(name: string, error: Error): string {
  const code = 'code' in error ? error.code : ''
  if (code === 'ENOENT') return `${name} is not installed`
  return code === 'EACCES' ? `${name} may not be run` : `${name}: ${error.message}`
}
