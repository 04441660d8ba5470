// The words our kinds are written in: each field says what it is, what it may hold and how much of it, once. The same
// words are read by the parse below, and become the schema that the API server enforces (deploy/crd.ts).
import * as v from 'valibot'
import { longestDuration, readDuration, showDuration } from './schema-duration.ts'
import { join, shapeOf, strangers, type Fault, type Rule } from './schema-shape.ts'
import type { Ms } from '../core/model.ts'

export type Read<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly faults: readonly Fault[] }

/** A field that the schema does not know is a fault too: a misspelt brake would else be no brake. The API server prunes
 *  such fields before anybody sees them, but files and older or newer versions of ourselves do not. */
export function read<const Schema extends v.GenericSchema>(schema: Schema, value: unknown, path: string): Read<v.InferOutput<Schema>> {
  const parsed = v.safeParse(schema, value)
  const unknown = strangers(shapeOf(schema, path), value, path)
  const faults = [...(parsed.issues ?? []).map((issue) => faultOf(issue, path)), ...unknown]
  if (parsed.success && faults.length === 0) return { ok: true, value: parsed.output }
  return { ok: false, faults: onceEach(faults) }
}

/** `spec.profile: must be one of fast, balanced, conservative; is "quick"`, one line a fault. */
export function showFaults(faults: readonly Fault[]): string {
  return sentencesOf(faults).join('; ')
}

/** One for each, its path first. */
export function sentencesOf(faults: readonly Fault[]): readonly string[] {
  return faults.map((fault) => `${fault.path}: ${fault.says}`)
}

/** Marks a field as settled when the object is made. Only the API server sees the old object, so only it can check this. */
export const settled: Rule = { rule: 'self == oldSelf', message: 'cannot be changed after the object was made' }

export const ruled = (...all: readonly Rule[]): { readonly rules: readonly Rule[] } => ({ rules: all })

/** `satisfies Fields<T>`: a field that the core has and the schema has not would be refused by our own strict reading, and
 *  pruned by the API server before that. The compiler asks for it instead. */
export type Fields<T, More extends string = never> = Readonly<Record<keyof T | More, v.GenericSchema>>

/** A name or an id, kept letter by letter. */
export const text = (says: string, longest: number, shortest = 1) =>
  v.pipe(v.string(), v.minLength(shortest), v.maxLength(longest), v.description(says))

/** A sentence for people: what is too long is cut when we write it, rather than refused by the API server. */
export const prose = (says: string, longest = 1_024) =>
  v.pipe(v.string(), v.maxLength(longest), v.description(says), v.metadata({ prose: true }))

/** One of a few words, each with its meaning. `Record` makes the compiler ask for every word of the core's union. */
export function word<const Word extends string>(says: string, meanings: Readonly<Record<Word, string>>) {
  const words = Object.keys(meanings) as Word[] // the keys of the record are exactly its words
  const told = words.filter((one) => meanings[one] !== '').map((one) => `${one} = ${meanings[one]}`)
  return v.pipe(v.picklist(words), v.description(told.length === 0 ? says : `${says} ${told.join('; ')}.`))
}

export const whole = (says: string, least: number, most: number) =>
  v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(most), v.description(says))

export const flag = (says: string) => v.pipe(v.boolean(), v.description(says))

/** Wall time, for people. */
export const instant = (says: string) =>
  v.pipe(v.string(), v.maxLength(40), v.isoTimestamp('must be an RFC 3339 time such as 2026-01-31T12:00:00Z'), v.description(says))

/** Written as Kubernetes writes it (`90s`, `1h30m`), read as milliseconds. */
export const duration = (says: string, least: Ms, most: Ms = longestDuration) =>
  v.pipe(
    v.string(), v.maxLength(40),
    v.regex(/^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$/, 'must be a duration such as 90s, 10m or 1h30m'),
    v.transform(readDuration),
    v.minValue(least, `must be at least ${showDuration(least)}`), v.maxValue(most, `must be at most ${showDuration(most)}`),
    v.description(says),
    v.metadata(ruled({
      rule: `duration(self) >= duration('${showDuration(least)}') && duration(self) <= duration('${showDuration(most)}')`,
      message: `must be between ${showDuration(least)} and ${showDuration(most)}`,
    })),
  )

/** `keys`: what makes an item itself, so that writers of different items do not overwrite each other. */
export const list = <const Item extends v.GenericSchema>(says: string, item: Item, most: number, keys: readonly string[] = []) =>
  v.pipe(v.array(item), v.maxLength(most), v.description(says), v.metadata({ keys }))

export const labels = (says: string, most: number) =>
  v.pipe(
    v.record(v.string(), v.pipe(
      v.string(), v.maxLength(63), v.regex(/^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/, 'is not a label value'), v.description('The label\'s value.'),
    )),
    v.maxEntries(most), v.description(says),
  )

/** One sentence to the path; a length and a pattern that both fail are two. */
function onceEach(faults: readonly Fault[]): Fault[] {
  return [...new Map(faults.map((fault) => [`${fault.path} ${fault.says}`, fault])).values()]
}

function faultOf(issue: v.BaseIssue<unknown>, path: string): Fault {
  const at = (issue.path ?? []).reduce((sofar, item) => join(sofar, item.key), path)
  return { path: at, says: sentence(issue) }
}

const longestEcho = 60

function sentence(issue: v.BaseIssue<unknown>): string {
  const limit = String(issue.requirement)
  const is = issue.received.length <= longestEcho ? issue.received : `${issue.received.slice(0, longestEcho)}…`
  // Ours say all there is to say; valibot's are in its own words, and are told again in ours.
  if (!issue.message.startsWith('Invalid ')) return issue.message
  switch (issue.type) {
    case 'object': case 'record': case 'array': case 'string': case 'number': case 'boolean':
      return issue.input === undefined ? 'is missing' : `must be ${called[issue.type]}, is ${is}`
    case 'picklist': return issue.input === undefined ? 'is missing' : `must be one of ${words(issue.expected ?? '')}; is ${is}`
    case 'integer': return `must be a whole number, is ${is}`
    case 'min_value': return `must be at least ${limit}, is ${is}`
    case 'max_value': return `must be at most ${limit}, is ${is}`
    case 'min_length': return 'is empty'
    case 'max_length': return `has ${is} ${Array.isArray(issue.input) ? 'items' : 'characters'}, at most ${limit} are allowed`
    case 'max_entries': return `has ${is} entries, at most ${limit} are allowed`
    default: return issue.message
  }
}

const words = (expected: string): string => expected.replaceAll(/["()]/g, '').replaceAll(' | ', ', ')

const called = { object: 'an object', record: 'an object', array: 'a list', string: 'text', number: 'a number', boolean: 'true or false' } as const

export type { Fault, Rule }
