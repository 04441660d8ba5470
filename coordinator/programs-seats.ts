// So many programs at once and no more. Who comes first is seated first; nobody waits longer than its own deadline.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'

export interface Seats {
  take(within: Ms, signal: AbortSignal): Promise<{ give(): void } | { readonly refused: string }>
}

/** More than this waiting means that something starts programs without end. */
const longestQueue = 1_024

export function seats(width: number, clock: Clock): Seats {
  let taken = 0
  const waiting: (() => void)[] = []
  const seat = () => {
    let given = false
    return {
      give() {
        if (given) return
        given = true
        const next = waiting.shift()
        if (next === undefined) taken -= 1
        else next()
      },
    }
  }
  return {
    async take(within, signal) {
      if (signal.aborted) return { refused: 'it was ended before it began' }
      if (taken < width) {
        taken += 1
        return seat()
      }
      if (waiting.length >= longestQueue) return { refused: `${waiting.length} programs are waiting already` }
      const patience = new AbortController()
      let called = false
      const call = () => {
        called = true
        patience.abort()
      }
      waiting.push(call)
      await clock.wait(within, AbortSignal.any([patience.signal, signal]))
      if (called && !signal.aborted) return seat()
      if (called) seat().give()
      else waiting.splice(waiting.indexOf(call), 1)
      return { refused: signal.aborted ? 'it was ended before it began' : `${width} programs were running all the while` }
    },
  }
}
