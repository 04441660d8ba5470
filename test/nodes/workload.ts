// What runs in the cluster beside the product: a CSI driver, a StatefulSet and a Deployment with a ReadWriteOnce volume each, and
// in each volume a writer that says ten times a second when, on which machine and in which boot of it.
import type { KubeObject } from '../../coordinator/api.ts'
import { tolerateGate } from '../../core/gate.ts'
import { handleOf, volume } from '../../sim/world/objects.ts'
import { bootIdFile } from './disk.ts'
import { labImage } from './lab-image.ts'

export const driver = 'csi.holdfast.test'
export const workNamespace = 'work'
/** Claims, and with them volumes. */
export const claims = { db: 'data-db-0', web: 'web' } as const
export const volumes = Object.values(claims).map(handleOf)
export const logFile = 'log'

/** The kernel's uptime, which all machines share and nobody can set, to the hundredth of a second. */
const write = `read boot < /boot_id
while :; do
  read up idle < /proc/uptime
  echo "$up $NODE $boot $POD" >> /data/${logFile}
  sleep 0.1
done`

export function workObjects(): readonly KubeObject[] {
  const objects: readonly object[] = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: workNamespace } },
    { apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: { name: driver }, spec: { attachRequired: true, podInfoOnMount: false, fsGroupPolicy: 'None' } },
    nodePlugin(),
    ...volume(claims.db, workNamespace, driver), ...volume(claims.web, workNamespace, driver),
    {
      apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: about('db'),
      spec: { replicas: 1, serviceName: 'db', selector: { matchLabels: { app: 'db' } }, template: writer('db', claims.db) },
    },
    {
      apiVersion: 'apps/v1', kind: 'Deployment', metadata: about('web'),
      spec: { replicas: 1, strategy: { type: 'Recreate' }, selector: { matchLabels: { app: 'web' } }, template: writer('web', claims.web) },
    },
  ]
  return objects as readonly KubeObject[] // kinds whose specs KubeObject does not name
}

function about(name: string): object {
  return { name, namespace: workNamespace, labels: { app: name } }
}

function writer(app: string, claim: string): object {
  return {
    metadata: { labels: { app } },
    spec: {
      terminationGracePeriodSeconds: 5, automountServiceAccountToken: false, affinity: affinity(app),
      containers: [{
        name: 'writer', image: labImage, command: ['/bin/sh', '-c', write],
        env: [{ name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }, { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.uid' } } }],
        volumeMounts: [{ name: 'data', mountPath: '/data' }, { name: 'boot-id', mountPath: '/boot_id', readOnly: true }],
      }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: claim } }, { name: 'boot-id', hostPath: { path: bootIdFile, type: 'File' } }],
    },
  }
}

const topologyKey = 'kubernetes.io/hostname'
const toDb = { topologyKey, labelSelector: { matchLabels: { app: 'db' } } }

/** Of `web`, as a merge patch: it stays with `db` whatever comes, or goes on without it where `db` is bound to a node that takes nobody. */
export function bound(how: 'always' | 'if it can'): object {
  const podAffinity = how === 'always'
    ? { requiredDuringSchedulingIgnoredDuringExecution: [toDb], preferredDuringSchedulingIgnoredDuringExecution: null }
    : { requiredDuringSchedulingIgnoredDuringExecution: null, preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm: toDb }] }
  // Where no replica is counts for less than where `db` is.
  const podAntiAffinity = how === 'always' ? notWithReplicas(100) : notWithReplicas(1)
  return { spec: { template: { spec: { affinity: { podAffinity, podAntiAffinity } } } } }
}

/** Both go where no replica of the coordinator is, if they can, and stay together: each story then has one victim with both. */
function affinity(app: string): object {
  return { podAntiAffinity: notWithReplicas(100), ...(app === 'web' ? { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [toDb] } } : {}) }
}

function notWithReplicas(weight: number): object {
  const coordinators = { topologyKey, namespaceSelector: {}, labelSelector: { matchLabels: { 'app.kubernetes.io/name': 'holdfast-coordinator' } } }
  return { preferredDuringSchedulingIgnoredDuringExecution: [{ weight, podAffinityTerm: coordinators }] }
}

function nodePlugin(): object {
  const labels = { app: 'csi-node' }
  return {
    apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { name: 'csi-node', namespace: 'kube-system', labels },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels, annotations: { [tolerateGate]: 'true' } },
        spec: {
          hostNetwork: true, priorityClassName: 'system-node-critical', tolerations: [{ operator: 'Exists' }], automountServiceAccountToken: false,
          terminationGracePeriodSeconds: 1,
          containers: [{
            name: 'plugin', image: labImage, command: ['/bin/csi-driver', 'node'], securityContext: { privileged: true },
            env: [
              { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
              { name: 'DRIVER', value: driver }, { name: 'SAN', value: '/san' }, { name: 'KUBELET_ROOT', value: '/var/lib/kubelet' },
            ],
            volumeMounts: [{ name: 'kubelet', mountPath: '/var/lib/kubelet', mountPropagation: 'Bidirectional' }, { name: 'san', mountPath: '/san' }],
          }],
          volumes: [{ name: 'kubelet', hostPath: { path: '/var/lib/kubelet' } }, { name: 'san', hostPath: { path: '/san' } }],
        },
      },
    },
  }
}
