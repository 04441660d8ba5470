// Which nodes were in truth well, and how long already: what the judge of restraint knows and the product can only guess.
// Well is a machine that runs, whose userspace has its turns, and that some living replica can reach and hear.
import type { Ms } from '../../core/model.ts'
import type { World } from '../world.ts'

export interface Wellness {
  /** How long the node has been well without a break; 0: it is not. */
  wellFor(node: string): Ms
  stop(): void
}

/** Shorter breaks than this are nothing that anybody could act on. */
const lookEvery: Ms = 250

export function watchWellness(world: World): Wellness {
  const since = new Map<string, Ms>()
  let cancel: (() => void) | undefined
  const look = (): void => {
    const now = world.clock.now()
    for (const name of world.nodes.keys()) {
      if (!isWell(world, name)) since.delete(name)
      else if (!since.has(name)) since.set(name, now)
    }
    cancel = world.clock.after(lookEvery, look)
  }
  look()
  return {
    wellFor: (node) => (since.has(node) && isWell(world, node) ? world.clock.now() - (since.get(node) ?? 0) : 0),
    stop: () => cancel?.(),
  }
}

function isWell(world: World, name: string): boolean {
  const machine = world.nodes.get(name)?.machine
  if (machine === undefined || machine.state() !== 'running' || machine.frozen() || machine.stuck()) return false
  return [...world.replicas.running].some(([number, { process }]) => {
    const host = world.replicas.host(number)
    const open = (from: typeof host, to: typeof host) => (['link', 'probe'] as const).every((plane) => world.network.reach(from, to, plane) === 'open')
    return process.running() && open(host, machine.host) && open(machine.host, host)
  })
}
