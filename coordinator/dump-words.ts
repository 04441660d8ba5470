// Crash kernels' words as they come, gathered for a moment. Anybody who reaches the port can send them, thousands a second and from any address,
// and to find whose address it is takes a look over all nodes: that is made once for all words of the moment, and each keeps its own instant,
// since what counts is whether it came after the last beat.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'

export interface DumpWords {
  from(address: string): void
  stop(): void
}

const gatheredFor: Ms = 200
/** A crash kernel speaks every ten seconds: what finds no room is sent again. */
const addressesAtMost = 10_000

export function gatherDumpWords(clock: Pick<Clock, 'now' | 'after'>, heard: (words: ReadonlyMap<string, Ms>) => void): DumpWords {
  let words = new Map<string, Ms>()
  let cancel: (() => void) | undefined

  return {
    from(address) {
      if (words.size === 0) cancel = clock.after(gatheredFor, flush)
      if (words.has(address) || words.size < addressesAtMost) words.set(address, clock.now())
    },
    stop: () => cancel?.(),
  }

  function flush(): void {
    const all = words
    words = new Map()
    heard(all)
  }
}
