// Simulated time: a queue of timers that is turned by hand. Nothing here asks the machine for its time, so a world on this
// clock is a pure function of its seed.
//
// Why a run is deterministic although it goes through real macrotasks: no code of the simulated world owns a real timer,
// socket or thread, so the only things that can be pending between two of our timers are promise reactions and (rarely)
// setImmediate callbacks. The promise queue is emptied, in the order in which it was filled, after each timer: so each fires
// after every chain has run to the point where it waits for this clock; and while Node holds an immediate that is not ours,
// none fires. How long that takes on the machine changes nothing.
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
        queue.cancelled()
      }
    },
    runUntil: (instant) => turn(instant, () => false).then(() => undefined),
    runFor: (span) => turn(now + span, () => false).then(() => undefined),
    runWhen: (predicate, limit) => turn(now + limit, predicate),
    pending: () => live,
  }
  return clock

  function turn(until: Ms, enough: () => boolean): Promise<boolean> {
    if (turning) return Promise.reject(new Error('the clock is already being turned: a simulated process must wait, not run the world'))
    turning = true
    return inMacrotasks(() => {
      const due = queue.peek()
      if (due === undefined || due.at > now) {
        if (enough()) return true
        if (due === undefined || due.at > until) {
          now = Math.max(now, until)
          return false
        }
        now = due.at
      }
      fire()
      return undefined
    }).finally(() => { turning = false })
  }

  function fire(): void {
    const due = queue.peek()
    queue.pop()
    const run = due?.run
    if (due === undefined || run === undefined) return
    due.run = undefined
    live--
    run()
  }
}

/** Most macrotasks in a row in which a chain feeds itself without ever waiting for the clock. */
const settleLimit = 10_000
/** Steps in one macrotask: whoever turns a world for minutes still lets the machine's own news in. */
const stepsAMacrotask = 256
/** Immediates of every clock in this process: what Node holds beyond them belongs to a chain that still runs. */
let ours = 0

/** Calls `step` again and again, each time only when every chain has run out, until it gives an answer. */
function inMacrotasks<T>(step: () => T | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    let unsettled = 0
    const schedule = () => {
      ours++
      setImmediate(() => {
        ours--
        try {
          take()
        } catch (error) {
          // Whoever turns the clock hears of a fault in what it turned.
          reject(error as Error)
        }
      })
    }
    const take = (): void => {
      for (let left = stepsAMacrotask; left > 0; left--) {
        if (immediates() > ours) {
          // Somebody else's immediate must run first.
          if (++unsettled > settleLimit) throw new Error(`after ${settleLimit} macrotasks something still runs without waiting for the clock`)
          break
        }
        unsettled = 0
        const answer = step()
        if (answer !== undefined) return resolve(answer)
        drain()
      }
      schedule()
    }
    schedule()
  })
}

/** Runs every promise chain until it waits for something: what Node does itself between two macrotasks, at a fraction of their
 *  cost. Node keeps the name because it was always there to be called, and documents it no further; its types leave it out. */
const drain = (process as unknown as { _tickCallback(): void })._tickCallback

/** All that Node holds now. A plain loop: it is asked before every timer of the world. */
function immediates(): number {
  let count = 0
  for (const kind of process.getActiveResourcesInfo()) if (kind === 'Immediate') count++
  return count
}

interface TimerQueue {
  push(timer: Timer): void
  pop(): void
  peek(): Timer | undefined
  /** One of its timers will not run. */
  cancelled(): void
}

/** A binary heap on (time, order of arming), with the times kept beside the timers: what is compared all day lies in a plain row of
 *  numbers, and the order is looked up where two times are equal. Cancelled timers stay until they surface or are the greater part:
 *  most deadlines are cancelled long before their time, and a heap full of them would make each turn slow. */
function timerQueue(): TimerQueue {
  let timers: Timer[] = []
  let ats: Ms[] = []
  let dead = 0
  // Indices below come from the heap's own length, so an element is always there.
  const at = (index: number) => ats[index] as Ms
  const order = (index: number) => (timers[index] as Timer).order

  const place = (hole: number, timer: Timer) => {
    timers[hole] = timer
    ats[hole] = timer.at
  }
  const move = (from: number, to: number) => {
    timers[to] = timers[from] as Timer
    ats[to] = at(from)
  }

  const pop = () => {
    const last = timers.pop()
    const lastAt = ats.pop()
    const { length } = timers
    if (last === undefined || lastAt === undefined || length === 0) return
    let hole = 0
    for (;;) {
      let child = 2 * hole + 1
      if (child >= length) break
      const right = child + 1
      if (right < length && (at(right) < at(child) || (at(right) === at(child) && order(right) < order(child)))) child = right
      if (at(child) > lastAt || (at(child) === lastAt && order(child) > last.order)) break
      move(child, hole)
      hole = child
    }
    place(hole, last)
  }

  return {
    pop,
    push(timer) {
      let hole = timers.length
      place(hole, timer)
      while (hole > 0) {
        const parent = (hole - 1) >> 1
        // Armed later than all that is there: of two at one time it is the later.
        if (at(parent) <= timer.at) break
        move(parent, hole)
        hole = parent
      }
      place(hole, timer)
    },
    peek() {
      while (timers[0] !== undefined && timers[0].run === undefined) {
        dead--
        pop()
      }
      return timers[0]
    },
    cancelled() {
      dead++
      if (dead < 64 || dead * 2 < timers.length) return
      // What is sorted is a heap too.
      timers = timers.filter(({ run }) => run !== undefined).toSorted((one, other) => one.at - other.at || one.order - other.order)
      ats = timers.map((timer) => timer.at)
      dead = 0
    },
  }
}
