// The client-side rate limit: a bucket of tokens that fills by the clock. A coordinator gone wild must not be able to
// hurt the API server; a leader's renewal must not queue behind its own housekeeping (`force`).
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'

export interface Rate { readonly perSecond: number; readonly burst: number }

export interface Bucket {
  /** How long the taker must wait before it goes, its place in the queue taken. Undefined: longer than `within`, and no
   *  token was taken. */
  take(within: Ms): Ms | undefined
  /** Goes at once; what it takes is missing to those who come later. */
  force(): void
}

export function bucket(clock: Clock, rate: Rate): Bucket {
  const spacing = 1000 / rate.perSecond
  // One number says all: when the bucket would be full again. Full now means `burst` tokens; each taker moves it by one spacing.
  let fullAt = clock.now()
  const owed = () => Math.max(fullAt, clock.now()) - clock.now()
  const take = () => { fullAt = Math.max(fullAt, clock.now()) + spacing }
  return {
    take(within) {
      const wait = Math.max(0, owed() - (rate.burst - 1) * spacing)
      if (wait > within) return undefined
      take()
      return wait
    },
    force() {
      // Debts end somewhere: urgent calls are few by nature, and a bug there must not lock out everybody else for minutes.
      if (owed() < 2 * rate.burst * spacing) take()
    },
  }
}
