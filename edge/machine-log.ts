// The log of a process, on its standard output. Who takes the lines is somebody else's program (a container runtime reads them from a pipe), and one that hangs, or whose disk
// does, takes none: that is the very hour in which there is much to say. So nobody waits for a line to be taken. What is not taken is kept up to a limit, what
// comes beyond is dropped, and how much that was is said as soon as lines are taken again.
import { Socket } from 'node:net'
import { fstatSync } from 'node:fs'
import pino from 'pino'
import type { Log } from './log.ts'

export function machineLog(level: string, base: object): Log {
  const log: Log = pino({ level, base: { ...base } }, isPipe(1) ? keptLines(1, (lines) => log.warn({ lines }, 'nobody took the log for a while: as many lines are missing here')) : pino.destination({ sync: true }))
  return log
}

/** More than a leader of five thousand nodes says at once. */
const mostKept = 1_048_576

export interface LineKeeper {
  write(line: string): void
}

/** `fd`: of a pipe or a socket. `missing`: so many lines were dropped, and the next one is taken. */
export function keptLines(fd: number, missing: (lines: number) => void, most = mostKept): LineKeeper {
  // A line is written before `write` returns where there is room for it, so that the last one of a process that ends at once is not lost.
  const pipe = new Socket({ fd, readable: false, writable: true })
  let dropped = 0
  pipe.unref()
  pipe.on('error', () => undefined) // nobody reads there any more, nor ever will
  pipe.on('drain', () => {
    const lines = dropped
    dropped = 0
    if (lines > 0) missing(lines)
  })
  return {
    write(line) {
      // Once there is a gap it grows until all before it is taken: it is told in its place.
      if (dropped > 0 || pipe.writableLength + line.length > most) dropped += 1
      else pipe.write(line)
    },
  }
}

/** All else (a file, a terminal) is written to as it comes. */
function isPipe(fd: number): boolean {
  const is = fstatSync(fd)
  return is.isFIFO() || is.isSocket()
}
