// The few objects that kubectl sends as protobuf without asking (`create namespace`, `create configmap`, `auth can-i`, ...),
// read into JSON. Answers are JSON, which kubectl takes. Field numbers are those of Kubernetes' generated.proto files.
import type { Json, JsonObject } from './json.ts'

export const protobufType = 'application/vnd.kubernetes.protobuf'

type Shape = { readonly [number: number]: readonly [name: string, kind: Kind] }
type Kind = 'text' | 'texts' | 'number' | 'truth' | 'bytes' | 'texts by key' | 'bytes by key' | Shape

const objectReference: Shape = { 1: ['kind', 'text'], 2: ['apiVersion', 'text'], 3: ['name', 'text'], 4: ['uid', 'text'] }
const meta: Shape = {
  1: ['name', 'text'], 2: ['generateName', 'text'], 3: ['namespace', 'text'], 5: ['uid', 'text'], 6: ['resourceVersion', 'text'],
  11: ['labels', 'texts by key'], 12: ['annotations', 'texts by key'], 14: ['finalizers', 'texts'],
}
const deleteOptions: Shape = {
  1: ['gracePeriodSeconds', 'number'], 2: ['preconditions', { 1: ['uid', 'text'], 2: ['resourceVersion', 'text'] }], 4: ['propagationPolicy', 'text'], 5: ['dryRun', 'texts'],
}
const attributes: Shape = {
  1: ['namespace', 'text'], 2: ['verb', 'text'], 3: ['group', 'text'], 4: ['version', 'text'], 5: ['resource', 'text'], 6: ['subresource', 'text'], 7: ['name', 'text'],
}

const shapes: Readonly<Record<string, Shape>> = {
  'v1/Namespace': { 1: ['metadata', meta], 2: ['spec', { 1: ['finalizers', 'texts'] }] },
  'v1/ConfigMap': { 1: ['metadata', meta], 2: ['data', 'texts by key'], 3: ['binaryData', 'bytes by key'], 4: ['immutable', 'truth'] },
  'v1/Secret': { 1: ['metadata', meta], 2: ['data', 'bytes by key'], 3: ['type', 'text'], 4: ['stringData', 'texts by key'], 5: ['immutable', 'truth'] },
  'v1/ServiceAccount': { 1: ['metadata', meta] },
  'authentication.k8s.io/v1/TokenRequest': { 1: ['metadata', meta], 2: ['spec', { 1: ['audiences', 'texts'], 3: ['boundObjectRef', objectReference], 4: ['expirationSeconds', 'number'] }] },
  'authentication.k8s.io/v1/SelfSubjectReview': { 1: ['metadata', meta] },
  'authorization.k8s.io/v1/SelfSubjectAccessReview': { 1: ['metadata', meta], 2: ['spec', { 1: ['resourceAttributes', attributes], 2: ['nonResourceAttributes', { 1: ['path', 'text'], 2: ['verb', 'text'] }] }] },
  'policy/v1/Eviction': { 1: ['metadata', meta], 2: ['deleteOptions', deleteOptions] },
  'v1/DeleteOptions': deleteOptions,
  'meta.k8s.io/v1/DeleteOptions': deleteOptions,
}

const envelope: Shape = { 1: ['type', { 1: ['apiVersion', 'text'], 2: ['kind', 'text'] }], 2: ['raw', 'bytes'] }

/** The object with its kind, or undefined where it is none of these or is cut short. */
export function objectFromProtobuf(bytes: Buffer): JsonObject | undefined {
  if (bytes.subarray(0, 4).toString('latin1') !== 'k8s\0') return undefined
  const outer = message(bytes.subarray(4), envelope)
  const type = outer?.['type']
  const raw = outer?.['raw']
  if (typeof type !== 'object' || type === null || Array.isArray(type) || typeof raw !== 'string') return undefined
  const shape = shapes[`${String(type['apiVersion'])}/${String(type['kind'])}`]
  const object = shape === undefined ? undefined : message(Buffer.from(raw, 'base64'), shape)
  return object === undefined ? undefined : { ...type, ...object }
}

function message(bytes: Buffer, shape: Shape): JsonObject | undefined {
  const object: JsonObject = {}
  let place = 0
  while (place < bytes.length) {
    const tag = varint(bytes, place)
    if (tag === undefined) return undefined
    const [name, kind] = shape[Math.floor(tag.value / 8)] ?? []
    const wire = tag.value % 8
    const head = varint(bytes, tag.next)
    // Only these two wire forms occur in the objects above.
    if (head === undefined || (wire !== 0 && wire !== 2)) return undefined
    const end = wire === 2 ? head.next + head.value : head.next
    if (end > bytes.length) return undefined
    if (name !== undefined && kind !== undefined && !put(object, name, kind, wire === 2 ? bytes.subarray(head.next, end) : head.value)) return undefined
    place = end
  }
  return object
}

function put(object: JsonObject, name: string, kind: Kind, value: Buffer | number): boolean {
  if (typeof value === 'number') {
    object[name] = kind === 'truth' ? value !== 0 : value
    return kind === 'truth' || kind === 'number'
  }
  const there: Json | undefined = object[name]
  switch (kind) {
    case 'text':
      // An empty word is an absent one.
      if (value.length > 0) object[name] = value.toString('utf8')
      return true
    case 'texts':
      object[name] = [...(Array.isArray(there) ? there : []), value.toString('utf8')]
      return true
    case 'bytes':
      object[name] = value.toString('base64')
      return true
    case 'texts by key':
    case 'bytes by key': {
      const entry = message(value, { 1: ['key', 'text'], 2: ['value', kind === 'texts by key' ? 'text' : 'bytes'] })
      if (entry === undefined) return false
      object[name] = { ...Object(there), [String(entry['key'] ?? '')]: entry['value'] ?? '' }
      return true
    }
    case 'truth':
    case 'number':
      return true
    default: {
      const inner = message(value, kind)
      object[name] = inner
      return inner !== undefined
    }
  }
}

function varint(bytes: Buffer, from: number): { value: number; next: number } | undefined {
  let value = 0
  for (let index = 0; index < 8; index += 1) {
    const byte = bytes[from + index]
    if (byte === undefined) return undefined
    value += (byte & 0x7f) * 2 ** (7 * index)
    if (byte < 0x80) return { value, next: from + index + 1 }
  }
  return undefined
}
