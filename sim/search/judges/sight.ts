// What a judge sees when it looks: the objects in the API server's store, the machines, the devices and who can reach them. Each
// look is one sight; what is asked twice of it is read once.
import type { KubeObject } from '../../../coordinator/api.ts'
import { outOfServiceKey, ownValue, quarantineKey } from '../../../core/clear.ts'
import type { Ms } from '../../../core/model.ts'
import type { AttachmentObject, NodeObject, PodObject } from '../../objects.ts'
import type { Stage } from '../../stage.ts'
import type { World } from '../../world.ts'
import { switchesOf, type Switch } from '../../world/power.ts'
import type { Wellness } from '../wellness.ts'
import type { Ears, Word } from './ears.ts'

/** A NodeFence as it stands in the store: read by its fields, and by nobody of the product. */
export interface Fence extends KubeObject {
  readonly spec: {
    readonly nodeName: string
    readonly nodeUid?: string
    readonly boot: string
    readonly cause?: string
    readonly abort?: boolean
    readonly acknowledge?: object
    readonly policy: { readonly mode?: string; readonly nodeDownPodDeletionPolicy?: string; readonly onlyTerminating?: boolean; readonly volumeAttachmentRecovery?: string; readonly pause?: object; readonly restAfter?: string; readonly powerAfter?: string; readonly restarts?: number; readonly waitForPermit?: boolean; readonly selfFenced?: string; readonly evictWithin?: string; readonly bootWithin?: string; readonly powerOnFoundOff?: boolean; readonly brakes?: { readonly stormPercent?: number } }
  }
  readonly status?: {
    readonly taken?: Pick<Fence['spec'], 'policy'>
    readonly phase?: string
    readonly step?: string
    readonly round?: number
    readonly eviction?: { readonly over?: object }
    readonly dump?: { readonly afterSilence: boolean }
    readonly holds?: readonly { readonly because: string; readonly detail: string }[]
    readonly attempts?: readonly { readonly method: string; readonly action: string; readonly result: string; readonly term: number; readonly within: string; readonly late: string }[]
    readonly proof?: { readonly kind?: string; readonly boot: string; readonly methods: readonly string[] }
    readonly voided?: readonly object[]
  }
}

interface Policy extends KubeObject { readonly spec?: { readonly profile?: string; readonly mode?: string; readonly pause?: object; readonly powerOnFoundOff?: boolean; readonly nodeDownPodDeletionPolicy?: string; readonly onlyTerminating?: boolean; readonly volumeAttachmentRecovery?: string } }
interface Config extends KubeObject { readonly data?: Readonly<Record<string, string>> }
interface NodeRecord extends KubeObject { readonly spec?: { readonly paths?: readonly PathWord[] } }
interface PathWord { readonly method: string; readonly boot: string; readonly state: string }

/** What is known of the whole run, beside what stands now. */
export interface History {
  readonly on: Stage
  readonly wellness: Wellness
  readonly ears: Ears
  /** Whether anything of the fence configuration ever stood otherwise than at the beginning. */
  configEdited(): boolean
  /** When out-of-service of ours was last seen on the node. */
  outOfServiceAt(node: string): Ms | undefined
}

export interface Sight extends History {
  readonly world: World
  readonly now: Ms
  nodes(): readonly NodeObject[]
  node(name: string): NodeObject | undefined
  fences(): readonly Fence[]
  openOf(node: string): readonly Fence[]
  pods(node: string): readonly PodObject[]
  attachments(node: string): readonly AttachmentObject[]
  policies(): readonly Policy[]
  configs(): readonly Config[]
  paths(node: string): readonly PathWord[]
  ours(node: string): readonly string[]
  /** As the racks were built, level by level. */
  switches(node: string): readonly (readonly Switch[])[]
  /** What the method's device said of the node's outlet lately, oldest first. */
  words(node: string, method: string, within: Ms): readonly Word[]
  /** Whether a leader runs, and reaches the API server, which serves it. */
  leads(): boolean
  /** When the process of the leader started. */
  leaderSince(): Ms
  /** When it began to lead, by its own log. */
  ledSince(): Ms
  /** Its term, by the same. */
  term(): number
}

export function look(history: History): Sight {
  const { on, ears } = history
  const { world } = on
  const now = world.clock.now()
  const read = new Map<string, readonly KubeObject[]>()
  const peek = <T extends KubeObject>(collection: string): readonly T[] => {
    const there = read.get(collection) ?? world.server?.peek(collection) ?? []
    read.set(collection, there)
    return there as readonly T[] // each collection holds its kind
  }
  const nodes = () => peek<NodeObject>('nodes')
  const node = (name: string) => nodes().find(({ metadata }) => metadata.name === name)
  const fences = () => peek<Fence>('nodefences.holdfast.dev').map(completed)
  const names = [...world.nodes.keys()]
  const switches = (name: string) => switchesOf(world.settings.power, { node: name, index: names.indexOf(name), zone: names.indexOf(name) % world.settings.zones })
  return {
    ...history, world, now, nodes, node, fences, switches,
    openOf: (name) => fences().filter(({ spec, status }) => spec.nodeName === name && status?.phase !== 'Final'),
    pods: (name) => peek<PodObject>('pods').filter(({ spec }) => spec.nodeName === name),
    attachments: (name) => peek<AttachmentObject>('volumeattachments.storage.k8s.io').filter(({ spec }) => spec.nodeName === name),
    policies: () => peek<Policy>('holdfastpolicies.holdfast.dev'),
    configs: () => peek<Config>('configmaps'),
    paths: (name) => peek<NodeRecord>('noderecords.holdfast.dev').find(({ metadata }) => metadata.name === name)?.spec?.paths ?? [],
    ours: (name) => (node(name)?.spec?.taints ?? []).flatMap(({ key, value }) => (key === quarantineKey || (key === outOfServiceKey && value === ownValue) ? [key] : [])),
    words(name, method, within) {
      const one = switches(name).flat().find((candidate) => method === candidate.name || method === `${candidate.name}-off` || method === `${candidate.name}-on`)
      return one === undefined ? [] : lately(ears.words, now - within).filter(({ device, plug }) => device === one.device && plug === one.plug)
    },
    leads() {
      const host = leaderHost(on)
      const api = world.network.find('api')
      if (host === undefined || api === undefined || ears.apiFaulty()) return false
      return (['api', 'watch'] as const).every((plane) => world.network.reach(host, api, plane) === 'open' && world.network.reach(api, host, plane) === 'open')
    },
    ledSince: () => beganToLead(on)?.at ?? -Infinity,
    term: () => Number(beganToLead(on)?.facts['term'] ?? 0),
    leaderSince() {
      const identity = leaderOf(on)
      return world.truth.entries.findLast(({ what, facts }) => what === 'replica starts' && facts['replica'] === identity)?.at ?? now
    },
  }
}

function leaderOf(on: Stage): string | undefined {
  const leader = on.leader()
  return leader === undefined ? undefined : on.world.replicas.running.get(leader)?.identity
}

function beganToLead(on: Stage) {
  const identity = leaderOf(on)
  return on.world.truth.entries.findLast(({ what, facts }) => what === 'log' && facts['who'] === identity && facts['message'] === 'this replica leads')
}

function leaderHost({ world, leader }: Stage) {
  const number = leader()
  return number !== undefined && world.replicas.running.get(number)?.process.running() === true ? world.replicas.host(number) : undefined
}

/** The list grows in time. */
function lately(words: readonly Word[], since: Ms): readonly Word[] {
  let first = words.length
  while (first > 0 && (words[first - 1]?.at ?? 0) >= since) first -= 1
  return words.slice(first)
}

/** What a person wrote names a node alone: its policy is taken from what is known, and stands in its status, or does not yet. */
function completed(fence: Fence): Fence {
  const { policy }: Partial<Fence['spec']> = fence.spec
  return policy === undefined ? { ...fence, spec: { ...fence.spec, policy: fence.status?.taken?.policy ?? {} } } : fence
}
