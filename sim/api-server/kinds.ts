// The built-in kinds that are served, with what sets each apart.
import { columnsOf } from './columns.ts'
import { coreEventRules, eventRules, fromStoredEvent, toStoredEvent } from './event-rules.ts'
import { groupVersion } from './kind.ts'
import type { KindDefinition, Rules, Subresource } from './kind.ts'
import { nodeRules } from './node-rules.ts'
import { podRules, priorityClassRules } from './pod-rules.ts'
import { configMapRules, namespaceRules, secretRules, serviceAccountRules, serviceRules } from './core-rules.ts'
import { claimRules, csiDriverRules, csiNodeRules, storageClassRules, volumeAttachmentRules, volumeRules } from './storage-rules.ts'
import { reviewKinds } from './reviews.ts'
import { leaseRules } from './lease-rules.ts'
import { daemonSetRules, deploymentRules, disruptionBudgetRules, jobRules, replicaSetRules, statefulSetRules } from './workload-rules.ts'
import { customKindRules } from './custom-kind-rules.ts'
import { route } from './route.ts'
import type { Route } from './route.ts'

/** A world in real time meets ever new names. */
const mostRoutes = 10_000

/** Every version of every kind that is served now. */
export class KindTable {
  readonly #byPath = new Map<string, KindDefinition>()
  /** As long as the same kinds are served. */
  readonly #routes = new Map<string, Route>()

  constructor(kinds: readonly KindDefinition[]) {
    for (const kind of kinds) this.serve(kind)
  }

  serve(kind: KindDefinition): void {
    this.#routes.clear()
    this.#byPath.set(`${groupVersion(kind)}/${kind.plural}`, kind)
  }

  drop(kind: KindDefinition): void {
    this.#routes.clear()
    this.#byPath.delete(`${groupVersion(kind)}/${kind.plural}`)
  }

  /** Where the path leads, found once: the same few hundred are asked for all day. */
  route(path: string): Route {
    const known = this.#routes.get(path)
    if (known !== undefined) return known
    const found = route(this, path)
    if (this.#routes.size >= mostRoutes) this.#routes.clear()
    this.#routes.set(path, found)
    return found
  }

  find(groupAndVersion: string, plural: string): KindDefinition | undefined {
    return this.#byPath.get(`${groupAndVersion}/${plural}`)
  }

  /** By what an object says of itself. */
  named(apiVersion: string, kind: string): KindDefinition | undefined {
    return this.all().find((one) => groupVersion(one) === apiVersion && one.kind === kind)
  }

  /** Whose objects the collection keeps; the first of those that share it. */
  of(collection: string): KindDefinition | undefined {
    for (const kind of this.#byPath.values()) if (kind.collection === collection) return kind
    return undefined
  }

  all(): KindDefinition[] {
    return [...this.#byPath.values()]
  }
}

type Sketch = Pick<KindDefinition, 'kind' | 'plural'> & Partial<KindDefinition> & { readonly status?: true }

function define(groupAndVersion: string, sketch: Sketch): KindDefinition {
  const [group = '', version = ''] = groupAndVersion.includes('/') ? groupAndVersion.split('/') : ['', groupAndVersion]
  const { status, ...rest } = sketch
  const collection = group === '' ? sketch.plural : `${sketch.plural}.${group}`
  const own: readonly Subresource[] = status ? ['status'] : []
  return {
    group, version, singular: sketch.kind.toLowerCase(), namespaced: true, collection, custom: false,
    unconditionalUpdate: true, generation: false, selectable: {}, rules: {}, columns: columnsOf(collection),
    ...rest, subresources: [...own, ...(sketch.subresources ?? [])],
  }
}

const cluster = { namespaced: false } as const
const eventFields = {
  'involvedObject.kind': ['involvedObject', 'kind'], 'involvedObject.namespace': ['involvedObject', 'namespace'],
  'involvedObject.name': ['involvedObject', 'name'], 'involvedObject.uid': ['involvedObject', 'uid'],
  'involvedObject.apiVersion': ['involvedObject', 'apiVersion'], 'involvedObject.resourceVersion': ['involvedObject', 'resourceVersion'],
  'involvedObject.fieldPath': ['involvedObject', 'fieldPath'],
  reason: ['reason'], reportingComponent: ['reportingComponent'], source: ['source', 'component'], type: ['type'],
} as const
const regardingFields = {
  'regarding.kind': ['involvedObject', 'kind'], 'regarding.namespace': ['involvedObject', 'namespace'], 'regarding.name': ['involvedObject', 'name'],
  'regarding.uid': ['involvedObject', 'uid'], 'regarding.apiVersion': ['involvedObject', 'apiVersion'],
  'regarding.resourceVersion': ['involvedObject', 'resourceVersion'], 'regarding.fieldPath': ['involvedObject', 'fieldPath'],
  reason: ['reason'], reportingController: ['reportingComponent'], type: ['type'],
} as const

const workload = (rules: Rules): Pick<KindDefinition, 'generation' | 'rules' | 'categories'> => ({ generation: true, rules, categories: ['all'] })

export function builtInKinds(): KindDefinition[] {
  return [
    define('v1', { kind: 'Namespace', plural: 'namespaces', ...cluster, shortNames: ['ns'], status: true, subresources: ['finalize'], returnsDeleted: true, rules: namespaceRules, selectable: { 'status.phase': ['status', 'phase'], name: ['metadata', 'name'] } }),
    define('v1', { kind: 'Node', plural: 'nodes', ...cluster, shortNames: ['no'], status: true, rules: nodeRules, selectable: { 'spec.unschedulable': ['spec', 'unschedulable'] } }),
    define('v1', {
      kind: 'Pod', plural: 'pods', shortNames: ['po'], categories: ['all'], status: true, subresources: ['binding', 'eviction'], returnsDeleted: true, generation: true,
      rules: podRules, index: 'spec.nodeName',
      selectable: {
        'spec.nodeName': ['spec', 'nodeName'], 'spec.restartPolicy': ['spec', 'restartPolicy'], 'spec.schedulerName': ['spec', 'schedulerName'],
        'spec.serviceAccountName': ['spec', 'serviceAccountName'], 'spec.hostNetwork': ['spec', 'hostNetwork'], 'status.phase': ['status', 'phase'],
        'status.podIP': ['status', 'podIP'], 'status.nominatedNodeName': ['status', 'nominatedNodeName'],
      },
    }),
    define('v1', { kind: 'Event', plural: 'events', shortNames: ['ev'], createOnUpdate: true, rules: coreEventRules, selectable: { ...eventFields, ...regardingFields } }),
    define('events.k8s.io/v1', { kind: 'Event', plural: 'events', shortNames: ['ev'], collection: 'events', createOnUpdate: true, rules: eventRules, selectable: { ...eventFields, ...regardingFields }, fromStored: fromStoredEvent, toStored: toStoredEvent, columns: columnsOf('events') }),
    define('v1', { kind: 'ConfigMap', plural: 'configmaps', shortNames: ['cm'], rules: configMapRules }),
    define('v1', { kind: 'Secret', plural: 'secrets', rules: secretRules, selectable: { type: ['type'] } }),
    define('v1', { kind: 'Service', plural: 'services', shortNames: ['svc'], categories: ['all'], status: true, returnsDeleted: true, createOnUpdate: true, rules: serviceRules }),
    define('v1', { kind: 'Endpoints', plural: 'endpoints', shortNames: ['ep'], singular: 'endpoints', createOnUpdate: true }),
    define('v1', { kind: 'ServiceAccount', plural: 'serviceaccounts', shortNames: ['sa'], subresources: ['token'], returnsDeleted: true, rules: serviceAccountRules }),
    define('v1', { kind: 'PersistentVolume', plural: 'persistentvolumes', ...cluster, shortNames: ['pv'], status: true, returnsDeleted: true, rules: volumeRules }),
    define('v1', { kind: 'PersistentVolumeClaim', plural: 'persistentvolumeclaims', shortNames: ['pvc'], status: true, returnsDeleted: true, rules: claimRules }),
    define('apps/v1', { kind: 'StatefulSet', plural: 'statefulsets', shortNames: ['sts'], status: true, subresources: ['scale'], ...workload(statefulSetRules) }),
    define('apps/v1', { kind: 'Deployment', plural: 'deployments', shortNames: ['deploy'], status: true, subresources: ['scale'], ...workload(deploymentRules) }),
    define('apps/v1', { kind: 'ReplicaSet', plural: 'replicasets', shortNames: ['rs'], status: true, subresources: ['scale'], ...workload(replicaSetRules), selectable: { 'status.replicas': ['status', 'replicas'] } }),
    define('apps/v1', { kind: 'DaemonSet', plural: 'daemonsets', shortNames: ['ds'], status: true, ...workload(daemonSetRules) }),
    define('batch/v1', { kind: 'Job', plural: 'jobs', status: true, ...workload(jobRules), selectable: { 'status.successful': ['status', 'succeeded'] } }),
    define('coordination.k8s.io/v1', { kind: 'Lease', plural: 'leases', rules: leaseRules, unconditionalUpdate: false, createOnUpdate: true }),
    define('storage.k8s.io/v1', { kind: 'CSIDriver', plural: 'csidrivers', ...cluster, returnsDeleted: true, unconditionalUpdate: false, rules: csiDriverRules }),
    define('storage.k8s.io/v1', { kind: 'CSINode', plural: 'csinodes', ...cluster, returnsDeleted: true, unconditionalUpdate: false, rules: csiNodeRules }),
    define('storage.k8s.io/v1', { kind: 'VolumeAttachment', plural: 'volumeattachments', ...cluster, status: true, returnsDeleted: true, unconditionalUpdate: false, rules: volumeAttachmentRules }),
    define('storage.k8s.io/v1', { kind: 'StorageClass', plural: 'storageclasses', ...cluster, shortNames: ['sc'], returnsDeleted: true, rules: storageClassRules }),
    define('scheduling.k8s.io/v1', { kind: 'PriorityClass', plural: 'priorityclasses', ...cluster, shortNames: ['pc'], generation: true, rules: priorityClassRules }),
    define('policy/v1', { kind: 'PodDisruptionBudget', plural: 'poddisruptionbudgets', shortNames: ['pdb'], status: true, generation: true, unconditionalUpdate: false, rules: disruptionBudgetRules }),
    ...reviewKinds(),
    define('apiextensions.k8s.io/v1', { kind: 'CustomResourceDefinition', plural: 'customresourcedefinitions', ...cluster, shortNames: ['crd', 'crds'], categories: ['api-extensions'], status: true, generation: true, unconditionalUpdate: false, rules: customKindRules }),
  ]
}
