// The story, once, without a hand on it: the node with the volumes is struck, and each step to its return is told with the
// seconds since. What is told is read from the cluster and from the world itself, never from what the product says it did.
import type { KubeObject } from '../coordinator/api.ts'
import { readIncident } from '../coordinator/node-fence.ts'
import { outOfServiceKey, quarantineKey } from '../core/clear.ts'
import type { Incident } from '../core/incident.ts'
import { sameBoot, type Ms, type NodeSeen } from '../core/model.ts'
import { survey } from '../core/survey.ts'
import type { Embedded } from './embedded.ts'
import { workNamespace } from './embedded-objects.ts'
import type { AttachmentObject, NodeObject, PodObject } from './objects.ts'
import { seconds } from './start-narration.ts'
import type { World } from './world.ts'

export type Fault = 'power' | 'freeze' | 'partition'

const steps = [
  'suspect', 'opened', 'proven', 'tainted', 'podsFreed', 'volumesReleased', 'replacementsRunning', 'outOfServiceRemoved', 'poweredOn', 'newBoot',
  'quarantineLifted', 'final',
] as const
type Step = (typeof steps)[number]

export interface Played {
  readonly fault: Fault
  readonly node: string
  readonly phase: string
  readonly outcome?: string
  readonly proof?: string
  /** Milliseconds since the node was struck. */
  readonly times: Readonly<Partial<Record<Step, number>>>
  /** By the world's own judge: two boots wrote one volume at one time. */
  readonly twoWriters: boolean
  /** By the same: one pod's identity ran twice. */
  readonly twins: boolean
  /** Why the story did not end as it should. */
  readonly reason?: string
}

const lookEvery: Ms = 25
/** Of all its time, what the story itself needs once all is well: an incident of half a minute, and a boot. */
const storyTakes: Ms = 37_000
/** Between the last audit and the blow: a port that has just answered speaks for a machine for a while. */
const restsFor: Ms = 2_000
/** For the world to stop and the folder to go. */
const endTakes: Ms = 1_000

/** `within`: of the whole process, its start included. */
export async function playScript(embedded: Embedded, fault: Fault, within: Ms, tell: (line: string) => void): Promise<Played> {
  const endsAt = within - endTakes
  const wellAt = endsAt - storyTakes
  const { world, home } = embedded
  const { clock } = world
  if (!await allWell(embedded, wellAt)) return played({ fault, node: home, phase: 'none', times: {}, reason: `not well within ${seconds(wellAt).trim()}: ${lacks(embedded)}` })
  tell(`all is well: db-0 and web write into their volumes on ${home}, every fence path is verified`)

  const before = see(embedded)
  const times: Partial<Record<Step, number>> = {}
  const cutAt = clock.now()
  let poweredOn = false
  const deaf = world.truth.listen(({ what, facts }) => { poweredOn ||= what === 'machine powered on' && facts['node'] === home })
  const heal = strike(world, home, fault)
  tell(`${seconds(0)}  ${home} ${struck[fault]}`)
  const ended = await until(world, () => {
    const now = see(embedded)
    for (const step of steps) {
      if (times[step] !== undefined || !reached[step](now, before, poweredOn)) continue
      times[step] = Math.round(clock.now() - cutAt)
      tell(`${seconds(times[step])}  ${sentence(step, now)}`)
      if (step === 'poweredOn') heal()
    }
    return times.final !== undefined && times.replacementsRunning !== undefined
  }, endsAt)
  deaf()
  const { incident } = see(embedded)
  const missing = steps.filter((step) => times[step] === undefined)
  const result = played({
    fault, node: home, phase: incident?.status.phase ?? 'none', times,
    ...(incident?.status.outcome === undefined ? {} : { outcome: incident.status.outcome }),
    ...(incident?.status.proof === undefined ? {} : { proof: incident.status.proof.kind }),
    ...(ended ? {} : { reason: `out of time; not seen: ${missing.join(', ')}${waits(incident)}` }),
  })
  tell(result.reason === undefined ? `${home} is back; nothing ever ran twice` : `failed: ${result.reason}`)
  return result

  function played(partial: Omit<Played, 'twoWriters' | 'twins'>): Played {
    const twoWriters = world.judges.twoWriters()
    const twins = world.judges.twins()
    const harm = [...twoWriters.map(({ volume, one, other }) => `two writers of ${volume}: ${one} and ${other}`), ...twins.map(({ pod }) => `${pod} ran twice`)]
    const reason = [...(partial.reason === undefined ? [] : [partial.reason]), ...harm].join('; ')
    return { ...partial, twoWriters: twoWriters.length > 0, twins: twins.length > 0, ...(reason === '' ? {} : { reason }) }
  }
}

const struck: Readonly<Record<Fault, string>> = {
  power: 'loses its power', freeze: 'freezes: its kernel stands still, its power is on', partition: 'loses its network; it runs and writes on',
}

/** What ends the fault once the machine is on again: a cable is put back, a freeze ended with the boot. */
function strike(world: World, node: string, fault: Fault): () => void {
  switch (fault) {
    case 'power':
      world.cutPower(node)
      return () => undefined
    case 'freeze':
      world.freeze(node)
      return () => undefined
    case 'partition':
      return world.isolate(node)
  }
}

interface Seen {
  readonly incident: Incident | undefined
  readonly node: NodeObject | undefined
  readonly pods: readonly PodObject[]
  readonly attachments: readonly AttachmentObject[]
  readonly boot: string | undefined
  readonly verdict: string
  readonly home: string
}

function see({ world, home, leader }: Embedded): Seen {
  const coordinator = leader()
  // What the server keeps of these kinds has the shapes of Kubernetes.
  const all = <T>(collection: string) => (world.server?.peek(collection) ?? []) as readonly T[]
  const row = coordinator?.seen.nodes.get(home)
  return {
    home,
    incident: incidentsOf(world).find(({ nodeName }) => nodeName === home),
    node: all<NodeObject>('nodes').find(({ metadata }) => metadata.name === home),
    pods: all<PodObject>('pods').filter(({ metadata }) => metadata.namespace === workNamespace),
    attachments: all<AttachmentObject>('volumeattachments.storage.k8s.io').filter(({ spec }) => spec.nodeName === home),
    boot: row?.beat?.boot,
    verdict: coordinator === undefined ? 'unknown' : survey(coordinator.seen, world.clock.now(), coordinator.policies()).verdicts.get(home)?.is ?? 'alive',
  }
}

export function incidentsOf(world: World): readonly Incident[] {
  return (world.server?.peek('nodefences.holdfast.dev') ?? []).flatMap((object: KubeObject) => {
    const read = readIncident(object)
    return read.ok ? [read.incident] : []
  })
}

const tainted = (seen: Seen, key: string): boolean => seen.node?.spec?.taints?.some((taint) => taint.key === key) === true
const told = (seen: Seen, what: string, of: string): boolean => seen.incident?.status.timeline.some((moment) => moment.what === what && moment.detail.includes(of)) === true
const withVolumes = (seen: Seen): readonly PodObject[] => seen.pods.filter(({ spec }) => spec.volumes?.some((volume) => volume.persistentVolumeClaim !== undefined) === true)
const ready = (pod: PodObject): boolean => pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true

const reached: Readonly<Record<Step, (now: Seen, before: Seen, poweredOn: boolean) => boolean>> = {
  suspect: (now) => now.verdict === 'suspect' || now.verdict === 'dead' || now.incident !== undefined,
  opened: (now) => now.incident !== undefined,
  proven: (now) => now.incident?.status.proof !== undefined,
  tainted: (now) => tainted(now, outOfServiceKey) || told(now, 'tainted', 'out-of-service'),
  podsFreed: (now, before) => now.incident?.status.proof !== undefined && before.pods.filter(({ spec }) => spec.nodeName === now.home)
    .every(({ metadata }) => !now.pods.some((pod) => pod.metadata.uid === metadata.uid)),
  volumesReleased: (now) => now.incident?.status.proof !== undefined && now.attachments.length === 0,
  replacementsRunning: (now, before) => withVolumes(before).every((old) => withVolumes(now).some((pod) =>
    pod.metadata.labels?.['app'] === old.metadata.labels?.['app'] && pod.metadata.uid !== old.metadata.uid && pod.spec.nodeName !== now.home && ready(pod))),
  outOfServiceRemoved: (now) => told(now, 'untainted', outOfServiceKey) && !tainted(now, outOfServiceKey),
  poweredOn: (now, _, poweredOn) => poweredOn && now.incident?.status.proof !== undefined,
  newBoot: (now, before) => now.boot !== undefined && before.boot !== undefined && !sameBoot(now.boot, before.boot),
  quarantineLifted: (now) => told(now, 'untainted', quarantineKey) && !tainted(now, quarantineKey),
  final: (now) => now.incident?.status.phase === 'Final',
}

function sentence(step: Step, { incident, pods, home, boot }: Seen): string {
  switch (step) {
    case 'suspect': return `${home} is suspect: its beats have stopped`
    case 'opened': return `incident ${incident?.name ?? ''} opened: ${incident?.cause ?? ''}`
    case 'proven': return `proven ${incident?.status.proof?.kind ?? ''}: ${incident?.status.proof?.evidence.map((one) => `${one.source} ${one.word}`).join(', ') ?? ''}`
    case 'tainted': return 'quarantine and out-of-service are on'
    case 'podsFreed': return `its pods are deleted: ${incident?.status.pods.map(({ name }) => name).join(', ') ?? ''}`
    case 'volumesReleased': return 'its volumes are released'
    case 'replacementsRunning': return `db-0 and web run on ${[...new Set(pods.filter((pod) => ready(pod) && pod.spec.volumes?.some((volume) => volume.persistentVolumeClaim !== undefined)).map(({ spec }) => spec.nodeName))].toSorted().join(' and ')}`
    case 'outOfServiceRemoved': return 'out-of-service is off, and the node still is'
    case 'poweredOn': return `${home} is powered on, under quarantine`
    case 'newBoot': return `its agent beats in a new boot, ${boot ?? ''}`
    case 'quarantineLifted': return 'the quarantine is lifted: clean, and known so to every controller'
    case 'final': return `incident closed: ${incident?.status.outcome ?? ''}`
  }
}

/** Both pods write, and everything that a fast recovery rests on was seen to work, for a while. */
export async function allWell(embedded: Embedded, at = Infinity): Promise<boolean> {
  const so = await until(embedded.world, () => lacks(embedded) === '', at)
  if (so) await embedded.world.clock.wait(restsFor)
  return so
}

function lacks({ world, nodes, home, leader }: Embedded): string {
  const coordinator = leader()
  if (coordinator === undefined) return 'no replica leads'
  const rows = nodes.map((node) => coordinator.seen.nodes.get(node))
  const unheard = nodes.filter((_, index) => rows[index]?.beat === undefined)
  if (unheard.length > 0) return `not heard: ${unheard.join(', ')}`
  const unaudited = nodes.flatMap((node, index) => {
    const why = unauditedBecause(rows[index])
    return why === undefined ? [] : [`${node} (${why})`]
  })
  if (unaudited.length > 0) return `not audited: ${unaudited.join(', ')}`
  if (coordinator.seen.self.replicas.length === 0) return 'the replicas are not linked'
  const idle = ['vol-data-db-0', 'vol-web'].filter((volume) => world.judges.writersOf(volume)[0]?.node !== home)
  return idle.length > 0 ? `not written from ${home}: ${idle.join(', ')}` : ''
}

function unauditedBecause(row: NodeSeen | undefined): string | undefined {
  const { record, path, beat, probe } = row ?? {}
  if (record === undefined || beat === undefined || !sameBoot(record.boot, beat.boot)) {
    return `no record of this boot; kubelet port ${probe?.word ?? 'not asked'}, ${row?.readings.map(({ method, state, evidence }) => `${method} ${state}: ${evidence}`).join(', ') || 'no device read'}`
  }
  if (record.probe?.answered !== true) return `kubelet port ${probe?.word ?? 'not asked'}`
  if (path?.levels.length === 0) return 'no fence path is read yet'
  const faulty = record.paths.filter(({ state }) => state !== 'verified')
  return faulty.length === 0 ? undefined : faulty.map(({ method, state, evidence }) => `${method} ${state}: ${evidence}`).join(', ')
}

function waits(incident: Incident | undefined): string {
  const [hold] = incident?.status.holds ?? []
  return hold === undefined ? '' : `; held: ${hold.because}, ${hold.detail}`
}

async function until(world: World, so: () => boolean, at: Ms): Promise<boolean> {
  while (!so()) {
    if (world.clock.now() >= at) return false
    await world.clock.wait(lookEvery)
  }
  return true
}
