// The API server of the cluster as a process of its own: it holds the objects, speaks HTTPS, posts each Node's status at the pace
// of real kubelets, and counts what each replica asks. Leases of nodes stand still: nobody watches them, and only those of
// silent nodes are read.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process, { argv } from 'node:process'
import { createApi, type KubeObject } from '../../../coordinator/api.ts'
import { audience } from '../../../coordinator/beats-review.ts'
import type { ApiRequest } from '../../../coordinator/transport.ts'
import { outOfServiceKey } from '../../../core/clear.ts'
import { machineClock } from '../../../edge/clock.ts'
import { serve } from '../../../sim/api-server/https-server.ts'
import { admin, createApiServer, nodeUser, type ApiServer, type User } from '../../../sim/api-server/server.ts'
import { timestamp, type NodeObject } from '../../../sim/objects.ts'
import {
  agentAccount, agentPodName, agents, attachmentName, belongings, bootOf, clusterOf, fencePathsOf, foundations, kept, nodeObject, pastIncident, record, replicaAccount, replicaPod, replicas, system, uuid,
  type Member,
} from './objects.ts'
import type { Agent } from './crowd.ts'

/** What the cluster's process is told. */
export type ClusterWord =
  | { readonly do: 'begin' }
  | { readonly do: 'end' }
  /** The power of these is back: their kubelets post the status of another boot. */
  | { readonly do: 'boot'; readonly nodes: readonly string[] }

export interface ClusterTold {
  readonly url: string
  readonly ca: string
  readonly authority: string
  readonly nodes: readonly string[]
  /** For the API server and for other replicas, of each replica. */
  readonly tokens: readonly { readonly api: string; readonly links: string }[]
  readonly pods: number
  readonly nodeBytes: number
}

/** Of each replica, by verb and resource. */
export type Counted = readonly Readonly<Record<string, number>>[]

export const ownLease = 'own Lease'
const statusEvery = 300_000
const detachEvery = 500
const tokenSeconds = 14_400

if (import.meta.main) {
  const [, , folder = '', nodes = '', doomed = ''] = argv
  await run(folder, Number(nodes), doomed.split(',').map(Number))
}

async function run(folder: string, nodes: number, doomed: readonly number[]): Promise<void> {
  const clock = machineClock
  const server = createApiServer({ clock, chance: Math.random })
  const cluster = clusterOf(nodes, doomed, join(folder, 'devices'), clock.wall())
  const { members } = cluster
  for (const object of foundations(cluster)) server.plant(object)
  const uids = populate(server, cluster)
  const counted = Array.from({ length: replicas }, () => new Map<string, number>())
  const users = counted.map((_, index): User => ({ name: `system:serviceaccount:${system}:${replicaAccount}`, groups: ['system:serviceaccounts', 'system:authenticated'], extra: { replica: [String(index)] } }))
  const tokens = await Promise.all(users.map(async (_, index) => ({ api: `replica-${index}`, links: await issue(server, system, replicaAccount, replicaPod(index).metadata.name) })))
  const handed: Agent[] = []
  for (const member of members) handed.push({ node: member.node, boot: bootOf(member), machine: member.machine, token: await issue(server, agents, agentAccount, agentPodName(member.node)) })
  writeFileSync(join(folder, 'agents.json'), JSON.stringify(handed), { mode: 0o600 })
  const served = await serve(counting(server, counted), { wall: clock.wall(), tokens: Object.fromEntries(users.map((user, index) => [`replica-${index}`, user])) })
  const silent = new Set<string>()
  postStatuses(server, members, silent, new Set(doomed.map((index) => members[index]?.node ?? '')))
  const told: ClusterTold = {
    url: served.url, ca: served.ca, authority: cluster.authority.certificate, nodes: members.map(({ node }) => node), tokens,
    pods: server.peek('pods').length, nodeBytes: JSON.stringify(server.peek('nodes')[0]).length,
  }
  process.on('message', (word: ClusterWord) => {
    if (word.do === 'begin') for (const one of counted) one.clear()
    else if (word.do === 'end') process.send?.(counted.map((one) => Object.fromEntries(one)) satisfies Counted)
    else for (const node of word.nodes) void reboot(server, node)
  })
  if (uids.size !== nodes) throw new Error(`${uids.size} nodes of ${nodes}`)
  process.send?.(told)
}

function populate(server: ApiServer, cluster: ReturnType<typeof clusterOf>): ReadonlyMap<string, string> {
  const wall = machineClock.wall()
  const pathOf = fencePathsOf(cluster)
  const uids = new Map<string, string>()
  for (const [index, member] of cluster.members.entries()) {
    const { uid = '' } = server.plant(nodeObject(member, wall)).metadata
    uids.set(member.node, uid)
    for (const object of belongings(member, uid, wall)) server.plant(object)
    const path = pathOf(member.node)
    server.plant(record(member, uid, path, wall))
    if (index % Math.ceil(cluster.members.length / kept) === 0) server.plant(pastIncident(member, uid, path, wall))
    writeFileSync(join(cluster.devices, `${member.node}.json`), JSON.stringify({ power: 'on', machine: member.machine }))
  }
  return uids
}

async function issue(server: ApiServer, namespace: string, account: string, pod: string): Promise<string> {
  const api = createApi({ transport: server.transportFor(admin), clock: machineClock })
  const bound = await api.get<KubeObject>(`/api/v1/namespaces/${namespace}/pods/${pod}`)
  if (!bound.ok) throw new Error(bound.error.message)
  const made = await api.create<{ status: { token: string } }>(`/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`, {
    apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata: {},
    spec: { audiences: [audience], expirationSeconds: tokenSeconds, boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: pod, uid: bound.value.metadata.uid } },
  })
  if (!made.ok) throw new Error(made.error.message)
  return made.value.status.token
}

function counting(server: ApiServer, counted: readonly Map<string, number>[]): ApiServer {
  return {
    ...server,
    handle(request, user, signal) {
      const counts = counted[Number(user.extra?.['replica']?.[0])]
      const key = keyOf(request)
      counts?.set(key, (counts.get(key) ?? 0) + 1)
      return server.handle(request, user, signal)
    },
  }
}

/** `list pods`, `update nodefences/status`. */
function keyOf({ method, path }: ApiRequest): string {
  const [where = '', query = ''] = path.split('?')
  const parts = where.split('/').slice(where.startsWith('/api/') ? 3 : 4)
  const [resource = '', name, sub] = parts[0] === 'namespaces' && parts.length > 2 ? parts.slice(2) : parts
  if (resource === 'leases' && name === replicaAccount) return ownLease
  const reads = new URLSearchParams(query).has('watch') ? 'watch' : name === undefined ? 'list' : 'get'
  const verb = { GET: reads, POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' }[method]
  return `${verb} ${resource}${sub === undefined ? '' : `/${sub}`}`
}

/** Each node's at its own phase of the five minutes. Those that are to fall silent never post: theirs would have to stop at a
 *  moment that this process does not know. */
function postStatuses(server: ApiServer, members: readonly Member[], freed: Set<string>, doomed: ReadonlySet<string>): void {
  let next = 0
  setInterval(() => {
    const { node = '' } = members[next % members.length] ?? {}
    next += 1
    if (!doomed.has(node)) void heartbeat(server, node)
  }, statusEvery / members.length)
  // In the place of the attach/detach controller, which lets go of the volumes of a node that is out of service.
  setInterval(() => {
    for (const name of doomed) {
      if (freed.has(name)) continue
      const node = server.peek('nodes').find(({ metadata }) => metadata.name === name) as NodeObject | undefined // what it keeps there are Nodes
      if (node?.spec?.taints?.some(({ key }) => key === outOfServiceKey) !== true) continue
      freed.add(name)
      void ask(server, 'DELETE', `/apis/storage.k8s.io/v1/volumeattachments/${attachmentName(name)}`, undefined, admin)
    }
  }, detachEvery)
}

async function heartbeat(server: ApiServer, node: string): Promise<void> {
  const at = timestamp(machineClock.wall())
  await ask(server, 'PATCH', `/api/v1/nodes/${node}/status`, { status: { conditions: ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'].map((type) => ({ type, lastHeartbeatTime: at })) } }, nodeUser(node))
}

async function reboot(server: ApiServer, node: string): Promise<void> {
  await ask(server, 'PATCH', `/api/v1/nodes/${node}/status`, { status: { nodeInfo: { bootID: nextBootId(node) }, volumesInUse: [] } }, nodeUser(node))
  await heartbeat(server, node)
}

export function nextBootId(node: string): string {
  return uuid(`next boot of ${node}`)
}

async function ask(server: ApiServer, method: ApiRequest['method'], path: string, body: object | undefined, user: User): Promise<void> {
  const headers = method === 'PATCH' ? { 'content-type': 'application/strategic-merge-patch+json' } : {}
  const answer = await server.handle({ method, path, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }, user, new AbortController().signal)
  if (answer.status >= 300) console.error(`${method} ${path}: ${answer.status}`)
}
