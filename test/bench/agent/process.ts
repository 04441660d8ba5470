// What the kernel says of a process: the memory that it has, and the processor time that it took.
import { readdirSync, readFileSync } from 'node:fs'

export interface Usage {
  readonly rssMiB: number
  readonly rssAnonMiB: number
  /** Of its own, and of its children that have ended. */
  readonly ownMs: number
  readonly childrenMs: number
}

/** What the kernel counts processor time in. */
const tickMs = 10

export function usageOf(pid: number): Usage {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const [user = 0, system = 0, childrenUser = 0, childrenSystem = 0] = fieldsOf(pid).slice(11, 15).map(Number)
  return { rssMiB: memory(status, 'VmRSS'), rssAnonMiB: memory(status, 'RssAnon'), ownMs: (user + system) * tickMs, childrenMs: (childrenUser + childrenSystem) * tickMs }
}

/** Wall time, to the hundredth of a second. */
export function startedAt(pid: number): number {
  const up = Number.parseFloat(readFileSync('/proc/uptime', 'utf8'))
  return Date.now() - (up * 1_000 - Number(fieldsOf(pid)[19]) * tickMs)
}

export function childrenOf(pid: number): readonly number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter((word) => word !== '').map(Number)
}

/** The agent's, which is told the name of its node. */
export function agentOf(node: string): number | undefined {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number).find((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes('/holdfast/agent.mjs') && readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`HOLDFAST_NODE=${node}`)
    } catch {
      return false // it has just ended
    }
  })
}

/** Behind the name, which may hold anything; the first is the state. */
function fieldsOf(pid: number): readonly string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

function memory(status: string, field: string): number {
  const [, kib] = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status) ?? []
  return Math.round(Number(kib) / 1_024 * 10) / 10
}
