// The node that a story with the whole product begins with: its paths audited, work with volumes on it so that there is something
// to clear, and the others free to take that.
import type { KubeObject } from '../../coordinator/api.ts'
import type { Cluster } from './cluster.ts'
import { until } from './rack.ts'

interface Pod extends KubeObject { spec: { nodeName?: string } }
interface Attachment extends KubeObject { spec: { nodeName: string } }

/** For whatever a story waits for: a machine boots in software, and others do beside it. */
export const patience = 240_000

/** Nodes that are there before their kubelets are, as a cloud's controller or an operator has written them. */
export function nodeOf(name: string, spec: { readonly unschedulable?: true; readonly providerID?: string }): KubeObject {
  return { apiVersion: 'v1', kind: 'Node', metadata: { name }, spec } as KubeObject // a kind whose spec KubeObject does not name
}

/** Cordoned before their kubelets register them, so that the work begins elsewhere. */
export function cordoned(names: readonly string[]): KubeObject[] {
  return names.map((name) => nodeOf(name, { unschedulable: true }))
}

export async function uncordon({ world }: Cluster, names: readonly string[]): Promise<void> {
  for (const name of names) await world.api.patch(`/api/v1/nodes/${name}`, 'merge', { spec: { unschedulable: null } })
}

export async function audited(cluster: Cluster, nodes: readonly string[]): Promise<void> {
  await until('every path to be audited', () => nodes.every((node) => {
    const record = cluster.records().get(node)
    return record !== undefined && record.paths.length > 0 && record.paths.every(({ state }) => state === 'verified') && record.probe?.answered === true
  }), patience)
}

export async function volumesOn(cluster: Cluster, node: string): Promise<void> {
  await until(`a volume on ${node}`, () => attachments(cluster, node).length > 0, patience)
}

/** What a clear must free: volumes and pods, by their names. */
export function held(cluster: Cluster, node: string): readonly string[] {
  const pods = cluster.objects<Pod>('pods').filter(({ metadata, spec }) => spec.nodeName === node && metadata.namespace === 'work')
  return [...attachments(cluster, node), ...pods].map(({ metadata }) => metadata.name)
}

function attachments(cluster: Cluster, node: string): readonly Attachment[] {
  return cluster.objects<Attachment>('volumeattachments.storage.k8s.io').filter(({ spec }) => spec.nodeName === node)
}
