// The rhythm of the world's workloads, which all write ten times a second: one timer for all of them, since a timer each would be a
// sixth of all that a simulated world does. Each still writes by itself, and only while it can: every write lands and is judged.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'

export interface Writers {
  /** Called ten times a second from now on, until the answer is called. */
  add(write: () => void): () => void
}

const writeEvery: Ms = 100

export function createWriters(clock: Pick<Clock, 'after'>): Writers {
  const writers = new Set<() => void>()
  let cancel: (() => void) | undefined
  const beat = (): void => {
    cancel = writers.size === 0 ? undefined : clock.after(writeEvery, beat)
    for (const write of writers) write()
  }
  return {
    add(write) {
      writers.add(write)
      cancel ??= clock.after(writeEvery, beat)
      return () => writers.delete(write)
    },
  }
}
