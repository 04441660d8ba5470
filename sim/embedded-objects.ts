// What stands in the embedded world's API server from the beginning: our kinds, one policy, and a workload whose volumes begin on
// one node, so that there is something to lose.
import type { Api, KubeObject } from '../coordinator/api.ts'
import type { Policy } from '../core/policy.ts'
import { customResourceDefinitions } from '../deploy/crd.ts'
import type { Clock } from '../edge/clock.ts'
import { apply, workload } from './world/objects.ts'

export const systemNamespace = 'holdfast-system'
export const workNamespace = 'work'
export const driver = 'csi.holdfast.dev'

export function embeddedObjects(profile: Policy['profile'], nodes: readonly string[], home: string): KubeObject[] {
  const policy = {
    apiVersion: 'holdfast.dev/v1alpha1', kind: 'HoldfastPolicy', metadata: { name: 'usual' },
    spec: { profile, nodeDownPodDeletionPolicy: 'DeleteAllPods' },
  }
  // Cordoned before their kubelets ever registered them, so that what has volumes begins on the one node that is not.
  const elsewhere = nodes.filter((node) => node !== home).map((name) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name }, spec: { unschedulable: true } }))
  return [
    ...customResourceDefinitions(), policy, ...elsewhere, ...workload({ namespace: workNamespace, driver }).filter(({ metadata }) => metadata.name !== stateless),
  ] as KubeObject[] // kinds of many shapes, written as a person would
}

const stateless = 'plain'
const seenWithin = 300

/** Once the pods with volumes have their node: the other nodes are uncordoned, and a Deployment without volumes is spread. */
export async function settle(api: Api, clock: Clock, nodes: readonly string[], home: string): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    const answer = await api.get<{ items: { spec: { nodeName?: string } }[] }>(`/api/v1/namespaces/${workNamespace}/pods`)
    const bound = answer.ok ? answer.value.items.filter(({ spec }) => spec.nodeName === home).length : 0
    if (bound >= 2) break
    if (tries >= 200) throw new Error(`the pods with volumes were not bound to ${home}`)
    await clock.wait(50)
  }
  for (const node of nodes.filter((name) => name !== home)) {
    const freed = await api.patch(`/api/v1/nodes/${node}`, 'merge', { spec: { unschedulable: null } })
    if (!freed.ok) throw new Error(`${node} cannot be uncordoned: ${freed.error.message}`)
  }
  // The scheduler must have seen it, or it would put everything on the one node that it knows.
  await clock.wait(seenWithin)
  const plain = workload({ namespace: workNamespace, driver }).find(({ metadata }) => metadata.name === stateless) as (KubeObject & { spec: { replicas: number } }) | undefined // a Deployment has it
  if (plain === undefined) return
  plain.spec.replicas = nodes.length
  await apply(api, [plain], (span) => clock.wait(span))
}
