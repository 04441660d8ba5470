// What the server keeps and moves: plain JSON, objects of Kubernetes among them. Everything that comes out of the store was
// parsed anew for whoever asked, so whoever asked may change it.

export type Json = null | boolean | number | string | Json[] | JsonObject
export type JsonObject = { [field: string]: Json | undefined }

export type ObjectMeta = {
  name?: string
  generateName?: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  generation?: number
  creationTimestamp?: string
  deletionTimestamp?: string
  deletionGracePeriodSeconds?: number
  labels?: { [key: string]: string }
  annotations?: { [key: string]: string }
  finalizers?: string[]
  ownerReferences?: JsonObject[]
  managedFields?: Json
}

/** Any object of Kubernetes. */
export type Resource = { apiVersion?: string; kind?: string; metadata: ObjectMeta; [field: string]: Json | undefined }

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What stands under a path of fields, or undefined where the path breaks off. */
export function at(value: Json | undefined, ...path: string[]): Json | undefined {
  let here: Json | undefined = value
  for (const field of path) {
    if (!isObject(here)) return undefined
    here = here[field]
  }
  return here
}

/** The text under a path; anything else is ''. */
export function textAt(value: Json | undefined, ...path: string[]): string {
  const found = at(value, ...path)
  return typeof found === 'string' ? found : ''
}

export function numberAt(value: Json | undefined, ...path: string[]): number | undefined {
  const found = at(value, ...path)
  return typeof found === 'number' ? found : undefined
}

export function listAt(value: Json | undefined, ...path: string[]): Json[] {
  const found = at(value, ...path)
  return Array.isArray(found) ? found : []
}

export function objectAt(value: Json | undefined, ...path: string[]): JsonObject {
  const found = at(value, ...path)
  return isObject(found) ? found : {}
}

/** Equal as JSON: the order of fields does not count, a field that is undefined is not there. */
export function same(one: Json | undefined, other: Json | undefined): boolean {
  if (one === other) return true
  if (Array.isArray(one)) {
    return Array.isArray(other) && one.length === other.length && one.every((item, index) => same(item, other[index]))
  }
  if (!isObject(one) || !isObject(other)) return false
  let more = 0
  for (const field of Object.keys(one)) {
    if (one[field] === undefined) continue
    if (!same(one[field], other[field])) return false
    more += 1
  }
  for (const field of Object.keys(other)) if (other[field] !== undefined) more -= 1
  return more === 0
}

export function copy<T extends Json>(value: T): T {
  // JSON has no cycles and no classes: a walk by hand takes a fifth of the time of the machine's own clone.
  return cloned(value) as T
}

function cloned(value: Json | undefined): Json | undefined {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(cloned) as Json[]
  const made: JsonObject = {}
  for (const field of Object.keys(value)) made[field] = cloned(value[field])
  return made
}

/** The value, or a sentence saying why the text is not JSON. */
export function parse(text: string): { value: Json } | { fault: string } {
  try {
    // JSON.parse gives nothing but JSON.
    return { value: JSON.parse(text) as Json }
  } catch (cause) {
    return { fault: cause instanceof Error ? cause.message : String(cause) }
  }
}
