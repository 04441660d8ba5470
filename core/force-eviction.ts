// Somebody's word, given by a taint, that a node is off: believed as long as the node itself says nothing against it.
import { forceEvictionKey } from './acknowledge.ts'
import type { Action } from './action.ts'
import { paused, theirPause } from './brake.ts'
import { hasTaint } from './clear.ts'
import { othersHands } from './hands.ts'
import { evictionKey, type NodeSeen } from './model.ts'
import { hold, untaint } from './situation.ts'
import type { Survey } from './survey.ts'

export const wellAgain = 'the node was heard since, Ready is True, and nothing was freed by that word'

export function isEvicted(node: NodeSeen): boolean {
  return hasTaint(node, forceEvictionKey) && node.ready.status !== 'True'
}

/** Ready, posted after the word, or with a beat after it: what was said before it may be why somebody went to look. */
export function speaksAgainst({ ready, beat, firstSeen }: NodeSeen): boolean {
  return ready.status === 'True' && Math.max(ready.postedAt, beat?.at ?? -Infinity) > (firstSeen.get(evictionKey) ?? Infinity)
}

/** Somebody says that a node is off, and it is not: taken back before anything follows from it. */
export function refutedWords(on: Survey): readonly Action[] {
  return on.evicted.filter((node) => !on.open.has(node.name) && !node.busy.has(`deed ${node.name}`) && speaksAgainst(node))
    .map((node) => {
      const off = on.seen.self.pause === undefined ? othersHands(node) : paused(on.seen.self.pause, theirPause)
      return off === undefined ? untaint(node, forceEvictionKey, 'the node is well: Ready is True') : hold(node.name, off)
    })
}
