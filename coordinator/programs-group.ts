// What is left of a run. `kill(-pid, 0)` alone is not the answer: it says "alive" of zombies that a slow init has not
// reaped, and it does not see a process that made a session of its own (programs that drive ssh through a terminal do).
// So on Linux the processes that are new since the run began are looked at: members of the group, and carriers of its mark.
import { readdir, readFile } from 'node:fs/promises'
import { kill, platform } from 'node:process'

export interface Group {
  readonly pid: number
  /** Processes outside the group that carry the run's mark, as last seen. */
  readonly strays: Set<number>
  empty(): Promise<boolean>
}

export function groupOf(pid: number, mark: string, before: ReadonlySet<number> | undefined): Group {
  const strays = new Set<number>()
  return {
    pid,
    strays,
    async empty() {
      strays.clear()
      const now = await pidsNow()
      if (before === undefined || now === undefined) return !answers(-pid)
      for (const other of now) {
        if (before.has(other) && other !== pid) continue
        const seen = await processSeen(other)
        if (seen === undefined || seen.state === 'Z' || seen.state === 'X') continue
        if (seen.group === pid) return false
        if (await carries(other, mark)) strays.add(other)
      }
      return strays.size === 0
    },
  }
}

export function signalGroup(group: Group, signal: 'SIGTERM' | 'SIGKILL'): void {
  for (const pid of [-group.pid, ...group.strays]) {
    try {
      kill(pid, signal)
    } catch {
      // Gone already, or not ours to signal: whether anything is left is asked again by whoever sent this.
    }
  }
}

/** Undefined where there is no /proc to look at. */
export async function pidsNow(): Promise<ReadonlySet<number> | undefined> {
  if (platform !== 'linux') return undefined
  try {
    return new Set((await readdir('/proc')).map(Number).filter((pid) => pid > 0))
  } catch {
    return undefined // no /proc here: the group is asked with signal 0 instead
  }
}

function answers(pid: number): boolean {
  try {
    kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: it is there, and not ours to signal. Only "no such process" means gone.
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH')
  }
}

async function processSeen(pid: number): Promise<{ state: string; group: number } | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
    // The name stands in brackets and may hold anything, brackets and blanks too: fields count from the last one.
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { state: state ?? '', group: Number(group) }
  } catch {
    return undefined // it ended between the listing and the look
  }
}

async function carries(pid: number, mark: string): Promise<boolean> {
  try {
    return (await readFile(`/proc/${pid}/environ`, 'utf8')).split('\0').includes(`HOLDFAST_RUN=${mark}`)
  } catch {
    return false // ended meanwhile, or another user's, which a program without rights of its own cannot have made
  }
}
