// A node is back under our quarantine, and something is left over on it that does not go. So long as its policy is patient it is waited
// for: kubelet, or its agent, may be at work. After that it says so; or, where the policy wants that, it is fenced for it, in an incident of
// its own: its next boot has nothing of what this one holds.
//
// A fenced boot that lives, because its proof was false, is not left to a policy's taste: what it still runs runs elsewhere by now. Its
// path is marked, so the next level does it, if there is one.
//
// A boot that is cut off from its storage, and heard, does not end its incident to have another one: what it was cut off from is given back
// by the same record. Its power is the next step of that very incident.
import type { Action } from './action.ts'
import type { Brake } from './brake.ts'
import { given, shownFalse, type Incident } from './incident.ts'
import { isPowerOrder, powerMethods } from './isolation.ts'
import { seconds } from './judge.ts'
import { sameBoot, type NodeSeen } from './model.ts'
import { incidentName } from './name.ts'
import { policyOf, type Policy } from './policy.ts'
import { ownHands } from './remedy.ts'
import { isToldUnclean, lacksClean, uncleanSince } from './return.ts'
import { hold, latestBoot, type Situation } from './situation.ts'
import type { Survey } from './survey.ts'

/** What becomes of it. `waits`: with this reason; `fence`: nothing stands against that now. */
export type Overdue =
  | { readonly is: 'waits'; readonly brake: Brake }
  | { readonly is: 'fence'; readonly policy: Policy; readonly says: string }

/** `incident`: the one that it comes back from, if any is kept. `lacks`: what it is waited for. */
export function overdue(on: Survey, node: NodeSeen, incident: Incident | undefined, lacks: Brake): Overdue {
  const chosen = policyOf(node, on.policies)
  const since = lacks.because === 'waiting-for-clean' ? uncleanSince(incident, node) : undefined
  if (since === undefined || !('policy' in chosen) || on.now - since < chosen.policy.returnPatience) return { is: 'waits', brake: lacks }
  const { policy } = chosen
  const says = `${lacks.detail}; that is so for ${seconds(on.now - since)}, longer than returnPatience (${seconds(policy.returnPatience)})`
  const lied = provenFalsely(on, node)
  const wanted = lied || (policy.afterPatience === 'fence' && isToldUnclean(incident, node, on.now))
  const against = wanted ? ownHands(on, node, policy) ?? aborted(on, node) ?? on.storms.cluster ?? on.storms.zones.get(node.zone) ?? (lied ? undefined : alike(on, policy)) ?? inVain(on, node) : undefined
  if (wanted && against === undefined) return { is: 'fence', policy, says }
  const lifts = `${lacks.lifts}, or its next boot${against === undefined ? ': by a person, or afterPatience: fence in its policy' : `; ${against.lifts}`}`
  return { is: 'waits', brake: { because: 'out-of-patience', detail: against === undefined ? says : `${says}, and it is not fenced for it: ${against.detail}`, lifts } }
}

/** A node whose incident is over, or is not kept: held, or fenced for what is left over on it. */
export function afterPatience(on: Survey, node: NodeSeen, incident: Incident | undefined, lacks: Brake): Action {
  const next = overdue(on, node, incident, lacks)
  if (next.is === 'waits') return hold(node.name, next.brake)
  const boot = latestBoot(node)
  return { do: 'open', node: node.name, name: incidentName(on.seen, node, boot), boot, cause: 'leftover', policy: next.policy, evidence: [{ source: 'its agent', word: next.says, at: '' }] }
}

/** Isolated, heard, and not clean in time, where its policy has such a node fenced and there is a power to order off. An order to that begins no new
 *  patience: the second feed would wait as long as the first. */
export function mustLosePower({ on, incident, node, status }: Situation): boolean {
  const { beat } = node
  if (beat === undefined || powerMethods(node).length === 0) return false
  const cut: Incident = { ...incident, status: { ...status, attempts: status.attempts.filter((attempt) => !isPowerOrder(attempt, node)) } }
  const lacks = lacksClean(cut, node, beat)
  return lacks !== undefined && overdue(on, node, cut, lacks).is === 'fence'
}

const endOf = ({ status }: Incident): string => status.timeline.at(-1)?.at ?? ''

/** Its incidents, the latest last. */
function historyOf({ seen }: Survey, node: NodeSeen): readonly Incident[] {
  return [...seen.incidents.values()].filter(({ nodeName, nodeUid }) => nodeName === node.name && nodeUid === node.uid).toSorted((one, other) => (endOf(one) < endOf(other) ? -1 : 1))
}

/** This very boot was taken for off, and lives. */
function provenFalsely(on: Survey, node: NodeSeen): boolean {
  return historyOf(on, node).some(({ boot, status }) => shownFalse(status).length > 0 && sameBoot(boot, latestBoot(node)))
}

/** A person does not want this boot fenced for it: another incident would only ask the same of them again. */
function aborted(on: Survey, node: NodeSeen): Brake | undefined {
  const own = historyOf(on, node).find(({ cause, abort, boot }) => cause === 'leftover' && abort && sameBoot(boot, latestBoot(node)))
  return own === undefined ? undefined : { because: 'aborted', detail: `a person aborted ${own.name}`, lifts: 'its next boot' }
}

/** What keeps many from telling that they are clean is hardly the fault of each, and no boot mends it. */
function alike({ seen, quarantined }: Survey, { brakes }: Policy): Brake | undefined {
  const many = quarantined.filter(({ beat }) => beat?.clean !== undefined && beat.clean.report.state !== 'clean').length
  const all = [...seen.nodes.values()].filter(({ gone }) => gone !== true).length
  if (many < 2 || many * 100 <= brakes.stormPercent * all) return undefined
  return { because: 'storm', detail: `${many} of ${all} nodes are not clean, more than ${brakes.stormPercent} %`, lifts: 'fewer of them' }
}

/** What did not help once does not help twice: somebody must look. */
function inVain(on: Survey, node: NodeSeen): Brake | undefined {
  const last = historyOf(on, node).findLast(({ status }) => given(status).length > 0)
  if (last?.cause !== 'leftover' || sameBoot(last.boot, latestBoot(node))) return undefined
  return { because: 'repeat-limit', detail: `it was fenced for that already, in ${last.name}, and that did not help`, lifts: 'a person' }
}

/** Of an incident that was opened for that: nothing was ordered yet, and nothing is left over any more. */
export function isCleanAgain({ incident, node, heard, status }: Situation): boolean {
  if (incident.cause !== 'leftover' || heard !== 'old boot' || given(status).length > 0 || node.beat === undefined) return false
  return lacksClean(incident, node, node.beat) === undefined
}
