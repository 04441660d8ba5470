// What the CLI knows of a cluster: read from the API server once, part by part. A part that may not be read, or is not there,
// is a part with a reason, so that a person with few rights still sees the rest.
import type { Api, ApiError, KubeObject } from '../coordinator/api.ts'
import { readAuditTurn, type AuditTurn } from '../coordinator/audit-turns.ts'
import { readDrillTurns, type DrillTurnEnd } from '../coordinator/drill-turns.ts'
import { isFenceConfigMap, textData, type FenceConfigMap } from '../coordinator/fence-config.ts'
import { keptName } from '../coordinator/fence-kept.ts'
import type { Lease } from '../coordinator/lease.ts'
import { keepNode, paths, type KeptNode } from '../coordinator/kubernetes.ts'
import { fencesPath, readIncident } from '../coordinator/node-fence.ts'
import { readRecord, recordsPath } from '../coordinator/node-record.ts'
import { readRemedy, remediesPath } from '../coordinator/node-remedy.ts'
import { policiesPath, policyInForce, readPolicy } from '../coordinator/holdfast-policy.ts'
import { readPause } from '../coordinator/policies.ts'
import { apiVersion } from '../coordinator/schema-kind.ts'
import { showFaults } from '../coordinator/schema.ts'
import { tolerateGate } from '../core/gate.ts'
import type { Incident } from '../core/incident.ts'
import type { NodeRecord } from '../core/model.ts'
import type { Pause, Policy } from '../core/policy.ts'
import type { Clock } from '../edge/clock.ts'
import { gaveUpReason } from '../coordinator/self-stop.ts'
import { bindingsPath, denyingOf, guardOf, guardsPath } from './guards.ts'

export type Part<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly because: string; readonly kind: ApiError['kind'] }

export interface Cluster extends Parts {
  /** Of the incidents: those that this version cannot read, and on whose nodes nothing is done. */
  readonly unreadable: readonly UnreadableFence[]
}

export interface Parts {
  readonly version: Part<string>
  /** Plural names of our kinds that the server serves. */
  readonly kinds: Part<readonly string[]>
  readonly nodes: Part<readonly KeptNode[]>
  readonly incidents: Part<readonly Incident[]>
  readonly records: Part<ReadonlyMap<string, NodeRecord>>
  readonly policies: Part<readonly PolicySeen[]>
  readonly remedies: Part<readonly RemedySeen[]>
  readonly lease: Part<LeaseSeen>
  readonly pause: Part<Pause | undefined>
  /** Those of fence paths, and what the leader keeps of them. */
  readonly fenceMaps: Part<readonly FenceConfigMap[]>
  readonly agents: Part<readonly AgentPod[]>
  readonly daemonSets: Part<readonly DaemonSet[]>
  /** Those of the control plane, as kubeadm and RKE2 label them. */
  readonly staticPods: Part<readonly StaticPod[]>
  /** Longhorn's `node-down-pod-deletion-policy`; undefined: there is no Longhorn. */
  readonly longhorn: Part<string | undefined>
  /** Deployments in which Stork watches over nodes and pods. */
  readonly storks: Part<readonly string[]>
  /** Admission policies that bear our label, and those that a binding has deny. */
  readonly guards: Part<readonly string[]>
  readonly denying: Part<readonly string[]>
  /** Nodes of which Events say that they stopped their workloads by themselves: an API server keeps them for an hour, unless it is told otherwise. */
  readonly gaveUp: Part<readonly string[]>
}

export const partNames = ['version', 'kinds', 'nodes', 'incidents', 'records', 'policies', 'remedies', 'lease', 'pause', 'fenceMaps', 'agents', 'daemonSets', 'staticPods', 'longhorn', 'storks', 'guards', 'denying', 'gaveUp'] as const satisfies readonly (keyof Parts)[]

export interface UnreadableFence {
  readonly name: string
  readonly node: string
  readonly faults: string
}

export interface PolicySeen {
  readonly name: string
  /** In force: of the present text, or of the last good one while that has faults. */
  readonly policy?: Policy
  /** Of the present text. */
  readonly faults: string
}

export interface RemedySeen {
  readonly name: string
  /** While it has any it is not in force. */
  readonly faults: string
}

export interface LeaseSeen {
  readonly holder: string
  readonly term: number
  readonly renewTime: string
  /** The latest turn of the audit that came to its end. */
  readonly turn?: AuditTurn
  /** Of each policy that asks for drills, what came of its latest hour. */
  readonly drills?: readonly DrillTurnEnd[]
}

/** How the agents were told to keep their gates. */
export interface GateWanted {
  readonly on: boolean
  readonly exemptNamespaces: readonly string[]
  /** Shut from the first second of a boot, by the program in the runtime's own folder. */
  readonly fromBoot: boolean
}

export interface StaticPod {
  readonly name: string
  readonly passes: boolean
}

export interface AgentPod {
  readonly name: string
  readonly node: string
  readonly ready: boolean
}

export interface DaemonSet {
  readonly name: string
  readonly csi: boolean
  /** Its pods are of a node's own: they start before anything else there. */
  readonly critical: boolean
  /** Whether its pods are annotated to pass a gate that is shut. */
  readonly passes: boolean
  /** Of our agents. */
  readonly gate?: GateWanted
  readonly tolerations: readonly { readonly key?: string; readonly operator?: string; readonly value?: string; readonly effect?: string }[]
}

/** As deploy/agent.ts names them: the agents, and what puts the gate's own program onto a node. */
const agentSet = 'holdfast-agent'
const bootGate = 'boot-gate'
const pageSize = 500
/** Five thousand nodes are ten pages. */
const mostPages = 60

export async function readCluster(api: Api, namespace: string): Promise<Cluster> {
  const [version, kinds, nodes, incidents, records, policies, remedies, lease, pause, fenceMaps, agents, daemonSets, staticPods, settings, deployments, guards, denying, gaveUp] = await Promise.all([
    one(api, '/version', (found: { gitVersion?: string }) => found.gitVersion ?? ''),
    one(api, `/apis/${apiVersion}`, (found: { resources?: { name: string }[] }) => (found.resources ?? []).map(({ name }) => name).filter((name) => !name.includes('/'))),
    all(api, paths.nodes, keepNode),
    all(api, fencesPath, incidentOf),
    all(api, recordsPath, recordOf),
    all(api, policiesPath, policySeen),
    all(api, remediesPath, remedySeen),
    one(api, leasePath(namespace), leaseOf),
    pauseOf(api, namespace),
    all(api, paths.configMaps(namespace), fenceMapOf),
    all(api, '/api/v1/pods?labelSelector=app.kubernetes.io%2Fname%3Dholdfast-agent', agentOf),
    all(api, '/apis/apps/v1/daemonsets', daemonSetOf),
    all(api, '/api/v1/namespaces/kube-system/pods?labelSelector=tier%3Dcontrol-plane', staticPodOf),
    all(api, '/apis/longhorn.io/v1beta2/settings', longhornPolicyOf),
    all(api, '/apis/apps/v1/deployments', storkOf),
    all(api, guardsPath, guardOf),
    all(api, bindingsPath, denyingOf),
    all(api, `/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=reason%3D${gaveUpReason}`, regardedNode),
  ])
  return {
    version, kinds, nodes: defined(nodes), policies: defined(policies), remedies: defined(remedies), lease, pause, fenceMaps: defined(fenceMaps), agents: defined(agents), daemonSets: defined(daemonSets), staticPods: defined(staticPods), storks: defined(deployments), guards: orNone(guards), denying: orNone(defined(denying)), gaveUp: defined(gaveUp),
    longhorn: settings.ok ? { ok: true, value: settings.value.find((policy) => policy !== undefined) } : settings.kind === 'notFound' ? { ok: true, value: undefined } : settings,
    incidents: incidents.ok ? { ok: true, value: incidents.value.flatMap((read) => ('incident' in read ? read.incident : [])) } : incidents,
    unreadable: incidents.ok ? incidents.value.flatMap((read) => ('incident' in read ? [] : read)) : [],
    records: records.ok ? { ok: true, value: new Map(records.value.filter((record) => record !== undefined)) } : records,
  }
}

/** Whether the Lease moves: read again until it does, at most for the span. Its times are another machine's and prove nothing. */
export async function leaseMoves(api: Api, clock: Clock, namespace: string, first: LeaseSeen, within: number): Promise<boolean> {
  for (const until = clock.now() + within; clock.now() < until;) {
    await clock.wait(250)
    const again = await one(api, leasePath(namespace), leaseOf)
    if (again.ok && again.value.renewTime !== first.renewTime) return true
  }
  return false
}

function leasePath(namespace: string): string {
  return `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/holdfast-coordinator`
}

async function one<Found, T>(api: Api, path: string, read: (found: Found) => T): Promise<Part<T>> {
  const answer = await api.get<Found>(path)
  return answer.ok ? { ok: true, value: read(answer.value) } : part(answer.error)
}

async function all<T>(api: Api, path: string, read: (object: KubeObject) => T): Promise<Part<readonly T[]>> {
  const items: T[] = []
  let next = ''
  for (let page = 0; page < mostPages; page += 1) {
    const answer = await api.get<{ metadata: { continue?: string }; items: KubeObject[] }>(`${path}${path.includes('?') ? '&' : '?'}limit=${pageSize}${next}`)
    if (!answer.ok) return part(answer.error)
    items.push(...answer.value.items.map(read))
    if (!answer.value.metadata.continue) return { ok: true, value: items }
    next = `&continue=${encodeURIComponent(answer.value.metadata.continue)}`
  }
  return { ok: false, because: `${path} has more than ${mostPages * pageSize} objects`, kind: 'refused' }
}

function part<T>(error: ApiError): Part<T> {
  return { ok: false, because: error.message, kind: error.kind }
}

/** An API server that does not know the kind has none of them. */
function orNone<T>(read: Part<readonly T[]>): Part<readonly T[]> {
  return read.ok || read.kind !== 'notFound' ? read : { ok: true, value: [] }
}

/** What cannot be read at all is another version's; it is left out of what is shown. */
function defined<T>(read: Part<readonly (T | undefined)[]>): Part<readonly T[]> {
  return read.ok ? { ok: true, value: read.value.filter((item) => item !== undefined) } : read
}

function regardedNode(object: KubeObject): string | undefined {
  const { regarding } = object as KubeObject & { regarding?: { kind?: string; name?: string } } // the path names the kind
  return regarding?.kind === 'Node' ? regarding.name : undefined
}

function incidentOf(object: KubeObject): { readonly incident: Incident } | UnreadableFence {
  const read = readIncident(object)
  if (read.ok) return { incident: read.incident }
  const { metadata: { name }, spec } = object as KubeObject & { spec?: { nodeName?: unknown } } // it may hold anything
  return { name, node: typeof spec?.nodeName === 'string' ? spec.nodeName : 'a node that it does not name', faults: showFaults(read.faults) }
}

function recordOf(object: KubeObject): readonly [string, NodeRecord] | undefined {
  const read = readRecord(object)
  return read.ok ? [object.metadata.name, read.record] : undefined
}

function policySeen(object: KubeObject): PolicySeen {
  const read = readPolicy(object)
  const policy = read.ok ? read.policy : policyInForce(object)
  return { name: object.metadata.name, faults: read.ok ? '' : showFaults(read.faults), ...(policy === undefined ? {} : { policy }) }
}

function remedySeen(object: KubeObject): RemedySeen {
  const read = readRemedy(object)
  return { name: object.metadata.name, faults: read.ok ? '' : showFaults(read.faults) }
}

function leaseOf({ metadata, spec = {} }: Lease): LeaseSeen {
  const turn = readAuditTurn(metadata.annotations)
  const drills = readDrillTurns(metadata.annotations)
  return { holder: spec.holderIdentity ?? '', term: spec.leaseTransitions ?? 0, renewTime: spec.renewTime ?? '', ...(turn === undefined ? {} : { turn }), ...(drills.length === 0 ? {} : { drills }) }
}

async function pauseOf(api: Api, namespace: string): Promise<Cluster['pause']> {
  const answer = await api.get<KubeObject>(`${paths.configMaps(namespace)}/holdfast-pause`)
  if (answer.ok) return { ok: true, value: readPause(answer.value) }
  return answer.error.kind === 'notFound' ? { ok: true, value: undefined } : part(answer.error)
}

function fenceMapOf(object: KubeObject): FenceConfigMap | undefined {
  const { name } = object.metadata
  return isFenceConfigMap(name) || name === keptName ? { name, data: textData(object) } : undefined
}

interface PodObject extends KubeObject {
  spec?: { nodeName?: string }
  status?: { conditions?: { type: string; status: string }[] }
}

function agentOf(object: KubeObject): AgentPod {
  const { metadata, spec, status } = object as PodObject // every field of it is optional here
  return {
    name: `${metadata.namespace ?? ''}/${metadata.name}`, node: spec?.nodeName ?? '',
    ready: status?.conditions?.some(({ type, status: word }) => type === 'Ready' && word === 'True') === true,
  }
}

interface ContainerObject { name?: string; image?: string; env?: { name: string; value?: string }[] }

interface DaemonSetObject extends KubeObject {
  spec?: { template?: {
    metadata?: { annotations?: Record<string, string> }
    spec?: { containers?: ContainerObject[]; initContainers?: ContainerObject[]; tolerations?: DaemonSet['tolerations']; priorityClassName?: string }
  } }
}

/** The node half of a CSI driver is told by the registrar beside it, which every one of them has. */
function daemonSetOf(object: KubeObject): DaemonSet {
  const { metadata, spec } = object as DaemonSetObject // every field of it is optional here
  const { containers = [], initContainers = [], tolerations = [], priorityClassName } = spec?.template?.spec ?? {}
  const { env } = containers.find(({ name }) => metadata.name === agentSet && name === 'agent') ?? {}
  return {
    name: `${metadata.namespace ?? ''}/${metadata.name}`, tolerations,
    critical: priorityClassName === 'system-node-critical', passes: spec?.template?.metadata?.annotations?.[tolerateGate] === 'true',
    ...(env === undefined ? {} : { gate: gateOf(env, initContainers) }),
    csi: containers.some(({ name = '', image = '' }) => `${name} ${image}`.includes('node-driver-registrar') || name === 'driver-registrar'),
  }
}

function gateOf(env: NonNullable<ContainerObject['env']>, first: readonly ContainerObject[]): GateWanted {
  const value = (name: string): string => env.find((variable) => variable.name === name)?.value ?? ''
  return { on: value('HOLDFAST_GATE') === 'on', exemptNamespaces: value('HOLDFAST_GATE_EXEMPT_NAMESPACES').split(',').filter((name) => name !== ''), fromBoot: first.some(({ name }) => name === bootGate) }
}

/** Kubelet shows each by a mirror of it, with its annotations. */
function staticPodOf({ metadata: { name, annotations = {} } }: KubeObject): StaticPod | undefined {
  return annotations['kubernetes.io/config.mirror'] === undefined ? undefined : { name: `kube-system/${name}`, passes: annotations[tolerateGate] === 'true' }
}

/** Longhorn frees pods of a node that is down by itself, where this setting of it says so. */
function longhornPolicyOf(object: KubeObject): string | undefined {
  const { metadata, value } = object as KubeObject & { value?: unknown } // a kind of Longhorn's
  return metadata.name === 'node-down-pod-deletion-policy' && typeof value === 'string' ? value : undefined
}

interface DeploymentObject extends KubeObject {
  spec?: { template?: { spec?: { containers?: { command?: string[]; args?: string[] }[] } } }
}

/** Its health monitor is on unless it is switched off by a flag. */
function storkOf(object: KubeObject): string | undefined {
  const { metadata, spec } = object as DeploymentObject // every field of it is optional here
  const watches = (spec?.template?.spec?.containers ?? []).some(({ command = [], args = [] }) => /(^|\/)stork$/.test(command[0] ?? '') && ![...command, ...args].some((word) => /^--?health-monitor=(false|f|0)$/i.test(word)))
  return watches ? `${metadata.namespace ?? ''}/${metadata.name}` : undefined
}
