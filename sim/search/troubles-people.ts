// People with their hands in the cluster while an incident is under way. What they swear is true here: an oath that is false
// is no fault of the product, and would only hide those that are.
import type { KubeObject } from '../../coordinator/api.ts'
import { aNode, lasting, type Ground, type TroubleKind } from './trouble.ts'

type World = Ground['on']['world']
type Api = World['api']

const pausePath = '/api/v1/namespaces/holdfast-system/configmaps'
const policyPath = '/apis/holdfast.dev/v1alpha1/holdfastpolicies'
const fencePath = '/apis/holdfast.dev/v1alpha1/nodefences'

const pause: TroubleKind = {
  class: 'people',
  draw: () => ({ on: '' }),
  begin({ on: { world: { api } } }) {
    void api.create(pausePath, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'holdfast-pause', namespace: 'holdfast-system' }, data: { reason: 'a look at it', by: 'on call' } })
    return () => void api.remove(`${pausePath}/holdfast-pause`)
  },
}

interface Policy extends KubeObject { readonly spec: Readonly<Record<string, unknown>> }

function policyOf({ server }: World): Policy | undefined {
  return ((server?.peek('holdfastpolicies.holdfast.dev') ?? []) as readonly Policy[]).find(({ metadata }) => metadata.name === 'all') // that collection's kind
}

const written = new WeakMap<World, Map<string, KubeObject>>()

/** As it stood before any person had a hand in it: two edits that overlap must not leave the first one behind. */
function asWritten<T extends KubeObject>(world: World, object: T): T {
  const own = written.get(world) ?? new Map<string, KubeObject>()
  written.set(world, own)
  const key = `${object.kind} ${object.metadata.name}`
  const first = own.get(key) ?? object
  own.set(key, first)
  return first as T // of the kind and name it was kept under
}

const edits: Readonly<Record<string, object>> = {
  'to DoNothing': { nodeDownPodDeletionPolicy: 'DoNothing' },
  'to a dry run': { mode: 'dryRun' },
  'to conservative': { profile: 'conservative' },
  'to select nobody': { selector: { matchLabels: { 'example.com/fenced': 'yes' } } },
  'to a pause': { pause: { reason: 'a look at it', by: 'on call' } },
}

const edited: TroubleKind = {
  class: 'people',
  draw: (chance) => ({ on: '', how: chance.pick(Object.keys(edits)) }),
  begin({ on: { world } }, { how = '' }) {
    const policy = policyOf(world)
    const edit = edits[how]
    if (policy === undefined || edit === undefined) return undefined
    const { spec } = asWritten(world, policy)
    const before = undoing(edit, spec)
    void world.api.patch(`${policyPath}/all`, 'merge', { spec: edit })
    return () => void world.api.patch(`${policyPath}/all`, 'merge', { spec: before })
  },
}

/** A merge patch leaves what it does not name: what the edit brought must be named to go. */
function undoing(edit: object, stood: object): object {
  const was = stood as Readonly<Record<string, unknown>> // a spec, by its keys
  return Object.fromEntries(Object.entries(edit).map(([key, value]: [string, unknown]) => {
    const before = was[key]
    return [key, typeof value === 'object' && value !== null && typeof before === 'object' && before !== null ? undoing(value, before) : before ?? null]
  }))
}

function overObjects(kind: string, act: (api: Api, object: KubeObject) => void): TroubleKind {
  return {
    class: 'people',
    draw: () => ({ on: '' }),
    begin({ on: { world } }) {
      const objects = world.server?.peek(kind) ?? []
      if (objects.length === 0) return undefined
      for (const object of objects) act(world.api, object)
      return lasting
    },
  }
}

const taintsRemoved: TroubleKind = {
  class: 'people',
  draw: (chance, scene) => ({ on: aNode(chance, scene) }),
  begin(ground, trouble) {
    const { world } = ground.on
    const name = ground.node(trouble)
    const node = world.server?.peek('nodes').find((one) => one.metadata.name === name) as (KubeObject & { spec?: { taints?: readonly { key: string }[] } }) | undefined // a Node
    const taints = node?.spec?.taints ?? []
    const left = taints.filter(({ key }) => !key.startsWith('holdfast.dev/') && !key.endsWith('out-of-service'))
    if (left.length === taints.length) return undefined
    void world.api.patch(`/api/v1/nodes/${name}`, 'merge', { spec: { taints: left } })
    return lasting
  },
}

interface Config extends KubeObject { readonly data: Readonly<Record<string, string>> }

/** Its own, or the one of all nodes that have none. */
function configOf({ server }: World, node: string): Config | undefined {
  const maps = (server?.peek('configmaps') ?? []) as readonly Config[] // that collection's kind
  return maps.find(({ metadata }) => metadata.name === `fence-config-${node}`) ?? maps.find(({ metadata }) => metadata.name === 'fence-config-default')
}

const configured: TroubleKind = {
  class: 'people',
  draw: (chance, scene) => ({ on: aNode(chance, scene), how: chance.pick(['taken away', 'mistyped', 'changed']) }),
  begin(ground, trouble) {
    const { world } = ground.on
    const config = configOf(world, ground.node(trouble))
    if (config === undefined) return undefined
    const { data } = asWritten(world, config)
    const path = `${pausePath}/${config.metadata.name}`
    if (trouble.how === 'taken away') {
      void world.api.remove(path)
      return () => void world.api.create(pausePath, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: config.metadata.name, namespace: 'holdfast-system' }, data })
    }
    const [key, off] = Object.entries(data).find(([one]) => /^fence-method-.*-off$/.test(one)) ?? []
    if (key === undefined) return undefined
    const other = trouble.how === 'mistyped' ? 'template=no-such-template\n' : `${off}power_timeout=15\n`
    void world.api.patch(path, 'merge', { data: { [key]: other } })
    return () => void world.api.patch(path, 'merge', { data: { [key]: off } })
  },
}

export const peopleTroubles: Readonly<Record<string, TroubleKind>> = {
  'a person pauses': pause,
  'the policy is edited': edited,
  'the policy is deleted': {
    class: 'people',
    draw: () => ({ on: '' }),
    begin({ on: { world } }) {
      const policy = policyOf(world)
      if (policy === undefined) return undefined
      const { apiVersion, kind, spec } = asWritten(world, policy)
      void world.api.remove(`${policyPath}/all`)
      return () => void world.api.create(policyPath, { apiVersion, kind, metadata: { name: 'all' }, spec })
    },
  },
  'every NodeFence is deleted': overObjects('nodefences.holdfast.dev', (api, { metadata: { name } }) => void api.remove(`${fencePath}/${name}`)),
  'every NodeRecord is deleted': overObjects('noderecords.holdfast.dev', (api, { metadata: { name } }) => void api.remove(`/apis/holdfast.dev/v1alpha1/noderecords/${name}`)),
  'our taints are removed': taintsRemoved,
  'the Node object is deleted': {
    class: 'people',
    draw: (chance, scene) => ({ on: aNode(chance, scene) }),
    begin(ground, trouble) {
      void ground.on.world.api.remove(`/api/v1/nodes/${ground.node(trouble)}`)
      return lasting
    },
  },
  'the StatefulSet is scaled down and up': {
    class: 'people',
    draw: () => ({ on: '' }),
    begin({ on: { world: { api } } }) {
      const scale = (replicas: number) => void api.patch('/apis/apps/v1/namespaces/work/statefulsets/db', 'merge', { spec: { replicas } })
      scale(0)
      return () => scale(1)
    },
  },
  'the fence configuration is edited': configured,
}
