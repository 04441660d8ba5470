// What may differ from one installation to the next. Everything else in the manifests is as it must be.
import { audience } from '../coordinator/beats-review.ts'
import { replicaName } from '../edge/tls-link.ts'

export interface Values {
  /** Of the coordinator, the fence ConfigMaps and their Secrets. Restricted in the words of Pod Security. */
  readonly namespace: string
  /** Of the agents, which need the host's network and some of its folders: more than even `baseline` allows. */
  readonly agentNamespace: string
  /** Holds `/holdfast/node` and the bundles beside it (`npm run build`). */
  readonly image: string
  readonly replicas: number
  /** TCP: agents and other replicas dial it. */
  readonly beatsPort: number
  /** TCP: probes, metrics and the page. */
  readonly httpPort: number
  /** UDP on every node: one agent asks another whether it is there. */
  readonly whisperPort: number
  /** As kubelet's --root-dir says. */
  readonly kubeletRoot: string
  /** The runtime's own socket (CRI) and that for its plugins (NRI), as the host calls them. Empty: agents look where kubeadm, k3s, RKE2 and CRI-O
   *  put them. */
  readonly runtimeSocket: string
  readonly nriSocket: string
  /** Whether agents hold pods on a node until its boot is accepted, where the runtime knows NRI. */
  readonly gate: 'on' | 'off'
  /** Whether the gate is shut from the first second of a boot: by a program of its own in the runtime's plugin folder, which is put there. Needs the gate,
   *  and a host with a shell. */
  readonly gateFromBoot: 'on' | 'off'
  /** The runtime's plugin folder (NRI's plugin_path). */
  readonly nriPlugins: string
  /** Pods of these start on a node that is not accepted yet; those of ours do anyway. */
  readonly gateExemptNamespaces: readonly string[]
  /** Whether agents may let go of mounts of the host, where a policy has them clean up: for that they enter its mount namespace. */
  readonly cleanUp: 'on' | 'off'
  /** Whether agents may freeze what a runtime does not stop, where a policy has nodes give up: for that the host's control groups are theirs
   *  to write. */
  readonly freezer: 'on' | 'off'
  /** Whether agents may arm the watchdogs of their machines, where a policy has nodes give up by them. No pod is given such a device but one that is
   *  privileged. */
  readonly watchdog: 'on' | 'off'
  /** Storage that each agent probes: portals as `tcp://host:port`, and mount points of the host (for these it must be let in, as for `cleanUp`). */
  readonly storage: readonly string[]
  /** The namespace whose pods may read metrics. */
  readonly monitoringNamespace: string
  /** Whether the API server has MutatingAdmissionPolicy v1, as from Kubernetes 1.36 on. Without it a person names himself beside
   *  force-eviction, by the annotation `holdfast.dev/force-eviction-by`. */
  readonly stamps: boolean
}

export const usualValues: Values = {
  namespace: 'holdfast-system',
  agentNamespace: 'holdfast-agents',
  image: 'holdfast:0.1.0',
  replicas: 2,
  beatsPort: 7_414,
  httpPort: 7_415,
  whisperPort: 7_416,
  kubeletRoot: '/var/lib/kubelet',
  runtimeSocket: '',
  nriSocket: '',
  gate: 'on',
  gateFromBoot: 'off',
  nriPlugins: '/opt/nri/plugins',
  gateExemptNamespaces: ['kube-system'],
  cleanUp: 'off',
  freezer: 'off',
  watchdog: 'off',
  storage: [],
  monitoringNamespace: 'monitoring',
  stamps: true,
}

/** Names that the code itself says, or that two manifests share. */
export const names = {
  coordinator: replicaName,
  agent: 'holdfast-agent',
  /** What puts the gate's own program onto a node, before its agent. */
  bootGate: 'boot-gate',
  audience,
  /** The Secret with the keys of our own certificate authority, and the ConfigMap with its certificate. */
  authority: 'holdfast-authority',
} as const
