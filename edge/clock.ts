// The one way to know the time and to wait. Everything that waits takes a Clock from its host, so that the simulation
// owns time: a real timer anywhere else would make a simulated run depend on the machine it runs on.
import type { Ms } from '../core/model.ts'

export interface Clock {
  /** Monotonic. Decisions use this and nothing else. */
  now(): Ms
  /** Milliseconds since the epoch, for people and for records. Never compared with another machine's. */
  wall(): number
  /** Resolves when the span is over or the signal aborts, whichever is first. Never rejects. */
  wait(span: Ms, signal?: AbortSignal): Promise<void>
  /** Runs once after the span; the answer cancels it. */
  after(span: Ms, run: () => void): () => void
}

export const machineClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  wait: (span, signal) => waitOn(machineClock, span, signal),
  after(span, run) {
    const timer = setTimeout(run, Math.max(0, span)) // an instant that has just passed is now
    return () => clearTimeout(timer)
  },
}

/** `wait` in terms of `after`: the same for every clock. */
export function waitOn(clock: Pick<Clock, 'after'>, span: Ms, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const done = () => {
      cancel()
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const cancel = clock.after(span, done)
    signal?.addEventListener('abort', done, { once: true })
  })
}

/** Said when nobody waits any more. One for all: an abort without a reason makes an exception with a stack each time, which costs
 *  more than the rest of a short call, and nobody reads it. */
const over = new Error('nobody waits for it any more')

/** The promise's value, or `late` when the deadline comes first. The loser is left to end by itself: abort it through
 *  the signal that `start` receives. */
export async function withDeadline<T, L>(
  clock: Clock, span: Ms, late: L, start: (signal: AbortSignal) => Promise<T>,
): Promise<T | L> {
  const stop = new AbortController()
  let cancel: (() => void) | undefined
  let lapsed = false
  try {
    const work = start(stop.signal)
    work.catch(() => undefined) // a loser's rejection after the deadline is nobody's news
    return await new Promise<T | L>((resolve, reject) => {
      work.then(resolve, reject)
      cancel = clock.after(span, () => {
        lapsed = true
        resolve(late)
      })
    })
  } finally {
    cancel?.()
    // What has ended by itself needs no end.
    if (lapsed) stop.abort(over)
  }
}
