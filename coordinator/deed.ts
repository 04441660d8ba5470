// Carries out deeds. Before each write that cuts or frees something three things are asked again, here, at the edge: do we
// still lead at this instant, is this the incident as we know it, and, where something is freed, was what the proof rests on
// read just now. Recording comes before touching: no record, no deed.
import type { Deed } from '../core/action.ts'
import { quarantineKey, volumesOf } from '../core/clear.ts'
import { handsOffIncident } from '../core/hands.ts'
import { kindsOf, sweptUnproven, type Evidence, type Incident } from '../core/incident.ts'
import type { Ms, NodeName, VolumeSeen } from '../core/model.ts'
import type { Policy } from '../core/policy.ts'
import { restsOnSilence, type Proof } from '../core/proof.ts'
import { unfenceable } from '../core/self-fence.ts'
import * as timeline from '../core/timeline.ts'
import type { Log } from '../edge/log.ts'
import type { Api, KubeObject } from './api.ts'
import type { DeedMeans } from './deed-means.ts'
import type { Recorder } from './events.ts'
import { evictor } from './evict.ts'
import type { FencePaths } from './fence-paths.ts'
import type { FenceRunner } from './fence.ts'
import { freer } from './free.ts'
import type { CoordinatorHost } from './host.ts'
import type { IncidentWriter } from './incident.ts'
import { keepNode, maintenanceOver, maintenanceReason, maintenanceType, paths } from './kubernetes.ts'
import { readRecord, recordsPath } from './node-record.ts'
import type { Observation } from './observe.ts'
import { orderer } from './order.ts'
import type { Allowance } from './allowance.ts'
import type { PodRate } from './pod-rate.ts'
import { notKept, recordWriter } from './record-write.ts'
import type { Row } from './row.ts'
import { tainter } from './taint.ts'

export interface DeedOptions {
  readonly api: Api
  readonly host: Pick<CoordinatorHost, 'clock'>
  readonly observation: Observation
  readonly incidents: IncidentWriter
  readonly fences: Pick<FencePaths, 'method'>
  readonly runner: Pick<FenceRunner, 'runMethod'>
  readonly recorder: Recorder
  readonly rate: PodRate
  readonly records: Allowance
  readonly log: Log
  readonly replica: string
  policies(): readonly Policy[]
  leads(): number | undefined
  /** Aborts when the lease is lost: running programs are ended as groups, and what waits to be sent is not sent. */
  signal(): AbortSignal
  /** Resolves once everything has been read that had arrived by now. */
  drained(): Promise<void>
}

const writeDeadline: Ms = 4_000

/** The answer is false when a deed came to nothing: not written, not allowed any more, or nobody knows. */
export function doer(options: DeedOptions): (deed: Deed) => Promise<boolean> {
  const { api, observation, incidents, fences, runner, recorder, rate, records, log, replica, policies, leads } = options
  const { clock } = options.host
  const at = (): string => new Date(clock.wall()).toISOString()
  const how = () => ({ deadline: writeDeadline, signal: options.signal() })
  const means: DeedMeans = { api, clock, observation, incidents, log, leads, signal: () => options.signal(), how, at, say, concern, handsOff }
  const order = orderer({ ...means, fences, runner, replica, drained: () => options.drained() })
  const { taint, untaint } = tainter(means)
  const evict = evictor({ ...means, rate })
  const { free, detach, bury } = freer({ ...means, rate })
  const record = recordWriter({ api, observation, clock, log, rate: records, how, say: (node, note) => say(node, undefined, 'RecordRefused', 'Record', note, 'Warning') })

  return async (deed) => {
    // The core goes on with the last copy that could be read, and its facts may be over.
    if (deed.do !== 'record' && observation.unreadable(deed.node) !== undefined) return false
    switch (deed.do) {
      case 'open': return open(deed)
      case 'adopt': return incidents.adopt(deed.incident, timeline.adopted(leads() ?? 0, replica, at()))
      case 'complete': return incidents.change(deed.incident, timeline.completed(deed.taken, at()))
      case 'fence': return order(deed, 'off')
      case 'restore': return order(deed, 'on')
      case 'settle': return incidents.change(deed.incident, timeline.settled(deed.attempt, at()))
      case 'prove': return prove(deed)
      case 'revoke': return revoke(deed)
      case 'announce': return announce(deed)
      case 'noteOff': return noteOff(deed)
      case 'void': return shownFalse(deed)
      case 'lapse': return lapse(deed)
      case 'taint': return taint(deed)
      case 'untaint': return untaint(deed)
      case 'evict': return evict(deed)
      case 'endEviction': return incidents.change(deed.incident, timeline.evictionOver(deed.because, at()))
      case 'delete': return free(deed)
      case 'detach': return detach(deed)
      case 'bury': return bury(deed)
      case 'withdraw': return withdraw(deed)
      case 'exhaust': return exhaust(deed)
      case 'close': return close(deed)
      case 'declare': return declare(deed)
      case 'record': return leads() !== undefined && record(deed.node, deed.record)
    }
  }

  async function open(deed: Extract<Deed, { do: 'open' }>): Promise<boolean> {
    const row = observation.row(deed.node)
    const term = leads()
    if (row === undefined || term === undefined) return false
    const evidence: Evidence[] = deed.evidence.map((one) => ({ ...one, at: at() }))
    const { name, boot, cause, policy } = deed
    const draft = { name, nodeName: row.name, nodeUid: row.uid, boot, machine: row.machine, cause, policy }
    if (!await incidents.open(draft, timeline.opened(term, replica, cause, evidence, at()))) return false
    log.warn({ node: row.name, incident: name, cause, evidence }, 'incident opened')
    const why = openedFor[cause]?.(row.name) ?? `${row.name} is taken for dead (${cause})`
    say(row.name, name, 'IncidentOpened', 'Open', `${why}: ${evidence.map((one) => `${one.source} ${one.word}`).join('; ')}`, 'Warning')
    return true
  }

  async function prove(deed: Extract<Deed, { do: 'prove' }>): Promise<boolean> {
    const row = observation.row(deed.node)
    if (row === undefined || row.uid !== deed.proof.nodeUid) return false
    const beganAt = clock.now()
    const ahead = clock.wall() - beganAt
    const proved = timeline.proved(deed.proof, at(), (instant) => new Date(instant + ahead).toISOString())
    // The copy that the change is made from: an abort that came before this write counts, unless a part was proven already: then what was ordered is finished.
    const copy = (): Incident | undefined => observation.seen.incidents.get(deed.incident)
    const change: timeline.Change = (status) => (copy()?.abort === true && status.proof === undefined ? status : timeline.volumesSeen(row.volumes, at(), concern(deed.incident, row, deed.proof))(proved(status)))
    if (!await incidents.change(deed.incident, change) || copy()?.status.proof === undefined) return false
    if (deed.proof.joined !== undefined && copy()?.status.proof?.joined === undefined) notKept(row, { at: clock.now(), joined: deed.incident }, log)
    log.warn({ node: deed.node, incident: deed.incident, proof: kindsOf(deed.proof), methods: deed.proof.methods }, 'proven')
    say(deed.node, deed.incident, 'Proven', 'Prove', `${deed.node} cannot write: ${kindsOf(deed.proof)}, ${deed.proof.methods.join(', ') || deed.proof.evidence[0]?.source}`, 'Normal')
    // It counts from when it stands there, and what was heard until then would be from before it.
    if (restsOnSilence(deed.proof) && (row.beat?.at ?? -Infinity) > beganAt) return lapse({ do: 'lapse', node: deed.node, incident: deed.incident, evidence: 'the node was heard while its proof was being written down' })
    return true
  }

  /** By what the record says at this moment: what a watch brought may be of before its watchdog was let go. */
  async function revoke({ node, incident: name }: Extract<Deed, { do: 'revoke' }>): Promise<boolean> {
    const beganAt = clock.now()
    const current = await api.get<KubeObject>(`${recordsPath}/${node}`, how())
    const read = current.ok ? readRecord(current.value) : undefined
    const incident = observation.seen.incidents.get(name)
    if (read?.ok !== true || incident === undefined || leads() === undefined) return false
    observation.record(node, read.record, 'live')
    const why = unfenceable(incident, read.record)
    const { watchdog } = read.record
    if (why !== undefined || watchdog === undefined || (observation.row(node)?.beat?.at ?? -Infinity) > beganAt) {
      log.warn({ node, incident: name, because: why ?? 'the node is heard again' }, 'permit not taken back')
      return false
    }
    const change = timeline.revoked(incident.boot, watchdog, at())
    if (!await incidents.change(name, (status) => (observation.seen.incidents.get(name)?.abort === true ? status : change(status)))) return false
    log.warn({ node, incident: name, watchdog: watchdog.identity }, 'permit taken back: the watchdog of the machine is to end it')
    say(node, name, 'PermitRevoked', 'Revoke', `nobody permits ${node} any more: its watchdog (${watchdog.identity}) is to reset it`, 'Warning')
    return true
  }

  async function announce({ node, incident, from, afterSilence }: Extract<Deed, { do: 'announce' }>): Promise<boolean> {
    if (!await incidents.change(incident, timeline.announced(replica, from, afterSilence, at()))) return false
    const row = observation.row(node)
    if (row !== undefined && observation.seen.incidents.get(incident)?.status.dump === undefined) notKept(row, { at: clock.now(), dump: incident }, log)
    log.warn({ node, incident, from }, 'a crash kernel was heard')
    say(node, incident, 'CrashKernelHeard', 'Wait', `the crash kernel of ${node} announced itself from ${from}, to ${replica}`, 'Warning')
    return true
  }

  async function noteOff({ node, incident, methods }: Extract<Deed, { do: 'noteOff' }>): Promise<boolean> {
    if (!await incidents.change(incident, timeline.offAtFirst(methods, at()))) return false
    const row = observation.row(node)
    if (row !== undefined && observation.seen.incidents.get(incident)?.status.offAtFirst === undefined) notKept(row, { at: clock.now(), offAtFirst: incident }, log)
    log.info({ node, incident, methods: methods.map(({ name }) => name) }, 'off before it was ever read on in this boot')
    return true
  }

  /** Its path is marked by the record that the core wants as long as the proof stands there as false. */
  async function shownFalse(deed: Extract<Deed, { do: 'void' }>): Promise<boolean> {
    const kind = observation.seen.incidents.get(deed.incident)?.status.proof?.kind
    const wrong = kind === 'self-fenced' ? 'watchdog' : kind === 'kdump' ? 'word of a crash kernel' : 'fence path'
    if (!await incidents.change(deed.incident, timeline.shownFalse(deed.evidence, at()))) return false
    log.error({ node: deed.node, incident: deed.incident, evidence: deed.evidence }, `the ${wrong} is wrong: a proof was shown false`)
    say(deed.node, deed.incident, 'ProofVoid', 'Void', `the ${wrong} of ${deed.node} is wrong: ${deed.evidence}`, 'Warning')
    return true
  }

  async function lapse(deed: Extract<Deed, { do: 'lapse' }>): Promise<boolean> {
    if (!await incidents.change(deed.incident, timeline.lapse(deed.evidence, at()))) return false
    log.error({ node: deed.node, incident: deed.incident, evidence: deed.evidence }, 'a proof has lapsed')
    say(deed.node, deed.incident, 'ProofLapsed', 'Lapse', deed.evidence, 'Warning')
    return true
  }

  function handsOff(incident: Incident, row: Row): string | undefined {
    return handsOffIncident({ seen: observation.seen, policies: policies() }, incident, row)?.detail
  }

  function concern(name: string, row: Row, proof?: Proof): readonly VolumeSeen[] {
    const incident = observation.seen.incidents.get(name)
    return incident === undefined ? [] : volumesOf(incident, row, [], proof)
  }

  async function withdraw(deed: Extract<Deed, { do: 'withdraw' }>): Promise<boolean> {
    if (!await incidents.change(deed.incident, timeline.withdrawn(deed.because, at(), deed.drill))) return false
    const { drill } = deed
    if (drill?.passed === false) log.error({ node: deed.node, incident: deed.incident, because: deed.because }, 'a drill failed')
    else log.info({ node: deed.node, incident: deed.incident, because: deed.because }, drill === undefined ? 'incident withdrawn' : 'a drill passed its dark half')
    const reason = drill === undefined ? 'Withdrawn' : drill.passed ? 'DrillPassed' : 'DrillFailed'
    say(deed.node, deed.incident, reason, 'Withdraw', deed.because, drill?.passed === false ? 'Warning' : 'Normal')
    return true
  }

  async function exhaust(deed: Extract<Deed, { do: 'exhaust' }>): Promise<boolean> {
    if (!await incidents.change(deed.incident, timeline.exhausted(deed.because, at()))) return false
    log.error({ node: deed.node, incident: deed.incident, because: deed.because }, 'fencing has failed')
    say(deed.node, deed.incident, 'FencingFailed', 'Exhaust', `${deed.node} could not be fenced: ${deed.because}`, 'Warning')
    return true
  }

  async function close(deed: Extract<Deed, { do: 'close' }>): Promise<boolean> {
    const row = observation.row(deed.node)
    const concerned = row === undefined ? [] : concern(deed.incident, row)
    if (!await incidents.change(deed.incident, (status) => timeline.closed(deed.outcome, deed.because, at(), deed.identity)(timeline.volumesSeen(row?.volumes ?? [], at(), concerned)(status)))) return false
    log.info({ node: deed.node, incident: deed.incident, outcome: deed.outcome, because: deed.because, ...(deed.identity === undefined ? {} : { identity: deed.identity.detail }) }, 'incident closed')
    say(deed.node, deed.incident, 'IncidentClosed', 'Close', `${deed.outcome}: ${deed.because}`, 'Normal')
    const status = observation.seen.incidents.get(deed.incident)?.status
    if (status !== undefined && sweptUnproven(status)) sweptByKubernetes(deed.node, deed.incident)
    return true
  }

  function sweptByKubernetes(node: NodeName, incident: string): void {
    const note = `nobody proved ${node} off, and its Node was deleted: Kubernetes deletes its pods by that, and the machine, where it runs, may write beside those that take their place`
    log.error({ node, incident }, 'a Node was deleted, and nobody proved its machine off')
    say(node, incident, 'SweptUnproven', 'Close', note, 'Warning')
  }

  /** Over whatever version: it is one condition, and everybody's own is left alone. */
  async function declare({ node, maintenance }: Extract<Deed, { do: 'declare' }>): Promise<boolean> {
    const row = observation.row(node)
    if (row === undefined || leads() === undefined) return false
    const condition = {
      type: maintenanceType, status: maintenance ? 'True' : 'False', reason: maintenance ? maintenanceReason : maintenanceOver, lastHeartbeatTime: at(), lastTransitionTime: at(),
      message: maintenance ? `${quarantineKey} keeps workloads off this node until it is clean` : 'workloads may come back',
    }
    const answer = await api.patch<KubeObject>(`${paths.node(node)}/status`, 'strategic', { metadata: { uid: row.uid }, status: { conditions: [condition] } }, how())
    if (answer.ok) observation.node(keepNode(answer.value), 'live')
    else log.info({ node, kind: answer.error.kind, message: answer.error.message }, 'its condition could not be written')
    return answer.ok
  }

  /** On the Node, also when the incident outlived it. */
  function say(node: NodeName, incident: string | undefined, reason: string, action: string, note: string, type: 'Normal' | 'Warning'): void {
    const related = incident === undefined ? undefined : observation.seen.incidents.get(incident)
    const uid = observation.row(node)?.uid ?? related?.nodeUid
    if (uid === undefined) return
    recorder.say({
      regarding: { apiVersion: 'v1', kind: 'Node', name: node, uid }, reason, action, note, type,
      ...(related === undefined ? {} : { related: { apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeFence', name: related.name, uid: related.uid } }),
    })
  }
}

/** Of those that nobody takes for dead. */
const openedFor: Partial<Record<Incident['cause'], (node: NodeName) => string>> = {
  owed: (node) => `what an earlier incident left off of ${node} is switched on again`,
  'scheduled-drill': (node) => `${node} is spare, and is drilled`,
  remedy: (node) => `${node} runs and is not well, and is to be switched off and on`,
  leftover: (node) => `${node} is back and did not become clean in time, and is to be switched off and on`,
}
