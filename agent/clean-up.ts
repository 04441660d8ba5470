// What is left over is ended, step by step, where the leader's question says so (core/clean-up.ts). One look at a time, each step with a
// deadline; what could not be ended is named with the reason in the next report, and tried again.
import { cleanUpSteps, due, ends, standingSteps, stepKey, type CleanUpStep } from '../core/clean-up.ts'
import type { Leftover } from '../core/beat.ts'
import type { Ms } from '../core/model.ts'
import { leftOn, type HostTables } from '../core/mounts.ts'
import { withDeadline } from '../edge/clock.ts'
import type { AgentHost } from './host.ts'

export interface CleanUp {
  /** `listedAt`: when the list of pods came by which the tables are judged. */
  turn(tables: HostTables, belonging: ReadonlySet<string>, listedAt: Ms): Promise<void>
  /** With what kept it from being ended. */
  named(leftover: Leftover): Leftover
}

interface Fault {
  readonly step: CleanUpStep
  readonly fault: string
}

const stopWithin: Ms = 5_000
/** A file system whose disk or server is gone takes for ever; then its child is left behind, and no second one is sent after it. */
const endWithin: Ms = 10_000
const mostAtOnce = 8
/** In plain letters: a hundred of them must fit the frame of a report that is full already. */
const longestFault = 100

export function cleaner(host: Pick<AgentHost, 'clock' | 'log' | 'stopContainer' | 'endLeftover' | 'bareStagings'>): CleanUp {
  const { clock, log } = host
  let since: ReadonlyMap<string, Ms> = new Map()
  let faults: ReadonlyMap<string, Fault> = new Map()
  let busy = false

  return {
    async turn(tables, belonging, listedAt) {
      if (busy) return
      busy = true
      try {
        const left = leftOn(tables, belonging)
        if ('state' in left) return
        const steps = cleanUpSteps(left, await host.bareStagings().catch(() => undefined) ?? []) // folders that cannot be read wait
        since = standingSteps(steps, since, clock.now())
        const told = new Map([...faults].filter(([key]) => since.has(key)))
        const now = due(steps, since, listedAt).slice(0, mostAtOnce)
        // What runs first; then one after the other, because a mount may lie on another.
        const ended = await Promise.all(now.filter(isStop).map(async (step) => [step, await end(step)] as const))
        for (const step of now.filter((other) => !isStop(other))) ended.push([step, await end(step)])
        for (const [step, fault] of ended) tell(step, fault, told)
        faults = told
      } finally {
        busy = false
      }
    },
    named(leftover) {
      const known = [...faults.values()].find(({ step }) => ends(step, leftover))
      return known === undefined ? leftover : { ...leftover, fault: known.fault.slice(0, longestFault).replaceAll(/[^ -~]|["\\]/g, '?') }
    },
  }

  async function end(step: CleanUpStep): Promise<string | undefined> {
    const ending = () => (step.do === 'stop' ? host.stopContainer(step.container, stopWithin) : host.endLeftover(step, endWithin))
    // The host keeps to the span too; ours is the second, for a host that does not.
    return await withDeadline(clock, endWithin * 2, 'it did not answer', ending).catch((error: unknown) => String(error))
  }

  function tell(step: CleanUpStep, fault: string | undefined, told: Map<string, Fault>): void {
    const key = stepKey(step)
    const what = step.do === 'stop' ? `stop ${step.container.name}` : key
    if (fault === undefined) {
      told.delete(key)
      log.warn({ what }, 'cleaned up: it belonged to nobody here')
    } else if (told.get(key)?.fault !== fault) {
      told.set(key, { step, fault })
      log.error({ what, reason: fault }, 'could not be cleaned up')
    }
  }
}

function isStop(step: CleanUpStep): boolean {
  return step.do === 'stop'
}
