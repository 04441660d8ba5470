// holdfast status: is it well? One line, then a tree for each open incident: what was done, when, and what it waits for.
import { outOfServiceKey, quarantineKey } from '../core/clear.ts'
import { kindsOf, type Hold, type Incident, type Moment } from '../core/incident.ts'
import { sameBoot, type NodeRecord, type PathAudit } from '../core/model.ts'
import type { AuditTurn } from '../coordinator/audit-turns.ts'
import type { KeptNode } from '../coordinator/kubernetes.ts'
import { onlyWatched } from '../coordinator/policies.ts'
import { isPauseOver, type Pause } from '../core/policy.ts'
import { partNames, type Cluster, type Parts, type UnreadableFence } from './cluster.ts'
import { agoOf, auditAge } from './audit-age.ts'
import { few } from './claim.ts'
import { fenceFaults } from './fence-maps.ts'
import type { Strain } from '../core/vitals.ts'
import type { Paint } from './paint.ts'
import { span } from './span.ts'

export interface Status {
  readonly well: boolean
  readonly leader?: string
  readonly pause?: Pause
  readonly nodes: { readonly all: number; readonly well: number; readonly notReady: readonly string[]; readonly quarantined: readonly string[] }
  /** Nodes of which something stands on record, and no path: each counts as one that is not verified. */
  readonly pathless: readonly string[]
  /** Nodes whose gate is wanted and not asked by their runtime: pods start there unasked. */
  readonly gateless: readonly string[]
  /** Nodes with vitals beyond their limits, each with these. */
  readonly strained: readonly { readonly node: string; readonly strains: readonly Strain[] }[]
  /** `turn`: when the latest turn of the audit that came to its end began. */
  readonly paths: { readonly verified: number; readonly all: number; readonly turn?: string }
  /** Paths whose latest audit is too old, each with its node and when that was. */
  readonly stale: readonly { readonly node: string; readonly method: string; readonly at?: string }[]
  /** Of the fence ConfigMaps. */
  readonly configFaults: readonly string[]
  /** Sentences: for which nodes nothing would be done, and why. */
  readonly watched: readonly string[]
  readonly pausedPolicies: readonly (Pause & { readonly policy: string })[]
  readonly open: readonly Incident[]
  readonly closed: readonly Incident[]
  /** NodeFences of another version: nothing is done on their nodes. */
  readonly unreadable: readonly UnreadableFence[]
  /** What could not be read, each with its reason. */
  readonly unread: readonly string[]
}

const mostClosed = 5

export function statusOf(cluster: Cluster, wall: number): Status {
  const { nodes, incidents, records, lease, pause, policies } = cluster
  const known = nodes.ok ? nodes.value : []
  const told = (incidents.ok ? incidents.value : []).toSorted((one, other) => begun(other) - begun(one))
  const open = told.filter(({ status }) => status.phase !== 'Final')
  const notReady = known.filter(({ ready }) => ready.status !== 'True').map(name)
  const quarantined = known.filter((node) => tainted(node, quarantineKey) || tainted(node, outOfServiceKey)).map(name)
  const turn = lease.ok ? lease.value.turn : undefined
  const audits = records.ok ? known.flatMap((node) => pathsOf(node, records.value, turn, wall)) : []
  const stale = audits.flatMap(({ node, method, state, at }) => (state === 'stale' && method !== undefined ? [{ node, method, ...(at === undefined ? {} : { at: new Date(at).toISOString() }) }] : []))
  const pathless = records.ok ? known.filter((node) => recordOf(node, records.value)?.paths.length === 0).map(name) : []
  const inForce = (policies.ok ? policies.value : []).flatMap(({ policy }) => (policy === undefined ? [] : [policy]))
  const watched = policies.ok ? onlyWatched(known.map((node) => ({ name: name(node), labels: node.metadata.labels ?? {} })), inForce) : []
  const stands = pause.ok && pause.value !== undefined && !isPauseOver(pause.value, wall) ? pause.value : undefined
  const pausedPolicies = inForce.flatMap(({ name: policy, pause: own }) => (own === undefined || isPauseOver(own, wall) ? [] : [{ policy, ...own }]))
  const configFaults = nodes.ok && cluster.fenceMaps.ok ? fenceFaults(cluster.fenceMaps.value, known, inForce).sentences : []
  const troubled = new Set([...notReady, ...quarantined, ...open.map(({ nodeName }) => nodeName), ...cluster.unreadable.map(({ node }) => node)])
  return {
    well: troubled.size === 0 && known.length > 0 && lease.ok && lease.value.holder !== '' && stands === undefined
      && pathless.length === 0 && stale.length === 0 && watched.length === 0 && pausedPolicies.length === 0 && configFaults.length === 0,
    ...(lease.ok && lease.value.holder !== '' ? { leader: lease.value.holder } : {}),
    ...(stands === undefined ? {} : { pause: stands }),
    nodes: { all: known.length, well: known.filter((node) => !troubled.has(name(node))).length, notReady, quarantined },
    pathless, gateless: records.ok ? known.filter((node) => recordOf(node, records.value)?.gate === 'absent').map(name) : [],
    strained: records.ok ? known.flatMap((node) => strainedOf(name(node), recordOf(node, records.value))) : [],
    paths: { verified: audits.filter(({ state }) => state === 'verified').length, all: audits.length, ...(turn === undefined ? {} : { turn: turn.began }) }, stale,
    configFaults, watched, pausedPolicies,
    open, closed: told.filter(({ status }) => status.phase === 'Final').slice(0, mostClosed),
    unreadable: cluster.unreadable, unread: unread(cluster),
  }
}

/** What cannot be read, by the reason; one fault that keeps everything from being read is one line. */
function unread(cluster: Parts): string[] {
  const reasons = new Map<string, string[]>()
  const parts = partNames.map((what) => [what, cluster[what]] as const)
  for (const [what, part] of parts) {
    if (part.ok) continue
    const because = part.because.replace(/^GET \S+: /, '')
    reasons.set(because, [...reasons.get(because) ?? [], what])
  }
  return [...reasons].map(([because, whats]) => `${whats.length === parts.length ? 'anything' : whats.join(', ')}: ${because}`)
}

function name({ metadata }: KeptNode): string {
  return metadata.name
}

function tainted({ taints }: KeptNode, key: string): boolean {
  return taints.some((taint) => taint.key === key)
}

function recordOf(node: KeptNode, records: ReadonlyMap<string, NodeRecord>): NodeRecord | undefined {
  const record = records.get(name(node))
  return record?.nodeUid === node.metadata.uid ? record : undefined
}

function strainedOf(node: string, record: NodeRecord | undefined): Status['strained'] {
  const { strains = [] } = record ?? {}
  return strains.length === 0 ? [] : [{ node, strains }]
}

interface PathSeen {
  readonly node: string
  readonly method?: string
  readonly state: PathAudit['state'] | 'unaudited' | 'missing' | 'another boot' | 'stale'
  readonly at?: number
}

/** One for each path that the node ought to have, and it ought to have one. */
function pathsOf(node: KeptNode, records: ReadonlyMap<string, NodeRecord>, turn: AuditTurn | undefined, wall: number): PathSeen[] {
  const record = recordOf(node, records)
  const of = { node: name(node) }
  if (record === undefined) return [{ ...of, state: 'unaudited' }]
  if (record.paths.length === 0) return [{ ...of, state: 'missing' }]
  const present = sameBoot(record.boot, node.bootId)
  return record.paths.map((path) => {
    const { at, stale } = auditAge(of.node, path, turn, wall)
    return { ...of, method: path.method, state: !present ? 'another boot' : stale && path.state === 'verified' ? 'stale' : path.state, ...(at === undefined ? {} : { at }) }
  })
}

export function statusLines(status: Status, wall: number, paint: Paint): string[] {
  const { glyphs } = paint
  const { nodes, leader, pause, open, closed } = status
  const [nothing] = status.unread.filter((line) => line.startsWith('anything: '))
  if (nothing !== undefined) return [paint.bad(`${glyphs.bad} the cluster cannot be read: ${nothing.slice('anything: '.length)}`)]
  const fencing = open.length
  const words = [
    nodes.well > 0 && paint.good(`${glyphs.well} ${nodes.well} well`),
    fencing > 0 && paint.busy(`${glyphs.busy} ${fencing} fencing`),
    nodes.notReady.length > 0 && paint.bad(`${glyphs.bad} ${nodes.notReady.length} not ready`),
    nodes.quarantined.length > 0 && paint.warn(`${glyphs.warn} ${nodes.quarantined.length} quarantined`),
    nodes.all === 0 && paint.warn(`${glyphs.warn} no nodes`),
    pathWords(status, wall, paint),
    leader === undefined ? paint.bad(`${glyphs.bad} no replica leads`) : `leader ${leader}`,
  ].filter((word) => word !== false)
  return [
    words.join('   '),
    ...(pause === undefined ? [] : [paint.warn(`${glyphs.warn} paused by ${pause.by}: ${pause.reason}`)]),
    ...status.pausedPolicies.map(({ policy, by, reason }) => paint.warn(`${glyphs.warn} policy ${policy} is paused by ${by}: ${reason}`)),
    ...status.watched.map((sentence) => paint.warn(`${glyphs.warn} ${sentence}`)),
    ...(status.pathless.length === 0 ? [] : [paint.warn(`${glyphs.warn} no fence path: ${few(status.pathless)}`)]),
    ...(status.stale.length === 0 ? [] : [paint.warn(`${glyphs.warn} audited too long ago: ${few(status.stale.map(({ node, method, at }) => `${node} ${method} (${agoOf(at === undefined ? {} : { at: Date.parse(at) }, wall)})`))}`)]),
    ...(status.configFaults.length === 0 ? [] : [paint.warn(`${glyphs.warn} faults in fence ConfigMaps: ${few(status.configFaults)}`)]),
    ...(status.gateless.length === 0 ? [] : [paint.warn(`${glyphs.warn} no gate, taints alone hold pods: ${few(status.gateless)}`)]),
    ...(status.strained.length === 0 ? [] : [paint.warn(`${glyphs.warn} beyond their limits: ${few(status.strained.map(({ node, strains }) => `${node} (${strains.join(', ')})`))}`)]),
    ...(status.unreadable.length === 0 ? [] : ['', ...status.unreadable.flatMap((fence) => leftAlone(fence, paint))]),
    ...open.flatMap((incident) => ['', ...tree(incident, wall, paint)]),
    ...(closed.length === 0 ? [] : ['', paint.dim('closed lately'), ...closed.map((incident) => closedLine(incident, wall, paint))]),
    ...(status.unread.length === 0 ? [] : ['', ...status.unread.map((line) => paint.warn(`${glyphs.warn} not read: ${line}`))]),
  ]
}

function pathWords({ paths, pathless, stale }: Status, wall: number, paint: Paint): string {
  const words = `paths ${paths.verified}/${paths.all} verified${paths.turn === undefined ? '' : `, audited ${agoOf({ at: Date.parse(paths.turn) }, wall)}`}`
  if (paths.all === 0) return paint.warn('no fence path')
  return pathless.length + stale.length === 0 ? words : paint.warn(`${paint.glyphs.warn} ${words}`)
}

function leftAlone({ name: fence, node, faults }: UnreadableFence, paint: Paint): string[] {
  return [
    paint.warn(`${paint.glyphs.warn} ${node} is left alone: its NodeFence ${fence} cannot be read: ${shortened(faults)}`),
    paint.dim('  lifted by: a release that knows what stands there, or a person who mends or deletes it'),
  ]
}

/** A step of the way: the moment that tells that it was reached. */
const way: readonly { readonly name: string; readonly is: (moment: Moment) => boolean; readonly always: boolean }[] = [
  { name: 'opened', is: ({ what }) => what === 'opened', always: true },
  { name: 'ordered off', is: ({ what }) => what === 'ordered off', always: false },
  { name: 'proven', is: ({ what }) => what === 'proven', always: true },
  { name: 'tainted', is: ({ what, detail }) => what === 'tainted' && detail.includes('out-of-service'), always: true },
  { name: 'pods freed', is: ({ what }) => what === 'freed', always: true },
  { name: 'volumes released', is: ({ what }) => what === 'volumes released', always: false },
  { name: 'out-of-service off', is: ({ what, detail }) => what === 'untainted' && detail.startsWith(outOfServiceKey), always: true },
  { name: 'ordered on', is: ({ what }) => what === 'ordered on', always: false },
  { name: 'quarantine lifted', is: ({ what, detail }) => what === 'untainted' && detail.startsWith(quarantineKey), always: true },
]

function tree(incident: Incident, wall: number, paint: Paint): string[] {
  const { glyphs } = paint
  const { status, nodeName, cause } = incident
  const began = begun(incident)
  const lines: string[][] = []
  const found = way.map((step) => ({ ...step, moment: status.timeline.find(step.is) }))
  for (const { name: step, moment } of found.filter(({ moment: at }) => at !== undefined).toSorted((one, other) => (one.moment?.at ?? '').localeCompare(other.moment?.at ?? ''))) {
    lines.push([`${paint.good(glyphs.well)} ${step.padEnd(18)} ${paint.dim(offset(moment?.at, began))}  ${shortened(moment?.detail ?? '')}`])
  }
  for (const attempt of status.attempts.filter(({ result }) => result === 'running' || result === 'failed' || result === 'unknown')) {
    const glyph = attempt.result === 'running' ? paint.busy(glyphs.busy) : paint.bad(glyphs.bad)
    lines.push([`${glyph} ${`order ${attempt.action}`.padEnd(18)} ${paint.dim(offset(attempt.startedAt, began))}  ${attempt.method} by ${attempt.agent}: ${attempt.result}${attempt.reason === undefined ? '' : `, ${attempt.reason}`}`])
  }
  const attached = status.volumes.filter(({ fate }) => fate === 'attached')
  if (attached.length > 0) lines.push([`${paint.busy(glyphs.waits)} ${'volumes'.padEnd(18)} ${status.volumes.length - attached.length}/${status.volumes.length} released, waits for ${attached.map(({ volume }) => volume).slice(0, 3).join(', ')}`])
  for (const hold of status.holds) lines.push(holdLines(hold, wall, paint))
  for (const { name: step } of found.filter(({ moment, always }) => moment === undefined && always)) lines.push([paint.dim(`${glyphs.ahead} ${step}`)])
  const head = `${paint.bold(nodeName)}  ${paint.busy(`${glyphs.busy} ${status.phase}: ${status.step}`)}  ${cause}, for ${span(wall - began)}  ${paint.dim(incident.name)}`
  return [head, ...lines.flatMap((line, index) => {
    const last = index === lines.length - 1
    return line.map((text, row) => `${row > 0 ? `${last ? ' ' : glyphs.trunk}      ` : `${last ? glyphs.last : glyphs.branch} `}${text}`)
  })]
}

function holdLines({ because, detail, lifts, since }: Hold, wall: number, paint: Paint): string[] {
  const { glyphs } = paint
  return [`${paint.warn(`${glyphs.warn} held: ${because}`)}, for ${span(wall - Date.parse(since))}: ${detail}`, paint.dim(`lifted by: ${lifts}`)]
}

function closedLine(incident: Incident, wall: number, paint: Paint): string {
  const { status, nodeName } = incident
  const ended = Date.parse(status.timeline.at(-1)?.at ?? '')
  const proof = status.proof === undefined ? '' : `, proven ${kindsOf(status.proof)}`
  const glyph = status.outcome === 'Void' ? paint.bad(paint.glyphs.bad) : paint.good(paint.glyphs.well)
  return `${glyph} ${nodeName}  ${status.outcome ?? 'Final'} after ${span(ended - begun(incident))}${proof}, ${span(wall - ended)} ago  ${paint.dim(incident.name)}`
}

function begun({ status }: Incident): number {
  const at = Date.parse(status.timeline[0]?.at ?? '')
  return Number.isFinite(at) ? at : 0
}

function offset(at: string | undefined, began: number): string {
  return `+${((Date.parse(at ?? '') - began) / 1_000).toFixed(1)} s`.padStart(9)
}

function shortened(text: string): string {
  return text.length > 120 ? `${text.slice(0, 119)}…` : text
}
