// Where one machine died and nothing else went wrong: was each volume that it had free in seconds?
import type { Ms } from '../../../core/model.ts'
import type { World } from '../../world.ts'
import type { Violation } from '../judgement.ts'
import { seconds } from './facts.ts'

export const clearedWithin: Ms = 30_000

export function progress({ truth: { entries } }: World, victim: string, since: Ms): readonly Violation[] {
  const dead = entries.find(({ at, what, facts }) => at >= since && (what === 'machine lost its power' || what === 'machine froze') && facts['node'] === victim)
  if (dead === undefined) return []
  const held = new Set<string>()
  for (const { at, what, facts } of entries) {
    if (at >= dead.at) break
    if (facts['node'] !== victim) continue
    if (what === 'volume attached') held.add(String(facts['volume']))
    if (what === 'volume released') held.delete(String(facts['volume']))
  }
  const freed = (volume: string) => entries.find(({ at, what, facts }) => at >= dead.at && what === 'volume released' && facts['node'] === victim && facts['volume'] === volume)
  const late = [...held].map((volume) => ({ volume, at: freed(volume)?.at ?? Infinity })).filter(({ at }) => at - dead.at > clearedWithin)
  if (late.length === 0) return []
  const told = late.map(({ volume, at }) => `${volume} was ${at === Infinity ? 'never released' : `released after ${seconds(at - dead.at)}`}`)
  return [{ judge: 'progress', what: `${victim} died, and ${told.join(', ')}`, node: victim, from: dead.at }]
}
