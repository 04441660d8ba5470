// One turn at a time of some work, however often it is asked for: what a controller's queue with a single worker does. Asked for
// while it runs, it runs once more.
import type { Ms } from '../../core/model.ts'
import type { Clock } from '../../edge/clock.ts'

export function turns(clock: Clock, work: () => Promise<void>, pace: Ms = 1): () => void {
  let asked = false
  let running = false
  const run = async () => {
    running = true
    while (asked) {
      asked = false
      await work()
      await clock.wait(pace)
    }
    running = false
  }
  return () => {
    asked = true
    if (!running) void run()
  }
}

/** The same for each of many keys. */
export function turnsByKey(clock: Clock, work: (key: string) => Promise<void>, pace: Ms = 1): (key: string) => void {
  const asks = new Map<string, () => void>()
  return (key) => {
    let ask = asks.get(key)
    if (ask === undefined) asks.set(key, ask = turns(clock, () => work(key), pace))
    ask()
  }
}
