// A cluster as the CLI reads it: two nodes that are well, and what a test changes of it.
import type { Cluster, Part } from '../../cli/cluster.ts'
import { guardNames } from '../../cli/guards.ts'
import type { KeptNode } from '../../coordinator/kubernetes.ts'
import { policy, record } from '../core/world.ts'

export function part<T>(value: T): Part<T> {
  return { ok: true, value }
}

export function refused(because = 'no rights'): { readonly ok: false; readonly because: string; readonly kind: 'forbidden' } {
  return { ok: false, because: `GET /some/path: ${because}`, kind: 'forbidden' }
}

export function kept(name: string, changes: Partial<KeptNode> = {}): KeptNode {
  return {
    metadata: { name, uid: `uid-${name}`, labels: {} }, taints: [], inUse: [], address: '10.0.0.1', kubeletPort: 10_250, bootId: 'boot-1', machine: `machine-of-${name}`,
    ready: { status: 'True', heartbeat: '' }, ...changes,
  }
}

export function cluster(changes: Partial<Cluster> = {}): Cluster {
  const names = ['node-1', 'node-2']
  return {
    version: part('v1.36.4'), kinds: part(['holdfastpolicies', 'nodefences', 'noderecords', 'noderemedies']), nodes: part(names.map((name) => kept(name))), incidents: part([]), unreadable: [],
    records: part(new Map(names.map((name) => [name, record({ nodeUid: `uid-${name}` })]))), policies: part([{ name: 'all', policy, faults: '' }]), remedies: part([]),
    lease: part({ holder: 'replica-0', term: 3, renewTime: 'then' }), pause: part(undefined), fenceMaps: part([]),
    agents: part(names.map((node) => ({ name: `holdfast-agents/agent-${node}`, node, ready: true }))),
    daemonSets: part([{ name: 'csi/node', csi: true, critical: true, passes: true, tolerations: [{ operator: 'Exists' }] }]), staticPods: part([]), longhorn: part(undefined), storks: part([]), guards: part(guardNames), denying: part(guardNames), gaveUp: part([]), ...changes,
  }
}
