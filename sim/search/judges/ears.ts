// What judges overhear: each word of a device, and each write by which the product cuts a pod or a node loose. The ears stand in
// the way of both and change neither.
import { forceEvictionKey } from '../../../core/acknowledge.ts'
import { outOfServiceKey, ownValue, quarantineKey } from '../../../core/clear.ts'
import type { Ms } from '../../../core/model.ts'
import type { ApiRequest } from '../../../coordinator/transport.ts'
import type { ApiServer, User } from '../../api-server/server.ts'
import type { DeviceAnswer } from '../../device.ts'
import type { NodeObject, PodObject } from '../../objects.ts'
import type { TruthEntry } from '../../truth.ts'
import type { World } from '../../world.ts'
import { handleOf } from '../../world/objects.ts'
import type { Wellness } from '../wellness.ts'
import { bootId, fenceConfig } from './facts.ts'
import type { Fence } from './sight.ts'

export interface Word {
  readonly at: Ms
  readonly device: string
  readonly plug: string
  readonly says: DeviceAnswer['says']
  /** It said off of what was on. */
  readonly lie: boolean
  /** It said on of an outlet that was off. */
  readonly falselyOn: boolean
  /** The UUID it told with it. */
  readonly machine?: string
}

/** A write of the product's that reached the API server and was meant for what stood there. Whoever is evicted goes by itself, in its
 *  own time. */
export interface Act {
  readonly at: Ms
  readonly does: 'free a pod' | 'evict a pod' | 'out-of-service' | 'quarantine'
  readonly node: string
  /** That the node's machine was in. */
  readonly boot: string | undefined
  readonly hibernated: boolean
  readonly wellFor: Ms
  /** Its kubelet had renewed its Lease within the last interval, and not just now: whoever read it live knows. */
  readonly renewed: boolean
  /** A person had asked for the node to be fenced, or a remedy had begun on it, and that was not over. */
  readonly asked: boolean
  /** The kind of the proof that stood then on the node's incident. */
  readonly proof: string | undefined
  /** The pod, whether a container of it was there on the machine still, and could write what is not its own alone, and whether its status called it over. */
  readonly pod?: { readonly name: string; readonly uid: string; readonly runs: boolean; readonly over: boolean }
}

/** A person's word, on a NodeFence or by a taint, that the machine is off. */
export interface Oath {
  readonly at: Ms
  readonly node: string
  readonly boot: string
  /** The NodeFence. Undefined: it is the taint. */
  readonly fence?: string
  /** From then on it stood there, if it ever did. */
  stoodAt?: Ms
  /** From then on it stood there no more. */
  overAt?: Ms
}

/** An incident that the product opens for a remedy. */
export interface Opening {
  readonly at: Ms
  readonly node: string
  readonly name: string
  readonly policy: Fence['spec']['policy'] | undefined
}

/** An incident of the node that the product wrote down as over. */
export interface End {
  readonly at: Ms
  readonly node: string
}

export interface Ears {
  /** They have listened from then on. */
  readonly since: Ms
  readonly words: readonly Word[]
  readonly acts: readonly Act[]
  readonly oaths: readonly Oath[]
  readonly ends: readonly End[]
  /** Of all incidents, from which phase to which the product wrote them: `New`, then `New to Running`. */
  readonly turns: ReadonlySet<string>
  /** Whether a person wants the node fenced, or a remedy began on it, and that is not over. */
  asked(node: string): boolean
  /** Calls whenever the product opens an incident for a remedy, before it stands. */
  onRemedy(told: (opening: Opening) => void): void
  /** Calls whenever a write of the product's takes its quarantine off a node. */
  onReturn(told: (node: string) => void): void
  /** Whether somebody was met with a fault at the API server lately, or would be. */
  apiFaulty(): boolean
  /** Programs that are giving an order. */
  orders(): number
  /** When the latest order of the kind to the outlet was begun, or a program that meant to give it. */
  lastOrder(address: string, plug: string, to: 'on' | 'off'): Ms | undefined
  /** The fence configuration as it stood when an order off to the outlet was begun: of each such order. */
  offsUnder(address: string, plug: string): readonly string[]
  stop(): void
}

export function listen(world: World, wellness: Wellness): Ears {
  const words: Word[] = []
  const acts: Act[] = []
  const oaths: Oath[] = []
  const ends: End[] = []
  const turns = new Set<string>()
  const wished = new Set<string>()
  const asked = (node: string): boolean => find<Fence>(world, 'nodefences.holdfast.dev', ({ metadata, spec, status }) => spec.nodeName === node && wished.has(metadata.name) && status?.phase !== 'Final') !== undefined
  const remedied: ((opening: Opening) => void)[] = []
  const returns: ((node: string) => void)[] = []
  const running = new Map<string, number>()
  const ordered = new Map<string, Ms>()
  const under = new Map<string, readonly string[]>()
  const renewals = new Map<string, readonly Ms[]>()
  const hasRenewed = (node: string): boolean => (renewals.get(node) ?? []).some((at) => world.clock.now() - at >= readLive && world.clock.now() - at <= leaseInterval)
  const lies = new Map<string, Ms>()
  const stops: (() => void)[] = []
  let faulty = false

  stops.push(world.truth.listen(({ at, what, facts }: TruthEntry) => {
    if (what === 'device lied') lies.set(`${facts['device']} ${facts['plug']}`, at)
    if (what !== 'program runs' && what !== 'program ended') return
    const { action, ip, plug, replica } = facts
    if (action !== 'off' && action !== 'on') return
    const key = `${replica} ${action} ${ip} ${plug}`
    running.set(key, (running.get(key) ?? 0) + (what === 'program runs' ? 1 : -1))
    ordered.set(`${ip} ${plug} ${action}`, at)
    if (what === 'program runs' && action === 'off') under.set(`${ip} ${plug}`, [...under.get(`${ip} ${plug}`) ?? [], fenceConfig(world)])
  }))
  for (const device of new Set(world.devices.values())) {
    const { read } = device
    device.read = async (plug) => {
      const answer = await read(plug)
      const at = world.clock.now()
      words.push({
        at, device: device.name, plug, says: answer.says, lie: answer.says === 'off' && lies.get(`${device.name} ${plug}`) === at,
        falselyOn: answer.says === 'on' && device.plugs.get(plug)?.switched === 'off',
        ...('machine' in answer && answer.machine !== undefined ? { machine: answer.machine } : {}),
      })
      return answer
    }
    stops.push(() => { device.read = read })
  }
  if (world.server !== undefined) stops.push(overhear(world.server, (request, byProduct) => {
    for (const oath of oaths) follow(world, oath)
    const [, renewing] = leasePath.exec(request.path) ?? []
    if (renewing !== undefined) renewals.set(renewing, [...(renewals.get(renewing) ?? []).slice(-1), world.clock.now()])
    if (byProduct) {
      acts.push(...actsOf(world, wellness, { asked, renewed: hasRenewed }, request))
      const wrote = phaseWritten(world, request)
      if (wrote?.to === 'Final') ends.push({ at: world.clock.now(), node: wrote.node })
      if (wrote !== undefined && wrote.to !== wrote.from) turns.add(wrote.from === undefined ? wrote.to : `${wrote.from} to ${wrote.to}`)
      const opening = openedBy(world, request)
      if (opening !== undefined) {
        for (const told of remedied) told(opening)
        wished.add(opening.name)
      }
      const back = letBack(world, request)
      if (back !== undefined) for (const told of returns) told(back)
    } else {
      oaths.push(...oathsOf(world, request))
      const asks = askedBy(request)
      if (asks !== undefined) wished.add(asks)
    }
  }, (so) => { faulty = so }))

  return {
    since: world.clock.now(), words, acts, oaths, ends, turns, asked,
    onRemedy: (told) => void remedied.push(told),
    onReturn: (told) => void returns.push(told),
    apiFaulty: () => faulty,
    orders: () => [...running.values()].reduce((sum, count) => sum + count, 0),
    lastOrder: (address, plug, to) => ordered.get(`${address} ${plug} ${to}`),
    offsUnder: (address, plug) => under.get(`${address} ${plug}`) ?? [],
    stop() {
      for (const stop of stops) stop()
    },
  }
}

/** Every request that is carried out, as it is: what the world is like when it was sent is of the past by then. */
function overhear({ faults }: ApiServer, hear: (request: ApiRequest, byProduct: boolean) => void, fault: (standing: boolean) => void): () => void {
  const { lands, set, clear } = faults
  Object.assign(faults, {
    lands(request: ApiRequest, user: User) {
      if (request.method !== 'GET') hear(request, user.name.endsWith(':holdfast-coordinator'))
      lands(request, user)
    },
    set(list: Parameters<typeof set>[0]) {
      fault(list.length > 0)
      set(list)
    },
    clear() {
      fault(false)
      clear()
    },
  })
  return () => void Object.assign(faults, { lands, set, clear })
}

const podPath = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)(?:\/(status|eviction))?$/
const leasePath = /^\/apis\/coordination\.k8s\.io\/v1\/namespaces\/kube-node-lease\/leases\/([^/?]+)/
/** Less than an interval in which a Lease must have stood still. */
const leaseInterval: Ms = 12_000
/** A live reading, and the batch that it allows. */
const readLive: Ms = 6_000
const nodePath = /^\/api\/v1\/nodes\/([^/]+)$/

interface Body {
  readonly metadata?: Target
  readonly preconditions?: Target
  readonly deleteOptions?: { readonly preconditions?: Target }
  readonly status?: { readonly phase?: string }
}
interface Target { readonly name?: string; readonly uid?: string; readonly resourceVersion?: string }

/** What the ears know of a node. */
type Known = Readonly<Record<'asked' | 'renewed', (node: string) => boolean>>

function actsOf(world: World, wellness: Wellness, known: Known, { method, path, body }: ApiRequest): readonly Act[] {
  const act = (does: Act['does'], on: string): Act => actOn(world, wellness, known, does, on)
  const [bare = ''] = path.split('?')
  const [, namespace, pod, part] = podPath.exec(bare) ?? []
  const [, node] = nodePath.exec(bare) ?? []
  if (pod !== undefined) {
    const said = (body === undefined ? {} : JSON.parse(body)) as Body // the product's own JSON
    const frees = (method === 'DELETE' && part === undefined) || (method === 'PATCH' && part === 'status' && said.status?.phase === 'Failed')
    const evicts = method === 'POST' && part === 'eviction'
    return frees || evicts ? struck(world, `${namespace}/${pod}`, said, (on) => act(evicts ? 'evict a pod' : 'free a pod', on)) : []
  }
  if (node === undefined || method !== 'PATCH' || body === undefined) return []
  const there = find<NodeObject>(world, 'nodes', (one) => one.metadata.name === node)
  const bears = (key: string) => there?.spec?.taints?.some((taint) => taint.key === key) === true
  const wants = (key: string, value = '"') => !bears(key) && body.includes(`"${key}"`) && body.includes(value)
  return [
    ...(wants(outOfServiceKey, `"${ownValue}"`) ? [act('out-of-service', node)] : []),
    ...(wants(quarantineKey) ? [act('quarantine', node)] : []),
  ]
}

interface PatchStep { readonly op: string; readonly path: string; readonly value?: unknown }

/** Over the very version that stands, and without the quarantine that it bears. */
function letBack(world: World, { method, path, body }: ApiRequest): string | undefined {
  const [, name] = method === 'PATCH' ? nodePath.exec(path.split('?')[0] ?? '') ?? [] : []
  if (name === undefined || body === undefined) return undefined
  const there = find<NodeObject>(world, 'nodes', ({ metadata }) => metadata.name === name)
  if (there?.spec?.taints?.some(({ key }) => key === quarantineKey) !== true) return undefined
  const said = JSON.parse(body) as unknown
  const steps = (Array.isArray(said) ? said : []) as readonly PatchStep[] // the product's own JSON
  const stands = steps.some(({ op, path: field, value }) => op === 'test' && field === '/metadata/resourceVersion' && value === there.metadata.resourceVersion)
  const taints = steps.find(({ op, path: field }) => op !== 'test' && field === '/spec/taints')
  return stands && taints !== undefined && !JSON.stringify(taints.value ?? []).includes(quarantineKey) ? name : undefined
}

const fencesPath = '/apis/holdfast.dev/v1alpha1/nodefences'
const fencePath = /^\/apis\/holdfast\.dev\/v1alpha1\/nodefences\/([^/?]+)/

function phaseWritten(world: World, { path, body }: ApiRequest): { readonly node: string; readonly from: string | undefined; readonly to: string } | undefined {
  const [, name] = fencePath.exec(path) ?? []
  if (name === undefined || body === undefined) return undefined
  const { metadata, status } = JSON.parse(body) as Body // the product's own JSON
  const fence = find<Fence>(world, 'nodefences.holdfast.dev', (one) => one.metadata.name === name)
  const stands = fence !== undefined && (metadata?.resourceVersion ?? fence.metadata.resourceVersion) === fence.metadata.resourceVersion
  return stands && status?.phase !== undefined ? { node: fence.spec.nodeName, from: fence.status?.phase, to: status.phase } : undefined
}

function oathsOf(world: World, { path, body }: ApiRequest): readonly Oath[] {
  const [, node] = nodePath.exec(path.split('?')[0] ?? '') ?? []
  if (node !== undefined && body?.includes(`"${forceEvictionKey}"`) === true) {
    const there = find<NodeObject>(world, 'nodes', ({ metadata }) => metadata.name === node)
    if (there?.spec?.taints?.some(({ key }) => key === forceEvictionKey) === true) return []
    return [{ at: world.clock.now(), node, boot: world.nodes.get(node)?.machine.boot()?.id ?? '' }]
  }
  const [, name] = fencePath.exec(path) ?? []
  if (name === undefined || body?.includes('acknowledge') !== true) return []
  const fence = find<Fence>(world, 'nodefences.holdfast.dev', (one) => one.metadata.name === name)
  return fence === undefined ? [] : [{ at: world.clock.now(), node: fence.spec.nodeName, boot: bootId(fence.spec.boot) ?? '', fence: name }]
}

/** One that was refused never stands; one that stood is taken back, or goes with what it stood on. */
function follow(world: World, oath: Oath): void {
  if (oath.overAt !== undefined) return
  const stands = oath.fence === undefined
    ? find<NodeObject>(world, 'nodes', ({ metadata, spec }) => metadata.name === oath.node && spec?.taints?.some(({ key }) => key === forceEvictionKey) === true) !== undefined
    : find<Fence>(world, 'nodefences.holdfast.dev', ({ metadata, spec }) => metadata.name === oath.fence && spec.acknowledge !== undefined) !== undefined
  if (stands) oath.stoodAt ??= world.clock.now()
  else if (oath.stoodAt !== undefined) oath.overAt = world.clock.now()
}

/** Under uid and version: what another object bears by now is not meant, and not struck. */
function struck(world: World, name: string, { metadata, preconditions, deleteOptions }: Body, act: (node: string) => Act): readonly Act[] {
  const pod = find<PodObject>(world, 'pods', (one) => `${one.metadata.namespace}/${one.metadata.name}` === name)
  const target = preconditions ?? deleteOptions?.preconditions ?? metadata
  const meant = pod !== undefined && (target?.uid ?? pod.metadata.uid) === pod.metadata.uid && (target?.resourceVersion ?? pod.metadata.resourceVersion) === pod.metadata.resourceVersion
  if (!meant || pod.spec.nodeName === undefined) return []
  const uid = pod.metadata.uid ?? ''
  const runs = !isHarmless(world, pod, pod.spec.nodeName) && world.nodes.get(pod.spec.nodeName)?.runtime.containers.get(uid)?.ended() === false
  return [{ ...act(pod.spec.nodeName), pod: { name, uid, runs, over: pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded' } }]
}

/** It has volumes, and each is out of its reach or guards itself: the successor waits until it is. */
function isHarmless({ storage }: World, { spec }: PodObject, node: string): boolean {
  const volumes = (spec.volumes ?? []).flatMap(({ persistentVolumeClaim }) => (persistentVolumeClaim === undefined ? [] : [handleOf(persistentVolumeClaim.claimName)]))
  return volumes.length > 0 && volumes.every((volume) => storage.guards(volume) || !storage.reaches(node, volume))
}

function actOn(world: World, wellness: Wellness, { asked, renewed }: Known, does: Act['does'], node: string): Act {
  const machine = world.nodes.get(node)?.machine
  const proof = find<Fence>(world, 'nodefences.holdfast.dev', ({ spec, status }) => spec.nodeName === node && status?.phase !== 'Final' && status?.proof !== undefined)?.status?.proof?.kind
  return { at: world.clock.now(), does, node, boot: machine?.boot()?.id, hibernated: machine?.hibernated() === true, wellFor: wellness.wellFor(node), renewed: renewed(node), asked: asked(node), proof }
}

/** The NodeFence by which a person wants a node fenced. */
function askedBy({ method, path, body }: ApiRequest): string | undefined {
  if (method !== 'POST' || path.split('?')[0] !== fencesPath || body === undefined) return undefined
  return (JSON.parse(body) as Body).metadata?.name // the world's own JSON
}

/** Whether it is one that should have been begun another judge asks. */
function openedBy(world: World, { method, path, body }: ApiRequest): Opening | undefined {
  if (method !== 'POST' || path.split('?')[0] !== fencesPath || body === undefined) return undefined
  const { metadata: { name }, spec: { nodeName: node, cause, policy } } = JSON.parse(body) as Fence // the product's own JSON
  const stands = find<Fence>(world, 'nodefences.holdfast.dev', ({ metadata }) => metadata.name === name) !== undefined
  return cause !== 'remedy' || stands ? undefined : { at: world.clock.now(), node, name, policy }
}

function find<T>(world: World, collection: string, is: (one: T) => boolean): T | undefined {
  return ((world.server?.peek(collection) ?? []) as readonly T[]).find(is) // each collection holds its kind
}
