// Create and update: what is filled in, what is refused, what is stored. The order of the steps is the real server's, since
// it decides which refusal a bad request hears.
import { customKindsOf } from './custom-kinds.ts'
import { afterRemoval, customKindCollection } from './deletion.ts'
import { copy, same } from './json.ts'
import type { Resource } from './json.ts'
import { collectionOf, nameSuffix, newUid, stamp } from './ground.ts'
import type { Ground } from './ground.ts'
import { groupVersion, storeKey } from './kind.ts'
import type { KindDefinition, RulesGround } from './kind.ts'
import { metadataChanges, metadataFaults } from './metadata.ts'
import { furnish } from './namespace-life.ts'
import { tidyTyped } from './typed.ts'
import { alreadyExists, badRequest, conflict, forbidden, invalid, isRefusal, modified, notFound, wrong } from './refusal.ts'
import type { Refusal } from './refusal.ts'

export interface WriteOptions {
  readonly userName: string
  readonly dryRun: boolean
  readonly planted?: boolean
}

export function create(ground: Ground, kind: KindDefinition, namespace: string, body: Resource, options: WriteOptions): Resource | Refusal {
  const object = kind.toStored?.(body) ?? body
  const misplaced = place(kind, namespace, object)
  if (misplaced !== undefined) return misplaced
  const meta = object.metadata
  if (meta.resourceVersion !== undefined && meta.resourceVersion !== '') return internal('resourceVersion should not be set on objects to be created')
  if ((meta.name ?? '') === '' && (meta.generateName ?? '') !== '') meta.name = `${meta.generateName}${nameSuffix(ground)}`
  for (const field of ['deletionTimestamp', 'deletionGracePeriodSeconds', 'generation', 'managedFields', 'resourceVersion'] as const) delete meta[field]
  meta.uid = newUid(ground)
  meta.creationTimestamp = stamp(ground)
  if (!kind.custom) tidyTyped(object)
  const homeless = namespaceRefusal(ground, kind, namespace, meta.name ?? '')
  if (homeless !== undefined) return homeless
  kind.rules.defaults?.(object)
  const refused = kind.rules.prepareCreate?.(object, rulesGround(ground, options))
  if (refused !== undefined) return refused
  if (kind.generation) meta.generation = 1
  const faults = [...metadataFaults(kind, meta), ...(kind.rules.check?.(object, undefined) ?? [])]
  if (faults.length > 0) return invalid(refusedAs(kind), meta.name ?? '', faults)
  const collection = collectionOf(ground, kind)
  if (collection.has(storeKey(namespace, meta.name ?? ''))) return alreadyExists(kind, meta.name ?? '')
  if (options.dryRun) return object
  ground.store.put(collection, object)
  afterWrite(ground, kind, object)
  return object
}

/** A namespace is furnished, a definition makes its kinds served. */
function afterWrite(ground: Ground, kind: KindDefinition, object: Resource): void {
  if (kind.collection === 'namespaces' && object.metadata.deletionTimestamp === undefined) furnish(ground, object.metadata.name ?? '')
  if (kind.collection !== customKindCollection) return
  for (const custom of customKindsOf(object)) {
    ground.kinds.serve(custom)
    // What stands there by an earlier definition is read by this one. What the real server then leaves out it still holds until the next write.
    collectionOf(ground, custom).reread((one) => custom.rules.defaults?.(one))
  }
}

/** Events of both shapes are refused under the core one's name. */
function refusedAs(kind: KindDefinition): Pick<KindDefinition, 'group' | 'kind'> {
  return kind.collection === 'events' ? { group: '', kind: 'Event' } : kind
}

function internal(message: string): Refusal {
  return { code: 500, reason: '', message }
}

function rulesGround(ground: Ground, options: WriteOptions): RulesGround {
  return {
    now: () => stamp(ground),
    suffix: () => nameSuffix(ground),
    exists: (collection, key) => ground.store.find(collection)?.has(key) ?? false,
    read: (collection, key) => ground.store.find(collection)?.read(key),
    userName: options.userName,
    planted: options.planted === true,
  }
}

function place(kind: KindDefinition, namespace: string, object: Resource): Refusal | undefined {
  if (!kind.namespaced) {
    delete object.metadata.namespace
    return undefined
  }
  const own = object.metadata.namespace ?? ''
  if (own !== '' && own !== namespace) return badRequest('the namespace of the provided object does not match the namespace sent on the request')
  object.metadata.namespace = namespace
  return undefined
}

/** Nothing is made in a namespace that is not there or is going. */
function namespaceRefusal(ground: Ground, kind: KindDefinition, namespace: string, name: string): Refusal | undefined {
  if (!kind.namespaced) return undefined
  const home = ground.store.find('namespaces')?.read(namespace)
  if (home === undefined) return notFound({ group: '', plural: 'namespaces', kind: 'Namespace' }, namespace)
  if (home.metadata.deletionTimestamp === undefined) return undefined
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`
  return forbidden(kind, name, why, [{ reason: 'NamespaceTerminating', message: `namespace ${namespace} is being terminated`, field: 'metadata.namespace' }])
}

export interface UpdateOptions extends WriteOptions {
  readonly part: 'whole' | 'status'
  /** A PUT carries the uid it means: another one is a conflict rather than a fault. */
  readonly put: boolean
  /** Who may change what, beyond what the verb says: seen before anything else is checked. */
  readonly admit?: (next: Resource, old: Resource) => Refusal | undefined
}

/** The object after `change`, which may ask for a copy of the old one to change, as stored. When the update took the last finalizer of a dying object, it is gone. */
export function update(
  ground: Ground, kind: KindDefinition, namespace: string, name: string, options: UpdateOptions, change: (old: () => Resource) => Resource | Refusal,
): Resource | Refusal {
  const collection = collectionOf(ground, kind)
  const key = storeKey(namespace, name)
  const old = collection.read(key)
  if (old === undefined) return notFound(kind, name)
  const changed = change(() => copy(old))
  if (isRefusal(changed)) return changed
  // By a copy without them: an object from which a field is deleted is slow from then on.
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = changed
  const next: Resource = rest
  const unadmitted = options.admit?.(next, old)
  if (unadmitted !== undefined) return unadmitted
  const misplaced = place(kind, namespace, next)
  if (misplaced !== undefined) return misplaced
  if (next.metadata.name !== name) return badRequest(`the name of the object (${next.metadata.name ?? ''}) does not match the name on the URL (${name})`)
  const stale = versionRefusal(kind, name, next, old, options.put)
  if (stale !== undefined) return stale
  carry(kind, next, old, options)
  const faults = [...metadataFaults(kind, next.metadata), ...metadataChanges(next, old), ...(kind.rules.check?.(next, old) ?? [])]
  if (faults.length > 0) return invalid(refusedAs(kind), name, faults)
  if (kind.generation && specChanged(kind, next, old)) next.metadata.generation = (old.metadata.generation ?? 0) + 1
  next.metadata.resourceVersion = old.metadata.resourceVersion ?? ''
  if (lastFinalizerGone(next, old)) {
    if (options.dryRun) return next
    ground.store.delete(collection, key)
    afterRemoval(ground, kind, next)
    return next
  }
  // A write that changes nothing is no write: no new resourceVersion, no event.
  if (same(next, old) || options.dryRun) return next
  ground.store.put(collection, next)
  afterWrite(ground, kind, next)
  return next
}

function versionRefusal(kind: KindDefinition, name: string, next: Resource, old: Resource, put: boolean): Refusal | undefined {
  const uid = next.metadata.uid ?? ''
  if (put && uid !== '' && uid !== old.metadata.uid) {
    return conflict(kind, name, `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata.uid ?? ''}`)
  }
  const version = next.metadata.resourceVersion ?? ''
  if (version === '' || version === '0') {
    if (kind.unconditionalUpdate) return undefined
    return invalid({ group: kind.group, kind: kind.plural }, name, [wrong('metadata.resourceVersion', 0, 'must be specified for an update')])
  }
  if (!/^\d+$/.test(version)) return internal(`strconv.ParseUint: parsing ${JSON.stringify(version)}: invalid syntax`)
  return version === old.metadata.resourceVersion ? undefined : conflict(kind, name, modified)
}

/** What an update never touches is carried over from the old object. */
function carry(kind: KindDefinition, next: Resource, old: Resource, options: UpdateOptions): void {
  const meta = next.metadata
  const before = old.metadata
  if (!kind.custom) tidyTyped(next)
  if (options.part === 'status') kind.rules.prepareStatus?.(next, old)
  else kind.rules.prepareUpdate?.(next, old)
  const settled = next.metadata
  if ((settled.uid ?? '') === '' && before.uid !== undefined) settled.uid = before.uid
  for (const field of ['creationTimestamp', 'deletionTimestamp', 'generation'] as const) take(settled, before, field)
  if (settled.deletionGracePeriodSeconds === undefined) take(settled, before, 'deletionGracePeriodSeconds')
  delete settled.managedFields
  delete meta.managedFields
  kind.rules.defaults?.(next)
}

function take(to: Resource['metadata'], from: Resource['metadata'], field: 'creationTimestamp' | 'deletionTimestamp' | 'generation' | 'deletionGracePeriodSeconds'): void {
  if (from[field] === undefined) delete to[field]
  else Object.assign(to, { [field]: from[field] })
}

function specChanged(kind: KindDefinition, next: Resource, old: Resource): boolean {
  const { metadata: _nextMeta, status: nextStatus, ...after } = next
  const { metadata: _oldMeta, status: oldStatus, ...before } = old
  return !same(after, before) || (kind.generationWithStatus === true && !same(nextStatus, oldStatus))
}

function lastFinalizerGone(next: Resource, old: Resource): boolean {
  const dying = old.metadata.deletionTimestamp !== undefined && (old.metadata.deletionGracePeriodSeconds ?? 0) === 0
  return dying && (next.metadata.finalizers ?? []).length === 0
}

export function kindMismatch(kind: KindDefinition, body: Resource): Refusal | undefined {
  const given = { apiVersion: body.apiVersion ?? '', kind: body.kind ?? '' }
  if (given.apiVersion === '' && given.kind === '' && !kind.custom) return undefined
  if (given.kind === '') return badRequest(`the object provided is unrecognized (must be of type ${kind.kind}): Object 'Kind' is missing in '${JSON.stringify(body)}'`)
  const expected = groupVersion(kind)
  if (given.apiVersion !== expected) return badRequest(`the API version in the data (${given.apiVersion}) does not match the expected API version (${expected})`)
  return given.kind === kind.kind ? undefined : badRequest(`${given.kind} in version "${kind.version}" cannot be handled as a ${kind.kind}: converting (v1.${given.kind}) to (core.${kind.kind}): unknown conversion`)
}
