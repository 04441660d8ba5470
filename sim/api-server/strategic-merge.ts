// Strategic merge patch: like a merge patch, but some lists are merged element by element, told apart by a merge key that
// stands in the Go types of the built-in kinds. Only those lists are named here; any other list is replaced whole
// (`Node.spec.taints` and `Pod.spec.tolerations` among them, which is why clients must not patch them this way).
import { isObject, same } from './json.ts'
import type { Json, JsonObject } from './json.ts'

export type Merged = { readonly document: JsonObject } | { readonly fault: string }

/** Lists of objects, by the field's name: the same name means the same key in every built-in kind we serve. */
const mergeKeys: Readonly<Record<string, string>> = {
  conditions: 'type', addresses: 'type', ownerReferences: 'uid',
  containers: 'name', initContainers: 'name', ephemeralContainers: 'name', volumes: 'name', env: 'name', imagePullSecrets: 'name',
  schedulingGates: 'name', resourceClaims: 'name', secrets: 'name', drivers: 'name',
  volumeMounts: 'mountPath', volumeDevices: 'devicePath', podIPs: 'ip', hostIPs: 'ip', hostAliases: 'ip', topologySpreadConstraints: 'topologyKey',
}
const mergedPrimitives = new Set(['finalizers', 'podCIDRs'])

export function strategicMerge(document: JsonObject, patch: JsonObject): Merged {
  try {
    return { document: mergeObject(document, patch) }
  } catch (cause) {
    // The only thing thrown below is MisuseOfPatch: the depth of the walk makes a value at each level unreadable.
    if (cause instanceof MisuseOfPatch) return { fault: cause.message }
    throw cause
  }
}

class MisuseOfPatch extends Error {}

function keyOf(field: string, items: readonly Json[]): string | undefined {
  if (field !== 'ports') return mergeKeys[field]
  return items.some((item) => isObject(item) && 'containerPort' in item) ? 'containerPort' : 'port'
}

function mergeObject(original: JsonObject, patch: JsonObject): JsonObject {
  if (patch['$patch'] === 'replace') return strip(patch)
  if (patch['$patch'] === 'delete') return {}
  retain(original, patch['$retainKeys'])
  for (const [field, value] of Object.entries(patch)) {
    if (field === '$patch' || field === '$retainKeys' || field.startsWith('$setElementOrder/')) continue
    if (field.startsWith('$deleteFromPrimitiveList/')) dropPrimitives(original, field.slice('$deleteFromPrimitiveList/'.length), value)
    else if (value === null) delete original[field]
    else if (value !== undefined) original[field] = mergeValue(field, original[field], value, patch[`$setElementOrder/${field}`])
  }
  return original
}

function mergeValue(field: string, original: Json | undefined, patch: Json, order: Json | undefined): Json {
  if (Array.isArray(patch)) return mergeList(field, Array.isArray(original) ? original : [], patch, order)
  if (!isObject(patch)) return patch
  return mergeObject(isObject(original) ? original : {}, patch)
}

function mergeList(field: string, original: Json[], patch: Json[], order: Json | undefined): Json[] {
  if (mergedPrimitives.has(field)) return [...original, ...patch.filter((item) => !original.some((one) => same(one, item)))]
  const key = keyOf(field, [...original, ...patch])
  if (key === undefined || patch.some((item) => isObject(item) && item['$patch'] === 'replace')) {
    return patch.filter((item) => !isObject(item) || item['$patch'] !== 'replace').map((item) => (isObject(item) ? strip(item) : item))
  }
  const merged = patch.reduce<Json[]>((list, item) => mergeItem(list, item, key), [...original])
  return Array.isArray(order) ? sorted(merged, order, key) : merged
}

function mergeItem(list: Json[], item: Json, key: string): Json[] {
  if (!isObject(item) || item[key] === undefined) throw new MisuseOfPatch(`map: ${JSON.stringify(item)} does not contain declared merge key: ${key}`)
  const index = list.findIndex((one) => isObject(one) && same(one[key], item[key]))
  if (item['$patch'] === 'delete') return list.filter((_, position) => position !== index)
  const there = list[index]
  if (!isObject(there)) return [...list, strip(item)]
  return list.with(index, mergeObject(there, item))
}

/** Elements named by the patch stand in its order; the others keep their place before those that followed them. */
function sorted(list: Json[], order: Json[], key: string): Json[] {
  const place = (item: Json) => order.findIndex((one) => isObject(one) && isObject(item) && same(one[key], item[key]))
  const inOrder = list.filter((item) => place(item) >= 0).toSorted((one, other) => place(one) - place(other))
  const result: Json[] = []
  for (const item of list) result.push(place(item) >= 0 ? inOrder.shift() ?? item : item)
  return result
}

function retain(original: JsonObject, keys: Json | undefined): void {
  if (!Array.isArray(keys)) return
  for (const field of Object.keys(original)) if (!keys.includes(field)) delete original[field]
}

function dropPrimitives(original: JsonObject, field: string, dropped: Json | undefined): void {
  const list = original[field]
  if (Array.isArray(list) && Array.isArray(dropped)) original[field] = list.filter((item) => !dropped.some((one) => same(one, item)))
}

/** A piece of patch that becomes the value itself: directives and nulls have nothing to act on. */
function strip(patch: JsonObject): JsonObject {
  const kept: JsonObject = {}
  for (const [field, value] of Object.entries(patch)) {
    if (field.startsWith('$') || value === null || value === undefined) continue
    kept[field] = Array.isArray(value) ? value.filter((item) => !isObject(item) || item['$patch'] !== 'delete').map((item) => (isObject(item) ? strip(item) : item)) : isObject(value) ? strip(value) : value
  }
  return kept
}
