// People with their hands on nodes: they cordon, drain and label them, make their objects anew, pull plugs and swear that a
// machine is off. Who swears has pulled the plug first; an oath that is false is no fault of the product.
import { evictedByKey, forceEvictionKey } from '../../core/acknowledge.ts'
import type { Taint } from '../../core/model.ts'
import { changeTaints } from '../controllers/node-taints.ts'
import { isReady, type NodeObject, type PodObject } from '../objects.ts'
import { aNode, insist, lasting, type Ground, type TroubleKind } from './trouble.ts'

type World = Ground['on']['world']

export const outOfServiceKey = 'node.kubernetes.io/out-of-service'
const controlPlane = 'node-role.kubernetes.io/control-plane'
const zoneLabel = 'topology.kubernetes.io/zone'

export function nodeObject(world: World, name: string): NodeObject | undefined {
  return ((world.server?.peek('nodes') ?? []) as readonly NodeObject[]).find(({ metadata }) => metadata.name === name) // that collection's kind
}

export function podsOn(world: World, name: string): readonly PodObject[] {
  return ((world.server?.peek('pods') ?? []) as readonly PodObject[]).filter(({ metadata, spec }) => spec.nodeName === name && metadata.namespace === world.settings.namespace) // likewise
}

export function addTaint(world: World, node: string, taint: Taint): void {
  retaint(world, node, (taints) => [...taints.filter(({ key }) => key !== taint.key), taint])
}

/** Only one that is not the product's. */
export function dropTaint(world: World, node: string, { key, value }: Taint): void {
  retaint(world, node, (taints) => taints.filter((taint) => taint.key !== key || taint.value !== value))
}

const turns = new WeakMap<World, Map<string, Promise<void>>>()

/** One after the other: whoever takes a taint off that he has put on waits for the server to have taken that, or it stays for ever. */
function retaint(world: World, node: string, change: Parameters<typeof changeTaints>[2]): void {
  const own = turns.get(world) ?? new Map<string, Promise<void>>()
  turns.set(world, own)
  own.set(node, (own.get(node) ?? Promise.resolve()).then(() => insist(world, () => changeTaints(world.api, node, change))))
}

export function patchNode(world: World, node: string, change: object): void {
  void insist(world, async () => {
    const answer = await world.api.patch(`/api/v1/nodes/${node}`, 'merge', change)
    return answer.ok || answer.error.kind === 'notFound'
  })
}

export function isIll(world: World, node: string): boolean {
  const machine = world.nodes.get(node)?.machine
  const object = nodeObject(world, node)
  return machine !== undefined && object !== undefined && (machine.state() !== 'running' || machine.frozen() || machine.stuck() || !isReady(object))
}

/** What somebody else frees is freed without a proof: whether the machine could write then, only the world knows. */
export function frees(world: World, node: string): void {
  const machine = world.nodes.get(node)?.machine
  world.truth.note('another frees', { node, boot: machine?.boot()?.id ?? '', machine: machine?.state() ?? '', pods: podsOn(world, node).map(({ metadata }) => metadata.uid) })
}

export function deletePods(world: World, node: string): void {
  frees(world, node)
  for (const { metadata: { namespace, name } } of podsOn(world, node)) void world.api.remove(`/api/v1/namespaces/${namespace}/pods/${name}`, { gracePeriodSeconds: 0 })
}

function onNode(begin: (world: World, node: string, how: string) => (() => void) | undefined, ways: readonly string[] = ['']): TroubleKind {
  return {
    class: 'people',
    draw: (chance, scene) => ({ on: aNode(chance, scene), ...(ways.length > 1 ? { how: chance.pick(ways) } : {}) }),
    begin: (ground, trouble) => begin(ground.on.world, ground.node(trouble), trouble.how ?? ''),
  }
}

function cordon(world: World, node: string): () => void {
  patchNode(world, node, { spec: { unschedulable: true } })
  return () => patchNode(world, node, { spec: { unschedulable: null } })
}

/** Their pods are deleted with their own grace, as an eviction does it. */
function drain(world: World, node: string): () => void {
  const end = cordon(world, node)
  for (const { metadata: { namespace, name, uid = '' } } of podsOn(world, node)) void world.api.remove(`/api/v1/namespaces/${namespace}/pods/${name}`, { preconditions: { uid } })
  return end
}

/** The API server writes down who it was that set a taint by which a machine is said to be off: on a real one an admission policy does. */
function swear(world: World, node: string, taint: Taint): void {
  if (taint.key === forceEvictionKey) patchNode(world, node, { metadata: { annotations: { [evictedByKey]: 'on call' } } })
  addTaint(world, node, taint)
}

/** Nobody has looked at the machine. */
function swornBlindly(world: World, node: string): () => void {
  const own: Taint = { key: forceEvictionKey, effect: 'NoSchedule' }
  swear(world, node, own)
  return () => dropTaint(world, node, own)
}

/** The taint stands while there is no power; whoever put it there stands beside the machine, and takes it off before he lets
 *  anything be switched on. */
function swornOff(taint: (how: string) => Taint): TroubleKind {
  return onNode((world, node, how) => {
    const there = world.nodes.get(node)
    if (there === undefined || there.machine.state() === 'booting') return undefined
    world.cutPower(node)
    const own = taint(how)
    swear(world, node, own)
    let over = false
    const watch = (): void => {
      if (over) return
      if (there.machine.state() === 'off') return void world.clock.after(250, watch)
      over = true
      dropTaint(world, node, own)
    }
    watch()
    return () => {
      if (over) return
      over = true
      dropTaint(world, node, own)
      world.powerOn(node)
    }
  }, ['NoSchedule', 'NoExecute'])
}

const labels: Readonly<Record<string, object>> = { 'another zone': { [zoneLabel]: 'zone-9' }, 'control plane': { [controlPlane]: '' } }

/** What a person writes on a Node who works on it, or wants its machine to stay as it is. */
const said = ['exclude', 'maintenance', 'keep-off'] as const

function annotated(world: World, node: string, word: string): () => void {
  patchNode(world, node, { metadata: { annotations: { [`holdfast.dev/${word}`]: 'on call works on it' } } })
  return () => patchNode(world, node, { metadata: { annotations: { [`holdfast.dev/${word}`]: null } } })
}

/** As `kubectl replace --force` does: the machine knows nothing of it. */
function madeAnew(world: World, node: string): (() => void) | undefined {
  const there = nodeObject(world, node)
  if (there === undefined) return undefined
  const { metadata: { name, labels: worn, annotations }, spec: { providerID = '' } = {} } = there
  void world.api.remove(`/api/v1/nodes/${node}`)
  void insist(world, async () => {
    const made = await world.api.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name, labels: worn, annotations }, spec: { providerID } })
    return made.ok || made.error.reason === 'AlreadyExists'
  })
  return lasting
}

export const handTroubles: Readonly<Record<string, TroubleKind>> = {
  'a node is cordoned': onNode(cordon),
  'a node is drained': onNode(drain),
  'a person deletes the pods of a node that is ill': { ...onNode((world, node) => {
    if (!isIll(world, node)) return undefined
    deletePods(world, node)
    return lasting
  }), weight: 2 },
  'a node\'s labels are edited': onNode((world, node, how) => {
    patchNode(world, node, { metadata: { labels: labels[how] } })
    const zone = world.nodes.get(node)?.machine.settings.zone
    return () => patchNode(world, node, { metadata: { labels: { [zoneLabel]: zone, [controlPlane]: null } } })
  }, Object.keys(labels)),
  'a person keeps us off the node': { ...onNode(annotated, said), weight: 3 },
  'the Node object is made anew': onNode(madeAnew),
  'a person swears that the node is off': swornOff(() => ({ key: forceEvictionKey, effect: 'NoSchedule' })),
  'a person says that the node is off without having looked': onNode(swornBlindly),
  'a person puts out-of-service on the node': swornOff((how) => ({ key: outOfServiceKey, value: 'nodeshutdown', effect: how === 'NoExecute' ? 'NoExecute' : 'NoSchedule' })),
}
