// Who may write what decides over nodes, as policies that the API server itself holds to (ValidatingAdmissionPolicy). They see
// one write and the object before it, nothing else: whether a proof stands they cannot ask (docs/safety.md).
//
// All of them fail closed. There is no webhook behind them that could be away: only a fault in an expression could fail, so each
// is total, and what is not there has a default. Where kubelets and controllers
// write the same resource as we do, the first condition lets their writes pass unexamined: of nodes/status, every write but our own.
import { evictedByKey, forceEvictionKey } from '../core/acknowledge.ts'
import { outOfServiceKey, ownValue, quarantineKey } from '../core/clear.ts'
import { maintenanceOver, maintenanceReason, maintenanceType } from '../coordinator/kubernetes.ts'
import { keptName } from '../coordinator/fence-kept.ts'
import { fencedWith } from '../coordinator/release.ts'
import { group } from '../coordinator/schema-kind.ts'
import type { Manifest } from './manifest.ts'
import { names, type Values } from './values.ts'

/** Verbs on nodes.holdfast.dev, a resource that exists in RBAC alone. `*` holds them all, so a cluster admin passes; no role of
 *  Kubernetes' own but cluster-admin does. */
export const permissions = {
  taint: 'to set and lift quarantine and our out-of-service by hand',
  vouch: 'to say that a machine is off',
  fence: 'to have a node fenced by hand',
  drill: 'to have a cordoned, drained node switched off and on, to see where its path leads',
  abort: 'to call off an incident',
  configure: 'to say which device switches which node',
  mend: 'to write the status of our objects',
} as const
type Permission = keyof typeof permissions

export const operatorRole = 'holdfast-operator'
/** Whoever may mend could write a proof. */
const operatorMay: readonly Permission[] = ['taint', 'vouch', 'fence', 'drill', 'abort', 'configure']

interface Guard {
  readonly name: string
  readonly on: readonly { readonly group: string; readonly resources: readonly string[]; readonly operations: readonly ('CREATE' | 'UPDATE' | 'DELETE')[] }[]
  readonly namespace?: string
  /** All must hold for a write to be looked at: name and expression. */
  readonly when: Readonly<Record<string, string>>
  readonly variables?: Readonly<Record<string, string>>
  /** Each must hold: expression and what is said where it does not. */
  readonly rules: readonly (readonly [expression: string, says: string])[]
}

export function admissionManifests(values: Values): readonly Manifest[] {
  return [...guards(values).flatMap(manifestsOf), ...(values.stamps ? stampOfVouchers() : []), roleOfOperators()]
}

function guards(values: Values): readonly Guard[] {
  const coordinator = `request.userInfo.username == 'system:serviceaccount:${values.namespace}:${names.coordinator}'`
  return [taints(coordinator), coordinatorOnNodes(coordinator), nodeStatus(coordinator), podStatus(coordinator), podDeletion(coordinator), attachmentDeletion(coordinator), eviction(coordinator), fences(coordinator), fenceDeletion(coordinator), records(coordinator), fencePaths(values, coordinator)]
}

function may(permission: Permission, node?: string): string {
  return `authorizer.group('${group}').resource('nodes')${node === undefined ? '' : `.name(${node})`}.check('${permission}').allowed()`
}

const who = (permission: Permission): string => `the coordinator and whoever may "${permission}" nodes.${group} (ClusterRole ${operatorRole})`
const onlyWho = (permission: Permission): string => `whoever may "${permission}" nodes.${group} (ClusterRole ${operatorRole})`

const before = '(oldObject == null ? [] : oldObject.?spec.?taints.orValue([]))'
const after = 'object.?spec.?taints.orValue([])'
const ours = `(t.key.startsWith('${group}/') || (t.key == '${outOfServiceKey}' && t.?value.orValue('') == '${ownValue}'))`
const gone = (which: string): string => `${before}.filter(t, ${which} && !(t in ${after}))`
const come = (which: string): string => `${after}.filter(t, ${which} && !(t in ${before}))`

/** Taints of ours, whoever sets or lifts them. A machine may register itself under quarantine: that frees nothing. */
function taints(coordinator: string): Guard {
  return {
    name: 'holdfast-taints',
    on: [{ group: '', resources: ['nodes'], operations: ['CREATE', 'UPDATE'] }],
    when: {
      'a-taint-of-ours-changes': `size(${gone(ours)}) + size(${come(ours)}) > 0`,
      'not-only-a-quarantine-from-birth': `request.operation != 'CREATE' || size(${come(`${ours} && t.key != '${quarantineKey}'`)}) > 0`,
    },
    variables: {
      come: come(ours), gone: gone(ours), coordinator,
      ready: `object.?status.?conditions.orValue([]).exists(c, c.type == 'Ready' && c.status == 'True')`,
      vouches: `variables.come.exists(t, t.key == '${forceEvictionKey}')`,
      takesBack: `variables.gone.exists(t, t.key == '${forceEvictionKey}')`,
    },
    rules: [
      [`!variables.ready || !variables.come.exists(t, t.key == '${forceEvictionKey}' && t.effect == 'NoExecute')`,
        `Ready is True, and under the effect NoExecute Kubernetes itself deletes every pod within a second, whether the machine is off or not. Use ${forceEvictionKey}:NoSchedule: Holdfast then looks before it deletes`],
      [`!variables.vouches || ${may('vouch', 'object.metadata.name')}`,
        `${forceEvictionKey} says that this machine is off, and its pods are deleted by that word: only ${onlyWho('vouch')} may set it`],
      [`!variables.takesBack || variables.coordinator || ${may('vouch', 'object.metadata.name')}`,
        `${forceEvictionKey} is lifted by ${who('vouch')} only: lifted half-way, the rest of the pods would stay where they are`],
      [`variables.coordinator || [variables.come, variables.gone].all(some, some.all(t, t.key == '${forceEvictionKey}')) || ${may('taint', 'object.metadata.name')}`,
        `${quarantineKey} and ${outOfServiceKey}=${ownValue} are set and lifted by ${who('taint')} only: a quarantine lifted too soon lets workloads onto a node that may still hold their volumes (docs/by-hand.md)`],
    ],
  }
}

/** Of a Node the coordinator changes taints of ours, and nothing else; only that it may cordon one that is under quarantine. */
function coordinatorOnNodes(coordinator: string): Guard {
  const kept = ['metadata.?labels', 'metadata.?annotations', 'metadata.?finalizers', 'metadata.?ownerReferences', '?spec.?providerID', '?spec.?podCIDRs', '?spec.?configSource']
  return {
    name: 'holdfast-coordinator-nodes',
    on: [{ group: '', resources: ['nodes'], operations: ['UPDATE'] }],
    when: { 'by-the-coordinator': coordinator },
    rules: [
      [unchanged(kept), 'of a Node the coordinator may change its own taints, and nothing else'],
      [`${cordoned('object')} == ${cordoned('oldObject')} || (${cordoned('object')} && ${before}.exists(t, t.key == '${quarantineKey}'))`,
        'the coordinator cordons a node that is under quarantine, as recovery=mark-unschedulable wants it, and no other; and it uncordons none'],
      [`size(${gone(`!${ours}`)}) + size(${come(`!${ours}`)}) == 0`, 'a taint that is not Holdfast\'s may be set and lifted by its owner only, and the coordinator is not'],
      [`${come(ours)}.all(t, t.effect == 'NoSchedule' && t.key in ['${quarantineKey}', '${outOfServiceKey}'])`,
        `the coordinator sets ${quarantineKey} and ${outOfServiceKey}, with effect NoSchedule: under NoExecute Kubernetes itself would delete pods, whatever the policy says`],
    ],
  }
}

const cordoned = (which: string): string => `${which}.?spec.?unschedulable.orValue(false)`

const conditionOf = (which: string): string => `${which}.?status.?conditions.orValue([]).filter(c, c.type == '${maintenanceType}')`
const conditionsBut = ['object', 'oldObject'].map((which) => `${which}.?status.?conditions.orValue([]).filter(c, c.type != '${maintenanceType}')`).join(' == ')

/** Of what a Node tells, volumes may be struck from those in use, and that it is being worked on be said. Nobody else's report is looked at. */
function nodeStatus(coordinator: string): Guard {
  const told = ['addresses', 'capacity', 'allocatable', 'nodeInfo', 'daemonEndpoints', 'images', 'volumesAttached', 'phase', 'config', 'features', 'runtimeHandlers']
  return {
    name: 'holdfast-coordinator-node-status',
    on: [{ group: '', resources: ['nodes/status'], operations: ['UPDATE'] }],
    when: { 'by-the-coordinator': coordinator },
    rules: [
      [unchanged(told.map((field) => `?status.?${field}`)), `of a Node's status the coordinator may change volumesInUse and ${maintenanceType}, and nothing else`],
      [`${conditionsBut} && ${conditionOf('object')}.all(c, c.?reason.orValue('') in ['${maintenanceReason}', '${maintenanceOver}'] || c in ${conditionOf('oldObject')}) && ${conditionOf('oldObject')}.all(c, c.?reason.orValue('') in ['${maintenanceReason}', '${maintenanceOver}'] || c in ${conditionOf('object')})`,
        `of a Node's conditions the coordinator may write ${maintenanceType} with its own reasons, and no other; what somebody else said by that stays`],
      [`object.?status.?volumesInUse.orValue([]).all(v, v in oldObject.?status.?volumesInUse.orValue([]))`, 'the coordinator strikes volumes from volumesInUse, and adds none'],
    ],
  }
}

const isOver = (pod: string): string => `${pod}.?status.?phase.orValue('') in ['Succeeded', 'Failed']`
/** The sentence names the pod's own node and the incident, by which whoever finds the pod finds why it went. */
const fencedSentence = (pod: string): string => `c.?message.orValue('').startsWith('${fencedWith(`' + ${pod}.?spec.?nodeName.orValue('') + '`)}') && c.?message.orValue('').matches('[^(][)]$')`
const doomed = (pod: string): string => `${pod}.?status.?conditions.orValue([]).exists(c, c.type == 'DisruptionTarget' && c.status == 'True' && c.?reason.orValue('') == 'HoldfastFenced' && ${fencedSentence(pod)})`

/** Its owner replaces a pod as soon as its phase is Failed: this write is the deletion. */
function podStatus(coordinator: string): Guard {
  const kept = ['labels', 'annotations', 'finalizers'].map((field) => `metadata.?${field}`)
  const told = ['initContainerStatuses', 'ephemeralContainerStatuses', 'podIPs', 'hostIPs', 'startTime', 'nominatedNodeName'].map((field) => `?status.?${field}`)
  return {
    name: 'holdfast-coordinator-pod-status',
    on: [{ group: '', resources: ['pods/status'], operations: ['UPDATE'] }],
    when: { 'by-the-coordinator': coordinator },
    variables: {
      // One that stays: its eviction has begun, and nothing of it is said to run any more.
      ended: `has(oldObject.metadata.deletionTimestamp) && object.?status.?phase == oldObject.?status.?phase`
        + ` && object.?status.?containerStatuses.orValue([]).all(c, !c.?state.?running.hasValue()) && object.?status.?reason == oldObject.?status.?reason`,
      told: `object.?status.?containerStatuses == oldObject.?status.?containerStatuses`,
    },
    rules: [
      [`oldObject.?spec.?nodeName.orValue('') != ''`, 'this pod was bound to no node: no dead node can have run it'],
      [`${doomed('object')} && (object.?status.?phase.orValue('') == 'Failed' || variables.ended)`,
        'of a pod\'s status the coordinator writes the phase Failed together with the condition DisruptionTarget, reason HoldfastFenced, which names the pod\'s node and the incident, and nothing else; of a terminating one it may say instead that none of its containers runs'],
      [`!(${isOver('oldObject')})`, 'this pod is over already: how it ended is not the coordinator\'s to rewrite'],
      [`${unchanged([...kept, ...told])} && (variables.told || variables.ended) && oldObject.?status.?conditions.orValue([]).all(c, c.type == 'DisruptionTarget' || c in object.?status.?conditions.orValue([]))`,
        'beside phase, reason, message and the condition DisruptionTarget the coordinator leaves a pod as it is'],
    ],
  }
}

/** What a wrong uid would hit is left to the API server's own 409: the caller takes that for "another pod by now". */
function podDeletion(coordinator: string): Guard {
  return {
    name: 'holdfast-coordinator-pod-deletion',
    on: [{ group: '', resources: ['pods'], operations: ['DELETE'] }],
    when: { 'by-the-coordinator': coordinator },
    variables: { uid: `request.?options.?preconditions.?uid.orValue('')` },
    rules: [
      [`variables.uid != ''`, 'the coordinator deletes a pod only under preconditions.uid: by name alone it could hit the successor, which runs elsewhere'],
      [`variables.uid != oldObject.metadata.uid || ${isOver('oldObject')} || ${doomed('oldObject')}`,
        'the coordinator deletes a pod that is over, or that bears the condition DisruptionTarget, reason HoldfastFenced, with its node and the incident: this one may run'],
    ],
  }
}

/** Its name is the same each time that volume is attached to that node. Whether the Node is gone, and a proof stands, is asked at our edge. */
function attachmentDeletion(coordinator: string): Guard {
  return {
    name: 'holdfast-coordinator-attachment-deletion',
    on: [{ group: 'storage.k8s.io', resources: ['volumeattachments'], operations: ['DELETE'] }],
    when: { 'by-the-coordinator': coordinator },
    rules: [[`request.?options.?preconditions.?uid.orValue('') != ''`,
      'the coordinator deletes a VolumeAttachment only under preconditions.uid: by name alone it could hit the next one of the volume, which may be in use']],
  }
}

/** A deletion of another name, and no admission policy on deletions sees it. */
function eviction(coordinator: string): Guard {
  return {
    name: 'holdfast-coordinator-eviction',
    on: [{ group: '', resources: ['pods/eviction'], operations: ['CREATE'] }],
    when: { 'by-the-coordinator': coordinator },
    rules: [
      [`object.?deleteOptions.?preconditions.?uid.orValue('') != ''`, 'the coordinator evicts a pod only under preconditions.uid: by name alone it could hit the successor, which runs elsewhere'],
      [`!object.?deleteOptions.?gracePeriodSeconds.hasValue()`, 'the coordinator leaves a pod that it evicts its own grace: without one it would be a deletion by force, of a pod that runs'],
    ],
  }
}

/** A flag that is not set is false by default, also in what is created. */
const changed = (field: string): string => `(oldObject == null ? optional.none() : oldObject.?spec.?${field}).orValue(false) != object.?spec.?${field}.orValue(false)`

/** RBAC lets write an object or not; which of its fields, only this. */
function fences(coordinator: string): Guard {
  const node = `object.?spec.?nodeName.orValue('')`
  return {
    name: 'holdfast-node-fences',
    on: [{ group, resources: ['nodefences'], operations: ['CREATE', 'UPDATE'] }],
    when: { 'the-spec-changes': 'oldObject == null || oldObject.?spec != object.?spec' },
    rules: [
      [`request.operation != 'CREATE' || ${coordinator} || ${may('fence', node)} || (object.?spec.?cause.orValue('') == 'drill' && ${may('drill', node)})`,
        `a NodeFence cuts a node off: it is created by ${who('fence')} only, and one for a drill by whoever may "drill" them, too`],
      [`!(${changed('abort')}) || ${may('abort', node)}`, `spec.abort calls off an incident: only ${onlyWho('abort')} may set it`],
      [`!(${changed('acknowledge')}) || ${may('vouch', node)}`, `spec.acknowledge says that a machine is off, and its volumes are released by that word: only ${onlyWho('vouch')} may write it`],
    ],
  }
}

/** An open one is the only trace of what was ordered. */
function fenceDeletion(coordinator: string): Guard {
  return {
    name: 'holdfast-coordinator-fence-deletion',
    on: [{ group, resources: ['nodefences'], operations: ['DELETE'] }],
    when: { 'by-the-coordinator': coordinator },
    rules: [[`oldObject.?status.?phase.orValue('') == 'Final'`, 'the coordinator deletes an incident that is over, long after its end: this one is open']],
  }
}

/** What we rely on when we read it back. Labels and annotations are anybody's. */
function records(coordinator: string): Guard {
  return {
    name: 'holdfast-records',
    on: [
      { group, resources: ['noderecords'], operations: ['CREATE', 'UPDATE'] },
      { group, resources: ['nodefences/status', 'holdfastpolicies/status'], operations: ['UPDATE'] },
    ],
    when: { 'by-another-than-the-coordinator': `!(${coordinator})`, 'more-than-metadata-changes': `request.resource.resource != 'noderecords' || oldObject == null || oldObject.?spec != object.?spec` },
    rules: [
      [`request.resource.resource != 'noderecords'`, 'a NodeRecord is what the coordinator itself saw while the node was well, and proofs are made from it: nobody else writes one. Delete it, and it is made anew'],
      [`request.resource.resource == 'noderecords' || ${may('mend')}`, `the status is the coordinator's own account, and it acts on what stands there: only it, and whoever may "mend" nodes.${group}, writes it`],
    ],
  }
}

/** A namespace that is being deleted must be able to lose them. */
function fencePaths({ namespace }: Values, coordinator: string): Guard {
  const name = '(object == null ? oldObject : object).metadata.name'
  return {
    name: 'holdfast-fence-paths',
    on: [{ group: '', resources: ['configmaps'], operations: ['CREATE', 'UPDATE', 'DELETE'] }],
    namespace,
    when: { 'a-fence-path': `${name} == '${keptName}' || ['fence-config-', 'fence-method-'].exists(start, ${name}.startsWith(start))` },
    rules: [
      [`(request.operation == 'DELETE' && has(namespaceObject.metadata.deletionTimestamp)) || (${coordinator} && ${name} == '${keptName}') || ${may('configure')}`,
        `this ConfigMap says which device switches off which machine; with a wrong one a healthy machine is cut and a dead one is taken for off. Only ${onlyWho('configure')} may change it`],
    ],
  }
}

function unchanged(fields: readonly string[]): string {
  return fields.map((field) => `object.${field} == oldObject.${field}`).join(' && ')
}

const named = (all: Readonly<Record<string, string>>): object[] => Object.entries(all).map(([name, expression]) => ({ name, expression }))

function manifestsOf({ name, on, namespace, when, variables = {}, rules }: Guard): readonly Manifest[] {
  const metadata = { name, labels: { 'app.kubernetes.io/name': 'holdfast' } }
  const apiVersion = 'admissionregistration.k8s.io/v1'
  return [
    {
      apiVersion, kind: 'ValidatingAdmissionPolicy', metadata,
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          ...(namespace === undefined ? {} : { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } } }),
          resourceRules: on.map(({ group: apiGroup, resources, operations }) => ({ apiGroups: [apiGroup], apiVersions: ['*'], resources, operations })),
        },
        matchConditions: named(when),
        variables: named(variables),
        // 403 and not the usual 422: the coordinator takes 422 for "this is no longer there".
        validations: rules.map(([expression, message]) => ({ expression, message, reason: 'Forbidden' })),
      },
    },
    { apiVersion, kind: 'ValidatingAdmissionPolicyBinding', metadata, spec: { policyName: name, validationActions: ['Deny'] } },
  ]
}

/** Who sets force-eviction is written down beside it by the API server, which alone knows. */
function stampOfVouchers(): readonly Manifest[] {
  const metadata = { name: 'holdfast-who-vouches', labels: { 'app.kubernetes.io/name': 'holdfast' } }
  const apiVersion = 'admissionregistration.k8s.io/v1'
  return [
    {
      apiVersion, kind: 'MutatingAdmissionPolicy', metadata,
      spec: {
        failurePolicy: 'Fail', reinvocationPolicy: 'Never',
        matchConstraints: { resourceRules: [{ apiGroups: [''], apiVersions: ['*'], resources: ['nodes'], operations: ['CREATE', 'UPDATE'] }] },
        matchConditions: named({ 'force-eviction-is-set': `size(${come(`t.key == '${forceEvictionKey}'`)}) > 0` }),
        mutations: [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression: `Object{metadata: Object.metadata{annotations: {'${evictedByKey}': request.userInfo.username}}}` } }],
      },
    },
    { apiVersion, kind: 'MutatingAdmissionPolicyBinding', metadata, spec: { policyName: metadata.name } },
  ]
}

/** For people and cloud controllers, bound by whoever installs. It is aggregated into no role of Kubernetes' own. */
function roleOfOperators(): Manifest {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: operatorRole, labels: { 'app.kubernetes.io/name': 'holdfast' } },
    rules: [
      { apiGroups: [group], resources: ['nodes'], verbs: operatorMay },
      { apiGroups: [group], resources: ['nodefences'], verbs: ['get', 'list', 'watch', 'create', 'update', 'patch'] },
      { apiGroups: [group], resources: ['noderecords', 'holdfastpolicies', 'noderemedies'], verbs: ['get', 'list', 'watch'] },
    ],
  }
}
