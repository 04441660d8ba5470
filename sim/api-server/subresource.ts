// Subresources that are deeds rather than parts of an object: binding, eviction, token, scale, finalize.
import type { ApiResponse } from '../../coordinator/transport.ts'
import { bodyText, dryRun } from './asked.ts'
import type { Asked } from './asked.ts'
import { evict } from './eviction.ts'
import { collectionOf, served } from './ground.ts'
import type { Ground } from './ground.ts'
import { isObject, listAt, numberAt, objectAt, textAt } from './json.ts'
import type { Json, JsonObject, Resource } from './json.ts'
import { storeKey } from './kind.ts'
import { endIfEmpty } from './namespace-life.ts'
import { jsonPatch, mergePatch } from './patch.ts'
import { asKind, badRequest, conflict, invalid, isRefusal, methodNotAllowed, notFound, wrong } from './refusal.ts'
import type { Refusal } from './refusal.ts'
import { json } from './response.ts'
import { timeText } from './times.ts'
import { tokenRequest } from './tokens.ts'
import { update } from './write.ts'

export function answerSubresource(ground: Ground, asked: Asked): ApiResponse | Refusal {
  const { method } = asked.request
  switch (asked.target.subresource) {
    case 'binding':
      return method === 'POST' ? bind(ground, asked) : methodNotAllowed()
    case 'eviction':
      return method === 'POST' ? evict(ground, asked) : methodNotAllowed()
    case 'token':
      return method === 'POST' ? issueToken(ground, asked) : methodNotAllowed()
    case 'finalize':
      return method === 'PUT' ? finalize(ground, asked) : methodNotAllowed()
    case 'scale':
      return scale(ground, asked)
    case '':
    case 'status':
      return methodNotAllowed()
  }
}

const success: JsonObject = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }

/** Where the update's options are the same for every subresource. */
function whole(asked: Asked) {
  return { userName: asked.user.name, dryRun: dryRun(asked), put: false, part: 'whole' as const }
}

function read(ground: Ground, asked: Asked): Resource | Refusal {
  const { kind, namespace, name } = asked.target
  return collectionOf(ground, kind).read(storeKey(namespace, name)) ?? notFound(kind, name)
}

/** Written past the pod's own rules: a binding is the one way in which nodeName is ever set. */
function bind(ground: Ground, asked: Asked): ApiResponse | Refusal {
  const body = bodyText(asked)
  if (isRefusal(body)) return body
  const { kind, namespace, name } = asked.target
  const node = textAt(body, 'target', 'name')
  if (node === '') return invalid({ group: '', kind: 'Binding' }, name, [{ reason: 'FieldValueRequired', field: 'target.name', message: 'Required value' }])
  const pod = read(ground, asked)
  if (isRefusal(pod)) return pod
  const wanted = textAt(body, 'metadata', 'uid')
  if (wanted !== '' && wanted !== pod.metadata.uid) return conflict(kind, name, `Precondition failed: UID in precondition: ${wanted}, UID in object meta: ${pod.metadata.uid ?? ''}`)
  const bindings = { group: '', plural: 'pods/binding', kind: 'Binding' }
  if (pod.metadata.deletionTimestamp !== undefined) return conflict(bindings, name, `pod ${name} is being deleted, cannot be assigned to a host`)
  const bound = textAt(pod, 'spec', 'nodeName')
  if (bound !== '') return conflict(bindings, name, `pod ${name} is already assigned to node ${JSON.stringify(bound)}`)
  if (dryRun(asked)) return json(201, JSON.stringify(success))
  const now = timeText(ground.clock.wall())
  const others = listAt(pod, 'status', 'conditions').filter((condition) => textAt(condition, 'type') !== 'PodScheduled')
  pod['spec'] = { ...objectAt(pod, 'spec'), nodeName: node }
  pod['status'] = { ...objectAt(pod, 'status'), conditions: [...others, { type: 'PodScheduled', status: 'True', lastProbeTime: null, lastTransitionTime: now }] }
  pod.metadata.annotations = { ...pod.metadata.annotations, ...annotationsOf(body) }
  if (Object.keys(pod.metadata.annotations).length === 0) delete pod.metadata.annotations
  ground.store.put(ground.store.collection('pods', kind), { ...pod, metadata: { ...pod.metadata, namespace } })
  return json(201, JSON.stringify(success))
}

function annotationsOf(body: JsonObject): Record<string, string> {
  const entries = Object.entries(objectAt(body, 'metadata', 'annotations'))
  return Object.fromEntries(entries.flatMap(([key, value]) => (typeof value === 'string' ? [[key, value]] : [])))
}

const leastSeconds = 600

function issueToken(ground: Ground, asked: Asked): ApiResponse | Refusal {
  const body = bodyText(asked)
  if (isRefusal(body)) return body
  const account = read(ground, asked)
  if (isRefusal(account)) return account
  const { namespace, name } = asked.target
  const wanted = tokenRequest({ ...body, metadata: {} })
  if (wanted.seconds < leastSeconds) {
    return invalid({ group: 'authentication.k8s.io', kind: 'TokenRequest' }, '', [wrong('spec.expirationSeconds', wanted.seconds, 'may not specify a duration less than 10 minutes')])
  }
  const bound = wanted.pod === undefined ? undefined : boundPod(ground, namespace, name, wanted.pod)
  if (isRefusal(bound)) return bound
  const issued = ground.tokens.issue(ground, {
    namespace, account: name, accountUid: account.metadata.uid ?? '', audiences: wanted.audiences, seconds: wanted.seconds, ...bound,
  })
  const spec = { audiences: wanted.audiences, expirationSeconds: wanted.seconds, boundObjectRef: objectAt(body, 'spec')['boundObjectRef'] ?? null }
  const metadata = { name, namespace, uid: account.metadata.uid ?? null, creationTimestamp: timeText(ground.clock.wall()) }
  const status = { token: issued.token, expirationTimestamp: timeText(issued.expiresAt) }
  return json(201, JSON.stringify({ kind: 'TokenRequest', apiVersion: 'authentication.k8s.io/v1', metadata, spec, status }))
}

type Bound = { pod: { name: string; uid: string }; node?: { name: string; uid?: string } }

function boundPod(ground: Ground, namespace: string, account: string, wanted: { name: string; uid: string }): Bound | Refusal {
  const pods = { group: '', plural: 'pods', kind: 'Pod' }
  const pod = ground.store.find('pods')?.read(`${namespace}/${wanted.name}`)
  if (pod === undefined) return notFound(pods, wanted.name)
  const uid = pod.metadata.uid ?? ''
  if (wanted.uid !== '' && wanted.uid !== uid) return conflict(asKind(pods), wanted.name, `the UID in the bound object reference (${wanted.uid}) does not match the UID in record. The object might have been deleted and then recreated`)
  const runsAs = textAt(pod, 'spec', 'serviceAccountName')
  if (runsAs !== account) return badRequest(`cannot bind token for serviceaccount ${JSON.stringify(account)} to pod running with different serviceaccount name.`)
  const nodeName = textAt(pod, 'spec', 'nodeName')
  if (nodeName === '') return { pod: { name: wanted.name, uid } }
  const nodeUid = ground.store.find('nodes')?.read(nodeName)?.metadata.uid
  return { pod: { name: wanted.name, uid }, node: { name: nodeName, ...(nodeUid === undefined ? {} : { uid: nodeUid }) } }
}

function finalize(ground: Ground, asked: Asked): ApiResponse | Refusal {
  const body = bodyText(asked)
  if (isRefusal(body)) return body
  const { kind, name } = asked.target
  const namespace = read(ground, asked)
  if (isRefusal(namespace)) return namespace
  namespace['spec'] = { ...objectAt(namespace, 'spec'), finalizers: listAt(body, 'spec', 'finalizers') }
  ground.store.put(collectionOf(ground, kind), namespace)
  endIfEmpty(ground, name)
  return json(200, JSON.stringify(served(kind, namespace)))
}

function scale(ground: Ground, asked: Asked): ApiResponse | Refusal {
  const { kind, namespace, name } = asked.target
  const object = read(ground, asked)
  if (isRefusal(object)) return object
  if (asked.request.method === 'GET') return json(200, JSON.stringify(scaleOf(object)))
  if (asked.request.method !== 'PUT' && asked.request.method !== 'PATCH') return methodNotAllowed()
  const body = bodyValue(asked)
  if (isRefusal(body)) return body
  const asScale = asked.request.method === 'PUT' ? body : patchedScale(asked, scaleOf(object), body)
  if (isRefusal(asScale)) return asScale
  const replicas = numberAt(asScale, 'spec', 'replicas') ?? 0
  if (replicas < 0) return invalid({ group: 'autoscaling', kind: 'Scale' }, name, [wrong('spec.replicas', replicas, 'must be greater than or equal to 0')])
  const version = textAt(asScale, 'metadata', 'resourceVersion')
  const updated = update(ground, kind, namespace, name, whole(asked), (copied) => {
    const old = copied()
    const next: Resource = { ...old, spec: { ...objectAt(old, 'spec'), replicas } }
    if (version !== '') next.metadata.resourceVersion = version
    return next
  })
  return isRefusal(updated) ? updated : json(200, JSON.stringify(scaleOf(updated)))
}

function bodyValue(asked: Asked): Json | Refusal {
  const body = bodyText(asked, true)
  return isRefusal(body) ? body : body['value'] ?? null
}

function patchedScale(asked: Asked, current: JsonObject, patch: Json): Json | Refusal {
  if (!(asked.request.headers['content-type'] ?? '').startsWith('application/json-patch+json')) return mergePatch(current, patch)
  const patched = jsonPatch(current, patch)
  return 'fault' in patched ? badRequest(patched.fault) : patched.document
}

function scaleOf(object: Resource): JsonObject {
  const { name = '', namespace = '', uid = '', resourceVersion = '', creationTimestamp = '' } = object.metadata
  const labels = objectAt(object, 'spec', 'selector', 'matchLabels')
  const wanted = numberAt(object, 'spec', 'replicas') ?? 0
  const selector = Object.entries(isObject(labels) ? labels : {}).map(([key, value]) => `${key}=${String(value)}`).join(',')
  return {
    kind: 'Scale', apiVersion: 'autoscaling/v1', metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: wanted === 0 ? {} : { replicas: wanted }, status: { replicas: numberAt(object, 'status', 'replicas') ?? 0, selector },
  }
}

