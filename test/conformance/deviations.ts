// An API server that is wrong in one way, made of a right one and a wrapper round its Transport. Each must turn cases red:
// a suite that stays green on them would prove nothing about the in-memory server either.
import type { ApiRequest, ApiResponse, Transport } from '../../coordinator/transport.ts'

export interface Deviation {
  readonly name: string
  /** Cases that must fail on it. */
  readonly reds: readonly string[]
  plant(right: Transport): Transport
}

type Body = Record<string, unknown>

export const deviations: readonly Deviation[] = [
  {
    name: 'forgets the optimistic lock',
    reds: ['a PUT under an older version is refused with 409 Conflict and changes nothing', 'a merge patch with an older resourceVersion is refused with 409', 'two writers under one version: one is taken, the other hears 409'],
    plant: (right) => onRequest(right, (request) => (request.method === 'PUT' || request.method === 'PATCH'
      ? withBody(request, (body) => ({ ...body, ...('metadata' in body ? { metadata: without(body['metadata'], 'resourceVersion') } : {}) })) : request)),
  },
  {
    name: 'forgets the preconditions of a deletion',
    reds: [
      'a DELETE whose uid precondition does not hold is refused with 409 and deletes nothing', 'a DELETE whose resourceVersion precondition is old is refused with 409 and deletes nothing',
      'a forced DELETE of a bound pod still heeds its uid and resourceVersion preconditions',
    ],
    plant: (right) => onRequest(right, (request) => (request.method === 'DELETE' ? withBody(request, (body) => without(body, 'preconditions')) : request)),
  },
  {
    name: 'sends no bookmarks',
    reds: ['a WatchList begins with what there is and marks its end with a bookmark', 'a WatchList of nothing is a bookmark alone'],
    plant: (right) => onLines(right, (line) => (line.startsWith('{"type":"BOOKMARK"') ? [] : [line])),
  },
  {
    name: 'repeats every watch event',
    reds: ['a watch tells live what happens while it is open', 'a watch from a version tells what happens after it, in order'],
    plant: (right) => onLines(right, (line) => [line, line]),
  },
  {
    name: 'deletes at once despite a finalizer',
    reds: ['a finalizer keeps what is deleted, marked, until the last is taken off', 'an attacher\'s finalizer keeps a deleted VolumeAttachment until it is detached', 'a finalizer keeps even a pod that is deleted by force'],
    plant: (right) => async (request, signal) => {
      const answer = await right(request, signal)
      if (request.method === 'DELETE' && answer.status === 200) {
        await drained(right({ method: 'PATCH', path: bare(request.path), headers: { 'content-type': 'application/merge-patch+json' }, body: '{"metadata":{"finalizers":null}}' }, signal))
      }
      return answer
    },
  },
  {
    name: 'knows no grace',
    reds: ['a DELETE of a bound pod marks it with its grace and leaves it', 'a second DELETE shortens the grace', 'a terminating pod says so in its table'],
    plant: (right) => onRequest(right, (request) => (request.method === 'DELETE' ? withBody({ ...request, body: request.body ?? '{}', headers: { ...request.headers, 'content-type': 'application/json' } }, (body) => ({ ...body, gracePeriodSeconds: 0 })) : request)),
  },
  {
    name: 'keeps the status that a spec write carries',
    reds: ['a spec PUT leaves the status of a custom kind as it was', 'the status of a pod is its own part: spec writes do not reach it, status writes do not reach the spec'],
    plant: (right) => async (request, signal) => {
      const answer = await right(request, signal)
      const body = bodyOf(request)
      const carries = (request.method === 'PUT' || request.method === 'PATCH') && body?.['status'] !== undefined && !/\/(status|scale)(\?|$)/.test(request.path)
      if (!carries || answer.status !== 200) return answer
      await drained(answer)
      return right({ method: 'PATCH', path: `${bare(request.path)}/status`, headers: { 'content-type': 'application/merge-patch+json' }, body: JSON.stringify({ status: body['status'] }) }, signal)
    },
  },
  {
    name: 'ignores selectors',
    reds: ['a label selector by equality, inequality, set, absence and presence', 'pods are listed by the node they are bound to, across namespaces', 'a collection is deleted by its label', 'an unknown field in a selector is refused with 400'],
    plant: (right) => onRequest(right, (request) => withQuery(request, (query) => {
      query.delete('labelSelector')
      query.delete('fieldSelector')
    })),
  },
  {
    name: 'ignores the limit of a list',
    reds: ['a list in pages shows each object once', 'a page that is not selective says how many remain'],
    plant: (right) => onRequest(right, (request) => withQuery(request, (query) => query.delete('limit'))),
  },
  {
    name: 'begins every watch anew',
    reds: ['a watch from a version long gone is told 410 in an ERROR event and ends', 'from the version of a list on, a watch misses nothing and repeats nothing', 'a DELETED event carries the last state under the version of the deletion'],
    plant: (right) => onRequest(right, (request) => withQuery(request, (query) => {
      if (query.get('watch') === 'true') query.delete('resourceVersion')
    })),
  },
  {
    name: 'passes every test of a JSON patch',
    reds: ['a JSON patch whose test fails is refused with 422 and changes nothing', 'a JSON patch test on resourceVersion guards against another writer', 'a JSON status patch guarded by a test on uid is refused with 422 for another pod'],
    plant: (right) => onRequest(right, (request) => {
      const patch: unknown = request.headers['content-type'] === 'application/json-patch+json' ? JSON.parse(request.body ?? '[]') : undefined
      return Array.isArray(patch) ? { ...request, body: JSON.stringify(patch.filter((step) => Reflect.get(Object(step), 'op') !== 'test')) } : request
    }),
  },
  {
    name: 'takes any time for a MicroTime',
    reds: ['a Lease time with three fraction digits is refused with 400', 'a Lease patched with three fraction digits is refused with 422'],
    plant: (right) => onRequest(right, (request) => ({ ...request, ...(request.body === undefined ? {} : { body: request.body.replace(/(\.\d{3})Z"/g, '$1000Z"') }) })),
  },
  {
    name: 'merges no list by its keys',
    reds: ['a strategic merge patch merges a pod\'s conditions by type', 'a strategic merge patch joins finalizers', 'a strategic merge patch on a custom kind is refused with 415'],
    plant: (right) => onRequest(right, (request) => (request.headers['content-type'] === 'application/strategic-merge-patch+json'
      ? { ...request, headers: { ...request.headers, 'content-type': 'application/merge-patch+json' } } : request)),
  },
  {
    name: 'carries out a dry run',
    reds: ['a dry-run create answers as if and stores nothing', 'a dry-run DELETE deletes nothing', 'a dry-run patch answers as if and stores nothing'],
    plant: (right) => onRequest(right, (request) => withQuery(request, (query) => query.delete('dryRun'))),
  },
  {
    name: 'evicts whatever a budget says',
    reds: [
      'an eviction that a disruption budget refuses is a 429 that names the budget, and the pod stays', 'a dry-run eviction asks the budget, and spends nothing', 'a pod with two budgets cannot be evicted: 500',
    ],
    plant: (right) => onRequest(right, (request) => (request.path.endsWith('/eviction') ? { ...request, method: 'DELETE', path: request.path.slice(0, -'/eviction'.length), body: '{}' } : request)),
  },
  {
    name: 'says everything is new under each version',
    reds: ['a PUT that changes nothing keeps the version', 'a write that changes nothing is not told', 'a patch that changes nothing keeps the version'],
    plant: (right) => {
      let count = 0
      return onRequest(right, (request) => (request.method === 'PUT' || (request.method === 'PATCH' && request.headers['content-type'] === 'application/merge-patch+json')
        ? withBody(request, (body) => ({ ...body, metadata: { ...Object(body['metadata']), annotations: { 'example.com/touched': String(count++) } } })) : request))
    },
  },
]

function onRequest(right: Transport, change: (request: ApiRequest) => ApiRequest): Transport {
  return (request, signal) => right(change(request), signal)
}

/** For watches: each line becomes these. */
function onLines(right: Transport, change: (line: string) => readonly string[]): Transport {
  return async (request, signal) => {
    const answer = await right(request, signal)
    return request.path.includes('watch=') ? { ...answer, body: lines(answer.body, change) } : answer
  }
}

async function* lines(body: AsyncIterable<string>, change: (line: string) => readonly string[]): AsyncGenerator<string> {
  let text = ''
  for await (const piece of body) {
    text += piece
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      for (const line of change(text.slice(0, end))) yield `${line}\n`
      text = text.slice(end + 1)
    }
  }
  if (text !== '') yield text
}

function bodyOf(request: ApiRequest): Body | undefined {
  if (request.body === undefined || !request.body.startsWith('{')) return undefined
  try {
    const body: unknown = JSON.parse(request.body)
    return typeof body === 'object' && body !== null ? { ...body } : undefined
  } catch {
    // A case about a body that is no JSON: it goes on as it is.
    return undefined
  }
}

function withBody(request: ApiRequest, change: (body: Body) => unknown): ApiRequest {
  const body = bodyOf(request)
  return body === undefined ? request : { ...request, body: JSON.stringify(change(body)) }
}

function withQuery(request: ApiRequest, change: (query: URLSearchParams) => void): ApiRequest {
  const [path = '', search] = request.path.split('?')
  if (search === undefined) return request
  const query = new URLSearchParams(search)
  change(query)
  return { ...request, path: `${path}?${query.toString()}` }
}

function without(value: unknown, field: string): Body {
  const copy: Body = { ...Object(value) }
  delete copy[field]
  return copy
}

function bare(path: string): string {
  return path.split('?')[0] ?? path
}

async function drained(answer: ApiResponse | Promise<ApiResponse>): Promise<void> {
  for await (const piece of (await answer).body) if (piece === undefined) return
}
