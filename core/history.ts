// Which incidents that are over need not be kept any more. What still says something about today is kept however old it is: a proof
// that was shown false marks its path, and a node under our quarantine comes back by what its incidents freed.
import { shownFalse, type Incident } from './incident.ts'
import type { Ms } from './model.ts'

const day: Ms = 24 * 3_600_000
export const keptFor: Ms = 30 * day
/** Of one node. */
export const keptCount = 20
/** Whoever looks at what happened in the night finds all of it. */
const alwaysFor: Ms = day

/** `now` is wall time, as the records are. `held`: whether a node bears our quarantine. */
export function outlived(incidents: Iterable<Incident>, held: (node: string) => boolean, now: Ms): readonly Incident[] {
  const byNode = Map.groupBy([...incidents].filter(({ status }) => status.phase === 'Final'), ({ nodeName }) => nodeName)
  return [...byNode].flatMap(([node, own]) => {
    if (held(node)) return []
    const latestFirst = own.toSorted((one, other) => endedAt(other) - endedAt(one))
    return latestFirst.filter((incident, place) => {
      const age = now - endedAt(incident)
      return shownFalse(incident.status).length === 0 && (age > keptFor || (place >= keptCount && age > alwaysFor))
    })
  })
}

/** One whose record cannot tell when it ended ended just now. */
function endedAt({ status }: Incident): Ms {
  const at = Date.parse(status.timeline.at(-1)?.at ?? '')
  return Number.isNaN(at) ? Infinity : at
}
