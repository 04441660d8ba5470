// What the core wants of node-2, each wish in a word or two, and worlds in which one node of three is in a state.
import * as assert from 'uvu/assert'
import { isLook, type Action } from '../../core/action.ts'
import { quarantineKey } from '../../core/clear.ts'
import { decide } from '../../core/decide.ts'
import type { Incident, IncidentStatus } from '../../core/incident.ts'
import type { NodeSeen, Observed, Self } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { lifted, recovering, type State } from './states.ts'
import { attempt, incident, now, policy, proofRecord, record, seenOrder, self, three } from './world.ts'

/** What is wanted of node-2, each wish in a word or two: deeds and holds. */
export function wants(observed: Observed, policies: readonly Policy[] = [policy], at = now): string[] {
  return wishes(observed, policies, at).filter((action) => !isLook(action) && action.do !== 'record').map(said)
}

export function looks(observed: Observed, policies: readonly Policy[] = [policy], at = now): string[] {
  return wishes(observed, policies, at).filter(isLook).map(said).toSorted()
}

export function wishes(observed: Observed, policies: readonly Policy[], at: number): Action[] {
  return decide(observed, at, policies).filter((action) => action.node === 'node-2')
}

export function said(action: Action): string {
  switch (action.do) {
    case 'open': return `open ${action.cause}`
    case 'fence': case 'restore': return `${action.do} ${action.method.name}`
    case 'prove': return `prove ${action.proof.kind}`
    case 'taint': return action.outOfService ? 'taint out-of-service' : 'taint quarantine'
    case 'untaint': return action.key === quarantineKey ? 'untaint quarantine' : 'untaint out-of-service'
    case 'bury': return `bury ${action.pods.map((one) => one.name).join(' ')}`
    case 'delete': return `delete ${action.pods.map((one) => one.name).join(' ')}`
    case 'close': return `close ${action.outcome}`
    case 'hold': return `hold ${action.because}`
    case 'askDevice': return `askDevice ${action.method.name}`
    default: return action.do
  }
}

/** Each hold on node-2: why, in which words, and what lifts it. */
export function holds(observed: Observed): readonly (readonly string[])[] {
  return wishes(observed, [policy], now).flatMap((action) => (action.do === 'hold' ? [[action.because, action.detail, action.lifts]] : []))
}

export function held(observed: Observed, because: string, policies: readonly Policy[] = [policy]): string {
  const hold = wishes(observed, policies, now).find((action) => action.do === 'hold' && action.because === because)
  if (hold?.do !== 'hold') return assert.unreachable(`no hold ${because}: ${wants(observed, policies).join(', ')}`) as never
  assert.ok(hold.lifts.length > 3, 'a hold says what lifts it')
  return hold.detail
}

export const lead = (changes: Partial<Self>) => self(changes)
export const without = <Key extends keyof Self>(key: Key): Self => {
  const { [key]: _, ...rest } = self()
  return rest as Self // a Self that lacks what the caller says it lacks
}

export const wide: Policy = { ...policy, brakes: { ...policy.brakes, concurrency: 3, stormPercent: 100, stormWindow: 60_000 } }
export const unidentified = record({ paths: record().paths.map((one) => ({ ...one, identity: 'unproven' })) })

export function inState(state: State, changes: Partial<NodeSeen> = {}, status: Partial<IncidentStatus> = {}, more: Partial<Incident> = {}, own: Self = self()): Observed {
  return three({ ...state.node, ...changes }, [incident({ ...state.status, ...status }, more)], own)
}

export const foundOffCleared: State = { node: recovering.node, status: { ...recovering.status, attempts: [], proof: proofRecord({ kind: 'found-off' }) } }

/** An *off* that failed, and whose time has passed ten seconds ago. */
export const passed = { firstSeen: new Map([...(lifted.node.firstSeen ?? []), ...seenOrder(now - 100_000, now - 98_000, 'loose')]) }
export const loose = attempt({ id: 'loose', result: 'failed' })
