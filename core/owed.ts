// What our orders left off when their incident ended: the machine ran by another feed, or its next boot had fallen silent, or the
// configuration was away just then. Nobody else would switch it on, and the next loss of a feed would take the machine. Its NodeFences tell
// of it as long as they are kept; so once the machine runs, and the device says off still, an incident of its own gives it back.
import type { Action } from './action.ts'
import { handsOff, type Brake } from './brake.ts'
import { foreignTaint, hasTaint, quarantineKey } from './clear.ts'
import { wasGivenBack } from './cut.ts'
import { given, isOf, type Incident, type IncidentStatus } from './incident.ts'
import { keptOff, othersHands } from './hands.ts'
import { shutsDown } from './judge.ts'
import { askClean, beatsWithin } from './look.ts'
import { sameBoot, type Boot, type Method, type Ms, type NodeName, type NodeSeen, type Observed } from './model.ts'
import { incidentName } from './name.ts'
import { policyOf } from './policy.ts'
import { isStrange } from './path.ts'
import { readingsOf } from './reading.ts'
import { asOf } from './return.ts'
import { sameMachine } from './machine-id.ts'
import { hold, isAnotherMachine } from './situation.ts'
import type { Survey } from './survey.ts'

export interface Owed {
  readonly method: Method
  readonly level: number
  /** The end of the last order to it, and the boot that it was about. */
  readonly since: Ms
  readonly boot: Boot
}

/** By methods that are configured as they were then: nothing else here could switch it on. */
export function owedOf(seen: Observed, node: NodeSeen): readonly Owed[] {
  const orders = historyOf(seen, node).flatMap(({ boot, status }) => given(status).map((attempt) => ({ attempt, boot })))
  return node.path.levels.flatMap((methods, level) => methods.flatMap((method): Owed[] => {
    if (method.ends === true) return []
    const own = orders.filter(({ attempt }) => isOf(attempt, method))
    const last = own.at(-1)
    if (last === undefined || isOver(own.map(({ attempt }) => attempt))) return []
    const since = node.firstSeen.get(`ended ${last.attempt.id}`)
    return since === undefined ? [] : [{ method, level, since, boot: last.boot }]
  }))
}

function isOver(orders: IncidentStatus['attempts']): boolean {
  return wasGivenBack(orders) || orders.every(({ action }) => action === 'on')
}

/** Incidents of this machine that are over, in the order of their ends. A person who aborts what would give back wants it left off. */
function historyOf(seen: Observed, node: NodeSeen): readonly Incident[] {
  const own = [...seen.incidents.values()].filter((incident) => incident.nodeName === node.name && incident.status.phase === 'Final' && isOfThisMachine(incident, node))
  const history = own.map((incident) => ({ incident, endedAt: incident.status.timeline.at(-1)?.at ?? '' }))
    .toSorted((one, other) => (one.endedAt < other.endedAt ? -1 : one.endedAt > other.endedAt ? 1 : 0)).map(({ incident }) => incident)
  return history.slice(history.findLastIndex(({ cause, abort }) => cause === 'owed' && abort) + 1)
}

/** Its Node may have been made anew since. */
function isOfThisMachine(incident: Incident, node: NodeSeen): boolean {
  return incident.nodeUid === node.uid ? !isAnotherMachine(incident, node) : incident.machine !== '' && sameMachine(incident.machine, node.machine)
}

export function owing(on: Survey): Action[] {
  const names = new Set<NodeName>()
  for (const { nodeName, status } of on.seen.incidents.values()) if (status.phase === 'Final' && !on.open.has(nodeName) && leftOff(status)) names.add(nodeName)
  return [...names].flatMap((name) => {
    const node = on.seen.nodes.get(name)
    return node === undefined || on.verdicts.has(name) ? [] : begin(on, node)
  })
}

/** Of some method that it ordered off, the last order was not an *on* that ended verified. Asked of all that are kept, at each tick. */
function leftOff({ attempts }: IncidentStatus): boolean {
  return attempts.some((off) => {
    if (off.action !== 'off' || off.result === 'not-given') return false
    const last = attempts.findLast(({ method, digest, result }) => method === off.method && digest === off.digest && result !== 'not-given')
    return last?.action !== 'on' || last.result !== 'on'
  })
}

/** Only of a node that is well: it is no need, and nothing waits for it. */
function begin(on: Survey, node: NodeSeen): Action[] {
  const { beat, name } = node
  if (beat === undefined || on.now - beat.at >= beatsWithin || node.gone === true || shutsDown(node)) return []
  // A device that never said off owes nothing, and to know what is owed every incident kept is gone through.
  if (node.readings.every(({ state }) => state !== 'off')) return []
  // Under our quarantine it may be running what was freed elsewhere, unless that boot is over.
  const owed = owedOf(on.seen, node).filter((one) => readsOff(node, one, beat.since) && !(hasTaint(node, quarantineKey) && sameBoot(one.boot, beat.boot)))
  const chosen = policyOf(node, on.policies)
  if (owed.length === 0 || !('policy' in chosen)) return []
  const used = owed.map((one) => mayBeInUse(node, one)).find((brake) => brake !== undefined)
  if (used !== undefined) return [...askClean(node, on.now), hold(name, used)]
  const off = handsOff(on.seen.self, chosen.policy) ?? othersHands(node) ?? keptOff(node) ?? foreignTaint(node)
  if (off !== undefined) return [hold(name, off)]
  const evidence = owed.map(({ method }) => ({ source: method.name, word: 'off', at: '' }))
  return [{ do: 'open', node: name, name: incidentName(on.seen, node, beat.boot), boot: beat.boot, cause: 'owed', policy: chosen.policy, evidence }]
}

/** What a machine was cut off from, and it goes on in that very boot, its Node made anew perhaps: what was freed may be in use there until
 *  its agent, asked since, finds nothing left. */
export function mayBeInUse(node: NodeSeen, { method, boot, since }: Owed): Brake | undefined {
  const { beat } = node
  if (method.isolates === undefined || beat === undefined || !sameBoot(boot, beat.boot)) return undefined
  if (beat.clean?.report.state === 'clean' && asOf(beat.clean) > since) return undefined
  return { because: 'still-cut', detail: `${method.name} was ordered off, and what was freed by that may be in use still on ${node.name}: it stays so`, lifts: 'a clean report of its agent, or its next boot' }
}

/** By its latest word in this boot, which is also later than the last order. */
function readsOff(node: NodeSeen, { method, since }: Owed, bootHeard: Ms): boolean {
  const last = readingsOf(node, method).findLast((reading) => reading.state !== 'unknown')
  return last?.state === 'off' && last.startedAt >= Math.max(since, bootHeard) && !isStrange(last, node)
}
