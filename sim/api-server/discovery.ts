// What a client asks before it asks for anything: version, health, groups, resources, and just enough of OpenAPI for kubectl
// to believe that the server checks fields itself.
import type { ApiRequest, ApiResponse } from '../../coordinator/transport.ts'
import type { Call } from './faults.ts'
import type { Ground } from './ground.ts'
import type { JsonObject } from './json.ts'
import { groupVersion } from './kind.ts'
import type { KindDefinition, Subresource } from './kind.ts'
import { methodNotAllowed, noSuchPath } from './refusal.ts'
import type { Refusal } from './refusal.ts'
import { page } from './response.ts'

/** The version whose behaviour is followed here. */
export const usualVersion = 'v1.36.4'

function versionOf(gitVersion: string): JsonObject {
  const [major = '', minor = ''] = gitVersion.slice(1).split('.')
  return { major, minor, gitVersion, gitCommit: '', gitTreeState: '', buildDate: '1970-01-01T00:00:00Z', goVersion: '', compiler: '', platform: 'linux/amd64' }
}

export function answerPage(ground: Ground, request: ApiRequest, call: Call): ApiResponse | Refusal {
  if (request.method !== 'GET') return methodNotAllowed()
  const path = call.path.replace(/\/+$/, '')
  if (['/healthz', '/livez', '/readyz'].includes(path)) return page('ok', 'text/plain; charset=utf-8')
  const aggregated = /as=APIGroupDiscoveryList/.test((request.headers['accept'] ?? '').split(',')[0] ?? '')
  const kinds = ground.kinds.all()
  const found = aggregated && (path === '/api' || path === '/apis') ? aggregate(kinds, path === '/api') : plain(kinds, path, ground.version)
  if (found === undefined) return noSuchPath
  const type = aggregated && 'items' in found ? 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' : 'application/json'
  return page(JSON.stringify(found), type)
}

function plain(kinds: readonly KindDefinition[], path: string, version: string): JsonObject | undefined {
  const groups = groupsOf(kinds)
  if (path === '/version') return versionOf(version)
  if (path === '/api') return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] }
  if (path === '/apis') return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.filter((name) => name !== '').map((name) => group(kinds, name)) }
  if (path === '/api/v1') return resources(kinds, 'v1')
  if (path === '/openapi/v3') return openApiIndex(kinds)
  const schema = /^\/openapi\/v3\/(api|apis)\/(.+)$/.exec(path)
  if (schema !== null) return openApi(kinds, schema[2] ?? '')
  const parts = /^\/apis\/([^/]+)(?:\/([^/]+))?$/.exec(path)
  const name = parts?.[1]
  if (name === undefined || !groups.includes(name)) return undefined
  return parts?.[2] === undefined ? { kind: 'APIGroup', apiVersion: 'v1', ...group(kinds, name) } : resources(kinds, `${name}/${parts[2]}`)
}

function groupsOf(kinds: readonly KindDefinition[]): string[] {
  return [...new Set(kinds.map((kind) => kind.group))]
}

function group(kinds: readonly KindDefinition[], name: string): JsonObject {
  const versions = [...new Set(kinds.filter((kind) => kind.group === name).map((kind) => kind.version))]
    .map((one) => ({ groupVersion: `${name}/${one}`, version: one }))
  return { name, versions, ...(versions[0] === undefined ? {} : { preferredVersion: versions[0] }) }
}

const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']

function verbsOf(kind: KindDefinition): string[] {
  return kind.review === undefined ? verbs : ['create']
}

function subresourceVerbs(subresource: Subresource): string[] {
  if (subresource === 'status' || subresource === 'scale') return ['get', 'patch', 'update']
  return subresource === 'finalize' ? ['update'] : ['create']
}

const subresourceKinds: Readonly<Partial<Record<Subresource, { group: string; version: string; kind: string }>>> = {
  binding: { group: '', version: 'v1', kind: 'Binding' }, eviction: { group: 'policy', version: 'v1', kind: 'Eviction' },
  scale: { group: 'autoscaling', version: 'v1', kind: 'Scale' }, token: { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' },
}

function resources(kinds: readonly KindDefinition[], wanted: string): JsonObject | undefined {
  const served = kinds.filter((kind) => groupVersion(kind) === wanted)
  if (served.length === 0) return undefined
  return {
    kind: 'APIResourceList', ...(wanted === 'v1' ? {} : { apiVersion: 'v1' }), groupVersion: wanted,
    resources: served.flatMap((kind) => [
      {
        name: kind.plural, singularName: kind.singular, namespaced: kind.namespaced, kind: kind.kind, verbs: verbsOf(kind),
        ...((kind.shortNames ?? []).length === 0 ? {} : { shortNames: [...(kind.shortNames ?? [])] }),
        ...((kind.categories ?? []).length === 0 ? {} : { categories: [...(kind.categories ?? [])] }),
      },
      ...kind.subresources.map((subresource) => ({
        name: `${kind.plural}/${subresource}`, singularName: '', namespaced: kind.namespaced, kind: kind.kind, ...subresourceKinds[subresource], verbs: subresourceVerbs(subresource),
      })),
    ]),
  }
}

function aggregate(kinds: readonly KindDefinition[], core: boolean): JsonObject {
  const groups = groupsOf(kinds).filter((name) => (name === '') === core)
  return {
    kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2', metadata: {},
    items: groups.map((name) => ({
      metadata: name === '' ? {} : { name },
      versions: [...new Set(kinds.filter((kind) => kind.group === name).map((kind) => kind.version))].map((one) => ({
        version: one, freshness: 'Current',
        resources: kinds.filter((kind) => kind.group === name && kind.version === one).map(aggregatedResource),
      })),
    })),
  }
}

function aggregatedResource(kind: KindDefinition): JsonObject {
  const own = { group: '', version: '', kind: kind.kind }
  return {
    resource: kind.plural, responseKind: own, scope: kind.namespaced ? 'Namespaced' : 'Cluster', singularResource: kind.singular, verbs: verbsOf(kind),
    ...((kind.shortNames ?? []).length === 0 ? {} : { shortNames: [...(kind.shortNames ?? [])] }),
    ...((kind.categories ?? []).length === 0 ? {} : { categories: [...(kind.categories ?? [])] }),
    ...(kind.subresources.length === 0 ? {} : {
      subresources: kind.subresources.map((subresource) => ({ subresource, responseKind: subresourceKinds[subresource] ?? own, verbs: subresourceVerbs(subresource) })),
    }),
  }
}

function openApiIndex(kinds: readonly KindDefinition[]): JsonObject {
  const paths = [...new Set(kinds.map((kind) => (kind.group === '' ? `api/${kind.version}` : `apis/${groupVersion(kind)}`)))]
  return { paths: Object.fromEntries(paths.map((path) => [path, { serverRelativeURL: `/openapi/v3/${path}` }])) }
}

/** kubectl looks here for one thing only, whether a PATCH knows `fieldValidation`; `kubectl explain` for the schema. */
function openApi(kinds: readonly KindDefinition[], wanted: string): JsonObject | undefined {
  const served = kinds.filter((kind) => groupVersion(kind) === wanted)
  if (served.length === 0) return undefined
  return {
    openapi: '3.0.0', info: { title: 'Kubernetes', version: 'v1.36.4' },
    paths: Object.fromEntries(served.map((kind) => {
      const root = kind.group === '' ? `/api/${kind.version}` : `/apis/${groupVersion(kind)}`
      const gvk = { group: kind.group, version: kind.version, kind: kind.kind }
      const operation = (action: string) => ({
        parameters: ['dryRun', 'fieldManager', 'fieldValidation'].map((name) => ({ name, in: 'query', schema: { type: 'string', uniqueItems: true } })),
        responses: { 200: { description: 'OK', content: { 'application/json': { schema: { $ref: `#/components/schemas/${schemaName(kind)}` } } } } },
        'x-kubernetes-action': action, 'x-kubernetes-group-version-kind': gvk,
      })
      return [`${root}/${kind.namespaced ? 'namespaces/{namespace}/' : ''}${kind.plural}/{name}`, { get: operation('get'), put: operation('put'), patch: operation('patch') }]
    })),
    components: {
      schemas: Object.fromEntries(served.map((kind) => [schemaName(kind), {
        ...(kind.schema ?? { type: 'object' }), 'x-kubernetes-group-version-kind': [{ group: kind.group, version: kind.version, kind: kind.kind }],
      }])),
    },
  }
}

function schemaName(kind: KindDefinition): string {
  return `${kind.group === '' ? 'core' : kind.group}.${kind.version}.${kind.kind}`
}
