// Structural schemas of CustomResourceDefinitions: unknown fields are pruned, defaults filled in, values checked. Rules in
// CEL (`x-kubernetes-validations`) are accepted with the document and NOT evaluated: what only they would refuse is taken
// here, so a case about them belongs on the real server.
import { at, copy, isObject, listAt, same, textAt } from './json.ts'
import type { Json, JsonObject } from './json.ts'
import { duplicate, required, tooMany, unsupported, wrong } from './refusal.ts'
import type { Cause } from './refusal.ts'

/** As deep as a document may nest; deeper is cut off unlooked at. */
const depthLimit = 100

export function prune(schema: JsonObject, value: Json | undefined, depth = 0): void {
  if (depth > depthLimit || schema['x-kubernetes-preserve-unknown-fields'] === true && schema['properties'] === undefined) return
  if (Array.isArray(value)) {
    const items = schema['items']
    if (isObject(items)) for (const item of value) prune(items, item, depth + 1)
    return
  }
  if (!isObject(value)) return
  for (const field of Object.keys(value)) {
    const below = fieldSchema(schema, field)
    if (below !== undefined) prune(below, value[field], depth + 1)
    else if (!keepsUnknown(schema) && !(schema['x-kubernetes-embedded-resource'] === true && ['apiVersion', 'kind', 'metadata'].includes(field))) delete value[field]
  }
}

function keepsUnknown(schema: JsonObject): boolean {
  return schema['x-kubernetes-preserve-unknown-fields'] === true || schema['additionalProperties'] === true
}

function fieldSchema(schema: JsonObject, field: string): JsonObject | undefined {
  const own = at(schema, 'properties', field)
  if (isObject(own)) return own
  const others = schema['additionalProperties']
  return isObject(others) ? others : undefined
}

/** Fills in defaults; a null where null is not allowed counts as absent. */
export function fillDefaults(schema: JsonObject, value: Json | undefined, depth = 0): void {
  if (depth > depthLimit) return
  if (Array.isArray(value)) {
    const items = schema['items']
    if (isObject(items)) for (const item of value) fillDefaults(items, item, depth + 1)
    return
  }
  if (!isObject(value)) return
  const properties = schema['properties']
  for (const [field, below] of Object.entries(isObject(properties) ? properties : {})) {
    if (!isObject(below)) continue
    const standing = below['default']
    const absent = value[field] === undefined || (value[field] === null && below['nullable'] !== true)
    if (absent && standing !== undefined) value[field] = copy(standing)
    else if (absent && field in value) delete value[field]
    fillDefaults(below, value[field], depth + 1)
  }
  const others = schema['additionalProperties']
  if (!isObject(others)) return
  for (const [field, item] of Object.entries(value)) if (at(schema, 'properties', field) === undefined) fillDefaults(others, item, depth + 1)
}

/** Every fault, each with the path of its field. */
export function schemaFaults(schema: JsonObject, value: Json | undefined, path: string, depth = 0): Cause[] {
  if (value === undefined || depth > depthLimit) return []
  if (value === null && schema['nullable'] === true) return []
  const mistyped = typeFault(schema, value, path)
  if (mistyped !== undefined && typeof value === 'number' && schema['type'] === 'integer') {
    return [mistyped, wrong('<nil>', '', `Checked value must be of type integer (default format) in ${path}`)]
  }
  if (mistyped !== undefined) return [mistyped]
  return [
    ...enumFaults(schema, value, path),
    ...(typeof value === 'string' ? textFaults(schema, value, path) : []),
    ...(typeof value === 'number' ? numberFaults(schema, value, path) : []),
    ...(Array.isArray(value) ? listFaults(schema, value, path, depth) : []),
    ...(isObject(value) ? objectFaults(schema, value, path, depth) : []),
    ...combinedFaults(schema, value, path, depth),
  ]
}

function typeFault(schema: JsonObject, value: Json, path: string): Cause | undefined {
  const type = textAt(schema, 'type')
  const given = typeOf(value)
  if (schema['x-kubernetes-int-or-string'] === true) {
    return given === 'integer' || given === 'string' ? undefined : mistypedCause(path, 'integer,string', given)
  }
  if (type === '' || type === given || (type === 'number' && given === 'integer')) return undefined
  return mistypedCause(path, type, given)
}

function mistypedCause(path: string, type: string, given: string): Cause {
  return { reason: 'FieldValueTypeInvalid', field: named(path), message: `Invalid value: ${JSON.stringify(given)}: ${inBody(path)} must be of type ${type}: ${JSON.stringify(given)}` }
}

function typeOf(value: Json): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value
}

function named(path: string): string {
  return path === '' ? '<nil>' : path
}

function inBody(path: string): string {
  return path === '' ? 'in body' : `${path} in body`
}

function enumFaults(schema: JsonObject, value: Json, path: string): Cause[] {
  const allowed = schema['enum']
  if (!Array.isArray(allowed) || allowed.some((one) => same(one, value))) return []
  return [unsupported(named(path), value, allowed)]
}

function textFaults(schema: JsonObject, value: string, path: string): Cause[] {
  const { minLength, maxLength, pattern, format } = schema
  const faults: Cause[] = [
    ...(typeof minLength === 'number' && isShorter(value, minLength) ? [wrong(named(path), value, `${inBody(path)} should be at least ${minLength} chars long`)] : []),
    ...(typeof maxLength === 'number' && !isShorter(value, maxLength + 1) ? [{ reason: 'FieldValueTooLong', field: named(path), message: `Too long: may not be more than ${maxLength} bytes` } satisfies Cause] : []),
    ...(typeof pattern === 'string' && !new RegExp(pattern).test(value) ? [wrong(named(path), value, `${inBody(path)} should match '${pattern}'`)] : []),
  ]
  const misshapen: Cause[] = typeof format === 'string' && !fitsFormat(format, value)
    ? [{ reason: 'FieldValueTypeInvalid', field: named(path), message: `Invalid value: ${JSON.stringify(value)}: ${inBody(path)} must be of type ${format}: ${JSON.stringify(value)}` }] : []
  // Length before pattern, and only the first of them, as there.
  return [...faults.slice(0, 1), ...misshapen]
}

/** In letters, of which none takes more than two units. */
function isShorter(value: string, length: number): boolean {
  return value.length < length || (value.length < 2 * length && [...value].length < length)
}

function fitsFormat(format: string, value: string): boolean {
  if (format === 'date-time') return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i.test(value)
  if (format === 'date') return /^\d{4}-\d\d-\d\d$/.test(value)
  return true
}

function numberFaults(schema: JsonObject, value: number, path: string): Cause[] {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, format } = schema
  const low = typeof minimum === 'number' && (exclusiveMinimum === true ? value <= minimum : value < minimum)
  const high = typeof maximum === 'number' && (exclusiveMaximum === true ? value >= maximum : value > maximum)
  const wide = format === 'int32' && (value > 2_147_483_647 || value < -2_147_483_648)
  return [
    ...(low ? [wrong(named(path), value, `${inBody(path)} should be greater than ${exclusiveMinimum === true ? '' : 'or equal to '}${minimum}`)] : []),
    ...(high ? [wrong(named(path), value, `${inBody(path)} should be less than ${exclusiveMaximum === true ? '' : 'or equal to '}${maximum}`)] : []),
    ...(wide ? [wrong(named(path), value, `${inBody(path)} must be of type int32: "number"`)] : []),
    ...(typeof multipleOf === 'number' && value % multipleOf !== 0 ? [wrong(named(path), value, `${inBody(path)} should be a multiple of ${multipleOf}`)] : []),
  ]
}

function listFaults(schema: JsonObject, value: Json[], path: string, depth: number): Cause[] {
  const { minItems, maxItems, items } = schema
  return [
    ...(typeof minItems === 'number' && value.length < minItems ? [wrong(named(path), value.length, `${inBody(path)} should have at least ${minItems} items`)] : []),
    ...(typeof maxItems === 'number' && value.length > maxItems ? [tooMany(named(path), value.length, maxItems)] : []),
    ...(isObject(items) ? value.flatMap((item, index) => schemaFaults(items, item, `${path}[${index}]`, depth + 1)) : []),
    ...repeated(schema, value, path),
  ]
}

/** Two elements with the same key in a list that is a map, or the same element in a list that is a set. */
function repeated(schema: JsonObject, value: Json[], path: string): Cause[] {
  const type = textAt(schema, 'x-kubernetes-list-type')
  if (type !== 'map' && type !== 'set' && schema['uniqueItems'] !== true) return []
  const keys = listAt(schema, 'x-kubernetes-list-map-keys').map(String)
  const shown = (item: Json): Json => (type === 'map' ? Object.fromEntries(keys.map((key) => [key, at(item, key)])) : item)
  return value.flatMap((item, index) => (
    value.findIndex((other) => same(shown(other), shown(item))) < index ? [duplicate(`${path}[${index}]`, shown(item))] : []))
}

function objectFaults(schema: JsonObject, value: JsonObject, path: string, depth: number): Cause[] {
  const wanted = listAt(schema, 'required').map(String)
  const { minProperties, maxProperties } = schema
  const count = Object.keys(value).length
  const under = (field: string) => (path === '' ? field : `${path}.${field}`)
  return [
    ...wanted.flatMap((field) => (value[field] === undefined ? [required(under(field))] : [])),
    ...(typeof minProperties === 'number' && count < minProperties ? [wrong(named(path), count, `${inBody(path)} should have at least ${minProperties} properties`)] : []),
    ...(typeof maxProperties === 'number' && count > maxProperties ? [tooMany(named(path), count, maxProperties)] : []),
    ...Object.entries(value).flatMap(([field, item]) => {
      const below = fieldSchema(schema, field)
      return below === undefined ? [] : schemaFaults(below, item, under(field), depth + 1)
    }),
  ]
}

const combined = ['allOf', 'anyOf', 'oneOf', 'not'] as const

function combinedFaults(schema: JsonObject, value: Json, path: string, depth: number): Cause[] {
  if (!combined.some((field) => schema[field] !== undefined)) return []
  const faultsOf = (one: Json) => (isObject(one) ? schemaFaults(one, value, path, depth + 1) : [])
  const all = listAt(schema, 'allOf').flatMap(faultsOf)
  const any = listAt(schema, 'anyOf')
  const one = listAt(schema, 'oneOf')
  const not = schema['not']
  const fitting = one.filter((branch) => faultsOf(branch).length === 0).length
  return [
    ...all,
    ...(any.length > 0 && any.every((branch) => faultsOf(branch).length > 0) ? [wrong(named(path), '', `${inBody(path)} must validate at least one schema (anyOf)`)] : []),
    ...(one.length > 0 && fitting !== 1 ? [wrong(named(path), '', `${inBody(path)} must validate one and only one schema (oneOf)`)] : []),
    ...(isObject(not) && faultsOf(not).length === 0 ? [wrong(named(path), '', `${inBody(path)} must not validate the schema (not)`)] : []),
  ]
}
