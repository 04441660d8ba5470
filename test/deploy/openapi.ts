// What a CRD allows, said a second time and dumbly: values that it takes, and why it would refuse one. Durations are known
// by their rule; other rules of the API server's own language are left to the real one.
import fc from 'fast-check'
import type { Property } from '../../deploy/crd.ts'

export type Value = string | number | boolean | readonly Value[] | { readonly [field: string]: Value }

/** `whole`: with every optional field. */
export function valueOf(property: Property, whole = false): fc.Arbitrary<Value> {
  const span = spanOf(property)
  if (span !== undefined) return fc.integer(span).map((ms) => `${ms}ms`)
  if (property.enum !== undefined) return fc.constantFrom(...property.enum)
  if (property.format === 'date-time') return fc.integer({ min: 0, max: 4e12 }).map((at) => new Date(at).toISOString())
  const { type = 'none' } = property
  switch (type) {
    case 'boolean': return fc.boolean()
    case 'integer': return fc.integer({ min: property.minimum ?? 0, max: property.maximum ?? 0 })
    case 'string': {
      const longest = Math.min(property.maxLength ?? 0, 40)
      // Most patterns take any letters and digits.
      if (property.pattern !== undefined && !new RegExp(property.pattern).test('aX0')) return fc.stringMatching(new RegExp(property.pattern)).filter((text) => text.length <= longest)
      const unit = property.pattern === undefined ? 'binary' : fc.constantFrom(...'abcXYZ019')
      return fc.string({ unit, minLength: property.minLength ?? 0, maxLength: longest }).filter((text) => text.length <= longest)
    }
    case 'array': {
      const keys = property['x-kubernetes-list-map-keys'] ?? []
      const item = valueOf(must(property.items), whole)
      const limits = { minLength: whole ? 1 : 0, maxLength: 3 }
      return keys.length === 0 ? fc.array(item, limits) : fc.uniqueArray(item, { ...limits, selector: (one) => keys.map((key) => fieldOf(one, key)).join() })
    }
    case 'object': {
      if (property.additionalProperties !== undefined) {
        return fc.dictionary(fc.string({ unit: fc.constantFrom(...'abc.-/'), minLength: 1, maxLength: 9 }), valueOf(property.additionalProperties), { minKeys: whole ? 1 : 0, maxKeys: 3, noNullPrototype: true })
      }
      const fields = Object.entries(property.properties ?? {})
      const arbitraries = Object.fromEntries(fields.map(([name, inner]) => [name, valueOf(inner, whole)]))
      return fc.record(arbitraries, { requiredKeys: whole ? fields.map(([name]) => name) : [...property.required ?? []], noNullPrototype: true })
    }
    case 'none': throw new Error('a property without a type')
  }
}

/** Empty: the API server would take it. */
export function refusalsOf(property: Property, value: unknown, path = ''): string[] {
  const no = (says: string): string[] => [`${path} ${says}`]
  const span = spanOf(property)
  const { type = 'none' } = property
  switch (type) {
    case 'boolean': return typeof value === 'boolean' ? [] : no('is not a boolean')
    case 'integer':
      if (!Number.isSafeInteger(value)) return no('is not an integer')
      return Number(value) < (property.minimum ?? 0) || Number(value) > (property.maximum ?? 0) ? no('is out of range') : []
    case 'string':
      if (typeof value !== 'string') return no('is not a string')
      if ([...value].length > (property.maxLength ?? 0) || value.length < (property.minLength ?? 0)) return no('has the wrong length')
      if (property.enum !== undefined && !property.enum.includes(value)) return no(`is not one of ${property.enum.join()}`)
      if (property.pattern !== undefined && !new RegExp(property.pattern).test(value)) return no('does not match')
      if (property.format === 'date-time' && Number.isNaN(Date.parse(value))) return no('is not a time')
      return span !== undefined && (msOf(value) < span.min || msOf(value) > span.max) ? no('is out of range') : []
    case 'array':
      if (!Array.isArray(value)) return no('is not a list')
      if (value.length > (property.maxItems ?? 0)) return no('is too long')
      return value.flatMap((item, index) => refusalsOf(must(property.items), item, `${path}[${index}]`))
    case 'object': {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return no('is not an object')
      const { additionalProperties, properties = {}, required = [] } = property
      const missing = required.filter((name) => !Object.hasOwn(value, name)).map((name) => `${path}.${name} is missing`)
      return [...missing, ...Object.entries(value).flatMap(([name, inner]) => {
        const known = additionalProperties ?? properties[name]
        return known === undefined ? [`${path}.${name} is pruned`] : refusalsOf(known, inner, `${path}.${name}`)
      })]
    }
    case 'none': return no('has no type')
  }
}

/** The value with one leaf changed, for every leaf there is, with its path. */
export function* variants(property: Property, value: Value, path = ''): Generator<readonly [path: string, value: Value]> {
  if (Array.isArray(value)) {
    const [first, ...rest] = value
    if (first !== undefined) for (const [at, inner] of variants(must(property.items), first, `${path}[]`)) yield [at, [inner, ...rest]]
  } else if (typeof value === 'object' && property.additionalProperties === undefined) {
    for (const [name, inner] of Object.entries(value)) {
      for (const [at, other] of variants(must(property.properties?.[name]), inner, `${path}.${name}`)) yield [at, { ...value, [name]: other }]
    }
  } else if (property.enum?.length !== 1) { // of a single word there is no other
    const other = fc.sample(valueOf(property).filter((one) => JSON.stringify(one) !== JSON.stringify(value)), { numRuns: 1, seed: 1 })[0]
    if (other !== undefined) yield [path, other]
  }
}

/** The value with a field added that no schema has, in every object there is, and with another word in the place of every one of a few. */
export function* additions(property: Property, value: Value, path = ''): Generator<readonly [path: string, value: Value]> {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) for (const [at, other] of additions(must(property.items), item, `${path}[]`)) yield [at, value.with(index, other)]
  } else if (typeof value === 'object' && property.additionalProperties === undefined) {
    yield [`${path}.weather`, { ...value, weather: 'fine' }]
    for (const [name, inner] of Object.entries(value)) for (const [at, other] of additions(must(property.properties?.[name]), inner, `${path}.${name}`)) yield [at, { ...value, [name]: other }]
  } else if (property.enum !== undefined) yield [path, 'of-a-later-release']
}

/** Every property of a schema, with its path. */
export function* everyProperty(property: Property, path: string): Generator<readonly [path: string, property: Property]> {
  yield [path, property]
  if (property.items !== undefined) yield* everyProperty(property.items, `${path}[]`)
  if (property.additionalProperties !== undefined) yield* everyProperty(property.additionalProperties, `${path}{}`)
  for (const [name, inner] of Object.entries(property.properties ?? {})) yield* everyProperty(inner, `${path}.${name}`)
}

function spanOf(property: Property): { min: number; max: number } | undefined {
  const rule = JSON.stringify(property['x-kubernetes-validations'] ?? [])
  const [, least, most] = /duration\(self\) >= duration\('([^']+)'\) && duration\(self\) <= duration\('([^']+)'\)/.exec(rule) ?? []
  return least === undefined || most === undefined ? undefined : { min: msOf(least), max: msOf(most) }
}

function msOf(text: string): number {
  const sizes: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 }
  return [...text.matchAll(/([0-9.]+)(ms|[hms])/g)].reduce((sum, [, count, unit]) => sum + Number(count) * (sizes[unit ?? ''] ?? Number.NaN), 0)
}

function fieldOf(value: Value, key: string): string {
  return typeof value === 'object' && !Array.isArray(value) ? JSON.stringify(Reflect.get(value, key)) : ''
}

function must(property: Property | undefined): Property {
  if (property === undefined) throw new Error('a list or an object that does not say of what')
  return property
}
