// Is a machine's power taken while its crash kernel writes its memory down? Where the fence configuration waits for dumps, whoever has heard
// the word waits for the dump, and before any word could come, for the word. What was ordered before the crash goes its way.
import type { Ms } from '../../../core/model.ts'
import { crashKernels } from '../crash-kernels.ts'
import type { Violation } from '../judgement.ts'
import { seconds } from './facts.ts'
import { look, type History, type Sight } from './sight.ts'

export interface DumpJudge {
  look(sight: Sight): void
  found(): readonly Violation[]
  stop(): void
}

/** From a word to the decision that knows it, and from a decision to its order. */
const newsTakes: Ms = 3_000
/** Between two looks, and between a beat and the next. */
const lookTakes: Ms = 7_000

/** A machine that has crashed, and has had its power ever since. */
interface Crash {
  readonly at: Ms
  /** Its agent was there and well at the latest look before. */
  readonly spoke: boolean
  /** First heard by each replica. */
  readonly heard: Map<string, Ms>
}

/** Listens from now on. */
export function judgeDumps(history: History): DumpJudge {
  const { world } = history.on
  const crashes = new Map<string, Crash>()
  const spoke = new Set<string>()
  /** Ordered off in this boot. */
  const ordered = new Set<string>()
  const violations: Violation[] = []
  const unlisten = world.truth.listen(({ at, what, facts }) => {
    const node = String(facts['node'])
    if (what === 'machine booted') ordered.delete(node)
    if (what === 'machine lost its power') crashes.delete(node)
    if (what === 'kernel panics') crashes.set(node, { at, spoke: spoke.has(node), heard: new Map() })
    if (what === 'crash kernel heard') {
      const { heard } = crashes.get(node) ?? {}
      const replica = String(facts['replica'])
      if (heard?.has(replica) === false) heard.set(replica, at)
    }
    if (what === 'program runs' && facts['action'] === 'off') orderedOff(String(facts['replica']), facts['ip'], facts['plug'], at)
  })

  function orderedOff(replica: string, ip: unknown, plug: unknown, at: Ms): void {
    const sight = look(history)
    const node = [...world.nodes.keys()].find((name) => sight.switches(name).flat().some((one) => one.kind !== 'port' && one.address === ip && one.plug === plug))
    if (node === undefined || ordered.has(node)) return
    ordered.add(node)
    const crash = crashes.get(node)
    const why = crash === undefined || history.configEdited() ? undefined : cutShort(crash, replica, at, sight.ears.asked(node))
    if (why !== undefined) violations.push({ judge: 'restraint', what: `${node} was ordered off, and ${why}`, node, from: at })
  }

  return {
    look(sight) {
      for (const name of world.nodes.keys()) {
        if (sight.wellness.speaksFor(name) > 0) spoke.add(name)
        else spoke.delete(name)
      }
    },
    found: () => violations,
    stop: unlisten,
  }
}

function cutShort(crash: Crash, replica: string, at: Ms, asked: boolean): string | undefined {
  const heard = crash.heard.get(replica)
  if (heard !== undefined && at - heard > newsTakes) {
    return at - heard < crashKernels.dumpsWithin - newsTakes ? `its crash kernel had told ${replica} of its dump ${seconds(at - heard)} before` : undefined
  }
  // Whom a person wants fenced may beat all the while: no word of it is waited for.
  if (!crash.spoke || asked) return undefined
  return at - crash.at < crashKernels.announcesWithin - lookTakes ? `its kernel had panicked ${seconds(at - crash.at)} before, and its crash kernel had time left to tell of itself` : undefined
}
