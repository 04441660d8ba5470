// Threads that run schedules side by side. Each seed is a world of its own, so which thread runs which changes nothing.
import { Worker } from 'node:worker_threads'
import type { Outcome } from './run.ts'
import type { Schedule } from './schedule.ts'
import type { WorkerWish } from './worker.ts'

/** `broke`: the run itself ended by a fault, which is a finding like any other. The transcript is there where it was wished for. */
export type Verdict = { readonly seed: number } & ({ readonly said: Omit<Outcome, 'transcript'>; readonly transcript?: string } | { readonly broke: string })

export interface PoolOptions extends WorkerWish {
  readonly jobs: number
  /** The next seed, or a schedule that is none's; undefined: there is none. */
  next(): number | Schedule | undefined
  told(verdict: Verdict): void
}

export async function runPool({ jobs, next, told, ...wish }: PoolOptions): Promise<void> {
  await Promise.all(Array.from({ length: jobs }, () => thread(wish, next, told)))
}

function thread(wish: WorkerWish, next: PoolOptions['next'], told: PoolOptions['told']): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('worker.ts', import.meta.url), { workerData: wish })
    const give = () => {
      const wanted = next()
      if (wanted === undefined) void worker.terminate()
      else worker.postMessage(wanted)
    }
    worker.on('message', (verdict: Verdict) => {
      told(verdict)
      give()
    })
    worker.on('error', reject)
    worker.on('exit', () => resolve())
    give()
  })
}
