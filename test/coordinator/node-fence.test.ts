import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { fencesPath, incidentBody, readIncident, statusBody, type IncidentDraft } from '../../coordinator/node-fence.ts'
import { limits } from '../../coordinator/node-fence-status.ts'
import type { Attempt, IncidentStatus, Moment, ProofRecord } from '../../core/incident.ts'
import { defaultPolicy } from '../../core/policy.ts'
import { freshStatus } from '../../core/timeline.ts'

const test = suite('node-fence')

const at = '2026-01-31T12:00:00.000Z'
const later = '2026-01-31T12:00:09.000Z'
const draft: IncidentDraft = {
  name: 'node-1-abc', nodeName: 'node-1', nodeUid: 'u1', boot: 'b/1', machine: 'm', cause: 'silence',
  policy: { ...defaultPolicy, name: 'usual', nodeLabels: { rack: 'r4' }, restAfter: 90_000 },
}
const proof: ProofRecord = {
  kind: 'off', at: later, boot: 'b/1', nodeUid: 'u1', level: 0, methods: ['bmc'], evidence: [{ source: 'status bmc', word: 'off', at: later }],
}
const attempt: Attempt = {
  id: 'a1', round: 1, level: 0, method: 'bmc', agent: 'redfish', action: 'off', replica: 'r1', term: 4, startedAt: at, within: 40_000, late: 60_000, result: 'running',
}
const opened: Moment = { at, what: 'opened', detail: 'silence' }

/** As the API server would hand it back. */
function object(status?: IncidentStatus, change: object = {}): KubeObject {
  const made = Object(incidentBody(draft))
  const reached = status === undefined ? {} : { status: Object(statusBody(draft.name, '8', 'uid-1', status)).status }
  return JSON.parse(JSON.stringify({ ...made, metadata: { ...made.metadata, uid: 'uid-1', resourceVersion: '8' }, ...reached, ...change }))
}

function written(status: IncidentStatus): IncidentStatus {
  const read = readIncident(object(status))
  if (!read.ok) throw new Error(JSON.stringify(read.faults))
  return read.incident.status
}

const status = (change: Partial<IncidentStatus> = {}): IncidentStatus => ({ ...freshStatus(4), timeline: [opened], ...change })

test('a fresh NodeFence reads as an incident that has not begun, with its policy by value', () => {
  const read = readIncident(object())
  assert.equal(read, { ok: true, incident: { ...draft, uid: 'uid-1', resourceVersion: '8', abort: false, status: freshStatus(0) } })
  assert.is(fencesPath, '/apis/holdfast.dev/v1alpha1/nodefences')
})

test('a person names the node, and nothing else: it reads as incomplete until the rest stands on its status', () => {
  const bare = { apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeFence', metadata: { name: 'by-hand', uid: 'uid-1', resourceVersion: '8' }, spec: { nodeName: 'node-1' } }
  const read = (more: object = {}) => {
    const got = readIncident(JSON.parse(JSON.stringify({ ...bare, ...more })))
    if (!got.ok) throw new Error(JSON.stringify(got.faults))
    return got.incident
  }
  const first = read()
  assert.equal([first.incomplete, first.cause, first.boot, first.policy.nodeDownPodDeletionPolicy], [true, 'by-hand', '', 'DoNothing'])
  const { nodeUid, boot, machine, policy } = draft
  const taken = { nodeUid, boot, machine, policy }
  const body = Object(statusBody('by-hand', '8', 'uid-1', status({ taken })))
  const second = read({ status: body.status })
  assert.equal([second.incomplete, second.nodeUid, second.boot, second.machine, second.policy], [undefined, nodeUid, boot, machine, policy])
  assert.equal(second.status.taken, taken)
  assert.is(read({ spec: { ...bare.spec, boot: 'another/7' }, status: body.status }).boot, 'another/7', 'what a person wrote counts')
})

test('a status is written whole, under the uid and the version it was made from', () => {
  const full = status({
    phase: 'Running', step: 'clear', level: 1, round: 3, proof, voided: [{ proof, at: later, evidence: 'a beat' }],
    attempts: [attempt, { ...attempt, id: 'a2', endedAt: later, result: 'unknown', reason: 'no answer' }],
    pods: [{ namespace: 'd', name: 'p', uid: 'p1', fate: 'left', reason: 'a DaemonSet pod' }],
    volumes: [{ attachment: 'csi-1', volume: 'pv-1', driver: 'd', fate: 'attached', reason: 'in use by node-1' }, { attachment: 'csi-2', volume: 'pv-2', driver: 'd', fate: 'released' }],
    revoked: { boot: 'b/1', at: later, watchdog: { boot: 'b/1', state: 'armed', identity: 'iTCO_wdt', timeout: 30_000, panic: 0, machine: 'real', epoch: 1, memberships: [{ epoch: 1, agents: ['node-2'], replicas: [] }] } },
    holds: [{ because: 'waiting-for-volumes', detail: 'one is left', lifts: 'its release', since: later }],
  })
  assert.equal(written(full), full)
  const body = Object(statusBody('node-1-abc', '8', 'uid-1', full, { generation: 2 }))
  assert.equal([body.kind, body.metadata, body.spec], ['NodeFence', { name: 'node-1-abc', resourceVersion: '8', uid: 'uid-1' }, undefined])
  assert.is(body.status.waitsFor, 'waiting-for-volumes')
  assert.is(body.status.conditions[0].observedGeneration, 2)
})

test('abort is read; nothing else of a person\'s is', () => {
  const made = object()
  const read = readIncident({ ...made, spec: { ...Object(made).spec, abort: true } } as KubeObject)
  assert.is(read.ok && read.incident.abort, true)
})

test('an incident that another version wrote more about than we know is not read at all', () => {
  const made = Object(object(status()))
  const read = readIncident({ ...made, spec: { ...made.spec, isolate: true }, status: { ...made.status, phase: 'Paused', proof: { ...proof, kind: 'guessed' }, watchdog: 'armed' } })
  assert.equal(read.ok ? [] : read.faults.map((fault) => fault.path), ['spec.isolate', 'status.phase', 'status.proof.kind', 'status.watchdog'])
})

test('a NodeFence that names no node is not read', () => {
  const read = readIncident({ metadata: { name: 'x' }, spec: {} } as KubeObject)
  assert.equal(read.ok ? [] : read.faults.map((fault) => fault.path), ['spec.nodeName'])
})

test('a status that was always too long is still written: the oldest moments are counted, sentences are cut', () => {
  const timeline = Array.from({ length: 700 }, (_, index): Moment => ({ at, what: `w${index}`, detail: 'd'.repeat(3_000) }))
  const once = written(status({ timeline }))
  assert.is(once.timeline.length, limits.timeline)
  assert.equal(once.timeline[0], { at, what: 'folded', detail: '201 earlier moments' })
  assert.is(once.timeline.at(-1)?.what, 'w699')
  assert.is(once.timeline[1]?.what, 'w201')
  const twice = written({ ...once, timeline: [...once.timeline, opened] })
  assert.equal([twice.timeline.length, twice.timeline[0]?.detail, twice.timeline[1]?.what], [limits.timeline, '202 earlier moments', 'w202'])
})

test('a status never grows beyond what etcd takes', () => {
  const evidence = Array.from({ length: 100 }, () => ({ source: 's'.repeat(512), word: '\u4e00'.repeat(512), at }))
  const huge = status({
    proof: { ...proof, evidence },
    timeline: Array.from({ length: 500 }, (): Moment => ({ at, what: 'w', detail: '\u4e00'.repeat(1_024) })),
    pods: Array.from({ length: 1_000 }, (_, index) => ({ namespace: 'n'.repeat(63), name: 'p'.repeat(253), uid: `u${index}`, fate: 'freed' })),
  })
  const text = JSON.stringify(statusBody('n', '1', 'u', huge))
  assert.ok(Buffer.byteLength(text) < 1_100_000, `${Buffer.byteLength(text)} bytes`)
  assert.is(written(huge).pods.length, 1_000)
})

test('of too many attempts those stay that may still land, and the last order to each method', () => {
  const many = Array.from({ length: 400 }, (_, index): Attempt => ({ ...attempt, id: `n${index}`, result: 'failed', method: 'pdu', digest: 'd2' }))
  const before: Attempt = { ...attempt, id: 'switched-off', result: 'off', method: 'pdu', digest: 'd1' }
  const kept = written(status({ attempts: [before, { ...attempt, id: 'runs' }, ...many] })).attempts
  assert.is(kept.length, limits.attempts)
  assert.equal(kept.slice(0, 2).map((one) => one.id), ['switched-off', 'runs'])
  assert.is(kept.at(-1)?.id, 'n399')
})

test('of too many attempts the last order that was given to a method stays, however many were not given since', () => {
  const many = Array.from({ length: 400 }, (_, index): Attempt => ({ ...attempt, id: `n${index}`, result: 'not-given' }))
  const kept = written(status({ attempts: [{ ...attempt, id: 'switched-off', result: 'off' }, ...many] })).attempts
  assert.is(kept.length, limits.attempts)
  assert.is(kept[0]?.id, 'switched-off')
})

test('of too many proofs that do not stand those stay that were shown false: they mark a path', () => {
  const lie = { proof: { ...proof, level: 7 }, at, evidence: 'it answered' }
  const voided = [lie, ...Array.from({ length: 30 }, () => ({ proof, how: 'lapsed' as const, at, evidence: 'mute' }))]
  const kept = written(status({ voided })).voided
  assert.equal([kept.length, kept[0]?.proof.level, kept[1]?.how], [limits.voided, 7, 'lapsed'])
})

const fate = (index: number, is: 'attached' | 'released') => ({ attachment: `csi-${index}`, volume: 'v', driver: 'd', fate: is })

test('of too many volumes those stay that are still attached', () => {
  const kept = written(status({ volumes: [fate(0, 'attached'), ...Array.from({ length: 1_500 }, (_, index) => fate(index + 1, 'released'))] })).volumes
  assert.is(kept.length, limits.volumes)
  assert.ok(kept.some((volume) => volume.attachment === 'csi-0'))
})

test('two items of one key are one, the newer: the API server would refuse the status', () => {
  const pod = { namespace: 'd', name: 'p', uid: 'p1' }
  assert.equal(written(status({ pods: [{ ...pod, fate: 'left' }, { ...pod, fate: 'freed' }] })).pods, [{ ...pod, fate: 'freed' }])
  assert.equal(written(status({ attempts: [attempt, { ...attempt, result: 'off' }] })).attempts.map((one) => one.result), ['off'])
})

test('a program\'s span is written as people write it, and never shorter than it is', () => {
  const body = Object(statusBody('n', '1', 'u', status({ attempts: [{ ...attempt, within: 40_000.4 }] })))
  assert.equal([body.status.attempts[0].within, body.status.attempts[0].late], ['40s1ms', '1m'])
})

for (const [name, change, proven, succeeded] of [
  ['opened', {}, ['False', 'NoProof', at], ['Unknown', 'New', at]],
  ['proven', { phase: 'Running', proof }, ['True', 'Off', later], ['Unknown', 'Running', at]],
  ['held', { holds: [{ because: 'order-may-land', detail: 'd', lifts: 'l', since: later }] }, ['False', 'NoProof', at], ['Unknown', 'OrderMayLand', at]],
  ['void', { voided: [{ proof, at: later, evidence: 'a beat' }] }, ['False', 'Voided', later], ['Unknown', 'New', at]],
  ['recovered', { phase: 'Final', outcome: 'Recovered', proof, timeline: [opened, { at: later, what: 'closed', detail: 'x' }] }, ['True', 'Off', later], ['True', 'Recovered', later]],
  ['ended void', { phase: 'Final', outcome: 'Void', timeline: [opened, { at: later, what: 'closed', detail: 'x' }] }, ['False', 'NoProof', at], ['False', 'Void', later]],
] as const satisfies readonly (readonly [string, Partial<IncidentStatus>, readonly string[], readonly string[]])[]) {
  test(`the conditions of an incident that is ${name}`, () => {
    const { conditions } = Object(statusBody('n', '1', 'u', status(change))).status
    const told = conditions.map((one: Record<string, string>) => [one['type'], one['status'], one['reason'], one['lastTransitionTime']])
    assert.equal(told, [['Proven', ...proven], ['Succeeded', ...succeeded]])
  })
}

test.run()
