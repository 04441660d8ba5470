// A simulated process: whatever reaches code inside it, a timer, an answer, a frame, passes through here. That is what makes a
// crash at any await, a pause of a minute, or a clock that runs fast possible without touching the code inside: the code only
// ever waits for things that this file hands over, or withholds.
import type { Ms } from '../core/model.ts'
import { waitOn, type Clock } from '../edge/clock.ts'

export interface Process {
  readonly name: string
  readonly clock: Clock
  alive(): boolean
  /** Alive and not paused. */
  running(): boolean
  /** Hands something from outside to the process: at once, at the end of its pause, or never. */
  deliver(run: () => void): void
  /** A promise from outside, as the process may see it. */
  hold<T>(work: Promise<T>): Promise<T>
  /** A stream from outside, likewise piece by piece. */
  holdStream<T>(stream: AsyncIterable<T>): AsyncIterable<T>
  /** Stops the process until every one who paused it has resumed it. `standing`: both its clocks stand still meanwhile, as in a
   *  paused virtual machine, and a timer fires as much later as the pause lasted. `running`: its clocks go on, as under a stop
   *  signal, and the timers that came due fire at its end, in order. What arrived meanwhile follows them. */
  pause(by: string, clocks: 'standing' | 'running'): void
  resume(by: string): void
  /** From now on the process's clocks run at this rate of the world's. */
  setRate(rate: number): void
  jumpWall(by: Ms): void
  /** From now on whatever is handed over comes later by what the draw says, in order: a machine that is too busy. */
  slow(draw: (() => Ms) | undefined): void
  /** Called right after so many more things were handed over, timers among them. One at a time: a second replaces the first. */
  afterHanded(count: number, run: () => void): void
  /** At once and for ever: no timer fires, no promise resumes. */
  kill(): void
  /** Called once at the kill: what the machine's kernel does about a dead process (closing its sockets). */
  onEnd(run: () => void): () => void
}

const nothing = (): void => undefined

/** What may pile up for a paused process before it is called a runaway. */
const backlogLimit = 100_000

interface Timer {
  /** In the process's own time. */
  readonly due: Ms
  readonly order: number
  readonly run: () => void
  disarm: () => void
}

export function startProcess(world: Clock, name: string): Process {
  const pauses = new Map<string, 'standing' | 'running'>()
  const timers = new Set<Timer>()
  const backlog: (() => void)[] = []
  const ends = new Set<() => void>()
  let dead = false
  let armed = 0
  let rate = 1
  let wallOffset = 0
  let lateness: (() => Ms) | undefined
  let latestAt: Ms = 0
  let waiting = 0
  let counting: { left: number; readonly run: () => void } | undefined
  // The process's time is `ownBase` at the world's `worldBase`, and goes on from there at `rate`, or stands.
  let worldBase = world.now()
  let ownBase = worldBase

  // A process is asked for its time far more often than it is paused.
  const standing = () => pauses.size > 0 && [...pauses.values()].includes('standing')
  const now = () => ownBase + (standing() ? 0 : (world.now() - worldBase) * rate)

  const clock: Clock = {
    now,
    // Both clocks of a process started together with the world's, so they differ from the world's by the same span.
    wall: () => Math.floor(world.wall() + now() - world.now() + wallOffset),
    wait: (span, signal) => waitOn(clock, span, signal),
    after(span, run) {
      if (dead) return () => undefined
      const timer: Timer = { due: now() + Math.max(0, span), order: armed++, run, disarm: nothing }
      timers.add(timer)
      if (pauses.size === 0) arm(timer, Math.max(0, span))
      return () => {
        timer.disarm()
        timers.delete(timer)
      }
    },
  }

  const process: Process = {
    name,
    clock,
    alive: () => !dead,
    running: () => !dead && pauses.size === 0,
    deliver,
    hold: (work) => new Promise((resolve, reject) => {
      work.then((value) => deliver(() => resolve(value)), (error: unknown) => deliver(() => reject(error)))
    }),
    holdStream: (stream) => ({
      [Symbol.asyncIterator]() {
        const inner = stream[Symbol.asyncIterator]()
        return {
          next: () => process.hold(inner.next()),
          return: async () => {
            await inner.return?.()
            return { done: true, value: undefined }
          },
        }
      },
    }),
    pause(by, clocks) {
      if (dead) return
      rebase(() => pauses.set(by, clocks))
      for (const timer of timers) timer.disarm()
    },
    resume(by) {
      if (dead || !pauses.has(by)) return
      rebase(() => pauses.delete(by))
      if (pauses.size > 0) return
      rearm()
      // After the timers that came due, one by one, each with its promise chains: a real event loop does the same.
      for (const run of backlog.splice(0)) world.after(0, () => deliver(run))
    },
    setRate(next) {
      rebase(() => { rate = next })
      if (pauses.size === 0) rearm()
    },
    jumpWall(by) { wallOffset += by },
    slow(draw) { lateness = draw },
    afterHanded(count, run) { counting = { left: count, run } },
    kill() {
      if (dead) return
      dead = true
      for (const timer of timers) timer.disarm()
      timers.clear()
      backlog.length = 0
      for (const run of ends) run()
      ends.clear()
    },
    onEnd(run) {
      if (dead) run()
      else ends.add(run)
      return () => ends.delete(run)
    },
  }
  return process

  function deliver(run: () => void): void {
    if (isPrompt()) hand(run)
    else inTime(() => hand(run))
  }

  function isPrompt(): boolean {
    return lateness === undefined && waiting === 0
  }

  function inTime(run: () => void): void {
    latestAt = Math.max(latestAt, world.now() + (lateness?.() ?? 0))
    waiting += 1
    world.after(latestAt - world.now(), () => {
      waiting -= 1
      run()
    })
  }

  function hand(run: () => void): void {
    if (dead) return
    if (pauses.size === 0) {
      run()
      return handed()
    }
    if (backlog.length >= backlogLimit) throw new Error(`more than ${backlogLimit} events wait for the paused process ${name}`)
    backlog.push(run)
  }

  function rebase(change: () => void): void {
    const own = now()
    ownBase = own
    worldBase = world.now()
    change()
  }

  function arm(timer: Timer, span: Ms): void {
    timer.disarm = world.after(span / rate, () => {
      // It may still be called off, or wait out a pause, before its lateness is over.
      if (isPrompt()) due(timer)
      else inTime(() => due(timer))
    })
  }

  function due(timer: Timer): void {
    if (dead || !timers.has(timer)) return
    if (pauses.size > 0) backlog.push(() => fire(timer))
    else fire(timer)
  }

  function fire(timer: Timer): void {
    if (!timers.delete(timer)) return
    timer.run()
    handed()
  }

  function handed(): void {
    if (counting === undefined) return
    counting.left -= 1
    if (counting.left > 0) return
    const { run } = counting
    counting = undefined
    run()
  }

  function rearm(): void {
    for (const timer of timers) timer.disarm()
    for (const timer of [...timers].toSorted((one, other) => one.due - other.due || one.order - other.order)) arm(timer, Math.max(0, timer.due - now()))
  }
}
