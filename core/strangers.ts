// A fenced boot that lives: what it still runs of pods that are gone runs elsewhere by now, and its kubelet may be dead or deaf.
import type { Action, Look } from './action.ts'
import { shownFalse } from './incident.ts'
import { askClean } from './look.ts'
import type { Situation } from './situation.ts'

/** Its agent ends that before anything else is waited for, and goes on being told until it is clean. */
export function withStop({ on, incident, node, status, heard }: Situation, actions: readonly Action[]): Action[] {
  if (shownFalse(status).length === 0 || heard !== 'old boot') return [...actions]
  // What was said or asked before the proof was shown false is of another time.
  const since = node.beat?.answered?.issuedAt ?? node.firstSeen.get(`proof ${incident.name} ${status.voided.length - 1}`) ?? on.now
  const clean = node.beat?.clean
  if (clean?.report.state === 'clean' && clean.at > since) return [...actions]
  const asked = node.pods !== undefined && node.pods.askedAt >= since
  const asks: Look[] = asked || node.busy.has(`askClean ${node.name}`) ? askClean(node, on.now) : [{ do: 'askClean', node: node.name }]
  const stop = asks.map((ask): Look => (ask.do === 'askClean' ? { ...ask, stop: true } : ask))
  return [...stop, ...actions.filter((action) => action.do !== 'askClean')]
}
