// When a permit is taken back: of a node that no device proves off, nor could soon, and whose own watchdog could. It is an order to the machine like
// any other, and comes under the same brakes.
import type { Action } from './action.ts'
import { hasTaint, quarantineKey } from './clear.ts'
import { isPartial } from './incident.ts'
import { readLive } from './look.ts'
import type { Ms } from './model.ts'
import { proveSelfFenced } from './proof.ts'
import { unfenceable } from './self-fence.ts'
import { hold, quarantine, type Situation } from './situation.ts'

const liveEvery: Ms = 2_000

/** Silent by all that could be heard of it, and told by nobody to run. */
export function isFencingItself({ on, node, status }: Situation): boolean {
  const verdict = on.verdicts.get(node.name)
  return status.revoked !== undefined && (verdict?.is === 'suspect' || verdict?.is === 'dead')
}

export function selfFence(at: Situation): Action[] {
  const { on, incident, node, status } = at
  if (incident.policy.selfFenced !== 'accept' || (status.proof !== undefined && !isPartial(status.proof))) return []
  if (status.revoked !== undefined) {
    const result = proveSelfFenced(incident, node, on.seen.nodes, on.seen.self, on.now)
    const looks = readLive(node, on.now, liveEvery).filter((look) => look.do === 'readNode')
    return [...looks, ...('proof' in result ? [] : [hold(node.name, { because: 'self-fencing', detail: result.lacks, lifts: 'that over, a beat of the node, or spec.acknowledge by a person who knows that the machine is off' }, incident)])]
  }
  const why = unfenceable(incident, node.record)
  if (why !== undefined) return [hold(node.name, { because: 'self-fencing', detail: `its watchdog proves nothing: ${why}`, lifts: 'another proof' }, incident)]
  on.fencing.add(node.name)
  return [hasTaint(node, quarantineKey) ? { do: 'revoke', node: node.name, incident: incident.name } : quarantine(at)]
}
