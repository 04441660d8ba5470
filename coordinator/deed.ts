// Carries out deeds. Before each write that cuts or frees something three things are asked again, here, at the edge: do we
// still lead at this instant, is this the incident as we know it, and, where something is freed, was what the proof rests on
// read just now. Recording comes before touching: no record, no deed.
import type { Deed } from '../core/action.ts'
import { sameFacts } from '../core/audit.ts'
import { hasOurs, hasTaint, isOurs, outOfServiceKey, ownValue, quarantineKey, volumesOf } from '../core/clear.ts'
import { kindsOf, type Attempt, type Evidence, type Incident, type ProofRecord } from '../core/incident.ts'
import type { Ms, NodeName, NodeRecord, PodSeen, Taint, Unkept, VolumeSeen } from '../core/model.ts'
import { borneOut, isStrange, partsOf, recall, strangeness, type Proof } from '../core/proof.ts'
import { unfenceable } from '../core/self-fence.ts'
import { isAnotherMachine } from '../core/situation.ts'
import * as timeline from '../core/timeline.ts'
import type { Log } from '../edge/log.ts'
import type { Api, KubeObject } from './api.ts'
import type { Recorder } from './events.ts'
import type { FencePaths } from './fence-paths.ts'
import type { FenceRunner, MethodEnd } from './fence.ts'
import type { CoordinatorHost } from './host.ts'
import type { IncidentWriter } from './incident.ts'
import { keepNode, maintenanceOver, maintenanceReason, maintenanceType, paths } from './kubernetes.ts'
import { readRecord, recordBody, recordsPath } from './node-record.ts'
import type { Observation, Row } from './observe.ts'
import type { PodRate } from './pod-rate.ts'
import { evictor } from './evict.ts'
import { releaser } from './release.ts'

export interface DeedOptions {
  readonly api: Api
  readonly host: Pick<CoordinatorHost, 'clock'>
  readonly observation: Observation
  readonly incidents: IncidentWriter
  readonly fences: Pick<FencePaths, 'method'>
  readonly runner: Pick<FenceRunner, 'runMethod'>
  readonly recorder: Recorder
  readonly rate: PodRate
  readonly log: Log
  readonly replica: string
  leads(): number | undefined
  /** Aborts when the lease is lost: running programs are ended as groups, and what waits to be sent is not sent. */
  signal(): AbortSignal
}

/** A batch ends before a machine that was switched on at its start could have booted. */
const batchWithin: Ms = 5_000
const podsAtOnce = 5
const writeDeadline: Ms = 4_000
/** What must not be lost, though what it tells of is over, is written again after this, then after twice as long, and so on. */
const againAfter: Ms = 250
const againTries = 7

/** The answer is false when a deed came to nothing: not written, not allowed any more, or nobody knows. */
export function doer(options: DeedOptions): (deed: Deed) => Promise<boolean> {
  const { api, observation, incidents, fences, runner, recorder, rate, log, replica, leads } = options
  const { clock } = options.host
  const at = (): string => new Date(clock.wall()).toISOString()
  const how = () => ({ deadline: writeDeadline, signal: options.signal() })
  const release = releaser({ api, observation, how, at })
  const { evict: evictPod } = evictor({ api, observation, clock, how })

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
      case 'record': return record(deed.node, deed.record)
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
    const why = cause === 'owed' ? `what an earlier incident left off of ${row.name} is switched on again` : `${row.name} is taken for dead (${cause})`
    say(row.name, name, 'IncidentOpened', 'Open', `${why}: ${evidence.map((one) => `${one.source} ${one.word}`).join('; ')}`, 'Warning')
    return true
  }

  /** The attempt stands on the record before the device is touched, so that a crash leaves a trace; then everything is looked
   *  at once more, because that write may have taken seconds, or this process may have slept since. */
  async function order(deed: Extract<Deed, { do: 'fence' | 'restore' }>, action: 'off' | 'on'): Promise<boolean> {
    const term = leads()
    const method = fences.method(deed.node, deed.method)
    const incident = observation.seen.incidents.get(deed.incident)
    if (term === undefined || method === undefined || incident === undefined) return false
    const beganAt = clock.now()
    const id = attemptName(incident)
    const attempt: Attempt = {
      id, round: deed.round, level: deed.level, method: deed.method.name, digest: deed.method.digest, agent: deed.method.agent, action, replica, term,
      startedAt: at(), within: deed.method.orderWithin, late: deed.method.late, result: 'running',
    }
    if (!await incidents.change(deed.incident, timeline.ordered(attempt, deed.method.isolates !== undefined))) return false
    if (leads() !== term) return false
    const against = refuted(incident, deed.node, action, beganAt)
    if (against !== undefined) {
      log.warn({ node: deed.node, incident: deed.incident, method: method.name, action, attempt: id, because: against }, 'order not given')
      await writeEnd(deed.incident, term, timeline.ended(id, 'not-given', against, at()))
      return true
    }
    log.warn({ node: deed.node, incident: deed.incident, method: method.name, action, attempt: id }, 'order given')
    say(deed.node, deed.incident, action === 'off' ? 'FenceOrdered' : 'PowerOnOrdered', action, `${deed.method.name} is asked ${action}`, 'Normal')
    const end = await runner.runMethod({ node: deed.node, method, action, purpose: 'incident', boot: incident.boot, incident: deed.incident, attempt: id, signal: options.signal() })
    if (!end.gone) return never()
    const row = observation.row(deed.node)
    const strange = end.state === action && row !== undefined && isStrange(end, row)
    const result = strange ? 'failed' : endOf(end, action)
    const reason = strange ? strangeness(deed.method.name) : end.reason
    await writeEnd(deed.incident, term, timeline.ended(id, result, reason, at()))
    say(deed.node, deed.incident, 'OrderEnded', action, `${deed.method.name} ${action}: ${result}${reason === '' ? '' : `, ${reason}`}`, result === action ? 'Normal' : 'Warning')
    return true
  }

  /** What spoke against an order while it was being written down. */
  function refuted(incident: Incident, node: NodeName, action: 'off' | 'on', since: Ms): string | undefined {
    const known = observation.seen.incidents.get(incident.name)
    if (known === undefined || known.uid !== incident.uid || known.status.phase === 'Final') return 'the incident is over'
    const row = observation.row(node)
    if (row === undefined || row.gone === true || isAnotherMachine(incident, row)) return 'the Node is another one'
    if (action === 'on') return undefined
    if (row.uid !== incident.nodeUid) return 'its Node was made anew'
    if (known.status.phase === 'Done') return 'the incident is being withdrawn'
    if (known.abort) return 'a person aborted it'
    return asksByHand.has(incident.cause) ? undefined : (row.beat?.at ?? -Infinity) > since ? 'the node is heard again' : undefined
  }

  /** An end that is not written becomes *unknown*, and a verified *off* would be ordered again. */
  async function writeEnd(name: string, term: number, end: timeline.Change): Promise<void> {
    for (let tries = 0; tries < againTries && leads() === term; tries += 1) {
      if (await incidents.change(name, end)) return
      await clock.wait(againAfter * 2 ** tries, options.signal())
    }
  }

  async function prove(deed: Extract<Deed, { do: 'prove' }>): Promise<boolean> {
    const row = observation.row(deed.node)
    if (row === undefined || row.uid !== deed.proof.nodeUid) return false
    const ahead = clock.wall() - clock.now()
    const proved = timeline.proved(deed.proof, at(), (instant) => new Date(instant + ahead).toISOString())
    // The copy that the change is made from: an abort that came before this write counts.
    const copy = (): Incident | undefined => observation.seen.incidents.get(deed.incident)
    const change: timeline.Change = (status) => (copy()?.abort === true ? status : timeline.volumesSeen(row.volumes, at(), concern(deed.incident, row, deed.proof))(proved(status)))
    if (!await incidents.change(deed.incident, change) || copy()?.status.proof === undefined) return false
    if (deed.proof.joined !== undefined && copy()?.status.proof?.joined === undefined) notKept(row, { at: clock.now(), joined: deed.incident })
    log.warn({ node: deed.node, incident: deed.incident, proof: kindsOf(deed.proof), methods: deed.proof.methods }, 'proven')
    say(deed.node, deed.incident, 'Proven', 'Prove', `${deed.node} cannot write: ${kindsOf(deed.proof)}, ${deed.proof.methods.join(', ') || deed.proof.evidence[0]?.source}`, 'Normal')
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

  /** Its path is marked by the record that the core wants as long as the proof stands there as false. */
  async function shownFalse(deed: Extract<Deed, { do: 'void' }>): Promise<boolean> {
    const wrong = observation.seen.incidents.get(deed.incident)?.status.proof?.kind === 'self-fenced' ? 'watchdog' : 'fence path'
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

  async function taint(deed: Extract<Deed, { do: 'taint' }>): Promise<boolean> {
    const row = observation.row(deed.node)
    const incident = deed.incident === undefined ? undefined : observation.seen.incidents.get(deed.incident)
    if (row === undefined || (deed.incident !== undefined && incident === undefined)) return false
    if (deed.outOfService && (incident === undefined || !holds(deed.proof, incident, row))) return false
    const wanted: Taint[] = [
      { key: quarantineKey, value: ownValue, effect: 'NoSchedule' } as const,
      ...(deed.outOfService ? [{ key: outOfServiceKey, value: ownValue, effect: 'NoSchedule' } as const] : []),
    ].filter((one) => !hasTaint(row, one.key))
    if (wanted.length === 0 || !await writeTaints(row, [...row.taints, ...wanted])) return false
    if (deed.incident === undefined) quarantined(row)
    else await incidents.change(deed.incident, timeline.tainted(deed.outOfService, at()))
    return true
  }

  function quarantined({ name, beat }: Row): void {
    log.warn({ node: name, boot: beat?.boot }, 'node quarantined: the boot before this one was cut off')
    say(name, undefined, 'Quarantined', 'Taint', 'the boot before this one was cut off: no workload is sent here until its agent has found it clean', 'Warning')
  }

  async function untaint(deed: Extract<Deed, { do: 'untaint' }>): Promise<boolean> {
    const row = observation.row(deed.node)
    if (row === undefined || leads() === undefined) return false
    // Where another's does the same, there may be none of ours.
    if (hasOurs(row, deed.key)) {
      if (!await writeTaints(row, row.taints.filter((one) => one.key !== deed.key || !isOurs(one)))) return false
      log.info({ node: deed.node, incident: deed.incident, taint: deed.key, because: deed.because }, 'taint removed')
      say(deed.node, deed.incident, 'TaintRemoved', 'Untaint', `${deed.key}: ${deed.because}`, 'Normal')
    }
    const { incident } = deed
    if (incident === undefined) return true
    return incidents.change(incident, (status) => timeline.volumesSeen(row.volumes, at(), concern(incident, row))(
      timeline.leftAlone(deed.left ?? [])(timeline.untainted(deed.key, deed.because, deed.recovers, at())(status))))
  }

  /** The whole list is one value to Kubernetes: it is written only over the very version it was read from. */
  async function writeTaints(row: Row, taints: readonly Taint[]): Promise<boolean> {
    if (leads() === undefined) return false
    const patch = [
      { op: 'test', path: '/metadata/uid', value: row.uid },
      { op: 'test', path: '/metadata/resourceVersion', value: row.resourceVersion },
      { op: 'add', path: '/spec/taints', value: taints },
    ]
    const answer = await api.patch<KubeObject>(paths.node(row.name), 'json', patch, how())
    if (answer.ok) {
      observation.node(keepNode(answer.value), 'live')
      return true
    }
    log.info({ node: row.name, kind: answer.error.kind }, 'taints not written; the node is read again')
    const newer = await api.get<KubeObject>(paths.node(row.name), how())
    if (newer.ok) observation.node(keepNode(newer.value), 'live')
    return false
  }

  /** What comes onto the record where nothing is being freed just now. */
  function concern(name: string, row: Row, proof?: Proof): readonly VolumeSeen[] {
    const incident = observation.seen.incidents.get(name)
    return incident === undefined ? [] : volumesOf(incident, row, [], proof)
  }

  /** On record first, so that a leader that slept asks nobody. No proof: kubelet ends them, and nothing is taken from a machine that runs. */
  async function evict(deed: Extract<Deed, { do: 'evict' }>): Promise<boolean> {
    const row = observation.row(deed.node)
    const term = leads()
    if (row === undefined || term === undefined) return false
    const pods = deed.pods.slice(0, rate.take(deed.pods.length))
    const written = await incidents.change(deed.incident, timeline.evicting(pods, at()))
    const startedAt = clock.now()
    // Longer than a batch nothing that a death would bring may wait for these.
    const may = (): boolean => leads() === term && clock.now() - startedAt < batchWithin && observation.row(deed.node) === row && row.gone !== true && mayGo(deed.incident)
    const going: PodSeen[] = []
    for (const pod of written ? pods : []) if (may() && await evictPod(deed.node, pod)) going.push(pod)
    // What a budget refuses must not use up the rate of a node that is dead.
    rate.giveBack(pods.length - going.length)
    observation.listed(deed.node, undefined)
    if (going.length > 0) {
      log.info({ node: deed.node, incident: deed.incident, pods: going.length }, 'pods evicted')
      say(deed.node, deed.incident, 'PodsEvicted', 'Evict', going.map((pod) => `${pod.namespace}/${pod.name}`).join(', '), 'Normal')
    }
    return written
  }

  /** The time that they have is not over, and nobody has called it off. */
  function mayGo(name: string): boolean {
    const known = observation.seen.incidents.get(name)
    return known !== undefined && !known.abort && known.status.phase !== 'Done' && known.status.phase !== 'Final' && known.status.eviction?.over === undefined
  }

  /** Status first (the lethal write: the owner acts on phase Failed at once), then the object, both under uid and version. */
  async function free(deed: Extract<Deed, { do: 'delete' }>): Promise<boolean> {
    const row = observation.row(deed.node)
    const incident = observation.seen.incidents.get(deed.incident)
    const term = leads()
    if (row === undefined || incident === undefined || term === undefined) return false
    const pods = deed.pods.slice(0, rate.take(deed.pods.length))
    if (pods.length === 0) return false
    const written = await incidents.change(deed.incident, (status) => timeline.volumesSeen(row.volumes, at(), volumesOf(incident, row, pods))(timeline.freed(pods, at())(status)))
    const startedAt = clock.now()
    const may = (): boolean => leads() === term && clock.now() - startedAt < batchWithin && stillFenced(deed, row, startedAt)
    const queue = written ? [...pods] : []
    const freed: PodSeen[] = []
    const worker = async (): Promise<void> => {
      for (let pod = queue[0]; pod !== undefined && may(); pod = queue[0]) {
        queue.shift()
        if (await freePod(pod, incident)) freed.push(pod)
      }
    }
    await Promise.all(Array.from({ length: podsAtOnce }, worker))
    rate.giveBack(written ? queue.length : pods.length)
    if (!written) return false
    observation.listed(deed.node, undefined)
    if (freed.length === 0) return false
    log.warn({ node: deed.node, incident: deed.incident, pods: freed.length }, 'pods freed')
    say(deed.node, deed.incident, 'PodsFreed', 'Clear', freed.map((pod) => `${pod.namespace}/${pod.name}`).join(', '), 'Normal')
    return true
  }

  /** Asked before each pod: the very proof, the very Node, what its devices said just now, and nothing heard of it since. */
  function stillFenced({ node, incident, proof }: Extract<Deed, { do: 'delete' | 'detach' }>, row: Row, startedAt: Ms): boolean {
    const known = observation.seen.incidents.get(incident)
    if (known === undefined || observation.row(node) !== row || row.gone === true) return false
    return (row.beat?.at ?? -Infinity) <= startedAt && holds(proof, known, row, startedAt)
  }

  /** Whether it was doomed; that its object is gone as well is seen in the next list. */
  async function freePod(pod: PodSeen, incident: Incident): Promise<boolean> {
    const path = paths.pod(pod.namespace, pod.name)
    const { uid, resourceVersion } = pod
    const condition = {
      type: 'DisruptionTarget', status: 'True', reason: 'HoldfastFenced', lastTransitionTime: new Date(clock.wall()).toISOString(),
      message: `its node ${incident.nodeName} was fenced (${incident.name})`,
    }
    const over = pod.phase === 'Failed' || pod.phase === 'Succeeded'
    if (!over) {
      const body = { metadata: { uid, resourceVersion }, status: { phase: 'Failed', reason: 'NodeFenced', message: condition.message, conditions: [condition] } }
      const answer = await api.patch<KubeObject>(`${path}/status`, 'strategic', body, how())
      // Anything but yes: it is gone, another one, changed, or unknown. The next list tells, and the next batch follows.
      if (!answer.ok) return false
      // Whatever is heard by now, its owner has replaced it. The old one ends only with its object, and once the proof is void
      // nobody else would delete that.
      if (leads() === undefined) return true
    }
    // After our own write its owner may have changed it already: the uid says which pod it is, and it is doomed.
    return await remove(pod, over ? { uid, resourceVersion } : { uid }) || !over
  }

  /** Kubernetes' attach/detach controller lets go of a volume once no pod of the node is said to run on it, and kubelet's last word is
   *  not that it uses it. Pods that stay are told the first, the node's status the second, and neither says more than the proof. */
  async function detach(deed: Extract<Deed, { do: 'detach' }>): Promise<boolean> {
    const row = observation.row(deed.node)
    const incident = observation.seen.incidents.get(deed.incident)
    const term = leads()
    if (row === undefined || incident === undefined || term === undefined) return false
    const { pods, volumes } = deed
    const seen = timeline.volumesSeen(row.volumes, at(), volumesOf(incident, row, pods))
    if (!await incidents.change(deed.incident, (status) => seen(timeline.detached(pods, volumes, at())(status)))) return false
    const startedAt = clock.now()
    const may = (): boolean => leads() === term && clock.now() - startedAt < batchWithin && stillFenced(deed, row, startedAt)
    const released: PodSeen[] = []
    for (const pod of pods) if (may() && await release.end(pod, incident)) released.push(pod)
    observation.listed(deed.node, undefined)
    const struck = volumes.length > 0 && may() && await release.strike(row, new Set(volumes.map(({ attachment }) => attachment)))
    if (released.length === 0 && !struck) return false
    log.warn({ node: deed.node, incident: deed.incident, pods: released.length, volumes: struck ? volumes.length : 0 }, 'volumes released')
    const names = [...released.map((pod) => `${pod.namespace}/${pod.name}`), ...(struck ? volumes.map(({ volume }) => volume) : [])]
    say(deed.node, deed.incident, 'VolumesReleased', 'Clear', names.join(', '), 'Normal')
    return true
  }

  /** To the API server all of them are over: no readings and no rate. */
  async function bury({ node, pods }: Extract<Deed, { do: 'bury' }>): Promise<boolean> {
    const term = leads()
    const gone: boolean[] = []
    for (const pod of pods) if (term !== undefined && leads() === term) gone.push(await remove(pod, { uid: pod.uid, resourceVersion: pod.resourceVersion }))
    observation.listed(node, undefined)
    return gone.includes(true)
  }

  async function remove({ namespace, name }: PodSeen, preconditions: { readonly uid: string; readonly resourceVersion?: string }): Promise<boolean> {
    const gone = await api.remove(paths.pod(namespace, name), { gracePeriodSeconds: 0, preconditions }, how())
    if (gone.ok || gone.error.kind === 'notFound') return true
    if (gone.error.kind !== 'conflict') log.warn({ pod: `${namespace}/${name}`, kind: gone.error.kind, message: gone.error.message }, 'a pod could not be deleted')
    return false
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
    if (!await incidents.change(deed.incident, (status) => timeline.closed(deed.outcome, deed.because, at())(timeline.volumesSeen(row?.volumes ?? [], at(), concerned)(status)))) return false
    log.info({ node: deed.node, incident: deed.incident, outcome: deed.outcome, because: deed.because }, 'incident closed')
    say(deed.node, deed.incident, 'IncidentClosed', 'Close', `${deed.outcome}: ${deed.because}`, 'Normal')
    return true
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

  async function record(node: NodeName, facts: Omit<NodeRecord, 'resourceVersion'>): Promise<boolean> {
    if (leads() === undefined) return false
    const version = observation.row(node)?.record?.resourceVersion
    const body = recordBody(node, facts, clock.wall(), version)
    const answer = version === undefined
      ? await api.create<KubeObject>(recordsPath, body, how())
      : await api.replace<KubeObject>(`${recordsPath}/${node}`, body, how())
    const current = answer.ok ? answer : await api.get<KubeObject>(`${recordsPath}/${node}`, how())
    const read = current.ok ? readRecord(current.value) : undefined
    if (read?.ok !== true) return answer.ok
    observation.record(node, read.record, 'live')
    const row = observation.row(node)
    if (answer.ok && row !== undefined && !sameFacts(read.record, facts)) notKept(row, { at: clock.now(), record: { wanted: facts, version: read.record.resourceVersion } })
    return answer.ok
  }

  function notKept(row: Row, unkept: Unkept): void {
    row.unkept = { ...row.unkept, ...unkept }
    log.warn({ node: row.name, kind: unkept.record === undefined ? 'NodeFence' : 'NodeRecord' }, 'the API server did not keep all that was written: its kinds are older than this coordinator')
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

/** A node that is heard does not speak against these. */
const asksByHand: ReadonlySet<Incident['cause']> = new Set(['by-hand', 'drill'])

/** A lost lease, a deadline or a signal leaves an order that may have been sent; only a program that never ran leaves none. */
function endOf({ ran, state }: MethodEnd, action: 'off' | 'on'): Attempt['result'] {
  if (!ran) return 'not-given'
  return state === 'off' || state === 'on' ? (state === action ? action : 'failed') : state
}

/** The incident's name and a number above all it bears: old attempts leave a full record, and what is known of one must not be
 *  taken for another's. */
function attemptName({ name, status }: Incident): string {
  const numbers = status.attempts.map((attempt) => Number(attempt.id.slice(name.length + 1))).filter(Number.isInteger)
  return `${name}.${Math.max(0, ...numbers) + 1}`
}

/** The proof once more, before the call leaves: of this node, on this record, and still what the devices say. */
function holds(proof: Proof | undefined, incident: Incident, row: Row, since?: Ms): boolean {
  const recorded = incident.status.proof
  if (proof === undefined || recorded === undefined || !isOnRecord(proof, recorded) || recorded.nodeUid !== row.uid) return false
  return since === undefined || borneOut(proof, incident, row, since)
}

/** The whole of it, or a part that was joined. */
function isOnRecord(proof: Proof, record: ProofRecord): boolean {
  const recorded = partsOf(recall(record))
  return partsOf(proof).every((part) => recorded.some((other) => sameProof(part, other)))
}

function sameProof(one: Proof, other: Proof): boolean {
  return one.kind === other.kind && one.boot === other.boot && one.nodeUid === other.nodeUid && one.level === other.level
    && one.methods.join() === other.methods.join() && one.digests?.join() === other.digests?.join()
}

/** Something of a program runs on and cannot be ended: the order stays under way, nothing follows it. */
function never(): Promise<never> {
  return new Promise(() => undefined)
}
