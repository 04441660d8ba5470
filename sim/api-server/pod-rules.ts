// What the real server does to pods on their way in: defaults, admission (ServiceAccount, Priority, DefaultTolerationSeconds),
// what an update may change, and the grace of a deletion.
import { at, copy, isObject, listAt, numberAt, objectAt, same, textAt } from './json.ts'
import type { Json, JsonObject, Resource } from './json.ts'
import type { Rules } from './kind.ts'
import { forbidden, forbiddenField, required, unsupported, wrong } from './refusal.ts'
import type { Cause, Refusal } from './refusal.ts'
import { containerFaults, tolerationFaults } from './pod-spec.ts'

const pods = { group: '', plural: 'pods', kind: 'Pod' }

export const podRules: Rules = {
  defaults(pod) {
    podDefaults(objectAt(pod, 'spec'), pod)
    for (const condition of listAt(pod, 'status', 'conditions')) {
      if (!isObject(condition)) continue
      condition['lastProbeTime'] ??= null
      condition['lastTransitionTime'] ??= null
    }
  },
  prepareCreate(pod, ground) {
    const spec = objectAt(pod, 'spec')
    pod['spec'] = spec
    pod['status'] = { phase: 'Pending', qosClass: qosOf(spec) }
    spec['serviceAccountName'] ??= 'default'
    const account = textAt(spec, 'serviceAccountName')
    spec['serviceAccount'] = account
    if (!ground.planted && at(spec, 'automountServiceAccountToken') !== false) mountToken(spec, ground.suffix())
    const namespace = pod.metadata.namespace ?? ''
    if (!ground.exists('serviceaccounts', `${namespace}/${account}`)) {
      return forbidden(pods, pod.metadata.name ?? '', `error looking up service account ${namespace}/${account}: serviceaccount "${account}" not found`)
    }
    tolerateLostNodes(spec)
    return prioritise(pod, spec, ground.read)
  },
  prepareUpdate(next, old) {
    next['status'] = old['status']
  },
  prepareStatus(next, old) {
    next['spec'] = old['spec']
    delete next.metadata.deletionTimestamp
    if (old.metadata.ownerReferences === undefined) delete next.metadata.ownerReferences
    else next.metadata.ownerReferences = old.metadata.ownerReferences
    const status = objectAt(next, 'status')
    if (textAt(status, 'qosClass') === '') status['qosClass'] = at(old, 'status', 'qosClass')
    next['status'] = status
  },
  check: (next, old) => (old === undefined ? createFaults(next) : [...updateFaults(next, old), ...statusFaults(next, old)]),
  grace(pod, wanted) {
    const scheduled = textAt(pod, 'spec', 'nodeName') !== ''
    const phase = textAt(pod, 'status', 'phase')
    if (!scheduled || phase === 'Failed' || phase === 'Succeeded') return 0
    const period = wanted ?? numberAt(pod, 'spec', 'terminationGracePeriodSeconds') ?? 0
    return period < 0 ? 1 : period
  },
}

/** Also for the templates of the workload kinds. */
export function podDefaults(spec: JsonObject, holder?: Resource): void {
  if (holder !== undefined) holder['spec'] = spec
  spec['restartPolicy'] ??= 'Always'
  spec['terminationGracePeriodSeconds'] ??= 30
  spec['dnsPolicy'] ??= 'ClusterFirst'
  spec['securityContext'] ??= {}
  spec['schedulerName'] ??= 'default-scheduler'
  if (holder !== undefined) spec['enableServiceLinks'] ??= true
  for (const container of [...listAt(spec, 'containers'), ...listAt(spec, 'initContainers')]) {
    if (!isObject(container)) continue
    container['resources'] ??= {}
    container['terminationMessagePath'] ??= '/dev/termination-log'
    container['terminationMessagePolicy'] ??= 'File'
    container['imagePullPolicy'] ??= /:(?!latest$)[^/]+$/.test(textAt(container, 'image')) ? 'IfNotPresent' : 'Always'
    for (const port of listAt(container, 'ports')) if (isObject(port)) port['protocol'] ??= 'TCP'
    for (const variable of listAt(container, 'env')) if (isObject(variable) && variable['value'] === '') delete variable['value']
    const limits = objectAt(container, 'resources', 'limits')
    if (Object.keys(limits).length > 0) objectAt(container, 'resources')['requests'] = { ...limits, ...objectAt(container, 'resources', 'requests') }
    for (const probe of ['livenessProbe', 'readinessProbe', 'startupProbe']) probeDefaults(objectAt(container, probe))
  }
  for (const volume of listAt(spec, 'volumes')) volumeDefaults(volume)
}

function probeDefaults(probe: JsonObject): void {
  if (Object.keys(probe).length === 0) return
  probe['timeoutSeconds'] ??= 1
  probe['periodSeconds'] ??= 10
  probe['successThreshold'] ??= 1
  probe['failureThreshold'] ??= 3
  const get = objectAt(probe, 'httpGet')
  if (Object.keys(get).length === 0) return
  get['path'] ??= '/'
  get['scheme'] ??= 'HTTP'
}

function volumeDefaults(volume: Json): void {
  for (const source of ['configMap', 'secret', 'projected', 'downwardAPI']) if (at(volume, source) !== undefined) objectAt(volume, source)['defaultMode'] ??= 420
  if (at(volume, 'hostPath') !== undefined) objectAt(volume, 'hostPath')['type'] ??= ''
}

export const priorityClassRules: Rules = {
  defaults(priority) {
    priority['preemptionPolicy'] ??= 'PreemptLowerPriority'
  },
}

const tokenPath = '/var/run/secrets/kubernetes.io/serviceaccount'

/** The volume with the pod's own token, which the ServiceAccount admission gives to every pod. */
function mountToken(spec: JsonObject, suffix: string): void {
  const name = `kube-api-access-${suffix}`
  const sources = [
    { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
    { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
    { downwardAPI: { items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }] } },
  ]
  const bare = [...listAt(spec, 'containers'), ...listAt(spec, 'initContainers')].filter((container) => (
    !listAt(container, 'volumeMounts').some((mount) => textAt(mount, 'mountPath') === tokenPath)))
  if (bare.length === 0) return
  for (const container of bare) {
    if (isObject(container)) container['volumeMounts'] = [...listAt(container, 'volumeMounts'), { name, readOnly: true, mountPath: tokenPath }]
  }
  spec['volumes'] = [...listAt(spec, 'volumes'), { name, projected: { sources, defaultMode: 420 } }]
}

function tolerateLostNodes(spec: JsonObject): void {
  const tolerations = listAt(spec, 'tolerations')
  for (const key of ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']) {
    const tolerated = tolerations.some((one) => {
      const named = textAt(one, 'key')
      const effect = textAt(one, 'effect')
      return (named === key || named === '') && (effect === 'NoExecute' || effect === '')
    })
    if (!tolerated) tolerations.push({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 })
  }
  spec['tolerations'] = tolerations
}

const builtInPriorities: Readonly<Record<string, number>> = { 'system-node-critical': 2_000_001_000, 'system-cluster-critical': 2_000_000_000 }

function prioritise(pod: Resource, spec: JsonObject, read: (collection: string, key: string) => Resource | undefined): Refusal | undefined {
  const name = textAt(spec, 'priorityClassName')
  const defined = name === '' ? 0 : builtInPriorities[name] ?? numberAt(read('priorityclasses.scheduling.k8s.io', name), 'value')
  if (defined === undefined) return forbidden(pods, pod.metadata.name ?? '', `no PriorityClass with name ${name} was found`)
  spec['priority'] = defined
  spec['preemptionPolicy'] ??= 'PreemptLowerPriority'
  return undefined
}

function qosOf(spec: JsonObject): string {
  const resources = listAt(spec, 'containers').map((container) => objectAt(container, 'resources'))
  if (resources.every((one) => Object.keys(objectAt(one, 'requests')).length + Object.keys(objectAt(one, 'limits')).length === 0)) return 'BestEffort'
  const guaranteed = resources.every((one) => ['cpu', 'memory'].every((name) => {
    const limit = at(one, 'limits', name)
    return limit !== undefined && same(limit, at(one, 'requests', name) ?? limit)
  }))
  return guaranteed ? 'Guaranteed' : 'Burstable'
}

function createFaults(pod: Resource): Cause[] {
  const spec = objectAt(pod, 'spec')
  return [
    ...containerFaults(spec, 'spec'),
    ...tolerationFaults(spec, 'spec'),
    ...(['Always', 'OnFailure', 'Never'].includes(textAt(spec, 'restartPolicy')) ? [] : [unsupported('spec.restartPolicy', spec['restartPolicy'], ['Always', 'OnFailure', 'Never'])]),
  ]
}

const mayChange = 'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)'

function updateFaults(next: Resource, old: Resource): Cause[] {
  const now = objectAt(next, 'spec')
  const before = objectAt(old, 'spec')
  const taken = listAt(before, 'tolerations').filter((one) => !listAt(now, 'tolerations').some((other) => same(one, other)))
  return [
    ...(taken.length === 0 ? [] : [forbiddenField('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds')]),
    ...(same(fixed(now), fixed(before)) ? [] : [forbiddenField('spec', mayChange)]),
  ]
}

/** The part of a spec that never changes. */
function fixed(spec: JsonObject): Json {
  const { activeDeadlineSeconds: _deadline, tolerations: _tolerations, schedulingGates: _gates, ...rest } = copy(spec)
  for (const container of [...listAt(rest, 'containers'), ...listAt(rest, 'initContainers')]) if (isObject(container)) delete container['image']
  return rest
}

function statusFaults(next: Resource, old: Resource): Cause[] {
  const nominated = textAt(next, 'status', 'nominatedNodeName')
  const types = listAt(next, 'status', 'conditions').map((condition) => textAt(condition, 'type'))
  return [
    ...(nominated !== '' && /[^a-z0-9.-]/.test(nominated) ? [wrong('status.nominatedNodeName', nominated, 'a lowercase RFC 1123 subdomain is needed')] : []),
    ...types.flatMap((type, index) => (type === '' ? [required(`status.conditions[${index}].type`)] : [])),
    ...(textAt(old, 'status', 'qosClass') !== '' && !same(at(next, 'status', 'qosClass'), at(old, 'status', 'qosClass'))
      ? [wrong('status.qosClass', at(next, 'status', 'qosClass'), 'field is immutable')] : []),
  ]
}
