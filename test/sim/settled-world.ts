// A world in which the workload runs, and short words for what stands in its API server.
import type { KubeObject } from '../../coordinator/api.ts'
import type { AttachmentObject, NodeObject, PodObject, StoredTaint } from '../../sim/objects.ts'
import { createWorld, type World, type WorldSettings } from '../../sim/world.ts'

export const minute = 60_000

export async function settledWorld(seed: number | string, wanted: Partial<WorldSettings> = {}) {
  const world = await createWorld({ seed, ...wanted })
  await world.turn().runFor(minute / 2)
  return { world, ...words(world) }
}

function words(world: World) {
  // What the in-memory server keeps has the shapes of Kubernetes.
  const peek = <T extends KubeObject>(collection: string) => (world.server?.peek(collection) ?? []) as T[]
  const pods = () => peek<PodObject>('pods')
  const node = (name: string) => peek<NodeObject>('nodes').find(({ metadata }) => metadata.name === name) as NodeObject
  const podOf = (app: string) => pods().find(({ metadata }) => metadata.labels?.['app'] === app && metadata.deletionTimestamp === undefined)
  return {
    peek, pods, node, podOf, ready,
    nodeOf: (app: string) => podOf(app)?.spec.nodeName ?? '',
    attachments: () => peek<AttachmentObject>('volumeattachments.storage.k8s.io'),
    taints: (name: string) => (node(name).spec?.taints ?? []).map(({ key, effect }) => `${key.split('/')[1]}:${effect}`),
    taint: (name: string, ...taints: StoredTaint[]) => world.api.patch(`/api/v1/nodes/${name}`, 'merge', { spec: { taints } }),
    remove: (pod: PodObject, grace?: number) => world.api.remove(pathOf(pod), grace === undefined ? {} : { gracePeriodSeconds: grace }),
    patchStatus: (pod: PodObject, status: object) => world.api.patch(`${pathOf(pod)}/status`, 'strategic', { status }),
    when: (holds: () => boolean, limit: number) => world.turn().runWhen(holds, limit),
    pass: (span: number) => world.turn().runFor(span),
  }
}

function ready(object: NodeObject | PodObject | undefined): string | undefined {
  return object?.status?.conditions?.find(({ type }) => type === 'Ready')?.status
}

function pathOf({ metadata: { namespace, name } }: KubeObject): string {
  return `/api/v1/namespaces/${namespace}/pods/${name}`
}
