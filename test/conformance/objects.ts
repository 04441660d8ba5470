// The smallest objects that an API server takes.
import type { World } from './world.ts'
import { expect } from './world.ts'
import type { Answer } from './world.ts'

export function configMap(name: string, data: Record<string, string> = {}) {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data }
}

export function pod(name: string, nodeName?: string, spec: object = {}) {
  return {
    apiVersion: 'v1', kind: 'Pod', metadata: { name, labels: { app: name } },
    spec: { ...(nodeName === undefined ? { schedulerName: 'nobody' } : { nodeName }), containers: [{ name: 'main', image: 'registry.invalid/nothing:1' }], ...spec },
  }
}

export function node(name: string) {
  return { apiVersion: 'v1', kind: 'Node', metadata: { name } }
}

export function buoy(world: World, name: string, spec: object = { colour: 'red' }) {
  return { apiVersion: `${world.group}/v1`, kind: 'Buoy', metadata: { name }, spec }
}

export const maps = (world: World) => `/api/v1/namespaces/${world.namespace}/configmaps`
export const pods = (world: World) => `/api/v1/namespaces/${world.namespace}/pods`
export const leases = (world: World) => `/apis/coordination.k8s.io/v1/namespaces/${world.namespace}/leases`
export const attachments = '/apis/storage.k8s.io/v1/volumeattachments'

/** Makes it, sees to it that it goes again, and hands over its path. */
export async function make(world: World, collection: string, object: { metadata: { name: string }; [field: string]: unknown }): Promise<{ path: string; answer: Answer }> {
  const path = world.made(`${collection}/${object.metadata.name}`)
  return { path, answer: expect(await world.post(collection, object), 201) }
}
