// The product's own words, read from its text: each reason to hold, each kind of proof, each outcome, each moment of an incident, each
// refusal at the edge. A word that no searched schedule ever brought about is a finding: it is dead, or the search is blind there.
import { readFileSync } from 'node:fs'

/** Words as runs mark them: `hold blind`, `proof off`, `outcome Void`, `moment freed`, `refused the node is heard again`. */
export function productWords(): readonly string[] {
  const incident = text('core/incident.ts')
  return [
    ...union(incident, 'HoldReason').map((word) => `hold ${word}`),
    ...union(incident, 'ProofKind').map((word) => `proof ${word}`),
    ...union(incident, 'Outcome').map((word) => `outcome ${word}`),
    ...moments(text('core/timeline.ts')).map((word) => `moment ${word}`),
    ...refusals(text('coordinator/order.ts')).map((word) => `refused ${word}`),
  ]
}

/** Of a line that the product logged. Many a line has a `because`; a refusal of the edge, and a hold, are each one line alone. */
export function markOf({ level, message, because }: Readonly<Record<string, unknown>>): string | undefined {
  if (message === 'order not given') return `refused ${String(because)}`
  if (message === 'held') return `hold ${String(because)}`
  return level === 'warn' || level === 'error' ? `said ${String(message)}` : undefined
}

/** What no mark of a search tells of. */
export function neverReached(words: readonly string[], marks: ReadonlySet<string>): readonly string[] {
  return words.filter((word) => !marks.has(word))
}

function text(file: string): string {
  return readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
}

/** The members of a union of literal words. */
export function union(source: string, name: string): readonly string[] {
  const [, members = ''] = new RegExp(`export type ${name} =([^;]*?)\\n(?:\\n|export|/\\*\\*|const|interface)`, 's').exec(`${source}\n\n`) ?? []
  const words = [...members.replaceAll(/\/\*\*.*?\*\//gs, '').matchAll(/'([^']+)'/g)].map(([, word = '']) => word)
  if (words.length === 0) throw new Error(`no words of ${name} are found`)
  return words
}

/** The third argument of each `tell(status, at, 'what', …)`; one that is made of parts is not a word. */
function moments(source: string): readonly string[] {
  return [...new Set([...source.matchAll(/\bat,\s*'([^']+)',/g), ...source.matchAll(/startedAt, '([^']+)',/g)].map(([, word = '']) => word))]
}

/** The sentences that keep an order from being given after it was written down. */
function refusals(source: string): readonly string[] {
  const [, body = ''] = /function refuted\(.*?\n(.*?)\n {2}\}/s.exec(source) ?? []
  return [...body.matchAll(/(?:return|\?) '([^']+)'/g)].map(([, word = '']) => word)
}
