// One program of the control plane as a child process that cannot outlive us. The kernel kills it when we die,
// however we die (prctl PR_SET_PDEATHSIG, by setpriv of util-linux), since a test run that was SIGKILLed can
// clean up nothing itself.
//
// The death signal is bound to the thread that started the child: start components from the main thread, or
// they end with the worker that did.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'

export type Program = Readonly<{ name: string; file: string; args: readonly string[]; logFile: string }>

export type Component = Readonly<{
  name: string
  pid: number
  /** Settled once the process is gone, with how it went, such as `exit code 1`. */
  ended: Promise<string>
  /** Why it is no longer running, or undefined while it is. */
  end(): string | undefined
  /** The last lines it wrote, for the message that says why something failed. */
  lastWords(): string
  stop(): Promise<void>
  /** Without a chance to say goodbye. */
  crash(): Promise<void>
}>

export async function startComponent(program: Program): Promise<Component> {
  const child = await spawnTied(program)
  let end: string | undefined
  const ended = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => {
      end = signal === null ? `exit code ${code}` : `signal ${signal}`
      resolve(end)
    })
  })
  assert(child.pid !== undefined, 'a spawned child has a pid')
  return {
    name: program.name,
    pid: child.pid,
    ended,
    end: () => end,
    lastWords: () => lastLines(program.logFile),
    stop: () => stop(child, ended),
    crash: () => crash(child, ended),
  }
}

// setpriv asks for the signal and becomes sh, sh looks whether we died before the asking and becomes the program:
// so the pid is the program's own, and there is no moment in which our death goes unnoticed.
const TIE = '[ "$PPID" = "$0" ] && exec "$@"'

async function spawnTied(program: Program): Promise<ChildProcess> {
  // Appended to, so that the apiserver's second life does not wipe out what its first had to say.
  const log = openSync(program.logFile, 'a')
  const args = ['--pdeathsig', 'KILL', 'sh', '-c', TIE, String(process.pid), program.file, ...program.args]
  // A session of its own, so that Ctrl-C reaches us alone and we decide the order in which things stop.
  const child = spawn('setpriv', args, { stdio: ['ignore', log, log], detached: true })
  closeSync(log)
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', (cause) => {
      reject(new Error(`cannot start ${program.name}: setpriv (util-linux) does not run here`, { cause }))
    })
  })
  return child
}

// The apiserver takes up to some seconds to finish requests. Ten are enough on a busy machine; what needs more
// hangs, and nothing of value is lost by killing it.
const PATIENCE_MS = 10_000

async function stop(child: ChildProcess, ended: Promise<string>): Promise<void> {
  // A no-op on a child that has already ended: Node knows, and does not signal a pid that may be someone else's.
  child.kill('SIGTERM')
  const impatience = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)
  await ended
  clearTimeout(impatience)
}

async function crash(child: ChildProcess, ended: Promise<string>): Promise<void> {
  child.kill('SIGKILL')
  await ended
}

function lastLines(file: string): string {
  return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-15).join('\n')
}
