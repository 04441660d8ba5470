// How long an incident took to what people wait for, from its own record: whoever watches wants to know how fast, not only that.
import type { IncidentStatus } from './incident.ts'
import type { Ms } from './model.ts'

/** `proven`: for the first time. `released`: the last of the volumes that were held. `recovered`: the node is back and clean. */
export type Milestone = 'proven' | 'released' | 'recovered'

/** What a change of the record has reached, each with how long after the incident was opened. */
export function milestones(before: IncidentStatus, after: IncidentStatus): readonly { readonly until: Milestone; readonly span: Ms }[] {
  const reached: readonly (readonly [Milestone, boolean, string])[] = [
    ['proven', before.proof === undefined && after.proof !== undefined && after.voided.length === 0, 'proven'],
    ['released', isReleased(after) && !isReleased(before), 'volumes released'],
    ['recovered', before.phase !== 'Final' && after.phase === 'Final' && after.outcome === 'Recovered', 'closed'],
  ]
  const openedAt = Date.parse(after.timeline[0]?.at ?? '')
  return reached.flatMap(([until, now, what]) => {
    const span = Date.parse(after.timeline.findLast((moment) => moment.what === what)?.at ?? '') - openedAt
    return now && !Number.isNaN(span) ? [{ until, span: Math.max(0, span) }] : []
  })
}

function isReleased({ volumes }: IncidentStatus): boolean {
  return volumes.length > 0 && volumes.every(({ fate }) => fate === 'released')
}
