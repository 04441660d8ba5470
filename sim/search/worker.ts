// A thread of the search: schedules in, what the judges said out.
import { parentPort, workerData } from 'node:worker_threads'
import type { Verdict } from './pool.ts'
import { draw } from './schedule.ts'

/** What a pool tells a thread of its own before it begins. */
export interface WorkerWish {
  readonly without?: string
}

const { without } = workerData as WorkerWish // only pool.ts starts this file
if (without !== undefined) (await import('./cut.ts')).cutOut(without)
// After the cut: what is imported earlier is imported whole.
const { run } = await import('./run.ts')

parentPort?.on('message', (seed: number) => {
  void run(draw(seed)).then(
    ({ transcript: _transcript, ...said }) => parentPort?.postMessage({ seed, said } satisfies Verdict),
    (error: unknown) => parentPort?.postMessage({ seed, broke: String(error instanceof Error ? error.stack : error) } satisfies Verdict),
  )
})
