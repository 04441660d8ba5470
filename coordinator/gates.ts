// Tells the gates of the nodes that this replica hears whether their boots are accepted. Every replica does, so that a new leader's word
// is there before it leads; the agents go by those that lead. A replica whose own view is stale says nothing new.
import { acceptance } from '../core/acceptance.ts'
import { blind } from '../core/brake.ts'
import type { Ms } from '../core/model.ts'
import type { Policy } from '../core/policy.ts'
import { openOf } from '../core/survey.ts'
import type { Beats } from './beats.ts'
import type { Observation } from './observe.ts'

export function tellGates(
  observation: Pick<Observation, 'seen' | 'row'>, beats: Pick<Beats, 'nodes' | 'heard' | 'gate'>, policies: readonly Policy[], now: Ms,
): void {
  const { seen } = observation
  if (blind(seen.self, now) !== undefined) return
  const { open } = openOf(seen)
  const acting = seen.self.pause === undefined ? policies.filter((policy) => policy.pause === undefined) : []
  for (const name of beats.nodes()) {
    const row = observation.row(name)
    const beat = beats.heard(name)
    if (row === undefined || row.gone === true || beat === undefined) continue
    beats.gate(name, acceptance(row, beat.boot, open.get(name), acting, now), row.pods)
  }
}
