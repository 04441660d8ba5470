// Who leads: the judgement on our Lease. A leader holds it for `leadershipSpan` from the moment it *sent* the renewal that
// was accepted; another may take it once it has seen the very same record, by its own clock, for that whole span. The
// other's span began later (it saw the record after it was written, which was after it was sent) and is longer by a margin,
// so they do not overlap as long as no two clocks run apart by more than an eighth. The times written into the Lease are
// another machine's word and decide nothing; they only tell one record from another.
//
// The write is a compare-and-swap (PUT with resourceVersion), so of two takers one gets a conflict, and a leader that
// renews just then wins over the taker. An answer may be lost: then the write may have happened, may still happen, or never.
// So every attempt is remembered with the instant it was sent, and whoever reads the record afterwards finds by its renewal
// time whether it is one of ours. Only then is it ours: the name alone proves nothing, because a pod may return under its name
// while its old process still runs somewhere.
//
// A Lease that is not there may have been deleted under a leader, and may have come and gone unseen: absence has no version
// by which to tell. So it is first made with nobody in it, which leads nobody, and then taken like one that a dead leader
// left: after the whole span.
//
// What remains: between looking at `leads()` and a deed there is time in which a process may sleep. Against that stands the
// term, written under resourceVersion on every NodeFence before a deed.
import type { Ms } from './model.ts'

export const leadershipSpan: Ms = 4_000
/** Taken off the leader's own span: clocks may run apart by margin / span, an eighth. */
export const leadershipMargin: Ms = 500
export const renewEvery: Ms = 1_000
/** How often those who do not lead look. */
export const lookEvery: Ms = 500
/** The holder of a Lease just made. Not empty: empty is released, and taken at once. */
export const nobody = 'nobody yet'

export interface LeaseRecord {
  /** Empty: released. */
  readonly holder: string
  readonly term: number
  readonly renewTime: string
}

/** What was read last. */
export interface LeaseView {
  /** Undefined: there is no Lease. */
  readonly record: LeaseRecord | undefined
  /** When this process first saw this very record. */
  readonly unmovedSince: Ms
}

/** A write that this process sent: answered, or not. */
export interface Attempt {
  readonly term: number
  readonly renewTime: string
  readonly sentAt: Ms
}

export interface Candidate {
  readonly identity: string
  /** Every attempt that the record may still show. */
  readonly attempts: readonly Attempt[]
  /** The highest term known from anywhere: a Lease that was deleted must not bring the terms back to one. */
  readonly highestTerm: number
}

export type LeaseAction =
  /** Writes the record of `nobody`, and is no leadership. */
  | { readonly do: 'create'; readonly term: number }
  | { readonly do: 'take'; readonly term: number; readonly because: string }
  | { readonly do: 'renew'; readonly term: number }
  | { readonly do: 'wait'; readonly until: Ms; readonly because: string }

export interface Leadership {
  readonly term: number
  /** Not after this, unless renewed. */
  readonly until: Ms
}

/** What this process may believe, having read `view`. Ask again with the present `now` at each use. */
export function leadershipAt(view: LeaseView | undefined, now: Ms, candidate: Candidate): Leadership | undefined {
  const mine = ownAttempt(view, candidate)
  if (!mine) return undefined
  const until = mine.sentAt + leadershipSpan - leadershipMargin
  return now < until ? { term: mine.term, until } : undefined
}

export function decideLease(view: LeaseView, now: Ms, candidate: Candidate): LeaseAction {
  const { record, unmovedSince } = view
  if (!record) return { do: 'create', term: candidate.highestTerm }
  const term = Math.max(record.term, candidate.highestTerm) + 1
  const until = unmovedSince + leadershipSpan
  const mine = ownAttempt(view, candidate)
  if (mine) {
    if (leadershipAt(view, now, candidate)) return { do: 'renew', term: mine.term }
    // Ours, but too old to act on. Nobody else can act on it either; what follows is a new term.
    return { do: 'take', term, because: 'our own had lapsed' }
  }
  if (record.holder === '') return { do: 'take', term, because: 'it was released' }
  if (now < until) return { do: 'wait', until, because: `${record.holder} leads` }
  return { do: 'take', term, because: `${record.holder} has not renewed for ${leadershipSpan} ms` }
}

/** The view after a reading: the same record keeps its age. */
export function viewOf(before: LeaseView | undefined, record: LeaseRecord | undefined, readAt: Ms): LeaseView {
  return before && sameRecord(before.record, record) ? before : { record, unmovedSince: readAt }
}

function ownAttempt(view: LeaseView | undefined, { identity, attempts }: Candidate): Attempt | undefined {
  const record = view?.record
  if (!record || record.holder !== identity) return undefined
  return attempts.find(({ term, renewTime }) => term === record.term && renewTime === record.renewTime)
}

function sameRecord(one: LeaseRecord | undefined, other: LeaseRecord | undefined): boolean {
  return one?.holder === other?.holder && one?.term === other?.term && one?.renewTime === other?.renewTime
}
