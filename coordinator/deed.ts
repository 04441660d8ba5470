// Carries out deeds. Before each write that cuts or frees something three things are asked again, here, at the edge: do we
// still lead at this instant, is this the incident as we know it, and, where something is freed, was what the proof rests on
// read just now. Recording comes before touching: no record, no deed.
import type { Deed } from '../core/action.ts'
import { hasTaint, outOfServiceKey, quarantineKey } from '../core/clear.ts'
import type { Attempt, Evidence, Incident } from '../core/incident.ts'
import type { Ms, NodeName, NodeRecord, PodSeen, Taint } from '../core/model.ts'
import { stillOff, type Proof } from '../core/proof.ts'
import * as timeline from '../core/timeline.ts'
import type { Log } from '../edge/log.ts'
import type { Api, KubeObject } from './api.ts'
import type { Recorder } from './events.ts'
import type { FencePaths } from './fence-paths.ts'
import type { FenceRunner } from './fence.ts'
import type { CoordinatorHost } from './host.ts'
import type { IncidentWriter } from './incident.ts'
import { keepNode, paths } from './kubernetes.ts'
import { readRecord, recordBody, recordsPath } from './node-record.ts'
import type { Observation, Row } from './observe.ts'
import type { PodRate } from './pod-rate.ts'

export interface DeedOptions {
  readonly api: Api
  readonly host: Pick<CoordinatorHost, 'clock'>
  readonly observation: Observation
  readonly incidents: IncidentWriter
  readonly fences: FencePaths
  readonly runner: FenceRunner
  readonly recorder: Recorder
  readonly rate: PodRate
  readonly log: Log
  readonly replica: string
  leads(): number | undefined
  /** Aborts when the lease is lost: running programs are ended as groups. */
  signal(): AbortSignal
}

/** A batch ends before a machine that was switched on at its start could have booted. */
const batchWithin: Ms = 5_000
const podsAtOnce = 5
const writeDeadline: Ms = 4_000

export function doer(options: DeedOptions): (deed: Deed) => Promise<void> {
  const { api, observation, incidents, fences, runner, recorder, rate, log, replica, leads } = options
  const { clock } = options.host
  const at = (): string => new Date(clock.wall()).toISOString()

  return async (deed) => {
    switch (deed.do) {
      case 'open': return open(deed)
      case 'adopt': return void await incidents.adopt(deed.incident, timeline.adopted(leads() ?? 0, replica, at()))
      case 'fence': return order(deed, 'off')
      case 'restore': return order(deed, 'on')
      case 'settle': return void await incidents.change(deed.incident, timeline.settled(deed.attempt, at()))
      case 'prove': return prove(deed)
      case 'void': return shownFalse(deed)
      case 'taint': return taint(deed)
      case 'untaint': return untaint(deed)
      case 'delete': return free(deed)
      case 'withdraw': return withdraw(deed)
      case 'close': return close(deed)
      case 'record': return record(deed.node, deed.record)
    }
  }

  async function open(deed: Extract<Deed, { do: 'open' }>): Promise<void> {
    const row = observation.row(deed.node)
    const term = leads()
    if (row === undefined || term === undefined) return
    const evidence: Evidence[] = deed.evidence.map((one) => ({ ...one, at: at() }))
    const { name, boot, cause, policy } = deed
    const draft = { name, nodeName: row.name, nodeUid: row.uid, boot, machine: row.machine, cause, policy }
    if (!await incidents.open(draft, timeline.opened(term, replica, cause, evidence, at()))) return
    log.warn({ node: row.name, incident: name, cause, evidence }, 'incident opened')
    say(row.name, name, 'IncidentOpened', 'Open', `${row.name} is taken for dead (${cause}): ${evidence.map((one) => `${one.source} ${one.word}`).join('; ')}`, 'Warning')
  }

  /** The attempt stands on the record before the device is touched, so that a crash leaves a trace; then the lease is looked
   *  at once more, because this process may have slept since. */
  async function order(deed: Extract<Deed, { do: 'fence' | 'restore' }>, action: 'off' | 'on'): Promise<void> {
    const term = leads()
    const method = fences.method(deed.node, deed.method)
    const incident = observation.seen.incidents.get(deed.incident)
    if (term === undefined || method === undefined || incident === undefined) return
    const id = `${deed.incident}.${incident.status.attempts.length + 1}`
    const attempt: Attempt = {
      id, round: deed.round, level: deed.level, method: deed.method.name, agent: deed.method.agent, action, replica, term,
      startedAt: at(), within: deed.method.orderWithin, late: deed.method.late, result: 'running',
    }
    if (!await incidents.change(deed.incident, timeline.ordered(attempt))) return
    if (leads() !== term) return
    log.warn({ node: deed.node, incident: deed.incident, method: method.name, action, attempt: id }, 'order given')
    say(deed.node, deed.incident, action === 'off' ? 'FenceOrdered' : 'PowerOnOrdered', action, `${deed.method.name} is asked ${action}`, 'Normal')
    const end = await runner.runMethod({ node: deed.node, method, action, purpose: 'incident', boot: incident.boot, incident: deed.incident, attempt: id, signal: options.signal() })
    if (!end.gone) return never()
    const result = end.state === 'off' || end.state === 'on' ? (end.state === action ? action : 'failed') : end.state
    await incidents.change(deed.incident, timeline.ended(id, result, end.reason, at()))
    say(deed.node, deed.incident, 'OrderEnded', action, `${deed.method.name} ${action}: ${result}${end.reason === '' ? '' : `, ${end.reason}`}`, result === action ? 'Normal' : 'Warning')
  }

  async function prove(deed: Extract<Deed, { do: 'prove' }>): Promise<void> {
    const row = observation.row(deed.node)
    if (row === undefined || row.uid !== deed.proof.nodeUid) return
    if (!await incidents.change(deed.incident, (status) => timeline.volumesSeen(row.volumes, at())(timeline.proved(deed.proof, at())(status)))) return
    log.warn({ node: deed.node, incident: deed.incident, proof: deed.proof.kind, methods: deed.proof.methods }, 'proven')
    say(deed.node, deed.incident, 'Proven', 'Prove', `${deed.node} cannot write: ${deed.proof.kind} by ${deed.proof.methods.join(', ')}`, 'Normal')
  }

  async function shownFalse(deed: Extract<Deed, { do: 'void' }>): Promise<void> {
    const row = observation.row(deed.node)
    const proof = observation.seen.incidents.get(deed.incident)?.status.proof
    if (!await incidents.change(deed.incident, timeline.shownFalse(deed.evidence, at()))) return
    log.error({ node: deed.node, incident: deed.incident, evidence: deed.evidence }, 'the fence path is wrong: a proof was shown false')
    say(deed.node, deed.incident, 'ProofVoid', 'Void', `the fence path of ${deed.node} is wrong: ${deed.evidence}`, 'Warning')
    if (row?.record === undefined || proof === undefined) return
    const marked = row.record.paths.map((path) => (proof.methods.includes(path.method) ? { ...path, state: 'marked' as const, at: at(), evidence: deed.evidence } : path))
    await record(deed.node, { ...row.record, paths: marked })
  }

  async function taint(deed: Extract<Deed, { do: 'taint' }>): Promise<void> {
    const row = observation.row(deed.node)
    const incident = observation.seen.incidents.get(deed.incident)
    if (row === undefined || incident === undefined) return
    if (deed.outOfService && !holds(deed.proof, incident, row)) return
    const wanted: Taint[] = [
      { key: quarantineKey, value: 'holdfast', effect: 'NoSchedule' } as const,
      ...(deed.outOfService ? [{ key: outOfServiceKey, value: 'holdfast', effect: 'NoSchedule' } as const] : []),
    ].filter((one) => !hasTaint(row, one.key))
    if (wanted.length === 0 || !await writeTaints(row, [...row.taints, ...wanted])) return
    await incidents.change(deed.incident, timeline.tainted(deed.outOfService, at()))
  }

  async function untaint(deed: Extract<Deed, { do: 'untaint' }>): Promise<void> {
    const row = observation.row(deed.node)
    if (row === undefined || !await writeTaints(row, row.taints.filter((one) => one.key !== deed.key))) return
    log.info({ node: deed.node, incident: deed.incident, taint: deed.key, because: deed.because }, 'taint removed')
    say(deed.node, deed.incident, 'TaintRemoved', 'Untaint', `${deed.key}: ${deed.because}`, 'Normal')
    if (deed.incident === undefined) return
    await incidents.change(deed.incident, (status) => timeline.volumesSeen(row.volumes, at())(timeline.untainted(deed.key, deed.because, deed.recovers, at())(status)))
  }

  /** The whole list is one value to Kubernetes: it is written only over the very version it was read from. */
  async function writeTaints(row: Row, taints: readonly Taint[]): Promise<boolean> {
    if (leads() === undefined) return false
    const patch = [
      { op: 'test', path: '/metadata/uid', value: row.uid },
      { op: 'test', path: '/metadata/resourceVersion', value: row.resourceVersion },
      { op: 'add', path: '/spec/taints', value: taints },
    ]
    const answer = await api.patch<KubeObject>(paths.node(row.name), 'json', patch, { deadline: writeDeadline })
    if (answer.ok) {
      observation.node(keepNode(answer.value))
      return true
    }
    log.info({ node: row.name, kind: answer.error.kind }, 'taints not written; the node is read again')
    const newer = await api.get<KubeObject>(paths.node(row.name), { deadline: writeDeadline })
    if (newer.ok) observation.node(keepNode(newer.value))
    return false
  }

  /** Status first (the lethal write: the owner acts on phase Failed at once), then the object, both under uid and version. */
  async function free(deed: Extract<Deed, { do: 'delete' }>): Promise<void> {
    const row = observation.row(deed.node)
    const incident = observation.seen.incidents.get(deed.incident)
    const term = leads()
    if (row === undefined || incident === undefined || term === undefined) return
    const pods = deed.pods.slice(0, rate.take(deed.pods.length))
    if (pods.length === 0) return
    const written = await incidents.change(deed.incident, (status) => timeline.volumesSeen(row.volumes, at())(timeline.freed(pods, at())(status)))
    if (!written) return
    const startedAt = clock.now()
    const queue = [...pods]
    const worker = async (): Promise<void> => {
      for (let pod = queue.shift(); pod !== undefined; pod = queue.shift()) {
        const known = observation.seen.incidents.get(deed.incident)
        const within = clock.now() - startedAt < batchWithin
        if (leads() !== term || !within || known === undefined || !holds(deed.proof, known, row, startedAt)) return
        await freePod(pod, incident)
      }
    }
    await Promise.all(Array.from({ length: podsAtOnce }, worker))
    observation.listed(deed.node, undefined)
    log.warn({ node: deed.node, incident: deed.incident, pods: pods.length - queue.length }, 'pods freed')
    say(deed.node, deed.incident, 'PodsFreed', 'Clear', pods.map((pod) => `${pod.namespace}/${pod.name}`).join(', '), 'Normal')
  }

  async function freePod(pod: PodSeen, incident: Incident): Promise<void> {
    const path = paths.pod(pod.namespace, pod.name)
    const { uid, resourceVersion } = pod
    const condition = {
      type: 'DisruptionTarget', status: 'True', reason: 'HoldfastFenced', lastTransitionTime: new Date(clock.wall()).toISOString(),
      message: `its node ${incident.nodeName} was fenced (${incident.name})`,
    }
    const over = pod.phase === 'Failed' || pod.phase === 'Succeeded'
    if (!over) {
      const body = { metadata: { uid, resourceVersion }, status: { phase: 'Failed', reason: 'NodeFenced', message: condition.message, conditions: [condition] } }
      const answer = await api.patch<KubeObject>(`${path}/status`, 'strategic', body, { deadline: writeDeadline })
      // Anything but yes: it is gone, another one, changed, or unknown. The next list tells, and the next batch follows.
      if (!answer.ok) return
    }
    const gone = await api.remove(path, { gracePeriodSeconds: 0, preconditions: { uid } }, { deadline: writeDeadline })
    if (!gone.ok && gone.error.kind !== 'notFound' && gone.error.kind !== 'conflict') {
      log.warn({ pod: `${pod.namespace}/${pod.name}`, kind: gone.error.kind, message: gone.error.message }, 'a pod could not be deleted')
    }
  }

  async function withdraw(deed: Extract<Deed, { do: 'withdraw' }>): Promise<void> {
    if (!await incidents.change(deed.incident, timeline.withdrawn(deed.because, at()))) return
    log.info({ node: deed.node, incident: deed.incident, because: deed.because }, 'incident withdrawn')
    say(deed.node, deed.incident, 'Withdrawn', 'Withdraw', deed.because, 'Normal')
  }

  async function close(deed: Extract<Deed, { do: 'close' }>): Promise<void> {
    const volumes = observation.row(deed.node)?.volumes ?? []
    if (!await incidents.change(deed.incident, (status) => timeline.closed(deed.outcome, deed.because, at())(timeline.volumesSeen(volumes, at())(status)))) return
    log.info({ node: deed.node, incident: deed.incident, outcome: deed.outcome, because: deed.because }, 'incident closed')
    say(deed.node, deed.incident, 'IncidentClosed', 'Close', `${deed.outcome}: ${deed.because}`, 'Normal')
  }

  async function record(node: NodeName, facts: Omit<NodeRecord, 'resourceVersion'>): Promise<void> {
    const version = observation.row(node)?.record?.resourceVersion
    const body = recordBody(node, facts, clock.wall(), version)
    const answer = version === undefined
      ? await api.create<KubeObject>(recordsPath, body)
      : await api.replace<KubeObject>(`${recordsPath}/${node}`, body)
    const current = answer.ok ? answer : await api.get<KubeObject>(`${recordsPath}/${node}`)
    const read = current.ok ? readRecord(current.value) : undefined
    if (read?.ok === true) observation.record(node, read.record)
  }

  function say(node: NodeName, incident: string | undefined, reason: string, action: string, note: string, type: 'Normal' | 'Warning'): void {
    const row = observation.row(node)
    if (row === undefined) return
    const related = incident === undefined ? undefined : observation.seen.incidents.get(incident)
    recorder.say({
      regarding: { apiVersion: 'v1', kind: 'Node', name: node, uid: row.uid }, reason, action, note, type,
      ...(related === undefined ? {} : { related: { apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeFence', name: related.name, uid: related.uid } }),
    })
  }
}

/** The proof once more, before the call leaves: of this node, on this record, and still what the devices say. */
function holds(proof: Proof | undefined, incident: Incident, row: Row, since?: Ms): boolean {
  const recorded = incident.status.proof
  if (proof === undefined || recorded === undefined || recorded.boot !== proof.boot || recorded.nodeUid !== row.uid) return false
  return since === undefined || stillOff(proof, row, since)
}

/** Something of a program runs on and cannot be ended: the order stays under way, nothing follows it. */
function never(): Promise<never> {
  return new Promise(() => undefined)
}
