// A head start for the devices. Most of what a power loss waits for are two words of its device, a second apart; so the first is
// asked for when a beat is late, a moment before anybody suspects the node. It is a look like any other: no verdict follows
// from it, and what it brings counts by the same rules as if it had been asked later.
//
// A beat is late now and then, by the network's fault or by our own. So a node is asked seldom, and none is while many are late
// together or many programs run: then the fault is hardly theirs, and to ask would only keep suspects from being asked.
import type { Look } from './action.ts'
import { audited } from './audit.ts'
import { askDevices } from './look.ts'
import type { Ms } from './model.ts'
import type { Survey } from './survey.ts'

/** Late nodes and running programs together; when there are more, the late ones are asked once they are suspect. */
const most = 8
/** A node that is late again and again is asked no more often. */
const askEvery: Ms = 10_000

export function headStart(on: Survey): Look[] {
  if (on.late.length + on.running.programs > most) return []
  // Where an audit is still under way, the answer would be taken for one, and a node that dies just then for a path that lies.
  return on.late.filter((node) => node.beat !== undefined && audited(node, node.beat)).flatMap((node) => askDevices(node, on.now, askEvery))
}
