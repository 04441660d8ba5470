// Simulated time: a queue of timers that is turned by hand. Nothing here asks the machine for its time, so a world on this
// clock is a pure function of its seed.
//
// Why a run is deterministic although it yields real macrotasks: no code of the simulated world owns a real timer, socket or
// thread, so the only things that can be pending between two of our timers are promise reactions and (rarely) setImmediate
// callbacks. Node empties the promise queue, in the order in which it was filled, before it runs the next macrotask. So one
// yielded macrotask runs every chain to the point where it waits for this clock, and yielding on while Node still holds an
// immediate runs those that pass through setImmediate. How long that takes on the machine changes nothing.
import process from 'node:process'
import type { Ms } from '../core/model.ts'
import { waitOn, type Clock } from '../edge/clock.ts'

export interface VirtualClock extends Clock {
  /** Turns the queue until the given instant. Ends with `now()` exactly there. */
  runUntil(instant: Ms): Promise<void>
  runFor(span: Ms): Promise<void>
  /** Turns the queue until the predicate holds, asked after each instant; the answer says whether it ever did within `limit`. */
  runWhen(predicate: () => boolean, limit: Ms): Promise<boolean>
  /** Armed timers, for bounds in tests. */
  pending(): number
}

/** Wall time at the clock's zero. Any fixed instant does; records of simulated runs are read by people. */
const epoch = Date.UTC(2026, 0, 1)

/** A machine's timers know no shorter one; and code that waits out a rest which rounding made nothing must not spin. */
const shortestSpan: Ms = 1

interface Timer {
  readonly at: Ms
  readonly order: number
  run: (() => void) | undefined
}

export function virtualClock(start: Ms = 0, wallAtZero = epoch): VirtualClock {
  let now = start
  let armed = 0
  let live = 0
  let turning = false
  const queue = timerQueue()

  const clock: VirtualClock = {
    now: () => now,
    wall: () => wallAtZero + Math.floor(now),
    wait: (span, signal) => waitOn(clock, span, signal),
    after(span, run) {
      // A span that is no number would sort nowhere and stop the queue; it is a programming error of the caller.
      if (Number.isNaN(span)) throw new Error('a timer was armed with a span that is not a number')
      const timer: Timer = { at: now + Math.max(shortestSpan, span), order: armed++, run }
      queue.push(timer)
      live++
      return () => {
        if (timer.run === undefined) return
        timer.run = undefined
        live--
      }
    },
    runUntil: (instant) => turn(instant, () => false).then(() => undefined),
    runFor: (span) => turn(now + span, () => false).then(() => undefined),
    runWhen: (predicate, limit) => turn(now + limit, predicate),
    pending: () => live,
  }
  return clock

  async function turn(until: Ms, enough: () => boolean): Promise<boolean> {
    if (turning) throw new Error('the clock is already being turned: a simulated process must wait, not run the world')
    turning = true
    try {
      await settle()
      for (;;) {
        await turnInstant()
        if (enough()) return true
        const next = queue.peek()
        if (next === undefined || next.at > until) break
        now = Math.max(now, next.at)
      }
      now = Math.max(now, until)
      return enough()
    } finally {
      turning = false
    }
  }

  /** Fires all that is due now, each with its promise chains run out. */
  async function turnInstant(): Promise<void> {
    for (;;) {
      const due = queue.peek()
      if (due === undefined || due.at > now) return
      queue.pop()
      const run = due.run
      if (run === undefined) continue
      due.run = undefined
      live--
      run()
      await settle()
    }
  }
}

/** Most macrotasks in a row: more is a chain that feeds itself without ever waiting for the clock. */
const settleLimit = 10_000

async function settle(): Promise<void> {
  for (let yields = 0; yields < settleLimit; yields++) {
    await new Promise<void>((resolve) => {
      setImmediate(resolve)
    })
    if (!process.getActiveResourcesInfo().includes('Immediate')) return
  }
  throw new Error(`after ${settleLimit} macrotasks something still runs without waiting for the clock`)
}

/** A binary heap on (time, order of arming). Cancelled timers stay until they surface, where they are dropped. */
function timerQueue(): { push(timer: Timer): void; pop(): void; peek(): Timer | undefined } {
  const heap: Timer[] = []
  const before = (one: Timer, other: Timer) => one.at < other.at || (one.at === other.at && one.order < other.order)
  // Indices below come from the heap's own length, so an element is always there.
  const at = (index: number) => heap[index] as Timer

  const pop = () => {
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return
    let hole = 0
    for (;;) {
      const left = 2 * hole + 1
      if (left >= heap.length) break
      const right = left + 1
      const child = right < heap.length && before(at(right), at(left)) ? right : left
      if (!before(at(child), last)) break
      heap[hole] = at(child)
      hole = child
    }
    heap[hole] = last
  }

  return {
    pop,
    push(timer) {
      let hole = heap.push(timer) - 1
      while (hole > 0) {
        const parent = (hole - 1) >> 1
        if (!before(timer, at(parent))) break
        heap[hole] = at(parent)
        hole = parent
      }
      heap[hole] = timer
    },
    peek() {
      while (heap[0] !== undefined && heap[0].run === undefined) pop()
      return heap[0]
    },
  }
}
