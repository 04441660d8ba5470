// Did two write one volume, or two copies of one pod run? And was anything cut loose while the old node could still write: a pod
// freed whose container is there on its machine, a volume taken under our out-of-service from a machine that has it mounted?
// That is the promise itself; two writers are what may come of it.
import { outOfServiceKey, ownValue } from '../../../core/clear.ts'
import { kubeletRoot } from '../../mounts.ts'
import type { NodeObject } from '../../objects.ts'
import type { World } from '../../world.ts'
import type { Violation } from '../judgement.ts'
import type { Ears } from './ears.ts'

export interface SafetyJudge {
  found(): readonly Violation[]
  stop(): void
}

export function judgeSafety(world: World, ears: Ears): SafetyJudge {
  const torn: Violation[] = []
  const stop = world.truth.listen(({ at, what, facts }) => {
    if (what !== 'volume released') return
    const [node, volume] = [String(facts['node']), String(facts['volume'])]
    const machine = world.nodes.get(node)?.machine
    const mounted = machine?.state() === 'running' && [...machine.mounts.values()].some((mount) => mount.volume === volume && mount.path.startsWith(`${kubeletRoot}/pods/`))
    if (!mounted || !bearsOurs(world, node)) return
    torn.push({ judge: 'safety', what: `${volume} was taken from ${node} under our out-of-service while it was mounted there`, from: at, parties: [{ node, boot: machine.boot()?.id ?? '' }] })
  })
  return {
    stop,
    found: () => [...collisions(world), ...torn, ...freedAlive(ears)],
  }
}

function collisions({ judges }: World): readonly Violation[] {
  return [
    ...judges.twoWriters().map((one) => ({ ...one, what: `two writers on ${one.volume}: ${one.one}, ${one.other}` })),
    ...judges.wroteAfterRelease().map((one) => ({ ...one, what: `${one.writer} wrote ${one.volume} after its release` })),
    ...judges.twins().map((one) => ({ ...one, what: `twins of ${one.pod}: ${one.one}, ${one.other}` })),
  ].map(({ what, from, parties }) => ({ judge: 'safety', what, from, parties }))
}

/** Once a pod: its status and its object are two writes of one deed. */
function freedAlive({ acts }: Ears): readonly Violation[] {
  const first = new Map(acts.flatMap((act) => (act.does === 'free a pod' && act.pod?.runs === true ? [[act.pod.uid, act] as const] : [])).toReversed())
  return [...first.values()].map(({ at, node, boot = '', pod }) => ({
    judge: 'safety', what: `${pod?.name} was freed from ${node} while it ran there`, from: at, parties: [{ node, boot }],
  }))
}

function bearsOurs({ server }: World, name: string): boolean {
  const nodes = (server?.peek('nodes') ?? []) as readonly NodeObject[] // that collection's kind
  return nodes.some(({ metadata, spec }) => metadata.name === name && spec?.taints?.some(({ key, value }) => key === outOfServiceKey && value === ownValue) === true)
}
