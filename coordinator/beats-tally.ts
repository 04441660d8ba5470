// How evenly beats come in, for whoever alerts on the network between nodes and replicas before a silence is long enough to be judged. It may be
// this replica that stood still: then the beats of all nodes are late at once.
import type { BeatSeen, Boot, Ms } from '../core/model.ts'
import { lapseFrom } from './beats-heard.ts'

/** `late`: came long after the one before it, and none is missing between. `lost`: never came. */
export interface Tally {
  late: number
  lost: number
}

const beatEvery: Ms = 1_000

/** Before the beat is taken. Agents number what they send, links or no links. */
export function tallyBeat(tally: Tally, row: { readonly seen: BeatSeen | undefined; count?: number }, boot: Boot, count: number, now: Ms): void {
  const { seen, count: before = count } = row
  row.count = count
  // The first one of a boot, after a goodbye, or of an agent that began anew follows none.
  if (seen === undefined || seen.boot !== boot || seen.goodbye !== undefined || count <= before) return
  const gap = now - seen.at
  // No more were sent than there were seconds: an agent that counts wrongly must not spoil the sum of all.
  const lost = Math.min(count - before - 1, Math.floor(gap / beatEvery))
  if (lost > 0) tally.lost += lost
  else if (gap >= lapseFrom) tally.late += 1
}
