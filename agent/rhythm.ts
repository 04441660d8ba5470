// A fixed rhythm by the clock: slot after slot, never two runs close together after a stall, and no drift.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'

/** Runs at `phase`, `phase + every`, ... from now on, until the signal aborts. A slot that was missed is not made up for. */
export function keepRhythm(clock: Clock, every: Ms, phase: Ms, signal: AbortSignal, run: () => void): void {
  const first = clock.now() + phase
  let cancel = clock.after(phase, turn)
  signal.addEventListener('abort', () => cancel(), { once: true })

  function turn(): void {
    if (signal.aborted) return
    run()
    cancel = clock.after(untilNext(clock.now() - first, every), turn)
  }
}

/** To the next slot; to the one after it where the next is less than a quarter of the rhythm away. */
export function untilNext(since: Ms, every: Ms): Ms {
  const left = every - (since % every)
  return left < every / 4 ? left + every : left
}
