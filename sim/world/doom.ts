// Where a replica's death lies in wait: at its n-th write or order, before that leaves, once it is sent, or when its answer
// comes, and a span or so many turns of the promise queue later; or at the n-th thing of any kind that is handed over to it.
// Whatever its code waits for, it can die there.
import type { ProgramRun, Programs } from '../../coordinator/host.ts'
import type { Transport } from '../../coordinator/transport.ts'
import type { Ms } from '../../core/model.ts'
import type { Clock } from '../../edge/clock.ts'
import type { Process } from '../process.ts'

export interface Doom {
  /** `write`: to the API server, its own Lease's renewals apart. `change`: such a write that is no Event. `turn`: whatever is handed over to it. */
  readonly at: 'write' | 'change' | 'order' | 'turn'
  /** Counted from 1. */
  readonly nth: number
  readonly when: 'before' | 'sent' | 'answered'
  /** A program runs for a while: its replica may die at any moment of that. */
  readonly later: Ms
  /** Turns of the promise queue after that, in which no time passes. */
  readonly turns: number
}

export interface Mortal {
  /** One at a time: a second replaces the first. The answer calls it off. */
  doom(doom: Doom): () => void
  transport(inner: Transport): Transport
  programs(inner: Programs): Programs
}

export function mortal(world: Pick<Clock, 'after'>, process: Process, die: (doom: Doom) => void): Mortal {
  let live: { readonly doom: Doom; left: number } | undefined

  const strike = (doom: Doom) => {
    if (doom.later > 0) world.after(doom.later, () => die(doom))
    else turnsLater(doom.turns, () => die(doom))
  }
  const meet = (at: Doom['at']): Doom | undefined => {
    if (live?.doom.at !== at) return undefined
    live.left -= 1
    if (live.left > 0) return undefined
    const { doom } = live
    live = undefined
    return doom
  }
  const meeting = <T>(doom: Doom, act: () => Promise<T>): Promise<T> => {
    if (doom.when === 'before') {
      die(doom)
      return new Promise(() => undefined)
    }
    const answer = act()
    if (doom.when === 'sent') {
      strike(doom)
      return answer
    }
    return answer.finally(() => strike(doom))
  }
  return {
    doom(doom) {
      const own = { doom, left: doom.nth }
      live = own
      if (doom.at === 'turn') process.afterHanded(doom.nth, () => { if (live === own) strike(doom) })
      return () => { if (live === own) live = undefined }
    },
    transport: (inner) => (request, signal) => {
      const doom = request.method === 'GET' || request.path.includes('/leases') ? undefined : meet('write') ?? (request.path.includes('/events') ? undefined : meet('change'))
      return doom === undefined ? inner(request, signal) : meeting(doom, () => inner(request, signal))
    },
    programs: (inner) => ({
      run(run) {
        const doom = orders(run) ? meet('order') : undefined
        return doom === undefined ? inner.run(run) : meeting(doom, () => inner.run(run))
      },
    }),
  }
}

const orders = ({ stdin }: ProgramRun): boolean => /^action=(off|on)$/m.test(stdin)

function turnsLater(turns: number, run: () => void): void {
  if (turns <= 0) run()
  else queueMicrotask(() => turnsLater(turns - 1, run))
}
