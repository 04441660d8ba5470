// How a kubelet speaks of its node: it registers the Node and the CSINode, renews the Lease, and posts the status.
//
// Kept as measured or read of 1.36: Lease renewed every 10 s by a read-modify-write of what it last saw; status looked at every
// 10 s and posted when something changed or five minutes have passed; a volume is reported in use by that same rhythm and not
// sooner, which is what a pod with a volume waits for; taints and deletions are never the kubelet's. Left out: images,
// capacity changes, the slower back-offs of a Lease that cannot be renewed.
import type { Api } from '../coordinator/api.ts'
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Machine } from './machine.ts'
import { microTime, timestamp, type Condition, type LeaseObject, type NodeObject } from './objects.ts'

export interface NodeVoice {
  /** Posts soon what is true now, without waiting for the rhythm. */
  postNow(): void
  /** The volumes that the last posted status named as in use. */
  reportedInUse(): ReadonlySet<string>
  /** The Node object as this kubelet wrote it is there. */
  registered(): boolean
}

export interface NodeVoiceOptions {
  readonly machine: Machine
  readonly clock: Clock
  readonly chance: () => number
  readonly api: Api
  readonly kubeletPort: number
  readonly drivers: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  readonly version: string
  /** Unknown until the kubelet has rebuilt what was mounted before it started: until then the API keeps what it had. */
  volumesInUse(): readonly string[] | undefined
  /** Conditions beside, or instead of, the usual ones. */
  conditions(): readonly Condition[]
  /** The Node as the API shows it: what somebody else changed in the status is posted over at the next look. */
  node(): NodeObject | undefined
}

const statusEvery: Ms = 10_000
const statusAtLeastEvery: Ms = 300_000
const leaseEvery: Ms = 10_000
const leaseSeconds = 40
const retryAfter: Ms = 400

export function speakForNode(options: NodeVoiceOptions): NodeVoice {
  const { machine, clock, api } = options
  const { name } = machine
  let registered = false
  let reported = new Set<string>()
  let postedAt: Ms | undefined
  let posting = false
  let again = false
  let lease: LeaseObject | undefined
  const since = new Map<string, { status: string; at: string }>()

  void live()
  return {
    postNow: () => void (registered ? post(true) : undefined),
    reportedInUse: () => reported,
    registered: () => registered,
  }

  async function live(): Promise<void> {
    while (!(await register())) await clock.wait(retryAfter)
    registered = true
    await post(true)
    void beat()
    // The first look comes at a phase of its own, so that a cluster's kubelets do not speak in chorus.
    await clock.wait(statusEvery * options.chance())
    for (;;) {
      await post(false)
      await clock.wait(jittered(statusEvery))
    }
  }

  async function register(): Promise<boolean> {
    const managed = { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' }
    const labels = {
      'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64',
      'topology.kubernetes.io/zone': machine.settings.zone, ...options.labels,
    }
    const there = await api.get<NodeObject>(`/api/v1/nodes/${name}`)
    if (!there.ok && there.error.kind !== 'notFound') return false
    const made = there.ok
      ? await api.patch<NodeObject>(`/api/v1/nodes/${name}`, 'strategic', { metadata: { annotations: managed, labels } })
      : await api.create<NodeObject>('/api/v1/nodes', {
        apiVersion: 'v1', kind: 'Node', metadata: { name, labels, annotations: managed }, spec: { providerID: `sim://${machine.settings.machineId}` },
      })
    if (!made.ok) return false
    const csi = await api.create('/apis/storage.k8s.io/v1/csinodes', {
      apiVersion: 'storage.k8s.io/v1', kind: 'CSINode',
      metadata: { name, ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid: made.value.metadata.uid }] },
      spec: { drivers: options.drivers.map((driver) => ({ name: driver, nodeID: name, topologyKeys: [] })) },
    })
    return csi.ok || csi.error.kind === 'conflict'
  }

  async function post(always: boolean): Promise<void> {
    if (posting) return void (again ||= always)
    const boot = machine.boot()
    if (boot === undefined) return
    const inUse = options.volumesInUse()
    const next = status(inUse, boot.id)
    if (!always && postedAt !== undefined && clock.now() - postedAt < statusAtLeastEvery && !differs(next, options.node()?.status)) return
    posting = true
    const answer = await api.patch<NodeObject>(`/api/v1/nodes/${name}/status`, 'strategic', { status: next })
    posting = false
    if (answer.ok) {
      postedAt = clock.now()
      if (inUse !== undefined) reported = new Set(inUse)
    } else if (answer.error.kind === 'notFound') await register()
    if (!again) return
    again = false
    await post(true)
  }

  function status(inUse: readonly string[] | undefined, bootID: string): NodeObject['status'] & object {
    const { address } = machine.host
    const usual: Condition[] = [
      { type: 'MemoryPressure', status: 'False', reason: 'KubeletHasSufficientMemory', message: 'kubelet has sufficient memory available' },
      { type: 'DiskPressure', status: 'False', reason: 'KubeletHasNoDiskPressure', message: 'kubelet has no disk pressure' },
      { type: 'PIDPressure', status: 'False', reason: 'KubeletHasSufficientPID', message: 'kubelet has sufficient PID available' },
      { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'kubelet is posting ready status' },
    ]
    const told = new Map([...usual, ...options.conditions()].map((condition) => [condition.type, stamped(condition)]))
    return {
      addresses: [{ type: 'InternalIP', address }, { type: 'Hostname', address: name }],
      daemonEndpoints: { kubeletEndpoint: { Port: options.kubeletPort } },
      nodeInfo: {
        bootID, systemUUID: machine.settings.machineId, machineID: machine.settings.machineId.replaceAll('-', ''), kubeletVersion: options.version,
        architecture: 'amd64', containerRuntimeVersion: 'sim://1', kernelVersion: '6.12.0-sim', kubeProxyVersion: '', operatingSystem: 'linux', osImage: 'Simulated Linux',
      } as NodeObject['status'] & object, // the API asks for all of these; nobody here reads the rest
      capacity: resources, allocatable: resources,
      conditions: [...told.values()],
      ...(inUse === undefined ? {} : { volumesInUse: [...inUse] }),
    } as NodeObject['status'] & object
  }

  function stamped(condition: Condition): Condition {
    const now = timestamp(clock.wall())
    const known = since.get(condition.type)
    if (known?.status !== condition.status) since.set(condition.type, { status: condition.status, at: now })
    return { ...condition, lastHeartbeatTime: now, lastTransitionTime: since.get(condition.type)?.at ?? now }
  }

  async function beat(): Promise<void> {
    for (;;) {
      await renew()
      await clock.wait(jittered(leaseEvery))
    }
  }

  /** As a real kubelet's: up to 4 % longer, so that a cluster's beats drift apart. */
  function jittered(span: Ms): Ms {
    return span * (1 + 0.04 * options.chance())
  }

  async function renew(): Promise<void> {
    const path = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
    // A few tries, each with a fresh read after a refusal: what is missed here is caught up with ten seconds later.
    for (let attempt = 0; attempt < 3; attempt++) {
      const spec = { holderIdentity: name, leaseDurationSeconds: leaseSeconds, renewTime: microTime(clock.wall()) }
      if (lease === undefined) {
        const there = await api.get<LeaseObject>(`${path}/${name}`)
        if (there.ok) lease = there.value
        else if (there.error.kind !== 'notFound') return
        else {
          const made = await api.create<LeaseObject>(path, {
            apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name, namespace: 'kube-node-lease' }, spec,
          })
          if (made.ok) lease = made.value
          if (made.ok) return
          continue
        }
      }
      const renewed = await api.replace<LeaseObject>(`${path}/${name}`, { ...lease, spec: { ...lease.spec, ...spec } })
      lease = renewed.ok ? renewed.value : undefined
      if (renewed.ok || renewed.error.kind === 'unreachable' || renewed.error.kind === 'late') return
    }
  }
}

/** Whether the API shows anything else than what is to be said, times apart. */
function differs(next: NodeObject['status'] & object, shown: NodeObject['status']): boolean {
  if (shown === undefined || shown.nodeInfo?.bootID !== next.nodeInfo?.bootID) return true
  if (next.volumesInUse !== undefined && JSON.stringify(next.volumesInUse) !== JSON.stringify(shown.volumesInUse ?? [])) return true
  return (next.conditions ?? []).some((condition) => {
    const there = shown.conditions?.find(({ type }) => type === condition.type)
    return there?.status !== condition.status || there.reason !== condition.reason
  })
}

const resources = { cpu: '8', memory: '32Gi', pods: '110' }
