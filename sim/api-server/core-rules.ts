// The smaller kinds of the core group.
import { objectAt, textAt, listAt, isObject } from './json.ts'
import type { Rules } from './kind.ts'
import { required } from './refusal.ts'

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

export const secretRules: Rules = {
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
