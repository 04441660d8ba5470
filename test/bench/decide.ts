// What one decision costs at five thousand nodes: the rows are the coordinator's own, so that each field costs what it costs in
// life. All is well and nothing changed, on a new cluster and on one that keeps the incidents of a month; three incidents in
// different states; the first minutes of a new cluster, in which nothing was audited yet; a turn of the audit. Wall time and
// processor time of every tick: on a shared machine they differ by what others do.
import process from 'node:process'
import { createObservation, type Observation } from '../../coordinator/observe.ts'
import { keyOf, type Action } from '../../core/action.ts'
import { outOfServiceKey, ownValue, quarantineKey } from '../../core/clear.ts'
import { decide } from '../../core/decide.ts'
import type { Attempt, Incident, IncidentStatus, ProofRecord } from '../../core/incident.ts'
import type { BeatSeen, Method, Ms, PodSeen, Reading } from '../../core/model.ts'
import { defaultPolicy, type Policy } from '../../core/policy.ts'
import { freshStatus } from '../../core/timeline.ts'
import { machineClock, waitOn, type Clock } from '../../edge/clock.ts'

const nodes = 5_000
const zones = 6
const podsOfNode = 110
/** Incidents that are over. */
const kept = 400
const warmUp = 100
const ticks = 1_000
const tickEvery: Ms = 250
const policy: Policy = { ...defaultPolicy, name: 'all', profile: 'fast', nodeDownPodDeletionPolicy: 'DeleteAllPods' }
const orderedOff: Attempt = {
  id: 'attempt', round: 1, level: 0, method: 'bmc-off', agent: 'redfish', action: 'off', replica: 'replica-0', term: 3, startedAt: 'then', endedAt: 'then',
  within: 30_000, late: 60_000, result: 'off',
}
/** Programs of the audit that run. */
const asked = new Map<Extract<Action, { do: 'askDevice' }>, Ms>()
/** DESIGN §11. */
const limits = { worst: 20, quiet: 3 }

export interface DecideFigures {
  readonly scene: string
  readonly nodes: number
  readonly ticks: number
  readonly medianMs: number
  readonly p99Ms: number
  readonly worstMs: number
  readonly medianCpuMs: number
  readonly worstCpuMs: number
  readonly actionsPerTick: number
}

if (import.meta.main) await bench(process.argv.includes('--json'))

export async function bench(json: boolean): Promise<void> {
  const figures = [
    measure('nothing changed', quiet), measure('the same, incidents kept', history), measure('the same, calm', calm), measure('three incidents', troubled), measure('a new cluster', unaudited),
    measure('a turn of the audit', turn, answer),
  ]
  if (json) {
    console.log(JSON.stringify(figures))
    return
  }
  console.log(`decide() on ${nodes} nodes, ${ticks} ticks each after ${warmUp} of warming up, milliseconds`)
  for (const one of figures) {
    const { scene, medianMs, p99Ms, worstMs, medianCpuMs, worstCpuMs, actionsPerTick } = one
    console.log(`${scene.padEnd(24)} median ${medianMs.toFixed(2)}  p99 ${p99Ms.toFixed(2)}  worst ${worstMs.toFixed(2)}  on the processor: median ${medianCpuMs.toFixed(2)}  worst ${worstCpuMs.toFixed(2)}   ${actionsPerTick.toFixed(1)} actions a tick`)
  }
  console.log(`wanted: worst below ${limits.worst}, below ${limits.quiet} when nothing changed`)
}

interface Scene {
  readonly observation: Observation
  readonly clock: Clock & { at: Ms }
  readonly beats: Map<string, BeatSeen>
  /** Nodes that do not beat any more. */
  readonly dead: Set<string>
}

/** `meanwhile` is what became of the last decision before the next one. */
function measure(scene: string, build: () => Scene, meanwhile: (scene: Scene, wanted: readonly Action[]) => void = () => undefined): DecideFigures {
  const built = build()
  const { observation, clock, beats, dead } = built
  const walls: number[] = []
  const cpus: number[] = []
  let actions = 0
  for (let tick = 0; tick < warmUp + ticks; tick += 1) {
    clock.at += tickEvery
    const { self } = observation.seen
    self.freshAt = clock.at
    self.apiAnsweredAt = clock.at
    // A quarter of the beats of each second come between two ticks.
    let index = tick
    for (const [name, beat] of beats) {
      if ((index += 1) % 4 === 0 && !dead.has(name)) (beat as { at: Ms }).at = clock.at - 10 // the beats server writes here as well
    }
    const cpuBefore = process.cpuUsage()
    const before = machineClock.now()
    const wanted = decide(observation.seen, clock.at, [policy])
    const wall = machineClock.now() - before
    const cpu = process.cpuUsage(cpuBefore)
    meanwhile(built, wanted)
    if (tick < warmUp) continue
    walls.push(wall)
    cpus.push((cpu.user + cpu.system) / 1_000)
    actions += wanted.length
  }
  const sorted = walls.toSorted((one, other) => one - other)
  const medianCpuMs = cpus.toSorted((one, other) => one - other)[Math.floor(ticks / 2)] ?? 0
  return {
    scene, nodes, ticks, medianMs: sorted[Math.floor(ticks / 2)] ?? 0, p99Ms: sorted[Math.floor(ticks * 0.99)] ?? 0, worstMs: sorted.at(-1) ?? 0,
    medianCpuMs, worstCpuMs: Math.max(...cpus), actionsPerTick: actions / ticks,
  }
}

function methodOf(name: string): Method {
  return { name: 'bmc-off', agent: 'redfish', device: `${name}-bmc:443`, digest: 'd1', orderWithin: 30_000, statusWithin: 10_000, late: 60_000 }
}

function bootOf(name: string): string {
  return `${name}-boot/1`
}

function quiet(): Scene {
  const scene = cluster()
  for (const row of scene.observation.seen.nodes.values()) audit(scene, row.name)
  return scene
}

/** Some hundred incidents that are over: most have given back all they cut, of a few the machine ran again by itself. */
function history(): Scene {
  const scene = quiet()
  for (let index = 0; index < kept; index += 1) {
    const name = `node-${index * 10}`
    const { uid = '' } = scene.observation.row(name) ?? {}
    const on: Attempt = { ...orderedOff, id: 'on', action: 'on', result: 'on' }
    const status: Partial<IncidentStatus> = { phase: 'Final', outcome: 'Recovered', attempts: index % 10 === 0 ? [orderedOff] : [orderedOff, on], proof: proofOf(uid, name) }
    scene.observation.incident({ ...incidentOf(name, uid, status), boot: `${name}-past/1` })
  }
  return scene
}

/** Three ticks of four, where nothing happens (coordinator/loop.ts). */
function calm(): Scene {
  const scene = history()
  scene.observation.seen.self.calm = true
  return scene
}

/** It has begun just now: every path is to be asked once more. */
function turn(): Scene {
  const scene = history()
  scene.observation.seen.self.turnAt = scene.clock.at
  return scene
}

/** Two programs a second, each as long as a second; a port answers at once. */
function answer({ observation, clock }: Scene, wanted: readonly Action[]): void {
  const { self } = observation.seen
  self.auditBudget = Math.min(30, self.auditBudget + 0.5)
  for (const [action, at] of asked) {
    if (clock.at - at < 1_000) continue
    asked.delete(action)
    observation.row(action.node)?.busy.delete(keyOf(action))
    observation.read(action.node, { method: action.method.name, state: 'on', startedAt: at, endedAt: clock.at, evidence: 'on', digest: action.method.digest, machine: `machine-${action.node}` })
  }
  for (const action of wanted) {
    if (action.do === 'probe') observation.probed(action.node, { askedAt: clock.at, answeredAt: clock.at, word: 'answered' })
    if (action.do !== 'askDevice' || self.auditBudget < 1) continue
    self.auditBudget -= 1
    asked.set(action, clock.at)
    observation.row(action.node)?.busy.add(keyOf(action))
  }
}

/** One is being proven, one has its pods freed, one boots again. */
function troubled(): Scene {
  const scene = quiet()
  const { observation, clock, dead, beats } = scene
  for (const [index, name] of ['node-10', 'node-2000', 'node-4000'].entries()) {
    dead.add(name)
    const row = observation.row(name)
    const beat = beats.get(name)
    if (row === undefined || beat === undefined) continue
    ;(beat as { at: Ms }).at = clock.at - 10_000
    const off = (ago: Ms): Reading => ({ method: 'bmc-off', state: 'off', startedAt: clock.at - ago - 100, endedAt: clock.at - ago, evidence: 'off', digest: 'd1' })
    observation.read(name, off(1_500))
    observation.read(name, off(100))
    observation.probed(name, { askedAt: clock.at - 1_400, answeredAt: clock.at - 600, word: 'silent' })
    observation.witnessed(name, ['node-1', 'node-2'].map((witness) => ({ witness, kind: 'agent', askedAt: clock.at - 1_400, answeredAt: clock.at - 1_000, word: 'deaf', proven: false })))
    const status = [ordered(), { ...ordered(), step: 'clear', proof: proofOf(row.uid, name) }, { ...ordered(), step: 'recovery', proof: proofOf(row.uid, name) }][index]
    if (status === undefined) continue
    observation.incident(incidentOf(name, row.uid, status as Partial<IncidentStatus>)) // one of the three above
    if (index > 0) row.taints = [{ key: quarantineKey, effect: 'NoSchedule' }, ...(index === 1 ? [{ key: outOfServiceKey, value: ownValue, effect: 'NoSchedule' } as const] : [])]
    const items = Array.from({ length: podsOfNode }, (_, nth) => podOf(`${name}-${nth}`))
    // Its list stays fresh for as long as the scene lasts, so that each tick sorts its pods.
    observation.listed(name, { askedAt: clock.at + 10_000_000, listedAt: clock.at + 10_000_000, items })
  }
  return scene
}

/** The product is new: no record, nothing asked, everything wants to be audited. */
function unaudited(): Scene {
  return cluster()
}

function cluster(): Scene {
  const beats = new Map<string, BeatSeen>()
  const clock: Clock & { at: Ms } = {
    at: 1_000_000, now: () => clock.at, wall: () => clock.at, wait: (span, signal) => waitOn(clock, span, signal), after: () => () => undefined,
  }
  const observation = createObservation(clock, 'replica-0', { heard: (name) => beats.get(name), forget: (name) => void beats.delete(name) })
  const { self } = observation.seen
  self.term = 3
  self.awakeSince = 0
  self.replicas = ['replica-1', 'replica-2']
  self.podBudget = 150
  self.auditBudget = 30
  self.recordBudget = 60
  for (let index = 0; index < nodes; index += 1) {
    const name = `node-${index}`
    observation.path(name, { levels: [[methodOf(name)]], faults: [] })
    observation.node({
      metadata: { name, uid: `uid-${name}`, resourceVersion: '1', labels: { 'topology.kubernetes.io/zone': `zone-${index % zones}`, 'kubernetes.io/hostname': name } },
      taints: [], inUse: [], address: '10.0.0.1', kubeletPort: 10_250, bootId: `${name}-boot`, machine: `machine-${name}`, ready: { status: 'True', heartbeat: 'then' },
    })
    beats.set(name, { boot: bootOf(name), since: 500_000, at: clock.at - (index % 1_000), kubelet: 'ok' })
  }
  return { observation, clock, beats, dead: new Set() }
}

function audit({ observation, clock }: Scene, name: string): void {
  const boot = bootOf(name)
  observation.record(name, {
    resourceVersion: '1', nodeUid: `uid-${name}`, boot, machine: `machine-${name}`, probe: { boot, answered: true, at: 'then' },
    paths: [{ method: 'bmc-off', digest: 'd1', boot, state: 'verified', identity: 'proven', at: 'then', evidence: 'on' }],
  })
  observation.probed(name, { askedAt: clock.at - 60_000, answeredAt: clock.at - 59_990, word: 'answered' })
  observation.read(name, { method: 'bmc-off', state: 'on', startedAt: clock.at - 60_000, endedAt: clock.at - 59_900, evidence: 'on', digest: 'd1', machine: `machine-${name}` })
}

function ordered(): Partial<IncidentStatus> {
  return { phase: 'Running', step: 'power-management', attempts: [orderedOff] }
}

function proofOf(nodeUid: string, name: string): ProofRecord {
  return { kind: 'off', at: 'then', boot: bootOf(name), nodeUid, level: 0, methods: ['bmc-off'], digests: ['d1'], evidence: [] }
}

function incidentOf(nodeName: string, nodeUid: string, status: Partial<IncidentStatus>): Incident {
  return {
    name: `${nodeName}-x-1`, uid: `uid-${nodeName}-x-1`, resourceVersion: '1', nodeName, nodeUid, boot: bootOf(nodeName), machine: `machine-${nodeName}`, cause: 'silence',
    policy, abort: false, status: { ...freshStatus(3), ...status },
  }
}

function podOf(name: string): PodSeen {
  return { namespace: 'default', name, uid: `uid-${name}`, resourceVersion: '1', owner: 'ReplicaSet', priority: 0, terminating: false, phase: 'Running', finalizers: [], volumes: [], grace: 30_000, ended: false, toleratesEviction: false }
}
