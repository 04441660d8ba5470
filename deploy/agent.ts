// The agent in a cluster: one on every node, whatever taints it bears, because a quarantined node returns by its word alone.
// It looks and does not touch: no capability, no privilege, the host's folders read-only but for one of its own, and, where the installation
// wants it, the control groups, in which it stops what a runtime does not, and the host's mount namespace, in which it cleans up; privileged only
// where it may arm the watchdog of its machine. That keeps faults of
// ours small; it does not hold whoever has taken the agent over, because the runtime's socket alone is as much as root on that node.
import { dirname } from 'node:path'
import { nodeFlags } from '../agent/node-flags.ts'
import { tolerateGate } from '../core/gate.ts'
import type { Manifest } from './manifest.ts'
import { names, type Values } from './values.ts'

const labels = { 'app.kubernetes.io/name': names.agent }
/** All that it keeps on a node's disk. */
export const agentState = '/var/lib/holdfast'

export function agentManifests(values: Values): readonly Manifest[] {
  const metadata = { name: names.agent, namespace: values.agentNamespace, labels }
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata, automountServiceAccountToken: false },
    {
      apiVersion: 'apps/v1', kind: 'DaemonSet', metadata,
      spec: {
        selector: { matchLabels: labels },
        updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '10%' } },
        template: { metadata: { labels, annotations: { [tolerateGate]: 'true' } }, spec: podSpec(values) },
      },
    },
  ]
}

function podSpec(values: Values): object {
  const { kubeletRoot } = values
  return {
    serviceAccountName: names.agent,
    // Its token for the API server is one of the volumes below; it is used where a cluster starts cold, and for nothing else.
    automountServiceAccountToken: false,
    priorityClassName: 'system-node-critical',
    tolerations: [{ operator: 'Exists' }],
    // Kubelet's health is told on the host's loopback only, peers ask each other by the nodes' own addresses, and neither may
    // depend on the pod network, whose failure is one of the things to be told apart.
    hostNetwork: true,
    dnsPolicy: 'ClusterFirstWithHostNet',
    terminationGracePeriodSeconds: 10,
    securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
    ...(values.gateFromBoot === 'on' ? { initContainers: [bootGate(values)] } : {}),
    containers: [container(values)],
    volumes: [
      { name: 'proc', hostPath: { path: '/proc', type: 'Directory' } },
      { name: 'kubelet', hostPath: { path: kubeletRoot, type: 'Directory' } },
      { name: 'run', hostPath: { path: '/run', type: 'Directory' } },
      ...socketFolders(values).map((path, index) => ({ name: `sockets-${index}`, hostPath: { path, type: 'DirectoryOrCreate' } })),
      { name: 'state', hostPath: { path: agentState, type: 'DirectoryOrCreate' } },
      ...(values.gateFromBoot === 'on' ? [{ name: 'plugins', hostPath: { path: values.nriPlugins, type: 'DirectoryOrCreate' } }] : []),
      ...(values.freezer === 'on' ? [{ name: 'cgroups', hostPath: { path: '/sys/fs/cgroup', type: 'Directory' } }] : []),
      { name: 'token', projected: { sources: [{ serviceAccountToken: { audience: names.audience, expirationSeconds: 3_600, path: 'token' } }] } },
      { name: 'authority', configMap: { name: names.authority } },
      {
        name: 'api',
        projected: { sources: [
          { serviceAccountToken: { expirationSeconds: 3_600, path: 'token' } },
          { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        ] },
      },
    ],
  }
}

/** What it takes to enter another process's mount namespace and let go of a mount there, and nothing beside it: to look at that process, to
 *  change the root, to unmount. The profile that runtimes confine containers by forbids the first. */
const entering = { capabilities: { drop: ['ALL'], add: ['SYS_ADMIN', 'SYS_CHROOT', 'SYS_PTRACE'] }, appArmorProfile: { type: 'Unconfined' } } as const

/** Puts the gate's own program, and a Node for it, onto the host; the next start of the runtime begins with it. */
function bootGate(values: Values): object {
  return {
    name: names.bootGate, image: values.image,
    command: ['/holdfast/node', '/holdfast/boot-gate.mjs', 'install', agentState, pluginsHere, exempt(values)],
    resources: { requests: { cpu: '10m', memory: '64Mi' }, limits: { memory: '192Mi' } },
    securityContext: { runAsUser: 0, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    volumeMounts: [{ name: 'state', mountPath: agentState }, { name: 'plugins', mountPath: pluginsHere }],
  }
}

/** Where the runtime's plugin folder is mounted. */
const pluginsHere = '/host/nri-plugins'

/** Whoever accepts a boot must be able to start on one that nobody has accepted. */
function exempt({ gateExemptNamespaces, namespace, agentNamespace }: Values): string {
  return [...gateExemptNamespaces, namespace, agentNamespace].join(',')
}

/** As the agent sees it. */
function onHost(path: string): string {
  return `/host${path}`
}

/** Of sockets that are not below the host's /run, which it is given in any case. */
function socketFolders({ runtimeSocket, nriSocket }: Values): readonly string[] {
  return [...new Set([runtimeSocket, nriSocket].filter((path) => path !== '' && !path.startsWith('/run/')).map((path) => dirname(path)))]
}

function container(values: Values): object {
  const { image, namespace, beatsPort, whisperPort, kubeletRoot, runtimeSocket, nriSocket, gate, gateFromBoot, freezer, cleanUp, watchdog, storage } = values
  return {
    name: 'agent', image,
    command: ['/holdfast/node', ...nodeFlags, '/holdfast/agent.mjs'],
    env: [
      { name: 'HOLDFAST_NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
      { name: 'HOLDFAST_REPLICAS', value: `${names.coordinator}.${namespace}.svc:${beatsPort}` },
      { name: 'HOLDFAST_WHISPER_PORT', value: String(whisperPort) },
      { name: 'HOLDFAST_KUBELET_ROOT', value: kubeletRoot },
      { name: 'HOLDFAST_PROC', value: '/host/proc' },
      { name: 'HOLDFAST_RUN', value: '/host/run' },
      ...(runtimeSocket === '' ? [] : [{ name: 'HOLDFAST_RUNTIME_SOCKET', value: onHost(runtimeSocket) }]),
      ...(nriSocket === '' ? [] : [{ name: 'HOLDFAST_NRI_SOCKET', value: onHost(nriSocket) }]),
      { name: 'HOLDFAST_GATE', value: gate },
      ...(gateFromBoot === 'on' ? [{ name: 'HOLDFAST_GATE_FROM_BOOT', value: 'on' }] : []),
      { name: 'HOLDFAST_GATE_EXEMPT_NAMESPACES', value: exempt(values) },
      { name: 'HOLDFAST_STATE', value: agentState },
      ...(storage.length > 0 ? [{ name: 'HOLDFAST_STORAGE', value: storage.join(',') }] : []),
      ...(freezer === 'on' ? [{ name: 'HOLDFAST_CGROUPS', value: '/host/cgroup' }] : []),
      { name: 'HOLDFAST_TOKEN_FILE', value: '/var/run/secrets/holdfast/token' },
      { name: 'HOLDFAST_AUTHORITY_FILE', value: '/etc/holdfast/ca.crt' },
    ],
    ports: [{ name: 'whispers', containerPort: whisperPort, hostPort: whisperPort, protocol: 'UDP' }],
    // No limit on the processor: a throttled beat is a silence. Room for a second Node beside it, which looks at the vitals for a second.
    resources: { requests: { cpu: '10m', memory: '64Mi' }, limits: { memory: '192Mi' } },
    // Root, for what only root may open (the machine's UUID, kubelet's folder, the runtime's two sockets, systemd's), and without any capability.
    // Mount tables of other processes may be read by anybody who sees their numbers, so the host's process table need not be ours.
    // A device of the host is given to no container that is not privileged, whatever it mounts.
    securityContext: {
      runAsUser: 0, readOnlyRootFilesystem: true, ...(watchdog === 'on' ? { privileged: true } : { allowPrivilegeEscalation: false, ...(cleanUp === 'on' ? entering : { capabilities: { drop: ['ALL'] } }) }),
    },
    volumeMounts: [
      { name: 'proc', mountPath: '/host/proc', readOnly: true, mountPropagation: 'HostToContainer' },
      // Pods' volumes and staging mounts are mounted below. Without propagation this container would keep its own copies of those
      // mounts, and with them the devices busy, after the host had let go. The whole folder, because what is read there (the names
      // of pod folders, vol_data.json beside a staging mount, kubelet's word that the machine shuts down) is written by renaming,
      // and a mount of one file would go on showing the old one.
      { name: 'kubelet', mountPath: kubeletRoot, readOnly: true, mountPropagation: 'HostToContainer' },
      // The sockets of the runtime's CRI and NRI, and systemd's. The folder, because a runtime that is started again makes new ones; containers'
      // file systems are mounted below, and must go when the host lets go of them. A socket is connected to on a read-only mount.
      { name: 'run', mountPath: '/host/run', readOnly: true, mountPropagation: 'HostToContainer' },
      ...socketFolders(values).map((path, index) => ({ name: `sockets-${index}`, mountPath: onHost(path), readOnly: true, mountPropagation: 'HostToContainer' })),
      { name: 'state', mountPath: agentState },
      // Root owns each of its files, so no capability is needed.
      ...(freezer === 'on' ? [{ name: 'cgroups', mountPath: '/host/cgroup' }] : []),
      { name: 'token', mountPath: '/var/run/secrets/holdfast', readOnly: true },
      { name: 'authority', mountPath: '/etc/holdfast', readOnly: true },
      { name: 'api', mountPath: '/var/run/secrets/holdfast-api', readOnly: true },
    ],
  }
}
