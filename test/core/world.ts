// The smallest snapshots: a node that is well, a cluster of three of them, and what a test changes of it. Times are
// milliseconds; 100,000 is now.
import type { BeatSeen, Method, NodeRecord, NodeSeen, Observed, PodSeen, PodsSeen, Reading, Self, VolumeSeen } from '../../core/model.ts'
import { defaultPolicy, type Policy } from '../../core/policy.ts'
import { freshStatus } from '../../core/timeline.ts'
import { proofKey, type Attempt, type Incident, type IncidentStatus, type ProofKind, type ProofRecord } from '../../core/incident.ts'

export const now = 100_000
export const boot = 'boot-1/100'
export const newBoot = 'boot-2/900'

export const method: Method = { name: 'bmc-off', agent: 'redfish', device: 'bmc-2:443', digest: 'd1', orderWithin: 30_000, statusWithin: 10_000, late: 60_000 }

export const policy: Policy = { ...defaultPolicy, name: 'all', profile: 'fast', nodeDownPodDeletionPolicy: 'DeleteAllPods' }

export function beat(changes: Partial<BeatSeen> = {}): BeatSeen {
  return { boot, since: 10_000, at: now - 200, kubelet: 'ok', clean: { at: now - 5_000, report: { state: 'clean' } }, ...changes }
}

export function record(changes: Partial<NodeRecord> = {}): NodeRecord {
  return {
    resourceVersion: '1', nodeUid: 'uid-node-2', boot, machine: 'machine-2', probe: { boot, answered: true, at: 'then' },
    paths: [{ method: 'bmc-off', digest: 'd1', boot, state: 'verified', identity: 'proven', at: 'then', evidence: 'on' }], ...changes,
  }
}

export function node(changes: Partial<NodeSeen> = {}): NodeSeen {
  const name = changes.name ?? 'node-2'
  return {
    name, uid: `uid-${name}`, machine: `machine-${name.slice(-1)}`, bootId: 'boot-1', address: '10.0.0.2', zone: 'a', controlPlane: false, labels: {}, annotations: {}, taints: [],
    resourceVersion: '7', ready: { status: 'True', postedAt: 50_000, since: 10_000, bootId: 'boot-1' }, beat: beat(), seenAt: 5_000, witnesses: [],
    record: record({ nodeUid: `uid-${name}`, machine: `machine-${name.slice(-1)}` }), readings: [], path: { levels: [[method]], faults: [] }, volumes: [], inUse: new Set(),
    busy: new Set(), firstSeen: new Map(), ...changes,
  }
}

export function self(changes: Partial<Self> = {}): Self {
  return { replica: 'replica-0', term: 3, ledSince: 1_000, freshAt: now - 500, apiAnsweredAt: now - 500, awakeSince: 0, replicas: ['replica-1'], podBudget: 150, auditBudget: 30, recordBudget: 60, safeDrivers: [], ...changes }
}

export function seen(nodes: readonly NodeSeen[], incidents: readonly Incident[] = [], own: Self = self()): Observed {
  return { self: own, nodes: new Map(nodes.map((one) => [one.name, one])), incidents: new Map(incidents.map((one) => [one.name, one])) }
}

/** node-2 as a test wants it, between two nodes that are well. */
export function three(changes: Partial<NodeSeen> = {}, incidents: readonly Incident[] = [], own: Self = self()): Observed {
  return seen([node({ name: 'node-1' }), node(changes), node({ name: 'node-3' })], incidents, own)
}

export function incident(status: Partial<IncidentStatus> = {}, changes: Partial<Incident> = {}): Incident {
  return {
    name: 'node-2-abc-1', uid: 'uid-fence', resourceVersion: '9', nodeName: 'node-2', nodeUid: 'uid-node-2', boot, machine: 'machine-2', cause: 'silence',
    policy, abort: false, status: { ...freshStatus(3), ...status }, ...changes,
  }
}

/** The silence of node-2 began four seconds ago. */
export const silentAt = now - 4_000
export const silent: Partial<NodeSeen> = { beat: beat({ at: silentAt }) }

/** Everything that speaks for its death: the kubelet port that used to answer is silent, two agents are deaf. */
export const dead: Partial<NodeSeen> = {
  ...silent,
  probe: { askedAt: now - 2_000, answeredAt: now - 1_200, word: 'silent' },
  witnesses: ['node-1', 'node-3'].map((witness) => ({ witness, kind: 'agent', askedAt: now - 2_000, answeredAt: now - 1_000, word: 'deaf', proven: false })),
}

export function reading(state: Reading['state'], startedAt: number, endedAt = startedAt + 100, changes: Partial<Reading> = {}): Reading {
  return { method: 'bmc-off', state, startedAt, endedAt, evidence: state, digest: 'd1', machine: 'machine-2', ...changes }
}

/** One order that ended as it should. `began` and `ended` of it stand in `firstSeen` of a node from `orderedOff`. */
export function attempt(changes: Partial<Attempt> = {}): Attempt {
  return {
    id: 'node-2-abc-1.1', round: 1, level: 0, method: 'bmc-off', agent: 'redfish', action: 'off', replica: 'replica-0', term: 3,
    startedAt: '2026-01-01T00:00:10.000Z', endedAt: '2026-01-01T00:00:12.000Z', within: 30_000, late: 60_000, result: 'off', ...changes,
  }
}

/** When this replica first saw an order on the record, and its end. */
export function seenOrder(began: number, ended?: number, id = 'node-2-abc-1.1'): [string, number][] {
  return [[`began ${id}`, began], ...(ended === undefined ? [] : [[`ended ${id}`, ended] as [string, number]])]
}

/** Dead, ordered off six seconds ago, the program ended four seconds ago, off read twice since. */
export const orderedOff: Partial<NodeSeen> = {
  ...dead, beat: beat({ at: now - 10_000 }),
  firstSeen: new Map(seenOrder(now - 6_000, now - 4_000)), readings: [reading('on', now - 8_000), reading('off', now - 2_300), reading('off', now - 900)],
}

/** Dead, nothing ordered, off read twice since; after the first off the port was asked and a witness. */
export const foundOffNode: Partial<NodeSeen> = {
  ...silent,
  readings: [reading('off', now - 3_000), reading('off', now - 1_800)],
  probe: { askedAt: now - 1_500, answeredAt: now - 700, word: 'silent' },
  witnesses: ['node-1', 'node-3'].map((witness) => ({ witness, kind: 'agent', askedAt: now - 1_500, answeredAt: now - 1_000, word: 'deaf', proven: false })),
}

export function pod(name: string, changes: Partial<PodSeen> = {}): PodSeen {
  return {
    namespace: 'default', name, uid: `uid-${name}`, resourceVersion: '1', owner: 'StatefulSet', priority: 0, terminating: false, phase: 'Running', finalizers: [],
    volumes: [], grace: 30_000, ended: false, toleratesEviction: false, ...changes,
  }
}

/** A list of the node's pods, asked for and read just now. */
export function podsOf(items: readonly PodSeen[], listedAt = now - 100): PodsSeen {
  return { askedAt: listedAt - 100, listedAt, items }
}

export function volume(name: string, changes: Partial<VolumeSeen> = {}): VolumeSeen {
  return { attachment: `csi-${name}`, uid: `uid-${name}`, driver: 'csi.example.com', volume: name, attached: true, deleting: false, ...changes }
}

export function proofRecord(changes: Partial<ProofRecord> = {}): ProofRecord {
  return { kind: 'off', at: '2026-01-01T00:00:14.000Z', boot, nodeUid: 'uid-node-2', level: 0, methods: ['bmc-off'], evidence: [], ...changes }
}

/** When this replica first saw the first proof of the incident. */
export function seenProof(at: number, nth = 0, kind: ProofKind = 'off'): [string, number] {
  return [proofKey('node-2-abc-1', nth, { kind }), at]
}
