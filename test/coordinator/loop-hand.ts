// A loop whose core is played by hand: what it wants, and what becomes of it.
import { runLoop, type Loop } from '../../coordinator/loop.ts'
import { createObservation } from '../../coordinator/observe.ts'
import type { Action, HoldAction } from '../../core/action.ts'
import type { BeatSeen, Ms } from '../../core/model.ts'
import { silentLog } from '../../edge/log.ts'
import { virtualClock, type VirtualClock } from '../../sim/clock.ts'

export interface Hand {
  readonly clock: VirtualClock
  readonly loop: Loop
  readonly observation: ReturnType<typeof createObservation>
  /** What the core wants, now. */
  wanted: readonly Action[]
  /** What becomes of an action. */
  does: (action: Action) => Promise<unknown>
  drains: () => Promise<void>
  readonly decidedAt: Ms[]
  /** Whether the core was told that nothing has happened. */
  readonly calm: boolean[]
  readonly begun: { readonly at: Ms; readonly what: string }[]
  readonly held: (readonly HoldAction[])[]
  readonly errors: string[]
  readonly drained: Ms[]
}

/** `heard`: what the agents of both nodes last said. */
export function hand(heard: () => BeatSeen | undefined = () => undefined): Hand {
  const clock = virtualClock()
  const observation = createObservation(clock, 'replica', { heard, forget: () => undefined })
  for (const name of ['node-1', 'node-2']) {
    observation.node({ metadata: { name, uid: name }, taints: [], inUse: [], address: '', kubeletPort: 0, bootId: '', machine: '', ready: { status: 'True', heartbeat: '' } })
  }
  const act = async (action: Action): Promise<unknown> => {
    on.begun.push({ at: clock.now(), what: action.do })
    return await on.does(action)
  }
  const on: Hand = {
    clock, observation, wanted: [], does: async () => true, drains: async () => undefined, decidedAt: [], calm: [], begun: [], held: [], errors: [], drained: [],
    loop: runLoop({
      clock, observation, log: { ...silentLog, error: (_, message) => on.errors.push(message) }, policies: () => [], refresh: () => undefined,
      async drained() {
        on.drained.push(clock.now())
        await on.drains()
      },
      look: act, deed: act, holds: (holds) => on.held.push(holds), decided: () => undefined,
      decide({ self }) {
        on.decidedAt.push(clock.now())
        on.calm.push(self.calm === true)
        return on.wanted
      },
    }),
  }
  return on
}

export const listPods: Action = { do: 'listPods', node: 'node-1' }
export const withdraw = (node = 'node-1'): Action => ({ do: 'withdraw', node, incident: `${node}-abc-1`, because: '' })
export const close: Action = { do: 'close', node: 'node-1', incident: 'node-1-abc-1', outcome: 'Recovered', because: '' }
export const times = (on: Hand, what: string): readonly Ms[] => on.begun.filter((one) => one.what === what).map((one) => one.at)
