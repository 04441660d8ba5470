// The world's own record of what really happened. Judges and transcripts read it; nothing of the product can.
import type { Clock } from '../edge/clock.ts'

export interface Truth {
  note(what: string, facts?: Readonly<Record<string, unknown>>): void
  readonly entries: readonly TruthEntry[]
  /** One line an entry, for comparing two runs and for reading. */
  text(): string
  /** Told each entry as it is noted. */
  listen(ear: (entry: TruthEntry) => void): () => void
}

export interface TruthEntry {
  readonly at: number
  readonly what: string
  readonly facts: Readonly<Record<string, unknown>>
}

/** A world in real time runs for days; its oldest entries go. */
const limit = 200_000

export function createTruth(clock: Pick<Clock, 'now'>): Truth {
  const entries: TruthEntry[] = []
  const ears = new Set<(entry: TruthEntry) => void>()
  return {
    entries,
    note(what, facts = {}) {
      const entry = { at: clock.now(), what, facts }
      if (entries.length >= limit) entries.splice(0, limit / 10)
      entries.push(entry)
      for (const ear of ears) ear(entry)
    },
    text: () => entries.map(line).join('\n'),
    listen(ear) {
      ears.add(ear)
      return () => ears.delete(ear)
    },
  }
}

export function line({ at, what, facts }: TruthEntry): string {
  const words = Object.entries(facts).map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  return [(at / 1000).toFixed(4).padStart(10), what, ...words].join('  ')
}
