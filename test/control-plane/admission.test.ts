// Who may write what, asked of the real API server with our own manifests: each row is one write by one account, and whether it
// passes. Rows are dry runs, so they stand each for itself. All the accounts that are refused hold every right of RBAC that
// the write needs: what refuses them is the policy.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createApi, type Answer, type Api, type KubeObject } from '../../coordinator/api.ts'
import type { HttpsTransport } from '../../coordinator/https.ts'
import { paths } from '../../coordinator/kubernetes.ts'
import { fencesPath, incidentBody } from '../../coordinator/node-fence.ts'
import { recordBody, recordsPath } from '../../coordinator/node-record.ts'
import { remediesPath } from '../../coordinator/node-remedy.ts'
import { forceEvictionKey } from '../../core/acknowledge.ts'
import type { Cause } from '../../core/incident.ts'
import { bootOf, type Taint } from '../../core/model.ts'
import { defaultPolicy } from '../../core/policy.ts'
import { operatorRole, permissions } from '../../deploy/admission.ts'
import { yamlOf } from '../../deploy/manifest.ts'
import { manifests } from '../../deploy/manifests.ts'
import { names, usualValues } from '../../deploy/values.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { startControlPlane, type ControlPlane } from './control-plane.ts'
import { bearerTransport, transportTo } from './transport.ts'

const test = suite('admission policies')

/** `writer`: every right of RBAC on what we guard, and no permission. `warden`: the same, and may fence one node only. `driller`: the same, and may drill. */
type Who = 'admin' | 'coordinator' | 'operator' | 'writer' | 'warden' | 'driller' | 'kubelet' | 'newcomer'
type Row = readonly [says: string, who: Who, write: (api: Api) => Promise<Answer<unknown>>, refusal?: RegExp]

interface Opened { readonly plane: ControlPlane; readonly apis: Readonly<Record<Who, Api>>; readonly transports: readonly HttpsTransport[] }
let opened: Opened | undefined

const system = usualValues.namespace
const node = (name: string): string => `/api/v1/nodes/${name}`
const pod = (name: string): string => `/api/v1/namespaces/people/pods/${name}`
const attachment = paths.attachment
const maps = (namespace: string, name = ''): string => `/api/v1/namespaces/${namespace}/configmaps${name}`
const dry = (path: string): string => `${path}?dryRun=All`
const quarantine: Taint = { key: 'holdfast.dev/quarantine', value: 'holdfast', effect: 'NoSchedule' }
const outOfService: Taint = { key: 'node.kubernetes.io/out-of-service', value: 'holdfast', effect: 'NoSchedule' }
const forceEviction: Taint = { key: forceEvictionKey, effect: 'NoSchedule' }
const others: Taint = { key: 'example.com/gpu', value: 'yes', effect: 'NoSchedule' }
const inUse = ['a', 'b'].map((handle) => `kubernetes.io/csi/csi.example.com^${handle}`)
const container = { name: 'main', ready: true, restartCount: 0, image: 'writer', imageID: 'writer' }
const runs = { ...container, state: { running: { startedAt: '2026-01-01T00:00:00Z' } } }
const ended = { ...container, ready: false, state: { terminated: { exitCode: 137, reason: 'NodeFenced', startedAt: '2026-01-01T00:00:00Z', finishedAt: '2026-01-01T00:01:00Z' } } }
/** A cluster admin writes it, so that nothing but the rules of its kind speak. */
const remedyOf = (threshold: object) => (api: Api) => api.create(dry(remediesPath), { apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeRemedy', metadata: { name: 'worn-out' }, spec: { thresholds: [{ name: 'full', period: '15m', ...threshold }] } })
const boot = bootOf('0f0e0d0c-0b0a-4908-8706-050403020100', '7')

test('a real API server takes the manifests, and the policies come into force', async () => {
  const plane = await startControlPlane()
  const transports: HttpsTransport[] = []
  const apiOf = (transport: HttpsTransport): Api => {
    transports.push(transport)
    return createApi({ transport, clock, userAgent: 'admission', rate: { perSecond: 1_000, burst: 1_000 } })
  }
  const admin = apiOf(transportTo(plane, 'admin'))
  const apply = (file: string, text: string): void => {
    writeFileSync(join(plane.dir, file), text)
    execFileSync(plane.kubectl, [`--kubeconfig=${plane.kubeconfig('admin')}`, 'apply', '--server-side', '-f', join(plane.dir, file)], { timeout: 60_000, stdio: 'pipe' })
  }
  apply('holdfast.yaml', yamlOf(manifests({ ...usualValues, replicas: 0 })))
  apply('people.json', JSON.stringify({ apiVersion: 'v1', kind: 'List', items: people() }))
  const account = async (namespace: string, name: string): Promise<Api> => {
    const made = await admin.create<{ status: { token: string } }>(`/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`, { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} })
    return apiOf(bearerTransport(plane, value(made).status.token))
  }
  opened = {
    plane, transports,
    apis: {
      admin, kubelet: apiOf(transportTo(plane, 'system:node:well')), newcomer: apiOf(transportTo(plane, 'system:node:new')),
      coordinator: await account(system, names.coordinator),
      operator: await account('people', 'operator'), writer: await account('people', 'writer'), warden: await account('people', 'warden'), driller: await account('people', 'driller'),
    },
  }
  await eventually('the custom kinds and the fixtures', async () => (await Promise.all(fixtures().map(([path, body]) => admin.create(path, body)))).every((one) => one.ok || one.error.kind === 'conflict'))
  value(await opened.apis.coordinator.create(recordsPath, record('fenced')))
  for (const [path, own] of statuses) value(await admin.patch(`${path}/status`, path.startsWith('/apis/') ? 'merge' : 'strategic', { status: own }))
  value(await admin.remove(pod('leaves')))
  await eventually('the last policy', async () => {
    const tried = await apis().writer.create(dry(maps(system)), configMap('fence-config-default'))
    return !tried.ok && tried.error.kind === 'forbidden'
  })
})

const rows: readonly Row[] = [
  ['the coordinator sets quarantine and its own out-of-service', 'coordinator', tainted('well', (old) => [...old, quarantine, outOfService])],
  ['the coordinator lifts them', 'coordinator', tainted('fenced', (old) => old.filter(({ key }) => ![quarantine.key, outOfService.key].includes(key)))],
  ['an operator sets quarantine', 'operator', tainted('well', (old) => [...old, quarantine])],
  ['an operator lifts out-of-service', 'operator', tainted('fenced', without(outOfService))],
  ['a cluster admin lifts quarantine', 'admin', tainted('fenced', without(quarantine))],
  ['somebody sets quarantine', 'writer', tainted('well', (old) => [...old, quarantine]), /set and lifted by the coordinator and whoever may "taint" nodes\.holdfast\.dev/],
  ['somebody lifts quarantine', 'writer', tainted('fenced', without(quarantine)), /a quarantine lifted too soon/],
  ['somebody writes a list of taints in which ours are missing', 'writer', tainted('fenced', () => [others, forceEviction]), /set and lifted by the coordinator/],
  ['somebody sets out-of-service with our value', 'writer', tainted('well', (old) => [...old, outOfService]), /set and lifted by the coordinator/],
  ['somebody sets out-of-service with another value', 'writer', tainted('well', (old) => [...old, { ...outOfService, value: 'nodeshutdown' }])],
  ['somebody sets a taint of their own on a fenced node', 'writer', tainted('fenced', (old) => [...old, { ...others, key: 'example.com/mine' }])],
  ['somebody cordons a fenced node', 'writer', (api) => api.patch(dry(node('fenced')), 'merge', { spec: { unschedulable: true } })],
  ['an operator vouches for a node', 'operator', tainted('well', (old) => [...old, forceEviction])],
  ['a cluster admin vouches for a node', 'admin', tainted('well', (old) => [...old, forceEviction])],
  ['somebody vouches for a node', 'writer', tainted('well', (old) => [...old, forceEviction]), /only whoever may "vouch" nodes\.holdfast\.dev/],
  ['the coordinator vouches for a node', 'coordinator', tainted('well', (old) => [...old, forceEviction]), /says that this machine is off|effect NoSchedule|its own taints, and nothing else/],
  ['the coordinator lifts force-eviction', 'coordinator', tainted('fenced', without(forceEviction))],
  ['an operator takes force-eviction back', 'operator', tainted('fenced', without(forceEviction))],
  ['somebody lifts force-eviction', 'writer', tainted('fenced', without(forceEviction)), /lifted by the coordinator and whoever may "vouch"/],
  ['a cluster admin sets force-eviction with NoExecute while Ready is True', 'admin', tainted('well', (old) => [...old, { ...forceEviction, effect: 'NoExecute' }]), /Ready is True.*Use holdfast\.dev\/force-eviction:NoSchedule/],
  ['the same while Ready is False', 'admin', tainted('fenced', (old) => [...old, { ...forceEviction, effect: 'NoExecute' }])],
  ['a kubelet registers itself under quarantine', 'newcomer', registered(quarantine)],
  ['a kubelet registers itself with force-eviction', 'newcomer', registered(forceEviction), /only whoever may "vouch"/],
  ['a kubelet posts the status of its node', 'kubelet', (api) => api.patch(dry(`${node('well')}/status`), 'strategic', { status: { conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }] } })],
  ['a kubelet posts the status of its pod', 'kubelet', (api) => api.patch(dry(`${pod('runs')}/status`), 'strategic', { status: { phase: 'Running', podIP: '10.0.0.7', podIPs: [{ ip: '10.0.0.7' }] } })],
  ['somebody cordons a node with two hundred taints', 'writer', (api) => api.patch(dry(node('crowded')), 'merge', { spec: { unschedulable: true } })],
  ['the coordinator sets quarantine on a node with two hundred taints', 'coordinator', tainted('crowded', (old) => [...old, quarantine])],

  ['the coordinator labels a node', 'coordinator', (api) => api.patch(dry(node('well')), 'merge', { metadata: { labels: { a: 'b' } } }), /its own taints, and nothing else/],
  ['the coordinator cordons a node', 'coordinator', (api) => api.patch(dry(node('well')), 'merge', { spec: { unschedulable: true } }), /cordons a node that is under quarantine/],
  ['the coordinator cordons a node that is under quarantine', 'coordinator', (api) => api.patch(dry(node('fenced')), 'merge', { spec: { unschedulable: true } })],
  ['the coordinator cordons a node as it lifts the quarantine', 'coordinator', cordonedWith('fenced', without(quarantine))],
  ['the coordinator cordons a node as it sets the quarantine', 'coordinator', cordonedWith('well', (old) => [...old, quarantine]), /cordons a node that is under quarantine/],
  ['the coordinator uncordons a node that is under quarantine', 'coordinator', (api) => api.patch(dry(node('closed')), 'merge', { spec: { unschedulable: null } }), /uncordons none/],
  ['the coordinator sets a provider beside it', 'coordinator', (api) => api.patch(dry(node('fenced')), 'merge', { spec: { unschedulable: true, providerID: 'aws:///x/i-1' } }), /its own taints, and nothing else/],
  ['the coordinator lifts somebody else\'s taint', 'coordinator', tainted('fenced', without(others)), /not Holdfast's/],
  ['the coordinator sets somebody else\'s taint', 'coordinator', tainted('well', (old) => [...old, { ...others, key: 'example.com/mine' }]), /not Holdfast's/],
  ['the coordinator sets quarantine with NoExecute', 'coordinator', tainted('well', (old) => [...old, { ...quarantine, effect: 'NoExecute' }]), /with effect NoSchedule/],

  ['the coordinator strikes a volume from those in use', 'coordinator', nodeStatus('fenced', { volumesInUse: ['kubernetes.io/csi/csi.example.com^b'] })],
  ['the coordinator adds a volume to those in use', 'coordinator', nodeStatus('fenced', { volumesInUse: [...inUse, 'kubernetes.io/csi/csi.example.com^c'] }), /and adds none/],
  ['the coordinator changes a condition of a node', 'coordinator', nodeStatus('fenced', { conditions: [{ type: 'Ready', status: 'True' }] }), /no other; what somebody else said by that stays/],
  ['the coordinator says that a node is being worked on', 'coordinator', nodeStatus('fenced', { conditions: [{ type: 'MaintenanceInProgress', status: 'True', reason: 'HoldfastQuarantine', lastTransitionTime: new Date(0).toISOString() }] })],
  ['the coordinator says so with a reason of others', 'coordinator', nodeStatus('fenced', { conditions: [{ type: 'MaintenanceInProgress', status: 'True', reason: 'Upgrade', lastTransitionTime: new Date(0).toISOString() }] }), /with its own reasons/],
  ['the coordinator changes what a node says of its machine', 'coordinator', nodeStatus('fenced', { nodeInfo: { bootID: 'another' } }), /may change volumesInUse and MaintenanceInProgress, and nothing else/],
  ['the coordinator says of a terminating pod that nothing of it runs', 'coordinator', statusOf('leaves', { containerStatuses: [ended], conditions: lethal().conditions })],
  ['the coordinator says so of a pod that nobody deletes', 'coordinator', statusOf('runs', { containerStatuses: [ended], conditions: lethal().conditions }), /phase Failed together with the condition/],
  ['the coordinator says so without the reason', 'coordinator', statusOf('leaves', { containerStatuses: [ended] }), /phase Failed together with the condition/],

  ['the coordinator dooms a pod', 'coordinator', statusOf('runs', lethal())],
  ['the coordinator dooms a pod that is over', 'coordinator', statusOf('over', lethal()), /over already/],
  ['the coordinator dooms a pod that is bound to no node', 'coordinator', statusOf('waits', lethal()), /bound to no node/],
  ['the coordinator writes the phase without the reason', 'coordinator', statusOf('runs', { phase: 'Failed' }), /phase Failed together with the condition/],
  ['the coordinator writes the reason without the phase', 'coordinator', statusOf('runs', { conditions: lethal().conditions }), /phase Failed together with the condition/],
  ['the coordinator dooms a pod and names no incident', 'coordinator', statusOf('runs', lethal('its node well was fenced ()')), /which names the pod's node and the incident/],
  ['the coordinator dooms a pod in other words', 'coordinator', statusOf('runs', lethal('the node is off')), /which names the pod's node and the incident/],
  ['the coordinator dooms a pod for another node\'s incident', 'coordinator', statusOf('runs', lethal('its node fenced was fenced (proven-1)')), /which names the pod's node and the incident/],
  ['the coordinator says of a terminating pod that nothing of it runs, and names no incident', 'coordinator', statusOf('leaves', { containerStatuses: [ended], conditions: lethal('').conditions }), /which names the pod's node and the incident/],
  ['the coordinator writes an address beside it', 'coordinator', statusOf('runs', { ...lethal(), podIP: '10.9.9.9', podIPs: [{ ip: '10.9.9.9' }] }), /leaves a pod as it is/],
  ['the coordinator changes another condition beside it', 'coordinator', statusOf('runs', { ...lethal(), conditions: [...lethal().conditions, { type: 'Ready', status: 'False' }] }), /leaves a pod as it is/],
  ['the coordinator takes a finalizer off beside it', 'coordinator', (api) => api.patch(dry(`${pod('runs')}/status`), 'merge', { metadata: { finalizers: null }, status: lethal() }), /leaves a pod as it is/],
  ['the coordinator deletes a pod that it doomed', 'coordinator', deleted('doomed')],
  ['the coordinator deletes a pod that is over', 'coordinator', deleted('over')],
  ['the coordinator deletes a pod that may run', 'coordinator', deleted('runs'), /this one may run/],
  ['the coordinator deletes a pod whose condition names no incident', 'coordinator', deleted('nameless'), /this one may run/],
  ['the coordinator deletes a pod by name alone', 'coordinator', deleted('doomed', 'name'), /only under preconditions\.uid/],
  ['the coordinator meets a successor by the name', 'coordinator', deleted('runs', 'another'), /409 .*UID in the precondition/],
  ['somebody deletes a pod by name alone', 'writer', deleted('runs', 'name')],

  ['the coordinator deletes a VolumeAttachment under its uid', 'coordinator', deleted('held', 'itself', attachment)],
  ['the coordinator deletes a VolumeAttachment by name alone', 'coordinator', deleted('held', 'name', attachment), /deletes a VolumeAttachment only under preconditions\.uid/],
  ['the coordinator meets the next VolumeAttachment by the name', 'coordinator', deleted('held', 'another', attachment), /409 .*UID in the precondition/],
  ['somebody deletes a VolumeAttachment by name alone', 'writer', deleted('held', 'name', attachment)],

  ['the coordinator evicts a pod under its uid', 'coordinator', evicted('runs', (uid) => ({ preconditions: { uid } }))],
  ['the coordinator evicts a pod by name alone', 'coordinator', evicted('runs', () => ({})), /evicts a pod only under preconditions\.uid/],
  ['the coordinator evicts a pod without its grace', 'coordinator', evicted('runs', (uid) => ({ preconditions: { uid }, gracePeriodSeconds: 0 })), /its own grace/],
  ['a cluster admin evicts a pod by name alone', 'admin', evicted('runs', () => ({}))],

  ['the coordinator opens an incident', 'coordinator', (api) => api.create(dry(fencesPath), fence('well-2', 'well'))],
  ['an operator fences by hand', 'operator', (api) => api.create(dry(fencesPath), fence('well-2', 'well'))],
  ['somebody fences by hand', 'writer', (api) => api.create(dry(fencesPath), fence('well-2', 'well')), /created by the coordinator and whoever may "fence"/],
  ['who may fence one node fences it', 'warden', (api) => api.create(dry(fencesPath), fence('well-2', 'well'))],
  ['who may fence one node fences another', 'warden', (api) => api.create(dry(fencesPath), fence('fenced-2', 'fenced')), /whoever may "fence"/],
  ['who may drill has it drilled', 'driller', (api) => api.create(dry(fencesPath), fence('well-2', 'well', 'drill'))],
  ['who may drill has it fenced', 'driller', (api) => api.create(dry(fencesPath), fence('well-2', 'well')), /whoever may "fence".*whoever may "drill"/],
  ['somebody has it drilled', 'writer', (api) => api.create(dry(fencesPath), fence('well-2', 'well', 'drill')), /whoever may "drill"/],
  ['who may fence brings an acknowledgement along', 'warden', (api) => api.create(dry(fencesPath), { ...fence('well-2', 'well'), spec: { ...fence('well-2', 'well').spec, acknowledge: word() } }), /only whoever may "vouch"/],
  ['an operator aborts', 'operator', spec({ abort: true })],
  ['somebody aborts', 'writer', spec({ abort: true }), /only whoever may "abort"/],
  ['an operator acknowledges', 'operator', spec({ acknowledge: word() })],
  ['somebody acknowledges', 'writer', spec({ acknowledge: word() }), /only whoever may "vouch"/],
  ['an operator acknowledges another boot', 'operator', spec({ acknowledge: { ...word(), boot: 'another' } }), /spec\.acknowledge\.boot: .*must be spec\.boot: a word that a machine is off is of the boot that failed, and of no other/],
  ['an operator aborts after the proof', 'operator', (api) => api.patch(dry(`${fencesPath}/proven-1`), 'merge', { spec: { abort: true } }), /proven unable to write already: .* an abort comes too late/],
  ['an operator aborts what is over', 'operator', (api) => api.patch(dry(`${fencesPath}/over-1`), 'merge', { spec: { abort: true } }), /there is nothing left to abort/],
  ['an operator fences for a cause that is none', 'operator', (api) => api.create(dry(fencesPath), { ...fence('well-2', 'well'), spec: { ...fence('well-2', 'well').spec, cause: 'boredom' } }), /spec\.cause: Unsupported value: "boredom": supported values: "silence", /],
  ['a policy has a profile that is none', 'admin', policyOf({ profile: 'furious' }), /spec\.profile: Unsupported value: "furious": supported values: "fast", "balanced", "conservative"/],
  ['a policy wants pods deleted as nobody knows', 'admin', policyOf({ nodeDownPodDeletionPolicy: 'DeleteEverything' }), /Unsupported value: "DeleteEverything": supported values: "DoNothing", /],
  ['a policy has a patience that is no span', 'admin', policyOf({ returnPatience: 'soon' }), /spec\.returnPatience/],
  ['a policy that wants a node fenced which does not become clean', 'admin', policyOf({ returnPatience: '5m', afterPatience: 'fence' })],
  ['somebody labels an incident', 'writer', (api) => api.patch(dry(`${fencesPath}/well-1`), 'merge', { metadata: { labels: { a: 'b' } } })],

  ['the coordinator deletes an open incident', 'coordinator', (api) => api.remove(`${fencesPath}/well-1`, dryDelete), /this one is open/],
  ['the coordinator deletes an incident that is over', 'coordinator', (api) => api.remove(`${fencesPath}/over-1`, dryDelete)],

  ['the coordinator writes a NodeRecord', 'coordinator', (api) => api.create(dry(recordsPath), record('well'))],
  ['somebody writes a NodeRecord', 'writer', (api) => api.create(dry(recordsPath), record('well')), /nobody else writes one/],
  ['a cluster admin writes a NodeRecord', 'admin', (api) => api.create(dry(recordsPath), record('well')), /Delete it, and it is made anew/],
  ['a cluster admin changes a NodeRecord', 'admin', (api) => api.patch(dry(`${recordsPath}/fenced`), 'merge', { spec: { machine: 'another' } }), /nobody else writes one/],
  ['a cluster admin labels a NodeRecord', 'admin', (api) => api.patch(dry(`${recordsPath}/fenced`), 'merge', { metadata: { labels: { a: 'b' } } })],
  ['a cluster admin deletes a NodeRecord', 'admin', (api) => api.remove(`${recordsPath}/fenced`, dryDelete)],
  ['somebody writes the status of an incident', 'writer', (api) => api.patch(dry(`${fencesPath}/well-1/status`), 'merge', { status: { phase: 'Final' } }), /whoever may "mend"/],
  ['an operator writes the status of an incident', 'operator', (api) => api.patch(dry(`${fencesPath}/well-1/status`), 'merge', { status: { phase: 'Final' } }), /whoever may "mend"/],
  ['a cluster admin mends the status of an incident', 'admin', (api) => api.patch(dry(`${fencesPath}/well-1/status`), 'merge', { status: { phase: 'Final' } })],
  ['somebody writes the status of a policy', 'writer', (api) => api.patch(dry('/apis/holdfast.dev/v1alpha1/holdfastpolicies/usual/status'), 'merge', { status: { faults: [] } }), /whoever may "mend"/],

  ['a remedy goes by a vital', 'admin', remedyOf({ vital: 'disk', above: 95 })],
  ['a remedy goes by a temperature', 'admin', remedyOf({ vital: 'temperature', above: 105 })],
  ['a remedy goes by a condition', 'admin', remedyOf({ condition: 'KernelDeadlock' })],
  ['a remedy goes by nothing', 'admin', remedyOf({}), /needs either vital or condition/],
  ['a remedy goes by both', 'admin', remedyOf({ vital: 'disk', above: 95, condition: 'KernelDeadlock' }), /needs either vital or condition/],
  ['a remedy has a vital without its limit', 'admin', remedyOf({ vital: 'disk' }), /vital and above go together/],
  ['a remedy has a limit of no vital', 'admin', remedyOf({ condition: 'KernelDeadlock', above: 95 }), /vital and above go together/],
  ['a remedy waits for a full share and more', 'admin', remedyOf({ vital: 'memory', above: 100 }), /is never reached/],
  ['a remedy waits for a load that no beat can carry', 'admin', remedyOf({ vital: 'load', above: 25 }), /is never reached/],
  ['a remedy is in a hurry', 'admin', remedyOf({ vital: 'disk', above: 95, period: '4m' }), /must be between 5m and/],

  ['an operator writes a fence path', 'operator', (api) => api.create(dry(maps(system)), configMap('fence-config-well'))],
  ['somebody writes a fence path', 'writer', (api) => api.create(dry(maps(system)), configMap('fence-config-well')), /Only whoever may "configure"/],
  ['somebody writes a template', 'writer', (api) => api.create(dry(maps(system)), configMap('fence-method-template-bmc')), /Only whoever may "configure"/],
  ['somebody lets the API server choose such a name', 'writer', (api) => api.create(dry(maps(system)), { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'fence-config-' } }), /Only whoever may "configure"/],
  ['somebody changes a fence path', 'writer', (api) => api.patch(dry(maps(system, '/fence-config-kept')), 'merge', { data: { plug: '2' } }), /Only whoever may "configure"/],
  ['somebody writes what the coordinator keeps of fence paths', 'writer', (api) => api.create(dry(maps(system)), configMap('holdfast-fence-in-force')), /Only whoever may "configure"/],
  ['somebody deletes a fence path', 'writer', (api) => api.remove(maps(system, '/fence-config-kept'), dryDelete), /Only whoever may "configure"/],
  ['somebody writes another ConfigMap', 'writer', (api) => api.create(dry(maps(system)), configMap('other'))],
  ['somebody writes one of that name elsewhere', 'writer', (api) => api.create(dry(maps('people')), configMap('fence-config-well'))],
]

for (const [says, who, write, refusal] of rows) {
  test(`${says}: ${refusal === undefined ? 'passes' : 'refused'}`, async () => {
    const answer = await write(apis()[who])
    if (refusal === undefined) assert.ok(answer.ok, answer.ok ? '' : answer.error.message)
    else assert.match(answer.ok ? 'it passed' : answer.error.message, refusal)
  })
}

test('who vouches is written down beside the taint, whatever stood there', async () => {
  const annotations = { 'holdfast.dev/force-eviction-by': 'somebody else' }
  const { metadata: { resourceVersion }, spec: { taints = [] } = {} } = value(await apis().admin.get<NodeObject>(node('well')))
  const written = value(await apis().operator.patch<KubeObject>(dry(node('well')), 'merge', { metadata: { resourceVersion, annotations }, spec: { taints: [...taints, forceEviction] } }))
  assert.is(written.metadata.annotations?.['holdfast.dev/force-eviction-by'], 'system:serviceaccount:people:operator')
  const other = value(await apis().operator.patch<KubeObject>(dry(node('well')), 'merge', { spec: { unschedulable: true } }))
  assert.is(other.metadata.annotations?.['holdfast.dev/force-eviction-by'], undefined, 'other writes are left alone')
})

test('no expression draws a warning of the API server\'s own type check', async () => {
  const path = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies'
  await eventually('every policy is checked', async () => value(await apis().admin.get<Policies>(path)).items.every(({ status }) => status?.typeChecking !== undefined))
  for (const { metadata, status } of value(await apis().admin.get<Policies>(path)).items) assert.equal(status?.typeChecking?.expressionWarnings ?? [], [], metadata.name)
})

test('the permissions are in no role of Kubernetes\' own but the cluster admin\'s', async () => {
  const roles = value(await apis().admin.get<{ items: (KubeObject & { rules?: { apiGroups?: string[]; resources?: string[]; verbs: string[] }[] })[] }>('/apis/rbac.authorization.k8s.io/v1/clusterroles'))
  const hold = roles.items.filter(({ rules }) => rules?.some(({ apiGroups = [], resources = [], verbs }) => (
    covers(apiGroups, 'holdfast.dev') && covers(resources, 'nodes') && Object.keys(permissions).some((permission) => covers(verbs, permission)))))
  assert.equal(hold.map(({ metadata }) => metadata.name).toSorted(), ['cluster-admin', 'driller', operatorRole, 'warden'])
})

test('a namespace that is deleted loses its fence paths', async () => {
  value(await apis().admin.remove(`/api/v1/namespaces/${system}`))
  await eventually('the namespace is gone', async () => !(await apis().admin.get(`/api/v1/namespaces/${system}`)).ok)
})

test('it stops and leaves nothing open', async () => {
  for (const transport of opened?.transports ?? []) transport.close()
  await opened?.plane.stop()
})

const covers = (all: readonly string[], one: string): boolean => all.includes(one) || all.includes('*')

interface Policies { readonly items: (KubeObject & { status?: { typeChecking?: { expressionWarnings?: object[] } } })[] }
interface NodeObject extends KubeObject { spec?: { taints?: Taint[] } }

function apis(): Opened['apis'] {
  if (opened === undefined) throw new Error('the control plane did not start, see the first test')
  return opened.apis
}

const tries = 20

/** Controllers set taints of their own on nodes: the list is written over the very version it was read from. */
function cordonedWith(name: string, change: (old: readonly Taint[]) => readonly Taint[]): Row[2] {
  return tainted(name, change, { unschedulable: true })
}

function tainted(name: string, change: (old: readonly Taint[]) => readonly Taint[], beside: object = {}): Row[2] {
  return async (api) => {
    if (name === 'well') value(await apis().kubelet.patch(`${node(name)}/status`, 'strategic', { status: { conditions: [{ type: 'Ready', status: 'True' }] } }))
    for (let count = 0; ; count += 1) {
      const { metadata, spec: { taints = [] } = {} } = value(await apis().admin.get<NodeObject>(node(name)))
      const answer = await api.patch(dry(node(name)), 'merge', { metadata: { resourceVersion: metadata.resourceVersion }, spec: { taints: change(taints), ...beside } })
      if (answer.ok || answer.error.kind !== 'conflict' || count === tries) return answer
    }
  }
}

/** As kubelet does when it starts and knows no Node of its name. */
function registered(taint: Taint): Row[2] {
  return (api) => api.create(dry('/api/v1/nodes'), { apiVersion: 'v1', kind: 'Node', metadata: { name: 'new' }, spec: { taints: [taint] } })
}

function without(taint: Taint): (old: readonly Taint[]) => readonly Taint[] {
  return (old) => {
    assert.ok(old.some(({ key }) => key === taint.key), `${taint.key} stands on the node`)
    return old.filter(({ key }) => key !== taint.key)
  }
}

function statusOf(name: string, wanted: object): Row[2] {
  return (api) => api.patch(dry(`${pod(name)}/status`), 'strategic', { status: wanted })
}

function spec(changes: object): Row[2] {
  return (api) => api.patch(dry(`${fencesPath}/well-1`), 'merge', { spec: changes })
}

function policyOf(changes: object): Row[2] {
  return (api) => api.create(dry('/apis/holdfast.dev/v1alpha1/holdfastpolicies'), { apiVersion: 'holdfast.dev/v1alpha1', kind: 'HoldfastPolicy', metadata: { name: 'another' }, spec: changes } as KubeObject)
}

function nodeStatus(name: string, status: object): Row[2] {
  return (api) => api.patch(dry(`${node(name)}/status`), 'strategic', { status })
}

function lethal(message = 'its node well was fenced (well-1)') {
  return { phase: 'Failed', reason: 'NodeFenced', message, conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'HoldfastFenced', message, lastTransitionTime: new Date(clock.wall()).toISOString() }] }
}

/** What a DELETE asks stands in its body. */
const dryDelete = { dryRun: ['All'], gracePeriodSeconds: 0 }

/** By its own uid, by another's, or by its name alone. */
function deleted(name: string, by: 'itself' | 'another' | 'name' = 'itself', pathOf = pod): Row[2] {
  return async (api) => {
    const own = value(await apis().admin.get<KubeObject>(pathOf(name))).metadata.uid ?? ''
    return api.remove(pathOf(name), { ...dryDelete, ...(by === 'name' ? {} : { preconditions: { uid: by === 'itself' ? own : 'another' } }) })
  }
}

function evicted(name: string, options: (uid: string) => object): Row[2] {
  return async (api) => {
    const own = value(await apis().admin.get<KubeObject>(pod(name))).metadata
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: own.name, namespace: own.namespace }, deleteOptions: { ...options(own.uid ?? ''), dryRun: ['All'] } }
    return api.create<unknown>(dry(`${pod(name)}/eviction`), body)
  }
}

function word() {
  return { boot: `${boot}`, by: 'the night shift', reason: 'the plug is in my hand', until: new Date(clock.wall() + 3_600_000).toISOString() }
}

function fence(name: string, nodeName: string, cause: Cause = 'by-hand') {
  return incidentBody({ name, nodeName, nodeUid: 'a-uid', boot, machine: 'a-machine', cause, policy: { ...defaultPolicy, name: 'usual' } }) as KubeObject & { spec: object } // a body has one
}

function record(name: string): unknown {
  return recordBody(name, { nodeUid: 'a-uid', boot, machine: 'a-machine', paths: [] }, clock.wall())
}

function configMap(name: string): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { plug: '1' } }
}

/** The scheduler leaves it alone; the finalizer is there to be taken away. */
function podOf(name: string, where: object = {}): object {
  return {
    apiVersion: 'v1', kind: 'Pod', metadata: { name, finalizers: ['example.com/kept'] },
    spec: { automountServiceAccountToken: false, schedulerName: 'nobody', containers: [{ name: 'main', image: 'writer' }], ...where },
  }
}

/** Where they are, and as they are made. */
function fixtures(): readonly (readonly [path: string, body: unknown])[] {
  return [
    ['/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'well' } }],
    ['/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'fenced' }, spec: { taints: [others, quarantine, outOfService, forceEviction] } }],
    ['/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'closed' }, spec: { unschedulable: true, taints: [quarantine] } }],
    ['/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'crowded' }, spec: { taints: Array.from({ length: 200 }, (_, index) => ({ ...others, key: `example.com/rule-${index}` })) } }],
    ['/api/v1/namespaces/people/pods', podOf('waits')],
    ...['runs', 'doomed', 'nameless', 'over', 'leaves'].map((name) => ['/api/v1/namespaces/people/pods', podOf(name, { nodeName: 'well' })] as const),
    [paths.attachments, { apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment', metadata: { name: 'held' }, spec: { attacher: 'csi.example.com', nodeName: 'well', source: { persistentVolumeName: 'pv-held' } } }],
    [maps(system), configMap('fence-config-kept')],
    [fencesPath, fence('well-1', 'well')],
    [fencesPath, fence('over-1', 'well')],
    [fencesPath, fence('proven-1', 'fenced')],
    ['/apis/holdfast.dev/v1alpha1/holdfastpolicies', { apiVersion: 'holdfast.dev/v1alpha1', kind: 'HoldfastPolicy', metadata: { name: 'usual' }, spec: {} }],
  ]
}

const statuses: readonly (readonly [path: string, status: object])[] = [
  [node('fenced'), { conditions: [{ type: 'Ready', status: 'False' }], volumesInUse: inUse }],
  [pod('runs'), { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] }],
  [pod('doomed'), { ...lethal(), phase: 'Running' }],
  [pod('nameless'), { ...lethal('its node was fenced'), phase: 'Running' }],
  [pod('over'), { phase: 'Succeeded' }],
  [`${fencesPath}/over-1`, { phase: 'Final' }],
  [`${fencesPath}/proven-1`, { phase: 'Running', step: 'clear', proof: { kind: 'off', at: new Date(0).toISOString(), boot, nodeUid: 'a-uid', level: 0, methods: ['bmc'], evidence: [] } }],
  [pod('leaves'), { phase: 'Running', containerStatuses: [runs] }],
]

function people(): readonly object[] {
  const rbac = 'rbac.authorization.k8s.io'
  const bound = (role: string, name: string): object => ({
    apiVersion: `${rbac}/v1`, kind: 'ClusterRoleBinding', metadata: { name: `${role}-${name}` },
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role }, subjects: [{ kind: 'ServiceAccount', name, namespace: 'people' }],
  })
  const verbs = ['get', 'create', 'update', 'patch', 'delete']
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'people' } },
    ...['operator', 'writer', 'warden', 'driller'].map((name) => ({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: 'people' } })),
    { apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name: 'writer' }, rules: [
      { apiGroups: [''], resources: ['nodes', 'pods', 'configmaps'], verbs },
      { apiGroups: ['storage.k8s.io'], resources: ['volumeattachments'], verbs },
      { apiGroups: ['holdfast.dev'], resources: ['nodefences', 'nodefences/status', 'noderecords', 'holdfastpolicies', 'holdfastpolicies/status'], verbs },
    ] },
    { apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name: 'warden' }, rules: [{ apiGroups: ['holdfast.dev'], resources: ['nodes'], resourceNames: ['well'], verbs: ['fence'] }] },
    { apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name: 'driller' }, rules: [{ apiGroups: ['holdfast.dev'], resources: ['nodes'], verbs: ['drill'] }] },
    ...['operator', 'writer', 'warden', 'driller'].map((name) => bound('writer', name)), bound(operatorRole, 'operator'), bound('warden', 'warden'), bound('driller', 'driller'),
  ]
}

function value<T>(answer: Answer<T>): T {
  if (!answer.ok) throw new Error(answer.error.message)
  return answer.value
}

async function eventually(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = clock.now() + 60_000
  while (!await holds()) {
    if (clock.now() > deadline) throw new Error(`waited in vain for ${what}`)
    await clock.wait(100)
  }
}

test.run()
