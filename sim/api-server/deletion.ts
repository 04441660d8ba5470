// Deletion: at once, after a grace, or when the last finalizer has gone. Follows the real server's order of steps, so that
// watchers see the same events: a pod deleted without grace is first MODIFIED (deletionTimestamp, grace 0), then DELETED.
import type { ObjectMeta, Resource } from './json.ts'
import { isObject, numberAt, textAt } from './json.ts'
import type { Json } from './json.ts'
import { collectionOf, stamp } from './ground.ts'
import type { Ground } from './ground.ts'
import { customKindsOf } from './custom-kinds.ts'
import { storeKey } from './kind.ts'
import type { KindDefinition } from './kind.ts'
import { beginEnd, endIfEmpty } from './namespace-life.ts'
import { asKind, badRequest, conflict, invalid, notFound, unsupported } from './refusal.ts'
import type { Refusal, Subject } from './refusal.ts'
import { timeText } from './times.ts'

export const customKindCollection = 'customresourcedefinitions.apiextensions.k8s.io'

export interface DeleteOptions {
  readonly gracePeriodSeconds?: number
  readonly uid?: string
  readonly resourceVersion?: string
  readonly propagationPolicy?: string
  readonly dryRun: boolean
}

export interface Deleted {
  readonly object: Resource
  /** False: it is still there, and will go when its grace or its finalizers let it. */
  readonly gone: boolean
}

export function parseDeleteOptions(body: Json | undefined, query: URLSearchParams): DeleteOptions | Refusal {
  const given = isObject(body) ? body : {}
  const kind = textAt(given, 'kind')
  if (kind !== '' && kind !== 'DeleteOptions') return badRequest(`no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(textAt(given, 'apiVersion'))}`)
  if (given['gracePeriodSeconds'] !== undefined && given['gracePeriodSeconds'] !== null && numberAt(given, 'gracePeriodSeconds') === undefined) {
    return badRequest(`json: cannot unmarshal ${typeof given['gracePeriodSeconds']} into Go struct field DeleteOptions.gracePeriodSeconds of type int64`)
  }
  const grace = numberAt(given, 'gracePeriodSeconds') ?? (query.has('gracePeriodSeconds') ? Number(query.get('gracePeriodSeconds')) : undefined)
  if (grace !== undefined && !Number.isInteger(grace)) return badRequest(`strconv.ParseInt: parsing ${JSON.stringify(query.get('gracePeriodSeconds') ?? '')}: invalid syntax`)
  const uid = textAt(given, 'preconditions', 'uid')
  const resourceVersion = textAt(given, 'preconditions', 'resourceVersion')
  const policy = textAt(given, 'propagationPolicy') || (query.get('propagationPolicy') ?? '')
  if (policy !== '' && !['Orphan', 'Background', 'Foreground'].includes(policy)) {
    return invalid({ group: 'meta.k8s.io', kind: 'DeleteOptions' }, '', [unsupported('propagationPolicy', policy, ['Foreground', 'Background', 'Orphan', 'nil'])])
  }
  const dryRun = query.get('dryRun') === 'All' || (Array.isArray(given['dryRun']) && given['dryRun'].includes('All'))
  return {
    dryRun, ...(grace === undefined ? {} : { gracePeriodSeconds: grace < 0 ? 1 : grace }), ...(uid === '' ? {} : { uid }),
    ...(resourceVersion === '' ? {} : { resourceVersion }), ...(policy === '' ? {} : { propagationPolicy: policy }),
  }
}

export function remove(ground: Ground, kind: KindDefinition, namespace: string, name: string, options: DeleteOptions): Deleted | Refusal {
  const collection = collectionOf(ground, kind)
  const key = storeKey(namespace, name)
  const object = collection.read(key)
  if (object === undefined) return notFound(kind, name)
  const unmet = preconditionRefusal(kind, name, object.metadata, options)
  if (unmet !== undefined) return unmet
  if (!options.dryRun && kind.collection === 'namespaces') return removeNamespace(ground, kind, object, options)
  if (!options.dryRun) return settle(ground, kind, key, object, options)
  return { object, gone: (object.metadata.finalizers ?? []).length === 0 }
}

function settle(ground: Ground, kind: KindDefinition, key: string, object: Resource, options: DeleteOptions): Deleted {
  const collection = collectionOf(ground, kind)
  const meta = object.metadata
  const mark = graceMark(ground, kind, object, options)
  if (mark === 'pending') return { object, gone: false }
  const finalizersChanged = addPropagationFinalizer(meta, options)
  const held = (meta.finalizers ?? []).length > 0
  if (mark === 'marked' || (held && meta.deletionTimestamp === undefined) || (held && finalizersChanged)) {
    if (mark === 'none' && held) markDying(ground, meta)
    ground.store.put(collection, object)
  }
  const waits = mark === 'marked' && (meta.deletionGracePeriodSeconds ?? 0) > 0
  if (held || waits) return { object, gone: false }
  ground.store.delete(collection, key)
  afterRemoval(ground, kind, object)
  return { object, gone: true }
}

/** What the end of one object brings with it. */
export function afterRemoval(ground: Ground, kind: KindDefinition, object: Resource): void {
  if (kind.namespaced) endIfEmpty(ground, object.metadata.namespace ?? '')
  if (kind.collection !== customKindCollection) return
  for (const custom of customKindsOf(object)) {
    const collection = collectionOf(ground, custom)
    for (const key of collection.keys()) ground.store.delete(collection, key)
    ground.kinds.drop(custom)
  }
}

function removeNamespace(ground: Ground, kind: KindDefinition, namespace: Resource, options: DeleteOptions): Deleted {
  const name = namespace.metadata.name ?? ''
  for (const inside of beginEnd(ground, kind, namespace)) {
    remove(ground, inside.kind, name, inside.name, { dryRun: false, ...(options.gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds: options.gracePeriodSeconds }) })
  }
  endIfEmpty(ground, name)
  return { object: namespace, gone: false }
}

/** `marked`: the object was changed and must be written. `pending`: it is dying already and this DELETE adds nothing. */
function graceMark(ground: Ground, kind: KindDefinition, object: Resource, options: DeleteOptions): 'none' | 'marked' | 'pending' {
  const grace = kind.rules.grace
  if (grace === undefined) return 'none'
  const meta = object.metadata
  if (meta.deletionTimestamp !== undefined) return shorten(ground, meta, meta.deletionTimestamp, options)
  const period = grace(object, options.gracePeriodSeconds)
  meta.deletionTimestamp = timeText(Date.parse(stamp(ground)) + period * 1000)
  meta.deletionGracePeriodSeconds = period
  if ((meta.generation ?? 0) > 0) meta.generation = (meta.generation ?? 0) + 1
  return 'marked'
}

/** A second DELETE may shorten the grace, never stretch it. */
function shorten(ground: Ground, meta: ObjectMeta, deadline: string, options: DeleteOptions): 'none' | 'marked' | 'pending' {
  const left = meta.deletionGracePeriodSeconds ?? 0
  if (left === 0) return 'none'
  const wanted = options.gracePeriodSeconds
  if (wanted === undefined || wanted >= left) return 'pending'
  const now = Date.parse(stamp(ground))
  const moved = Date.parse(deadline) - left * 1000 + wanted * 1000
  meta.deletionTimestamp = timeText(Math.max(moved, now))
  // The whole grace has passed already: the least that is still graceful, so that the kubelet has the last word.
  meta.deletionGracePeriodSeconds = moved < now && wanted !== 0 ? 1 : wanted
  return 'marked'
}

function markDying(ground: Ground, meta: ObjectMeta): void {
  meta.deletionTimestamp ??= stamp(ground)
  meta.deletionGracePeriodSeconds = 0
  if ((meta.generation ?? 0) > 0) meta.generation = (meta.generation ?? 0) + 1
}

/** The garbage collector takes these finalizers off again; without one in the world the object waits, as it would there. */
function addPropagationFinalizer(meta: ObjectMeta, options: DeleteOptions): boolean {
  const finalizer = options.propagationPolicy === 'Orphan' ? 'orphan' : options.propagationPolicy === 'Foreground' ? 'foregroundDeletion' : undefined
  const there = meta.finalizers ?? []
  if (finalizer === undefined || there.includes(finalizer)) return false
  meta.finalizers = [...there, finalizer]
  return true
}

export function preconditionRefusal(kind: Subject, name: string, meta: ObjectMeta, options: DeleteOptions): Refusal | undefined {
  if (options.uid !== undefined && options.uid !== meta.uid) {
    return conflict(asKind(kind), name, `the UID in the precondition (${options.uid}) does not match the UID in record (${meta.uid ?? ''}). The object might have been deleted and then recreated`)
  }
  if (options.resourceVersion !== undefined && options.resourceVersion !== meta.resourceVersion) {
    return conflict(asKind(kind), name, `the ResourceVersion in the precondition (${options.resourceVersion}) does not match the ResourceVersion in record (${meta.resourceVersion ?? ''}). The object might have been modified`)
  }
  return undefined
}
