// What an agent that is told to end says of it: an upgrade and a shutdown send it the same signal. Kubelet writes down when its own orderly shutdown began, where one is
// configured; systemd closes the door to people's logins as it goes down, and keeps what was planned. Where none of them tells, it counts as a restart.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Goodbye } from '../core/beat.ts'
import type { Ms } from '../core/model.ts'
import { machineClock, withDeadline } from '../edge/clock.ts'

const readWithin: Ms = 500

/** `run`: the host's, which a boot begins without anything of the one before. */
export async function whyItEnds({ kubeletRoot, proc, run }: { readonly kubeletRoot: string; readonly proc: string; readonly run: string }): Promise<Goodbye> {
  const files = [join(kubeletRoot, 'graceful_node_shutdown_state'), join(proc, 'stat'), join(run, 'nologin'), join(run, 'systemd/shutdown/scheduled')]
  // A disk that hangs must not cost it its goodbye.
  const [state = '', stat = '', nologin = '', planned = ''] = await Promise.all(files.map((path) => withDeadline(machineClock, readWithin, '', () => readFile(path, 'utf8').catch(() => ''))))
  if (!began(state, stat) && !closed(nologin)) return 'restart'
  return comesBack(planned) ? 'reboot' : 'shutdown'
}

/** In this boot: kubelet leaves the file where it is. Both times are this machine's own. */
export function began(state: string, procStat: string): boolean {
  const [, booted] = /^btime (\d+)$/m.exec(procStat) ?? []
  if (booted === undefined) return false
  try {
    const value: unknown = JSON.parse(state)
    if (typeof value !== 'object' || value === null || !('startTime' in value) || typeof value.startTime !== 'string') return false
    return Date.parse(value.startTime) >= Number(booted) * 1_000
  } catch {
    return false // none, or one that is being written: said to be a restart, and a silence after it is judged like every other
  }
}

/** The same file keeps people out while a system comes up, and while an administrator wants it so: other words stand in it then. */
function closed(nologin: string): boolean {
  return nologin.startsWith('System is going down.')
}

/** A shutdown that nobody planned ahead leaves no such file, and is said to be one for good: its devices are asked sooner, and say on. */
function comesBack(planned: string): boolean {
  return /^MODE=(?:reboot|kexec|soft-reboot)$/m.test(planned)
}
