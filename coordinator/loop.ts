// Observe, decide, act, again and again: on events, and four times a second anyway, because silence is no event. What is
// under way is not begun twice; what was decided is not remembered.
//
// Ticks keep a distance of ten times what the last one cost, at least 20 ms: a small cluster is answered at once, a large one
// spends a tenth of a core at worst. A tick that comes half a second late means that this process stood still: then the
// sockets are drained first, and every silence begins anew, because it was ours.
import { isLook, keyOf, type Action, type Deed, type HoldAction, type Look } from '../core/action.ts'
import { decide } from '../core/decide.ts'
import type { Ms } from '../core/model.ts'
import type { Policy } from '../core/policy.ts'
import type { Clock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import type { Observation } from './observe.ts'

export interface Loop {
  wake(): void
  stop(): void
}

export interface LoopOptions {
  readonly clock: Clock
  readonly log: Log
  readonly observation: Observation
  policies(): readonly Policy[]
  /** Brings the replica's own facts (term, freshness, other replicas) up to this instant. */
  refresh(): void
  drained(): Promise<void>
  look(look: Look): Promise<void>
  deed(deed: Deed): Promise<void>
  holds(holds: readonly HoldAction[]): void
  /** How long the decision took, and what was wanted. */
  decided(span: Ms, actions: readonly Action[]): void
}

const tickEvery: Ms = 250
const stallAfter: Ms = 500
const shortestDistance: Ms = 20
const distancePerCost = 10

export function runLoop(options: LoopOptions): Loop {
  const { clock, log, observation } = options
  let dueAt = clock.now()
  let lastAt = -Infinity
  let cost: Ms = 0
  let cancel = clock.after(0, () => void turn())
  let stopped = false
  let turning = false

  return {
    wake,
    stop() {
      stopped = true
      cancel()
    },
  }

  function wake(): void {
    const at = Math.max(clock.now(), lastAt + Math.min(tickEvery, Math.max(shortestDistance, distancePerCost * cost)))
    // A turn under way arms the next one itself.
    if (!stopped && !turning && at < dueAt) arm(at)
  }

  function arm(at: Ms): void {
    cancel()
    dueAt = at
    cancel = clock.after(Math.max(0, at - clock.now()), () => void turn())
  }

  async function turn(): Promise<void> {
    const late = clock.now() - dueAt
    turning = true
    if (late > stallAfter) {
      log.warn({ late }, 'this replica stood still; every silence begins anew')
      await options.drained()
      observation.seen.self.awakeSince = clock.now()
    }
    turning = false
    if (stopped) return
    lastAt = clock.now()
    arm(lastAt + tickEvery)
    options.refresh()
    const actions = decide(observation.seen, clock.now(), options.policies())
    cost = clock.now() - lastAt
    options.decided(cost, actions)
    for (const action of actions) begin(action)
    options.holds(actions.filter((action) => action.do === 'hold'))
  }

  function begin(action: Action): void {
    if (action.do === 'hold') return
    const row = observation.row(action.node)
    const key = keyOf(action)
    if (row === undefined || row.busy.has(key)) return
    row.busy.add(key)
    const work = isLook(action) ? options.look(action) : options.deed(action)
    void work
      .catch((error: unknown) => log.error({ node: action.node, action: action.do, error }, 'an action ended by a fault of its own'))
      .finally(() => {
        row.busy.delete(key)
        wake()
      })
  }
}
