// The storage network: ports through which machines reach their disks. A machine whose last port is shut goes on running; what it
// writes does not arrive, and it can mount nothing. To the devices that shut ports it is what feeds are to those that switch power.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Feeds } from './device.ts'
import type { Machine } from './machine.ts'

export interface Fabric extends Feeds {
  /** Whether what this node sends arrives. */
  reaches(node: string): boolean
  /** Whether nothing of it did in all that span. */
  shutThroughout(node: string, from: Ms, until: Ms): boolean
}

interface Span {
  readonly from: Ms
  until: Ms
}

export function createFabric(clock: Pick<Clock, 'now'>): Fabric {
  const ports = new Map<Machine, Map<string, boolean>>()
  const shut = new Map<string, Span[]>()
  const live = (machine: Machine): boolean => [...(ports.get(machine)?.values() ?? [true])].includes(true)
  const reaches = (node: string): boolean => (shut.get(node)?.at(-1)?.until ?? 0) < Infinity

  return {
    live, reaches,
    set(machine, port, to) {
      const own = ports.get(machine) ?? new Map<string, boolean>()
      if (to === undefined) own.delete(port)
      else own.set(port, to)
      if (own.size === 0) ports.delete(machine)
      else ports.set(machine, own)
      if (live(machine) === reaches(machine.name)) return
      const spans = shut.get(machine.name) ?? []
      const last = spans.at(-1)
      if (last?.until === Infinity) last.until = clock.now()
      else spans.push({ from: clock.now(), until: Infinity })
      shut.set(machine.name, spans)
    },
    shutThroughout: (node, from, until) => shut.get(node)?.some((span) => span.from <= from && span.until >= until) === true,
    follow: () => undefined,
    mains: () => undefined,
    hasMains: () => true,
  }
}
