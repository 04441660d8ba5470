// The product's own words, read from its text: each reason to hold, each kind of proof, each outcome, each turn of an incident from one
// phase to the next, each moment of it, each refusal at the edge. A word that no searched schedule ever brought about is a finding: it
// is dead, or the search is blind there.
import { readFileSync } from 'node:fs'

/** What is logged where the edge refuses what was decided, how marks tell of it, and the functions that answer with the reason. */
const refusals: Readonly<Record<string, { readonly mark: string; readonly of: readonly (readonly [file: string, name: string])[] }>> = {
  'order not given': { mark: 'refused', of: [['coordinator/order.ts', 'refuted'], ['core/drill-fit.ts', 'undrained']] },
  'nothing more is freed': { mark: 'not freed:', of: [['coordinator/free.ts', 'refuted']] },
  'out-of-service not set': { mark: 'not set:', of: [['coordinator/taint.ts', 'taint']] },
  'nothing is written on an incident': { mark: 'not written:', of: [['coordinator/incident.ts', 'refuted']] },
  'permit not taken back': { mark: 'permit stays:', of: [['core/self-fence.ts', 'unfenceable'], ['core/self-fence.ts', 'unusable'], ['coordinator/deed.ts', 'revoke']] },
}

/** The automaton: what may be written over what. *Final* is final. */
const turns = [
  'New', 'New to Running', 'New to Done', 'New to Final', 'Running to Done', 'Running to Error', 'Running to Final',
  'Error to Running', 'Error to Done', 'Error to Final', 'Done to Final',
] as const

/** Of what is made of parts each part has these words; the reasons of holds are words of their own. */
const parts: Readonly<Record<string, readonly string[]>> = { 'attempt.action': ['off', 'on'], 'one.because': [] }

/** Words as runs mark them: `hold blind`, `proof off`, `outcome Void`, `phase New to Running`, `moment freed`, `refused the node is heard again`. */
export function productWords(): readonly string[] {
  const incident = text('core/incident.ts')
  return [...new Set([
    ...union(incident, 'HoldReason').map((word) => `hold ${word}`),
    ...union(incident, 'ProofKind').map((word) => `proof ${word}`),
    ...union(incident, 'Outcome').map((word) => `outcome ${word}`),
    ...turns.map((turn) => `phase ${turn}`),
    ...moments(text('core/timeline.ts')).map((word) => `moment ${word}`),
    ...Object.values(refusals).flatMap(({ mark, of }) => reasons(of).map((word) => `${mark} ${word}`)),
  ])]
}

/** Of a line that the product logged. Many a line has a `because`; a refusal of the edge, and a hold, are each one line alone. */
export function markOf({ level, message, because }: Readonly<Record<string, unknown>>): string | undefined {
  if (message === 'held') return `hold ${String(because)}`
  const refusal = refusals[String(message)]
  if (refusal !== undefined) return `${refusal.mark} ${unnamed(String(because))}`
  return level === 'warn' || level === 'error' ? `said ${String(message)}` : undefined
}

/** A sentence that names a pod or a volume is the same one whichever it names. */
function unnamed(sentence: string): string {
  return sentence.replace(/^\S+(?= is (?:on|attached to) the node still: )/, '…')
}

/** What is told of a search at its end. One that is shorter had no time to reach what is rare: of that it is told only to whoever asked. */
export function findings({ seeds, marks, asked }: { readonly seeds: number; readonly marks: Iterable<string>; readonly asked: boolean }): readonly string[] {
  return seeds >= enough || asked ? neverReached(productWords(), new Set(marks)) : []
}

const enough = 10_000

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

/** The third argument of each `tell(status, at, 'what', …)`, each that stands for one there, and of one that is made of parts every making. */
export function moments(source: string): readonly string[] {
  const whole = [...source.matchAll(/\b(?:at|startedAt),\s*'([^']+)',/g)].map(([, word = '']) => word)
  const chosen = [...source.matchAll(/\bconst what = (.*)/g)].flatMap(([, choice = '']) => quoted(choice))
  const made = [...source.matchAll(/\b(?:at|startedAt),\s*`([^`]+)`,/g)].flatMap(([, template = '']) => makings(template))
  return [...new Set([...whole, ...chosen, ...made])]
}

function makings(template: string): readonly string[] {
  const [, before = '', part = '', after = ''] = /^(.*?)\$\{(.*?)\}(.*)$/.exec(template) ?? []
  const words = parts[part]
  if (words === undefined) throw new Error(`nobody knows what stands in ${template}`)
  return words.map((word) => `${before}${word}${after}`)
}

/** The sentences that each of the functions answers with, or tells of. */
function reasons(of: readonly (readonly [file: string, name: string])[]): readonly string[] {
  return of.flatMap(([file, name]) => sentences(text(file), name, file))
}

export function sentences(source: string, name: string, file: string): readonly string[] {
  const [, , body = ''] = new RegExp(`\\n( *)(?:export |async )*function ${name}\\(.*?\\n(.*?)\\n\\1\\}`, 's').exec(source) ?? []
  const written = [...body.matchAll(/(?:return|\?|:|because: why \?\?) (?:'([^']+)'|`([^`]+)`)/g)].map(([, plain, made = '']) => plain ?? made.replaceAll(/\$\{.*\}/g, '…'))
  const called = [...body.matchAll(/return (\w+)$/gm)].flatMap(([, word = '']) => quoted(new RegExp(`const ${word} = (.*)`).exec(source)?.[1] ?? ''))
  const all = [...called, ...written].filter((sentence) => sentence.includes(' '))
  if (all.length === 0) throw new Error(`${file} has no sentences of ${name}`)
  return all
}

function quoted(code: string): readonly string[] {
  return [...code.matchAll(/'([^']+)'/g)].map(([, word = '']) => word)
}
