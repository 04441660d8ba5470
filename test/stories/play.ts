// What the stories share: a settled cluster and its victim, the questions asked of the world afterwards, the transcript.
import type { KubeObject } from '../../coordinator/api.ts'
import type { Incident } from '../../core/incident.ts'
import type { Ms } from '../../core/model.ts'
import { settled, stage, type Stage, type StageSettings } from '../../sim/stage.ts'
import type { World } from '../../sim/world.ts'

export interface Play extends Stage {
  /** The node that runs the StatefulSet's pod; its pods with volumes are what the story is about. */
  readonly victim: string
  /** Uids of the pods of the workload that were bound to it at the beginning. */
  readonly pods: readonly string[]
  readonly beganAt: Ms
}

interface Pod extends KubeObject {
  spec: { nodeName?: string }
  status: { phase: string }
}

/** A minute of peace: agents heard, paths audited, the workload running. */
export async function peace(settings: StageSettings = {}): Promise<Play> {
  const on = await stage(settings)
  await on.run(30_000)
  const pods = workload(on)
  const victim = pods.find((pod) => pod.metadata.name === 'db-0')?.spec.nodeName
  if (victim === undefined) throw new Error('the StatefulSet has no pod on any node')
  const uids = pods.filter((pod) => pod.spec.nodeName === victim).map((pod) => pod.metadata.uid ?? '')
  return { ...on, victim, pods: uids, beganAt: on.world.clock.now() }
}

export function workload({ world }: Stage): readonly Pod[] {
  return objects<Pod>(world, 'pods').filter(({ metadata }) => metadata.namespace === 'work')
}

/** As they stand on the API server, without asking it: whoever waits for something looks several times a second. */
function objects<T extends KubeObject>({ server }: World, collection: string): readonly T[] {
  if (server === undefined) throw new Error('a story stands in a world of its own')
  return server.peek(collection) as readonly T[] // the caller knows the kind
}

/** The victim's method from now on, with `more` in place of what was added before. */
export async function configure(on: Play, more: string, method = 'bmc-off'): Promise<void> {
  const path = `/api/v1/namespaces/holdfast-system/configmaps/fence-config-${on.victim}`
  const was = await settled(on.world, on.world.api.get<KubeObject & { data: Record<string, string> }>(path))
  if (!was.ok) throw new Error(`${path}: ${was.error.message}`)
  const own = was.value.data[`fence-method-${method}`]?.replace(/^login_timeout=.*\n/m, '') ?? ''
  const patched = await settled(on.world, on.world.api.patch<KubeObject>(path, 'merge', { data: { [`fence-method-${method}`]: `${own}${more}` } }))
  if (!patched.ok) throw new Error(`${path}: ${patched.error.message}`)
}

/** The one incident there is; undefined when there is none. */
export async function theIncident(on: Stage): Promise<Incident | undefined> {
  const all = await on.incidents()
  if (all.length > 1) throw new Error(`${all.length} incidents where one was expected: ${all.map((one) => one.name).join(', ')}`)
  return all[0]
}

export async function ended(on: Stage, within: Ms): Promise<Incident> {
  await on.until('every incident is Final', async () => {
    const all = await on.incidents()
    return all.length > 0 && all.every((incident) => incident.status.phase === 'Final')
  }, within)
  const incident = await theIncident(on)
  if (incident === undefined) throw new Error('no incident') // the wait above saw one
  return incident
}

/** The workload runs whole, and nothing of it on a node that is not there. */
export function workloadRuns(on: Stage, notOn?: string): boolean {
  const pods = workload(on).filter((pod) => pod.metadata.deletionTimestamp === undefined)
  return pods.length === 3 && pods.every((pod) => pod.status.phase === 'Running' && pod.spec.nodeName !== notOn)
}

/** A story that lost its leader to nobody would go on, and show nothing. */
export function killLeader(on: Stage): number {
  const leader = on.leader()
  if (leader === undefined) throw new Error('nobody leads')
  on.world.killReplica(leader)
  return leader
}

/** Taints of ours that stand on any node. */
export function ourTaints({ world }: Stage): readonly string[] {
  return objects<KubeObject & { spec?: { taints?: { key: string }[] } }>(world, 'nodes').flatMap((node) => (node.spec?.taints ?? [])
    .filter((taint) => taint.key.startsWith('holdfast.dev/') || taint.key === 'node.kubernetes.io/out-of-service')
    .map((taint) => `${node.metadata.name} ${taint.key}`))
}

/** What the world's own judges found. Empty: no promise was broken. */
export function findings(on: Stage): readonly string[] {
  return found(on, () => true)
}

/** Of these, what goes on at this moment. */
export function lasting(on: Stage): readonly string[] {
  const lately = on.world.clock.now() - writesWithin
  return found(on, (until) => until === undefined || until >= lately)
}

/** Whoever has a volume writes into it far more often. */
const writesWithin: Ms = 1_000

function found({ world: { judges } }: Stage, counts: (until: Ms | undefined) => boolean): readonly string[] {
  const fits = (one: { readonly until: Ms | undefined }): boolean => counts(one.until)
  return [
    ...judges.twoWriters().filter(fits).map((one) => `two writers on ${one.volume}: ${one.one} and ${one.other}`),
    ...judges.wroteAfterRelease().filter(fits).map((one) => `${one.writer} wrote ${one.volume} after its release`),
    ...judges.twins().filter(fits).map((one) => `twins: ${JSON.stringify(one)}`),
  ]
}

/** Programs that ran, by action, since the story began. */
export function programs(on: Play, action: string): number {
  return on.world.truth.entries.filter((entry) => entry.at >= on.beganAt && entry.what === 'program runs' && entry.facts['action'] === action).length
}

export function happened(on: Play, what: string): readonly Readonly<Record<string, unknown>>[] {
  return on.world.truth.entries.filter((entry) => entry.at >= on.beganAt && entry.what === what).map((entry) => entry.facts)
}

export const steps = (incident: Incident): readonly string[] => incident.status.timeline.map((moment) => moment.what)

/** The timeline without what changes from run to run. */
export function transcript(incident: Incident): string {
  return incident.status.timeline.map(({ what, detail }) => `${what} | ${detail}`
    .replaceAll(/-[a-z0-9]{8,10}-[a-z0-9]{5}\b/g, '-*').replaceAll(/\d+\.\d s/g, '* s').replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '*')
    .replaceAll(/replica-(\d)-\d+/g, 'replica-$1')).join('\n')
}
