// Four judges of a run, outside of what they judge: they ask the storage, the machines, the devices and the API server's store,
// never the product. *Safety*: did two write one volume, or two copies of one pod run, or was anything cut loose while they
// could, or a node let back on which something was left over, or did a workload start in a boot that nobody accepted, or run on where nobody permitted it? *Restraint*: was a node that was well ordered off, or a pod deleted
// from it, or did one give up that was permitted to run, or was one touched that a person had in hand, or whose crash kernel wrote its dump, or fenced as a remedy for nothing? *Liveness*: once nothing goes wrong any more, does everything end, or hold for a reason that is true in the world?
// *Progress*: where one machine died and nothing else went wrong, were its volumes free in seconds? The court lets them listen
// from the beginning and look every few seconds.
import type { Ms } from '../../core/model.ts'
import type { Party } from '../judges.ts'
import type { Stage } from '../stage.ts'
import { listen, type Act } from './judges/ears.ts'
import type { ExcuseReason } from './judges/excuse-reasons.ts'
import { excuses, type Struck } from './judges/excuses.ts'
import { judgeClean } from './judges/clean.ts'
import { judgeDumps } from './judges/dumps.ts'
import { judgeGate } from './judges/gate.ts'
import { judgeHands } from './judges/hands.ts'
import { judgeHolds } from './judges/holds.ts'
import { halfFed, leftInTheDark } from './judges/liveness.ts'
import { judgeRemedies } from './judges/remedies.ts'
import { judgeRestraint } from './judges/restraint.ts'
import { judgeSafety } from './judges/safety.ts'
import { judgeSelfStop } from './judges/self-stop.ts'
import { look, type History } from './judges/sight.ts'
import { judgeTaints } from './judges/taints.ts'
import { watchWellness } from './wellness.ts'

export type { Party } from '../judges.ts'
export { unfinished } from './judges/liveness.ts'
export { progress } from './judges/progress.ts'

export type Judge = 'safety' | 'liveness' | 'restraint' | 'progress'

export interface Violation {
  readonly judge: Judge
  readonly what: string
  readonly node?: string
  /** Since when it is so. */
  readonly from?: Ms
  /** The boots that had a part in it. */
  readonly parties?: readonly Party[]
  /** The deed that it is: nothing else that was done can excuse it. */
  readonly act?: Act
}

/** What happened that is no fault of the product: named from the world's truth, never from the product's word. */
export interface Excuse {
  /** Of this one alone, and of no other that reads like it. */
  readonly of: Violation
  readonly judge: Judge
  readonly what: string
  readonly reason: ExcuseReason
  readonly because: string
}

export interface Court {
  /** Nothing goes wrong from now on: whoever waits must have a reason that is true. */
  relieved(): void
  /** Machines that are dark through us, or dead without a word. */
  leftInTheDark(): readonly Violation[]
  /** Times that a node which was well was quarantined: milder than a violation. */
  quarantined(): number
  /** From which phase to which incidents went. */
  turns(): ReadonlySet<string>
  /** All that was found until then, but for what only the end shows. The judges are dismissed. */
  close(): readonly Violation[]
  excuses(violations: readonly Violation[], struck: readonly Struck[]): readonly Excuse[]
}

const looksEvery: Ms = 5_000

export function convene(on: Stage): Court {
  const { world } = on
  const wellness = watchWellness(world)
  const ears = listen(world, wellness)
  const [safety, restraint, holds, taints] = [judgeSafety(world, ears), judgeRestraint(world, wellness, ears), judgeHolds(), judgeTaints()]
  const outOfServiceAt = new Map<string, Ms>()
  const config = () => JSON.stringify((world.server?.peek('configmaps') ?? []).filter(({ metadata: { name } }) => name.startsWith('fence-')))
  const before = config()
  let edited = false
  let relieved = false
  const history: History = { on, wellness, ears, configEdited: () => edited, outOfServiceAt: (node) => outOfServiceAt.get(node) }
  const clean = judgeClean(history)
  const gate = judgeGate(world, ears)
  const selfStop = judgeSelfStop(history)
  const hands = judgeHands(history)
  const dumps = judgeDumps(history)
  const remedies = judgeRemedies(history)
  let cancel = world.clock.after(looksEvery, turn)

  function turn(): void {
    const sight = look(history)
    edited ||= config() !== before
    for (const { metadata: { name } } of sight.nodes()) if (sight.ours(name).some((key) => key.endsWith('/out-of-service'))) outOfServiceAt.set(name, sight.now)
    taints.look(sight)
    clean.look(sight)
    restraint.look(sight)
    hands.look(sight)
    dumps.look(sight)
    remedies.look(sight)
    if (relieved) holds.look(sight)
    cancel = world.clock.after(looksEvery, turn)
  }

  return {
    relieved: () => { relieved = true },
    leftInTheDark: () => leftInTheDark(history),
    quarantined: () => restraint.quarantined(),
    turns: () => ears.turns,
    close() {
      cancel()
      for (const one of [safety, restraint, clean, gate, selfStop, hands, dumps, remedies, ears, wellness]) one.stop()
      return [...safety.found(), ...clean.found(), ...gate.found(), ...selfStop.found(), ...restraint.found(), ...hands.found(), ...dumps.found(), ...remedies.found(), ...holds.found(), ...taints.found(), ...halfFed(history)]
    },
    excuses: (violations, struck) => excuses(violations, history, struck),
  }
}
