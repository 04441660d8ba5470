// Replicas that die, at a time or at whatever they are waiting for, stop, or stand still and go on as deposed leaders.
import type { Chance } from '../chance.ts'
import type { Doom } from '../world/doom.ts'
import { aReplica, type TroubleKind } from './trouble.ts'

const gone = (end: 'kill' | 'stop'): TroubleKind => ({
  class: 'replica', weight: end === 'kill' ? 3 : 1,
  draw: (chance, scene) => ({ on: aReplica(chance, scene) }),
  begin(ground, trouble) {
    const number = ground.replica(trouble)
    if (number === undefined) return undefined
    const { world } = ground.on
    if (end === 'kill') world.killReplica(number)
    else world.stopReplica(number)
    return () => world.startReplica(number)
  },
})

/** Where exactly it dies is drawn: at which of its writes or orders, on what side of it, and how many turns of the promise
 *  queue later. It is started again at the end, if it came to that. */
const dies = (at: Doom['at'], mostNth: number, laters: readonly number[]): TroubleKind => ({
  class: 'replica', weight: 2, waits: true,
  draw: (chance, scene) => ({ on: aReplica(chance, scene), how: drawDoom(chance, mostNth, laters) }),
  begin(ground, trouble) {
    const number = ground.replica(trouble)
    if (number === undefined) return undefined
    const { world } = ground.on
    const { identity } = world.replicas.running.get(number) ?? {}
    const forget = world.truth.listen(({ what, facts }) => void (what === 'replica dies at an await' && facts['replica'] === identity && facts['at'] === at && ground.strikes(trouble)))
    const callOff = world.doomReplica(number, { at, ...readDoom(trouble.how) })
    return () => {
      forget()
      callOff()
      world.startReplica(number)
    }
  },
})

const moments = ['before', 'sent', 'answered'] as const

function drawDoom(chance: Chance, mostNth: number, laters: readonly number[]): string {
  return [1 + chance.below(mostNth), chance.pick(moments), chance.pick(laters), chance.below(12)].join(' ')
}

function readDoom(how = ''): Omit<Doom, 'at'> {
  const [nth, when, later, turns] = how.split(' ')
  return { nth: Number(nth), when: moments.find((moment) => moment === when) ?? 'before', later: Number(later), turns: Number(turns) }
}

/** Whoever accepts what a watchdog proves lets no replica's machine be made to stand still: docs/safety.md assumes it. */
const paused = (clocks: 'standing' | 'running'): TroubleKind => ({
  class: 'replica', weight: 2,
  fits: (scene) => clocks === 'running' || scene.watchdog === undefined,
  draw: (chance, scene) => ({ on: aReplica(chance, scene) }),
  begin(ground, trouble) {
    const number = ground.replica(trouble)
    if (number === undefined) return undefined
    ground.on.world.pauseReplica(number, trouble.span, clocks)
    return () => undefined
  },
})

const allGone: TroubleKind = {
  class: 'replica',
  draw: () => ({ on: '' }),
  begin({ on: { world } }) {
    const numbers = [...world.replicas.running.keys()]
    for (const number of numbers) world.killReplica(number)
    return () => numbers.forEach((number) => world.startReplica(number))
  },
}

const rates: Readonly<Record<string, number>> = { fast: 1.05, slow: 0.95 }

/** Both are far beyond what a machine's crystal does, and within what a virtual machine has been seen to do. */
const clocksRun: TroubleKind = {
  class: 'replica',
  draw: (chance, scene) => ({ on: aReplica(chance, scene), how: chance.pick(Object.keys(rates)) }),
  begin(ground, trouble) {
    const process = ground.on.world.replicas.running.get(ground.replica(trouble) ?? -1)?.process
    if (process === undefined) return undefined
    process.setRate(rates[trouble.how ?? ''] ?? 1)
    return () => process.setRate(1)
  },
}

const wallJumps: TroubleKind = {
  class: 'replica',
  draw: (chance, scene) => ({ on: aReplica(chance, scene), how: chance.pick(['-3600', '3600']) }),
  begin(ground, trouble) {
    const process = ground.on.world.replicas.running.get(ground.replica(trouble) ?? -1)?.process
    if (process === undefined) return undefined
    process.jumpWall(Number(trouble.how) * 1_000)
    return () => process.jumpWall(-Number(trouble.how) * 1_000)
  },
}

export const replicaTroubles: Readonly<Record<string, TroubleKind>> = {
  'a replica is killed': gone('kill'),
  'a replica stops in good order': gone('stop'),
  'a replica stands still, its clocks too': paused('standing'),
  'a replica stands still, its clocks run': paused('running'),
  'every replica is killed': allGone,
  'a replica dies at a write': dies('write', 25, [0]),
  'a replica dies at an order': dies('order', 3, [0, 0, 40, 300, 1_500]),
  'a replica dies at any await': dies('turn', 600, [0]),
  'a replica\'s clocks run wrong': clocksRun,
  'a replica\'s wall clock jumps': wallJumps,
}
