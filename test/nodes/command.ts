// A program of this computer, run to its end: what it printed, or an error with all it said.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const usualDeadline = 60_000

export async function command(program: string, words: readonly string[], deadline = usualDeadline): Promise<string> {
  try {
    return (await promisify(execFile)(program, words, { encoding: 'utf8', timeout: deadline, killSignal: 'SIGKILL', maxBuffer: 64 * 1024 * 1024 })).stdout
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error && 'stdout' in error ? `${String(error.stdout)}\n${String(error.stderr)}`.trim() : ''
    throw new Error(`${program} ${words.join(' ')}: ${said === '' ? String(error) : said}`, { cause: error })
  }
}
