// What a device was read to say of one method, and when a run of such words counts.
import { isIsolation } from './isolation.ts'
import type { Method, Ms, NodeSeen, Reading } from './model.ts'

/** Two readings nearer than this could be one state of the device's cache. */
export const apart: Ms = 1_000

/** So long a machine may speak on after its device has said off: its supply holds it up for a moment, and a relay may let go a moment after
 *  its device says so. What answers within it may be what was struck. */
export const diesWithin: Ms = 1_000

/** Readings that are to be one sweep of a level lie within this span. */
export const sweepWithin: Ms = 15_000

export function readingsOf(node: NodeSeen, method: Method): readonly Reading[] {
  return node.readings.filter((reading) => reading.method === method.name && reading.digest === method.digest)
}

/** The latest reading, and the first of the unbroken run of offs before it, if they are `apart`. */
export function twoOffs(readings: readonly Reading[], since: Ms, now: Ms): Pair | undefined {
  const last = readings.at(-1)
  const first = firstOff(readings, since, now)
  return last === undefined || first === undefined || last.startedAt - first.endedAt < apart ? undefined : { first, last }
}

/** The first of the unbroken run of offs up to the latest reading, not older than one sweep. */
function firstOff(readings: readonly Reading[], since: Ms, now: Ms): Reading | undefined {
  let first: Reading | undefined
  for (const reading of readings.toReversed()) {
    if (reading.state !== 'off' || reading.startedAt < since || now - reading.endedAt > sweepWithin) break
    first = reading
  }
  return first
}

/** When every method of a level that switches the machine had said off once since then, with nothing else said after it. Undefined: no level has. */
export function saidOffAt(node: NodeSeen, since: Ms, now: Ms): Ms | undefined {
  for (const level of node.path.levels) {
    if (isIsolation(level)) continue
    const firsts = level.map((method) => firstOff(readingsOf(node, method), since, now)?.endedAt)
    if (level.length > 0 && firsts.every((at) => at !== undefined)) return Math.max(...firsts)
  }
  return undefined
}

export interface Pair {
  readonly first: Reading
  readonly last: Reading
}
