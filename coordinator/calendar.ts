// Work that is due by the calendar: turns of the audit, drills, pruning. It may begin late, but it must not be left out because this
// process stood still for a moment in which it was due: a turn that is left out makes paths stale an hour later.
import { schedule, type ScheduledTask } from 'node-cron'
import type { Ms } from '../core/model.ts'
import type { Log } from '../edge/log.ts'

/** What was due longer ago belongs to its next time. */
const lateBy: Ms = 600_000

export function byCalendar(at: string, does: () => void, log: Log): ScheduledTask {
  return schedule(at, does, {
    unref: true, missedExecutionTolerance: lateBy,
    // Of its own it would write to standard output, between lines that programs read.
    logger: {
      debug: () => undefined,
      info: (text) => log.info({ at, text }, 'the calendar tells'),
      warn: (text) => log.warn({ at, text }, 'the calendar warns'),
      error: (text) => log.error({ at, text: String(text) }, 'the calendar fails'),
    },
  })
}
