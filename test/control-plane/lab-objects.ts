// What stands in the lab's API server beside the product's own manifests: the policy and the workload. Its two pods with
// volumes stay together wherever they go, so that each story has one victim with both.
import type { KubeObject } from '../../coordinator/api.ts'
import { usualWorld } from '../../sim/world/settings.ts'
import { workload } from '../../sim/world/objects.ts'

export const workNamespace = 'work'

export function policy(changes: object): KubeObject {
  return {
    apiVersion: 'holdfast.dev/v1alpha1', kind: 'HoldfastPolicy', metadata: { name: 'lab' },
    // A machine that dies five times in an hour stays off; here they die for a living.
    spec: { profile: 'fast', nodeDownPodDeletionPolicy: 'DeleteAllPods', brakes: { repeatLimit: 0 }, ...changes },
  } as KubeObject // a kind of ours, written as a person would
}

export function steadyWorkload(): KubeObject[] {
  const objects = workload({ namespace: workNamespace, driver: usualWorld.driver })
  for (const object of objects) {
    if (object.kind !== 'Deployment' || object.metadata.name !== 'web') continue
    const { spec } = (object as KubeObject & { spec: { template: { spec: { affinity?: object } } } }).spec.template // a Deployment has it
    spec.affinity = { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [
      { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'db' } } },
    ] } }
  }
  return objects
}
