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
    if (machine?.state() !== 'running' || !bearsOurs(world, node)) return
    const [podUid] = [...machine.mounts.values()].flatMap((mount) => (mount.volume === volume ? podOf(mount.path) : []))
    if (podUid === undefined) return
    torn.push({ judge: 'safety', what: `${volume} was taken from ${node} under our out-of-service while it was mounted there`, from: at, parties: [{ node, boot: machine.boot()?.id ?? '', podUid }] })
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
  return [...first.values()].map((act) => ({
    judge: 'safety', what: `${act.pod?.name} was freed from ${act.node} while it ran there`, from: act.at, parties: [{ node: act.node, boot: act.boot ?? '', podUid: act.pod?.uid ?? '' }], act,
  }))
}

const podOf = (path: string): readonly string[] => (path.startsWith(`${kubeletRoot}/pods/`) ? [path.slice(kubeletRoot.length).split('/')[2] ?? ''] : [])

function bearsOurs({ server }: World, name: string): boolean {
  const nodes = (server?.peek('nodes') ?? []) as readonly NodeObject[] // that collection's kind
  return nodes.some(({ metadata, spec }) => metadata.name === name && spec?.taints?.some(({ key, value }) => key === outOfServiceKey && value === ownValue) === true)
}
