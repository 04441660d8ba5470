// What is checked of every object's metadata, whatever its kind.
import type { ObjectMeta, Resource } from './json.ts'
import { same, textAt } from './json.ts'
import type { KindDefinition } from './kind.ts'
import { labelFault, labelValueFault, pathSegmentFault, qualifiedNameFault, subdomainFault } from './names.ts'
import { forbiddenField, required, wrong } from './refusal.ts'
import type { Cause } from './refusal.ts'

/** All annotations together; the real server's limit. */
const annotationLimit = 256 * 1024

export function metadataFaults(kind: KindDefinition, meta: ObjectMeta): Cause[] {
  return [
    ...nameFaults(kind, meta),
    ...Object.entries(meta.labels ?? {}).flatMap(([key, value]) => [
      ...cause('metadata.labels', key, qualifiedNameFault(key)), ...cause('metadata.labels', value, labelValueFault(String(value))),
    ]),
    ...Object.keys(meta.annotations ?? {}).flatMap((key) => cause('metadata.annotations', key, qualifiedNameFault(key.toLowerCase()))),
    ...(meta.annotations !== undefined && JSON.stringify(meta.annotations).length > annotationLimit
      ? [{ reason: 'FieldValueTooLong', field: 'metadata.annotations', message: `Too long: may not be more than ${annotationLimit} bytes` } satisfies Cause] : []),
    ...(meta.finalizers ?? []).flatMap((finalizer, index) => cause(`metadata.finalizers[${index}]`, finalizer, finalizerFault(kind, finalizer))),
    ...(meta.ownerReferences ?? []).flatMap((owner) => ['apiVersion', 'kind', 'name', 'uid']
      .flatMap((field) => (textAt(owner, field) === '' ? [wrong(`metadata.ownerReferences.${field}`, '', 'must not be empty')] : []))),
  ]
}

function cause(field: string, value: string, fault: string | undefined): Cause[] {
  return fault === undefined ? [] : [wrong(field, value, fault)]
}

function finalizerFault(kind: KindDefinition, finalizer: string): string | undefined {
  const fault = qualifiedNameFault(finalizer)
  if (fault !== undefined) return fault
  const known = ['orphan', 'foregroundDeletion', 'kubernetes'].includes(finalizer)
  return finalizer.includes('/') || known || kind.custom ? undefined : 'name is neither a standard finalizer name nor is it fully qualified'
}

function nameFaults(kind: KindDefinition, meta: ObjectMeta): Cause[] {
  const name = meta.name ?? ''
  if (name === '') return [required('metadata.name', 'name or generateName is required')]
  const fault = kind.rules.name === 'any' ? pathSegmentFault(name) : kind.rules.name === 'label' ? labelFault(name) : subdomainFault(name)
  return cause('metadata.name', name, fault)
}

export function metadataChanges(next: Resource, old: Resource): Cause[] {
  const fixed: readonly (keyof ObjectMeta)[] = ['name', 'namespace', 'uid', 'creationTimestamp', 'deletionTimestamp', 'deletionGracePeriodSeconds']
  const before = old.metadata
  const after = next.metadata
  const added = (after.finalizers ?? []).filter((finalizer) => !(before.finalizers ?? []).includes(finalizer))
  return [
    ...fixed.flatMap((field) => (same(after[field], before[field]) ? [] : [wrong(`metadata.${field}`, after[field] ?? null, 'field is immutable')])),
    ...(before.deletionTimestamp !== undefined && added.length > 0
      ? [forbiddenField('metadata.finalizers', `no new finalizers can be added if the object is being deleted, found new finalizers []string{${added.map((one) => JSON.stringify(one)).join(', ')}}`)] : []),
  ]
}
