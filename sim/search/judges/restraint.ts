// Was a node that was well, and that no person wanted fenced, ordered off, or a pod deleted from it, or one of many that were lost together and run on? That it was kept from new pods for a while is milder, and only
// counted.
import type { Ms } from '../../../core/model.ts'
import type { TruthEntry } from '../../truth.ts'
import type { World } from '../../world.ts'
import type { Violation } from '../judgement.ts'
import type { Wellness } from '../wellness.ts'
import type { Ears } from './ears.ts'
import { leftovers, seconds } from './facts.ts'
import type { Sight } from './sight.ts'

export interface RestraintJudge {
  look(sight: Sight): void
  found(): readonly Violation[]
  /** Times that a node which was well was quarantined. */
  quarantined(): number
  stop(): void
}

/** An order may be on its way when a node has just come back; longer than this nobody can call it that. */
export const wellLongEnough: Ms = 20_000

/** A fast profile calls a node dead by then. */
const lostLongEnough: Ms = 4_000
/** More of all nodes than the widest policy of any scene allows. */
const common = 0.6

/** No policy of any scene loses its patience sooner with a node that is under quarantine and does not become clean. */
const patience: Ms = 60_000
/** Between two looks, and to the product. */
const newsTakes: Ms = 10_000

/** Listens from now on. */
export function judgeRestraint(world: World, wellness: Wellness, { acts, asked }: Ears): RestraintJudge {
  const orders: Violation[] = []
  const littered: { readonly node: string; readonly since: Ms; until: Ms }[] = []
  const isLittered = (node: string, at: Ms): boolean => littered.some((span) => span.node === node && at - span.since >= patience && at - span.until <= newsTakes)
  const stop = world.truth.listen(({ at, what, facts }: TruthEntry) => {
    if (what !== 'device ordered' || facts['to'] !== 'off') return
    const node = world.devices.get(String(facts['device']))?.plugs.get(String(facts['plug']))?.machine?.name
    if (node === undefined) return
    const lost = [...world.nodes.keys()].filter((name) => wellness.lostFor(name) >= lostLongEnough)
    if (lost.includes(node) && lost.length > common * world.nodes.size) {
      orders.push({ judge: 'restraint', what: `${facts['device']} was ordered off while ${lost.length} of ${world.nodes.size} nodes ran and nobody could hear them`, node, from: at })
    }
    const span = wellness.wellFor(node)
    if (span < wellLongEnough || asked(node) || isLittered(node, at)) return
    orders.push({ judge: 'restraint', what: `${facts['device']} was ordered off, and ${node} had been well for ${seconds(span)}`, node, from: at })
  })
  return {
    stop,
    look(sight) {
      for (const name of world.nodes.keys()) {
        if (sight.ours(name).length === 0 || leftovers(name, sight).length === 0) continue
        const last = littered.findLast(({ node }) => node === name)
        if (last !== undefined && sight.now - last.until <= newsTakes) last.until = sight.now
        else littered.push({ node: name, since: sight.now, until: sight.now })
      }
    },
    found: () => [...orders, ...acts.flatMap(({ at, does, node, wellFor, pod, asked: wanted }): readonly Violation[] => {
      if (does === 'evict a pod' && !wanted && !isLittered(node, at)) return [{ judge: 'restraint', what: `${pod?.name} was evicted from ${node}, which nobody had asked to be fenced`, node, from: at }]
      // An object that is left of a pod that is over is buried when somebody comes to it: its status was the blow.
      if (does !== 'free a pod' || wellFor < wellLongEnough || pod?.over === true) return []
      return [{ judge: 'restraint', what: `${pod?.name} was deleted from ${node}, which had been well for ${seconds(wellFor)}`, node, from: at }]
    })],
    quarantined: () => acts.filter(({ does, wellFor }) => does === 'quarantine' && wellFor >= wellLongEnough).length,
  }
}
