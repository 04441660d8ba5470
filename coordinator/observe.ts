// Builds what the core sees, and keeps it true: reflectors for what is cheap to watch, the beats server for what agents
// say, and a row a node for the answers to our own looks. The core reads it in place, between two turns of the event loop
// in which nothing changes; it is never copied, because five thousand rows four times a second would be the whole budget.
//
// Answers to our own reads and writes run ahead of the watch, which goes on bringing older copies for a moment; and an answer
// may be longer on its way than the watch. So the newer version counts. Not for ever: a server that has gone back in time
// (restored from a copy) and insists is believed by the reflectors after a minute, and then here.
import { dumpKey } from '../core/dump.ts'
import { evictedKey, fencedKey, goneKey, remediedKey, terminatingKey, type EvictionSeen, type FencePath, type Ms, type NodeName, type NodeRecord, type Observed, type PodsSeen, type ProbeSeen, type Reading, type Self, type VolumeSeen, type WitnessSeen } from '../core/model.ts'
import { given, isDrill, openedKey, proofKeys, type Incident } from '../core/incident.ts'
import { machineKey } from '../core/machine-id.ts'
import { lastOffKey, offSinceKey } from '../core/path.ts'
import { speechlessSince } from '../core/proof.ts'
import type { Remedy } from '../core/remedy.ts'
import { revokedKey } from '../core/self-fence.ts'
import type { Beats } from './beats.ts'
import { keepNode, type KeptAttachment, type KeptNode } from './kubernetes.ts'
import { fallAfter, leaseAfter, wordsAfter } from './observe-words.ts'
import { compareVersions } from './reflector-store.ts'
import { Row, type Elsewhere } from './row.ts'
import type { Clock } from '../edge/clock.ts'

/** Readings kept of each method: enough for two offs and what was before. */
const readingsKept = 6
/** A watch that is further behind than this is no watch any more. */
const watchCatchesUp: Ms = 90_000

export interface UnreadableFence {
  readonly name: string
  readonly node: NodeName
  readonly faults: string
}

/** `live`: the answer to a read or a write of our own, not what the watch brought. */
export type From = 'watch' | 'live'

export interface Observation {
  readonly seen: Omit<Observed, 'self' | 'remedies'> & { readonly self: { -readonly [Key in keyof Self]: Self[Key] }; remedies?: readonly Remedy[] }
  row(node: NodeName): Row | undefined
  node(kept: KeptNode, from?: From): void
  nodeGone(name: NodeName): void
  attachment(kept: KeptAttachment): void
  attachmentGone(kept: KeptAttachment): void
  record(name: NodeName, record: NodeRecord | undefined, from?: From): void
  incident(incident: Incident, from?: From): void
  incidentGone(name: string): void
  /** A NodeFence stands there that this version cannot read. What was known of it is history. */
  incidentUnreadable(fence: UnreadableFence): void
  /** Its name, while there is one of this node: nothing is done on the node meanwhile. */
  unreadable(node: NodeName): string | undefined
  unreadables(): Iterable<UnreadableFence>
  /** Records of nodes that are not there, and that no open incident is about. */
  recordsOfNobody(): readonly { readonly name: NodeName; readonly resourceVersion: string }[]
  /** Of every incident ever seen: terms are never given out below it. */
  highestTerm(): number
  path(node: NodeName, path: FencePath): void
  remedies(inForce: readonly Remedy[]): void
  probed(node: NodeName, probe: Pick<ProbeSeen, 'askedAt' | 'answeredAt' | 'word'>): void
  witnessed(node: NodeName, words: readonly WitnessSeen[]): void
  /** Crash kernels' words: from which address, and when the latest of it came. False: no node's. */
  dumped(words: ReadonlyMap<string, Ms>): boolean
  leased(node: NodeName, askedAt: Ms, renewTime: string): void
  listed(node: NodeName, pods: PodsSeen | undefined): void
  evicted(node: NodeName, uid: string, seen: EvictionSeen): void
  read(node: NodeName, reading: Reading): void
  /** A turn of the audit came to its end, here or before this replica led. */
  audited(turn: TurnSeen): void
}

export interface TurnSeen {
  readonly beganAt: Ms
  /** What it found holds so long after its beginning. */
  readonly holds: Ms
  readonly missed: ReadonlySet<NodeName>
}

export function createObservation(clock: Clock, replica: string, beats: Pick<Beats, 'heard' | 'forget'>): Observation {
  const rows = new Map<NodeName, Row>()
  const incidents = new Map<string, Incident>()
  const unreadable = new Map<string, UnreadableFence>()
  const incidentsOf = new Map<NodeName, Set<string>>()
  const volumes = new Map<NodeName, Map<string, VolumeSeen>>()
  const records = new Map<NodeName, NodeRecord>()
  const paths = new Map<NodeName, FencePath>()
  const machines = new Map<string, Set<NodeName>>()
  let turn: TurnSeen | undefined
  /** When its record was written, or the latest turn began that did not miss it, where that is not the latest of all. */
  const auditedAt = new Map<NodeName, Ms>()
  /** Of words that stood there when this process began, the keys of `firstSeen`. */
  const stood = new Set<string>()
  const aheads = { nodes: ahead(clock), incidents: ahead(clock), records: ahead(clock) }
  let highestTerm = 0
  const elsewhere: Elsewhere = { heard: (name) => beats.heard(name), auditedUntil }
  const self: Observation['seen']['self'] = {
    replica, freshAt: -Infinity, apiAnsweredAt: -Infinity, awakeSince: clock.now(), replicas: [], podBudget: 0, auditBudget: 0, recordBudget: 0, safeDrivers: [],
  }

  const seen: Observation['seen'] = { self, nodes: rows, incidents }

  return {
    seen,
    row: (node) => rows.get(node),
    node(kept, from = 'watch') {
      const { name, uid, resourceVersion = '' } = kept.metadata
      const before = rows.get(name)
      if (aheads.nodes.outdated(name, before?.resourceVersion, resourceVersion, from)) return
      const known = before !== undefined && before.uid === uid && before.resourceVersion !== ''
      const row = known ? before : newRow(kept, before)
      const former = before === undefined || before.gone === true ? '' : before.machine
      row.refresh(kept, clock.now())
      rows.set(name, row)
      if (row !== before || row.machine !== former) pairUp(name, former, row.machine)
      if (row !== before) for (const incident of ofNode(name)) noticeAttempts(incident)
    },
    nodeGone(name) {
      const row = rows.get(name)
      if (row === undefined) return
      // While an incident is open the row stays, marked: the core must say what becomes of it.
      row.gone = true
      if (!row.firstSeen.has(goneKey)) row.firstSeen.set(goneKey, clock.now())
      pairUp(name, row.machine, '')
      forgetIfOver(name)
    },
    attachment(kept) {
      const held = volumes.get(kept.node) ?? new Map<string, VolumeSeen>()
      held.set(kept.seen.attachment, kept.seen)
      volumes.set(kept.node, held)
      showVolumes(kept.node)
    },
    attachmentGone(kept) {
      const held = volumes.get(kept.node)
      held?.delete(kept.seen.attachment)
      if (held?.size === 0) volumes.delete(kept.node)
      showVolumes(kept.node)
    },
    record(name, record, from = 'watch') {
      if (record !== undefined && aheads.records.outdated(name, records.get(name)?.resourceVersion, record.resourceVersion, from)) return
      if (record === undefined) records.delete(name)
      else records.set(name, record)
      if (record !== undefined) noteAudit(name, Math.max(...record.paths.map(({ at }) => clock.now() - (clock.wall() - (Date.parse(at) || 0)))))
      const row = rows.get(name)
      if (row !== undefined) row.record = record
    },
    incident(incident, from = 'watch') {
      const { name, nodeName, resourceVersion } = incident
      const before = incidents.get(name)
      if (aheads.incidents.outdated(name, before?.resourceVersion, resourceVersion, from)) return
      if (before !== undefined) dropTimes(before, incident)
      // One that no leader has adopted yet is new, and so is what it says.
      if (before === undefined && incident.acknowledge !== undefined && incident.status.term > 0) stood.add(saidKey(incident))
      else if (before !== undefined && saidKey(before) !== saidKey(incident)) stood.delete(saidKey(before))
      incidents.set(name, incident)
      unreadable.delete(name)
      incidentsOf.set(nodeName, (incidentsOf.get(nodeName) ?? new Set<string>()).add(name))
      if (!rows.has(nodeName) && incident.status.phase !== 'Final') rows.set(nodeName, goneRow(incident))
      highestTerm = Math.max(highestTerm, incident.status.term)
      noticeAttempts(incident)
      forgetIfOver(nodeName)
    },
    incidentGone(name) {
      unreadable.delete(name)
      const incident = incidents.get(name)
      if (incident === undefined) return
      incidents.delete(name)
      stood.delete(saidKey(incident))
      aheads.incidents.forget(name)
      const siblings = incidentsOf.get(incident.nodeName)
      siblings?.delete(name)
      if (siblings?.size === 0) incidentsOf.delete(incident.nodeName)
      dropTimes(incident)
      forgetIfOver(incident.nodeName)
    },
    incidentUnreadable: (fence) => void unreadable.set(fence.name, fence),
    unreadable: (node) => [...unreadable.values()].find((fence) => fence.node === node)?.name,
    unreadables: () => unreadable.values(),
    recordsOfNobody: () => [...records].filter(([name]) => !rows.has(name)).map(([name, { resourceVersion }]) => ({ name, resourceVersion })),
    highestTerm: () => highestTerm,
    path(node, path) {
      paths.set(node, path)
      const row = rows.get(node)
      if (row !== undefined) row.path = path
    },
    remedies(inForce) {
      seen.remedies = inForce
    },
    probed(node, probe) {
      const row = rows.get(node)
      if (row === undefined) return
      // What accepts and says nothing was there when it accepted, and nobody knows whether it was a moment later.
      const said = probe.word === 'silent' ? -Infinity : probe.word === 'open' ? probe.askedAt : probe.answeredAt
      const spokeAt = Math.max(row.probe?.spokeAt ?? -Infinity, said)
      const acceptedAt = Math.max(row.probe?.acceptedAt ?? -Infinity, probe.word === 'refused' ? -Infinity : said)
      const fell = fallAfter(row, probe)
      const { askedAt, answeredAt, word } = row.probe !== undefined && row.probe.askedAt > probe.askedAt ? row.probe : probe
      const unansweredSince = word === 'answered' ? undefined : row.probe?.unansweredSince ?? askedAt
      row.probe = { askedAt, answeredAt, word, ...(unansweredSince === undefined ? {} : { unansweredSince }), ...(spokeAt === -Infinity ? {} : { spokeAt }), ...(acceptedAt === -Infinity ? {} : { acceptedAt }), ...(fell === undefined ? {} : { fell }) }
    },
    witnessed(node, words) {
      const row = rows.get(node)
      if (row !== undefined) row.witnesses = words.reduce(wordsAfter, row.witnesses)
    },
    dumped(words) {
      // What two nodes call their own tells of neither.
      const own = new Map<string, Row | undefined>()
      for (const row of rows.values()) {
        if (row.gone === true) continue
        for (const from of new Set([row.address, row.beat?.from ?? ''])) if (words.has(from)) own.set(from, own.has(from) ? undefined : row)
      }
      for (const [from, at] of words) {
        const row = own.get(from)
        if (row !== undefined) row.dump = { since: row.dump !== undefined && row.dump.since > (row.beat?.at ?? -Infinity) ? row.dump.since : at, at, from }
      }
      return own.size > 0
    },
    leased(node, askedAt, renewTime) {
      const row = rows.get(node)
      if (row !== undefined) row.lease = leaseAfter(row.lease, askedAt, clock.now(), renewTime)
    },
    listed(node, pods) {
      const row = rows.get(node)
      if (row === undefined) return
      row.pods = pods
      if (pods === undefined) return
      noticeTerminating(row, pods)
      forgetEvictions(row, pods)
    },
    evicted(node, uid, answer) {
      const row = rows.get(node)
      if (row !== undefined) (row.evictions ??= new Map()).set(uid, answer)
    },
    read(node, reading) {
      const row = rows.get(node)
      if (row === undefined) return
      const same = row.readings.filter((old) => old.method === reading.method).slice(1 - readingsKept)
      row.readings = [...row.readings.filter((old) => old.method !== reading.method), ...same, reading]
      // Only the latest readings are kept, and that it was off, and since when, must be known for longer.
      const offSince = offSinceKey(reading.method, reading.digest)
      if (reading.state === 'off') row.firstSeen.set(lastOffKey(reading.method, reading.digest), reading.endedAt)
      if (reading.state === 'on') row.firstSeen.delete(offSince)
      else if (reading.state === 'off' && !row.firstSeen.has(offSince)) row.firstSeen.set(offSince, reading.endedAt)
      const key = speechlessSince(reading.method, reading.digest)
      if (reading.state !== 'unknown') row.firstSeen.delete(key)
      else if (!row.firstSeen.has(key)) row.firstSeen.set(key, reading.endedAt)
    },
    audited({ beganAt, ...latest }) {
      if (turn !== undefined) for (const name of latest.missed) if (!turn.missed.has(name)) noteAudit(name, turn.beganAt)
      turn = { ...latest, beganAt: Math.min(beganAt, clock.now()) }
    },
  }

  /** None lies ahead, whatever the clock of whoever wrote it said. */
  function noteAudit(name: NodeName, at: Ms): void {
    auditedAt.set(name, Math.max(Math.min(at, clock.now()), auditedAt.get(name) ?? -Infinity))
  }

  function auditedUntil(name: NodeName): Ms | undefined {
    if (turn === undefined) return undefined
    return Math.max(auditedAt.get(name) ?? -Infinity, turn.missed.has(name) ? -Infinity : turn.beganAt) + turn.holds
  }

  /** A Node that only its open incident tells of: deleted before this process began, or not listed yet. What the incident sent
   *  may land all the same, and is counted on this row. */
  function goneRow({ nodeName, nodeUid, machine }: Incident): Row {
    const row = newRow(keepNode({ metadata: { name: nodeName, uid: nodeUid } }), undefined)
    row.machine = machine
    row.gone = true
    row.firstSeen.set(goneKey, clock.now())
    return row
  }

  /** `before`: another Node of this name. What is under way goes by the name, and goes on. */
  function newRow(kept: KeptNode, before: Row | undefined): Row {
    const { name } = kept.metadata
    const row = new Row(kept, clock.now(), elsewhere, before?.busy)
    row.path = paths.get(name) ?? row.path
    row.volumes = [...(volumes.get(name)?.values() ?? [])]
    row.record = records.get(name)
    return row
  }

  /** Of each Node that bears the machine's id, one other that does. */
  function pairUp(name: NodeName, from: string, to: string): void {
    for (const key of new Set([from, to].map(machineKey))) {
      if (key === '') continue
      const names = machines.get(key) ?? new Set()
      if (key === machineKey(to)) names.add(name)
      else names.delete(name)
      if (names.size === 0) machines.delete(key)
      else machines.set(key, names)
      const [first, second] = names
      for (const one of names) showTwin(one, one === first ? second : first)
    }
    if (to === '') showTwin(name, undefined)
  }

  function showTwin(name: NodeName, twin: NodeName | undefined): void {
    const row = rows.get(name)
    if (row !== undefined) row.twin = twin
  }

  function showVolumes(node: NodeName): void {
    const row = rows.get(node)
    if (row !== undefined) row.volumes = [...(volumes.get(node)?.values() ?? [])]
  }

  function ofNode(node: NodeName): Incident[] {
    return [...(incidentsOf.get(node) ?? [])].flatMap((name) => incidents.get(name) ?? [])
  }

  /** Times of a record written by anybody are counted here from when this process first saw them. */
  function noticeAttempts(incident: Incident): void {
    const row = rows.get(incident.nodeName)
    if (row === undefined) return
    const now = clock.now()
    const { acknowledge: word } = incident
    // Wall times on it become instants of ours as soon as they are seen: a person's, and when it was opened, fenced or remedied, perhaps days ago.
    const instantOf = (key: string): Ms | undefined => {
      if (stood.has(key)) return -Infinity
      const wall = word !== undefined && key === `expires ${incident.name} ${word.until}` ? word.until
        : key === fencedKey(incident.name) ? fencedAt(incident) : key === remediedKey(incident.name) ? remediedAt(incident) : key === openedKey(incident.name) ? incident.status.timeline[0]?.at : undefined
      return wall === undefined ? undefined : now + Date.parse(wall) - clock.wall()
    }
    for (const key of timesOf(incident)) {
      if (!row.firstSeen.has(key)) row.firstSeen.set(key, instantOf(key) ?? now)
    }
  }

  /** What the record does not bear any more has no times either. */
  function dropTimes(before: Incident, after?: Incident): void {
    const row = rows.get(before.nodeName)
    if (row === undefined) return
    const kept = new Set(after === undefined ? [] : timesOf(after))
    for (const key of timesOf(before)) if (!kept.has(key)) row.firstSeen.delete(key)
  }

  function forgetIfOver(name: NodeName): void {
    if (rows.get(name)?.gone !== true || ofNode(name).some((incident) => incident.status.phase !== 'Final')) return
    rows.delete(name)
    records.delete(name)
    auditedAt.delete(name)
    paths.delete(name)
    aheads.nodes.forget(name)
    aheads.records.forget(name)
    beats.forget(name)
  }
}

/** A pod's grace is counted from here: the time on its object is of another clock. */
function noticeTerminating(row: Row, { items, listedAt }: PodsSeen): void {
  const now = new Set(items.filter((pod) => pod.terminating).map((pod) => terminatingKey(pod.uid)))
  for (const key of row.firstSeen.keys()) if (key.startsWith(terminatingKey('')) && !now.has(key)) row.firstSeen.delete(key)
  for (const key of now) if (!row.firstSeen.has(key)) row.firstSeen.set(key, listedAt)
}

function forgetEvictions(row: Row, { items }: PodsSeen): void {
  if (row.evictions === undefined) return
  const there = new Set(items.map(({ uid }) => uid))
  for (const uid of row.evictions.keys()) if (!there.has(uid)) row.evictions.delete(uid)
  if (row.evictions.size === 0) row.evictions = undefined
}

/** What is counted from when it was first seen: each order, its end, each proof, what a person said. */
function timesOf(incident: Incident): string[] {
  const { name, cause, abort, acknowledge: word, status } = incident
  const attempts = status.attempts.flatMap(({ id, result }) => (result === 'running' ? [`began ${id}`] : [`began ${id}`, `ended ${id}`]))
  const proofs = status.voided.flatMap(({ proof }, index) => proofKeys(name, index, proof))
  return [...attempts, ...proofs, ...(cause === 'scheduled-drill' ? [openedKey(name)] : []), ...(fencedAt(incident) === undefined ? [] : [fencedKey(name)]), ...(remediedAt(incident) === undefined ? [] : [remediedKey(name)]), ...(abort ? [`aborted ${name}`] : []), ...(status.revoked === undefined ? [] : [revokedKey(name)]), ...(status.dump === undefined ? [] : [dumpKey(name)]), ...(status.eviction === undefined ? [] : [evictedKey(name)]), ...(word === undefined ? [] : [saidKey(incident), `expires ${name} ${word.until}`]), ...(status.proof === undefined ? [] : proofKeys(name, status.voided.length, status.proof))]
}

/** Of `firstSeen`: when a person's word was first seen. */
const saidKey = ({ name, acknowledge }: Pick<Incident, 'name' | 'acknowledge'>): string => `acknowledged ${name} ${acknowledge?.until}`

/** Ordered off because it seemed dead: neither a person's wish, nor a drill, nor the securing of what was off. */
function fencedAt({ cause, status }: Incident): string | undefined {
  return cause === 'by-hand' || isDrill({ cause }) || status.proof?.kind === 'found-off' ? undefined : given(status).find(({ action }) => action === 'off')?.startedAt
}

function remediedAt({ cause, status }: Incident): string | undefined {
  return cause === 'remedy' ? status.eviction?.since ?? given(status)[0]?.startedAt : undefined
}

interface Ahead {
  /** Whether this copy is older than the one held. */
  outdated(key: string, held: string | undefined, version: string, from: From): boolean
  forget(key: string): void
}

/** Where an answer of our own runs ahead of the watch, and since when. */
function ahead(clock: Clock): Ahead {
  const liveAt = new Map<string, Ms>()
  return {
    outdated(key, held, version, from) {
      const older = held !== undefined && (compareVersions(version, held) ?? 0) < 0
      if (older && (from === 'live' || clock.now() - (liveAt.get(key) ?? -Infinity) < watchCatchesUp)) return true
      if (from === 'live') liveAt.set(key, clock.now())
      else liveAt.delete(key)
      return false
    },
    forget: (key) => void liveAt.delete(key),
  }
}
