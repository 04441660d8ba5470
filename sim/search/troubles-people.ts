// People with their hands in the cluster while an incident is under way. What they swear is true here: an oath that is false
// is no fault of the product, and would only hide those that are.
import type { KubeObject } from '../../coordinator/api.ts'
import { aNode, lasting, type Ground, type TroubleKind } from './trouble.ts'

type Api = Ground['on']['world']['api']

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
  begin({ on: { world: { api } } }, { how = '' }) {
    const before = { nodeDownPodDeletionPolicy: 'DeleteAllPods', mode: 'enforce', profile: 'fast', selector: null, pause: null }
    void api.patch(`${policyPath}/all`, 'merge', { spec: edits[how] })
    return () => void api.patch(`${policyPath}/all`, 'merge', { spec: before })
  },
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

const configured: TroubleKind = {
  class: 'people',
  draw: (chance, scene) => ({ on: aNode(chance, scene), how: chance.pick(['taken away', 'mistyped', 'changed']) }),
  begin(ground, trouble) {
    const { world } = ground.on
    const path = `${pausePath}/fence-config-${ground.node(trouble)}`
    const config = world.server?.peek('configmaps').find((one) => one.metadata.name === `fence-config-${ground.node(trouble)}`) as (KubeObject & { data?: Record<string, string> }) | undefined // a ConfigMap
    if (config?.data === undefined) return undefined
    const { data } = config
    if (trouble.how === 'taken away') {
      void world.api.remove(path)
      return () => void world.api.create(pausePath, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: config.metadata.name, namespace: 'holdfast-system' }, data })
    }
    const off = data['fence-method-bmc-off'] ?? ''
    const other = trouble.how === 'mistyped' ? 'template=no-such-template\n' : `${off}power_timeout=15\n`
    void world.api.patch(path, 'merge', { data: { 'fence-method-bmc-off': other } })
    return () => void world.api.patch(path, 'merge', { data: { 'fence-method-bmc-off': off } })
  },
}

export const peopleTroubles: Readonly<Record<string, TroubleKind>> = {
  'a person pauses': pause,
  'the policy is edited': edited,
  'the policy is deleted': {
    class: 'people',
    draw: () => ({ on: '' }),
    begin({ on: { world } }) {
      const policy = world.server?.peek('holdfastpolicies.holdfast.dev').find((one) => one.metadata.name === 'all') as (KubeObject & { spec?: object }) | undefined // a policy
      if (policy === undefined) return undefined
      void world.api.remove(`${policyPath}/all`)
      return () => void world.api.create(policyPath, { apiVersion: policy.apiVersion, kind: policy.kind, metadata: { name: 'all' }, spec: policy.spec })
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
