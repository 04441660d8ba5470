// Kubernetes' objects, as far as the simulated kubelets and controllers read and write them.
import type { KubeObject, Meta } from '../coordinator/api.ts'
import type { Taint } from '../core/model.ts'

export interface Condition {
  type: string
  status: 'True' | 'False' | 'Unknown'
  reason?: string
  message?: string
  lastHeartbeatTime?: string
  lastTransitionTime?: string
}

export interface NodeObject extends KubeObject {
  spec?: { taints?: StoredTaint[]; unschedulable?: boolean; providerID?: string }
  status?: {
    conditions?: Condition[]
    addresses?: { type: string; address: string }[]
    daemonEndpoints?: { kubeletEndpoint?: { Port: number } }
    nodeInfo?: { bootID?: string; systemUUID?: string; machineID?: string; kubeletVersion?: string }
    volumesInUse?: string[]
    volumesAttached?: { name: string; devicePath: string }[]
  }
}

export interface StoredTaint extends Taint {
  readonly timeAdded?: string
}

export interface Toleration {
  readonly key?: string
  readonly operator?: 'Exists' | 'Equal'
  readonly value?: string
  readonly effect?: Taint['effect']
  readonly tolerationSeconds?: number
}

export interface ContainerStatus {
  name: string
  ready: boolean
  started?: boolean
  restartCount: number
  image: string
  imageID: string
  containerID?: string
  state?: { running?: { startedAt: string }; waiting?: { reason: string }; terminated?: { exitCode: number; reason: string; finishedAt?: string } }
}

export interface PodSpec {
  nodeName?: string
  serviceAccountName?: string
  terminationGracePeriodSeconds?: number
  containers: { name: string; image: string; [more: string]: unknown }[]
  volumes?: { name: string; persistentVolumeClaim?: { claimName: string }; [more: string]: unknown }[]
  tolerations?: Toleration[]
  nodeSelector?: Record<string, string>
  affinity?: {
    nodeAffinity?: {
      requiredDuringSchedulingIgnoredDuringExecution?: {
        nodeSelectorTerms: { matchFields?: { key: string; operator: string; values: string[] }[] }[]
      }
    }
  }
  hostname?: string
  [more: string]: unknown
}

export interface PodObject extends KubeObject {
  spec: PodSpec
  status?: {
    phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown'
    reason?: string
    message?: string
    conditions?: Condition[]
    containerStatuses?: ContainerStatus[]
    startTime?: string
    podIP?: string
    hostIP?: string
  }
}

export interface LeaseObject extends KubeObject {
  spec?: { holderIdentity?: string; leaseDurationSeconds?: number; renewTime?: string }
}

export interface ClaimObject extends KubeObject {
  spec?: { volumeName?: string; accessModes?: string[] }
  status?: { phase?: string }
}

export interface VolumeObject extends KubeObject {
  spec?: { csi?: { driver: string; volumeHandle: string }; accessModes?: string[] }
}

export interface AttachmentObject extends KubeObject {
  spec: { attacher: string; nodeName: string; source: { persistentVolumeName?: string } }
  status?: { attached?: boolean; attachError?: { message?: string; time?: string }; detachError?: { message?: string; time?: string } }
}

export interface PodTemplate {
  metadata?: Partial<Meta>
  spec: PodSpec
}

export interface Selector { readonly matchLabels?: Record<string, string> }

export interface StatefulSetObject extends KubeObject {
  spec: { replicas?: number; serviceName?: string; selector: Selector; template: PodTemplate; volumeClaimTemplates?: { metadata: { name: string }; spec?: unknown }[] }
  status?: { replicas?: number; readyReplicas?: number }
}

export interface ReplicaSetObject extends KubeObject {
  spec: { replicas?: number; selector: Selector; template: PodTemplate }
  status?: { replicas?: number; readyReplicas?: number }
}

export type DeploymentObject = ReplicaSetObject

export interface DisruptionBudgetObject extends KubeObject {
  spec: { minAvailable?: number | string; maxUnavailable?: number | string; selector?: Selector; unhealthyPodEvictionPolicy?: string }
  status?: {
    currentHealthy?: number; desiredHealthy?: number; disruptionsAllowed?: number; expectedPods?: number; observedGeneration?: number
    disruptedPods?: Record<string, string>; conditions?: Condition[]
  }
}

export interface DaemonSetObject extends KubeObject {
  spec: { selector: Selector; template: PodTemplate }
  status?: { numberReady?: number; desiredNumberScheduled?: number }
}

/** Others may have it beside whoever has it. */
export function isShared({ spec }: VolumeObject): boolean {
  return spec?.accessModes?.some((mode) => mode === 'ReadWriteMany' || mode === 'ReadOnlyMany') === true
}

/** `kubernetes.io/csi/<driver>^<handle>`: how kubelet and controller name a volume on a node. */
export function uniqueVolumeName(driver: string, handle: string): string {
  return `kubernetes.io/csi/${driver}^${handle}`
}

export function volumeOfUniqueName(name: string): { readonly driver: string; readonly handle: string } | undefined {
  const [, driver, handle] = /^kubernetes\.io\/csi\/([^^]+)\^(.+)$/.exec(name) ?? []
  return driver === undefined || handle === undefined ? undefined : { driver, handle }
}

export function podName({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`
}

export function isReady(object: { status?: { conditions?: Condition[] } }): boolean {
  return object.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True'
}

/** Controllers count a pod that still may run; a deleted or finished one is to be replaced. */
export function isActive(pod: PodObject): boolean {
  return pod.metadata.deletionTimestamp === undefined && !isFinished(pod)
}

export function isFinished(pod: PodObject): boolean {
  return pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded'
}

export function ownedBy(object: KubeObject, uid: string | undefined): boolean {
  return object.metadata.ownerReferences?.some((owner) => owner.controller === true && owner.uid === uid) ?? false
}

export function tolerates(tolerations: readonly Toleration[] | undefined, taint: Taint): boolean {
  return tolerations?.some((toleration) => excuses(toleration, taint)) ?? false
}

export function excuses({ key, operator = 'Equal', value, effect }: Toleration, taint: Taint): boolean {
  if (effect !== undefined && effect !== taint.effect) return false
  if (key === undefined || key === '') return operator === 'Exists'
  return key === taint.key && (operator === 'Exists' || (value ?? '') === (taint.value ?? ''))
}

/** Seconds, as Kubernetes' own times. */
export function timestamp(wall: number): string {
  return `${new Date(wall).toISOString().slice(0, 19)}Z`
}

/** Six digits, as a Lease's times must be. */
export function microTime(wall: number): string {
  return `${new Date(wall).toISOString().slice(0, 23)}000Z`
}
