// Did a workload start in a boot that nobody can have accepted? Where the runtimes ask the gates, and our quarantine was on the node when its
// machine booted and stands there still, no replica has accepted that boot, and the API server's own word is no either.
import { quarantineKey } from '../../../core/clear.ts'
import type { NodeObject } from '../../objects.ts'
import type { World } from '../../world.ts'
import type { Violation } from '../judgement.ts'
import type { Ears } from './ears.ts'

export interface GateJudge {
  found(): readonly Violation[]
  stop(): void
}

/** Listens from now on. */
export function judgeGate(world: World, { acts }: Ears): GateJudge {
  const under = new Map<string, number>()
  const violations: Violation[] = []
  if (!world.settings.gate) return { found: () => [], stop: () => undefined }
  const stop = world.truth.listen(({ at, what, facts }) => {
    const node = String(facts['node'])
    if (what === 'machine booted') {
      if (quarantined(world, node)) under.set(node, at)
      else under.delete(node)
    }
    if (what !== 'container runs' || String(facts['pod']).startsWith(`${world.settings.systemNamespace}/`)) return
    const since = under.get(node)
    // Put on anew, it was off in between, and then the boot was accepted.
    if (since === undefined || !quarantined(world, node) || acts.some((act) => act.does === 'quarantine' && act.node === node && act.at > since)) return
    violations.push({ judge: 'safety', what: `${String(facts['pod'])} started on ${node}, which has been under quarantine since before it booted`, node, from: at })
  })
  return { stop, found: () => violations }
}

function quarantined({ server }: World, name: string): boolean {
  const nodes = (server?.peek('nodes') ?? []) as readonly NodeObject[] // that collection's kind
  return nodes.some(({ metadata, spec }) => metadata.name === name && spec?.taints?.some(({ key }) => key === quarantineKey) === true)
}
