// A whole cluster without the product: replicas that do nothing stand where the product's would, so that a judge must find by
// itself what a lever did, and a test can write what the product would have written.
import { createApi, type Api, type KubeObject } from '../../../../coordinator/api.ts'
import type { Ms } from '../../../../core/model.ts'
import type { HoldAction } from '../../../../core/action.ts'
import { look, type History, type Sight } from '../../../../sim/search/judges/sight.ts'
import { listen, type Ears } from '../../../../sim/search/judges/ears.ts'
import { watchWellness, type Wellness } from '../../../../sim/search/wellness.ts'
import type { NodeObject, PodObject } from '../../../../sim/objects.ts'
import { settled, stage, type Stage, type StageSettings } from '../../../../sim/stage.ts'
import type { World } from '../../../../sim/world.ts'

export interface Quiet {
  readonly on: Stage
  readonly world: World
  readonly wellness: Wellness
  readonly ears: Ears
  readonly history: History
  /** The node of the StatefulSet's pod. */
  readonly victim: string
  /** As the product would ask. */
  readonly product: Api
  sight(): Sight
  pod(): PodObject
  node(name: string): NodeObject
  /** A NodeFence as the product would have written it. */
  plantFence(name: string, node: string, status: object, spec?: object): KubeObject
  taint(node: string, ...taints: readonly object[]): Promise<unknown>
  /** What the leader holds to beside any incident. */
  readonly beside: HoldAction[]
  run(span: Ms): Promise<void>
  done<T>(promise: Promise<T>): Promise<T>
}

export const product = 'system:serviceaccount:holdfast-system:holdfast-coordinator'

export async function quietWorld(settings: StageSettings = {}): Promise<Quiet> {
  const nothing = await stage({ startReplica: async () => ({ stop: async () => undefined }), ...settings })
  const { world } = nothing
  await nothing.run(30_000)
  const beside: HoldAction[] = []
  // Nobody leads here, and a judge asks who does.
  const on: Stage = { ...nothing, leader: () => 0, coordinators: new Map([[0, { holds: () => beside } as never]]) }
  const wellness = watchWellness(world)
  const ears = listen(world, wellness)
  const history: History = { on, wellness, ears, configEdited: () => false, outOfServiceAt: () => undefined }
  const peek = <T extends KubeObject>(collection: string) => (world.server?.peek(collection) ?? []) as T[] // each collection holds its kind
  const pod = () => peek<PodObject>('pods').find(({ metadata }) => metadata.name === 'db-0') as PodObject // it runs by now
  await nothing.run(1_000)
  return {
    on, world, wellness, ears, history, victim: pod().spec.nodeName ?? '', beside, pod,
    product: createApi({ transport: (request, signal) => (world.server as NonNullable<World['server']>).handle(request, { name: product, groups: ['system:masters'] }, signal), clock: world.clock, userAgent: 'test' }), // it is the in-memory one
    sight: () => look(history),
    node: (name) => peek<NodeObject>('nodes').find(({ metadata }) => metadata.name === name) as NodeObject, // each is registered
    plantFence: (name, node, status, spec = {}) => world.server?.plant({
      apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeFence', metadata: { name },
      spec: { nodeName: node, nodeUid: 'u', boot: `${world.nodes.get(node)?.machine.boot()?.id ?? ''}/1`, machine: 'm', cause: 'silence', policy: { name: 'all', nodeDownPodDeletionPolicy: 'DeleteAllPods' }, ...spec },
      status,
    } as KubeObject) as KubeObject, // a kind of ours, planted with its status
    taint: (node, ...taints) => settled(world, world.api.patch(`/api/v1/nodes/${node}`, 'merge', { spec: { taints } })),
    run: (span) => nothing.run(span),
    done: (promise) => settled(world, promise),
  }
}
