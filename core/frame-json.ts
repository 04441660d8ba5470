// Words that are JSON on the wire, read field by field. A word with one field that is not as it should be is garbage, with the first fault
// as its reason; a word that this version does not know is ignored, and so are fields that it does not know.

/** Of what is not whole yet a link keeps so much, and a replica has five thousand links. A full list of leftovers must fit. */
export const frameLimit = 65_536

export type Read<W> = { readonly word: W } | { readonly unknown: string } | { readonly garbage: string }

/** What a JSON word holds, and the first thing found wrong with it. */
export interface Fields {
  readonly of: Readonly<Record<string, unknown>>
  fault?: string
}

export function readJson<W>(frame: Uint8Array, wordOf: (say: string, fields: Fields) => W | undefined, limit = frameLimit): Read<W> {
  if (frame.length > limit) return { garbage: `a frame of ${frame.length} bytes, the limit is ${limit}` }
  if (frame.length === 0) return { garbage: 'an empty frame' }
  if (frame[0] !== brace) return { unknown: `kind ${frame[0]}` }
  const parsed = parsedJson(frame)
  if (parsed === undefined) return { garbage: 'neither a known kind nor JSON' }
  const fields: Fields = { of: parsed }
  const say = text(fields, 'say')
  const word = fields.fault === undefined ? wordOf(say, fields) : undefined
  if (fields.fault !== undefined) return { garbage: `${say === '' ? 'word' : say}: ${fields.fault}` }
  return word === undefined ? { unknown: say } : { word }
}

function parsedJson(frame: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  const json = decoded(frame)
  if (json === undefined) return undefined
  try {
    const value: unknown = JSON.parse(json)
    return isFields(value) ? value : undefined
  } catch {
    return undefined // the caller says that it is garbage
  }
}

export function decoded(bytes: Uint8Array): string | undefined {
  try {
    return strictUtf8.decode(bytes)
  } catch {
    return undefined // the caller says that it is garbage
  }
}

export function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function text(fields: Fields, name: string, most = 256): string {
  const value = fields.of[name]
  return typeof value === 'string' && value.length <= most ? value : wrong(fields, name, `a text of at most ${most} characters`, '')
}

export function maybeText<N extends string>(fields: Fields, name: N): { readonly [K in N]?: string } {
  // A computed key loses its name to the compiler; it is the one given.
  return fields.of[name] === undefined ? {} : { [name]: text(fields, name) } as { readonly [K in N]?: string }
}

export function flag(fields: Fields, name: string): boolean {
  const value = fields.of[name]
  return typeof value === 'boolean' ? value : wrong(fields, name, 'yes or no', false)
}

export function whole(fields: Fields, name: string, most = Number.MAX_SAFE_INTEGER): number {
  const value = fields.of[name]
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= most ? value : wrong(fields, name, `a whole number up to ${most}`, 0)
}

export function maybeWhole<N extends string>(fields: Fields, name: N, most?: number): { readonly [K in N]?: number } {
  // A computed key loses its name to the compiler; it is the one given.
  return fields.of[name] === undefined ? {} : { [name]: whole(fields, name, most) } as { readonly [K in N]?: number }
}

export function oneOf<const T extends string>(fields: Fields, name: string, words: readonly [T, ...T[]]): T {
  return words.find((word) => word === fields.of[name]) ?? wrong(fields, name, `one of ${words.join(', ')}`, words[0])
}

/** A word that this version does not know is as good as the one that promises least: what was said before it must not stand. */
export function oneOfOr<const T extends string>(fields: Fields, name: string, words: readonly T[], least: T): T {
  const said = text(fields, name, 64)
  return words.find((word) => word === said) ?? least
}

/** A word that this version does not know is as good as none. */
export function maybeOneOf<N extends string, const T extends string>(fields: Fields, name: N, words: readonly T[]): { readonly [K in N]?: T } {
  const word = words.find((one) => one === fields.of[name])
  // A computed key loses its name to the compiler; it is the one given.
  return word === undefined ? {} : { [name]: word } as { readonly [K in N]?: T }
}

export function list(fields: Fields, name: string, most: number): readonly unknown[] {
  const value = fields.of[name]
  return Array.isArray(value) && value.length <= most ? value : wrong(fields, name, `a list of at most ${most}`, [])
}

export function version(fields: Fields): 1 {
  return fields.of['version'] === 1 ? 1 : wrong(fields, 'version', '1', 1)
}

/** The stand-in is never seen: a word with a fault is garbage. */
export function wrong<T>(fields: Fields, name: string, wanted: string, standIn: T): T {
  fields.fault ??= `${name} is not ${wanted}`
  return standIn
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true })
const brace = 0x7b
