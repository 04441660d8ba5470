// A schema as plain data: what it allows, without how it is parsed. Whatever must know the fields of a kind (the strict
// reading, the cutting of long sentences, the generation of CRDs) walks this, so that there is one walk over valibot's own
// structures and one place that notices a word it does not know.
import type * as v from 'valibot'

/** One thing that is wrong, and where: `spec.brakes.stormPercent`, `must be at most 100, is 140`. */
export interface Fault {
  readonly path: string
  readonly says: string
}

/** A rule of the API server's own expression language. What it says must be checked by the parse as well. */
export interface Rule {
  readonly rule: string
  readonly message: string
  readonly fieldPath?: string
}

export type Shape = About & (ObjectShape | ListShape | MapShape | TextShape | WholeShape | { readonly is: 'flag' })

interface About {
  /** What `kubectl explain` prints. */
  readonly says: string
  readonly rules: readonly Rule[]
}

export interface ObjectShape {
  readonly is: 'object'
  readonly fields: ReadonlyMap<string, FieldShape>
}

export interface FieldShape {
  readonly shape: Shape
  readonly required: boolean
  readonly default?: unknown
}

export interface ListShape {
  readonly is: 'list'
  readonly item: Shape
  readonly most: number
  readonly keys: readonly string[]
}

export interface MapShape {
  readonly is: 'map'
  readonly value: Shape
  readonly most: number
}

export interface TextShape {
  readonly is: 'text'
  readonly shortest: number
  readonly longest: number
  readonly pattern?: string
  readonly format?: 'date-time'
  readonly words?: readonly string[]
  readonly prose: boolean
}

export interface WholeShape {
  readonly is: 'whole'
  readonly least: number
  readonly most: number
}

/** Throws where a field has no description or no limit, or uses a word that is not known here: that is a fault of ours,
 *  and it shows on the first reading, not in a cluster. */
export function shapeOf(schema: v.GenericSchema, path: string): Shape {
  const known = shapes.get(schema)
  if (known !== undefined) return known
  const shape = walk(viewOf(schema), path)
  shapes.set(schema, shape)
  return shape
}

const shapes = new WeakMap<v.GenericSchema, Shape>()

/** The fields of valibot's schemas and actions that are looked at here; each kind of schema has some of them. */
interface View {
  readonly kind: 'schema' | 'validation' | 'transformation' | 'metadata'
  readonly type: string
  readonly pipe?: readonly View[]
  readonly wrapped?: View
  readonly default?: unknown
  readonly entries?: Readonly<Record<string, View>>
  readonly item?: View
  readonly value?: View
  readonly options?: readonly string[]
  readonly requirement?: unknown
  readonly description?: string
  readonly metadata?: { readonly rules?: readonly Rule[]; readonly keys?: readonly string[]; readonly prose?: boolean }
}

// Every schema and action of valibot is a plain object; View names only optional fields beyond the two that all have.
const viewOf = (schema: v.GenericSchema): View => schema as unknown as View

function walk(view: View, path: string): Shape {
  const items = flat(view)
  const [base] = items
  if (base === undefined) throw new Error(`${path}: an empty pipe`)
  const turned = items.findIndex((item) => item.kind === 'transformation')
  // What is checked after a transformation is checked on what we make of the text, and has a rule beside it.
  const checks = (turned < 0 ? items : items.slice(0, turned)).filter((item) => item.kind === 'validation')
  const facts = Object.assign({}, ...items.map((item) => item.metadata ?? {})) as NonNullable<View['metadata']> // merged, all optional
  const about: About = {
    says: items.findLast((item) => item.type === 'description')?.description ?? '',
    rules: items.flatMap((item) => item.metadata?.rules ?? []),
  }
  if (about.says === '') throw new Error(`${path} has no description`)
  return { ...about, ...bodyOf(base, checks, facts, path) }
}

function flat(view: View): readonly View[] {
  if (view.pipe === undefined) return [view]
  const [first, ...rest] = view.pipe
  // The first item of a pipe may be a pipe; valibot's own copy of it points to the outer one's items.
  return first === undefined ? [] : [...(first === view ? [first] : flat(first)), ...rest]
}

type Body = ObjectShape | ListShape | MapShape | TextShape | WholeShape | { readonly is: 'flag' }

function bodyOf(base: View, checks: readonly View[], facts: NonNullable<View['metadata']>, path: string): Body {
  const limit = (type: string): number | undefined => {
    const found = checks.findLast((check) => check.type === type)?.requirement
    return typeof found === 'number' ? found : undefined
  }
  const needed = (type: string): number => {
    const found = limit(type)
    if (found === undefined) throw new Error(`${path} has no ${type}: everything has a limit`)
    return found
  }
  switch (base.type) {
    case 'object': return { is: 'object', fields: fieldsOf(base.entries ?? {}, path) }
    case 'array': return { is: 'list', item: walk(part(base.item, path), `${path}[]`), most: needed('max_length'), keys: facts.keys ?? [] }
    case 'record': return { is: 'map', value: walk(part(base.value, path), `${path}[]`), most: needed('max_entries') }
    case 'boolean': return { is: 'flag' }
    case 'number':
      if (!checks.some((check) => check.type === 'integer')) throw new Error(`${path} is not a whole number`)
      return { is: 'whole', least: needed('min_value'), most: needed('max_value') }
    case 'picklist': {
      const words = base.options ?? []
      return { is: 'text', shortest: 0, longest: Math.max(...words.map((word) => word.length)), words, prose: false }
    }
    case 'string': {
      const pattern = checks.findLast((check) => check.type === 'regex')?.requirement
      return {
        is: 'text', shortest: limit('min_length') ?? 0, longest: needed('max_length'), prose: facts.prose ?? false,
        ...(pattern instanceof RegExp ? { pattern: pattern.source } : {}),
        ...(checks.some((check) => check.type === 'iso_timestamp') ? { format: 'date-time' } : {}),
      }
    }
    default: throw new Error(`${path}: ${base.type} has no counterpart in a CRD`)
  }
}

function part(view: View | undefined, path: string): View {
  if (view === undefined) throw new Error(`${path}: a list or map without items`)
  return view
}

function fieldsOf(entries: Readonly<Record<string, View>>, path: string): ReadonlyMap<string, FieldShape> {
  return new Map(Object.entries(entries).map(([name, view]) => {
    const optional = view.type === 'exact_optional'
    const shape = walk(optional ? part(view.wrapped, path) : view, join(path, name))
    return [name, { shape, required: !optional, ...(view.default === undefined ? {} : { default: view.default }) }]
  }))
}

/** What the parse does not tell: fields that the shape does not have, and the length of a list of which an item is wrong. */
export function strangers(shape: Shape, value: unknown, path: string): Fault[] {
  switch (shape.is) {
    case 'object': {
      if (!isObject(value)) return noObject(value, path)
      return Object.entries(value).flatMap(([name, inner]) => {
        const field = shape.fields.get(name)
        return field === undefined ? [{ path: join(path, name), says: `is not a field${meant(name, shape)}` }] : strangers(field.shape, inner, join(path, name))
      })
    }
    case 'list': {
      if (!Array.isArray(value)) return []
      return [...tooMany(value.length, 'items', shape.most, path), ...value.slice(0, shape.most).flatMap((inner, index) => strangers(shape.item, inner, `${path}[${index}]`))]
    }
    case 'map': return isObject(value) ? tooMany(Object.keys(value).length, 'entries', shape.most, path) : noObject(value, path)
    case 'text': case 'whole': case 'flag': return []
  }
}

/** The value without the fields that the shape does not have, as an API server shows it whose kinds are of this release. */
export function pruned(shape: Shape, value: unknown): unknown {
  switch (shape.is) {
    case 'object':
      if (!isObject(value)) return value
      return Object.fromEntries(Object.entries(value).flatMap(([name, inner]) => {
        const field = shape.fields.get(name)
        return field === undefined ? [] : [[name, pruned(field.shape, inner)]]
      }))
    case 'list': return Array.isArray(value) ? value.slice(0, shape.most + 1).map((inner) => pruned(shape.item, inner)) : value
    case 'text': case 'whole': case 'map': case 'flag': return value
  }
}

/** A list is an object to JavaScript, and an empty one would pass for an empty object. */
function noObject(value: unknown, path: string): Fault[] {
  return Array.isArray(value) ? [{ path, says: 'must be an object, is a list' }] : []
}

function tooMany(count: number, what: string, most: number, path: string): Fault[] {
  return count > most ? [{ path, says: `has ${count} ${what}, at most ${most} are allowed` }] : []
}

const plain = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')

function meant(name: string, shape: ObjectShape): string {
  const near = [...shape.fields.keys()].find((field) => plain(field) === plain(name))
  return near === undefined ? `; known are ${[...shape.fields.keys()].join(', ')}` : `; ${near} is`
}

/** The value as the API server will take it: sentences cut to their limit, whole numbers whole, lists at most as long as
 *  allowed, the newest kept. A status that is refused for one long sentence would stand still for ever. */
export function fit(shape: Shape, value: unknown): unknown {
  switch (shape.is) {
    case 'object':
      if (!isObject(value)) return value
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => {
        const field = shape.fields.get(name)
        return [name, field === undefined ? inner : fit(field.shape, inner)]
      }))
    case 'list': return Array.isArray(value) ? value.slice(-shape.most).map((inner) => fit(shape.item, inner)) : value
    case 'text': return shape.prose && typeof value === 'string' ? cut(value, shape.longest) : value
    case 'whole': return typeof value === 'number' ? Math.min(shape.most, Math.max(shape.least, Math.round(value))) : value
    case 'map': case 'flag': return value
  }
}

/** Counted as our own parse counts, which is never less than the API server's count; no letter is cut in half. */
function cut(text: string, longest: number): string {
  return text.length <= longest ? text : `${text.slice(0, longest - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
}

export function join(path: string, key: unknown): string {
  if (typeof key === 'number') return `${path}[${key}]`
  const name = String(key)
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? `${path}.${name}` : `${path}[${JSON.stringify(name)}]`
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
