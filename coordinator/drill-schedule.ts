// When drills are due: one cron task for each policy that asks for drills, as the policies in force stand.
import type { ScheduledTask } from 'node-cron'
import type { Policy } from '../core/policy.ts'
import type { Log } from '../edge/log.ts'
import { byCalendar } from './calendar.ts'

export interface DrillSchedule {
  /** Cheap where nothing has changed. */
  keep(policies: readonly Policy[]): void
  stop(): void
}

export function drillSchedule(due: (policy: string) => void, log: Log): DrillSchedule {
  const tasks = new Map<string, { readonly at: string; readonly task: ScheduledTask }>()
  let kept: readonly Policy[] = []

  return {
    keep(policies) {
      if (policies === kept) return
      kept = policies
      for (const [name, { at }] of tasks) if (policies.find((policy) => policy.name === name)?.drills?.schedule !== at) end(name)
      for (const { name, drills } of policies) {
        if (drills !== undefined && !tasks.has(name)) tasks.set(name, { at: drills.schedule, task: byCalendar(drills.schedule, () => due(name), log) })
      }
    },
    stop() {
      for (const name of tasks.keys()) end(name)
    },
  }

  function end(name: string): void {
    void tasks.get(name)?.task.destroy()
    tasks.delete(name)
  }
}
