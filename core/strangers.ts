// A fenced boot that lives, because its proof was false or because it was merely cut off from its storage: what it still runs of pods
// that are gone runs elsewhere by now, and its kubelet may be dead or deaf.
import type { Action, Look } from './action.ts'
import { lastProvenAt, shownFalse } from './incident.ts'
import { askClean } from './look.ts'
import type { NodeSeen } from './model.ts'
import { asOf } from './return.ts'
import type { Situation } from './situation.ts'
import type { Survey } from './survey.ts'

/** It is to be fenced for what is left over on it: it may end that yet. */
function beforeItIsCut({ now }: Survey, node: NodeSeen, actions: readonly Action[]): Action[] {
  return [...askClean(node, now).map((ask): Look => (ask.do === 'askClean' ? { ...ask, stop: true } : ask)), ...actions.filter((action) => action.do !== 'askClean')]
}

/** Its agent ends that before anything else is waited for, and goes on being told until it is clean. */
export function withStop({ on, incident, node, status, heard }: Situation, actions: readonly Action[]): Action[] {
  if (incident.cause === 'leftover' && heard === 'old boot' && status.proof === undefined) return beforeItIsCut(on, node, actions)
  const isolated = status.proof?.kind === 'isolated'
  if ((shownFalse(status).length === 0 && !isolated) || heard !== 'old boot') return [...actions]
  // What was said or asked before it was cut off, or before the proof was shown false, is of another time.
  const since = (isolated ? undefined : node.beat?.answered?.issuedAt) ?? lastProvenAt(incident, node.firstSeen) ?? on.now
  const clean = node.beat?.clean
  if (clean?.report.state === 'clean' && asOf(clean) > since) return [...actions]
  const asked = node.pods !== undefined && node.pods.askedAt >= since
  const asks: Look[] = asked || node.busy.has(`askClean ${node.name}`) ? askClean(node, on.now) : [{ do: 'askClean', node: node.name }]
  const stop = asks.map((ask): Look => (ask.do === 'askClean' ? { ...ask, stop: true } : ask))
  return [...stop, ...actions.filter((action) => action.do !== 'askClean')]
}
