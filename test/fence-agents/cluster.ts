// An API server of few lines, over HTTPS under an authority of its own: objects by their path, resourceVersions, finalizers,
// and what a test's own controller does with them. Whether a real one understands the programs is another tier's question.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Call, Cloud, Reply } from './cloud.ts'
import { inCloud } from './cloud.ts'

export interface ClusterObject {
  kind: string
  metadata: { name: string; uid?: string; resourceVersion?: string; labels?: Record<string, string>; finalizers?: string[]; deletionTimestamp?: string; ownerReferences?: readonly { uid?: string }[] }
  spec?: Record<string, unknown>
  status?: Record<string, unknown>
  [more: string]: unknown
}

export interface Cluster extends Cloud {
  /** By path; what a test's controller writes here bears the next resourceVersion by `touch`. */
  readonly objects: Map<string, ClusterObject>
  touch(object: ClusterObject): void
  /** Parameters that lead a program to it. */
  readonly login: Readonly<Record<string, string>>
}

export interface ClusterSettings {
  /** Collections that it serves. */
  readonly serves: readonly string[]
  readonly objects: Readonly<Record<string, ClusterObject>>
  /** While so, it serves none but the core's kinds, as where an operator was taken away with its definitions. */
  gone?(): boolean
  /** After each write, and before it is answered. */
  written?(path: string, object: ClusterObject, cluster: Pick<Cluster, 'objects' | 'touch'>): void
}

const token = 'hush-token'

export async function inCluster({ serves, objects: given, gone, written }: ClusterSettings, work: (cluster: Cluster) => Promise<void>): Promise<void> {
  const objects = new Map<string, ClusterObject>()
  let version = 0
  const touch = (object: ClusterObject) => {
    version += 1
    object.metadata.resourceVersion = String(version)
  }
  const put = (path: string, object: ClusterObject) => {
    object.metadata.uid ??= `uid-${version + 1}`
    touch(object)
    objects.set(path, object)
  }
  for (const [path, object] of Object.entries(given)) put(path, structuredClone(object))
  const answer = (call: Call): Reply => {
    if (call.headers['authorization'] !== `Bearer ${token}`) return { status: 401, body: { kind: 'Status', reason: 'Unauthorized', message: 'Unauthorized' } }
    const collection = serves.find((one) => call.path === one || call.path.startsWith(`${one}/`))
    if (collection === undefined || (gone?.() === true && !collection.startsWith('/api/'))) return { status: 404, body: '404 page not found\n' }
    if (call.path === collection) return call.method === 'POST' ? create(collection, call) : list(collection, call)
    const object = objects.get(call.path)
    if (object === undefined) return missing(call.path)
    if (call.method === 'GET') return { status: 200, body: object }
    return call.method === 'PUT' ? update(call, object) : remove(call, object)
  }
  const create = (collection: string, { body }: Call): Reply => {
    const object = JSON.parse(body) as ClusterObject // a program of ours wrote it
    const path = `${collection}/${object.metadata.name}`
    if (objects.has(path)) return { status: 409, body: { kind: 'Status', reason: 'AlreadyExists', message: 'already exists' } }
    put(path, object)
    written?.(path, object, { objects, touch })
    return { status: 201, body: object }
  }
  const update = (call: Call, before: ClusterObject): Reply => {
    const object = JSON.parse(call.body) as ClusterObject // a program of ours wrote it
    if (object.metadata.resourceVersion !== before.metadata.resourceVersion) return { status: 409, body: { kind: 'Status', reason: 'Conflict', message: 'the object has been modified' } }
    put(call.path, { ...object, ...(before.status === undefined ? {} : { status: before.status }) })
    written?.(call.path, object, { objects, touch })
    return { status: 200, body: objects.get(call.path) ?? object }
  }
  const remove = (call: Call, object: ClusterObject): Reply => {
    const { preconditions } = JSON.parse(call.body === '' ? '{}' : call.body) as { preconditions?: { uid?: string } } // a program of ours wrote it
    if (preconditions?.uid !== object.metadata.uid) return { status: 409, body: { kind: 'Status', reason: 'Conflict', message: 'the UID in the precondition is another one' } }
    object.metadata.deletionTimestamp = '2026-01-01T00:00:00Z'
    touch(object)
    written?.(call.path, object, { objects, touch })
    if ((object.metadata.finalizers ?? []).length === 0) objects.delete(call.path)
    return { status: 200, body: object }
  }
  const list = (collection: string, { query }: Call): Reply => {
    const wanted = (query.get('labelSelector') ?? '').split(',').filter((word) => word !== '').map((word) => word.split('='))
    const items = [...objects].filter(([path, { metadata }]) => path.startsWith(`${collection}/`) && wanted.every(([key = '', value]) => metadata.labels?.[key] === value)).map(([, object]) => object)
    return { status: 200, body: { kind: 'List', items } }
  }
  await inCloud({ names: ['kubernetes.default.svc'], answer, complaint: (status) => ({ status, body: { kind: 'Status', message: 'try later' } }) }, async (cloud) => {
    writeFileSync(join(cloud.place.folder, 'token'), `${token}\n`)
    writeFileSync(join(cloud.place.folder, 'wrong-token'), 'guess-token\n')
    await work({ ...cloud, objects, touch, login: { server: cloud.url, ca: cloud.ca, token_file: join(cloud.place.folder, 'token') } })
  })
}

function missing(path: string): Reply {
  return { status: 404, body: { kind: 'Status', reason: 'NotFound', message: 'not found', details: { name: path.split('/').at(-1) } } }
}
