// The order of a leader that is gone.
import type { Action } from './action.ts'
import type { Situation } from './situation.ts'

/** A leader that is gone left it running, and nobody knows its end. */
export function settle({ incident, node, status }: Situation): Action | undefined {
  const orphan = status.attempts.find((attempt) => attempt.result === 'running' && !node.busy.has(`order ${node.name} ${attempt.method}`))
  return orphan === undefined ? undefined : { do: 'settle', node: node.name, incident: incident.name, attempt: orphan.id }
}
