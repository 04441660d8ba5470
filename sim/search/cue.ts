// What a trouble can wait for. Most of what could break a promise must come within a second or so of something that the product
// does, and a time drawn blindly hits that second too seldom.
import type { Ms } from '../../core/model.ts'
import type { Chance } from '../chance.ts'
import type { Truth, TruthEntry } from '../truth.ts'

type Shows = (entry: TruthEntry) => boolean

const runs = (action: string): Shows => ({ what, facts }) => what === 'program runs' && facts.action === action
const ended = (action: string): Shows => ({ what, facts }) => what === 'program ended' && facts.action === action
const exitOff = 2

const shows = {
  'an off begins': runs('off'),
  'an off ended': ended('off'),
  'an off is read': ({ what, facts }) => what === 'program ended' && facts.action === 'status' && facts.exit === exitOff,
  'a volume is released': ({ what }) => what === 'volume released',
  'a container runs': ({ what }) => what === 'container runs',
  'an on begins': runs('on'),
  'an on ended': ended('on'),
  'a machine booted': ({ what }) => what === 'machine booted',
  'something is held': ({ what, facts }) => what === 'log' && facts.message === 'held',
} satisfies Readonly<Record<string, Shows>>

export type Cue = keyof typeof shows

export const cues = Object.keys(shows) as readonly Cue[] // its own keys

/** How long after the cue, drawn over spans of different size: a race is decided in tenths of a second or in seconds. */
const delays: readonly Ms[] = [200, 2_000, 12_000]

export function drawnCue(chance: Chance): { readonly after: Cue; readonly at: Ms } {
  return { after: chance.pick(cues), at: Math.round(chance.between(0, chance.pick(delays))) }
}

/** Told once, in the middle of what gives the cue: what follows is for later. */
export function onCue(truth: Truth, cue: Cue, then: () => void): () => void {
  const forget = truth.listen((entry) => {
    if (!shows[cue](entry)) return
    forget()
    then()
  })
  return forget
}
