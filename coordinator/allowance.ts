// How much of something may be done now: a burst, then so much a minute.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'

export interface Allowance {
  available(): number
  /** Takes up to so many, and says how many. */
  take(wanted: number): number
  /** So many were taken and not used. */
  giveBack(unused: number): void
}

export function allowance(clock: Clock, { burst, perMinute }: { readonly burst: number; readonly perMinute: number }): Allowance {
  let tokens = burst
  let countedAt: Ms = clock.now()
  const fill = (): void => {
    const now = clock.now()
    tokens = Math.min(burst, tokens + ((now - countedAt) * perMinute) / 60_000)
    countedAt = now
  }
  return {
    available() {
      fill()
      return Math.floor(tokens)
    },
    take(wanted) {
      fill()
      const taken = Math.min(wanted, Math.floor(tokens))
      tokens -= taken
      return taken
    },
    giveBack(unused) {
      tokens = Math.min(burst, tokens + unused)
    },
  }
}
