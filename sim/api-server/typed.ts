// A built-in kind passes through a Go struct on the real server: a null field is as good as absent, and so is an empty list
// or an empty label map. What is compared, stored and watched is the form without them.
import { isObject } from './json.ts'
import type { Json, JsonObject, Resource } from './json.ts'

/** Fields whose emptiness the struct does keep. */
const kept = new Set(['eventTime', 'firstTimestamp', 'lastTimestamp', 'containers', 'drivers'])
const dropped = new Set(['labels', 'annotations', 'finalizers', 'nodeSelector'])
const droppedWhenBlank = new Set(['nodeName', 'generateName', 'podIP', 'hostIP', 'reason', 'nominatedNodeName', 'providerID', 'podCIDR'])

/** Maps of the user's own words at the top of an object: nothing in them is tidied. */
const freeMaps = new Set(['data', 'binaryData', 'stringData', 'parameters'])

export function tidyTyped(object: Resource): void {
  tidy(object.metadata)
  for (const field of Object.keys(object)) {
    if (field === 'metadata') continue
    const value = object[field]
    const plain = freeMaps.has(field)
    if ((value === null && !kept.has(field)) || (plain && isObject(value) && Object.keys(value).length === 0)) delete object[field]
    else if (!plain) tidyValue(value)
  }
}

function tidyValue(value: Json | undefined): void {
  if (Array.isArray(value)) for (const item of value) tidyValue(item)
  else if (isObject(value)) tidy(value)
}

function tidy(object: JsonObject): void {
  for (const field of Object.keys(object)) {
    const value = object[field]
    if (typeof value === 'number' || typeof value === 'boolean') continue
    const empty = Array.isArray(value) ? value.length === 0 && !kept.has(field) : isObject(value) && dropped.has(field) && Object.keys(value).length === 0
    const blank = value === '' && droppedWhenBlank.has(field)
    if (empty || blank || (value === null && !kept.has(field))) delete object[field]
    else if (field !== 'labels' && field !== 'annotations' && field !== 'matchLabels') tidyValue(value)
  }
}
