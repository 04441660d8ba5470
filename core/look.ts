// What to ask, and how often, while the next decision lacks it. Looks change nothing in the world, but they cost: each is
// asked no sooner than its answer could matter, and never twice at once (what is under way stands in `busy`).
import { keyOf, type Look, type Witness } from './action.ts'
import { lastBeat } from './judge.ts'
import { sameBoot, type Ms, type NodeRecord, type NodeSeen, type PathAudit } from './model.ts'
import { apart, auditOf, readingsOf, saidOffAt, shares } from './proof.ts'
import type { Survey } from './survey.ts'

const probeEvery: Ms = 1_000
const witnessEvery: Ms = 1_000
const leaseEvery: Ms = 2_500
/** While an agent is ill its machine is watched through the kubelet port and its Lease. */
const illProbeEvery: Ms = 5_000
const illLeaseEvery: Ms = 10_000
const cleanEvery: Ms = 5_000
const challengeEvery: Ms = 1_000
const witnessLimit = 5
/** An audit that did not verify a path is repeated so often, and two run at once. */
const auditAgain: Ms = 15_000
const auditsAtOnce = 2

/** Everything that could speak for or against the death of a silent node, side by side. */
export function suspicion(on: Survey, node: NodeSeen): Look[] {
  return free(node, [
    ...probeKubelet(on, node),
    ...askWitnesses(on, node),
    ...(due(node.lease?.readAt, lastBeat(node, on.seen.self), leaseEvery, on.now) ? [{ do: 'readLease', node: node.name } as const] : []),
    ...askDevices(node, on.now),
  ])
}

export function illness(on: Survey, node: NodeSeen): Look[] {
  return free(node, [
    ...(due(node.probe?.askedAt, -Infinity, illProbeEvery, on.now) ? [{ do: 'probe', node: node.name, again: false } as const] : []),
    ...(due(node.lease?.readAt, -Infinity, illLeaseEvery, on.now) ? [{ do: 'readLease', node: node.name } as const] : []),
  ])
}

/** Every method of every level, a second after its last answer: two answers so far apart are two words. */
export function askDevices(node: NodeSeen, now: Ms, every: Ms = apart): Look[] {
  return free(node, node.path.levels.flat().flatMap((method) => {
    const last = readingsOf(node, method).at(-1)
    const ready = last === undefined || now - last.endedAt >= every
    return ready && !node.busy.has(`order ${node.name} ${method.name}`) ? [{ do: 'askDevice', node: node.name, method, purpose: 'incident' } as const] : []
  }))
}

/** The devices of the proving level, at once: a batch waits for their word. */
export function askNow(node: NodeSeen, names: readonly string[]): Look[] {
  return free(node, node.path.levels.flat().filter((method) => names.includes(method.name) && !node.busy.has(`order ${node.name} ${method.name}`))
    .map((method) => ({ do: 'askDevice', node: node.name, method, purpose: 'incident' })))
}

export function askPods(node: NodeSeen): Look[] {
  return free(node, [{ do: 'listPods', node: node.name }])
}

export function askClean(node: NodeSeen, now: Ms): Look[] {
  const last = node.beat?.clean?.at ?? -Infinity
  return now - last < cleanEvery ? [] : free(node, [{ do: 'askClean', node: node.name }])
}

/** Whether the fenced boot still speaks is a question with a proven answer. */
export function challenge(node: NodeSeen, now: Ms): Look[] {
  const last = node.beat?.answered?.issuedAt ?? -Infinity
  return now - last < challengeEvery ? [] : free(node, [{ do: 'challenge', node: node.name }])
}

/** On a path of unproven identity its neighbours must speak up after the first off. */
export function challengeNeighbours(on: Survey, node: NodeSeen): Look[] {
  const unproven = node.path.levels.flat().filter((method) => auditOf(node, method, node.beat?.boot ?? '')?.identity !== 'proven')
  if (unproven.length === 0) return []
  return [...on.seen.nodes.values()]
    .filter((other) => other.name !== node.name && other.beat !== undefined && unproven.some((method) => shares(other, method)))
    .flatMap((other) => challenge(other, on.now))
}

function probeKubelet(on: Survey, node: NodeSeen): Look[] {
  return asked(on, node, node.probe?.askedAt, probeEvery).map((again) => ({ do: 'probe', node: node.name, again }))
}

function askWitnesses(on: Survey, node: NodeSeen): Look[] {
  const last = node.witnesses.length === 0 ? undefined : Math.max(...node.witnesses.map((witness) => witness.askedAt))
  const witnesses = chooseWitnesses(on, node)
  return witnesses.length === 0 ? [] : asked(on, node, last, witnessEvery).map((again) => ({ do: 'askWitnesses', node: node.name, witnesses, again }))
}

/** Once a device says off, only what is asked after that can make found-off: it is asked at once, beside what is under way. */
function asked(on: Survey, node: NodeSeen, last: Ms | undefined, every: Ms): boolean[] {
  const since = lastBeat(node, on.seen.self)
  const offAt = saidOffAt(node, since, on.now)
  if (offAt !== undefined && (last === undefined || last < offAt)) return [true]
  return due(last, since, every, on.now) ? [false] : []
}

/** Up to five agents that beat, from as many zones as there are, and every other replica. */
function chooseWitnesses(on: Survey, node: NodeSeen): Witness[] {
  const zones = new Map<string, NodeSeen[]>()
  for (const other of on.seen.nodes.values()) {
    if (other.name === node.name || other.beat === undefined || on.now - other.beat.at >= 1_500) continue
    const zone = zones.get(other.zone) ?? []
    if (zone.length < witnessLimit) zone.push(other)
    zones.set(other.zone, zone)
  }
  const agents: Witness[] = []
  for (let turn = 0; turn < witnessLimit; turn += 1) {
    for (const zone of zones.values()) {
      const next = zone[turn]
      if (next !== undefined && agents.length < witnessLimit) agents.push({ name: next.name, kind: 'agent' })
    }
  }
  return [...agents, ...on.seen.self.replicas.map((name) => ({ name, kind: 'replica' as const }))]
}

function due(last: Ms | undefined, since: Ms, every: Ms, now: Ms): boolean {
  return last === undefined || last < since || now - last >= every
}

function free(node: NodeSeen, looks: readonly Look[]): Look[] {
  return looks.filter((look) => look.node !== node.name || !node.busy.has(keyOf(look)))
}

/** The smallest audit: each path, and the kubelet port, once in each boot and each configuration, while the node is well. */
export function audits(on: Survey): (Look | { readonly do: 'record'; readonly node: string; readonly record: Omit<NodeRecord, 'resourceVersion'> })[] {
  const wanted: Look[] = []
  let running = 0
  const records: { do: 'record'; node: string; record: Omit<NodeRecord, 'resourceVersion'> }[] = []
  for (const node of on.seen.nodes.values()) {
    if (node.beat === undefined || node.gone === true || on.verdicts.has(node.name)) continue
    if (node.busy.size > 0) running += [...node.busy].filter((key) => key.startsWith('askDevice ')).length
    if (audited(node)) continue
    const looks = auditLooks(node, on.now)
    const record = looks.length > 0 ? undefined : auditRecord(node)
    wanted.push(...looks)
    if (record !== undefined && !node.busy.has(`record ${node.name}`)) records.push({ do: 'record', node: node.name, record })
  }
  const probes = wanted.filter((look) => look.do !== 'askDevice')
  const devices = wanted.filter((look) => look.do === 'askDevice').slice(0, Math.max(0, auditsAtOnce - running))
  return [...probes, ...devices, ...records]
}

/** The record speaks of this boot, this machine and this configuration, and every path of it was verified. */
function audited(node: NodeSeen): boolean {
  const { record, beat } = node
  if (record === undefined || beat === undefined) return false
  return sameBoot(record.boot, beat.boot) && record.nodeUid === node.uid && record.probe !== undefined && record.probe.answered
    && node.path.levels.every((level) => level.every((method) => {
      const state = auditOf(node, method, beat.boot)?.state
      return state === 'verified' || state === 'marked'
    }))
}

function auditLooks(node: NodeSeen, now: Ms): Look[] {
  const since = node.beat?.since ?? now
  const stale = (at: Ms | undefined, well: boolean): boolean => at === undefined || at < since || (!well && now - at >= auditAgain)
  const probe = stale(node.probe?.askedAt, node.probe?.word === 'answered') ? [{ do: 'probe', node: node.name, again: false } as const] : []
  const devices = node.path.levels.flat().flatMap((method) => {
    const last = readingsOf(node, method).at(-1)
    return stale(last?.startedAt, last?.state === 'on') ? [{ do: 'askDevice', node: node.name, method, purpose: 'audit' } as const] : []
  })
  return free(node, [...probe, ...devices])
}

/** What the looks have told, if it differs from what the record says. The edge adds the wall time. */
function auditRecord(node: NodeSeen): Omit<NodeRecord, 'resourceVersion'> | undefined {
  const beat = node.beat
  if (beat === undefined || node.probe === undefined || [...node.busy].some((key) => key.startsWith('askDevice ') || key.startsWith('probe '))) return undefined
  const paths = node.path.levels.flat().map((method): PathAudit => {
    const marked = auditOf(node, method, beat.boot)
    if (marked?.state === 'marked') return marked
    const last = readingsOf(node, method).at(-1)
    const state = last?.state === 'on' ? 'verified' : last?.state === 'off' ? 'mismatch' : 'unreachable'
    const identity = last?.machine === undefined ? 'unproven' : sameMachine(last.machine, node.machine) ? 'proven' : 'mismatch'
    return { method: method.name, digest: method.digest, boot: beat.boot, state, identity, at: '', evidence: last?.evidence ?? 'not asked' }
  })
  const record = { nodeUid: node.uid, boot: beat.boot, machine: node.machine, paths, probe: { boot: beat.boot, answered: node.probe.word === 'answered', at: '' } }
  return node.record !== undefined && tells(node.record) === tells(record) ? undefined : record
}

/** A record without its times: it is written only when a fact changes. */
function tells(record: Omit<NodeRecord, 'resourceVersion'>): string {
  const { nodeUid, boot, machine, probe } = record
  return JSON.stringify([nodeUid, boot, machine, probe?.boot, probe?.answered, record.paths.map((path) => [path.method, path.digest, path.boot, path.state, path.identity])])
}

const sameMachine = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase()
