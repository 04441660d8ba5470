// One request on its way: who asks, for what, and what its body says.
import type { ApiRequest } from '../../coordinator/transport.ts'
import type { Call } from './faults.ts'
import { isObject, parse } from './json.ts'
import type { JsonObject, Resource } from './json.ts'
import { badRequest, unsupportedMediaType } from './refusal.ts'
import type { Refusal } from './refusal.ts'
import type { Target } from './route.ts'
import type { User } from './user.ts'
import { kindMismatch } from './write.ts'

export interface Asked {
  readonly request: ApiRequest
  readonly call: Call
  readonly user: User
  readonly target: Target
  readonly signal: AbortSignal
}

export function verbOf({ request, call, target }: Pick<Asked, 'request' | 'call' | 'target'>): string {
  switch (request.method) {
    case 'GET':
      return call.watch ? 'watch' : target.name === '' ? 'list' : 'get'
    case 'POST':
      return 'create'
    case 'PUT':
      return 'update'
    case 'PATCH':
      return 'patch'
    case 'DELETE':
      return target.name === '' ? 'deletecollection' : 'delete'
  }
}

/** The body as an object of Kubernetes, or why it is none. */
export function bodyOf(asked: Asked): Resource | Refusal {
  const type = (asked.request.headers['content-type'] ?? 'application/json').split(';')[0]?.trim() ?? ''
  // kubectl's own `create namespace` and a few others speak protobuf; `create -f` and all else speak JSON.
  if (type !== 'application/json') return unsupportedMediaType(['application/json'])
  const parsed = parse(asked.request.body ?? '')
  const { kind } = asked.target
  if ('fault' in parsed) return badRequest(`couldn't get version/kind; json parse error: ${parsed.fault}`)
  if (!isObject(parsed.value)) return badRequest(`couldn't get version/kind; json parse error: json: cannot unmarshal into Go value of type struct`)
  const meta = parsed.value['metadata']
  // Its metadata may be missing, which then is the same as empty.
  const object = { ...parsed.value, metadata: isObject(meta) ? meta : {} } as Resource
  const mismatch = kindMismatch(kind, object)
  if (mismatch !== undefined) return mismatch
  const undecodable = metadataFault(object) ?? kind.rules.decode?.(object)
  return undecodable === undefined ? object : badRequest(`${kind.kind} in version "${kind.version}" cannot be handled as a ${kind.kind}: ${undecodable}`)
}

/** Labels and annotations are words; a null among them is an empty word. */
export function metadataFault(object: Resource): string | undefined {
  for (const field of ['labels', 'annotations'] as const) {
    const map: JsonObject = object.metadata[field] ?? {}
    for (const [key, value] of Object.entries(map)) {
      if (value === null) map[key] = ''
      else if (typeof value !== 'string') return `json: cannot unmarshal ${typeof value} into Go struct field ObjectMeta.metadata.${field} of type string`
    }
  }
  return undefined
}

/** The body of a deed, an object. `wrapped`: whatever JSON it is, under `value`. */
export function bodyText(asked: Asked, wrapped = false): JsonObject | Refusal {
  const parsed = parse(asked.request.body ?? '')
  if ('fault' in parsed) return badRequest(`couldn't get version/kind; json parse error: ${parsed.fault}`)
  if (wrapped) return { value: parsed.value }
  return isObject(parsed.value) ? parsed.value : badRequest(`couldn't get version/kind; json parse error: not an object`)
}

export function dryRun(asked: Asked): boolean {
  return asked.call.query.get('dryRun') === 'All'
}
