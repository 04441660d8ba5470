// The columns of `kubectl get` for the built-in kinds, as the real server prints them.
import { at, isObject, listAt, numberAt, objectAt, textAt } from './json.ts'
import type { Json, Resource } from './json.ts'
import { age } from './json-path.ts'
import type { Column } from './kind.ts'
import { podStatus, restarts } from './pod-status.ts'

type Cell = Column['cell']

const none = '<none>'

function column(name: string, cell: Cell, more: Partial<Pick<Column, 'type' | 'priority' | 'format'>> = {}): Column {
  return { name, type: 'string', priority: 0, description: '', cell, ...more }
}

const wide = { priority: 1 } as const
const whole = { type: 'integer' } as const
const truth = { type: 'boolean' } as const

const name = column('Name', (object) => object.metadata.name ?? '', { format: 'name' })
const ageColumn = column('Age', (object, now) => age(object.metadata.creationTimestamp ?? '', now))

const text = (...path: string[]): Cell => (object) => textAt(object, ...path) || none
const count = (...path: string[]): Cell => (object) => numberAt(object, ...path) ?? 0
const size = (...path: string[]): Cell => (object) => Object.keys(objectAt(object, ...path)).length

function words(values: readonly Json[]): string {
  return values.length === 0 ? none : values.map(String).join(',')
}

const templateColumns: Column[] = [
  column('Containers', (object) => words(listAt(object, 'spec', 'template', 'spec', 'containers').map((one) => textAt(one, 'name'))), wide),
  column('Images', (object) => words(listAt(object, 'spec', 'template', 'spec', 'containers').map((one) => textAt(one, 'image'))), wide),
]

const selectorColumn = column('Selector', (object) => pairs(at(object, 'spec', 'selector', 'matchLabels')), wide)

function pairs(labels: Json | undefined): string {
  return isObject(labels) ? words(Object.entries(labels).map(([key, value]) => `${key}=${String(value)}`)) : none
}

function ready(object: Resource): string {
  return `${numberAt(object, 'status', 'readyReplicas') ?? 0}/${numberAt(object, 'spec', 'replicas') ?? 0}`
}

function nodeStatus(node: Resource): string {
  const condition = listAt(node, 'status', 'conditions').find((one) => textAt(one, 'type') === 'Ready')
  const word = condition === undefined ? 'Unknown' : textAt(condition, 'status') === 'True' ? 'Ready' : 'NotReady'
  return at(node, 'spec', 'unschedulable') === true ? `${word},SchedulingDisabled` : word
}

function nodeRoles(node: Resource): string {
  const prefix = 'node-role.kubernetes.io/'
  return words(Object.keys(node.metadata.labels ?? {}).filter((label) => label.startsWith(prefix)).map((label) => label.slice(prefix.length)).toSorted())
}

function nodeAddress(type: string): Cell {
  return (node) => textAt(listAt(node, 'status', 'addresses').find((one) => textAt(one, 'type') === type), 'address') || none
}

function lastSeen(event: Resource, now: number): string {
  const series = textAt(event, 'series', 'lastObservedTime')
  const last = textAt(event, 'lastTimestamp') || textAt(event, 'eventTime') || event.metadata.creationTimestamp || ''
  const seen = age(series || last, now)
  const times = numberAt(event, 'series', 'count') ?? numberAt(event, 'count') ?? 1
  return times > 1 ? `${seen} (x${times} over ${firstSeen(event, now)})` : seen
}

function firstSeen(event: Resource, now: number): string {
  return age(textAt(event, 'firstTimestamp') || textAt(event, 'eventTime') || event.metadata.creationTimestamp || '', now)
}

function accessModes(object: Resource): string {
  const short: Record<string, string> = { ReadWriteOnce: 'RWO', ReadOnlyMany: 'ROX', ReadWriteMany: 'RWX', ReadWriteOncePod: 'RWOP' }
  return listAt(object, 'spec', 'accessModes').map((mode) => short[String(mode)] ?? String(mode)).join(',')
}

function claimStatus(claim: Resource): string {
  return claim.metadata.deletionTimestamp === undefined ? textAt(claim, 'status', 'phase') : 'Terminating'
}

const workloadEnd = [ageColumn, ...templateColumns]

const tables: Readonly<Record<string, readonly Column[]>> = {
  namespaces: [name, column('Status', text('status', 'phase')), ageColumn],
  nodes: [
    name, column('Status', nodeStatus), column('Roles', nodeRoles), ageColumn, column('Version', text('status', 'nodeInfo', 'kubeletVersion')),
    column('Internal-IP', nodeAddress('InternalIP'), wide), column('External-IP', nodeAddress('ExternalIP'), wide),
    column('OS-Image', text('status', 'nodeInfo', 'osImage'), wide), column('Kernel-Version', text('status', 'nodeInfo', 'kernelVersion'), wide),
    column('Container-Runtime', text('status', 'nodeInfo', 'containerRuntimeVersion'), wide),
  ],
  pods: [
    name,
    column('Ready', (pod) => `${listAt(pod, 'status', 'containerStatuses').filter((one) => at(one, 'ready') === true).length}/${listAt(pod, 'spec', 'containers').length}`),
    column('Status', podStatus), column('Restarts', (pod, now) => restarts(pod, now)), ageColumn,
    column('IP', text('status', 'podIP'), wide), column('Node', text('spec', 'nodeName'), wide),
    column('Nominated Node', text('status', 'nominatedNodeName'), wide), column('Readiness Gates', () => none, wide),
  ],
  events: [
    column('Last Seen', lastSeen), column('Type', (event) => textAt(event, 'type')), column('Reason', (event) => textAt(event, 'reason')),
    column('Object', (event) => `${textAt(event, 'involvedObject', 'kind').toLowerCase()}/${textAt(event, 'involvedObject', 'name')}`),
    column('Subobject', (event) => textAt(event, 'involvedObject', 'fieldPath'), wide),
    column('Source', (event) => textAt(event, 'source', 'component') || textAt(event, 'reportingComponent'), wide),
    column('Message', (event) => textAt(event, 'message').trim()), column('First Seen', firstSeen, wide),
    column('Count', (event) => String(numberAt(event, 'series', 'count') ?? numberAt(event, 'count') ?? 1), wide), { ...name, priority: 1 },
  ],
  configmaps: [name, column('Data', (map) => Number(size('data')(map, 0)) + Number(size('binaryData')(map, 0))), ageColumn],
  secrets: [name, column('Type', text('type')), column('Data', size('data')), ageColumn],
  services: [
    name, column('Type', text('spec', 'type')), column('Cluster-IP', text('spec', 'clusterIP')), column('External-IP', () => none),
    column('Port(s)', (service) => words(listAt(service, 'spec', 'ports').map((port) => `${numberAt(port, 'port') ?? ''}/${textAt(port, 'protocol')}`))),
    ageColumn, column('Selector', (service) => pairs(at(service, 'spec', 'selector')), wide),
  ],
  endpoints: [name, column('Endpoints', (one) => words(listAt(one, 'subsets').flatMap((subset) => listAt(subset, 'addresses').map((address) => textAt(address, 'ip'))))), ageColumn],
  serviceaccounts: [name, ageColumn],
  persistentvolumes: [
    name, column('Capacity', text('spec', 'capacity', 'storage')), column('Access Modes', accessModes), column('Reclaim Policy', text('spec', 'persistentVolumeReclaimPolicy')),
    column('Status', claimStatus), column('Claim', (volume) => (at(volume, 'spec', 'claimRef') === undefined ? '' : `${textAt(volume, 'spec', 'claimRef', 'namespace')}/${textAt(volume, 'spec', 'claimRef', 'name')}`)),
    column('StorageClass', (volume) => textAt(volume, 'spec', 'storageClassName')), column('VolumeAttributesClass', () => '<unset>'),
    column('Reason', (volume) => textAt(volume, 'status', 'reason')), ageColumn, column('VolumeMode', text('spec', 'volumeMode'), wide),
  ],
  persistentvolumeclaims: [
    name, column('Status', claimStatus), column('Volume', (claim) => textAt(claim, 'spec', 'volumeName')), column('Capacity', (claim) => textAt(claim, 'status', 'capacity', 'storage')),
    column('Access Modes', (claim) => (textAt(claim, 'spec', 'volumeName') === '' ? '' : accessModes(claim))), column('StorageClass', (claim) => textAt(claim, 'spec', 'storageClassName')),
    column('VolumeAttributesClass', () => '<unset>'), ageColumn, column('VolumeMode', text('spec', 'volumeMode'), wide),
  ],
  'statefulsets.apps': [name, column('Ready', ready), ...workloadEnd],
  'deployments.apps': [
    name, column('Ready', ready), column('Up-to-date', (one) => String(numberAt(one, 'status', 'updatedReplicas') ?? 0)),
    column('Available', (one) => String(numberAt(one, 'status', 'availableReplicas') ?? 0)), ...workloadEnd, selectorColumn,
  ],
  'replicasets.apps': [
    name, column('Desired', count('spec', 'replicas'), whole), column('Current', count('status', 'replicas'), whole),
    column('Ready', count('status', 'readyReplicas'), whole), ...workloadEnd, selectorColumn,
  ],
  'daemonsets.apps': [
    name, column('Desired', count('status', 'desiredNumberScheduled'), whole), column('Current', count('status', 'currentNumberScheduled'), whole),
    column('Ready', count('status', 'numberReady'), whole), column('Up-to-date', count('status', 'updatedNumberScheduled'), whole),
    column('Available', count('status', 'numberAvailable'), whole), column('Node Selector', (one) => pairs(at(one, 'spec', 'template', 'spec', 'nodeSelector'))),
    ...workloadEnd, selectorColumn,
  ],
  'jobs.batch': [
    name, column('Status', (job) => jobStatus(job)), column('Completions', (job) => `${numberAt(job, 'status', 'succeeded') ?? 0}/${numberAt(job, 'spec', 'completions') ?? 1}`),
    column('Duration', (job, now) => duration(job, now)), ...workloadEnd, selectorColumn,
  ],
  'leases.coordination.k8s.io': [name, column('Holder', (lease) => textAt(lease, 'spec', 'holderIdentity')), ageColumn],
  'csidrivers.storage.k8s.io': [
    name, column('AttachRequired', (one) => at(one, 'spec', 'attachRequired') === true, truth), column('PodInfoOnMount', (one) => at(one, 'spec', 'podInfoOnMount') === true, truth),
    column('StorageCapacity', (one) => at(one, 'spec', 'storageCapacity') === true, truth), column('TokenRequests', () => '<unset>'),
    column('RequiresRepublish', (one) => at(one, 'spec', 'requiresRepublish') === true, truth), column('Modes', (one) => words(listAt(one, 'spec', 'volumeLifecycleModes'))), ageColumn,
  ],
  'csinodes.storage.k8s.io': [name, column('Drivers', (one) => listAt(one, 'spec', 'drivers').length, whole), ageColumn],
  'volumeattachments.storage.k8s.io': [
    name, column('Attacher', text('spec', 'attacher'), { format: 'name' }), column('PV', (one) => textAt(one, 'spec', 'source', 'persistentVolumeName')),
    column('Node', text('spec', 'nodeName')), column('Attached', (one) => at(one, 'status', 'attached') === true, truth), ageColumn,
  ],
  'storageclasses.storage.k8s.io': [
    name, column('Provisioner', text('provisioner')), column('ReclaimPolicy', text('reclaimPolicy')), column('VolumeBindingMode', text('volumeBindingMode')),
    column('AllowVolumeExpansion', (one) => String(at(one, 'allowVolumeExpansion') === true)), ageColumn,
  ],
  'priorityclasses.scheduling.k8s.io': [
    name, column('Value', count('value'), whole), column('Global-Default', (one) => at(one, 'globalDefault') === true, truth), ageColumn, column('PreemptionPolicy', text('preemptionPolicy')),
  ],
  'poddisruptionbudgets.policy': [
    name, column('Min Available', (one) => String(at(one, 'spec', 'minAvailable') ?? 'N/A')), column('Max Unavailable', (one) => String(at(one, 'spec', 'maxUnavailable') ?? 'N/A')),
    column('Allowed Disruptions', count('status', 'disruptionsAllowed'), whole), ageColumn,
  ],
  'customresourcedefinitions.apiextensions.k8s.io': [name, column('Created At', (one) => one.metadata.creationTimestamp ?? '', { type: 'date' })],
}

function jobStatus(job: Resource): string {
  const done = listAt(job, 'status', 'conditions').find((one) => ['Complete', 'Failed', 'Suspended'].includes(textAt(one, 'type')) && textAt(one, 'status') === 'True')
  if (done !== undefined) return textAt(done, 'type')
  return job.metadata.deletionTimestamp === undefined ? 'Running' : 'Terminating'
}

function duration(job: Resource, now: number): string {
  const began = textAt(job, 'status', 'startTime')
  const ended = textAt(job, 'status', 'completionTime')
  return began === '' ? '' : age(began, ended === '' ? now : Date.parse(ended))
}

export function columnsOf(collection: string): readonly Column[] {
  return tables[collection] ?? [name, ageColumn]
}
