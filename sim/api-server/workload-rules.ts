// Workload kinds: what is filled in, and which parts of a spec never change.
import { at, copy, isObject, listAt, objectAt, same, textAt } from './json.ts'
import type { Json, JsonObject, Resource } from './json.ts'
import type { Rules } from './kind.ts'
import { podDefaults } from './pod-rules.ts'
import { containerFaults } from './pod-spec.ts'
import { forbiddenField, required, wrong } from './refusal.ts'
import type { Cause } from './refusal.ts'

interface WorkloadShape {
  /** What the status is before a controller has said anything. */
  readonly status: JsonObject
  readonly spec: (spec: JsonObject, object: Resource) => void
  readonly changes?: (next: Resource, old: Resource) => Cause[]
  readonly ownSelector?: true
  readonly faults?: (object: Resource) => Cause[]
}

function workload(shape: WorkloadShape): Rules {
  return {
    defaults(object) {
      const spec = objectAt(object, 'spec')
      object['spec'] = spec
      shape.spec(spec, object)
      const template = objectAt(spec, 'template')
      spec['template'] = template
      const podSpec = objectAt(template, 'spec')
      template['spec'] = podSpec
      podDefaults(podSpec)
    },
    prepareCreate(object) {
      object['status'] = copy(shape.status)
      return undefined
    },
    prepareUpdate(next, old) {
      next['status'] = old['status']
    },
    prepareStatus(next, old) {
      next['spec'] = old['spec']
      if (old.metadata.labels === undefined) delete next.metadata.labels
      else next.metadata.labels = old.metadata.labels
    },
    check: (next, old) => [
      ...(shape.ownSelector ? [] : selectorFaults(next)),
      ...(shape.faults?.(next) ?? []),
      ...containerFaults(objectAt(next, 'spec', 'template', 'spec'), 'spec.template.spec'),
      ...(old === undefined ? [] : shape.changes?.(next, old) ?? selectorChanged(next, old)),
    ],
  }
}

function selectorFaults(object: Resource): Cause[] {
  const wanted = objectAt(object, 'spec', 'selector', 'matchLabels')
  const labels = objectAt(object, 'spec', 'template', 'metadata', 'labels')
  if (at(object, 'spec', 'selector') === undefined) return [required('spec.selector')]
  const fits = Object.entries(wanted).every(([key, value]) => labels[key] === value)
  return fits ? [] : [wrong('spec.template.metadata.labels', labels, '`selector` does not match template `labels`')]
}

function selectorChanged(next: Resource, old: Resource): Cause[] {
  const after = at(next, 'spec', 'selector')
  return same(after, at(old, 'spec', 'selector')) ? [] : [wrong('spec.selector', after, 'field is immutable')]
}

export const deploymentRules = workload({
  status: {},
  spec(spec) {
    spec['replicas'] ??= 1
    spec['strategy'] ??= { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } }
    spec['revisionHistoryLimit'] ??= 10
    spec['progressDeadlineSeconds'] ??= 600
  },
})

export const replicaSetRules = workload({
  status: { replicas: 0 },
  spec(spec) {
    spec['replicas'] ??= 1
  },
})

const statefulMayChange = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"

export const statefulSetRules = workload({
  status: { replicas: 0, availableReplicas: 0 },
  spec(spec) {
    spec['replicas'] ??= 1
    spec['podManagementPolicy'] ??= 'OrderedReady'
    spec['updateStrategy'] ??= { type: 'RollingUpdate', rollingUpdate: { partition: 0 } }
    spec['revisionHistoryLimit'] ??= 10
    spec['persistentVolumeClaimRetentionPolicy'] ??= { whenDeleted: 'Retain', whenScaled: 'Retain' }
    for (const claim of listAt(spec, 'volumeClaimTemplates')) {
      if (!isObject(claim)) continue
      claim['kind'] ??= 'PersistentVolumeClaim'
      claim['apiVersion'] ??= 'v1'
      claim['status'] ??= { phase: 'Pending' }
      const claimSpec = objectAt(claim, 'spec')
      claimSpec['volumeMode'] ??= 'Filesystem'
      claim['spec'] = claimSpec
    }
  },
  changes(next, old) {
    return same(fixedPart(next), fixedPart(old)) ? [] : [forbiddenField('spec', statefulMayChange)]
  },
})

function fixedPart(set: Resource): Json {
  const { replicas: _1, ordinals: _2, template: _3, updateStrategy: _4, revisionHistoryLimit: _5, persistentVolumeClaimRetentionPolicy: _6, minReadySeconds: _7, ...rest } = copy(objectAt(set, 'spec'))
  return rest
}

export const daemonSetRules = workload({
  status: { currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0 },
  spec(spec, set) {
    set.metadata.annotations ??= { 'deprecated.daemonset.template.generation': '1' }
    spec['updateStrategy'] ??= { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } }
    spec['revisionHistoryLimit'] ??= 10
  },
})

export const jobRules = workload({
  status: {},
  ownSelector: true,
  faults: (job) => (['OnFailure', 'Never'].includes(textAt(job, 'spec', 'template', 'spec', 'restartPolicy'))
    ? [] : [required('spec.template.spec.restartPolicy', 'valid values: "OnFailure", "Never"')]),
  spec(spec, job) {
    spec['parallelism'] ??= 1
    spec['completions'] ??= 1
    spec['backoffLimit'] ??= 6
    spec['completionMode'] ??= 'NonIndexed'
    spec['suspend'] ??= false
    spec['manualSelector'] ??= false
    spec['podReplacementPolicy'] ??= 'TerminatingOrFailed'
    const uid = job.metadata.uid
    if (uid === undefined || spec['manualSelector'] === true) return
    const template = objectAt(spec, 'template')
    const metadata = objectAt(template, 'metadata')
    const name = job.metadata.name ?? ''
    const own = { 'batch.kubernetes.io/controller-uid': uid, 'batch.kubernetes.io/job-name': name, 'controller-uid': uid, 'job-name': name }
    metadata['labels'] = { ...objectAt(metadata, 'labels'), ...own }
    if (job.metadata.generation === undefined) job.metadata.labels = { ...own, ...job.metadata.labels }
    template['metadata'] = metadata
    spec['template'] = template
    spec['selector'] ??= { matchLabels: { 'batch.kubernetes.io/controller-uid': uid } }
  },
  changes: (next, old) => (same(at(next, 'spec', 'template'), at(old, 'spec', 'template')) ? [] : [wrong('spec.template', '', 'field is immutable')]),
})

export const disruptionBudgetRules: Rules = {
  prepareCreate(budget) {
    budget['status'] = { currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 0, expectedPods: 0 }
    return undefined
  },
  prepareUpdate(next, old) {
    next['status'] = old['status']
  },
  prepareStatus(next, old) {
    next['spec'] = old['spec']
  },
  check: (budget) => (at(budget, 'spec', 'minAvailable') !== undefined && at(budget, 'spec', 'maxUnavailable') !== undefined
    ? [wrong('spec', textAt(budget, 'none'), 'minAvailable and maxUnavailable cannot be both set')] : []),
}
