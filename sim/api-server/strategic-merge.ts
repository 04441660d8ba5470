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
  if (mergedPrimitives.has(field)) {
    const all = [...original, ...patch.filter((item) => !original.some((one) => same(one, item)))]
    return inOrder(all, Array.isArray(order) ? order : patch, original, (item) => item)
  }
  const key = keyOf(field, [...original, ...patch])
  if (key === undefined || patch.some((item) => isObject(item) && item['$patch'] === 'replace')) {
    return patch.filter((item) => !isObject(item) || item['$patch'] !== 'replace').map((item) => (isObject(item) ? strip(item) : item))
  }
  const merged = patch.reduce<Json[]>((list, item) => mergeItem(list, item, key), [...original])
  return inOrder(merged, Array.isArray(order) ? order : patch, original, (item) => (isObject(item) ? item[key] : undefined))
}

function mergeItem(list: Json[], item: Json, key: string): Json[] {
  if (!isObject(item) || item[key] === undefined) throw new MisuseOfPatch(`map: ${JSON.stringify(item)} does not contain declared merge key: ${key}`)
  const index = list.findIndex((one) => isObject(one) && same(one[key], item[key]))
  if (item['$patch'] === 'delete') return list.filter((_, position) => position !== index)
  const there = list[index]
  if (!isObject(there)) return [...list, strip(item)]
  return list.with(index, mergeObject(there, item))
}

/** Elements that the patch names stand in its order; the others go before the first named one that they stood before. An
 *  element that is new therefore comes before all that were there and are not named: surprising, and the real order. */
function inOrder(merged: readonly Json[], order: readonly Json[], original: readonly Json[], keyOfItem: (item: Json) => Json | undefined): Json[] {
  const place = (list: readonly Json[], item: Json) => list.findIndex((one) => same(keyOfItem(one), keyOfItem(item)))
  const ours = merged.filter((item) => place(order, item) >= 0).toSorted((one, other) => place(order, one) - place(order, other))
  const others = merged.filter((item) => place(order, item) < 0)
  const result: Json[] = []
  for (let [our, other] = [ours.shift(), others.shift()]; our !== undefined || other !== undefined;) {
    const takesOther = other !== undefined && (our === undefined || (place(original, our) >= 0 && place(original, other) < place(original, our)))
    if (takesOther && other !== undefined) {
      result.push(other)
      other = others.shift()
    } else if (our !== undefined) {
      result.push(our)
      our = ours.shift()
    }
  }
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
    if (!Array.isArray(value)) kept[field] = isObject(value) ? strip(value) : value
    else kept[field] = value.filter((item) => !isObject(item) || item['$patch'] !== 'delete').map((item) => (isObject(item) ? strip(item) : item))
  }
  return kept
}
