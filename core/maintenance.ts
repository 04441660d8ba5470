// A node that is quarantined is being worked on, and says so by the condition that Kubernetes has for it, MaintenanceInProgress, where the
// API server knows that one. It is told for others to read: nothing here follows from it, and nothing waits for it.
import { isLook, type Action, type Deed } from './action.ts'
import { hasOurs, quarantineKey } from './clear.ts'
import { othersHands } from './hands.ts'
import type { NodeSeen } from './model.ts'
import type { Survey } from './survey.ts'

const writesAtOnce = 8

/** Beside other wishes of a tick: a node that anything else is to be done to has no time for this. What we have said is taken back wherever
 *  it stands, also where the server is an older one by now. */
export function declareMaintenance(on: Survey, wished: readonly Action[]): Deed[] {
  if (on.seen.self.pause !== undefined || (on.quarantined.length === 0 && on.maintained.length === 0)) return []
  const busy = new Set(wished.flatMap((action) => (isLook(action) || action.do === 'hold' ? [] : [action.node])))
  const idle = (node: NodeSeen): boolean => !busy.has(node.name) && othersHands(node) === undefined && ![...node.busy].some((key) => key.startsWith('deed ') || key.startsWith('order '))
  const begin = on.seen.self.knowsMaintenance === true ? on.quarantined.filter((node) => node.maintenance === undefined && hasOurs(node, quarantineKey) && idle(node)) : []
  const end = on.maintained.filter((node) => !hasOurs(node, quarantineKey) && idle(node))
  return [...end.map((node) => declare(node, false)), ...begin.map((node) => declare(node, true))].slice(0, writesAtOnce)
}

const declare = ({ name }: NodeSeen, maintenance: boolean): Deed => ({ do: 'declare', node: name, maintenance })
