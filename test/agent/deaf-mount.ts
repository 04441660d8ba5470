// A file system that hangs as the real ones do, without a server: the kernel's own FUSE, of which nobody answers what it asks. On a block device its unmount
// hangs too, beyond SIGKILL, once it has said how it begins. When its end is closed, or this process ends, everything that waits for it is let go.
import { spawnSync } from 'node:child_process'
import { closeSync, openSync, readSync, writeSync } from 'node:fs'

export interface DeafMount {
  /** Whoever hangs at it goes on, with an error. */
  letGo(): void
}

/** `enter`: what brings a command into the mount namespace in which it is to be. `device`: a block device that it takes up. */
export function deafMount(enter: readonly string[], path: string, device?: string): DeafMount {
  const server = openSync('/dev/fuse', 'r+')
  const options = 'fd=3,rootmode=40000,user_id=0,group_id=0'
  const words = device === undefined ? ['-t', 'fuse', '-o', options, 'deaf', path] : ['-t', 'fuseblk', '-o', `${options},blksize=512`, device, path]
  const [program = '', ...input] = [...enter, 'mount', '--internal-only', ...words]
  const mounted = spawnSync(program, input, { stdio: ['ignore', 'pipe', 'pipe', server], encoding: 'utf8' })
  if (mounted.status !== 0) {
    closeSync(server)
    throw new Error(`${path}: ${mounted.stderr}`)
  }
  // What has not begun is let go of at once.
  if (device !== undefined) begin(server)
  return { letGo: () => closeSync(server) }
}

const longestQuestion = 1 << 17
const answerHead = 16
const initAnswer = 64

/** FUSE_INIT: length, error, the question's number, then the version that is spoken. */
function begin(server: number): void {
  const question = Buffer.alloc(longestQuestion)
  readSync(server, question)
  const answer = Buffer.alloc(answerHead + initAnswer)
  answer.writeUInt32LE(answer.length, 0)
  question.copy(answer, 8, 8, 16)
  answer.writeUInt32LE(7, 16)
  answer.writeUInt32LE(31, 20)
  answer.writeUInt32LE(4_096, 36)
  writeSync(server, answer)
}

/** Why there can be none here. */
export function noDeafMount(): string | undefined {
  try {
    closeSync(openSync('/dev/fuse', 'r+'))
    return undefined
  } catch (error) {
    return String(error)
  }
}
