// From what is seen to what is wanted. Nothing is remembered between two calls and nothing is done "because the step before
// was done": each call starts from the snapshot alone, so that a leader that has just taken over, or one that was killed
// between any two lines, wants the same things from the same facts.
//
// The order of questions on an incident is the order of the promises. Is this still the machine the incident is about? Are
// we allowed to act at all? Was the proof shown false? Is there one? Only then: what would free something, what would cut
// something off, what gives it back.
import type { Action, Deed, HoldAction, Look } from './action.ts'
import { blind, handsOff, noOrders, type Brake } from './brake.ts'
import { hasTaint, left, nothingLeft, outOfServiceKey, quarantineKey, type Left } from './clear.ts'
import type { Incident, IncidentStatus } from './incident.ts'
import { lastBeat, lastWord } from './judge.ts'
import { askClean, askDevices, askNow, askPods, audits, challenge, challengeNeighbours, illness, suspicion } from './look.ts'
import { sameBoot, type Boot, type Ms, type NodeSeen, type Observed } from './model.ts'
import { cut, mayLand, nextOrder } from './orders.ts'
import { policyOf, type Policy } from './policy.ts'
import { contradicted, foundOff, proveOff, recall, saidOffAt, stillOff, type Proof } from './proof.ts'
import { awaiting } from './return.ts'
import { survey, type Survey } from './survey.ts'

export function decide(seen: Observed, now: Ms, policies: readonly Policy[]): Action[] {
  if (seen.self.term === undefined) return []
  const on = survey(seen, now, policies)
  const dark = blind(seen.self, now)
  if (dark !== undefined) return [...on.open.values()].map((incident) => hold(incident.nodeName, dark, incident))
  const actions: Action[] = []
  for (const incident of on.open.values()) actions.push(...proceed(on, incident))
  for (const name of on.verdicts.keys()) {
    const node = seen.nodes.get(name)
    if (node !== undefined && !on.open.has(name)) actions.push(...begin(on, node))
  }
  actions.push(...strays(on), ...audits(on))
  return bounded(actions)
}

/** Programs running at once; what is not asked now is unknown a little longer. */
const programLimit = 32

function bounded(actions: readonly Action[]): Action[] {
  let programs = 0
  return actions.filter((action) => action.do !== 'askDevice' || ++programs <= programLimit)
}

/** A node without an incident that is not plainly alive. */
function begin(on: Survey, node: NodeSeen): Action[] {
  const verdict = on.verdicts.get(node.name)
  if (verdict === undefined || verdict.is === 'unknown') return []
  if (verdict.is === 'ill') return illness(on, node)
  const chosen = policyOf(node, on.policies)
  const looks = suspicion(on, node)
  const boot = node.beat?.boot ?? node.record?.boot ?? node.bootId
  const level = foundOffLevel(boot, node, on.now)
  if (verdict.is !== 'dead' && level === undefined) return looks
  if (!('policy' in chosen)) return [...looks, hold(node.name, unchosen(chosen))]
  const off = handsOff(on.seen.self, chosen.policy)
  if (off !== undefined) return [...looks, hold(node.name, off)]
  const storm = level === undefined ? on.storms.cluster ?? on.storms.zones.get(node.zone) : undefined
  if (storm !== undefined) return [...looks, hold(node.name, storm)]
  const evidence = verdict.is === 'dead' ? verdict.evidence : [{ source: 'devices', word: 'off' }]
  return [...looks, {
    do: 'open', node: node.name, boot, policy: chosen.policy, cause: level === undefined ? 'silence' : 'found-off',
    evidence: evidence.map((one) => ({ ...one, at: '' })), name: incidentName(on.seen, node, boot),
  }]
}

function unchosen(chosen: Exclude<ReturnType<typeof policyOf>, { policy: Policy }>): Brake {
  return chosen.none === 'unselected'
    ? { because: 'unselected', detail: 'no policy selects this node: it is only watched', lifts: 'a HoldfastPolicy that selects it' }
    : { because: 'policy-conflict', detail: `${chosen.names.join(' and ')} select this node with one priority`, lifts: 'different priorities' }
}

/** The node, a digest of the boot, and how many incidents this boot had before: a second open of the same one is a 409. */
export function incidentName(seen: Observed, node: NodeSeen, boot: Boot): string {
  const before = [...seen.incidents.values()].filter((incident) => incident.nodeName === node.name && sameBoot(incident.boot, boot)).length
  return `${node.name}-${digest(`${node.uid} ${boot}`)}-${before + 1}`
}

/** FNV-1a, twice with different starts: a name needs distinct, not unguessable. */
function digest(text: string): string {
  const half = (start: number): string => {
    let hash = start
    for (const char of text) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193)
    return (hash >>> 0).toString(16).padStart(8, '0')
  }
  return half(0x811c9dc5).slice(0, 6) + half(0x01234567).slice(0, 4)
}

function foundOffLevel(boot: Boot, node: NodeSeen, now: Ms): number | undefined {
  const level = node.path.levels.findIndex((_, index) => 'proof' in foundOff(boot, node, index, now))
  return level === -1 ? undefined : level
}

/** One open incident. */
function proceed(on: Survey, incident: Incident): Action[] {
  const node = on.seen.nodes.get(incident.nodeName)
  if (node === undefined || node.gone === true) return [close(incident, 'NodeDeleted', 'the Node object is gone')]
  if (incident.status.term !== on.seen.self.term) return [{ do: 'adopt', node: node.name, incident: incident.name }]
  if (node.uid !== incident.nodeUid || (incident.machine !== '' && node.machine !== incident.machine)) return replaced(incident, node)
  const off = handsOff(on.seen.self, incident.policy)
  if (off !== undefined) return [hold(node.name, off, incident)]
  const loose = incident.status.attempts.find((attempt) => attempt.result === 'running' && !node.busy.has(`order ${node.name} ${attempt.method}`))
  if (loose !== undefined) return [{ do: 'settle', node: node.name, incident: incident.name, attempt: loose.id }]
  const situation: Situation = { on, incident, node, status: incident.status, heard: heard(on, incident, node) }
  if (incident.status.phase === 'Done') return giveBack(situation)
  if (incident.status.proof !== undefined) return proven(situation, recall(incident.status.proof))
  return unproven(situation)
}

interface Situation {
  readonly on: Survey
  readonly incident: Incident
  readonly node: NodeSeen
  readonly status: IncidentStatus
  /** What beats now: nothing, the boot the incident is about, or another one. */
  readonly heard: 'nothing' | 'old boot' | 'new boot'
}

function heard(on: Survey, incident: Incident, node: NodeSeen): Situation['heard'] {
  if (node.beat === undefined || on.verdicts.has(node.name) || node.beat.at < on.seen.self.awakeSince) return 'nothing'
  if (!sameBoot(node.beat.boot, incident.boot)) return 'new boot'
  // A word counts only if it was spoken after what it would refute: a verified off is not refuted by a beat from before it.
  const last = incident.status.attempts.findLast((attempt) => attempt.action === 'off' && attempt.result === 'off')
  const offAt = last === undefined ? -Infinity : node.firstSeen.get(`ended ${last.id}`) ?? on.now
  return lastWord(node, on.seen.self) > offAt ? 'old boot' : 'nothing'
}

/** Another machine under the name: what we knew is of no use here. */
function replaced(incident: Incident, node: NodeSeen): Action[] {
  const ours = [outOfServiceKey, quarantineKey].find((key) => hasTaint(node, key))
  if (ours !== undefined) return [untaint(node, ours, 'another machine bears the name', incident)]
  return [close(incident, 'Replaced', 'another machine bears the name')]
}

/** No proof yet: look, prove what is there, order what is allowed. */
function unproven(at: Situation): Action[] {
  const { on, incident, node, status } = at
  if (at.heard === 'new boot') return [withdraw(incident, 'a new boot is heard: the old one is dead, and frees nothing by force')]
  if (at.heard === 'old boot') {
    const running = status.attempts.find((attempt) => attempt.result === 'running')
    if (running !== undefined) return [hold(node.name, { because: 'order-may-land', detail: `heard again while ${running.method} is being asked ${running.action}`, lifts: 'the end of that run' }, incident)]
    return [withdraw(incident, 'the node is heard again')]
  }
  const looks = suspicion(on, node)
  const proof = aProof(at)
  if (proof !== undefined) return [...looks, { do: 'prove', node: node.name, incident: incident.name, proof }]
  const brake = mayOrder(at)
  if (brake !== undefined) return [...looks, hold(node.name, brake, incident)]
  return foundOffNear(at) ? looks : [...looks, ...order(at)]
}

/** The devices say off by themselves: the second word is a second away, and an order would only make it later. */
function foundOffNear(at: Situation): boolean {
  const { on, node, status } = at
  if (status.attempts.length > 0 || status.voided.length > 0) return false
  const offAt = saidOffAt(node, lastBeat(node, on.seen.self), on.now)
  return offAt !== undefined && on.now - offAt < foundOffWithin
}

const foundOffWithin: Ms = 3_000

function aProof(at: Situation): Proof | undefined {
  const { on, incident, node, status } = at
  const others = [...on.seen.nodes.values()]
  for (let level = 0; level < node.path.levels.length; level += 1) {
    if (status.voided.some((voided) => voided.proof.level >= level)) continue
    const ordered = status.attempts.some((attempt) => attempt.action === 'off')
    const result = ordered ? proveOff(incident, node, level, others, on.now) : foundOff(incident.boot, node, level, on.now)
    if ('proof' in result) return result.proof
  }
  return undefined
}

/** Whether a device may be ordered off now; the verdict is formed anew each time. */
function mayOrder(at: Situation): Brake | undefined {
  const { on, incident, node } = at
  if (incident.policy.nodeDownPodDeletionPolicy === 'DoNothing') {
    return { because: 'do-nothing', detail: 'nodeDownPodDeletionPolicy is DoNothing: no order is given, nothing is freed', lifts: 'another nodeDownPodDeletionPolicy' }
  }
  const verdict = on.verdicts.get(node.name)
  const persons = incident.cause === 'by-hand'
  if (verdict?.is !== 'dead' && !persons && !at.status.attempts.some((attempt) => attempt.round === at.status.round && attempt.action === 'off')) {
    const detail = verdict?.is === 'suspect' ? verdict.lacks : verdict?.is === 'ill' ? verdict.detail : 'not heard by this replica yet'
    return { because: 'not-dead', detail, lifts: 'evidence, or a beat' }
  }
  return noOrders(on.seen.nodes, node, incident, on.storms, on.fencing)
}

function order(at: Situation): Action[] {
  const { on, incident, node } = at
  const step = nextOrder(incident, node, on.now)
  switch (step.next) {
    case 'order': {
      on.fencing.add(node.name)
      return [
        ...(hasTaint(node, quarantineKey) ? [] : [{ do: 'taint', node: node.name, incident: incident.name, outOfService: false } as const]),
        ...(node.busy.has(`order ${node.name} ${step.method.name}`) ? [] : [{ do: 'fence', node: node.name, incident: incident.name, method: step.method, level: step.level, round: step.round } as const]),
      ]
    }
    case 'verify': return challengeNeighbours(on, node)
    case 'wait': return []
    case 'rest': return [hold(node.name, { because: 'resting', detail: step.detail, lifts: 'the next round' }, incident)]
    case 'none': return [hold(node.name, { because: node.path.levels.length === 0 ? 'no-path' : 'out-of-levels', detail: step.detail, lifts: 'a fence path that answers, or a person' }, incident)]
  }
}

/** A proof stands. */
function proven(at: Situation, proof: Proof): Action[] {
  const { on, incident, node, status } = at
  if (at.heard === 'new boot') return returning(at, 'Recovered')
  const provenAt = node.firstSeen.get(`proof ${incident.name} ${status.voided.length}`) ?? on.now
  const answered = node.beat?.answered
  if (answered !== undefined && answered.issuedAt > provenAt && sameBoot(answered.boot, incident.boot)) {
    return [{ do: 'void', node: node.name, incident: incident.name, evidence: 'the fenced boot answered a challenge issued after the proof' }]
  }
  if (at.heard === 'old boot' && (node.beat?.at ?? -Infinity) > provenAt) {
    return [...challenge(node, on.now), hold(node.name, { because: 'proof-doubted', detail: 'the fenced boot beats after the proof', lifts: 'its answer to a challenge, or its silence' }, incident)]
  }
  return status.step === 'recovery' ? bringBack(at) : clearing(at, proof, provenAt)
}

/** Taint, free, wait for the volumes, take out-of-service off: in this order, each from what is seen. */
function clearing(at: Situation, proof: Proof, provenAt: Ms): Action[] {
  const { on, incident, node } = at
  if (incident.policy.nodeDownPodDeletionPolicy === 'DoNothing') {
    return [hold(node.name, { because: 'do-nothing', detail: 'proven, but nodeDownPodDeletionPolicy is DoNothing', lifts: 'the machine booting' }, incident)]
  }
  if (!hasTaint(node, quarantineKey) || !hasTaint(node, outOfServiceKey)) {
    return [{ do: 'taint', node: node.name, incident: incident.name, outOfService: true, proof }, ...askPods(node)]
  }
  const doubt = contradicted(proof, node)
  if (doubt !== undefined) {
    return [...askDevices(node, on.now), hold(node.name, { because: 'proof-doubted', detail: `nothing more is freed: ${doubt}`, lifts: 'off again on every method, or a new boot' }, incident)]
  }
  const rest = left(incident, node, on.seen.self.podBudget, provenAt, on.now)
  if (rest === undefined) return [...askPods(node), ...secure(at, proof)]
  if (rest.batch.length > 0) {
    if (!stillOff(proof, node, on.now)) return askNow(node, proof.methods)
    return [{ do: 'delete', node: node.name, incident: incident.name, pods: rest.batch, proof }]
  }
  if (!nothingLeft(rest) && on.now - provenAt < incident.policy.clearPatience) {
    return [...askPods(node), ...secure(at, proof), ...waitsFor(rest).map((brake) => hold(node.name, brake, incident))]
  }
  return [untaint(node, outOfServiceKey, 'everything that was to be freed is free, and the node is still off', incident), ...secure(at, proof)]
}

function list(names: readonly string[]): string {
  return names.slice(0, 3).join(', ') + (names.length > 3 ? ` and ${names.length - 3} more` : '')
}

function waitsFor(rest: Left): Brake[] {
  return [
    ...(rest.volumes.length === 0 ? [] : [{
      because: 'waiting-for-volumes', detail: `${rest.volumes.length} volumes are still attached: ${list(rest.volumes.map((volume) => volume.volume + (volume.error === undefined ? '' : ` (${volume.error})`)))}`,
      lifts: 'their VolumeAttachments gone',
    } as const]),
    ...(rest.kept.length === 0 ? [] : [{
      because: 'finalizer', detail: `kept by finalizers: ${list(rest.kept.map((pod) => `${pod.namespace}/${pod.name} (${pod.finalizers.join(', ')})`))}`,
      lifts: 'the owner of the finalizer',
    } as const]),
    ...(rest.returning.length === 0 ? [] : [{
      because: 'sent-back', detail: `tolerating the quarantine, sent back by the scheduler: ${list(rest.returning.map((pod) => `${pod.namespace}/${pod.name}`))}`,
      lifts: 'another toleration',
    } as const]),
  ]
}

/** After found-off nothing but our order holds the machine off. A shutdown that was announced needs none. */
function secure(at: Situation, proof: Proof): Action[] {
  if (proof.kind !== 'found-off' || at.node.beat?.goodbye?.why === 'shutdown') return []
  const due = at.node.path.levels[proof.level]?.find((method) => !at.status.attempts.some((attempt) => attempt.method === method.name))
  if (due === undefined || at.node.busy.has(`order ${at.node.name} ${due.name}`) || at.status.attempts.some((attempt) => attempt.result === 'running')) return []
  if (noOrders(at.on.seen.nodes, at.node, at.incident, at.on.storms, at.on.fencing) !== undefined) return []
  at.on.fencing.add(at.node.name)
  return [{ do: 'fence', node: at.node.name, incident: at.incident.name, method: due, level: proof.level, round: at.status.round }]
}

/** Cleared. What we ordered off we order on, again every so often, as long as no new boot is heard. */
function bringBack(at: Situation): Action[] {
  const { on, incident, node, status } = at
  if (hasTaint(node, outOfServiceKey)) return [untaint(node, outOfServiceKey, 'the node is cleared', incident)]
  if (!hasTaint(node, quarantineKey)) return [{ do: 'taint', node: node.name, incident: incident.name, outOfService: false }]
  const ours = status.attempts.some((attempt) => attempt.action === 'off')
  if (!ours && !incident.policy.powerOnFoundOff) {
    return [hold(node.name, { because: 'waiting-for-boot', detail: 'it was found off, and nobody here switched it off: there may be hands in the machine', lifts: 'the machine booting' }, incident)]
  }
  const pending = mayLand(incident, node, on.now)
  if (pending !== undefined) return [hold(node.name, { because: 'order-may-land', detail: pending.detail, lifts: 'that time over' }, incident)]
  const methods = ours ? everCut(incident, node) : node.path.levels[status.proof?.level ?? 0]?.map((method) => ({ method, level: status.proof?.level ?? 0 })) ?? []
  return [
    ...giveOn(at, methods),
    hold(node.name, { because: 'waiting-for-boot', detail: 'ordered on, no new boot is heard yet', lifts: 'a beat of a new boot' }, incident),
  ]
}

/** Every method that was ordered off here, whether or not an *on* followed: without a boot that *on* may have been undone. */
function everCut(incident: Incident, node: NodeSeen): readonly { method: NodeSeen['path']['levels'][0][0]; level: number }[] {
  return node.path.levels.flatMap((methods, level) => methods
    .filter((method) => incident.status.attempts.some((attempt) => attempt.method === method.name && attempt.action === 'off'))
    .map((method) => ({ method, level })))
}

const onAgain: Ms = 5_000

function giveOn(at: Situation, methods: readonly { method: NodeSeen['path']['levels'][0][0]; level: number }[]): Action[] {
  const { on, incident, node, status } = at
  const due = methods.find(({ method }) => {
    const last = status.attempts.findLast((attempt) => attempt.method === method.name)
    if (last === undefined || last.action === 'off') return true
    const ended = node.firstSeen.get(`ended ${last.id}`) ?? on.now
    return on.now - ended >= (last.result === 'on' ? incident.policy.bootWithin : onAgain)
  })
  if (due === undefined || node.busy.has(`order ${node.name} ${due.method.name}`)) return []
  return [{ do: 'restore', node: node.name, incident: incident.name, method: due.method, level: due.level, round: status.round }]
}

/** A new boot after the proof: it ends by its agent's and its kubelet's own word. */
function returning(at: Situation, outcome: 'Recovered'): Action[] {
  const { on, incident, node } = at
  if (hasTaint(node, outOfServiceKey)) return [untaint(node, outOfServiceKey, 'a new boot is heard', incident)]
  const pending = mayLand(incident, node, on.now)
  if (pending !== undefined) return [hold(node.name, { because: 'order-may-land', detail: pending.detail, lifts: 'that time over' }, incident)]
  return settleDown(at, outcome, 'the node is back, clean, in a new boot')
}

/** The need is over. Orders that may still land are waited out, what was cut is switched on, the node proves itself clean. */
function giveBack(at: Situation): Action[] {
  const { on, incident, node, status } = at
  if (hasTaint(node, outOfServiceKey)) return [untaint(node, outOfServiceKey, 'the incident is being withdrawn', incident)]
  const pending = mayLand(incident, node, on.now)
  if (pending !== undefined) return [hold(node.name, { because: 'order-may-land', detail: pending.detail, lifts: 'that time over' }, incident)]
  const owed = cut(incident, node)
  if (owed.length > 0) return giveOn(at, owed)
  const outcome = status.voided.length > 0 ? 'Void' : 'Withdrawn'
  if (at.heard === 'nothing' && on.verdicts.get(node.name)?.is === 'dead') return [close(incident, outcome, 'silent again: another incident takes over')]
  return settleDown(at, outcome, status.voided.length > 0 ? 'the node is well by its own word: the fence path was wrong' : 'the node is well')
}

function settleDown(at: Situation, outcome: 'Recovered' | 'Withdrawn' | 'Void', because: string): Action[] {
  const { on, incident, node } = at
  const lacks = awaiting(incident, node, on.now)
  if (!hasTaint(node, quarantineKey)) {
    if (lacks === undefined || outcome === 'Withdrawn') return [close(incident, outcome, because)]
    return [{ do: 'taint', node: node.name, incident: incident.name, outOfService: false }]
  }
  if (lacks !== undefined) return [...askClean(node, on.now), hold(node.name, lacks, incident)]
  return [untaint(node, quarantineKey, because, incident)]
}

/** Our quarantine on a node that has no open incident: its owner is gone, its exit is the same as any return's. */
function strays(on: Survey): Action[] {
  const actions: Action[] = []
  for (const node of on.seen.nodes.values()) {
    if (node.taints.length === 0 || on.open.has(node.name) || node.gone === true || !hasTaint(node, quarantineKey)) continue
    const last = [...on.seen.incidents.values()].findLast((incident) => incident.nodeName === node.name)
    if (last === undefined || on.verdicts.has(node.name) || node.busy.has(`deed ${node.name}`)) continue
    const lacks = awaiting(last, node, on.now)
    actions.push(...(lacks === undefined ? [untaint(node, quarantineKey, 'no incident of this node is open, and it is clean')] : [...askClean(node, on.now), hold(node.name, lacks)]))
  }
  return actions
}

function hold(node: string, brake: Brake, incident?: Incident): HoldAction {
  return { do: 'hold', node, ...brake, ...(incident === undefined ? {} : { incident: incident.name }) }
}

function untaint(node: NodeSeen, key: string, because: string, incident?: Incident): Deed {
  return { do: 'untaint', node: node.name, key, because, ...(incident === undefined ? {} : { incident: incident.name }) }
}

function withdraw(incident: Incident, because: string): Deed {
  return { do: 'withdraw', node: incident.nodeName, incident: incident.name, because }
}

function close(incident: Incident, outcome: 'Recovered' | 'Withdrawn' | 'Void' | 'Replaced' | 'NodeDeleted', because: string): Deed {
  return { do: 'close', node: incident.nodeName, incident: incident.name, outcome, because }
}

export type { Look }
