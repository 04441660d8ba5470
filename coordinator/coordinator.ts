// One replica, put together: what it hears (beats), what it watches (reflectors), whether it leads (elector), and the loop
// that decides and acts. Followers do all but act, so that a new leader is warm.
import type { Action, HoldAction } from '../core/action.ts'
import { addressesOf } from '../core/address.ts'
import type { Incident, IncidentStatus } from '../core/incident.ts'
import { sameBoot, type Ms, type NodeName, type Observed } from '../core/model.ts'
import { isPauseOver, type Pause, type Policy } from '../core/policy.ts'
import { agentCatalogue, noCatalogue } from './agent-catalogue.ts'
import { createApi, type Api, type CallOptions, type KubeObject } from './api.ts'
import { auditRate, auditTurns, type AuditTurn } from './audit-turns.ts'
import { serveBeats, type Beats } from './beats.ts'
import { doer } from './deed.ts'
import { drillTurns, type DrillTurnEnd } from './drill-turns.ts'
import { gatherDumpWords } from './dump-words.ts'
import { recorder as createRecorder } from './events.ts'
import { faultNote } from './fault-note.ts'
import { fencesKept } from './fence-kept.ts'
import { fencePaths } from './fence-paths.ts'
import { fenceRunner } from './fence.ts'
import { tellGates } from './gates.ts'
import { holdKeeper } from './hold.ts'
import type { CoordinatorHost } from './host.ts'
import { incidentWriter, takeIncident } from './incident.ts'
import { keepAttachment, keepNode, paths, saysMore, wordsOf } from './kubernetes.ts'
import { elect } from './lease.ts'
import { looker } from './look.ts'
import { runLoop, type Loop } from './loop.ts'
import { answerWord } from './measures.ts'
import { fencesPath } from './node-fence.ts'
import { readRecord, recordsPath } from './node-record.ts'
import { remediesPath } from './node-remedy.ts'
import { createObservation } from './observe.ts'
import { podRate } from './pod-rate.ts'
import { recordRate } from './record-write.ts'
import { keepPolicies, readPause } from './policies.ts'
import { pruner } from './pruning.ts'
import { policiesPath } from './holdfast-policy.ts'
import { reflect, type Reflector } from './reflector.ts'
import { keepRemedies } from './remedies.ts'
import { knowsMaintenance, watchServerVersion } from './server-version.ts'
import { selfStopTeller } from './self-stop.ts'

export interface CoordinatorSettings {
  /** Where the Lease, the fence ConfigMaps and their Secrets are. */
  readonly namespace: string
  readonly agentNamespace: string
  /** Of this process: a pod that returns under its name is another. */
  readonly identity: string
  /** Keys the digests of fence methods; known to the replicas only. */
  readonly salt: string
  token(): Promise<string | undefined>
  /** Addresses of all replicas as they become known; called with this one's own once it listens. */
  replicas(own: string, changed: (addresses: readonly string[]) => void): () => void
  /** For the metrics: how long a decision took, and what became of each request. */
  decided?(span: Ms): void
  requested?(verb: string, answer: string, span: Ms): void
  /** And what each write has made of an incident; `silence`: how long its boot was not heard by then, where this replica ever heard it. */
  wrote?(before: Incident, after: IncidentStatus, silence: Ms | undefined): void
}

export interface Coordinator {
  readonly address: string
  readonly seen: Observed
  readonly beats: Beats
  leads(): number | undefined
  policies(): readonly Policy[]
  holds(): readonly HoldAction[]
  /** Every watch has been read once. */
  ready(): boolean
  freshAt(): Ms
  /** Something is under way whose end is waited for. */
  hurries(): boolean
  /** What the core wanted last, for people. */
  wanted(): readonly Action[]
  /** Deletes what need not be kept, if this replica leads; the answer is how much that was. */
  prune(): Promise<number>
  /** Begins a turn of the audit, if this replica leads and none goes on. `period`: until the next one is to begin. */
  auditAll(period: Ms): boolean
  /** The latest turn that came to its end, while this replica leads. */
  audited(): AuditTurn | undefined
  /** A drill is due by this policy, if it asks for drills and this replica leads. */
  drillSpare(policy: string): boolean
  /** What came of the latest hour of each policy that asks for drills, while this replica leads. */
  drilled(): readonly DrillTurnEnd[]
  stop(): Promise<void>
}

/** Quiet collections that a decision leans on are proven fresh in so many seconds, by short watches. */
const freshWithin: Ms = 6_000
const agentPods = { labelSelector: 'app.kubernetes.io/name=holdfast-agent' }
const pauseName = 'holdfast-pause'
const safeDetachAnnotation = 'holdfast.dev/safe-detach'

export async function startCoordinator(host: CoordinatorHost, settings: CoordinatorSettings): Promise<Coordinator> {
  const { clock, log, transport } = host
  const { namespace, identity } = settings
  let observe: ReturnType<typeof createObservation> | undefined
  const onAnswer = (at: Ms): void => {
    if (observe !== undefined) observe.seen.self.apiAnsweredAt = Math.max(observe.seen.self.apiAnsweredAt, at)
  }
  const observed = (verb: string, status: number, span: Ms): void => settings.requested?.(verb, answerWord(status), span)
  const stopping = new AbortController()
  const api = createApi({ transport, clock, onAnswer, observe: observed, rate: { perSecond: 100, burst: 200 }, userAgent: 'holdfast-coordinator' })
  const endingApi = endingWith(api, stopping.signal)
  // Token reviews come by the thousand when a replica starts; they must neither starve deeds nor be starved by them.
  const reviewApi = endingWith(createApi({ transport, clock, rate: { perSecond: 300, burst: 300 }, userAgent: 'holdfast-coordinator' }), stopping.signal)
  const leaseApi = createApi({ transport, clock, onAnswer, userAgent: 'holdfast-coordinator' })

  let loop: Loop | undefined
  const wake = (): void => loop?.wake()
  const beats = serveBeats({ host, api: reviewApi, replica: identity, namespace: settings.agentNamespace, replicaNamespace: namespace, token: settings.token, changed: wake, addressOf: (node) => observation.row(node)?.address })
  // Before anything is under way: a port that is taken is a bad start, and must leave nothing behind.
  const listener = await host.listen(beats.accept).catch((error: unknown) => {
    beats.close()
    throw error
  })
  const observation = createObservation(clock, identity, beats)
  observe = observation
  const { self } = observation.seen
  let paused: Pause | undefined
  let leadership = new AbortController()

  const elector = elect({
    api: leaseApi, clock, chance: host.chance, identity, namespace, name: 'holdfast-coordinator', log,
    highestTerm: observation.highestTerm, note: () => ({ ...turns.note(), ...drills.note() }),
    gained(term) {
      leadership = new AbortController()
      turns.led(elector.annotations())
      drills.led(elector.annotations())
      self.ledSince = clock.now()
      beats.setLeading(true)
      void watchServerVersion(endingApi, clock, leadership.signal, (version) => { self.knowsMaintenance = knowsMaintenance(version) })
      log.info({ term }, 'this replica leads')
      wake()
    },
    lost(reason) {
      leadership.abort(new Error(reason))
      turns.lost()
      drills.lost()
      beats.setLeading(false)
      log.warn({ reason }, 'this replica leads no more')
    },
  })
  const leads = (): number | undefined => elector.leads()
  const turns = auditTurns({ clock, log, observation, leads })
  const recorder = createRecorder({ api, clock, log, identity })
  const policies = keepPolicies({
    api: endingApi, clock, log, recorder, leads,
    changed() {
      fences.policies(policies.inForce())
      wake()
    },
  })
  const drills = drillTurns({ clock, log, observation, leads, policies: policies.inForce })
  const catalogue = host.describe === undefined ? noCatalogue : agentCatalogue({ log, describe: (agent) => host.describe?.(agent) ?? Promise.resolve(undefined), learned: () => fences.learned() })
  const fences = fencePaths({
    catalogue, clock, log, salt: settings.salt, nodes: () => observation.seen.nodes.keys(),
    changed: (node, config) => {
      observation.path(node, config.path)
      wake()
    },
    leads, kept: fencesKept({ api: endingApi, clock, log, namespace }), ready: () => ready(),
    faults(sentences, map, holds) {
      recorder.say({
        regarding: { apiVersion: 'v1', kind: 'ConfigMap', name: map, namespace, uid: '' }, reason: 'FenceConfigInvalid', action: 'Read',
        note: faultNote(holds, sentences), type: 'Warning',
      })
    },
  })
  const reflectors = startReflectors()
  // A cluster whose kinds are older has none of these, and nothing waits for them.
  const remedyObjects = reflect({
    api, clock, chance: host.chance, log, path: remediesPath,
    changed: ({ type, object }) => (type === 'deleted' ? remedies.gone(object.metadata.name) : remedies.seen(object)),
  })
  const remedies = keepRemedies({ log, observation, recorder, leads, ready: () => remedyObjects.synced })
  const incidents = incidentWriter({ api, observation, log, leads, signal: () => leadership.signal, wrote: (before, after) => settings.wrote?.(before, after, silenceOf(before)) })
  const runner = fenceRunner({ programs: host.programs, clock, secrets: fences.secrets, log })
  const rate = podRate(clock)
  const audits = auditRate(clock)
  const recordsRate = recordRate(clock)
  const holds = holdKeeper({ clock, log, observation, incidents, recorder, leads })
  const selfStop = selfStopTeller({ observation, beats, now: clock.now, log, recorder })
  let wanted: readonly Action[] = []

  loop = runLoop({
    clock, log, observation, policies: policies.inForce, drained: beats.drained,
    look: looker({ api: endingApi, beats, fences, runner, audits, host, observation, log, stopping: stopping.signal }),
    deed: doer({ api, host, observation, incidents, fences, runner, recorder, rate, records: recordsRate, log, replica: identity, policies: policies.inForce, leads, signal: () => leadership.signal, drained: beats.drained }),
    holds: holds.now, refresh,
    decided: (span, actions) => {
      wanted = actions
      if (self.calm !== true) {
        tellGates(observation, beats, policies.inForce(), clock.now())
        selfStop.now(policies.inForce())
        remedies.now(clock.now())
      }
      turns.now()
      drills.now()
      settings.decided?.(span)
    },
  })

  const ready = (): boolean => reflectors.every((reflector) => reflector.synced)
  // Others may hold the port; whoever needs it is told, and nothing else waits for it.
  const words = gatherDumpWords(clock, (all) => {
    if (observation.dumped(all)) wake()
  })
  const kdump = await host.kdump?.(words.from).catch((error: unknown) => void log.error({ error: String(error) }, 'nobody hears crash kernels here'))
  const stopReplicas = settings.replicas(listener.address, beats.setReplicas)

  return {
    address: listener.address, seen: observation.seen, beats, leads, policies: policies.inForce, holds: holds.standing,
    ready, prune: pruner({ api: endingApi, clock, log, observation, leads, ready }),
    freshAt, hurries: () => loop?.hurries() === true, wanted: () => wanted, auditAll: turns.begin, audited: turns.last, drillSpare: drills.begin, drilled: drills.last,
    async stop() {
      loop?.stop()
      fences.stop()
      leadership.abort(new Error('this replica stops'))
      stopping.abort(new Error('this replica stops'))
      stopReplicas()
      for (const reflector of reflectors) reflector.stop()
      remedyObjects.stop()
      await elector.stop()
      beats.close()
      await recorder.close()
      await kdump?.close()
      words.stop()
      await listener.close()
    },
  }

  function refresh(): void {
    const term = elector.leads()
    self.term = term
    self.freshAt = freshAt()
    self.replicas = beats.replicas()
    self.podBudget = rate.available()
    self.auditBudget = audits.available()
    self.recordBudget = recordsRate.available()
    self.pause = paused !== undefined && isPauseOver(paused, clock.wall()) ? undefined : paused
    if (term === undefined) return
    policies.settle()
    fences.settle()
  }

  function silenceOf({ nodeName, boot }: Incident): Ms | undefined {
    const beat = observation.row(nodeName)?.beat
    return beat === undefined || !sameBoot(beat.boot, boot) ? undefined : clock.now() - beat.at
  }

  function tellAddresses(node: NodeName): void {
    const row = observation.row(node)
    fences.recorded(node, (row && addressesOf(row)) ?? [])
  }

  /** Whoever has not read the records once takes every boot for one that he has never heard of. */
  function freshAt(): Ms {
    const [nodes, fenceObjects, attachments, records] = reflectors
    if (records?.synced !== true) return -Infinity
    return Math.min(nodes?.freshAt() ?? -Infinity, fenceObjects?.freshAt() ?? -Infinity, attachments?.freshAt() ?? -Infinity)
  }

  /** The first three are those that blindness is judged by, and the fourth until it was read once. */
  function startReflectors(): Reflector<KubeObject>[] {
    const common = { api, clock, chance: host.chance, log }
    const nodes = reflect({
      ...common, path: paths.nodes, project: keepNode, freshWithin,
      changed({ type, object, previous }) {
        if (type === 'deleted') observation.nodeGone(object.metadata.name)
        else observation.node(object)
        if (type === 'deleted') fences.nodeGone(object.metadata.name)
        else fences.nodeSeen(object.metadata.name, object.providerID ?? '', wordsOf(object))
        tellAddresses(object.metadata.name)
        if (type !== 'modified' || previous === undefined || saysMore(object, previous)) wake()
      },
    })
    const fenceObjects = reflect({
      ...common, path: fencesPath, freshWithin,
      changed({ type, object }) {
        if (type === 'deleted') observation.incidentGone(object.metadata.name)
        else takeIncident(object, observation, log, 'watch')
        wake()
      },
    })
    const attachments = reflect({
      ...common, path: paths.attachments, project: keepAttachment, freshWithin,
      changed({ type, object }) {
        if (type === 'deleted') observation.attachmentGone(object)
        else observation.attachment(object)
        wake()
      },
    })
    const drivers = reflect({
      ...common, path: paths.drivers,
      changed({ type, object: { metadata } }) {
        const others = self.safeDrivers.filter((name) => name !== metadata.name)
        self.safeDrivers = type !== 'deleted' && metadata.annotations?.[safeDetachAnnotation] === 'true' ? [...others, metadata.name] : others
        wake()
      },
    })
    const records = reflect({
      ...common, path: recordsPath,
      changed({ type, object }) {
        const read = type === 'deleted' ? undefined : readRecord(object)
        observation.record(object.metadata.name, read?.ok === true ? read.record : undefined)
        tellAddresses(object.metadata.name)
      },
    })
    const policyObjects = reflect({
      ...common, path: policiesPath,
      changed: ({ type, object }) => (type === 'deleted' ? policies.gone(object.metadata.name) : policies.seen(object)),
    })
    const configMaps = reflect({
      ...common, path: paths.configMaps(namespace),
      changed({ type, object }) {
        if (object.metadata.name === pauseName) paused = type === 'deleted' ? undefined : readPause(object)
        if (type === 'deleted') fences.configMapGone(object.metadata.name)
        else fences.configMap(object)
      },
    })
    const secrets = reflect({
      ...common, path: paths.secrets(namespace), query: { labelSelector: 'holdfast.dev/fence-secret' },
      changed: ({ type, object }) => (type === 'deleted' ? fences.secretGone(object.metadata.name) : fences.secret(object)),
    })
    const pods = reflect({
      ...common, path: paths.podsIn(settings.agentNamespace), query: agentPods, project: ({ metadata: { name, namespace: where, uid, resourceVersion } }): KubeObject => ({
        metadata: { name, ...(where === undefined ? {} : { namespace: where }), ...(uid === undefined ? {} : { uid }), ...(resourceVersion === undefined ? {} : { resourceVersion }) },
      }),
      changed({ type, object }) {
        if (type === 'deleted' && object.metadata.uid !== undefined) beats.drop(object.metadata.uid)
      },
    })
    // Their items differ; what is asked of them here (synced, freshAt, stop) does not.
    return [nodes, fenceObjects, attachments, drivers, records, policyObjects, configMaps, secrets, pods] as unknown as Reflector<KubeObject>[]
  }
}

/** Its calls are given up when the signal aborts, so that a replica that has stopped leaves nothing under way. */
function endingWith(api: Api, signal: AbortSignal): Api {
  const how = (wanted?: CallOptions): CallOptions => ({ ...wanted, signal: wanted?.signal ?? signal })
  return {
    ...api,
    get: (path, wanted) => api.get(path, how(wanted)),
    create: (path, body, wanted) => api.create(path, body, how(wanted)),
    replace: (path, body, wanted) => api.replace(path, body, how(wanted)),
  }
}

