// The incident's Node object is gone, was made anew, or is another machine's now.
import type { Action } from './action.ts'
import type { Brake } from './brake.ts'
import { hasOurs, outOfServiceKey, quarantineKey } from './clear.ts'
import { cuts } from './cut.ts'
import { seconds } from './judge.ts'
import { goneKey, type Ms } from './model.ts'
import { end } from './restore.ts'
import { hold, untaint, withdraw, type Situation } from './situation.ts'
import { settle } from './settle.ts'

/** Another machine under the name: what we knew is of no use here. */
export function replaced(at: Situation, because: string): Action[] {
  const { incident, node } = at
  const ours = [outOfServiceKey, quarantineKey].find((key) => hasOurs(node, key))
  if (ours !== undefined) return [untaint(node, ours, because, incident)]
  return outlived(at, 'Replaced', because)
}

/** No proof carries over to another Node object, but the machine is the one that we cut. */
export function madeAnew(at: Situation): Action[] {
  if (at.status.proof?.kind === 'vouched') return replaced(at, 'its Node was made anew, and a person\'s word was of the one before: there may be hands in the machine')
  return [withdraw(at.incident, 'its Node was made anew: what was proven of the one before frees nothing more, and what was cut is given back')]
}

/** The end: nothing is freed or switched any more for a node that is not there, and nothing is buried. Kubernetes sweeps every pod of a Node
 *  that is gone within a minute or so, doomed ones among them. But what was sent for it may land on who bears its name
 *  next, or on the proof of that one's incident, so it is waited out. */
export function outlived(at: Situation, outcome: 'NodeDeleted' | 'Replaced', because: string, brake?: Brake): Action[] {
  const orphan = settle(at)
  if (orphan !== undefined) return [orphan]
  if (brake !== undefined) return [hold(at.node.name, brake, at.incident)]
  // The machine that it was meant for may be behind it still; or the one that came in its place, on one feed of two.
  const shut = cuts(at.incident, at.node).filter(({ givenBack, says }) => !givenBack && says !== 'on').map(({ method }) => method.name)
  return end(at, outcome, shut.length === 0 ? because : `${because}; ${shut.join(', ')} was ordered off and stays so, until a person knows what is behind it`)
}

/** `kubectl replace --force` deletes first. */
const madeAnewWithin: Ms = 30_000

/** Once the incident is over nobody knows that the machine is dark through us. */
export function mayBeMadeAnew({ on, incident, node }: Situation): Brake | undefined {
  const owed = cuts(incident, node).filter(({ givenBack }) => !givenBack).map(({ method }) => method.name)
  if (owed.length === 0 || on.now - (node.firstSeen.get(goneKey) ?? -Infinity) >= madeAnewWithin) return undefined
  const detail = `${owed.join(', ')} was ordered off, and nothing is switched on for a Node object that is gone`
  return { because: 'still-cut', detail, lifts: `its Node made anew, or ${seconds(madeAnewWithin)} without it` }
}
