// What to ask, and how often, while the next decision lacks it. Looks change nothing in the world, but they cost: each is
// asked no sooner than its answer could matter, and never twice at once (what is under way stands in `busy`).
import { keyOf, type Look, type Witness } from './action.ts'
import type { Incident } from './incident.ts'
import { isWithoutAgent, lastBeat } from './judge.ts'
import type { Ms, NodeSeen } from './model.ts'
import { apart, readingsOf, saidOffAt } from './reading.ts'
import { isIdentified } from './path.ts'
import { mayStrike } from './device.ts'
import type { Survey } from './survey.ts'

/** Whose last beat is no older beats now, whatever the patience of its policy. */
export const beatsWithin: Ms = 1_500
const probeEvery: Ms = 1_000
const witnessEvery: Ms = 1_000
const leaseEvery: Ms = 2_500
/** While an agent is ill its machine is watched through the kubelet port and its Lease. */
const illProbeEvery: Ms = 5_000
const illLeaseEvery: Ms = 10_000
/** And one that may be hung by words of its agent to others. */
const illWitnessEvery: Ms = 10_000
const cleanEvery: Ms = 5_000
const challengeEvery: Ms = 1_000
/** A proof waits for their answers, which count only some time after the first off. */
const neighboursEvery: Ms = 300
const witnessLimit = 5

/** Everything that could speak for or against the death of a silent node, side by side. */
export function suspicion(on: Survey, node: NodeSeen): Look[] {
  return free(node, [
    ...probeKubelet(on, node),
    ...askElsewhere(on, node),
    ...askDevices(node, on.now),
  ])
}

export function illness(on: Survey, node: NodeSeen): Look[] {
  return free(node, [
    ...(due(node.probe?.askedAt, -Infinity, illProbeEvery, on.now) ? [{ do: 'probe', node: node.name, again: false } as const] : []),
    ...(due(node.lease?.readAt, -Infinity, illLeaseEvery, on.now) ? [{ do: 'readLease', node: node.name } as const] : []),
    // Its agent may be silent here alone.
    ...(node.probe?.word === 'open' ? askWhoHears(on, node, -Infinity, illWitnessEvery) : []),
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

/** The Node and its Lease, live: they speak for a machine whose devices cannot. */
export function readLive(node: NodeSeen, now: Ms, every: Ms): Look[] {
  return free(node, [
    ...(now - (node.readAt ?? -Infinity) < every ? [] : [{ do: 'readNode', node: node.name } as const]),
    ...(now - (node.lease?.askedAt ?? -Infinity) < every ? [] : [{ do: 'readLease', node: node.name } as const]),
  ])
}

export function askPods(node: NodeSeen): Look[] {
  return free(node, [{ do: 'listPods', node: node.name }])
}

export function askClean(node: NodeSeen, now: Ms): Look[] {
  if (node.beat === undefined) return []
  const last = node.beat?.clean?.at ?? -Infinity
  return now - last < cleanEvery ? [] : free(node, [{ do: 'askClean', node: node.name }])
}

/** Whether the fenced boot still speaks is a question with a proven answer. */
export function challenge(node: NodeSeen, now: Ms, every = challengeEvery): Look[] {
  const last = node.beat?.answered?.issuedAt ?? -Infinity
  return now - last < every ? [] : free(node, [{ do: 'challenge', node: node.name }])
}

/** On a path of unproven identity its neighbours must speak up after the first off. For one that is silent its devices may. */
export function challengeNeighbours(on: Survey, incident: Incident, node: NodeSeen): Look[] {
  const unproven = node.path.levels.flat().filter((method) => !isIdentified(node, method, incident.boot))
  if (unproven.length === 0) return []
  return [...on.seen.nodes.values()]
    .filter((other) => other.name !== node.name && !isWithoutAgent(other) && unproven.some((method) => mayStrike(other, node, method)))
    .flatMap((other) => [...(other.beat === undefined ? [] : challenge(other, on.now, neighboursEvery)), ...(on.now - (other.beat?.at ?? -Infinity) < beatsWithin ? [] : [...askElsewhere(on, other), ...askDevices(other, on.now)])])
}

/** What an agent that is silent here may say to others, and its kubelet to the API server. */
function askElsewhere(on: Survey, node: NodeSeen): Look[] {
  return free(node, [...askWitnesses(on, node), ...(due(node.lease?.readAt, lastBeat(node, on.seen.self), leaseEvery, on.now) ? [{ do: 'readLease', node: node.name } as const] : [])])
}

function probeKubelet(on: Survey, node: NodeSeen): Look[] {
  return asked(on, node, node.probe?.askedAt, probeEvery).map((again) => ({ do: 'probe', node: node.name, again }))
}

function askWitnesses(on: Survey, node: NodeSeen): Look[] {
  return asked(on, node, witnessedAt(node), witnessEvery).flatMap((again) => witnessLooks(on, node, again))
}

/** Whether others hear what was proven off, and nobody does here. */
export function askWhoHears(on: Survey, node: NodeSeen, since: Ms, every: Ms): Look[] {
  return due(witnessedAt(node), since, every, on.now) ? free(node, witnessLooks(on, node, false)) : []
}

function witnessLooks(on: Survey, node: NodeSeen, again: boolean): Look[] {
  const witnesses = chooseWitnesses(on, node)
  return witnesses.length === 0 ? [] : [{ do: 'askWitnesses', node: node.name, witnesses, again }]
}

function witnessedAt({ witnesses }: NodeSeen): Ms | undefined {
  return witnesses.length === 0 ? undefined : Math.max(...witnesses.map(({ askedAt }) => askedAt))
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
  const zones = on.listeners()
  const agents: Witness[] = []
  for (let turn = 0; turn <= witnessLimit; turn += 1) {
    for (const zone of zones) {
      const next = zone[turn]
      if (next !== undefined && next.name !== node.name && agents.length < witnessLimit) agents.push({ name: next.name, kind: 'agent' })
    }
  }
  return [...agents, ...on.seen.self.replicas.map((name) => ({ name, kind: 'replica' as const }))]
}

/** Those that beat, zone by zone: of each as many as could ever be asked, and one more, since nobody is asked about itself. */
export function listenersOf(nodes: Iterable<NodeSeen>, now: Ms): readonly (readonly NodeSeen[])[] {
  const zones = new Map<string, NodeSeen[]>()
  for (const node of nodes) {
    if (node.beat === undefined || now - node.beat.at >= beatsWithin) continue
    const zone = zones.get(node.zone) ?? []
    if (zone.length <= witnessLimit) zone.push(node)
    zones.set(node.zone, zone)
  }
  return [...zones.values()]
}

function due(last: Ms | undefined, since: Ms, every: Ms, now: Ms): boolean {
  return last === undefined || last < since || now - last >= every
}

function free(node: NodeSeen, looks: readonly Look[]): Look[] {
  return looks.filter((look) => look.node !== node.name || !node.busy.has(keyOf(look)))
}
