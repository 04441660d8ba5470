// How each node really is, and how long already: what judges know and the product can only guess. *Well* is a machine that runs,
// whose userspace has its turns, and that some living replica can reach and hear. It *speaks* if its agent runs there as well.
// *Lost* is one that runs, and that no living replica can reach or hear. *Dead* is a machine in which nothing moves: off, booting, frozen.
import type { Ms } from '../../core/model.ts'
import type { Host } from '../network.ts'
import type { World } from '../world.ts'
import { watchAilments, type Ailment } from './remedies.ts'

export interface Wellness {
  /** How long the node has been so without a break; 0: it is not. */
  wellFor(node: string): Ms
  speaksFor(node: string): Ms
  lostFor(node: string): Ms
  deadFor(node: string): Ms
  /** How long ago it was last silent; Infinity: it has spoken ever since somebody looked. */
  silentAgo(node: string): Ms
  /** What a remedy would be for, oldest first. */
  ailments(node: string): readonly Ailment[]
  ailsNow(node: string, of: Ailment['of']): boolean
  stop(): void
}

/** Shorter breaks than this are nothing that anybody could act on. */
const lookEvery: Ms = 250

export function watchWellness(world: World): Wellness {
  const [well, speaking, lost, dead] = [spans(world), spans(world), spans(world), spans(world)]
  const silentAt = new Map<string, Ms>()
  const ailments = watchAilments(world)
  let cancel: (() => void) | undefined
  const look = (): void => {
    const replicas = runningReplicas(world)
    for (const name of world.nodes.keys()) {
      const isWellNow = isWell(world, name, replicas)
      const speaksNow = isWellNow && agentRuns(world, name)
      well.look(name, isWellNow)
      speaking.look(name, speaksNow)
      lost.look(name, runs(world, name) && !isWellNow)
      dead.look(name, isDead(world, name))
      if (!speaksNow) silentAt.set(name, world.clock.now())
    }
    cancel = world.clock.after(lookEvery, look)
  }
  look()
  return {
    wellFor: (node) => (isWell(world, node) ? well.span(node) : 0),
    speaksFor: (node) => (isWell(world, node) && agentRuns(world, node) ? speaking.span(node) : 0),
    lostFor: (node) => (runs(world, node) && !isWell(world, node) ? lost.span(node) : 0),
    deadFor: (node) => (isDead(world, node) ? dead.span(node) : 0),
    silentAgo: (node) => world.clock.now() - (silentAt.get(node) ?? -Infinity),
    ailments: ailments.of,
    ailsNow: ailments.now,
    stop() {
      cancel?.()
      ailments.stop()
    },
  }
}

interface Spans {
  look(node: string, is: boolean): void
  /** As of the latest look. */
  span(node: string): Ms
}

function spans({ clock }: World): Spans {
  const since = new Map<string, Ms>()
  return {
    look(node, is) {
      if (!is) since.delete(node)
      else if (!since.has(node)) since.set(node, clock.now())
    },
    span: (node) => clock.now() - (since.get(node) ?? clock.now()),
  }
}

function isDead(world: World, name: string): boolean {
  const machine = world.nodes.get(name)?.machine
  return machine !== undefined && (machine.state() !== 'running' || machine.frozen())
}

function agentRuns(world: World, name: string): boolean {
  return world.nodes.get(name)?.agent()?.running() === true
}

function runs(world: World, name: string): boolean {
  const machine = world.nodes.get(name)?.machine
  return machine !== undefined && machine.state() === 'running' && !machine.frozen() && !machine.stuck()
}

function isWell(world: World, name: string, replicas: readonly Host[] = runningReplicas(world)): boolean {
  const machine = world.nodes.get(name)?.machine
  if (machine === undefined || !runs(world, name)) return false
  return replicas.some((host) => passes(world, host, machine.host) && passes(world, machine.host, host))
}

function runningReplicas({ replicas }: World): readonly Host[] {
  const hosts: Host[] = []
  for (const [number, { process }] of replicas.running) if (process.running()) hosts.push(replicas.host(number))
  return hosts
}

function passes({ network }: World, from: Host, to: Host): boolean {
  return network.reach(from, to, 'link') === 'open' && network.reach(from, to, 'probe') === 'open'
}
