// A small world for the coordinator's edges: the in-memory API server with one node, its pods and one NodeFence in it, what a replica
// has observed of them, and everything else in the test's hands: the lease, the devices, the beats, the clock.
import * as assert from 'uvu/assert'
import { createApi, type Api, type KubeObject } from '../../coordinator/api.ts'
import { doer } from '../../coordinator/deed.ts'
import type { Occasion } from '../../coordinator/events.ts'
import type { ConfiguredMethod } from '../../coordinator/fence-config.ts'
import type { MethodEnd, MethodRun } from '../../coordinator/fence.ts'
import { incidentWriter, type IncidentWriter } from '../../coordinator/incident.ts'
import { keepNode } from '../../coordinator/kubernetes.ts'
import { fencesPath, incidentBody, readIncident, statusBody } from '../../coordinator/node-fence.ts'
import { readRecord, recordBody } from '../../coordinator/node-record.ts'
import { createObservation, type Observation } from '../../coordinator/observe.ts'
import { podRate } from '../../coordinator/pod-rate.ts'
import { recordRate } from '../../coordinator/record-write.ts'
import type { ApiRequest } from '../../coordinator/transport.ts'
import type { Deed } from '../../core/action.ts'
import type { Incident, IncidentStatus } from '../../core/incident.ts'
import type { BeatSeen, Ms, NodeRecord, PodSeen, Reading } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { customResourceDefinitions } from '../../deploy/crd.ts'
import { silentLog, type Log } from '../../edge/log.ts'
import { admin, createApiServer, type ApiServer } from '../../sim/api-server/server.ts'
import { seededChance } from '../../sim/chance.ts'
import { virtualClock, type VirtualClock } from '../../sim/clock.ts'
import { boot, method, policy } from '../core/world.ts'

export const victim = 'node-2'
export const fence = 'node-2-abc-1'

export interface EdgeWorld {
  readonly clock: VirtualClock
  readonly server: ApiServer
  readonly api: Api
  readonly observation: Observation
  readonly incidents: IncidentWriter
  readonly beats: Map<string, BeatSeen>
  /** What writes have made of incidents: how much was told before, and what is told last. */
  readonly wrote: readonly string[]
  /** Writes that left this replica, oldest first: method, path and body. */
  readonly writes: Write[]
  /** What happened, in order: writes by path, programs by `run ACTION`. */
  readonly story: string[]
  readonly said: Occasion[]
  readonly logged: { level: string; facts: object; message: string }[]
  readonly runs: MethodRun[]
  /** The term, while this replica leads. */
  term: number | undefined
  lease: AbortController
  policies: readonly Policy[]
  /** Called with each request before it reaches the server. */
  asked: (request: ApiRequest) => void
  /** Reads what has arrived by now. */
  drained: () => Promise<void>
  /** What becomes of a run. */
  runMethod: (run: MethodRun) => Promise<Partial<MethodEnd>>
  do(deed: Deed): Promise<boolean>
  /** Puts a Node there and lets the watch bring it. */
  plantNode(name?: string, changes?: object): KubeObject
  plantPod(name: string, changes?: object): PodSeen
  /** Puts the NodeFence there with this status, and lets the watch bring it. */
  plantFence(status?: Partial<IncidentStatus>, changes?: Partial<Incident>): Promise<Incident>
  /** As it stands on the server. */
  stored(): Incident
  /** What the node's device said; by default just now. */
  read(state: Reading['state'], at?: Ms): void
  /** A NodeRecord as another one left it there; the watch has brought it. */
  plantRecord(record: NodeRecord): void
  record(): NodeRecord | undefined
  pods(): readonly KubeObject[]
  taints(name?: string): readonly string[]
}

export interface Write {
  readonly method: string
  readonly path: string
  readonly body: unknown
}

export const configured: ConfiguredMethod = { ...method, parameters: {}, on: {} } as unknown as ConfiguredMethod // only a runner looks into the parameters

/** Waits for a promise of a world whose clock must turn for it. */
export async function turned<T>(clock: VirtualClock, promise: Promise<T>, within: Ms = 120_000): Promise<T> {
  let over = false
  promise.then(() => { over = true }, () => { over = true })
  if (!await clock.runWhen(() => over, within)) throw new Error(`no answer within ${within} ms of the world`)
  return promise
}

export function edgeWorld(): EdgeWorld {
  const clock = virtualClock(100_000)
  const chance = seededChance(1)
  const server = createApiServer({ clock, chance: () => chance.next() })
  for (const definition of customResourceDefinitions()) server.plant(definition as unknown as KubeObject) // as a person would apply it
  server.plant({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'work' } })
  const beats = new Map<string, BeatSeen>()
  const observation = createObservation(clock, 'replica-0', { heard: (name) => beats.get(name), forget: (name) => void beats.delete(name) })
  const writes: Write[] = []
  const story: string[] = []
  const said: Occasion[] = []
  const logged: EdgeWorld['logged'] = []
  const runs: MethodRun[] = []
  const at = (level: string) => (facts: object, message: string) => void logged.push({ level, facts, message })
  const log: Log = { ...silentLog, info: at('info'), warn: at('warn'), error: at('error') }
  const inner = server.transportFor({ ...admin, name: 'system:serviceaccount:holdfast-system:holdfast-coordinator' })
  const api = createApi({
    clock, rate: { perSecond: 1_000, burst: 1_000 },
    transport: (request, signal) => {
      world.asked(request)
      if (request.method !== 'GET') {
        writes.push({ method: request.method, path: request.path, body: request.body === undefined ? undefined : JSON.parse(request.body) })
        story.push(`${request.method} ${request.path.split('/').slice(-2).join('/')}`)
      }
      return inner(request, signal)
    },
  })
  const leads = (): number | undefined => world.term
  const signal = (): AbortSignal => world.lease.signal
  const recorded: string[] = []
  const incidents = incidentWriter({ api, observation, log, leads, signal, wrote: (before, after) => void recorded.push(`${before.name}: ${before.status.timeline.length} moments, then ${after.timeline.at(-1)?.what}`) })
  const rate = podRate(clock)
  const records = recordRate(clock)
  const deed = doer({
    api, host: { clock }, observation, incidents, rate, records, log, replica: 'replica-0', policies: () => world.policies, leads, signal, drained: () => world.drained(),
    fences: { method: (_node, wanted) => (wanted.digest === configured.digest ? { ...configured, ...wanted } : undefined) },
    recorder: { say: (occasion) => said.push(occasion), close: async () => undefined },
    runner: {
      async runMethod(run) {
        runs.push(run)
        story.push(`run ${run.action}`)
        const startedAt = clock.now()
        const end = await world.runMethod(run)
        return { state: run.action === 'on' ? 'on' : 'off', reason: '', evidence: '', startedAt, endedAt: clock.now(), ran: true, gone: true, gaveWay: false, ...end }
      },
    },
  })
  const world: EdgeWorld = {
    clock, server, api, observation, incidents, wrote: recorded, beats, writes, story, said, logged, runs, term: 3, lease: new AbortController(), policies: [],
    asked: () => undefined,
    drained: async () => undefined,
    runMethod: async () => ({}),
    do: deed,
    plantNode(name = victim, changes = {}) {
      const planted = server.plant({
        apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { 'topology.kubernetes.io/zone': 'a' } }, spec: {},
        status: {
          addresses: [{ type: 'InternalIP', address: '10.0.0.2' }], nodeInfo: { bootID: 'boot-1', systemUUID: 'machine-2' },
          conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: '2026-01-01T00:00:00Z' }],
        }, ...changes,
      } as unknown as KubeObject) // a Node is more than the common type tells
      observation.node(keepNode(planted))
      observation.path(name, { levels: [[method]], faults: [] })
      return planted
    },
    plantPod(name, changes = {}) {
      const { metadata } = server.plant({
        apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'work' }, spec: { nodeName: victim, containers: [{ name: 'c', image: 'i' }] }, status: { phase: 'Running' }, ...changes,
      } as unknown as KubeObject) // likewise
      return {
        namespace: 'work', name, uid: metadata.uid ?? '', resourceVersion: metadata.resourceVersion ?? '', owner: 'none', priority: 0, terminating: false,
        phase: (changes as { status?: { phase: string } }).status?.phase ?? 'Running', finalizers: [], volumes: [], grace: 0, ended: true, toleratesEviction: false,
      }
    },
    async plantFence(status = {}, changes = {}) {
      const nodeUid = observation.row(victim)?.uid ?? ''
      const draft = { name: fence, nodeName: victim, nodeUid, boot, machine: 'machine-2', cause: 'silence', policy, ...changes } as const
      const person = createApi({ clock, transport: server.transportFor(admin) })
      const made = await person.create<KubeObject>(fencesPath, incidentBody(draft))
      if (!made.ok) throw new Error(made.error.message)
      const { uid = '', resourceVersion = '' } = made.value.metadata
      const fresh: IncidentStatus = { phase: 'New', step: 'none', level: 0, round: 1, term: 3, attempts: [], voided: [], pods: [], volumes: [], holds: [], timeline: [], ...status }
      const body = statusBody(fence, resourceVersion, uid, fresh)
      const written = await person.replace<KubeObject>(`${fencesPath}/${fence}/status`, body)
      if (!written.ok) throw new Error(written.error.message)
      const incident = world.stored()
      observation.incident(incident)
      return incident
    },
    stored() {
      const object = server.peek('nodefences.holdfast.dev').find((one) => one.metadata.name === fence)
      const read = object === undefined ? undefined : readIncident(object)
      if (read?.ok !== true) throw new Error(`no NodeFence ${fence} that can be read`)
      return read.incident
    },
    read(state, when = clock.now()) {
      observation.read(victim, { method: method.name, state, startedAt: when - 50, endedAt: when, evidence: state, digest: method.digest })
    },
    plantRecord(record) {
      const planted = server.plant(recordBody(victim, record, 0) as KubeObject) // a body of ours
      observation.record(victim, { ...record, resourceVersion: planted.metadata.resourceVersion ?? '' })
    },
    record() {
      const object = server.peek('noderecords.holdfast.dev')[0]
      const read = object === undefined ? undefined : readRecord(object)
      return read?.ok === true ? read.record : undefined
    },
    pods: () => server.peek('pods'),
    taints: (name = victim) => {
      const node = server.peek('nodes').find((one) => one.metadata.name === name) as (KubeObject & { spec?: { taints?: { key: string }[] } }) | undefined // a Node has them
      return (node?.spec?.taints ?? []).map((taint) => taint.key)
    },
  }
  return world
}

type Schema = { properties?: Record<string, Schema>; items?: Schema }

/** The kinds become as they were before these fields, each by its path. */
export async function older({ clock, server }: EdgeWorld, plural: string, fields: readonly string[]): Promise<void> {
  const definition = structuredClone(customResourceDefinitions().find(({ metadata }) => metadata.name.startsWith(plural))) as unknown as { metadata: { name: string }; spec: { versions: { schema: { openAPIV3Schema: Schema } }[] } } // what a person applies
  for (const field of fields) {
    let at: Schema | undefined = definition.spec.versions[0]?.schema.openAPIV3Schema
    const parts = field.split('.')
    for (const part of parts.slice(0, -1)) at = part === '[]' ? at?.items : at?.properties?.[part]
    const { properties } = at ?? {}
    assert.ok(properties !== undefined && delete properties[parts.at(-1) ?? ''], field)
  }
  const person = createApi({ clock, transport: server.transportFor(admin) })
  const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${definition.metadata.name}`
  assert.ok((await turned(clock, person.patch(path, 'merge', { spec: definition.spec }))).ok)
}
