// People who write a NodeFence, or on one that is open: that a node is to be fenced, that its silence is not to be answered, or that its machine is off. Whoever swears truly
// has pulled the plug and stands before it; whoever swears falsely has not looked.
import type { KubeObject } from '../../coordinator/api.ts'
import type { Ms } from '../../core/model.ts'
import { aNode, lasting, when, type Ground, type TroubleKind } from './trouble.ts'

type World = Ground['on']['world']

const fencesPath = '/apis/holdfast.dev/v1alpha1/nodefences'

interface Fence extends KubeObject { readonly spec: { readonly nodeName: string; readonly boot: string }; readonly status?: { readonly phase?: string; readonly proof?: object } }

function openFence({ server }: World, node: string): Fence | undefined {
  const fences = (server?.peek('nodefences.holdfast.dev') ?? []) as readonly Fence[] // that collection's kind
  return fences.find(({ spec, status }) => spec.nodeName === node && status?.phase !== 'Final')
}

function write(world: World, { metadata: { name } }: Fence, spec: object): void {
  void world.api.patch(`${fencesPath}/${name}`, 'merge', { spec })
}

/** A person reads, thinks and types for so long once the incident is there. */
const delays: readonly Ms[] = [1, 300, 1_500, 4_000, 9_000, 20_000]

/** On the node's next incident, if one is opened while the trouble lasts. */
function onItsIncident(say: (world: World, fence: Fence) => void, before?: (world: World, node: string) => void, end?: (world: World, node: string) => void): TroubleKind {
  return {
    class: 'people', weight: 2, waits: true,
    draw: (chance, scene) => ({ on: aNode(chance, scene), how: String(chance.pick(delays)) }),
    begin(ground, trouble) {
      const { world } = ground.on
      const node = ground.node(trouble)
      if (before !== undefined && world.nodes.get(node)?.machine.state() === 'booting') return undefined
      before?.(world, node)
      const forget = when(world, () => openFence(world, node) !== undefined, () => void world.clock.after(Number(trouble.how), () => {
        const fence = openFence(world, node)
        if (fence === undefined) return
        ground.strikes(trouble)
        say(world, fence)
      }))
      return () => {
        forget()
        end?.(world, node)
      }
    },
  }
}

/** Longer than any schedule has to go on. */
const validFor: Ms = 3_600_000

function acknowledge(world: World, fence: Fence): void {
  const until = new Date(world.clock.wall() + validFor).toISOString()
  write(world, fence, { acknowledge: { boot: fence.spec.boot, by: 'on call', reason: 'its plugs are in my hand', until } })
}

/** In time, and perhaps after it has freed something. */
function takesBack(world: World, fence: Fence): void {
  acknowledge(world, fence)
  world.clock.after(3_000, () => write(world, fence, { acknowledge: null }))
}

const standsByFor: Ms = 600_000

/** Of a node that may be as well as any. Who sees what comes of it may change his mind. */
const byHand: TroubleKind = {
  class: 'people', weight: 7,
  draw: (chance, scene) => ({ on: aNode(chance, scene), how: chance.pick(['and stands by it', 'and stands by it', 'and aborts it']) }),
  begin(ground, trouble) {
    const { world } = ground.on
    const name = `by-hand-${Math.round(world.clock.now())}`
    void world.api.create(fencesPath, { apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeFence', metadata: { name }, spec: { nodeName: ground.node(trouble) } })
    const abort = (): void => void world.api.patch(`${fencesPath}/${name}`, 'merge', { spec: { abort: true } })
    if (trouble.how === 'and aborts it') return abort
    // What nothing could prove for so long, as where no path is trusted, or what has used up its restarts, he reads there, and lets it be.
    world.clock.after(standsByFor, () => {
      const fence = openFence(world, ground.node(trouble))
      if (fence?.metadata.name === name && (fence.status?.proof === undefined || fence.status.phase === 'Error')) abort()
    })
    return lasting
  },
}

export const wordTroubles: Readonly<Record<string, TroubleKind>> = {
  'a person fences the node': byHand,
  'a person aborts the incident': onItsIncident((world, fence) => write(world, fence, { abort: true })),
  'a person acknowledges a machine that is off': onItsIncident(acknowledge, (world, node) => world.cutPower(node), (world, node) => world.powerOn(node)),
  'a person acknowledges a machine without having looked': onItsIncident(acknowledge),
  'a person takes an acknowledgement back': onItsIncident(takesBack),
}
