// Taints of ours that no open incident owns.
import type { Action } from './action.ts'
import { paused, theirPause } from './brake.ts'
import { hasOurs, outOfServiceKey, quarantineKey } from './clear.ts'
import { othersHands } from './hands.ts'
import { askClean } from './look.ts'
import type { NodeSeen } from './model.ts'
import { afterPatience } from './patience.ts'
import { awaiting } from './return.ts'
import { hold, untaint } from './situation.ts'
import type { Survey } from './survey.ts'

/** Their owner is gone with its NodeFence. Nothing on record says why out-of-service should stand, and its node runs, or may be switched on by anybody. */
export function strays(on: Survey): readonly Action[] {
  const unowned = ({ name, busy }: NodeSeen): boolean => !on.open.has(name) && !busy.has(`deed ${name}`)
  return [
    ...on.outOfService.filter(unowned).map((node) => untaint(node, outOfServiceKey, 'no incident of this node is open')),
    ...on.quarantined.filter((node) => unowned(node) && !hasOurs(node, outOfServiceKey)).flatMap((node) => (on.verdicts.has(node.name) ? unheard(on, node) : quarantined(on, node))),
  ]
}

/** Its quarantine stays, and says for what: it may be silent for long before it is dead, and before an incident owns the taint. */
function unheard(on: Survey, node: NodeSeen): Action[] {
  const lacks = awaiting(undefined, node, on.now)
  return lacks === undefined ? [] : [hold(node.name, lacks)]
}

/** Its exit is the same as any return's. */
function quarantined(on: Survey, node: NodeSeen): Action[] {
  // While its boot is not on record the next tick would quarantine it again.
  if (on.unclean.has(node)) return []
  const { pause } = on.seen.self
  const off = pause === undefined ? othersHands(node) : paused(pause, theirPause)
  if (off !== undefined) return [hold(node.name, off)]
  const own = [...on.seen.incidents.values()].filter((incident) => incident.nodeName === node.name)
  for (const incident of own.length === 0 ? [undefined] : own) {
    const lacks = awaiting(incident, node, on.now)
    if (lacks !== undefined) return [...askClean(node, on.now), afterPatience(on, node, incident, lacks)]
  }
  return [untaint(node, quarantineKey, 'no incident of this node is open, and it is clean')]
}
