// Observe, decide, act, again and again: on events, and four times a second anyway, because silence is no event. What is
// under way is not begun twice; what was decided is not remembered. What came to nothing rests a little before it is begun
// again, longer each time: an API server that refuses must not be asked fifty times a second what it has just refused.
//
// Ticks keep a distance of ten times what the last one cost, all that follows from it included, at least 20 ms: a small cluster is answered at once, a large one
// spends a tenth of a core at worst. A tick that comes half a second late means that this process stood still: then the
// sockets are drained first, and every silence begins anew, because it was ours.
//
// Most ticks find nothing new. What no instant hangs on (audits, the word on each gate and permit) is looked over after an event,
// and once a second; the ticks between are calm. Over thousands of nodes that is half of what a tick costs. And where no incident is
// open and the last decision wanted nothing, a calm tick decides only if a silence has become long enough to mean more since then.
//
// That a silence has become long enough to mean more is no event, and neither is it one that a second word of a device counts
// from now on: so a tick is set for that very instant.
import { isLook, keyOf, type Action, type Deed, type HoldAction, type Look } from '../core/action.ts'
import { decide } from '../core/decide.ts'
import { ripensAt } from '../core/judge.ts'
import type { Ms } from '../core/model.ts'
import type { Policy } from '../core/policy.ts'
import { apart } from '../core/reading.ts'
import type { Clock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import type { Observation } from './observe.ts'

export interface Loop {
  wake(): void
  /** Something is under way that is over within the hundreds of milliseconds, and what follows from it waits. Programs take their time. */
  hurries(): boolean
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
  /** False: it came to nothing. */
  look(look: Look): Promise<unknown>
  deed(deed: Deed): Promise<unknown>
  holds(holds: readonly HoldAction[]): void
  /** How long the decision took, and what was wanted. */
  decided(span: Ms, actions: readonly Action[]): void
  /** The core's own; another one in tests. */
  readonly decide?: typeof decide
}

const tickEvery: Ms = 250
const stallAfter: Ms = 500
const shortestDistance: Ms = 20
/** Timers count whole milliseconds and come up to one early, and an instant of which another is taken away again is short by a
 *  hair: what is looked at a hair too soon is looked at again a quarter of a second later. */
const grain: Ms = 1
const distancePerCost = 10
const lookOverEvery: Ms = 1_000
/** From the beginning of a look to the beginning of the same one. */
const lookEvery: Ms = 100
/** From the beginning of what came to nothing, the second time in a row, to its next one; then doubled. */
const firstRest: Ms = 250
const longestRest: Readonly<Record<'look' | 'deed', Ms>> = { look: 1_000, deed: 4_000 }
/** A failure is remembered so long after its rest. */
const rememberedFor: Ms = 60_000

/** When an action may be begun again, and how often in a row it came to nothing. */
interface Pace {
  readonly until: Ms
  readonly failures: number
}

export function runLoop(options: LoopOptions): Loop {
  const { clock, log, observation } = options
  const paces = new Map<string, Pace>()
  /** What is under way on nodes of which there is no row: their incidents are open still. */
  const busyElsewhere = new Set<string>()
  /** Instants from which on a device's next word counts. */
  let secondWords: Ms[] = []
  let dueAt = clock.now()
  let lastAt = -Infinity
  let cost: Ms = 0
  let fault = ''
  let cancel = clock.after(0, () => void turn())
  let stopped = false
  let turning = false
  /** Looks and deeds under way, other than programs that only ask. */
  let hurried = 0
  /** Something happened since the last turn. */
  let woken = true
  /** The last decision, and whether it left anything to be seen to at the next tick. */
  let decided = { at: -Infinity, left: true }
  /** The last turn that was not calm, and how many audits could be begun then. */
  let lookedOver = { at: -Infinity, budget: 0 }

  return {
    wake: () => happened(),
    hurries: () => hurried > 0,
    stop() {
      stopped = true
      cancel()
    },
  }

  function happened(): void {
    woken = true
    wake(clock.now())
  }

  function wake(at: Ms): void {
    const soonest = Math.max(at, lastAt + Math.min(tickEvery, Math.max(shortestDistance, distancePerCost * cost)))
    // A turn under way arms the next one itself.
    if (!stopped && !turning && soonest < dueAt) arm(soonest)
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
      await options.drained().catch((error: unknown) => log.error({ error }, 'what arrived meanwhile could not be awaited')) // we are blind for a second anyway
      observation.seen.self.awakeSince = clock.now()
      woken = true
    }
    turning = false
    if (stopped) return
    lastAt = clock.now()
    arm(lastAt + tickEvery)
    const second = secondWords.some((at) => at <= lastAt)
    if (secondWords.length > 0) secondWords = secondWords.filter((at) => at > lastAt)
    for (const at of secondWords) wake(at)
    const ripe = ripened()
    try {
      act(ripe || second)
      fault = ''
    } catch (error) {
      // A fault of ours in one decision: the next one is made of other facts. It must not end the process, because the next
      // leader would meet the same facts.
      const text = String(error)
      if (text !== fault) log.error({ error }, 'a decision could not be made; nothing is begun')
      fault = text
    }
  }

  /** Whether a silence has come to mean more since the last decision. Sets a tick for when the next one does. */
  function ripened(): boolean {
    if (observation.seen.self.term === undefined) return false
    const next = ripensAt(observation.seen, decided.at)
    wake((next > lastAt ? next : ripensAt(observation.seen, lastAt)) + grain)
    return next <= lastAt
  }

  function act(due: boolean): void {
    options.refresh()
    const { self, incidents } = observation.seen
    self.calm = !woken && lastAt - lookedOver.at < lookOverEvery && self.auditBudget === lookedOver.budget
    if (self.calm && !due && !decided.left) return
    if (!self.calm) lookedOver = { at: lastAt, budget: self.auditBudget }
    woken = false
    decided = { at: lastAt, left: true }
    const actions = (options.decide ?? decide)(observation.seen, clock.now(), options.policies())
    decided.left = actions.length > 0 || [...incidents.values()].some(({ status }) => status.phase !== 'Final')
    options.decided(clock.now() - lastAt, actions)
    forgetPaces()
    for (const action of actions) begin(action)
    options.holds(actions.filter((action) => action.do === 'hold'))
    cost = clock.now() - lastAt
  }

  function begin(action: Action): void {
    if (action.do === 'hold') return
    const busy = observation.row(action.node)?.busy ?? busyElsewhere
    const key = keyOf(action)
    const paceKey = `${action.do} ${key}`
    const began = clock.now()
    if (busy.has(key) || began < (paces.get(paceKey)?.until ?? -Infinity)) return
    busy.add(key)
    const hurry = action.do === 'askDevice' ? 0 : 1
    hurried += hurry
    if (isLook(action)) paces.set(paceKey, { until: began + lookEvery, failures: paces.get(paceKey)?.failures ?? 0 })
    const work = isLook(action) ? options.look(action) : options.deed(action)
    void work
      .catch((error: unknown) => {
        log.error({ node: action.node, action: action.do, error }, 'an action ended by a fault of its own')
        return false
      })
      .then((answer) => {
        busy.delete(key)
        hurried -= hurry
        const well = answer !== false
        if (action.do === 'askDevice' && well) secondWord(clock.now() + apart + grain)
        if (pace(action, paceKey, began, well)) happened()
      })
  }

  function secondWord(at: Ms): void {
    secondWords.push(at)
    wake(at)
  }

  /** Whether it may be begun again at once. A first failure is in the course of things: another one wrote, or was faster. */
  function pace(action: Look | Deed, key: string, began: Ms, well: boolean): boolean {
    const failures = well ? 0 : (paces.get(key)?.failures ?? 0) + 1
    const [kind, shortest] = isLook(action) ? ['look', lookEvery] as const : ['deed', 0] as const
    const rest = failures < 2 ? shortest : Math.max(shortest, Math.min(longestRest[kind], firstRest * 2 ** Math.min(failures - 2, 10)))
    if (failures === 0 && kind === 'deed') paces.delete(key)
    else paces.set(key, { until: began + rest, failures })
    return failures < 2
  }

  function forgetPaces(): void {
    const now = clock.now()
    for (const [key, { until, failures }] of paces) if (now - until > (failures === 0 ? 0 : rememberedFor)) paces.delete(key)
  }
}
