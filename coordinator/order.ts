// Gives orders to devices. What is written down before and after one must outlive this process: an order that no next leader knows
// of, or whose end is lost, would be given again.
import type { Deed } from '../core/action.ts'
import { sealedSince } from '../core/acknowledge.ts'
import { foreignTaint } from '../core/clear.ts'
import { isTaken } from '../core/deleted.ts'
import { undrained } from '../core/drill-fit.ts'
import { keptOff } from '../core/hands.ts'
import { isDrill, isWish, type Attempt, type Incident } from '../core/incident.ts'
import { sameBoot, type Ms, type NodeName } from '../core/model.ts'
import { isStrange, strangeness } from '../core/path.ts'
import { isAnotherMachine } from '../core/situation.ts'
import { wishBeside } from '../core/wish.ts'
import * as timeline from '../core/timeline.ts'
import type { DeedMeans } from './deed-means.ts'
import { timesOf } from './fence-config.ts'
import type { FencePaths } from './fence-paths.ts'
import type { FenceRunner, MethodEnd } from './fence.ts'

export interface OrderMeans extends DeedMeans {
  readonly fences: Pick<FencePaths, 'method'>
  readonly runner: Pick<FenceRunner, 'runMethod'>
  readonly replica: string
  /** Resolves once everything has been read that had arrived by now. */
  drained(): Promise<void>
}

type Order = (deed: Extract<Deed, { do: 'fence' | 'restore' }>, action: 'off' | 'on') => Promise<boolean>

/** What must not be lost, though what it tells of is over, is written again after this, then after twice as long, and so on. */
const againAfter: Ms = 250
const againTries = 7

export function orderer({ observation, incidents, fences, runner, clock, log, replica, leads, signal, drained, at, say, handsOff }: OrderMeans): Order {
  return order

  /** The attempt stands on the record before the device is touched, so that a crash leaves a trace; then everything is looked
   *  at once more, because that write may have taken seconds, or this process may have slept since. */
  async function order(deed: Extract<Deed, { do: 'fence' | 'restore' }>, action: 'off' | 'on'): Promise<boolean> {
    const term = leads()
    const method = fences.method(deed.node, deed.method)
    const incident = observation.seen.incidents.get(deed.incident)
    if (term === undefined || method === undefined || incident === undefined) return false
    const beganAt = clock.now()
    const id = attemptName(incident)
    const beside = observation.row(deed.node)?.path.levels[deed.level]?.flatMap(({ name }) => (name === deed.method.name ? [] : [name])) ?? []
    const { orderWithin, late } = timesOf(method, action)
    const attempt: Attempt = {
      id, round: deed.round, level: deed.level, method: deed.method.name, digest: deed.method.digest, ...(beside.length === 0 ? {} : { beside }),
      ...(deed.method.ends === true ? { ends: true } : {}), agent: deed.method.agent, action, replica, term,
      startedAt: at(), within: orderWithin, late, result: 'running',
    }
    if (!await incidents.change(deed.incident, timeline.ordered(attempt, deed.method.isolates !== undefined))) return false
    if (leads() !== term) return false
    // Where this process slept, the answer to that write may be read before a beat that has come after it.
    await drained()
    const alive = deed.do === 'fence' && deed.alive === true
    const against = refuted(incident, deed.node, action, beganAt, alive)
    if (against !== undefined) {
      log.warn({ node: deed.node, incident: deed.incident, method: method.name, action, attempt: id, because: against }, 'order not given')
      await writeEnd(deed.incident, term, timeline.ended(id, 'not-given', against, at()))
      return true
    }
    log.warn({ node: deed.node, incident: deed.incident, method: method.name, action, attempt: id }, 'order given')
    say(deed.node, deed.incident, action === 'off' ? 'FenceOrdered' : 'PowerOnOrdered', action, `${deed.method.name} is asked ${action}`, 'Normal')
    const end = await runner.runMethod({ node: deed.node, method, action, purpose: 'incident', boot: incident.boot, incident: deed.incident, attempt: id, signal: signal(), against: () => refuted(incident, deed.node, action, beganAt, alive) })
    if (!end.gone) return never()
    const row = observation.row(deed.node)
    const strange = end.state === action && row !== undefined && isStrange(end, row)
    const result = strange ? 'failed' : endOf(end, action)
    const reason = strange ? strangeness(deed.method.name) : end.reason
    await writeEnd(deed.incident, term, timeline.ended(id, result, reason, at()))
    say(deed.node, deed.incident, 'OrderEnded', action, `${deed.method.name} ${action}: ${result}${reason === '' ? '' : `, ${reason}`}`, result === action ? 'Normal' : 'Warning')
    return true
  }

  /** What spoke against an order while it was being written down. `alive`: that its boot is heard does not. */
  function refuted(incident: Incident, node: NodeName, action: 'off' | 'on', since: Ms, alive: boolean): string | undefined {
    const known = observation.seen.incidents.get(incident.name)
    if (known === undefined || known.uid !== incident.uid || known.status.phase === 'Final') return 'the incident is over'
    const row = observation.row(node)
    if (row === undefined || isAnotherMachine(incident, row)) return 'the Node is another one'
    if (row.gone === true && (action === 'on' || isDrill(incident))) return 'the Node is gone'
    // Where others have the device an order may wait for minutes, and a person who goes to the machine meanwhile says so.
    const hands = handsOff(known, row) ?? (action === 'on' ? keptOff(row) ?? foreignTaint(row) : undefined)?.detail
    if (hands !== undefined) return hands
    if (action === 'on') return undefined
    if (row.gone === true && isTaken(row, observation.seen.nodes)) return 'its machine bears another Node by now'
    if (row.uid !== incident.nodeUid) return 'its Node was made anew'
    if (known.status.phase === 'Done') return 'the incident is being withdrawn'
    if (known.abort) return 'a person aborted it'
    const beat = (row.beat?.at ?? -Infinity) > since ? row.beat : undefined
    // Whoever wants it fenced wants that of the boot that ails, or is stuck: its next one may be well.
    if (beat !== undefined && !sameBoot(beat.boot, incident.boot)) return 'another boot of the node is heard'
    if (isDrill(incident)) return undrained(row)
    if (alive || isWish(incident) || wishBeside(observation.seen.incidents.values(), incident) !== undefined) return undefined
    return beat === undefined ? sealedSince(row, since) : 'the node is heard again'
  }

  /** An end that is not written becomes *unknown*, and a verified *off* would be ordered again. */
  async function writeEnd(name: string, term: number, end: timeline.Change): Promise<void> {
    for (let tries = 0; tries < againTries && leads() === term; tries += 1) {
      if (await incidents.change(name, end)) return
      await clock.wait(againAfter * 2 ** tries, signal())
    }
  }
}

/** A lost lease, a deadline or a signal leaves an order that may have been sent; only a program that never ran leaves none. */
function endOf({ ran, state }: MethodEnd, action: 'off' | 'on'): Attempt['result'] {
  if (!ran) return 'not-given'
  return state === 'off' || state === 'on' ? (state === action ? action : 'failed') : state
}

/** The incident's name and a number above all it bears: old attempts leave a full record, and what is known of one must not be
 *  taken for another's. */
function attemptName({ name, status }: Incident): string {
  const numbers = status.attempts.map((attempt) => Number(attempt.id.slice(name.length + 1))).filter(Number.isInteger)
  return `${name}.${Math.max(0, ...numbers) + 1}`
}

/** Something of a program runs on and cannot be ended: the order stays under way, nothing follows it. */
function never(): Promise<never> {
  return new Promise(() => undefined)
}
