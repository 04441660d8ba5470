// Naps. Beats come one by one, thousands a second, and to be woken for each costs a replica more than to read it: the switch to this
// process, the question which socket it is, and caches in which others have worked meanwhile. So a replica of a large cluster, while
// it waits for nothing, sleeps a moment between two readings of its sockets, and reads by the dozen what came meanwhile.
//
// Nothing of this process runs in a nap, its timers neither: what comes due is late by a nap at most. That is far below all that silence is
// measured by, and a beat that is read late makes its node heard later, never silent sooner. A turn that took as long as a nap by itself is
// followed by none, so a replica to which thousands of agents come back at once is not slowed.
import type { Ms } from '../core/model.ts'

export interface NapsOptions {
  now(): Ms
  /** Asked before each nap, so it must cost nothing. */
  wanted(): boolean
  /** Stops the whole process for so long; another one in tests. */
  readonly sleep?: (span: Ms) => void
}

/** From the end of one nap to that of the next. */
export const napEvery: Ms = 10
/** The kernel takes as long to put a process to sleep and to wake it. */
const shortestNap: Ms = 1

/** The answer ends it. It keeps no process alive. */
export function keepNaps({ now, wanted, sleep = stand }: NapsOptions): () => void {
  let wokeAt = now()
  let next = setImmediate(turn).unref()
  return () => clearImmediate(next)

  /** Comes after each reading of the sockets. */
  function turn(): void {
    const left = wokeAt + napEvery - now()
    if (left >= shortestNap && wanted()) sleep(left)
    wokeAt = now()
    next = setImmediate(turn).unref()
  }
}

const nobody = new Int32Array(new SharedArrayBuffer(4))

function stand(span: Ms): void {
  Atomics.wait(nobody, 0, 0, span)
}
