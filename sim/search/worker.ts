// A thread of the search: schedules in, what the judges said out.
import { parentPort, workerData } from 'node:worker_threads'
import type { Cut } from './defences.ts'
import type { Verdict } from './pool.ts'
import type { Schedule } from './schedule.ts'

/** What a pool tells a thread of its own before it begins. */
export interface WorkerWish {
  /** Names of defences that it does without. */
  readonly without?: string
  /** What else is cut out of the product there. */
  readonly cuts?: readonly Cut[]
  /** With each outcome its whole transcript, which is long. */
  readonly transcripts?: true
}

const { without, cuts = [], transcripts } = workerData as WorkerWish // only pool.ts starts this file
const { cutAway, cutsOf } = await import('./cut.ts')
const sure = cutAway([...without === undefined ? [] : cutsOf(without), ...cuts])
// After the cut: what is imported earlier is imported whole.
const { draw } = await import('./schedule.ts')
const { run } = await import('./run.ts')
sure()

parentPort?.on('message', (wanted: number | Schedule) => {
  const schedule = typeof wanted === 'number' ? draw(wanted) : wanted
  const { seed } = schedule
  void run(schedule).then(
    ({ transcript, ...said }) => parentPort?.postMessage({ seed, said, ...(transcripts === undefined ? {} : { transcript: transcript() }) } satisfies Verdict),
    (error: unknown) => parentPort?.postMessage({ seed, broke: String(error instanceof Error ? error.stack : error) } satisfies Verdict),
  )
})
