// A pod from the template of its owner.
import type { KubeObject } from '../../coordinator/api.ts'
import type { Chance } from '../chance.ts'
import type { PodObject, PodTemplate } from '../objects.ts'

export function podFrom(template: PodTemplate, owner: KubeObject & { kind: string; apiVersion: string }, name: string): PodObject {
  const { metadata: { namespace, name: ownerName, uid = '' } } = owner
  return {
    apiVersion: 'v1', kind: 'Pod',
    metadata: {
      name, labels: { ...template.metadata?.labels }, annotations: { ...template.metadata?.annotations },
      ...(namespace === undefined ? {} : { namespace }),
      ownerReferences: [{ apiVersion: owner.apiVersion, kind: owner.kind, name: ownerName, uid, controller: true }],
    },
    spec: structuredClone(template.spec),
  }
}

export function podsPath(namespace: string | undefined): string {
  return `/api/v1/namespaces/${namespace ?? 'default'}/pods`
}

/** Letters without vowels, as Kubernetes' own random names. */
export function randomSuffix(chance: Chance, length = 5): string {
  return Array.from({ length }, () => chance.pick([...'bcdfghjklmnpqrstvwxz2456789'])).join('')
}
