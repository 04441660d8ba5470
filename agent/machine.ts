// Which machine this is and which boot of it, from the kernel's own files.
import { bootOf, type Boot, type Ms } from '../core/model.ts'
import type { AgentHost } from './host.ts'

export interface Machine {
  readonly boot: Boot
  /** product_uuid, as kubelet reports it too; empty where the machine has none or it is not ours to read. */
  readonly id: string
  /** How long the machine has run. */
  uptime(now: Ms): Ms
}

/** /proc counts time in ticks of a hundredth of a second on every Linux, whatever the kernel's own rate. */
const tick: Ms = 10

/** Undefined while the boot cannot be read: an agent that does not know its boot must not be heard. */
export async function readMachine(host: Pick<AgentHost, 'read' | 'clock'>): Promise<Machine | undefined> {
  const [bootId, stat, uptime, machine] = await Promise.all([host.read('boot-id'), host.read('pid-1-stat'), host.read('uptime'), host.read('machine')])
  const readAt = host.clock.now()
  const id = bootId?.trim() ?? ''
  const start = stat === undefined ? undefined : startOf(stat)
  if (!/^[0-9a-fA-F-]{8,64}$/.test(id) || start === undefined) return undefined
  // The kernel's uptime counts from the kernel's boot; a machine in a container is younger by its pid 1's start.
  const kernelRan = Number.parseFloat(uptime ?? '') * 1_000
  const ran = Number.isFinite(kernelRan) ? kernelRan - start * tick : 0
  return { boot: bootOf(id, String(start)), id: (machine ?? '').trim().slice(0, 256), uptime: (now) => ran + (now - readAt) }
}

/** Field 22 of a stat file. The second field is the program's name in brackets and may hold spaces and brackets itself. */
export function startOf(stat: string): number | undefined {
  const fields = stat.slice(stat.lastIndexOf(')') + 1).trim().split(/\s+/)
  const start = fields[22 - 3]
  return start !== undefined && /^\d{1,19}$/.test(start) ? Number(start) : undefined
}
