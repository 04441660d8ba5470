// How many pods may be freed now: a burst, then so many a minute. A whole rack is not freed in one breath, because the
// nodes that take its pods must start them.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'

export interface PodRate {
  available(): number
  /** Takes up to so many, and says how many. */
  take(wanted: number): number
  /** So many were taken and not freed. */
  giveBack(untouched: number): void
}

const burst = 150
const perMinute = 300

export function podRate(clock: Clock): PodRate {
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
    giveBack(untouched) {
      tokens = Math.min(burst, tokens + untouched)
    },
  }
}
