// A cluster of thousands of nodes as its API server holds it: what kubelets, controllers, an operator and the product itself have
// written by a quiet afternoon. Sizes are those of real objects where the replica reads them (a Node names fifty images, an
// agent's pod is the manifest's own); everything else is as small as the kind allows.
import { createHash } from 'node:crypto'
import type { KubeObject } from '../../../coordinator/api.ts'
import { readFenceConfigs } from '../../../coordinator/fence-config.ts'
import { incidentBody, statusBody } from '../../../coordinator/node-fence.ts'
import { recordBody } from '../../../coordinator/node-record.ts'
import { attachmentOf } from '../../../coordinator/kubernetes.ts'
import type { Incident, IncidentStatus } from '../../../core/incident.ts'
import type { FencePath } from '../../../core/model.ts'
import { defaultPolicy, type Policy } from '../../../core/policy.ts'
import { freshStatus } from '../../../core/timeline.ts'
import { customResourceDefinitions } from '../../../deploy/crd.ts'
import { manifests } from '../../../deploy/manifests.ts'
import { usualValues } from '../../../deploy/values.ts'
import { makeAuthority, type Certified } from '../../../edge/certificate.ts'
import { microTime, timestamp, uniqueVolumeName } from '../../../sim/objects.ts'

export interface Member {
  readonly node: string
  readonly zone: string
  readonly bootId: string
  readonly machine: string
  /** Where its kubelet is asked. */
  readonly address: string
}

export interface Cluster {
  readonly members: readonly Member[]
  readonly authority: Certified
  /** Of the cluster: digests of fence methods are keyed by it. */
  readonly salt: string
  /** Where each device's power is a word in a file. */
  readonly devices: string
}

export const system = usualValues.namespace
export const agents = usualValues.agentNamespace
export const work = 'work'
export const driver = 'csi.example.com'
export const agentAccount = 'holdfast-agent'
export const replicaAccount = 'holdfast-coordinator'
export const replicas = 2
const zones = 6
const podsOfNode = 30
/** Incidents that are over and kept: what becomes of a few hundred nodes in a month. */
export const kept = 300
/** Of so many nodes one has a ConfigMap of its own. */
const ownMapEvery = 10
const images = 50
/** No route leads to it from any machine, so that asking it is silence at once. */
const unreachable = '224.0.0.1'
const reachable = '127.0.0.1'
const kubeletPort = 10_250
const policy: Policy = { ...defaultPolicy, name: 'usual', profile: 'fast', nodeDownPodDeletionPolicy: 'DeleteAllPods' }

/** `doomed` are to fall silent: their kubelets answer nobody. */
export function clusterOf(nodes: number, doomed: readonly number[], devices: string, wall: number): Cluster {
  const members = Array.from({ length: nodes }, (_, index): Member => ({
    node: `node-${String(index).padStart(4, '0')}`, zone: `zone-${index % zones}`, bootId: uuid(`boot ${index}`), machine: uuid(`machine ${index}`),
    address: doomed.includes(index) ? unreachable : reachable,
  }))
  return { members, authority: makeAuthority({ name: 'holdfast-authority', from: wall - 3_600_000, until: wall + 365 * 86_400_000 }), salt: 'benchmark', devices }
}

export function bootOf({ bootId }: Member): string {
  return `${bootId}/4711`
}

export function uuid(of: string): string {
  const hex = createHash('sha256').update(of).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** What there is beside nodes and pods. */
export function foundations({ authority, salt, devices, members }: Cluster): KubeObject[] {
  const spec = { profile: policy.profile, nodeDownPodDeletionPolicy: policy.nodeDownPodDeletionPolicy }
  return [
    ...[system, agents, work].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
    ...customResourceDefinitions(),
    account(agentAccount, agents), account(replicaAccount, system),
    { apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: { name: driver }, spec: { attachRequired: true, podInfoOnMount: false } },
    { apiVersion: 'holdfast.dev/v1alpha1', kind: 'HoldfastPolicy', metadata: { name: policy.name }, spec },
    { apiVersion: 'holdfast.dev/v1alpha1', kind: 'HoldfastPolicy', metadata: { name: 'databases' }, spec: { ...spec, priority: 10, selector: { matchLabels: { pool: 'databases' } } } },
    secret('holdfast-authority', { salt, 'current.crt': authority.certificate, 'current.key': authority.key }),
    secret('chassis', { password: 'benchmark' }, { 'holdfast.dev/fence-secret': '' }),
    ...Array.from({ length: replicas }, (_, index) => replicaPod(index)),
    ...fenceMaps(devices, members),
  ] as KubeObject[] // kinds of many shapes, written as a person would
}

function account(name: string, namespace: string): object {
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } }
}

function secret(name: string, data: Readonly<Record<string, string>>, labels: object = {}): object {
  const encoded = Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')]))
  return { apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata: { name, namespace: system, labels }, data: encoded }
}

function map(name: string, data: Readonly<Record<string, string>>): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: system }, data } as KubeObject // as above
}

export function replicaPod(index: number): KubeObject {
  return {
    apiVersion: 'v1', kind: 'Pod', metadata: { name: `holdfast-coordinator-${index}`, namespace: system },
    spec: { serviceAccountName: replicaAccount, containers: [{ name: 'coordinator', image: 'coordinator' }] },
  } as KubeObject // a Pod is more than the fields that KubeObject names
}

function fenceMaps(devices: string, members: readonly Member[]): KubeObject[] {
  const method = (action: 'off' | 'on', more = ''): string => `template=fence-method-template-chassis\nstate_file=${devices}/{node}.json\nplug={node}\naction=${action}\n${more}`
  return [
    map('fence-method-template-chassis', { 'template.properties': 'agent_name=test-device\npassword=secret:chassis/password\n' }),
    map('fence-config-default', {
      'config.properties': 'power_management=chassis-off\nrecovery=chassis-on\n', 'fence-method-chassis-off': method('off'), 'fence-method-chassis-on': method('on'),
    }),
    ...members.filter((_, index) => index % ownMapEvery === 0).map(({ node }) => map(`fence-config-${node}`, {
      'config.properties': `node_name=${node}\n`, 'fence-method-chassis-off': method('off', 'timeout=40s\n'),
    })),
  ]
}

/** As the coordinator will read it, digests and all. */
export function fencePathsOf({ salt, devices, members }: Cluster): (node: string) => FencePath {
  const maps = fenceMaps(devices, members).map((object) => ({ name: object.metadata.name, data: (object as KubeObject & { data: Record<string, string> }).data })) // made so above
  const configs = readFenceConfigs(maps, () => 'benchmark', salt)
  return (node) => configs.forNode(node).path
}

/** As a kubelet registers it and posts it, some seventeen kilobytes. */
export function nodeObject({ node, zone, bootId, machine, address }: Member, wall: number): KubeObject {
  const said = (type: string, status: string): object => ({ type, status, reason: `Kubelet${type}`, message: `kubelet says ${type} of itself`, lastHeartbeatTime: timestamp(wall), lastTransitionTime: timestamp(wall) })
  const amounts = { cpu: '32', memory: '131072Mi', pods: '110', 'ephemeral-storage': '205Gi', 'hugepages-1Gi': '0', 'hugepages-2Mi': '0' }
  return {
    apiVersion: 'v1', kind: 'Node',
    metadata: {
      name: node,
      labels: {
        'kubernetes.io/hostname': node, 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64', 'topology.kubernetes.io/zone': zone, 'topology.kubernetes.io/region': 'region-1',
        'node.kubernetes.io/instance-type': 'm6i.8xlarge', pool: 'general', 'beta.kubernetes.io/os': 'linux', 'beta.kubernetes.io/arch': 'amd64',
      },
      annotations: { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true', 'csi.volume.kubernetes.io/nodeid': JSON.stringify({ [driver]: node }), 'node.alpha.kubernetes.io/ttl': '300' },
    },
    spec: { podCIDR: '10.0.0.0/24' },
    status: {
      addresses: [{ type: 'InternalIP', address }, { type: 'Hostname', address: node }], capacity: amounts, allocatable: amounts, daemonEndpoints: { kubeletEndpoint: { Port: kubeletPort } },
      conditions: [...['MemoryPressure', 'DiskPressure', 'PIDPressure', 'NetworkUnavailable'].map((type) => said(type, 'False')), said('Ready', 'True')],
      nodeInfo: {
        bootID: bootId, systemUUID: machine, machineID: machine.replaceAll('-', ''), kubeletVersion: 'v1.36.4', architecture: 'amd64', containerRuntimeVersion: 'containerd://2.3.7',
        kernelVersion: '6.12.0', kubeProxyVersion: '', operatingSystem: 'linux', osImage: 'Linux',
      },
      images: Array.from({ length: images }, (_, index) => ({
        names: [`registry.example.com/team-${index % 7}/workload-${index}@sha256:${createHash('sha256').update(String(index)).digest('hex')}`, `registry.example.com/team-${index % 7}/workload-${index}:v1.${index}.0-release.20260101`],
        sizeBytes: 100_000_000 + index,
      })),
      volumesInUse: [uniqueVolumeName(driver, handleOf(node))], volumesAttached: [{ name: uniqueVolumeName(driver, handleOf(node)), devicePath: '' }],
    },
  } as KubeObject // as above
}

function handleOf(node: string): string {
  return `vol-${node}`
}

export function attachmentName(node: string): string {
  return attachmentOf(uniqueVolumeName(driver, handleOf(node)), node) ?? ''
}

/** All of a node but the Node: Lease, CSINode, its volume, its pods. `uid` is the Node's. */
export function belongings({ node }: Member, uid: string, wall: number): KubeObject[] {
  const owner = [{ apiVersion: 'v1', kind: 'Node', name: node, uid }]
  const volume = `pv-${node}`
  const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: work, name: `data-db-${node}` }
  return [
    {
      apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: node, namespace: 'kube-node-lease', ownerReferences: owner },
      spec: { holderIdentity: node, leaseDurationSeconds: 40, renewTime: microTime(wall) },
    },
    { apiVersion: 'storage.k8s.io/v1', kind: 'CSINode', metadata: { name: node, ownerReferences: owner }, spec: { drivers: [{ name: driver, nodeID: node, topologyKeys: [] }] } },
    {
      apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: volume },
      spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], persistentVolumeReclaimPolicy: 'Retain', storageClassName: '', csi: { driver, volumeHandle: handleOf(node) }, claimRef: claim },
      status: { phase: 'Bound' },
    },
    {
      apiVersion: 'v1', kind: claim.kind, metadata: { name: claim.name, namespace: work },
      spec: { accessModes: ['ReadWriteOnce'], storageClassName: '', resources: { requests: { storage: '1Gi' } }, volumeName: volume }, status: { phase: 'Bound' },
    },
    {
      apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment', metadata: { name: attachmentName(node) },
      spec: { attacher: driver, nodeName: node, source: { persistentVolumeName: volume } }, status: { attached: true },
    },
    ...Array.from({ length: podsOfNode - 5 }, (_, index) => pod(`web-${node}-${index}`, work, node, 'ReplicaSet', wall)),
    ...['network', 'proxy', 'storage'].map((name) => pod(`${name}-${node}`, 'kube-system', node, 'DaemonSet', wall)),
    pod(`db-${node}`, work, node, 'StatefulSet', wall, [{ name: 'data', persistentVolumeClaim: { claimName: claim.name } }]),
    agentPod(node, wall),
  ] as KubeObject[] // as above
}

function pod(name: string, namespace: string, node: string, owner: string, wall: number, volumes: object[] = []): object {
  return {
    apiVersion: 'v1', kind: 'Pod',
    metadata: { name, namespace, labels: { app: 'workload' }, ownerReferences: [{ apiVersion: 'apps/v1', kind: owner, name: 'workload', uid: uuid(owner), controller: true }] },
    spec: { nodeName: node, containers: [{ name: 'main', image: 'registry.example.com/workload:v1' }], volumes },
    status: running(wall, ['main']),
  }
}

function running(wall: number, containers: readonly string[]): object {
  return {
    phase: 'Running', startTime: timestamp(wall), conditions: ['Ready', 'ContainersReady', 'Initialized', 'PodScheduled'].map((type) => ({ type, status: 'True', lastTransitionTime: timestamp(wall) })),
    containerStatuses: containers.map((name) => ({ name, ready: true, started: true, restartCount: 0, image: name, imageID: name, state: { running: { startedAt: timestamp(wall) } } })),
  }
}

export function agentPodName(node: string): string {
  return `${agentAccount}-${node}`
}

function agentPod(node: string, wall: number): object {
  const set = manifests(usualValues).find(({ kind }) => kind === 'DaemonSet') as { spec: { template: { metadata: object; spec: object } } } | undefined // a DaemonSet has it
  const { metadata, spec } = set?.spec.template ?? { metadata: {}, spec: {} }
  return {
    apiVersion: 'v1', kind: 'Pod', status: running(wall, ['agent']),
    metadata: { ...metadata, name: agentPodName(node), namespace: agents, ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: agentAccount, uid: uuid(agentAccount), controller: true }] },
    spec: { ...spec, nodeName: node },
  }
}

/** Of a node whose fence path was asked, and answered. */
export function record(member: Member, uid: string, path: FencePath, wall: number): KubeObject {
  const boot = bootOf(member)
  const paths = path.levels.flat().map(({ name, digest }) => ({ method: name, digest, boot, state: 'verified', identity: 'proven', at: '', evidence: 'the file says on' }) as const)
  return recordBody(member.node, { nodeUid: uid, boot, machine: member.machine, paths, probe: { boot, answered: true, at: '' }, gate: 'asks' }, wall) as KubeObject // a NodeRecord whole
}

/** An incident of an earlier boot that went its whole way: off, cleared, on again, clean. */
export function pastIncident({ node, machine }: Member, uid: string, path: FencePath, wall: number): KubeObject {
  const at = (second: number): string => new Date(wall - 3_600_000 + second * 1_000).toISOString()
  const boot = `${uuid(`past ${node}`)}/4711`
  const digest = path.levels[0]?.[0]?.digest ?? ''
  const attempt = (action: 'off' | 'on', second: number): IncidentStatus['attempts'][number] => ({
    id: `${node}-${action}`, round: 1, level: 0, method: 'chassis-off', digest, agent: 'test-device', action, replica: 'holdfast-coordinator-0', term: 3,
    startedAt: at(second), endedAt: at(second + 1), within: 30_000, late: 60_000, result: action,
  })
  const told = ['opened', 'ordered off', 'order ended', 'proven', 'tainted', 'out-of-service', 'deleted', 'deleted', 'volumes gone', 'ordered on', 'order ended', 'boot', 'clean', 'untainted', 'closed']
  const status: IncidentStatus = {
    ...freshStatus(3), phase: 'Final', step: 'recovery', outcome: 'Recovered', attempts: [attempt('off', 3), attempt('on', 12)],
    proof: { kind: 'off', at: at(5), boot, nodeUid: uid, level: 0, methods: ['chassis-off'], digests: [digest], evidence: [{ source: 'chassis-off', word: 'off', at: at(4) }, { source: 'chassis-off', word: 'off', at: at(5) }] },
    pods: Array.from({ length: podsOfNode - 4 }, (_, index) => ({ namespace: work, name: `web-${node}-${index}`, uid: uuid(`${node} ${index}`), fate: 'freed' })),
    volumes: [{ attachment: attachmentName(node), volume: `pv-${node}`, driver, fate: 'released' }],
    timeline: told.map((what, index) => ({ at: at(index), what, detail: `${what} of ${node}, as the leader of that term has told it on the record` })),
  }
  const draft: Pick<Incident, 'name' | 'nodeName' | 'nodeUid' | 'boot' | 'machine' | 'cause' | 'policy'> = { name: `${node}-past-1`, nodeName: node, nodeUid: uid, boot, machine, cause: 'silence', policy }
  const { status: written } = statusBody(draft.name, '', '', status) as { status: unknown } // the body of a PUT
  return { ...incidentBody(draft) as KubeObject, status: written } as KubeObject // a NodeFence whole
}
