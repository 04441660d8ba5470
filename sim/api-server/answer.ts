// From one request to its answer: who may, which verb, what comes back.
import type { ApiRequest, ApiResponse } from '../../coordinator/transport.ts'
import { bodyOf, dryRun, verbOf } from './asked.ts'
import type { Asked } from './asked.ts'
import { parseDeleteOptions, remove } from './deletion.ts'
import type { Ms } from '../../core/model.ts'
import type { Call } from './faults.ts'
import { collectionOf, itemText, served, servedText } from './ground.ts'
import type { Ground } from './ground.ts'
import { parse } from './json.ts'
import type { Json, Resource } from './json.ts'
import { groupVersion, storeKey } from './kind.ts'
import { list } from './list.ts'
import { patchObject } from './patching.ts'
import { admitNode, nodeMayNot } from './node-restriction.ts'
import { parseListQuery } from './query.ts'
import { badRequest, forbidden, isRefusal, methodNotAllowed, noSuchPath, notFound, tooLarge } from './refusal.ts'
import type { Refusal } from './refusal.ts'
import { json, page } from './response.ts'
import { includeOf, tableOf, wantsTable } from './table.ts'
import { answerSubresource } from './subresource.ts'
import type { Watch } from './watch.ts'
import { startWatch } from './watching.ts'
import { create, update } from './write.ts'
import { answerPage } from './discovery.ts'

export interface Opened { readonly call: Call; readonly watch: Watch }

export interface WatchKeeper {
  opened(opened: Opened): void
  closed(watch: Watch): void
  /** How far behind it is. */
  lag(call: Call): Ms
}

/** The real server's own limit for a body. */
const bodyLimit = 3 * 1024 * 1024

export async function answerRequest(
  ground: Ground, request: ApiRequest, call: Call, signal: AbortSignal, keeper: WatchKeeper,
): Promise<ApiResponse | Refusal> {
  const { user } = call
  const where = ground.kinds.route(call.path)
  if (where.to === 'page') return answerPage(ground, request, call)
  if (where.to === 'nowhere') return nowhere(ground, call.path)
  if ((request.body?.length ?? 0) > bodyLimit) return tooLarge(`limit is ${bodyLimit}`)
  const asked: Asked = { request, call, user, target: where.target, signal }
  const refused = authorise(asked) ?? nodeMayNot(ground, asked)
  if (refused !== undefined) return refused
  if (asked.target.kind.review !== undefined && request.method !== 'POST') return methodNotAllowed()
  if (asked.target.subresource !== '' && asked.target.subresource !== 'status') return answerSubresource(ground, asked)
  switch (request.method) {
    case 'GET':
      return get(ground, asked, keeper)
    case 'POST':
      return post(ground, asked)
    case 'PUT':
      return put(ground, asked)
    case 'PATCH':
      return patch(ground, asked)
    case 'DELETE':
      return asked.target.name === '' ? removeAll(ground, asked) : removeOne(ground, asked)
  }
}

/** A group that nobody serves is no API at all, and is told so in plain text. */
function nowhere(ground: Ground, path: string): ApiResponse | Refusal {
  const group = path.startsWith('/apis/') ? path.split('/')[2] ?? '' : ''
  if (ground.kinds.all().some((kind) => kind.group === group)) return noSuchPath
  return page('404 page not found\n', 'text/plain; charset=utf-8', 404)
}

function authorise(asked: Asked): Refusal | undefined {
  const { user, target } = asked
  const verb = verbOf(asked)
  const { kind } = target
  const resource = kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`
  if (user.may === undefined || user.may(verb, resource, target.subresource, target.namespace, target.name)) return undefined
  const scope = target.namespace === '' ? 'at the cluster scope' : `in the namespace "${target.namespace}"`
  const what = target.subresource === '' ? kind.plural : `${kind.plural}/${target.subresource}`
  return forbidden(kind, target.name, `User "${user.name}" cannot ${verb} resource "${what}" in API group "${kind.group}" ${scope}`)
}

async function get(ground: Ground, asked: Asked, keeper: WatchKeeper): Promise<ApiResponse | Refusal> {
  const { kind, namespace, name, subresource } = asked.target
  if (name !== '' && !asked.call.watch) {
    const version = collectionOf(ground, kind).get(storeKey(namespace, name))
    if (version === undefined) return notFound(kind, name)
    if (!wantsTable(asked.request.headers['accept'])) return json(200, servedText(kind, version))
    return json(200, JSON.stringify(tableOf(kind, [version], { resourceVersion: String(version.revision) }, ground.clock.wall(), includeOf(asked.call.query))))
  }
  if (subresource !== '') return methodNotAllowed()
  const query = parseListQuery(kind, namespace, name, asked.call.query)
  if (isRefusal(query)) return query
  if (query.watch) return startWatch(ground, asked, query, keeper)
  const found = await list(ground, kind, query, asked.signal)
  if (isRefusal(found)) return found
  const metadata = {
    resourceVersion: String(found.revision), ...(found.continue === '' ? {} : { continue: found.continue }),
    ...(found.remaining === undefined ? {} : { remainingItemCount: found.remaining }),
  }
  if (wantsTable(asked.request.headers['accept'])) {
    return json(200, JSON.stringify(tableOf(kind, found.versions, metadata, ground.clock.wall(), includeOf(asked.call.query))))
  }
  const items = found.versions.map((version) => itemText(kind, version)).join(',')
  return json(200, `{"kind":"${kind.kind}List","apiVersion":"${groupVersion(kind)}","metadata":${JSON.stringify(metadata)},"items":[${items}]}`)
}

function post(ground: Ground, asked: Asked): ApiResponse | Refusal {
  const { kind, namespace, name } = asked.target
  if (name !== '' || (kind.namespaced && namespace === '')) return methodNotAllowed()
  const body = bodyOf(asked)
  if (isRefusal(body)) return body
  if (kind.review !== undefined) return json(201, JSON.stringify(served(kind, kind.review(ground, body, asked.user))))
  const unadmitted = admitNode(asked)(body, undefined)
  if (unadmitted !== undefined) return unadmitted
  const made = create(ground, kind, namespace, body, { userName: asked.user.name, dryRun: dryRun(asked) })
  return isRefusal(made) ? made : json(201, JSON.stringify(served(kind, made)))
}

function put(ground: Ground, asked: Asked): ApiResponse | Refusal {
  const { kind, namespace, name, subresource } = asked.target
  if (name === '') return methodNotAllowed()
  const body = bodyOf(asked)
  if (isRefusal(body)) return body
  const next = kind.toStored?.(body) ?? body
  if ((next.metadata.name ?? '') === '') return badRequest('name must be provided')
  const options = { userName: asked.user.name, dryRun: dryRun(asked), put: true, part: subresource === 'status' ? 'status' as const : 'whole' as const, admit: admitNode(asked) }
  if (kind.createOnUpdate && subresource === '' && !collectionOf(ground, kind).has(storeKey(namespace, name))) {
    const made = create(ground, kind, namespace, body, options)
    return isRefusal(made) ? made : json(201, JSON.stringify(served(kind, made)))
  }
  const updated = update(ground, kind, namespace, name, options, () => next)
  return isRefusal(updated) ? updated : json(200, writtenText(ground, asked, updated))
}

function patch(ground: Ground, asked: Asked): ApiResponse | Refusal {
  if (asked.target.name === '') return methodNotAllowed()
  const patched = patchObject(ground, asked)
  return isRefusal(patched) ? patched : json(patched.created ? 201 : 200, writtenText(ground, asked, patched.object))
}

/** What a write answers: the store has it as text, unless nothing was stored. */
function writtenText(ground: Ground, asked: Asked, object: Resource): string {
  const { kind } = asked.target
  const { namespace = '', name = '', resourceVersion } = object.metadata
  const version = dryRun(asked) ? undefined : collectionOf(ground, kind).get(storeKey(namespace, name))
  return version !== undefined && String(version.revision) === resourceVersion ? servedText(kind, version) : JSON.stringify(served(kind, object))
}

function deletionBody(asked: Asked): Json | undefined | Refusal {
  if (asked.request.body === undefined || asked.request.body === '') return undefined
  const parsed = parse(asked.request.body)
  return 'fault' in parsed ? badRequest(`couldn't get version/kind; json parse error: ${parsed.fault}`) : parsed.value
}

function removeOne(ground: Ground, asked: Asked): ApiResponse | Refusal {
  const { kind, namespace, name, subresource } = asked.target
  if (subresource !== '') return methodNotAllowed()
  const body = deletionBody(asked)
  if (isRefusal(body)) return body
  const options = parseDeleteOptions(body, asked.call.query)
  if (isRefusal(options)) return options
  const removed = remove(ground, kind, namespace, name, options)
  if (isRefusal(removed)) return removed
  if (!removed.gone || kind.returnsDeleted) return json(200, JSON.stringify(served(kind, removed.object)))
  const details = { name, ...(kind.group === '' ? {} : { group: kind.group }), kind: kind.plural, uid: removed.object.metadata.uid }
  return json(200, JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details }))
}

async function removeAll(ground: Ground, asked: Asked): Promise<ApiResponse | Refusal> {
  const { kind, namespace } = asked.target
  if (kind.namespaced && namespace === '') return methodNotAllowed()
  const body = deletionBody(asked)
  if (isRefusal(body)) return body
  const options = parseDeleteOptions(body, asked.call.query)
  if (isRefusal(options)) return options
  const query = parseListQuery(kind, namespace, '', asked.call.query)
  if (isRefusal(query)) return query
  const found = await list(ground, kind, query, asked.signal)
  if (isRefusal(found)) return found
  for (const version of found.versions) remove(ground, kind, namespace, version.fields['metadata.name'] ?? '', options)
  const items = found.versions.map((version) => itemText(kind, version)).join(',')
  return json(200, `{"kind":"${kind.kind}List","apiVersion":"${groupVersion(kind)}","metadata":{"resourceVersion":"${ground.store.revision}"},"items":[${items}]}`)
}
