// What a new world's API server is given: namespaces, the identities of agents and coordinators, the CSI driver with its
// volumes bound by hand, the workload, and the DaemonSet of the agents.
import { tolerateGate } from '../../core/gate.ts'
import type { Api, KubeObject } from '../../coordinator/api.ts'
import type { ClaimObject, VolumeObject } from '../objects.ts'

export interface WorkloadNames {
  readonly namespace: string
  readonly driver: string
}

export const workImage = 'holdfast.dev/sim/writer:1'
export const agentImage = 'holdfast.dev/sim/agent:1'

/** A StatefulSet and a Deployment, each with a ReadWriteOnce volume, and a Deployment without. */
export function workload({ namespace, driver }: WorkloadNames): KubeObject[] {
  const meta = (name: string) => ({ name, namespace, labels: { app: name } })
  const deployment = (name: string, volumes: object[]): KubeObject => (
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata: meta(name), spec: {
      replicas: 1, selector: { matchLabels: { app: name } }, strategy: { type: 'Recreate' },
      template: writer(name, volumes),
    } } as KubeObject) // a Deployment is more than the fields that KubeObject names
  const set = { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: meta('db'), spec: {
    replicas: 1, serviceName: 'db', selector: { matchLabels: { app: 'db' } }, template: writer('db'),
    volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: claimSpec(undefined) }],
  } } as KubeObject // likewise
  return [
    ...volume('data-db-0', namespace, driver), ...volume('web', namespace, driver),
    set, deployment('web', [{ name: 'data', persistentVolumeClaim: { claimName: 'web' } }]), deployment('plain', []),
  ]
}

function writer(name: string, volumes: object[] = []): object {
  return {
    metadata: { labels: { app: name } },
    spec: { terminationGracePeriodSeconds: 30, automountServiceAccountToken: false, containers: [{ name: 'main', image: workImage }], volumes },
  }
}

/** A PersistentVolume and its claim, named for each other so that whoever binds them has no choice. */
export function volume(claim: string, namespace: string, driver: string, mode: 'ReadWriteOnce' | 'ReadWriteMany' = 'ReadWriteOnce'): KubeObject[] {
  const persistentVolume = `pv-${claim}`
  return [
    { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: persistentVolume }, spec: {
      capacity: { storage: '1Gi' }, accessModes: [mode], persistentVolumeReclaimPolicy: 'Retain', storageClassName: '',
      csi: { driver, volumeHandle: handleOf(claim), fsType: 'ext4' },
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name: claim },
    } } as KubeObject, // an object of a kind whose spec KubeObject does not name, as the next
    { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: claim, namespace }, spec: claimSpec(persistentVolume, mode) } as KubeObject,
  ]
}

export function handleOf(claim: string): string {
  return `vol-${claim}`
}

/** Of the volumes of which it is so. */
export function handlesOf(objects: readonly KubeObject[], is: (volume: VolumeObject) => boolean): ReadonlySet<string> {
  const volumes = objects.filter(({ kind }) => kind === 'PersistentVolume') as readonly VolumeObject[] // by their kind
  return new Set(volumes.filter(is).flatMap(({ spec }) => spec?.csi?.volumeHandle ?? []))
}

function claimSpec(volumeName: string | undefined, mode = 'ReadWriteOnce'): object {
  return { accessModes: [mode], storageClassName: '', resources: { requests: { storage: '1Gi' } }, ...(volumeName === undefined ? {} : { volumeName }) }
}

export function foundations(namespace: string, system: string, drivers: readonly string[]): KubeObject[] {
  const account = (name: string) => ({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: system } })
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: system } },
    account('holdfast-agent'), account('holdfast-coordinator'),
    ...drivers.map((name) => ({ apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: { name }, spec: { attachRequired: true, podInfoOnMount: false } })),
  ] as KubeObject[] // likewise
}

export function agentDaemonSet(system: string, audience: string): KubeObject {
  const labels = { 'app.kubernetes.io/name': 'holdfast-agent' }
  return { apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { name: 'holdfast-agent', namespace: system, labels }, spec: {
    selector: { matchLabels: labels },
    template: { metadata: { labels, annotations: { [tolerateGate]: 'true' } }, spec: {
      serviceAccountName: 'holdfast-agent', automountServiceAccountToken: false, terminationGracePeriodSeconds: 5, hostNetwork: true,
      priorityClassName: 'system-node-critical', tolerations: [{ operator: 'Exists' }],
      containers: [{ name: 'agent', image: agentImage, volumeMounts: [{ name: 'token', mountPath: '/var/run/secrets/holdfast' }] }],
      volumes: [{ name: 'token', projected: { sources: [{ serviceAccountToken: { audience, expirationSeconds: 3_600, path: 'token' } }] } }],
    } },
  } } as KubeObject // a DaemonSet is more than the fields that KubeObject names
}

/** Creates what is not there yet. Kinds may be minutes behind their definitions on a real server, so each is tried for a while. */
export async function apply(api: Api, objects: readonly KubeObject[], wait: (span: number) => Promise<void>): Promise<void> {
  for (const object of objects) {
    for (let attempt = 0; ; attempt++) {
      const made = await api.create(collectionOf(object), object)
      if (made.ok || (made.error.kind === 'conflict')) break
      if (attempt >= 100) throw new Error(`${object.kind} ${object.metadata.name} cannot be created: ${made.error.message}`)
      await wait(100)
    }
  }
}

/** Binds the claims as the volume controller would: only for a server that has none. */
export async function bindClaims(api: Api, objects: readonly KubeObject[]): Promise<void> {
  for (const object of objects) {
    const { kind, metadata: { name, namespace } } = object
    if (kind !== 'PersistentVolumeClaim') continue
    const { accessModes = [] } = (object as ClaimObject).spec ?? {} // by its kind
    const bound = { status: { phase: 'Bound', accessModes, capacity: { storage: '1Gi' } } }
    const told = await api.patch(`/api/v1/namespaces/${namespace}/persistentvolumeclaims/${name}/status`, 'merge', bound)
    if (!told.ok) throw new Error(`claim ${name} cannot be bound: ${told.error.message}`)
    await api.patch(`/api/v1/persistentvolumes/pv-${name}/status`, 'merge', { status: { phase: 'Bound' } })
  }
}

const plurals: Readonly<Record<string, string>> = {
  NetworkPolicy: 'networkpolicies', PriorityClass: 'priorityclasses', StorageClass: 'storageclasses', HoldfastPolicy: 'holdfastpolicies',
  ValidatingAdmissionPolicy: 'validatingadmissionpolicies', MutatingAdmissionPolicy: 'mutatingadmissionpolicies', NodeRemedy: 'noderemedies',
}

export function collectionOf({ apiVersion = 'v1', kind = '', metadata: { namespace } }: KubeObject): string {
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  const plural = plurals[kind] ?? `${kind.toLowerCase()}s`
  return namespace === undefined ? `${root}/${plural}` : `${root}/namespaces/${namespace}/${plural}`
}
