// The coordinator in a cluster: two replicas on different nodes, each hearing every beat, one of them leading.
import { quarantineKey } from '../core/clear.ts'
import { tolerateGate } from '../core/gate.ts'
import type { Manifest } from './manifest.ts'
import { names, type Values } from './values.ts'

const labels = { 'app.kubernetes.io/name': names.coordinator }

export function coordinatorManifests(values: Values): readonly Manifest[] {
  const { namespace, replicas } = values
  const metadata = { name: names.coordinator, namespace, labels }
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata, automountServiceAccountToken: false },
    service(values),
    {
      apiVersion: 'apps/v1', kind: 'Deployment', metadata,
      spec: {
        replicas,
        selector: { matchLabels: labels },
        // The new one would wait for a node of its own that the old one still has.
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
        template: { metadata: { labels, annotations: { [tolerateGate]: 'true' } }, spec: podSpec(values) },
      },
    },
    {
      apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata,
      // A replica that is not ready protects nobody and must not hold up the drain of its node.
      spec: { maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow', selector: { matchLabels: labels } },
    },
    networkPolicy(values),
  ]
}

/** Agents find the replicas by this name at their start. A replica that is not ready hears beats all the same. */
function service({ namespace, beatsPort }: Values): Manifest {
  return {
    apiVersion: 'v1', kind: 'Service', metadata: { name: names.coordinator, namespace, labels },
    spec: { clusterIP: 'None', publishNotReadyAddresses: true, selector: labels, ports: [{ name: 'beats', port: beatsPort, targetPort: 'beats' }] },
  }
}

/** Agents and crash kernels come from the hosts' own network, which no selector can name: the agents' door stands open and asks for a
 *  token, the other takes eight bytes that move nothing by themselves. What goes out is not limited, because devices and clouds may be anywhere. */
function networkPolicy({ namespace, monitoringNamespace }: Values): Manifest {
  return {
    apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name: names.coordinator, namespace, labels },
    spec: {
      podSelector: { matchLabels: labels },
      policyTypes: ['Ingress'],
      ingress: [
        { ports: [{ port: 'beats', protocol: 'TCP' }] },
        { ports: [{ port: 'kdump', protocol: 'UDP' }] },
        {
          from: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': monitoringNamespace } } }],
          ports: [{ port: 'http', protocol: 'TCP' }],
        },
      ],
    },
  }
}

function podSpec(values: Values): object {
  return {
    serviceAccountName: names.coordinator,
    automountServiceAccountToken: true,
    priorityClassName: 'system-cluster-critical',
    // Ten seconds: our own node may be the one that died, and the other replica is alone meanwhile.
    tolerations: [
      { key: 'node-role.kubernetes.io/control-plane', operator: 'Exists', effect: 'NoSchedule' },
      // Where every node that lives is under quarantine, nobody else would ever lift one, nor switch the others on.
      { key: quarantineKey, operator: 'Exists', effect: 'NoSchedule' },
      ...['not-ready', 'unreachable'].map((key) => ({ key: `node.kubernetes.io/${key}`, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 10 })),
    ],
    affinity: {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: labels } }],
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 100, podAffinityTerm: { topologyKey: 'topology.kubernetes.io/zone', labelSelector: { matchLabels: labels } } },
        ],
      },
    },
    // The lease is given back and fence programs are ended well within it.
    terminationGracePeriodSeconds: 30,
    securityContext: { runAsNonRoot: true, runAsUser: 65_532, runAsGroup: 65_532, fsGroup: 65_532, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [container(values)],
    volumes: [
      // Fence programs run in an empty folder of their own.
      // In memory: keys that a fence program wants as a file lie there for the length of its run.
      { name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: '64Mi' } },
      { name: 'token', projected: { sources: [{ serviceAccountToken: { audience: names.audience, expirationSeconds: 3_600, path: 'token' } }] } },
    ],
  }
}

function container({ image, beatsPort, httpPort, namespace, agentNamespace }: Values): object {
  return {
    name: 'coordinator', image,
    // Without the bound, the garbage of thousands of handshakes widens the young generation for good (docs/decisions/0001).
    command: ['/holdfast/node', '--max-semi-space-size=4', '/holdfast/coordinator.mjs'],
    env: [
      { name: 'HOLDFAST_NAMESPACE', value: namespace },
      { name: 'HOLDFAST_AGENT_NAMESPACE', value: agentNamespace },
      field('HOLDFAST_IDENTITY', 'metadata.name'),
      field('HOLDFAST_ADDRESS', 'status.podIP'),
      { name: 'HOLDFAST_BEATS_PORT', value: String(beatsPort) },
      { name: 'HOLDFAST_HTTP_PORT', value: String(httpPort) },
      { name: 'HOLDFAST_TOKEN_FILE', value: '/var/run/secrets/holdfast/token' },
      // Ours, and those of the image's ClusterLabs package, of which only the names that begin so may be run.
      { name: 'HOLDFAST_FENCE_AGENTS', value: '/holdfast/fence-agents:/usr/sbin/fence_*' },
    ],
    ports: [{ name: 'beats', containerPort: beatsPort }, { name: 'http', containerPort: httpPort }, { name: 'kdump', containerPort: 7_410, protocol: 'UDP' }],
    startupProbe: probe('/livez', 1, 60),
    livenessProbe: probe('/livez', 10, 6),
    readinessProbe: probe('/readyz', 2, 2),
    // No limit on the processor: a throttled replica misses beats and takes its own stall for blindness.
    resources: { requests: { cpu: '100m', memory: '256Mi' }, limits: { memory: '768Mi' } },
    securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
    volumeMounts: [
      { name: 'tmp', mountPath: '/tmp' },
      { name: 'token', mountPath: '/var/run/secrets/holdfast', readOnly: true },
    ],
  }
}

function field(name: string, fieldPath: string): object {
  return { name, valueFrom: { fieldRef: { fieldPath } } }
}

function probe(path: string, periodSeconds: number, failureThreshold: number): object {
  return { httpGet: { path, port: 'http' }, periodSeconds, timeoutSeconds: 5, failureThreshold }
}
