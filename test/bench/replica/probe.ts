// Loaded into a replica's process before it, to tell what only the process itself can see: how long its event loop stood still, how
// full its heap is, and, where somebody wants to look closer, what it spent its time on.
import { writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks'
import process, { memoryUsage } from 'node:process'

export type ProbeWord = { readonly do: 'begin'; readonly profile?: string } | { readonly do: 'end' }

export interface ProbeTold {
  readonly longestStallMs: number
  readonly p99StallMs: number
  readonly heapMb: number
  readonly externalMb: number
  /** Spent on collecting garbage, and the longest of it. */
  readonly garbageMs: number
  readonly longestGarbageMs: number
}

const resolution = 10

const delays = monitorEventLoopDelay({ resolution })
let garbage: number[] = []
let session: Session | undefined
let file = ''
new PerformanceObserver((list) => garbage.push(...list.getEntries().map(({ duration }) => duration))).observe({ entryTypes: ['gc'] })
delays.enable()
process.on('message', (word: ProbeWord) => void (word.do === 'begin' ? begin(word.profile) : end()))

async function begin(profile: string | undefined): Promise<void> {
  delays.reset()
  garbage = []
  if (profile === undefined) return
  file = profile
  session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.start')
}

async function end(): Promise<void> {
  const told: ProbeTold = {
    longestStallMs: round(Math.max(0, delays.max / 1e6 - resolution)), p99StallMs: round(Math.max(0, delays.percentile(99) / 1e6 - resolution)),
    heapMb: round(memoryUsage().heapUsed / 1e6), externalMb: round(memoryUsage().external / 1e6),
    garbageMs: round(garbage.reduce((sum, one) => sum + one, 0)), longestGarbageMs: round(Math.max(0, ...garbage)),
  }
  if (session !== undefined) {
    const { profile } = await session.post('Profiler.stop')
    writeFileSync(file, JSON.stringify(profile))
    session.disconnect()
    session = undefined
  }
  process.send?.(told)
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
