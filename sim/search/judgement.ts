// Four judges of a run, outside of what they judge: they ask the storage, the machines, the devices and the API server's
// store, never the product. *Safety*: did two write one volume, or two copies of one pod run? *Restraint*: was a node that was
// well ordered off? *Liveness*: once nothing goes wrong any more, did everything end? *Progress*: where one machine died and
// nothing else went wrong, were its volumes free in seconds?
import type { KubeObject } from '../../coordinator/api.ts'
import type { Ms } from '../../core/model.ts'
import type { Stage } from '../stage.ts'
import type { TruthEntry } from '../truth.ts'
import type { Trouble } from './trouble.ts'
import { watchWellness } from './wellness.ts'

export type Judge = 'safety' | 'liveness' | 'restraint' | 'progress'

export interface Violation {
  readonly judge: Judge
  readonly what: string
}

/** What happened that is no fault of the product: named from the world's truth, never from the product's word. */
export interface Excuse {
  readonly judge: Judge
  readonly what: string
  readonly because: string
}

/** An order may be on its way when a node has just come back; longer than this nobody can call it that. */
const wellLongEnough: Ms = 20_000

/** Listens from now on. The answer tells what was found until then. */
export function restraint(on: Stage): () => readonly Violation[] {
  const wellness = watchWellness(on.world)
  const found: Violation[] = []
  const stop = on.world.truth.listen(({ what, facts }: TruthEntry) => {
    if (what !== 'device ordered' || facts['to'] !== 'off') return
    const machine = on.world.devices.get(String(facts['device']))?.plugs.get(String(facts['plug']))?.machine
    const span = machine === undefined ? 0 : wellness.wellFor(machine.name)
    if (span >= wellLongEnough) found.push({ judge: 'restraint', what: `${facts['device']} was ordered off, and ${machine?.name} had been well for ${(span / 1_000).toFixed(1)} s` })
  })
  return () => {
    stop()
    wellness.stop()
    return found
  }
}

export function safety({ world: { judges } }: Stage): readonly Violation[] {
  return [
    ...judges.twoWriters().map((one) => `two writers on ${one.volume}: ${one.one}, ${one.other}`),
    ...judges.wroteAfterRelease().map((one) => `${one.writer} wrote ${one.volume} after its release`),
    ...judges.twins().map((one) => `twins of ${one.pod}: ${one.one}, ${one.other}`),
  ].map((what) => ({ judge: 'safety', what }))
}

/** Devices whose word was false while a machine was fenced by it (alone on its level such a device cannot be seen through), and
 *  machines whose image was resumed, which docs/safety.md assumes not to happen. */
export function excuses(violations: readonly Violation[], troubles: readonly Trouble[], nodeOf: (trouble: Trouble) => string): readonly Excuse[] {
  const struckBy = (...kinds: readonly string[]) => troubles.filter(({ does }) => kinds.includes(does)).map(nodeOf)
  const causes = [
    ...struckBy('a device lies', 'a device says off early').map((node) => ({ node, because: `the only device of ${node} said off, and it was on` })),
    ...struckBy('the Node object is deleted').map((node) => ({ node, because: `a person deleted the Node ${node}: Kubernetes itself swept its pods` })),
    ...struckBy('the machine hibernates and wakes').map((node) => ({ node, because: `${node} resumed an image of its fenced boot` })),
  ]
  const took = (kind: string, what: string) => troubles.find(({ does }) => does === kind) === undefined ? [] : [what]
  const forgotten = [...took('every NodeRecord is deleted', 'a person deleted the record that knew the fence path'), ...took('every NodeFence is deleted', 'a person deleted the NodeFence that knew of the order'), ...took('the Node object is deleted', 'a person deleted the Node: its machine is nobody\'s to switch on')]
  return violations.flatMap(({ judge, what }) => {
    const [person] = forgotten
    if (judge === 'liveness' && what.endsWith(darkByUs) && person !== undefined) return [{ judge, what, because: person }]
    const cause = causes.find(({ node }) => judge === 'safety' && (what.includes(`on ${node},`) || what.includes(`: ${node} `)))
    return cause === undefined ? [] : [{ judge, what, because: cause.because }]
  })
}

const darkByUs = 'was switched off by us and is off still'

/** Machines that are off by an order of ours, although nothing has gone wrong for minutes. */
export function dark({ world }: Stage): readonly Violation[] {
  return [...world.nodes].filter(([, { machine }]) => machine.state() === 'off').flatMap(([name]) => {
    const last = world.truth.entries.findLast(({ what, facts }) => facts['node'] === name && what === 'machine lost its power')
    const ours = world.truth.entries.some(({ at, what, facts }) => at === last?.at && what === 'device switched' && facts['machine'] === name && facts['to'] === 'off')
    return ours ? [{ judge: 'liveness' as const, what: `${name} ${darkByUs}` }] : []
  })
}

interface Fence extends KubeObject { readonly status?: { readonly phase?: string; readonly holds?: readonly { readonly because: string; readonly detail: string }[] } }
interface Tainted extends KubeObject { readonly spec?: { readonly taints?: readonly { readonly key: string }[] } }
interface Bound extends KubeObject { readonly status?: { readonly phase?: string } }

/** What has not ended yet; empty: everything has. */
export function unfinished({ world }: Stage): readonly string[] {
  const peek = <T extends KubeObject>(collection: string) => (world.server?.peek(collection) ?? []) as readonly T[] // each collection holds its kind
  const pods = peek<Bound>('pods').filter((pod) => pod.metadata.namespace === 'work')
  const idle = pods.filter((pod) => pod.status?.phase !== 'Running' || pod.metadata.deletionTimestamp !== undefined)
  return [
    ...peek<Fence>('nodefences.holdfast.dev').filter((fence) => fence.status?.phase !== 'Final').map((fence) => `${fence.metadata.name} is ${fence.status?.phase} (${fence.status?.holds?.map((hold) => `${hold.because}: ${hold.detail}`).join('; ')})`),
    ...peek<Tainted>('nodes').flatMap((node) => (node.spec?.taints ?? []).filter(({ key }) => key.startsWith('holdfast.dev/') || key.endsWith('out-of-service')).map(({ key }) => `${node.metadata.name} bears ${key}`)),
    ...[...world.nodes.keys()].filter((name) => world.nodes.get(name)?.machine.state() !== 'running').map((name) => `${name} is ${world.nodes.get(name)?.machine.state()}`),
    ...(pods.length < 3 || idle.length > 0 ? [`the workload does not run: ${pods.length} pods, ${idle.map((pod) => `${pod.metadata.name} ${pod.status?.phase}`).join(', ')}`] : []),
  ]
}

/** A dead machine's volumes, in a cluster where nothing else is wrong. */
export const clearedWithin: Ms = 30_000

export function progress({ world }: Stage, victim: string, since: Ms): readonly Violation[] {
  const dead = world.truth.entries.find(({ at, what, facts }) => at >= since && (what === 'machine lost its power' || what === 'machine froze') && facts['node'] === victim)
  if (dead === undefined) return []
  const late = world.truth.entries.filter(({ at, what, facts }) => at >= dead.at && what === 'volume released' && facts['node'] === victim)
  const last = late.at(-1)
  const left = world.truth.entries.filter(({ at, what, facts }) => at < dead.at && what === 'volume attached' && facts['node'] === victim).length === 0
  if (left) return []
  if (last !== undefined && last.at - dead.at <= clearedWithin) return []
  return [{ judge: 'progress', what: `${victim} died, and its volumes were ${last === undefined ? 'never released' : `released after ${((last.at - dead.at) / 1_000).toFixed(1)} s`}` }]
}
