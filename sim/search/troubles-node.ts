// Machines that die, freeze, hang, reboot and change, and the programs on them.
import type { KubeObject } from '../../coordinator/api.ts'
import { isStaged } from '../mounts.ts'
import { aNode, lasting, when, type Ground, type TroubleClass, type TroubleKind } from './trouble.ts'
import { mayStandStill } from './watchdogs.ts'

type World = Ground['on']['world']

/** `begin` says false where there is nothing to strike. */
function kind(on: TroubleClass, begin: (world: World, node: string, span: number) => boolean | void, end?: (world: World, node: string) => void, weight = 1): TroubleKind {
  return {
    class: on, weight,
    draw: (chance, scene) => ({ on: aNode(chance, scene) }),
    begin(ground, trouble) {
      const { world } = ground.on
      const node = ground.node(trouble)
      if (world.nodes.get(node)?.machine.state() !== 'running') return undefined
      if (begin(world, node, trouble.span) === false) return undefined
      return end === undefined ? lasting : () => end(world, node)
    },
  }
}

interface Fence extends KubeObject { readonly spec: { readonly nodeName: string }; readonly status?: { readonly phase?: string; readonly proof?: { readonly kind: string } } }

const fencesOf = (world: World, node: string): readonly Fence[] =>
  ((world.server?.peek('nodefences.holdfast.dev') ?? []) as readonly Fence[]).filter(({ spec, status }) => spec.nodeName === node && status?.phase !== 'Final') // that collection's kind

/** It waits for its moment, which it knows from the API server's store, and then so long as was drawn. */
function inItsIncident(so: (fence: Fence) => boolean, before: (world: World, node: string) => void, act: (world: World, node: string) => void, delays: readonly number[]): TroubleKind {
  return {
    class: 'node', weight: 2, waits: true,
    draw: (chance, scene) => ({ on: aNode(chance, scene), how: String(chance.pick(delays)) }),
    begin(ground, trouble) {
      const { world } = ground.on
      const node = ground.node(trouble)
      if (world.nodes.get(node)?.machine.state() !== 'running') return undefined
      before(world, node)
      return when(world, () => fencesOf(world, node).some(so), () => void world.clock.after(Number(trouble.how), () => {
        ground.strikes(trouble)
        act(world, node)
      }))
    },
  }
}

/** What is done in one of several ways. */
function inOneWay(choices: Readonly<Record<string, (world: World, node: string) => void>>, end: (world: World, node: string) => void): TroubleKind {
  const begins = (world: World, node: string, how: string) => choices[how]?.(world, node)
  return {
    class: 'node',
    draw: (chance, scene) => ({ on: aNode(chance, scene), how: chance.pick(Object.keys(choices)) }),
    begin(ground, trouble) {
      const { world } = ground.on
      const node = ground.node(trouble)
      if (world.nodes.get(node)?.machine.state() !== 'running') return undefined
      begins(world, node, trouble.how ?? '')
      return () => end(world, node)
    },
  }
}

/** A boot later than its beginning shows it, whatever the machine does then. */
const outlivesBoot: TroubleKind = {
  class: 'storage',
  draw: (chance, scene) => ({ on: aNode(chance, scene), how: chance.pick(['folders', 'staged mounts']) }),
  begin(ground, trouble) {
    const { world } = ground.on
    const node = ground.node(trouble)
    const faults = world.nodes.get(node)?.faults
    if (faults === undefined) return undefined
    faults.kept = trouble.how === 'folders' ? 'folders' : 'staged mounts'
    return () => void world.clock.after(tidiedAfter, () => tidied(world, node))
  },
}

/** Long enough for a node to have been let back, if nothing else were asked of it. */
const tidiedAfter = 60_000

const hour = 3_600_000

const agentRuns = (world: World, node: string): boolean => world.nodes.get(node)?.agent() !== undefined

export const nodeTroubles: Readonly<Record<string, TroubleKind>> = {
  'power is lost': kind('death for good', (world, node) => world.cutPower(node), undefined, 4),
  'the kernel freezes for good': kind('death for good', (world, node) => world.freeze(node), undefined, 3),
  'power is lost and comes back': kind('death', (world, node) => world.cutPower(node), (world, node) => world.powerOn(node), 2),
  'the kernel freezes and thaws': kind('death', (world, node) => world.freeze(node), (world, node) => world.thaw(node), 3),
  'the machine reboots': kind('death', (world, node) => world.reboot(node, 1_500), undefined, 2),
  'the machine shuts down': kind('node', (world, node) => world.shutDown(node, 'off'), (world, node) => world.powerOn(node)),
  'the machine reboots in good order': kind('node', (world, node) => world.shutDown(node, 'reboot')),
  'the power button is pressed': kind('people', (world, node) => world.pressPowerButton(node), (world, node) => world.powerOn(node)),
  'another machine comes under the name': kind('node', (world, node) => world.replaceMachine(node, otherBoard(node)), (world, node) => world.powerOn(node)),
  'the machine hibernates and wakes': kind('node', (world, node) => world.hibernate(node), (world, node) => world.powerOn(node)),
  'the machine reboots in its incident': inItsIncident(() => true, () => undefined, (world, node) => world.reboot(node, 4_000), [1, 300, 1_500, 4_000, 9_000]),
  'power is lost and comes back once found off': inItsIncident(({ status }) => status?.proof !== undefined, (world, node) => world.cutPower(node), (world, node) => world.powerOn(node), [1, 200, 700, 1_500, 4_000]),
  'the machine migrates': { fits: mayStandStill, ...inOneWay({ 'at once': (world, node) => world.migrate(node, 300), 'in two seconds': (world, node) => world.migrate(node, 2_000), 'in eight': (world, node) => world.migrate(node, 8_000) }, () => undefined) },
  'the machine is slow': inOneWay({ somewhat: (world, node) => world.slow(node, 800), badly: (world, node) => world.slow(node, 4_000) }, (world, node) => world.unslow(node)),
  'the clock of a node is set': inOneWay({ 'an hour back': (world, node) => world.setClock(node, -hour), 'an hour ahead': (world, node) => world.setClock(node, hour), 'half a minute ahead': (world, node) => world.setClock(node, 30_000) }, (world, node) => world.setClock(node, 0)),
  'the runtime fails': inOneWay({ hangs: (world, node) => world.failRuntime(node, 'hangs'), dead: (world, node) => world.failRuntime(node, 'dead') }, (world, node) => world.mendRuntime(node)),
  'userspace is stuck': kind('node', (world, node) => world.stick(node), (world, node) => world.unstick(node)),
  'the kubelet is dead': kind('node', (world, node) => world.killKubelet(node), (world, node) => world.startKubelet(node)),
  'the agent is dead': kind('node', (world, node) => (agentRuns(world, node) ? world.killAgent(node) : false), (world, node) => world.startAgent(node), 2),
  'the agent crashes': kind('node', (world, node) => (agentRuns(world, node) ? world.killAgent(node, false) : false)),
  'the agent is upgraded': kind('node', (world, node) => (agentRuns(world, node) ? world.restartAgent(node) : false)),
  'a firewall swallows the kubelet port': portTrouble((world, node) => world.firewallKubeletPort(node)),
  'the kubelet port resets': portTrouble((world, node) => world.resetKubeletPort(node)),
  'what pods leave outlives a boot': outlivesBoot,
  'unmounts hang': kind('storage', (world, node) => setUnmount(world, node, 'hangs'), (world, node) => setUnmount(world, node, 'well')),
  'a staged mount is forgotten': kind('storage', (world, node) => setUnmount(world, node, 'forgets staging'), (world, node) => setUnmount(world, node, 'well')),
}

/** Somebody unmounts what no pod uses; the folders go by themselves. */
function tidied(world: World, node: string): void {
  const there = world.nodes.get(node)
  if (there === undefined) return
  there.faults.kept = 'nothing'
  const mounts = [...there.machine.mounts.values()]
  const used = new Set(mounts.filter((mount) => !isStaged(mount)).map(({ volume }) => volume))
  for (const mount of mounts) if (isStaged(mount) && !used.has(mount.volume)) there.machine.mounts.delete(mount.path)
}

/** A UUID that no other machine of the run bears, the same one in each run. */
function otherBoard(node: string): string {
  return `00000000-0000-4000-8000-${node.replaceAll(/\D/g, '').padStart(12, '0')}`
}

function portTrouble(begin: (world: World, node: string) => () => void): TroubleKind {
  return { class: 'node', draw: (chance, scene) => ({ on: aNode(chance, scene) }), begin: (ground, trouble) => begin(ground.on.world, ground.node(trouble)) }
}

function setUnmount(world: World, node: string, unmount: 'well' | 'hangs' | 'forgets staging'): void {
  const there = world.nodes.get(node)
  if (there !== undefined) there.faults.unmount = unmount
}
