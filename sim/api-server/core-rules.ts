// The smaller kinds of the core group.
import { isObject, listAt, objectAt, same, textAt } from './json.ts'
import type { Resource } from './json.ts'
import type { Rules } from './kind.ts'
import { forbiddenField, required, wrong } from './refusal.ts'
import type { Cause } from './refusal.ts'

export const namespaceRules: Rules = {
  name: 'label',
  prepareCreate(namespace) {
    const spec = objectAt(namespace, 'spec')
    if (!listAt(spec, 'finalizers').includes('kubernetes')) spec['finalizers'] = [...listAt(spec, 'finalizers'), 'kubernetes']
    namespace['spec'] = spec
    namespace['status'] = { phase: 'Active' }
    namespace.metadata.labels = { ...namespace.metadata.labels, 'kubernetes.io/metadata.name': namespace.metadata.name ?? '' }
    return undefined
  },
  prepareUpdate(next, old) {
    next['spec'] = { ...objectAt(next, 'spec'), finalizers: listAt(old, 'spec', 'finalizers') }
    next['status'] = old['status']
    next.metadata.labels = { ...next.metadata.labels, 'kubernetes.io/metadata.name': next.metadata.name ?? '' }
  },
  prepareStatus(next, old) {
    next['spec'] = old['spec']
  },
}

/** A map of words: what is no word cannot be decoded, and a null is an empty word. */
function wordsFault(object: Resource, field: string): string | undefined {
  const wrongType = Object.values(objectAt(object, field)).find((value) => value !== null && typeof value !== 'string')
  if (wrongType === undefined) return undefined
  return `json: cannot unmarshal ${typeof wrongType === 'boolean' ? 'bool' : typeof wrongType} into Go struct field .${field} of type string`
}

function nullsToWords(object: Resource, field: string): void {
  const map = objectAt(object, field)
  for (const key of Object.keys(map)) map[key] ??= ''
}

const keyRule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"

function keyFaults(object: Resource): Cause[] {
  return ['data', 'binaryData'].flatMap((field) => Object.keys(objectAt(object, field))
    .flatMap((key) => (/^[-._a-zA-Z0-9]{1,253}$/.test(key) ? [] : [wrong(`${field}[${key}]`, key, keyRule)])))
}

function immutableFaults(next: Resource, old: Resource | undefined): Cause[] {
  if (old?.['immutable'] !== true) return []
  return ['immutable', 'data', 'binaryData'].flatMap((field) => (same(next[field], old[field]) ? [] : [forbiddenField(field, 'field is immutable when `immutable` is set')]))
}

export const configMapRules: Rules = {
  decode: (map) => wordsFault(map, 'data') ?? wordsFault(map, 'binaryData'),
  defaults: (map) => nullsToWords(map, 'data'),
  check: (next, old) => [...keyFaults(next), ...immutableFaults(next, old)],
}

export const secretRules: Rules = {
  decode(secret) {
    const fault = wordsFault(secret, 'data') ?? wordsFault(secret, 'stringData')
    const coded = Object.values(objectAt(secret, 'data')).every((value) => value === null || /^[A-Za-z0-9+/]*={0,2}$/.test(String(value)))
    return fault ?? (coded ? undefined : 'illegal base64 data at input byte 0')
  },
  check: (next, old) => [...keyFaults(next), ...immutableFaults(next, old)],
  defaults(secret) {
    secret['type'] ??= 'Opaque'
    const plain = objectAt(secret, 'stringData')
    if (Object.keys(plain).length === 0) return
    const encoded = Object.entries(plain).map(([key, value]) => [key, Buffer.from(String(value)).toString('base64')])
    secret['data'] = { ...objectAt(secret, 'data'), ...Object.fromEntries(encoded) }
    delete secret['stringData']
  },
}

export const serviceAccountRules: Rules = {}

export const serviceRules: Rules = {
  name: 'label',
  defaults(service) {
    const spec = objectAt(service, 'spec')
    service['spec'] = spec
    spec['type'] ??= 'ClusterIP'
    spec['sessionAffinity'] ??= 'None'
    spec['internalTrafficPolicy'] ??= 'Cluster'
    spec['ipFamilies'] ??= ['IPv4']
    spec['ipFamilyPolicy'] ??= 'SingleStack'
    service['status'] ??= { loadBalancer: {} }
    for (const port of listAt(spec, 'ports')) {
      if (!isObject(port)) continue
      port['protocol'] ??= 'TCP'
      port['targetPort'] ??= port['port']
    }
    if (textAt(spec, 'clusterIP') === 'None') spec['clusterIPs'] = ['None']
  },
  prepareUpdate(next, old) {
    next['status'] = old['status']
    const spec = objectAt(next, 'spec')
    for (const field of ['clusterIP', 'clusterIPs']) spec[field] ??= objectAt(old, 'spec')[field]
  },
  prepareStatus(next, old) {
    next['spec'] = old['spec']
  },
  check: (service) => (textAt(service, 'spec', 'clusterIP') !== 'None' && listAt(service, 'spec', 'ports').length === 0 ? [required('spec.ports')] : []),
}
