// How an answer to a look of ours joins what was known: a Lease, the kubelet port, the words of witnesses.
import type { LeaseSeen, Ms, ProbeSeen, WitnessSeen } from '../core/model.ts'
import { movesToldApart } from '../core/renewed.ts'
import type { Row } from './row.ts'

/** Five are asked at once, and every other replica; the rest is history. */
const wordsKept = 32

/** `unmovedSince` is the read that first showed this renewTime, as asked: the Lease cannot have moved between that and now. */
export function leaseAfter(before: LeaseSeen | undefined, askedAt: Ms, readAt: Ms, renewTime: string): LeaseSeen {
  if (before === undefined) return { askedAt, readAt, renewTime, unmovedSince: readAt, moved: false }
  if (before.renewTime === renewTime) return { ...before, askedAt, readAt }
  return { askedAt, readAt, renewTime, unmovedSince: readAt, moved: true, movedAfter: before.askedAt, moves: [...before.moves ?? [], before.askedAt].slice(-movesToldApart) }
}

/** The first silence of its port since its last beat, as it stands once this was answered. One that a word has ended goes on no more, and a
 *  question that another one was answered after was lost on its way. */
export function fallAfter({ beat, probe }: Row, { askedAt, word }: Pick<ProbeSeen, 'askedAt' | 'word'>): ProbeSeen['fell'] {
  const { fell, spokeAt = -Infinity } = probe ?? {}
  const heardAt = beat?.at ?? -Infinity
  if (word !== 'silent' || askedAt <= heardAt || spokeAt >= askedAt) return fell
  if (fell === undefined || fell.at <= heardAt) return { at: askedAt, until: askedAt, spokeAt }
  return spokeAt >= fell.at || askedAt < fell.until ? fell : { ...fell, until: askedAt }
}

/** The latest word of each witness, by when it was asked; two questions may be under way, and the first be answered last. A
 *  seal is a word of the node itself: the latest one stays, whatever its witness says afterwards. */
export function wordsAfter(words: WitnessSeen[], word: WitnessSeen): WitnessSeen[] {
  const own = words.filter((old) => old.witness === word.witness)
  if (own.some((old) => old.askedAt > word.askedAt)) return sealed(word) ? keptWords([...words, word]) : words
  return keptWords([...words.filter((old) => old.witness !== word.witness || sealed(old)), word])
}

function keptWords(words: WitnessSeen[]): WitnessSeen[] {
  const lastSeal = words.filter(sealed).toSorted((one, other) => other.answeredAt - one.answeredAt)[0]
  const latest = new Map(words.toSorted((one, other) => one.askedAt - other.askedAt).map((word) => [word.witness, word]))
  const kept = words.filter((word) => latest.get(word.witness) === word).slice(-wordsKept)
  return lastSeal === undefined || kept.includes(lastSeal) ? kept : [lastSeal, ...kept]
}

const sealed = (word: WitnessSeen): boolean => word.word === 'hears' && word.proven
