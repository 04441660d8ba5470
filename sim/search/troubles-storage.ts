// A storage that does not let go: its driver, the controller that asks it, and finalizers that nobody takes off.
import type { KubeObject } from '../../coordinator/api.ts'
import { podsOn } from './troubles-hands.ts'
import { aNode, insist, type Ground, type TroubleKind } from './trouble.ts'

type World = Ground['on']['world']

const finalizer = 'example.com/nobody-takes-it-off'

const controllerStuck: TroubleKind = {
  class: 'storage',
  draw: () => ({ on: '' }),
  begin({ on: { world } }) {
    const settings = world.loops()?.settings.attachDetach
    if (settings === undefined) return undefined
    settings.stuck = true
    world.truth.note('attach/detach controller stuck')
    return () => { settings.stuck = false }
  },
}

const collections = { pod: 'pods', attachment: 'volumeattachments.storage.k8s.io' } as const
type Kept = keyof typeof collections

interface Attachment extends KubeObject { readonly spec: { readonly nodeName: string } }

function pathOf(of: Kept, { metadata: { namespace, name } }: KubeObject): string {
  return of === 'pod' ? `/api/v1/namespaces/${namespace}/pods/${name}` : `/apis/storage.k8s.io/v1/volumeattachments/${name}`
}

function objectsOn(world: World, of: Kept, node: string): readonly KubeObject[] {
  if (of === 'pod') return podsOn(world, node)
  return ((world.server?.peek(collections.attachment) ?? []) as readonly Attachment[]).filter(({ spec }) => spec.nodeName === node) // that collection's kind
}

/** Until a person takes it off every object that bears it. */
const finalizerStays: TroubleKind = {
  class: 'storage',
  draw: (chance, scene) => ({ on: aNode(chance, scene), how: chance.pick(Object.keys(collections)) }),
  begin(ground, trouble) {
    const { world } = ground.on
    const of: Kept = trouble.how === 'pod' ? 'pod' : 'attachment'
    const objects = objectsOn(world, of, ground.node(trouble)).filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    if (objects.length === 0) return undefined
    for (const object of objects) void world.api.patch(pathOf(of, object), 'merge', { metadata: { finalizers: [...object.metadata.finalizers ?? [], finalizer] } })
    return () => void insist(world, () => takenOff(world, of))
  },
}

async function takenOff(world: World, of: Kept): Promise<boolean> {
  const bearers = (world.server?.peek(collections[of]) ?? []).filter(({ metadata }) => metadata.finalizers?.includes(finalizer) === true)
  const answers = await Promise.all(bearers.map((object) => {
    const { resourceVersion, finalizers = [] } = object.metadata
    return world.api.patch(pathOf(of, object), 'merge', { metadata: { resourceVersion, finalizers: finalizers.filter((one) => one !== finalizer) } })
  }))
  return answers.every((answer) => answer.ok || answer.error.kind === 'notFound')
}

export const storageTroubles: Readonly<Record<string, TroubleKind>> = {
  'the attach/detach controller is stuck': controllerStuck,
  'a finalizer stays': finalizerStays,
}
