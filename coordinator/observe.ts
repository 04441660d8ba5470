// Builds what the core sees, and keeps it true: reflectors for what is cheap to watch, the beats server for what agents
// say, and a row a node for the answers to our own looks. The core reads it in place, between two turns of the event loop
// in which nothing changes; it is never copied, because five thousand rows four times a second would be the whole budget.
import type { FencePath, LeaseSeen, Ms, NodeName, NodeRecord, NodeSeen, Observed, PodsSeen, ProbeSeen, Reading, Self, VolumeSeen, WitnessSeen } from '../core/model.ts'
import { outOfServiceKey } from '../core/clear.ts'
import type { Incident } from '../core/incident.ts'
import type { Beats } from './beats.ts'
import type { KeptAttachment, KeptNode } from './kubernetes.ts'
import type { Clock } from '../edge/clock.ts'

/** Readings kept of each method: enough for two offs and what was before. */
const readingsKept = 6

type Changing<T> = { -readonly [Key in keyof T]: T[Key] }

export interface Row extends Changing<NodeSeen> {
  kubeletPort: number
  heartbeat: string
  busy: Set<string>
  firstSeen: Map<string, Ms>
  readings: Reading[]
  witnesses: WitnessSeen[]
  volumes: VolumeSeen[]
}

export interface Observation {
  readonly seen: Omit<Observed, 'self'> & { readonly self: Changing<Self> }
  row(node: NodeName): Row | undefined
  node(kept: KeptNode): void
  nodeGone(name: NodeName): void
  attachment(kept: KeptAttachment): void
  attachmentGone(kept: KeptAttachment): void
  record(name: NodeName, record: NodeRecord | undefined): void
  /** Older copies than the one held are ignored: our own writes are seen before the watch brings them. */
  incident(incident: Incident): void
  incidentGone(name: string): void
  path(node: NodeName, path: FencePath): void
  probed(node: NodeName, probe: Omit<ProbeSeen, 'spokeAt'>): void
  witnessed(node: NodeName, words: readonly WitnessSeen[]): void
  leased(node: NodeName, askedAt: Ms, renewTime: string): void
  listed(node: NodeName, pods: PodsSeen | undefined): void
  read(node: NodeName, reading: Reading): void
}

export function createObservation(clock: Clock, replica: string, beats: Pick<Beats, 'heard' | 'forget'>): Observation {
  const rows = new Map<NodeName, Row>()
  const incidents = new Map<string, Incident>()
  const volumes = new Map<NodeName, Map<string, VolumeSeen>>()
  const records = new Map<NodeName, NodeRecord>()
  const paths = new Map<NodeName, FencePath>()
  const self: Changing<Self> = {
    replica, freshAt: -Infinity, apiAnsweredAt: -Infinity, awakeSince: clock.now(), replicas: [], podBudget: 0,
  }

  return {
    seen: { self, nodes: rows, incidents },
    row: (node) => rows.get(node),
    node: (kept) => {
      const before = rows.get(kept.metadata.name)
      const row = before?.uid === kept.metadata.uid && before !== undefined ? before : newRow(kept)
      refresh(row, kept, clock.now())
      rows.set(row.name, row)
    },
    nodeGone(name) {
      const row = rows.get(name)
      if (row === undefined) return
      // While an incident is open the row stays, marked: the core must say what becomes of it.
      if ([...incidents.values()].some((incident) => incident.nodeName === name && incident.status.phase !== 'Final')) row.gone = true
      else forget(name)
    },
    attachment(kept) {
      const held = volumes.get(kept.node) ?? new Map<string, VolumeSeen>()
      held.set(kept.seen.attachment, kept.seen)
      volumes.set(kept.node, held)
      showVolumes(kept.node)
    },
    attachmentGone(kept) {
      volumes.get(kept.node)?.delete(kept.seen.attachment)
      showVolumes(kept.node)
    },
    record(name, record) {
      if (record === undefined) records.delete(name)
      else records.set(name, record)
      const row = rows.get(name)
      if (row === undefined) return
      if (record === undefined) delete row.record
      else row.record = record
    },
    incident(incident) {
      const held = incidents.get(incident.name)
      if (held !== undefined && held.uid === incident.uid && newer(held, incident)) return
      incidents.set(incident.name, incident)
      noticeAttempts(incident)
    },
    incidentGone(name) {
      const incident = incidents.get(name)
      incidents.delete(name)
      if (incident !== undefined && rows.get(incident.nodeName)?.gone === true) forget(incident.nodeName)
    },
    path(node, path) {
      paths.set(node, path)
      const row = rows.get(node)
      if (row !== undefined) row.path = path
    },
    probed(node, probe) {
      const row = rows.get(node)
      if (row === undefined) return
      const spokeAt = probe.word === 'silent' ? row.probe?.spokeAt : probe.answeredAt
      row.probe = { ...probe, ...(spokeAt === undefined ? {} : { spokeAt }) }
    },
    witnessed(node, words) {
      const row = rows.get(node)
      if (row === undefined) return
      row.witnesses = [...row.witnesses.filter((old) => !words.some((word) => word.witness === old.witness)), ...words]
    },
    leased(node, askedAt, renewTime) {
      const row = rows.get(node)
      if (row !== undefined) row.lease = leaseAfter(row.lease, askedAt, clock.now(), renewTime)
    },
    listed(node, pods) {
      const row = rows.get(node)
      if (row === undefined) return
      if (pods === undefined) delete row.pods
      else row.pods = pods
    },
    read(node, reading) {
      const row = rows.get(node)
      if (row === undefined) return
      const same = row.readings.filter((old) => old.method === reading.method).slice(1 - readingsKept)
      row.readings = [...row.readings.filter((old) => old.method !== reading.method), ...same, reading]
    },
  }

  function newRow(kept: KeptNode): Row {
    const name = kept.metadata.name
    const now = clock.now()
    const record = records.get(name)
    return {
      name, uid: kept.metadata.uid ?? '', machine: '', bootId: '', address: '', kubeletPort: 0, heartbeat: kept.ready.heartbeat, zone: '', controlPlane: false,
      labels: {}, taints: [], resourceVersion: '', ready: { status: 'Unknown', postedAt: -Infinity, since: now, bootId: kept.bootId },
      get beat() { return beats.heard(name) },
      seenAt: now, witnesses: [], readings: [], path: paths.get(name) ?? { levels: [], faults: [] },
      volumes: [...(volumes.get(name)?.values() ?? [])], busy: new Set(), firstSeen: new Map(),
      ...(record === undefined ? {} : { record }),
    }
  }

  function showVolumes(node: NodeName): void {
    const row = rows.get(node)
    if (row !== undefined) row.volumes = [...(volumes.get(node)?.values() ?? [])]
  }

  /** Times of a record written by anybody are counted here from when this process first saw them. */
  function noticeAttempts(incident: Incident): void {
    const row = rows.get(incident.nodeName)
    if (row === undefined) return
    const now = clock.now()
    const first = (key: string): void => {
      if (!row.firstSeen.has(key)) row.firstSeen.set(key, now)
    }
    for (const attempt of incident.status.attempts) {
      first(`began ${attempt.id}`)
      if (attempt.result !== 'running') first(`ended ${attempt.id}`)
    }
    if (incident.status.proof !== undefined) first(`proof ${incident.name} ${incident.status.voided.length}`)
  }

  function forget(name: NodeName): void {
    rows.delete(name)
    records.delete(name)
    paths.delete(name)
    beats.forget(name)
  }
}

function refresh(row: Row, kept: KeptNode, now: Ms): void {
  const labels = kept.metadata.labels ?? {}
  row.resourceVersion = kept.metadata.resourceVersion ?? ''
  row.machine = kept.machine
  row.bootId = kept.bootId
  row.address = kept.address
  row.kubeletPort = kept.kubeletPort
  row.labels = labels
  row.zone = labels['topology.kubernetes.io/zone'] ?? ''
  row.controlPlane = labels['node-role.kubernetes.io/control-plane'] !== undefined
  row.taints = kept.taints
  delete row.gone
  const posted = kept.ready.heartbeat !== row.heartbeat
  row.heartbeat = kept.ready.heartbeat
  const since = kept.ready.status === row.ready.status ? row.ready.since : now
  row.ready = posted
    ? { status: kept.ready.status, postedAt: now, since, bootId: kept.bootId }
    : { ...row.ready, status: kept.ready.status, since }
  const out = row.taints.some((taint) => taint.key === outOfServiceKey)
  if (out) row.firstSeen.delete(`gone ${outOfServiceKey}`)
  else if (!row.firstSeen.has(`gone ${outOfServiceKey}`)) row.firstSeen.set(`gone ${outOfServiceKey}`, now)
}

/** `unmovedSince` is the read that first showed this renewTime, as asked: the Lease cannot have moved between that and now. */
function leaseAfter(before: LeaseSeen | undefined, askedAt: Ms, readAt: Ms, renewTime: string): LeaseSeen {
  if (before === undefined) return { askedAt, readAt, renewTime, unmovedSince: readAt, moved: false }
  if (before.renewTime === renewTime) return { ...before, askedAt, readAt }
  return { askedAt, readAt, renewTime, unmovedSince: readAt, moved: true, movedAfter: before.askedAt }
}

/** Versions are comparable numbers on every server we support; where they are not, the later word is taken. */
function newer(held: Incident, other: Incident): boolean {
  const [one, two] = [Number(held.resourceVersion), Number(other.resourceVersion)]
  return Number.isFinite(one) && Number.isFinite(two) && one > two
}

