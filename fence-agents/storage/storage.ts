#!/usr/bin/env node
// A node cut off from its storage by the storage itself: a NetworkFence of csi-addons for the node's addresses. The driver
// writes into its status what came of it, and says nothing of which wish it answers. So a wish is never turned back in the same
// object: each fence is an object of its own, whose *Succeeded* can be of nothing else. To delete an object that fences lifts
// nothing, the storage goes on refusing; it is told to lift first. The machine goes on running: this is isolation, never power.
import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import { Failure, pollUntil, runAgent, type AgentDescription, type DeviceWord, type Given } from '../contract.ts'
import { excerpt, fieldsOf, itemsOf, textOf, type Fields } from '../https.ts'
import { checkCluster, clusterParameters, overCluster, type Cluster } from '../kubernetes.ts'

export const agent: AgentDescription = {
  name: 'storage',
  says: 'Cuts a node off from its storage by a NetworkFence of csi-addons, as Ceph by Rook has it. The machine goes on running.',
  vendor: 'https://github.com/csi-addons/kubernetes-csi-addons',
  parameters: [
    { name: 'plug', says: 'The node, by its name', type: 'string', required: true, obsoletes: 'port', short: 'n' },
    { name: 'cidrs', says: 'Its addresses as the storage sees them, with blanks between them: 10.0.0.7 or 10.0.0.7/32', type: 'string', required: true },
    { name: 'class', says: 'The NetworkFenceClass', type: 'string', required: true },
    ...clusterParameters,
    { name: 'power_timeout', says: 'From the order until the driver must have carried it out', type: 'second', default: '60' },
    { name: 'stonith_status_sleep', says: 'Between two looks after the order', type: 'second', default: '1' },
  ],
  check(given) {
    checkCluster(given)
    wishOf(given)
  },
  status: (given) => overCluster(given, (cluster) => status(cluster, wishOf(given))),
  off: (given) => overCluster(given, (cluster) => fence(cluster, given)),
  on: (given) => overCluster(given, (cluster) => lift(cluster, given)),
}

const fences = '/apis/csiaddons.openshift.io/v1alpha1/networkfences'
const ofNode = 'holdfast.dev/fenced-node'

/** What the driver writes with *Succeeded*; the second has the first inside, so they are compared whole. */
const fencedMessage = 'fencing operation successful'
const liftedMessage = 'unfencing operation successful'

interface Wish {
  readonly node: string
  readonly cidrs: readonly string[]
  readonly className: string
  readonly object: string
  readonly labels: Readonly<Record<string, string>>
}

/** The object bears the addresses in its name: a node that comes back with others gets a fence of its own. */
function wishOf(given: Given): Wish {
  const [node, className] = [given.text('plug'), given.text('class')]
  if (!/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(node)) throw new Failure('config', 'plug= is not the name of a node')
  if (!/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(className)) throw new Failure('config', 'class= is not the name of a NetworkFenceClass')
  const cidrs = [...new Set(given.text('cidrs').split(/\s+/).filter((word) => word !== '').map(single))].toSorted()
  const label = node.length <= longestLabel ? node : digest(node)
  return { node, cidrs, className, object: `holdfast-${node.slice(0, 200)}-${digest(JSON.stringify([node, className, cidrs]))}`, labels: { [ofNode]: label } }
}

const longestLabel = 63

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12)
}

/** A wider range would cut off whoever else lives in it. */
function single(word: string): string {
  const [address = '', bits] = word.split('/')
  const whole = { 4: '32', 6: '128' }[isIP(address)]
  if (whole === undefined || (bits !== undefined && bits !== whole)) throw new Failure('config', `cidrs=: ${excerpt(word)} is not one address`)
  return `${address.toLowerCase()}/${whole}`
}

async function status(cluster: Cluster, wish: Wish): Promise<DeviceWord> {
  await needNode(cluster, wish)
  const found = await fencesOf(cluster, wish)
  const ours = found.find((one) => nameOf(one) === wish.object)
  if (found.length === 0) return { state: 'on', evidence: `no NetworkFence of class ${wish.className} stands for ${wish.node}` }
  if (ours === undefined) return { state: 'unknown', evidence: `a NetworkFence stands for other addresses of ${wish.node}: ${found.map(nameOf).join(', ')}`, reason: 'config' }
  return wordOf(ours, wish)
}

function wordOf(object: Fields, wish: Wish): DeviceWord {
  const [spec, told] = [fieldsOf(object['spec']), fieldsOf(object['status'])]
  const [wished, result, message] = [String(spec['fenceState']), textOf(told['result']) ?? 'no result yet', textOf(told['message']) ?? '']
  const leaving = fieldsOf(object['metadata'])['deletionTimestamp'] !== undefined
  const evidence = `${wish.object}: ${excerpt(wished)} of ${wish.cidrs.join(' ')}, ${excerpt(result)}${message === '' ? '' : `: ${excerpt(message)}`}${leaving ? ', being deleted' : ''}`
  const stands = wished === 'Fenced' && spec['networkFenceClassName'] === wish.className && sameCidrs(spec['cidrs'], wish)
  if (stands && result === 'Succeeded' && message === fencedMessage && !leaving) return { state: 'off', evidence }
  return { state: 'unknown', evidence, reason: result === 'Failed' ? 'device' : 'busy' }
}

function sameCidrs(told: unknown, wish: Wish): boolean {
  return JSON.stringify(itemsOf(told).map(String).toSorted()) === JSON.stringify(wish.cidrs)
}

async function fence(cluster: Cluster, given: Given): Promise<DeviceWord> {
  const wish = wishOf(given)
  await needNode(cluster, wish)
  await needClass(cluster, wish)
  return pollUntil('off', given, given.ms('power_timeout'), () => patient(async () => {
    const stands = await cluster.get(`${fences}/${wish.object}`)
    if (stands === undefined) return wordOf(await cluster.create(fences, objectOf(wish)), wish)
    // One that is being lifted must be gone first: its status might be the word on another wish.
    if (fieldsOf(stands['spec'])['fenceState'] !== 'Fenced' && fieldsOf(stands['metadata'])['deletionTimestamp'] === undefined) await cluster.remove(`${fences}/${wish.object}`, stands)
    return wordOf(stands, wish)
  }), pauseOf(given))
}

/** All that stand for this node in this class, whatever addresses it had when they were made. */
async function lift(cluster: Cluster, given: Given): Promise<DeviceWord> {
  const wish = wishOf(given)
  await needNode(cluster, wish)
  return pollUntil('on', given, given.ms('power_timeout'), () => patient(async () => {
    const found = await fencesOf(cluster, wish)
    for (const one of found) await liftOne(cluster, one)
    return status(cluster, wish)
  }), pauseOf(given))
}

async function liftOne(cluster: Cluster, object: Fields): Promise<void> {
  const path = `${fences}/${nameOf(object)}`
  const [spec, told, metadata] = [fieldsOf(object['spec']), fieldsOf(object['status']), fieldsOf(object['metadata'])]
  if (metadata['deletionTimestamp'] !== undefined) return
  if (spec['fenceState'] !== 'Unfenced') await cluster.update(path, { ...object, spec: { ...spec, fenceState: 'Unfenced' } })
  else if (told['result'] === 'Succeeded' && told['message'] === liftedMessage) await cluster.remove(path, object)
}

/** Somebody else wrote meanwhile, or an answer was lost: the next look tells. */
async function patient(look: () => Promise<DeviceWord>): Promise<DeviceWord> {
  try {
    return await look()
  } catch (error) {
    if (error instanceof Failure && !passing.has(error.reason)) throw error
    return { state: 'unknown', evidence: error instanceof Error ? error.message : 'no answer' }
  }
}

const passing: ReadonlySet<string> = new Set(['unreachable', 'timeout', 'busy'])

const shortestPause = 100

function pauseOf(given: Given): number {
  return Math.max(shortestPause, given.ms('stonith_status_sleep'))
}

async function fencesOf(cluster: Cluster, wish: Wish): Promise<readonly Fields[]> {
  return (await cluster.list(fences, wish.labels)).filter((one) => fieldsOf(one['spec'])['networkFenceClassName'] === wish.className)
}

/** A fence of a node that is not there would be one of nobody knows whom. */
async function needNode(cluster: Cluster, { node }: Wish): Promise<void> {
  if (await cluster.get(`/api/v1/nodes/${node}`) === undefined) throw new Failure('notfound', `the cluster has no node ${node}`)
}

async function needClass(cluster: Cluster, { className }: Wish): Promise<void> {
  const path = `/apis/csiaddons.openshift.io/v1alpha1/networkfenceclasses/${className}`
  if (await cluster.get(path) === undefined) throw new Failure('config', `there is no NetworkFenceClass ${className}`)
}

function objectOf(wish: Wish): object {
  return {
    apiVersion: 'csiaddons.openshift.io/v1alpha1', kind: 'NetworkFence', metadata: { name: wish.object, labels: wish.labels },
    spec: { networkFenceClassName: wish.className, fenceState: 'Fenced', cidrs: wish.cidrs },
  }
}

function nameOf(object: Fields): string {
  return textOf(fieldsOf(object['metadata'])['name']) ?? ''
}

// Last, so that every constant above has its value when the program begins.
if (import.meta.main) await runAgent(agent)
