// How many pods may be freed now: a burst, then so many a minute. A whole rack is not freed in one breath, because the
// nodes that take its pods must start them.
import type { Clock } from '../edge/clock.ts'
import { allowance, type Allowance } from './allowance.ts'

export type PodRate = Allowance

export const podRate = (clock: Clock): PodRate => allowance(clock, { burst: 150, perMinute: 300 })
