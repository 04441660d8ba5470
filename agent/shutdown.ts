// Whether this machine is shutting down, asked by an agent that is told to end: an upgrade and a shutdown send it the same signal. Kubelet
// writes down when its own orderly shutdown began, where one is configured; where it is not, nothing tells, and it counts as a restart.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

export async function shuttingDown({ kubeletRoot, proc }: { readonly kubeletRoot: string; readonly proc: string }): Promise<boolean> {
  const [state, stat] = await Promise.all([join(kubeletRoot, 'graceful_node_shutdown_state'), join(proc, 'stat')].map((path) => readFile(path, 'utf8').catch(() => '')))
  return began(state ?? '', stat ?? '')
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
