// What is kept of Kubernetes' objects: only what a decision or a person needs. Five thousand nodes with their image lists
// are a hundred megabytes; without them, five.
import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { forceEvictionKey } from '../core/acknowledge.ts'
import { mostAddresses } from '../core/address.ts'
import { ownValue, quarantineKey } from '../core/clear.ts'
import { kuredAnnotation } from '../core/hands.ts'
import type { PodSeen, PodVolume, Taint, VolumeSeen } from '../core/model.ts'
import type { KubeObject, Meta } from './api.ts'
import type { NodeWords } from './fence-config-node.ts'
import { probeAddress } from './probe.ts'

export const paths = {
  nodes: '/api/v1/nodes',
  attachments: '/apis/storage.k8s.io/v1/volumeattachments',
  attachment: (name: string): string => `/apis/storage.k8s.io/v1/volumeattachments/${name}`,
  drivers: '/apis/storage.k8s.io/v1/csidrivers',
  node: (name: string): string => `/api/v1/nodes/${name}`,
  lease: (node: string): string => `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${node}`,
  /** `after`: the next page of a list, by the word at the end of the page before. */
  podsOf: (node: string, after = ''): string =>
    `/api/v1/pods?fieldSelector=spec.nodeName%3D${encodeURIComponent(node)}&limit=500${after === '' ? '' : `&continue=${encodeURIComponent(after)}`}`,
  pod: (namespace: string, name: string): string => `/api/v1/namespaces/${namespace}/pods/${name}`,
  claim: (namespace: string, name: string): string => `/api/v1/namespaces/${namespace}/persistentvolumeclaims/${name}`,
  volume: (name: string): string => `/api/v1/persistentvolumes/${name}`,
  configMaps: (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps`,
  secrets: (namespace: string): string => `/api/v1/namespaces/${namespace}/secrets`,
  podsIn: (namespace: string): string => `/api/v1/namespaces/${namespace}/pods`,
}

export interface KeptNode extends KubeObject {
  metadata: Meta
  taints: readonly Taint[]
  address: string
  kubeletPort: number
  bootId: string
  machine: string
  /** What the Node says of the machine it runs on. */
  providerID?: string
  /** All IP addresses that it names, unless those are more than a machine has. */
  addresses?: readonly string[]
  ready: { status: 'True' | 'False' | 'Unknown'; heartbeat: string }
  /** Its other conditions that are True, where any is. */
  conditions?: readonly { readonly type: string; readonly heartbeat: string }[]
  /** Who says that it is being worked on. */
  maintenance?: 'ours' | 'others'
  /** The VolumeAttachments of what kubelet says it uses. */
  inUse: readonly string[]
}

/** What the API server may leave out is optional here, whatever the real one always sends. */
interface NodeObject extends KubeObject {
  spec?: { taints?: Taint[]; providerID?: string }
  status?: {
    addresses?: { type: string; address: string }[]
    nodeInfo?: { bootID?: string; systemUUID?: string }
    daemonEndpoints?: { kubeletEndpoint?: { Port?: number } }
    conditions?: { type: string; status: string; reason?: string; lastHeartbeatTime?: string }[]
    volumesInUse?: string[]
  }
}

const usualKubeletPort = 10_250

/** A condition that API servers have from 1.37 on. Ours is known by its reason. */
export const maintenanceType = 'MaintenanceInProgress'
export const maintenanceReason = 'HoldfastQuarantine'
export const maintenanceOver = 'HoldfastQuarantineLifted'

export function keepNode(object: KubeObject): KeptNode {
  const { spec, status } = object as NodeObject // every field of it is optional and defaulted below
  const ready = status?.conditions?.find((condition) => condition.type === 'Ready')
  const maintained = status?.conditions?.find(({ type, status: word }) => type === maintenanceType && word === 'True')
  const addresses = namedAddresses(status?.addresses ?? [])
  const others = (status?.conditions ?? []).filter((condition) => condition.type !== 'Ready' && condition.status === 'True').map(({ type, lastHeartbeatTime = '' }) => ({ type, heartbeat: lastHeartbeatTime }))
  return {
    metadata: keepMeta(object.metadata),
    taints: spec?.taints ?? [],
    ...(spec?.providerID === undefined ? {} : { providerID: spec.providerID }),
    ...(addresses.length === 0 ? {} : { addresses }),
    address: probeAddress(status?.addresses ?? []),
    kubeletPort: status?.daemonEndpoints?.kubeletEndpoint?.Port || usualKubeletPort,
    bootId: status?.nodeInfo?.bootID ?? '',
    machine: status?.nodeInfo?.systemUUID ?? '',
    ready: { status: ready?.status === 'True' || ready?.status === 'False' ? ready.status : 'Unknown', heartbeat: ready?.lastHeartbeatTime ?? '' },
    ...(others.length === 0 ? {} : { conditions: others }),
    ...(maintained === undefined ? {} : { maintenance: maintained.reason === maintenanceReason ? 'ours' : 'others' }),
    inUse: (status?.volumesInUse ?? []).flatMap((unique) => attachmentOf(unique, object.metadata.name) ?? []),
  }
}

/** In one order, each once and written in one way, so that it is no news who named what first. Of more than a record holds not even some are
 *  taken: who is cut off by those alone writes by the rest. */
function namedAddresses(offered: readonly { readonly address: string }[]): readonly string[] {
  const all = [...new Set(offered.flatMap(({ address }) => addressForm(address) ?? []))].toSorted()
  return all.length > mostAddresses ? [] : all
}

/** One with a zone (fe80::1%eth0) is of one link, and nobody beyond it sees it. */
function addressForm(address: string): string | undefined {
  switch (isIP(address)) {
    case 4: return address
    case 6: return address.includes('%') ? undefined : new URL(`http://[${address}]`).hostname.slice(1, -1)
    default: return undefined
  }
}

/** What its fence configuration may go by. Whoever has its record takes the addresses from there. */
export function wordsOf({ metadata: { labels = {}, annotations = {} }, addresses }: KeptNode): NodeWords {
  return { labels, annotations, addresses }
}

/** Whether it says more than before than that its kubelet is there, which five thousand kubelets say seventeen times a second. */
export function saysMore(kept: KeptNode, before: KeptNode): boolean {
  return !isDeepStrictEqual(withoutPulse(kept), withoutPulse(before))
}

function withoutPulse(kept: KeptNode): object {
  return { ...kept, metadata: { ...kept.metadata, resourceVersion: '' }, ready: kept.ready.status, conditions: kept.conditions?.map(({ type }) => type) }
}

const csiPrefix = 'kubernetes.io/csi/'

/** The VolumeAttachment of what a node's status calls a volume. In-tree volumes are called by their CSI translation there. */
export function attachmentOf(unique: string, node: string): string | undefined {
  const [driver = '', handle] = unique.startsWith(csiPrefix) ? unique.slice(csiPrefix.length).split(/\^(.*)/s) : []
  if (handle === undefined) return undefined
  return `csi-${createHash('sha256').update(`${handle}${driver}${node}`).digest('hex')}`
}

function keepMeta(meta: Meta): Meta {
  const { name, uid, resourceVersion, labels, annotations } = meta
  const ours = Object.fromEntries(Object.entries(annotations ?? {}).filter(([key]) => key.startsWith('holdfast.dev/') || key === kuredAnnotation))
  return { name, ...(uid === undefined ? {} : { uid }), ...(resourceVersion === undefined ? {} : { resourceVersion }), labels: labels ?? {}, annotations: ours }
}

export interface KeptAttachment extends KubeObject {
  node: string
  seen: VolumeSeen
}

interface AttachmentObject extends KubeObject {
  spec?: { attacher?: string; nodeName?: string; source?: { persistentVolumeName?: string } }
  status?: { attached?: boolean; detachError?: { message?: string }; attachError?: { message?: string } }
}

export function keepAttachment(object: KubeObject): KeptAttachment {
  const { metadata, spec, status } = object as AttachmentObject // every field of it is optional and defaulted below
  const error = status?.detachError?.message ?? status?.attachError?.message
  return {
    metadata: keepMeta(metadata),
    node: spec?.nodeName ?? '',
    seen: {
      attachment: metadata.name, uid: metadata.uid ?? '', driver: spec?.attacher ?? '', volume: spec?.source?.persistentVolumeName ?? metadata.name,
      attached: status?.attached ?? false, deleting: metadata.deletionTimestamp !== undefined, ...(error === undefined ? {} : { error }),
    },
  }
}

interface PodVolumeObject {
  name: string
  persistentVolumeClaim?: { claimName: string }
  ephemeral?: object
  csi?: { readOnly?: boolean }
}

interface Toleration {
  readonly key?: string
  readonly operator?: string
  readonly value?: string
  readonly effect?: string
}

interface PodObject extends KubeObject {
  spec?: { priority?: number; tolerations?: readonly Toleration[]; volumes?: PodVolumeObject[] }
  status?: { phase?: string; containerStatuses?: { state?: { waiting?: object; running?: object; terminated?: object } }[] }
}

/** Its claims, `namespace/name`. */
export function claimsOf(object: KubeObject): readonly string[] {
  const { metadata, spec } = object as PodObject // as below
  return (spec?.volumes ?? []).flatMap((volume) => claimOf(volume, metadata)).map((claim) => `${metadata.namespace ?? ''}/${claim}`)
}

/** `volumes`: where its claims lead. */
export function readPod(object: KubeObject, volumes: readonly PodVolume[] = []): PodSeen {
  const { metadata, spec, status } = object as PodObject // every field of it is optional and defaulted below
  const namespace = metadata.namespace ?? ''
  const owner = metadata.ownerReferences?.find((reference) => reference.controller === true)
  const kind = owner === undefined ? 'none' : ownerKinds.find((known) => known === owner.kind) ?? 'other'
  const exempt = exemption(metadata, kind)
  // Whoever makes a pod may write that on it. One that also calls itself a mirror, and is none, its kubelet deletes at once.
  const hash = isMirror(metadata) ? metadata.annotations?.['kubernetes.io/config.hash'] : undefined
  const beside = spec?.volumes?.find((volume) => !isOwn(volume))?.name
  return {
    namespace, name: metadata.name, uid: metadata.uid ?? '', resourceVersion: metadata.resourceVersion ?? '', owner: kind,
    priority: spec?.priority ?? 0, terminating: metadata.deletionTimestamp !== undefined, phase: status?.phase ?? 'Unknown',
    finalizers: metadata.finalizers ?? [], volumes, grace: (metadata.deletionGracePeriodSeconds ?? 0) * 1_000,
    toleratesEviction: (spec?.tolerations ?? []).some((one) => tolerates(one, { key: forceEvictionKey, effect: 'NoSchedule' })), ...(beside === undefined ? {} : { beside }),
    // As the attach/detach controller looks at it.
    ended: (status?.containerStatuses ?? []).every(({ state }) => state?.terminated !== undefined || state?.waiting !== undefined),
    ...(exempt === undefined ? {} : { exempt }),
    ...(spec?.tolerations?.some((one) => tolerates(one, { key: quarantineKey, value: ownValue, effect: 'NoSchedule' })) === true ? { tolerates: true } : {}),
    // Kubelet names a static pod's folder by the hash of its file; the mirror pod's uid is another.
    ...(hash === undefined ? {} : { folder: hash }),
  }
}

/** Volumes that are the pod's or its node's own, or cannot be written; a claim's are looked at one by one. */
const ownVolumes: ReadonlySet<string> = new Set(['persistentVolumeClaim', 'ephemeral', 'emptyDir', 'configMap', 'secret', 'downwardAPI', 'projected', 'hostPath', 'image'])

/** What a driver mounts for the pod without a claim may be a share that others mount as well; what brings secrets and certificates is read only. */
function isOwn(volume: PodVolumeObject): boolean {
  return Object.keys(volume).some((field) => ownVolumes.has(field)) || volume.csi?.readOnly === true
}

/** As the scheduler reads it: no key is every key, no effect is every effect, no operator is Equal. */
function tolerates({ key = '', operator = 'Equal', value = '', effect = '' }: Toleration, taint: Taint): boolean {
  if (effect !== '' && effect !== taint.effect) return false
  return operator === 'Exists' ? key === '' || key === taint.key : key === taint.key && value === (taint.value ?? '')
}

const ownerKinds = ['StatefulSet', 'ReplicaSet', 'DaemonSet', 'Job', 'Node'] as const

const isMirror = (meta: Meta): boolean => meta.annotations?.['kubernetes.io/config.mirror'] !== undefined

function exemption(meta: Meta, owner: PodSeen['owner']): string | undefined {
  if (isMirror(meta) || owner === 'Node') return 'a static pod: no one but its node can remove it'
  if (owner === 'DaemonSet') return 'a DaemonSet pod belongs to its node'
  return undefined
}

/** A generic ephemeral volume has a claim named after the pod and the volume. */
function claimOf(volume: PodVolumeObject, meta: Meta): string[] {
  if (volume.persistentVolumeClaim !== undefined) return [volume.persistentVolumeClaim.claimName]
  return volume.ephemeral === undefined ? [] : [`${meta.name}-${volume.name}`]
}
