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

/** Our quarantine on a node that has no open incident: its owner is gone, its exit is the same as any return's. */
export function strays(on: Survey): readonly Action[] {
  return on.quarantined.filter((node) => !on.open.has(node.name)).flatMap((node) => (on.verdicts.has(node.name) ? unheard(on, node) : stray(on, node)))
}

/** Its quarantine stays, and says for what: it may be silent for long before it is dead, and before an incident owns the taint. */
function unheard(on: Survey, node: NodeSeen): Action[] {
  if (node.busy.has(`deed ${node.name}`)) return []
  if (hasOurs(node, outOfServiceKey)) return [withoutOwner(node)]
  const lacks = awaiting(undefined, node, on.now)
  return lacks === undefined ? [] : [hold(node.name, lacks)]
}

/** Nothing on record says why it should stand, and the node may be running, or be switched on by anybody. */
function withoutOwner(node: NodeSeen): Action {
  return untaint(node, outOfServiceKey, 'no incident of this node is open')
}

function stray(on: Survey, node: NodeSeen): Action[] {
  // While its boot is not on record the next tick would quarantine it again.
  if (node.busy.has(`deed ${node.name}`) || on.unclean.has(node)) return []
  const { pause } = on.seen.self
  const off = pause === undefined ? othersHands(node) : paused(pause, theirPause)
  if (off !== undefined && !hasOurs(node, outOfServiceKey)) return [hold(node.name, off)]
  if (hasOurs(node, outOfServiceKey)) return [withoutOwner(node)]
  const own = [...on.seen.incidents.values()].filter((incident) => incident.nodeName === node.name)
  for (const incident of own.length === 0 ? [undefined] : own) {
    const lacks = awaiting(incident, node, on.now)
    if (lacks !== undefined) return [...askClean(node, on.now), afterPatience(on, node, incident, lacks)]
  }
  return [untaint(node, quarantineKey, 'no incident of this node is open, and it is clean')]
}
