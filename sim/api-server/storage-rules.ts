// Volumes, claims, attachments and what describes their drivers.
import { at, isObject, listAt, objectAt, same, textAt } from './json.ts'
import type { Resource } from './json.ts'
import type { Rules } from './kind.ts'
import { subdomainRule } from './names.ts'
import { duplicate, forbiddenField, required, wrong } from './refusal.ts'
import type { Cause } from './refusal.ts'

export const volumeAttachmentRules: Rules = {
  prepareCreate(attachment) {
    attachment['status'] = { attached: false }
    return undefined
  },
  prepareUpdate(next, old) {
    next['status'] = old['status']
  },
  prepareStatus(next, old) {
    next['spec'] = old['spec']
    const { labels: _labels, annotations: _annotations, finalizers: _finalizers, ownerReferences: _owners, ...meta } = next.metadata
    const { labels, annotations, finalizers, ownerReferences } = old.metadata
    next.metadata = { ...meta, ...defined({ labels, annotations, finalizers, ownerReferences }) }
  },
  check(next, old) {
    const source = objectAt(next, 'spec', 'source')
    const named = ['persistentVolumeName', 'inlineVolumeSpec'].filter((field) => source[field] !== undefined)
    return [
      ...(textAt(next, 'spec', 'attacher') === '' ? [required('spec.attacher')] : []),
      ...(named.length === 0 ? [required('spec.source', 'must specify exactly one of inlineVolumeSpec and persistentVolumeName')] : []),
      ...(named.length === 2 ? [forbiddenField('spec.source', 'must specify exactly one of inlineVolumeSpec and persistentVolumeName')] : []),
      ...(textAt(next, 'spec', 'nodeName') === '' ? [wrong('spec.nodeName', '', subdomainRule)] : []),
      ...(old !== undefined && !same(next['spec'], old['spec']) ? [wrong('spec', next['spec'], 'field is immutable')] : []),
    ]
  },
}

function defined<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  // Fields that are undefined go; what stays has its type without undefined.
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as { [K in keyof T]: Exclude<T[K], undefined> }
}

export const volumeRules: Rules = {
  defaults(volume) {
    const spec = objectAt(volume, 'spec')
    volume['spec'] = spec
    spec['persistentVolumeReclaimPolicy'] ??= 'Retain'
    spec['volumeMode'] ??= 'Filesystem'
  },
  prepareCreate(volume, ground) {
    volume['status'] = { phase: 'Pending', lastPhaseTransitionTime: ground.now() }
    volume.metadata.finalizers = withFinalizer(volume, 'kubernetes.io/pv-protection')
    return undefined
  },
  prepareUpdate(next, old) {
    next['status'] = old['status']
  },
  prepareStatus(next, old) {
    next['spec'] = old['spec']
  },
  check(next, old) {
    const moved = old !== undefined && !same(at(next, 'spec', 'csi'), at(old, 'spec', 'csi'))
    return [
      ...(listAt(next, 'spec', 'accessModes').length === 0 ? [required('spec.accessModes')] : []),
      ...(at(next, 'spec', 'capacity') === undefined ? [required('spec.capacity')] : []),
      ...(moved ? [forbiddenField('spec.persistentvolumesource', 'spec.persistentvolumesource is immutable after creation')] : []),
    ]
  },
}

function withFinalizer(object: Resource, finalizer: string): string[] {
  const there = object.metadata.finalizers ?? []
  return there.includes(finalizer) ? there : [...there, finalizer]
}

export const claimRules: Rules = {
  defaults(claim) {
    const spec = objectAt(claim, 'spec')
    claim['spec'] = spec
    spec['volumeMode'] ??= 'Filesystem'
  },
  prepareCreate(claim) {
    claim['status'] = { phase: 'Pending' }
    claim.metadata.finalizers = withFinalizer(claim, 'kubernetes.io/pvc-protection')
    return undefined
  },
  prepareUpdate(next, old) {
    next['status'] = old['status']
  },
  prepareStatus(next, old) {
    next['spec'] = old['spec']
  },
  check: (claim) => [
    ...(listAt(claim, 'spec', 'accessModes').length === 0 ? [required('spec.accessModes', 'at least 1 access mode is required')] : []),
    ...(at(claim, 'spec', 'resources', 'requests', 'storage') === undefined ? [required('spec.resources[storage]')] : []),
  ],
}

export const csiDriverRules: Rules = {
  defaults(driver) {
    const spec = objectAt(driver, 'spec')
    driver['spec'] = spec
    spec['attachRequired'] ??= true
    spec['podInfoOnMount'] ??= false
    spec['storageCapacity'] ??= false
    spec['fsGroupPolicy'] ??= 'ReadWriteOnceWithFSType'
    spec['volumeLifecycleModes'] ??= ['Persistent']
    spec['requiresRepublish'] ??= false
    spec['seLinuxMount'] ??= false
  },
  check: (next, old) => (old === undefined || same(at(next, 'spec', 'attachRequired'), at(old, 'spec', 'attachRequired'))
    ? [] : [wrong('spec.attachedRequired', at(next, 'spec', 'attachRequired'), 'field is immutable')]),
}

export const csiNodeRules: Rules = {
  defaults(node) {
    for (const driver of listAt(node, 'spec', 'drivers')) if (isObject(driver)) driver['topologyKeys'] ??= null
    if (listAt(node, 'spec', 'drivers').length === 0) node['spec'] = { drivers: null }
  },
  check(next, old) {
    const drivers = listAt(next, 'spec', 'drivers')
    const names = drivers.map((driver) => textAt(driver, 'name'))
    const before = new Map(listAt(old, 'spec', 'drivers').map((driver) => [textAt(driver, 'name'), driver]))
    return drivers.flatMap((driver, index): Cause[] => {
      const name = names[index] ?? ''
      const there = before.get(name)
      return [
        ...(name === '' ? [required(`spec.drivers[${index}].name`)] : []),
        ...(textAt(driver, 'nodeID') === '' ? [required(`spec.drivers[${index}].nodeID`)] : []),
        ...(names.indexOf(name) < index ? [duplicate(`spec.drivers[${index}].name`, name)] : []),
        ...(there !== undefined && textAt(there, 'nodeID') !== textAt(driver, 'nodeID') ? [wrong('spec.drivers', driver, 'field is immutable')] : []),
      ]
    })
  },
}

export const storageClassRules: Rules = {
  defaults(storageClass) {
    storageClass['reclaimPolicy'] ??= 'Delete'
    storageClass['volumeBindingMode'] ??= 'Immediate'
  },
  check: (next, old) => [
    ...(textAt(next, 'provisioner') === '' ? [required('provisioner')] : []),
    ...(old !== undefined && !same(next['provisioner'], old['provisioner']) ? [forbiddenField('provisioner', 'updates to provisioner are forbidden.')] : []),
    ...(old !== undefined && !same(next['parameters'], old['parameters']) ? [forbiddenField('parameters', 'updates to parameters are forbidden.')] : []),
  ],
}
