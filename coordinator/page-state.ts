// What the page shows, as plain data: the replica's own view, told in the words of the glossary. Built anew whenever somebody
// looks; it holds nothing that changes by itself (no ages), so that two equal states are equal texts and only news travels.
import type { HoldAction } from '../core/action.ts'
import { blind } from '../core/brake.ts'
import { hasTaint, outOfServiceKey, quarantineKey } from '../core/clear.ts'
import { isDrill, isPartial, type Hold, type Incident, type IncidentStatus, type PodFate, type VolumeFate } from '../core/incident.ts'
import { isIsolation } from '../core/isolation.ts'
import type { Verdict } from '../core/judge.ts'
import { sameBoot, type Method, type Ms, type NodeSeen, type Observed } from '../core/model.ts'
import { policyOf, type Policy } from '../core/policy.ts'
import { onlyWatched } from './policies.ts'
import { auditOf, isIdentified, pathState, unidentified, untrusted } from '../core/path.ts'
import { survey, type Survey } from '../core/survey.ts'
import type { Strain, Vitals } from '../core/vitals.ts'
import type { Clock } from '../edge/clock.ts'

/** Of a coordinator, what the page looks at. */
export interface PageSource {
  readonly seen: Observed
  leads(): number | undefined
  policies(): readonly Policy[]
  holds(): readonly HoldAction[]
  ready(): boolean
}

export interface PageState {
  readonly replica: string
  readonly leads: boolean
  readonly glance: Glance
  readonly counts: Counts
  readonly pause?: { readonly reason: string; readonly by: string }
  readonly policies: readonly Pick<Policy, 'name' | 'mode' | 'profile' | 'nodeDownPodDeletionPolicy' | 'pause'>[]
  readonly nodes: readonly NodeCard[]
  /** Nodes that are not shown; the well ones are left out first. */
  readonly nodesLeft: number
  /** Open ones first, each kind newest first. */
  readonly incidents: readonly IncidentCard[]
  readonly incidentsLeft: number
  readonly levers?: readonly Lever[]
}

/** Is it well? */
export interface Glance {
  readonly is: 'well' | 'acting' | 'held' | 'trouble' | 'starting'
  readonly sentence: string
}

export interface Counts {
  readonly nodes: number
  readonly alive: number
  readonly silent: number
  readonly fencing: number
  readonly quarantined: number
  readonly held: number
  readonly paths: { readonly verified: number; readonly all: number }
}

export interface NodeCard {
  readonly name: string
  readonly zone: string
  readonly verdict: Verdict['is']
  /** Why it is not plainly alive. */
  readonly detail?: string
  readonly silentSince?: string
  readonly ready: NodeSeen['ready']['status']
  /** It stopped its workloads by itself and starts none, as it says; what it does while nobody hears it is not known. */
  readonly gaveUp: boolean
  readonly quarantine: boolean
  readonly outOfService: boolean
  readonly gone: boolean
  readonly policy: string
  readonly incident?: string
  readonly paths: readonly PathCard[]
  readonly faults: readonly string[]
  readonly probe: 'answered' | 'unanswered' | 'unasked' | 'nowhere'
  /** As its agent told it last, which is every other minute. */
  readonly vitals?: Vitals
  /** Those beyond their limits, as they stand on record. */
  readonly strains: readonly Strain[]
  readonly volumes: readonly { readonly volume: string; readonly attached: boolean; readonly deleting: boolean }[]
  /** Where somebody knows them: a replica keeps no list of the cluster's pods. */
  readonly pods?: readonly PodLine[]
  /** Where nobody does: what became of those that the open incident names, and of their volumes. */
  readonly fates?: readonly FateLine[]
  readonly holds: readonly HoldCard[]
  readonly levers?: readonly Lever[]
}

export interface PathCard {
  readonly method: string
  readonly agent: string
  readonly level: number
  readonly state: ReturnType<typeof pathState>
  readonly identity: 'proven' | 'unproven' | 'mismatch'
  readonly evidence: string
}

export interface PodLine {
  readonly name: string
  readonly phase: string
  readonly terminating: boolean
  readonly volumes: boolean
}

export interface FateLine {
  readonly is: 'pod' | 'volume'
  /** Of a pod that came back under its name, the one and the other. */
  readonly key: string
  readonly name: string
  readonly fate: PodFate['fate'] | VolumeFate['fate']
}

export interface HoldCard {
  readonly because: string
  readonly detail: string
  readonly lifts: string
  readonly since?: string
  /** Not the ordinary course of things, which ends by itself. */
  readonly stuck: boolean
}

export interface IncidentCard extends Pick<IncidentStatus, 'phase' | 'step' | 'level' | 'round' | 'attempts' | 'voided' | 'pods' | 'volumes' | 'timeline'> {
  readonly name: string
  readonly node: string
  readonly boot: string
  readonly cause: string
  readonly policy: string
  readonly profile: string
  readonly outcome?: string
  readonly proof?: IncidentStatus['proof']
  readonly holds: readonly HoldCard[]
}

/** What only the embedded world has: a person's hand in the machine room. */
export interface Lever {
  readonly name: string
  readonly label: string
}

export interface PageExtras {
  /** Undefined: not looked at. */
  pods?(node: string): readonly PodLine[] | undefined
  /** Without a node: of the whole. */
  levers?(node?: string): readonly Lever[]
}

const mostNodes = 200
const mostIncidents = 20
const mostListed = 60
const mostMoments = 120

export function pageState(source: PageSource, clock: Pick<Clock, 'now' | 'wall'>, extras: PageExtras = {}): PageState {
  const { seen } = source
  const now = clock.now()
  const on = survey(seen, now, source.policies())
  const wallOf = (at: Ms): string => new Date(Math.round((clock.wall() - now + at) / 1_000) * 1_000).toISOString()
  const all = [...seen.nodes.values()]
  const concern = (node: NodeSeen): number => (on.open.has(node.name) ? 3 : on.verdicts.has(node.name) ? 2 : node.taints.some(ours) ? 1 : 0)
  // Only a cluster that does not fit is sorted by concern: in a small one each card stays in its place.
  const shown = (all.length <= mostNodes ? all : all.toSorted((one, other) => concern(other) - concern(one)).slice(0, mostNodes))
    .toSorted((one, other) => one.name.localeCompare(other.name, 'en', { numeric: true }))
  const incidents = [...seen.incidents.values()].toSorted(byConcern)
  const { pause } = seen.self
  const levers = extras.levers?.()
  return {
    replica: seen.self.replica, leads: source.leads() !== undefined,
    glance: glance(source, on, all, now), counts: counts(source, on, all),
    ...(pause === undefined ? {} : { pause }),
    policies: source.policies().map(({ name, mode, profile, nodeDownPodDeletionPolicy, pause: own }) => ({ name, mode, profile, nodeDownPodDeletionPolicy, ...(own === undefined ? {} : { pause: own }) })),
    nodes: shown.map((node) => nodeCard(source, on, node, wallOf, extras)), nodesLeft: all.length - shown.length,
    incidents: incidents.slice(0, mostIncidents).map(incidentCard), incidentsLeft: Math.max(0, incidents.length - mostIncidents),
    ...(levers === undefined ? {} : { levers }),
  }
}

function ours(taint: { key: string }): boolean {
  return taint.key === quarantineKey || taint.key === outOfServiceKey
}

function byConcern(one: Incident, other: Incident): number {
  return Number(isOpen(other)) - Number(isOpen(one)) || begunAt(other).localeCompare(begunAt(one))
}

function isOpen({ status }: Incident): boolean {
  return status.phase !== 'Final'
}

function begunAt({ status }: Incident): string {
  return status.timeline[0]?.at ?? ''
}

function glance(source: PageSource, on: Survey, nodes: readonly NodeSeen[], now: Ms): Glance {
  if (!source.ready()) return { is: 'starting', sentence: 'This replica has not read everything yet.' }
  if (nodes.length === 0) return { is: 'starting', sentence: 'No node is there yet.' }
  const stale = blind(on.seen.self, now)
  if (stale !== undefined) return { is: 'trouble', sentence: `This replica is blind: ${stale.detail}.` }
  const verdicts = [...on.verdicts.values()]
  const open = [...on.open.values()]
  const held = open.filter((incident) => incident.status.holds.some(stuck))
  const alone = source.holds().filter(({ because }) => because === 'unreadable').map(({ node }) => node)
  if (alone.length > 0) return { is: 'held', sentence: `${names(alone)} ${alone.length === 1 ? 'is' : 'are'} held: unreadable.` }
  if (held.length > 0) {
    const hold = held[0]?.status.holds.find(stuck)
    return { is: 'held', sentence: `${names(held.map((one) => one.nodeName))} ${held.length === 1 ? 'is' : 'are'} held: ${hold?.because ?? ''}.` }
  }
  if (open.length > 0) return { is: 'acting', sentence: open.map((incident) => under(incident, on.seen.nodes.get(incident.nodeName))).join(' ') }
  const dead = verdicts.filter(({ is }) => is === 'dead' || is === 'suspect').length
  if (dead > 0) return { is: 'trouble', sentence: `${dead} of ${nodes.length} nodes ${dead === 1 ? 'is' : 'are'} silent.` }
  if (verdicts.length > 0) return { is: 'trouble', sentence: `${names([...on.verdicts.keys()])}: the agent is not heard.` }
  const marked = nodes.filter((node) => node.taints.some(ours))
  if (marked.length > 0) return { is: 'acting', sentence: `${names(marked.map((node) => node.name))} ${marked.length === 1 ? 'bears' : 'bear'} the quarantine.` }
  return idle(on) ?? pathless(on, nodes) ?? { is: 'well', sentence: nodes.length === 1 ? 'The node is well.' : `All ${nodes.length} nodes are well.` }
}

/** All are well, and for some of them nothing would be done. */
function idle({ seen, policies }: Survey): Glance | undefined {
  const { pause } = seen.self
  if (pause !== undefined) return { is: 'held', sentence: `Nothing is done for any node: paused by ${pause.by}.` }
  const [told] = onlyWatched([...seen.nodes.values()].filter((node) => node.gone !== true), policies)
  if (told !== undefined) return { is: 'held', sentence: `${told}.` }
  const paused = policies.find((policy) => policy.pause !== undefined)
  return paused === undefined ? undefined : { is: 'held', sentence: `Nothing is done for the nodes of policy ${paused.name}: paused by ${paused.pause?.by ?? ''}.` }
}

/** All are well, and one that a policy wants to be acted for could not be proven off. */
function pathless({ policies }: Survey, nodes: readonly NodeSeen[]): Glance | undefined {
  const lacking: { name: string; why: string }[] = []
  const faulty: { name: string; why: string }[] = []
  for (const node of nodes) {
    const chosen = policyOf(node, policies)
    if (node.gone === true || !('policy' in chosen) || chosen.policy.mode !== 'enforce') continue
    const [fault] = node.path.faults
    const lack = lackOf(node, chosen.policy)
    if (lack !== undefined) lacking.push({ name: node.name, why: fault ?? lack })
    else if (fault !== undefined) faulty.push({ name: node.name, why: fault })
  }
  const [first] = lacking.length > 0 ? lacking : faulty
  if (first === undefined) return undefined
  const [list, what] = lacking.length > 0 ? [lacking, 'no usable fence path'] : [faulty, 'faults in its fence configuration']
  return { is: 'trouble', sentence: `${names(list.map(({ name }) => name))} ${list.length === 1 ? 'has' : 'have'} ${what}: ${first.why}.` }
}

/** Undefined: one level at least could be ordered off, of those that switch the machine where there are any. */
function lackOf(node: NodeSeen, policy: Policy): string | undefined {
  const power = node.path.levels.filter((level) => !isIsolation(level))
  const doubts = (power.length > 0 ? power : node.path.levels).map((level) => (level.length === 0 ? 'it has no method' : level.map((method) => doubtOf(node, method, policy)).find((doubt) => doubt !== undefined)))
  return doubts.length === 0 ? 'none is configured' : doubts.includes(undefined) ? undefined : doubts[0]
}

function doubtOf(node: NodeSeen, method: Method, { identity }: Policy): string | undefined {
  const audit = auditOf(node, method, bootOf(node))
  if (audit?.state === 'unreachable') return `${method.name} did not answer its audit`
  return untrusted(node, method, audit) ?? (identity === 'require' && !isIdentified(node, method, bootOf(node)) ? unidentified(node, method) : undefined)
}

function under(incident: Incident, node: NodeSeen | undefined): string {
  const { nodeName, status, boot } = incident
  if (isDrill(incident)) return `${nodeName} is being drilled.`
  const back = node?.beat !== undefined && !sameBoot(node.beat.boot, boot)
  switch (status.step) {
    case 'none': return `${nodeName} fell silent: it is being looked into.`
    case 'isolation': case 'power-management': return status.proof === undefined || isPartial(status.proof) ? `${nodeName} is being fenced.` : `${nodeName} is proven off.`
    case 'clear': return `${nodeName} is proven unable to write; its pods and volumes are being freed.`
    case 'recovery': return back ? `${nodeName} is back in a new boot, under quarantine until it is clean.` : `${nodeName} is cleared and being brought back.`
  }
}

/** The ordinary course of an incident has its waits; they end by themselves. */
function stuck({ because }: Pick<Hold, 'because'>): boolean {
  return !because.startsWith('waiting-for-') && because !== 'order-may-land' && because !== 'rate' && because !== 'resting' && because !== 'power-after'
}

function names(list: readonly string[]): string {
  return list.length > 3 ? `${list.slice(0, 3).join(', ')} and ${list.length - 3} more` : list.join(', ')
}

function counts(source: PageSource, on: Survey, nodes: readonly NodeSeen[]): Counts {
  const verdicts = [...on.verdicts.values()]
  const paths = nodes.flatMap((node) => node.path.levels.flat().map((method) => pathState(node, method)))
  // A node without a path lacks one: it must not make the rest look whole.
  const without = nodes.filter((node) => node.path.levels.every((level) => level.length === 0)).length
  const held = new Set([...on.open.values()].filter(({ status }) => status.holds.some(stuck)).map((incident) => incident.nodeName))
  for (const hold of source.holds()) if (stuck(hold)) held.add(hold.node)
  return {
    nodes: nodes.length,
    alive: nodes.length - verdicts.length,
    silent: verdicts.filter(({ is }) => is !== 'alive').length,
    fencing: on.open.size,
    quarantined: nodes.filter((node) => hasTaint(node, quarantineKey)).length,
    held: held.size,
    paths: { verified: paths.filter((state) => state === 'verified').length, all: paths.length + without },
  }
}

function bootOf(node: NodeSeen): string {
  return node.beat?.boot ?? node.record?.boot ?? ''
}

function nodeCard(source: PageSource, on: Survey, node: NodeSeen, wallOf: (at: Ms) => string, extras: PageExtras): NodeCard {
  const verdict = on.verdicts.get(node.name) ?? { is: 'alive' }
  const incident = on.open.get(node.name)
  const detail = detailOf(verdict)
  const chosen = policyOf(node, source.policies())
  const pods = extras.pods?.(node.name)
  const fates = pods === undefined && incident !== undefined ? fatesOf(incident) : []
  const levers = extras.levers?.(node.name)
  const { record } = node
  return {
    name: node.name, zone: node.zone, verdict: verdict.is,
    ...(detail === undefined ? {} : { detail }),
    ...(verdict.is === 'alive' || node.beat === undefined ? {} : { silentSince: wallOf(node.beat.at) }),
    ready: node.ready.status, gaveUp: node.beat?.permit === 'gave up', quarantine: hasTaint(node, quarantineKey), outOfService: hasTaint(node, outOfServiceKey), gone: node.gone === true,
    policy: 'policy' in chosen ? chosen.policy.name : chosen.none,
    ...(incident === undefined ? {} : { incident: incident.name }),
    paths: node.path.levels.flatMap((methods, level) => methods.map((method): PathCard => {
      const audit = auditOf(node, method, bootOf(node))
      return {
        method: method.name, agent: method.agent, level: level + 1, state: pathState(node, method), identity: audit?.identity ?? 'unproven',
        evidence: audit?.evidence ?? '',
      }
    })),
    faults: node.path.faults,
    probe: node.address === '' ? 'nowhere' : record?.probe === undefined ? 'unasked' : record.probe.answered ? 'answered' : 'unanswered',
    ...(node.beat?.vitals === undefined ? {} : { vitals: node.beat.vitals }), strains: record?.strains ?? [],
    volumes: node.volumes.slice(0, mostListed).map(({ volume, attached, deleting }) => ({ volume, attached, deleting })),
    ...(pods === undefined ? {} : { pods: pods.slice(0, mostListed) }),
    ...(fates.length === 0 ? {} : { fates }),
    holds: source.holds().filter((hold) => hold.node === node.name && hold.incident === undefined).map(({ because, detail: says, lifts }) => ({ because, detail: says, lifts, stuck: stuck({ because }) })),
    ...(levers === undefined ? {} : { levers }),
  }
}

function fatesOf({ status: { pods, volumes } }: Incident): readonly FateLine[] {
  return [
    ...pods.slice(0, mostListed).map(({ namespace, name, uid, fate }) => ({ is: 'pod', key: uid, name: `${namespace}/${name}`, fate }) as const),
    ...volumes.slice(0, mostListed).map(({ attachment, volume, fate }) => ({ is: 'volume', key: attachment, name: volume, fate }) as const),
  ]
}

/** Without the seconds that count up by themselves. */
function detailOf(verdict: Verdict): string | undefined {
  switch (verdict.is) {
    case 'alive': return undefined
    case 'unknown': return 'its agent was not heard by this replica yet'
    case 'ill': return verdict.detail
    case 'suspect': return verdict.lacks.replace(/^silent for .*/, 'not silent for long enough')
    case 'dead': return verdict.evidence.map((one) => `${one.source} ${one.word.replace(/ for [\d.]+ s$/, '')}`).join('; ')
  }
}

function incidentCard(incident: Incident): IncidentCard {
  const { status } = incident
  const { phase, step, level, round, attempts, voided, pods, volumes, holds, timeline } = status
  return {
    name: incident.name, node: incident.nodeName, boot: incident.boot, cause: incident.cause, policy: incident.policy.name, profile: incident.policy.profile,
    phase, step, level, round, attempts: attempts.slice(-mostListed), voided, pods: pods.slice(0, mostListed), volumes: volumes.slice(0, mostListed), holds: holds.map((hold) => ({ ...hold, stuck: stuck(hold) })),
    timeline: timeline.length <= mostMoments ? timeline : [...timeline.slice(0, 20), ...timeline.slice(20 - mostMoments)],
    ...(status.outcome === undefined ? {} : { outcome: status.outcome }),
    ...(status.proof === undefined ? {} : { proof: status.proof }),
  }
}
