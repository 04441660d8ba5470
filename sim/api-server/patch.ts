// JSON Patch (RFC 6902) and JSON merge patch (RFC 7386). Both change the document they are given, which is the caller's own.
import { isObject, same } from './json.ts'
import type { Json, JsonObject } from './json.ts'

export type Patched = { readonly document: Json } | { readonly fault: string; readonly malformed: boolean }

/** The most operations the real server takes. */
export const operationLimit = 10_000

interface Operation { readonly op: string; readonly path: string; readonly from: string; readonly value: Json | undefined }

export function jsonPatch(document: Json, patch: Json): Patched {
  if (!Array.isArray(patch)) return { malformed: true, fault: 'error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp' }
  let here = document
  for (const item of patch) {
    if (!isObject(item)) return { malformed: true, fault: 'error decoding patch: an operation is not an object' }
    const operation = { op: text(item['op']), path: text(item['path']), from: text(item['from']), value: item['value'] }
    const step = apply(here, operation, 'value' in item)
    if ('fault' in step) return { malformed: false, fault: step.fault }
    here = step.document
  }
  return { document: here }
}

function text(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

type Step = { readonly document: Json } | { readonly fault: string }

function apply(document: Json, operation: Operation, hasValue: boolean): Step {
  const { op, path } = operation
  const value = operation.value ?? null
  switch (op) {
    case 'test':
      return test(document, path, value)
    case 'add':
      return hasValue ? add(document, path, value) : { fault: `add operation does not have a value: ${path}` }
    case 'replace':
      return replace(document, path, value)
    case 'remove':
      return remove(document, path)
    case 'move': {
      const moved = find(document, operation.from)
      if (moved === undefined) return { fault: `error in move for path: '${operation.from}': missing value` }
      const without = remove(document, operation.from)
      return 'fault' in without ? without : add(without.document, path, moved)
    }
    case 'copy': {
      const copied = find(document, operation.from)
      if (copied === undefined) return { fault: `error in copy for from path: '${operation.from}': missing value` }
      return add(document, path, structuredClone(copied))
    }
  }
  return { fault: `Unexpected kind: ${op}` }
}

function test(document: Json, path: string, value: Json): Step {
  if (path !== '' && parentOf(document, path).parent === undefined) return { fault: `test operation does not apply: is missing path: ${path}: missing value` }
  // A missing value equals null: the real server's library says so, and clients test for absence with it.
  const found = find(document, path) ?? null
  return same(found, value) ? { document } : { fault: `testing path ${path} failed: test failed` }
}

function add(document: Json, path: string, value: Json): Step {
  if (path === '') return { document: value }
  const { parent, last } = parentOf(document, path)
  if (parent === undefined) return { fault: `add operation does not apply: doc is missing path: "${path}": missing value` }
  if (isObject(parent)) {
    parent[last] = value
    return { document }
  }
  const index = last === '-' ? parent.length : indexIn(last, parent.length)
  if (index === undefined) return { fault: `add operation does not apply: doc is missing path: "${path}": Unable to access invalid index: ${last}` }
  parent.splice(index, 0, value)
  return { document }
}

function replace(document: Json, path: string, value: Json): Step {
  if (path === '') return { document: value }
  const { parent, last } = parentOf(document, path)
  if (parent === undefined) return { fault: `replace operation does not apply: doc is missing path: ${path}: missing value` }
  if (isObject(parent)) {
    // Against the RFC, but as the real server's library does: what is not there is set.
    parent[last] = value
    return { document }
  }
  const index = indexIn(last, parent.length - 1)
  if (index === undefined) return { fault: `replace operation does not apply: doc is missing key: ${path}: missing value` }
  parent[index] = value
  return { document }
}

function remove(document: Json, path: string): Step {
  const { parent, last } = parentOf(document, path)
  if (parent === undefined) return { fault: `remove operation does not apply: doc is missing path: "${path}": missing value` }
  if (isObject(parent)) {
    if (parent[last] === undefined) return { fault: `error in remove for path: '${path}': Unable to remove nonexistent key: ${last}: missing value` }
    delete parent[last]
    return { document }
  }
  const index = indexIn(last, parent.length - 1)
  if (index === undefined) return { fault: `error in remove for path: '${path}': Unable to access invalid index: ${last}: invalid index referenced` }
  parent.splice(index, 1)
  return { document }
}

function find(document: Json, path: string): Json | undefined {
  if (path === '') return document
  const { parent, last } = parentOf(document, path)
  if (parent === undefined) return undefined
  if (isObject(parent)) return parent[last]
  const index = indexIn(last, parent.length - 1)
  return index === undefined ? undefined : parent[index]
}

function parentOf(document: Json, path: string): { parent: JsonObject | Json[] | undefined; last: string } {
  const steps = path.split('/').slice(1).map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
  const last = steps.pop() ?? ''
  let here: Json | undefined = document
  for (const step of steps) {
    if (isObject(here)) here = here[step]
    else if (Array.isArray(here)) {
      const index = indexIn(step, here.length - 1)
      here = index === undefined ? undefined : here[index]
    } else return { parent: undefined, last }
  }
  return { parent: isObject(here) || Array.isArray(here) ? here : undefined, last }
}

/** Negative indexes count from the end: not in the RFC, but the real server's library allows them. */
function indexIn(step: string, most: number): number | undefined {
  if (!/^-?\d+$/.test(step)) return undefined
  const index = Number(step)
  const real = index < 0 ? index + most + 1 : index
  return real >= 0 && real <= most ? real : undefined
}

export function mergePatch(document: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch
  const merged: JsonObject = isObject(document) ? document : {}
  for (const [field, value] of Object.entries(patch)) {
    if (value === null) delete merged[field]
    else if (value !== undefined) merged[field] = mergePatch(merged[field], value)
  }
  return merged
}
