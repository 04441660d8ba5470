// A person tries a node's fence path before it is needed: the node is cordoned and drained, switched off by the command line's own drill, and takes
// the StatefulSet's pod when it is back. Then its kernel freezes: what the drill has proven is believed in earnest.
import { carryOutDrill, drillOf } from '../../cli/drill.ts'
import { readCluster } from '../../cli/cluster.ts'
import type { KubeObject } from '../../coordinator/api.ts'
import type { Ms } from '../../core/model.ts'
import { patchNode, podsOn } from './troubles-hands.ts'
import { aNode, when, type Ground, type TroubleKind } from './trouble.ts'

type World = Ground['on']['world']

/** Of each step that a person waits for. */
const waitsFor: Ms = 90_000

export const drillPassed = 'a drill passed'

/** False: he was called off, or lost patience. */
type Until = (so: () => boolean) => Promise<boolean>

async function drill(world: World, node: string, until: Until): Promise<boolean> {
  cordon(world, node, true)
  clearOf(world, node)
  if (!await until(() => podsOn(world, node).length === 0 && attachmentsOf(world, node) === 0)) return false
  const asked = drillOf(await readCluster(world.api, world.settings.systemNamespace), node)
  if ('refused' in asked) return false
  const { passed } = await carryOutDrill(world.api, world.clock, { ...asked.draft, name: `${node}-drill` }, () => undefined)
  cordon(world, node, false)
  if (passed) world.truth.note(drillPassed, { node })
  return passed
}

/** Nobody else takes it while it is on its way. */
async function moveTo(world: World, node: string, until: Until): Promise<boolean> {
  const others = [...world.nodes.keys()].filter((name) => name !== node)
  for (const name of others) cordon(world, name, true)
  for (const name of others) clearOf(world, name, 'db-0')
  const moved = await until(() => podsOn(world, node).some(({ metadata, status }) => metadata.name === 'db-0' && status?.phase === 'Running'))
  for (const name of others) cordon(world, name, false)
  return moved
}

const cordon = (world: World, node: string, yes: boolean): void => patchNode(world, node, { spec: { unschedulable: yes ? true : null } })

/** With their own grace. */
function clearOf(world: World, node: string, only?: string): void {
  for (const { metadata: { namespace, name, uid = '' } } of podsOn(world, node)) {
    if (only === undefined || name === only) void world.api.remove(`/api/v1/namespaces/${namespace}/pods/${name}`, { preconditions: { uid } })
  }
}

interface Attachment extends KubeObject { readonly spec: { readonly nodeName: string } }

function attachmentsOf({ server }: World, node: string): number {
  return ((server?.peek('volumeattachments.storage.k8s.io') ?? []) as readonly Attachment[]).filter(({ spec }) => spec.nodeName === node).length // that collection's kind
}

/** Devices that tell a machine's own UUID need no drill. */
const drilled: TroubleKind = {
  class: 'people', weight: 4, spans: [[120_000, 200_000]],
  fits: ({ power = 'bmc', bare }) => !['bmc', 'enclosure', 'fabric, then bmc'].includes(power) && bare === undefined,
  draw: (chance, scene) => ({ on: aNode(chance, scene), how: chance.pick(['and it freezes', 'and it freezes', 'and all is well']) }),
  begin(ground, trouble) {
    const { world } = ground.on
    const node = ground.node(trouble)
    let over = false
    const until: Until = (so) => new Promise((resolve) => {
      const end = world.clock.now() + waitsFor
      when(world, () => over || so() || world.clock.now() >= end, () => resolve(!over && so()), 500)
    })
    void (async () => {
      if (!await drill(world, node, until) || !await moveTo(world, node, until)) return
      if (!over && trouble.how === 'and it freezes') world.freeze(node)
    })()
    return () => {
      over = true
      for (const name of world.nodes.keys()) cordon(world, name, false)
      world.thaw(node)
    }
  },
}

export const drillTroubles: Readonly<Record<string, TroubleKind>> = { 'a node is drilled': drilled }
