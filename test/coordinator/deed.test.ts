import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { takeIncident } from '../../coordinator/incident.ts'
import { attachmentOf, keepNode, readPod } from '../../coordinator/kubernetes.ts'
import type { Deed } from '../../core/action.ts'
import { outOfServiceKey, quarantineKey } from '../../core/clear.ts'
import type { Attempt, IncidentStatus } from '../../core/incident.ts'
import type { NodeRecord, PodSeen, VolumeSeen } from '../../core/model.ts'
import { recall, type Proof } from '../../core/proof.ts'
import { silentLog } from '../../edge/log.ts'
import { attempt, beat, boot, method, policy, proofRecord, record as recordOf } from '../core/world.ts'
import { edgeWorld, fence, turned, victim, type EdgeWorld, type Write } from './edge-world.ts'

const test = suite('deed')

const off: Deed = { do: 'fence', node: victim, incident: fence, method, level: 0, round: 1 }
const switchOn: Deed = { do: 'restore', node: victim, incident: fence, method, level: 0, round: 1 }
/** As the core makes them: the edge adds the time. */
function record(changes: Partial<NodeRecord> = {}): NodeRecord {
  const made = recordOf(changes)
  return { ...made, paths: made.paths.map((path) => ({ ...path, at: '' })), probe: { boot, answered: true, at: '' } }
}
const faulty = ['unreachable', 'lose answer', 'answer 409', 'answer 429', 'answer 500'] as const

/** The next writes to what the path names meet this. */
function fault(world: EdgeWorld, does: (typeof faulty)[number], path: string, times = Infinity): void {
  const strikes = (call: { method: string; path: string; user: { name: string } }): boolean => call.method !== 'GET' && call.path.includes(path) && call.user.name.includes('coordinator')
  const [word, status] = does.split(' ')
  world.server.faults.set([word === 'answer'
    ? { does: 'answer', status: Number(status) as 409, strikes, times } // one of those above
    : { does: does as 'unreachable', strikes, times }]) // likewise
}

async function opened(status: Partial<IncidentStatus> = {}): Promise<EdgeWorld> {
  const world = edgeWorld()
  world.plantNode()
  await world.plantFence(status)
  return world
}

function proofOf(world: EdgeWorld): Proof {
  const { proof } = world.stored().status
  if (proof === undefined) throw new Error('no proof on record')
  return recall(proof)
}

/** Proven, tainted, and its device read off just now. */
async function fenced(): Promise<EdgeWorld> {
  const world = edgeWorld()
  const { metadata } = world.plantNode()
  await world.plantFence({ phase: 'Running', step: 'clear', attempts: [attempt()], proof: proofRecord({ nodeUid: metadata.uid ?? '', digests: ['d1'] }) })
  world.read('off')
  return world
}

const freeing = (world: EdgeWorld, pods: readonly PodSeen[], proof: Proof = proofOf(world)): Deed => ({ do: 'delete', node: victim, incident: fence, pods, proof })
const attempts = (world: EdgeWorld): readonly Attempt[] => world.stored().status.attempts
const phases = (world: EdgeWorld): string[] => world.pods().map((pod) => `${pod.metadata.name} ${(pod as KubeObject & { status: { phase: string } }).status.phase}`) // a Pod has it
const podWrites = (world: EdgeWorld): Write[] => world.writes.filter((write) => write.path.includes('/pods/'))

// open

test('an incident is opened with its evidence, its policy by value, and our term', async () => {
  const world = edgeWorld()
  const { metadata } = world.plantNode()
  const deed: Deed = { do: 'open', node: victim, name: fence, boot, cause: 'silence', policy, evidence: [{ source: 'probe', word: 'silent', at: '' }] }
  assert.ok(await world.do(deed))
  const { nodeUid, machine, policy: kept, status } = world.stored()
  assert.equal([nodeUid, machine, kept.name, status.term, status.phase], [metadata.uid, 'machine-2', 'all', 3, 'New'])
  assert.ok(status.timeline[0]?.detail.includes('probe silent'))
  assert.equal(world.said.map((one) => one.reason), ['IncidentOpened'])
  assert.ok(world.observation.seen.incidents.has(fence), 'it is seen before the watch brings it')
})

test('an incident that gives back what is owed does not say that its node is dead', async () => {
  const world = edgeWorld()
  world.plantNode()
  assert.ok(await world.do({ do: 'open', node: victim, name: fence, boot, cause: 'owed', policy, evidence: [{ source: 'feed-b-off', word: 'off', at: '' }] }))
  assert.equal(world.said.map(({ note }) => note), ['what an earlier incident left off of node-2 is switched on again: feed-b-off off'])
})

test('nobody opens an incident who does not lead, nor of a node that is not known, nor a second time', async () => {
  const world = edgeWorld()
  const deed: Deed = { do: 'open', node: victim, name: fence, boot, cause: 'silence', policy, evidence: [] }
  assert.is(await world.do(deed), false)
  world.plantNode()
  world.term = undefined
  assert.is(await world.do(deed), false)
  assert.equal(world.writes, [])
  world.term = 3
  assert.ok(await world.do(deed))
  assert.is(await world.do(deed), false)
  assert.is(world.stored().status.timeline.length, 1)
})

test('an incident that was made and whose status could not be written bears no term: whoever leads adopts it', async () => {
  const world = edgeWorld()
  world.plantNode()
  fault(world, 'answer 500', '/status')
  assert.is(await world.do({ do: 'open', node: victim, name: fence, boot, cause: 'silence', policy, evidence: [] }), false)
  world.server.faults.clear()
  assert.is(world.stored().status.term, 0)
  assert.ok(await world.do({ do: 'adopt', node: victim, incident: fence }))
  assert.is(world.stored().status.term, 3)
})

// orders

test('an order stands on the record as running before the device is touched', async () => {
  const world = await opened()
  let seen: Attempt | undefined
  world.runMethod = async () => {
    seen = attempts(world)[0]
    return {}
  }
  assert.ok(await world.do(off))
  assert.equal(world.story, ['PUT node-2-abc-1/status', 'run off', 'PUT node-2-abc-1/status'])
  assert.equal([seen?.result, seen?.action, seen?.replica, seen?.term, seen?.within, seen?.late], ['running', 'off', 'replica-0', 3, 30_000, 60_000])
  assert.is(attempts(world)[0]?.result, 'off')
  assert.is(world.runs[0]?.attempt, `${fence}.1`)
})

for (const does of faulty) {
  test(`no record, no order: ${does}`, async () => {
    const world = await opened()
    fault(world, does, '/nodefences/')
    assert.is(await turned(world.clock, world.do(off)), false)
    assert.equal(world.runs, [])
  })
}

test('no record, no order: a newer leader\'s term stands there', async () => {
  const world = await opened()
  world.term = 2
  assert.is(await world.do(off), false)
  assert.equal([world.runs, world.writes], [[], []])
})

test('the lease lost between the record and the touch: the device is not touched, and the next leader finds the order running', async () => {
  for (const term of [undefined, 4]) {
    const world = await opened()
    world.asked = (request) => {
      if (request.method === 'PUT') world.term = term
    }
    assert.is(await world.do(off), false)
    assert.equal(world.runs, [])
    assert.is(attempts(world)[0]?.result, 'running')
  }
})

test('an order that waits for its turn to be written when the lease is lost is never written', async () => {
  const world = await opened()
  world.lease.abort()
  assert.is(await world.do(off), false)
  assert.equal([world.writes, world.runs], [[], []])
})

test('a method whose configuration has changed since it was decided on is not asked', async () => {
  const world = await opened()
  assert.is(await world.do({ ...off, method: { ...method, digest: 'd0' } }), false)
  assert.equal([world.writes, world.runs], [[], []])
})

test('the node is heard again while its order is being written down: no device is touched', async () => {
  const world = await opened()
  world.server.faults.set([{ does: 'slow', by: 3_000, times: 1 }])
  const deed = world.do(off)
  await world.clock.runFor(1_000)
  world.beats.set(victim, beat({ at: world.clock.now() }))
  await turned(world.clock, deed)
  assert.equal(world.runs, [])
  assert.equal([attempts(world)[0]?.result, attempts(world)[0]?.reason], ['not-given', 'the node is heard again'])
})

test('a beat from before the decision keeps no order back, and what a person ordered is given though the node is heard', async () => {
  const world = await opened()
  world.beats.set(victim, beat({ at: world.clock.now() - 5_000 }))
  assert.ok(await world.do(off))
  assert.is(world.runs.length, 1)
  const other = edgeWorld()
  other.plantNode()
  await other.plantFence({}, { cause: 'by-hand' })
  other.asked = () => void other.beats.set(victim, beat({ at: other.clock.now() + 1 }))
  assert.ok(await other.do(off))
  assert.is(other.runs.length, 1)
})

test('the incident was withdrawn while its order waited to be written: no device is touched', async () => {
  const world = await opened()
  const withdrawn = world.do({ do: 'withdraw', node: victim, incident: fence, because: 'heard' })
  const order = world.do(off)
  await Promise.all([withdrawn, order])
  assert.equal(world.runs, [])
  assert.is(world.stored().status.phase, 'Done')
})

for (const [machine, what, given] of [['machine-9', 'another machine came under the name', []], ['machine-2', 'the Node was made anew', ['on']], ['', 'a Node was made that no kubelet has posted to', ['on']]] as const) {
  test(`${what} while the order was being written: ${given.length === 0 ? 'no device is touched, neither off nor on' : 'nothing is ordered off, and what was cut is switched on'}`, async () => {
    const runs: string[] = []
    for (const deed of [off, switchOn]) {
      const world = await opened()
      const other = { ...keepNode({ metadata: { name: victim, uid: 'another', resourceVersion: '9999' } }), machine }
      world.asked = (request) => {
        if (request.method === 'PUT' && world.runs.length === 0) world.observation.node(other)
      }
      await world.do(deed)
      runs.push(...world.runs.map(({ action }) => action))
    }
    assert.equal(runs, given)
  })
}

test('what came of an order is written: off, failed where the device says otherwise, unknown', async () => {
  for (const [state, result] of [['off', 'off'], ['on', 'failed'], ['failed', 'failed'], ['unknown', 'unknown']] as const) {
    const world = await opened()
    world.runMethod = async () => ({ state, reason: state === 'off' ? '' : 'so it says' })
    assert.ok(await world.do(off))
    assert.is(attempts(world)[0]?.result, result)
    assert.is(world.said.at(-1)?.type, result === 'off' ? 'Normal' : 'Warning')
  }
})

test('an order that another machine answered for has not ended well, whatever it says', async () => {
  for (const [deed, state] of [[off, 'off'], [switchOn, 'on']] as const) {
    for (const [machine, result] of [['machine-9', 'failed'], ['MACHINE-2', state]] as const) {
      const world = await opened()
      world.runMethod = async () => ({ state, machine })
      assert.ok(await world.do(deed))
      assert.is(attempts(world)[0]?.result, result)
    }
  }
})

test('a program that was never started gave no order, and that is written', async () => {
  const world = await opened()
  world.runMethod = async () => ({ state: 'unknown', ran: false, reason: 'not started: there is no program redfish' })
  assert.ok(await world.do(off))
  assert.equal([attempts(world)[0]?.result, attempts(world)[0]?.reason], ['not-given', 'not started: there is no program redfish'])
  assert.is(world.said.at(-1)?.type, 'Warning')
})

test('an order bears the configuration by which it was given', async () => {
  const world = await opened()
  await world.do(off)
  assert.is(attempts(world)[0]?.digest, method.digest)
})

test('an order on is verified by on, and takes the incident into recovery', async () => {
  const world = await opened()
  assert.ok(await world.do(switchOn))
  assert.is(attempts(world)[0]?.result, 'on')
  assert.is(world.stored().status.step, 'recovery')
})

test('a program that cannot be ended: the order stays under way, here and on the record', async () => {
  const world = await opened()
  world.runMethod = async () => ({ gone: false })
  let over = false
  void world.do(off).finally(() => { over = true })
  await world.clock.runFor(600_000)
  assert.is(over, false)
  assert.is(attempts(world)[0]?.result, 'running')
})

test('an end that cannot be written at once is written later: a verified off must not become unknown', async () => {
  for (const does of ['lose answer', 'answer 429', 'answer 500', 'unreachable'] as const) {
    const world = await opened()
    world.runMethod = async () => {
      fault(world, does, '/nodefences/', 2)
      return {}
    }
    assert.ok(await turned(world.clock, world.do(off)))
    assert.equal(attempts(world).map((one) => one.result), ['off'])
    assert.is(world.stored().status.timeline.filter((moment) => moment.what === 'order ended').length, 1)
  }
})

test('whose lease is lost while the program runs writes no end', async () => {
  const world = await opened()
  world.runMethod = async () => {
    world.term = undefined
    return { state: 'unknown', reason: 'ended' }
  }
  await turned(world.clock, world.do(off))
  assert.is(attempts(world)[0]?.result, 'running')
  assert.is(world.writes.length, 1)
})

test('no two attempts bear one name, however many there were', async () => {
  const many = Array.from({ length: 200 }, (_, index) => attempt({ id: `${fence}.${index + 6}`, result: 'failed' }))
  const world = await opened({ attempts: many })
  await world.do(off)
  await world.do(off)
  const names = attempts(world).map((one) => one.id)
  assert.equal(names.slice(-2), [`${fence}.206`, `${fence}.207`])
  assert.is(new Set(names).size, names.length)
})

test('an order whose end nobody knows is settled as unknown, once', async () => {
  const world = await opened({ attempts: [attempt({ result: 'running' })] })
  const settle: Deed = { do: 'settle', node: victim, incident: fence, attempt: `${fence}.1` }
  assert.ok(await world.do(settle))
  assert.is(attempts(world)[0]?.result, 'unknown')
  assert.ok(await world.do(settle))
  assert.is(world.writes.length, 1)
})

// proofs

test('a proof is recorded with its evidence and the volumes as they stand', async () => {
  const world = await opened({ phase: 'Running', attempts: [attempt()] })
  const evidence = [100, 1_600].map((ago) => ({ source: 'status bmc-off', word: 'off', at: world.clock.now() - ago }))
  const proof = { ...recall(proofRecord({ nodeUid: world.observation.row(victim)?.uid ?? '' })), evidence: [...evidence, { source: 'audit bmc-off', word: 'on', at: '' }] } as Proof // as the core makes them
  assert.ok(await world.do({ do: 'prove', node: victim, incident: fence, proof }))
  const { status } = world.stored()
  assert.equal([status.step, status.proof?.kind, status.proof?.evidence[0]?.word], ['clear', 'off', 'off'])
  const wall = world.clock.wall()
  assert.equal(status.proof?.evidence.map((one) => wall - Date.parse(one.at)), [100, 1_600, 0], 'when each was read, and of what says no time when it was written')
})

test('a proof of another Node of this name is not recorded', async () => {
  const world = await opened()
  assert.is(await world.do({ do: 'prove', node: victim, incident: fence, proof: recall(proofRecord({ nodeUid: 'another' })) }), false)
  assert.equal(world.writes, [])
})

const voided: Deed = { do: 'void', node: victim, incident: fence, evidence: 'it answered' }

test('a proof that was shown false comes off the record, and a person is told', async () => {
  const world = await fenced()
  assert.ok(await world.do(voided))
  const { status } = world.stored()
  assert.equal([status.proof, status.voided.length, status.step], [undefined, 1, 'power-management'])
  assert.ok(world.logged.some((one) => one.level === 'error'))
  assert.equal(world.said.map(({ reason }) => reason), ['ProofVoid'])
})

// taints

test('quarantine and out-of-service go on in one write, over the very version that was read', async () => {
  const world = await fenced()
  const row = world.observation.row(victim)
  const [uid, version] = [row?.uid, row?.resourceVersion]
  assert.ok(await world.do({ do: 'taint', node: victim, incident: fence, outOfService: true, proof: proofOf(world) }))
  assert.equal(world.taints(), [quarantineKey, outOfServiceKey])
  assert.equal(world.story, ['PATCH nodes/node-2', 'PUT node-2-abc-1/status'])
  const [uidTest, versionTest, added] = (world.writes[0]?.body ?? []) as { op: string; path: string; value: unknown }[] // a JSON patch
  assert.equal([uidTest, versionTest], [{ op: 'test', path: '/metadata/uid', value: uid }, { op: 'test', path: '/metadata/resourceVersion', value: version }])
  assert.equal(((added?.value ?? []) as { effect: string }[]).map((taint) => taint.effect), ['NoSchedule', 'NoSchedule']) // taints
  assert.is(world.observation.row(victim)?.taints.length, 2, 'seen before the watch brings it')
})

test('taints of others stay, and one that is there is not put on again', async () => {
  const world = edgeWorld()
  world.plantNode(victim, { spec: { taints: [{ key: 'theirs', effect: 'NoExecute' }, { key: quarantineKey, effect: 'NoSchedule' }] } })
  await world.plantFence()
  assert.is(await world.do({ do: 'taint', node: victim, incident: fence, outOfService: false }), false)
  assert.equal(world.writes, [])
  assert.ok(await world.do({ do: 'untaint', node: victim, incident: fence, key: quarantineKey, because: 'clean', recovers: false }))
  assert.equal(world.taints(), ['theirs'])
})

test('of two out-of-service taints only ours comes off; where there is none of ours the Node is not written, and the clear ends all the same', async () => {
  const theirs = { key: outOfServiceKey, value: 'nodeshutdown', effect: 'NoExecute' }
  for (const ours of [true, false]) {
    const world = edgeWorld()
    world.plantNode(victim, { spec: { taints: [theirs, ...(ours ? [{ key: outOfServiceKey, value: 'holdfast', effect: 'NoSchedule' }] : [])] } })
    await world.plantFence({ step: 'clear' })
    assert.ok(await world.do({ do: 'untaint', node: victim, incident: fence, key: outOfServiceKey, because: 'free', recovers: true }))
    assert.equal(world.observation.row(victim)?.taints, [theirs])
    assert.is(world.stored().status.step, 'recovery')
    assert.is(world.writes.filter((write) => write.path.includes('/nodes/')).length, ours ? 1 : 0)
    assert.is(world.said.length, ours ? 1 : 0)
  }
})

test('out-of-service without the very proof that stands on the record is not set', async () => {
  const world = await fenced()
  const proofs: (Proof | undefined)[] = [undefined, ...[{ boot: 'boot-9/1' }, { level: 1 }, { methods: ['pdu'] }, { digests: ['d9'] }, { kind: 'found-off' as const }, { nodeUid: 'another' }]
    .map((change) => recall({ ...proofRecord({ nodeUid: world.observation.row(victim)?.uid ?? '', digests: ['d1'] }), ...change }))]
  for (const proof of proofs) assert.is(await world.do({ do: 'taint', node: victim, incident: fence, outOfService: true, ...(proof === undefined ? {} : { proof }) }), false, JSON.stringify(proof))
  assert.equal([world.writes, world.taints()], [[], []])
})

test('quarantine alone needs no proof', async () => {
  const world = await opened()
  assert.ok(await world.do({ do: 'taint', node: victim, incident: fence, outOfService: false }))
  assert.equal(world.taints(), [quarantineKey])
})

test('quarantine without an incident is told on the Node itself; out-of-service is never set so', async () => {
  const world = edgeWorld()
  world.plantNode(victim, {})
  assert.is(await world.do({ do: 'taint', node: victim, outOfService: true, proof: recall(proofRecord()) }), false)
  assert.ok(await world.do({ do: 'taint', node: victim, outOfService: false }))
  assert.equal(world.taints(), [quarantineKey])
  assert.match(world.said.map(({ note }) => note).join(), /cut off/)
})

test('nobody taints who does not lead', async () => {
  const world = await opened()
  world.term = undefined
  assert.is(await world.do({ do: 'taint', node: victim, incident: fence, outOfService: false }), false)
  assert.is(await world.do({ do: 'untaint', node: victim, key: quarantineKey, because: 'x', recovers: false }), false)
  assert.equal(world.writes, [])
})

test('somebody else wrote the Node meanwhile: nothing is written or recorded, and the Node is read again', async () => {
  const world = await opened()
  const person = world.server.transportFor({ name: 'a person', groups: ['system:masters'] })
  await person({ method: 'PATCH', path: `/api/v1/nodes/${victim}`, headers: { 'content-type': 'application/merge-patch+json' }, body: '{"spec":{"unschedulable":true},"metadata":{"labels":{"new":"one"}}}' }, new AbortController().signal)
  assert.is(await world.do({ do: 'taint', node: victim, incident: fence, outOfService: false }), false)
  assert.equal([world.taints(), world.stored().status.timeline], [[], []])
  assert.is(world.observation.row(victim)?.labels['new'], 'one')
  assert.ok(await world.do({ do: 'taint', node: victim, incident: fence, outOfService: false }))
})

test('taking out-of-service off at the end of the clear begins the recovery; taking it off for another reason does not', async () => {
  for (const recovers of [true, false]) {
    const world = edgeWorld()
    world.plantNode(victim, { spec: { taints: [{ key: outOfServiceKey, value: 'holdfast', effect: 'NoSchedule' }] } })
    await world.plantFence({ phase: 'Running', step: 'clear' })
    assert.ok(await world.do({ do: 'untaint', node: victim, incident: fence, key: outOfServiceKey, because: 'x', recovers }))
    assert.is(world.stored().status.step, recovers ? 'recovery' : 'clear')
    assert.equal(world.taints(), [])
  }
})

// the clear

test('pods are recorded, then doomed, then deleted, each under its uid and version', async () => {
  const world = await fenced()
  const pod = world.plantPod('db-0')
  assert.ok(await world.do(freeing(world, [pod])))
  assert.equal(world.story, ['PUT node-2-abc-1/status', 'PATCH db-0/status', 'DELETE pods/db-0'])
  const [doomed, deleted] = podWrites(world).map((write) => write.body as { metadata?: object; status?: { phase: string; conditions: { type: string; reason: string }[] }; preconditions?: object; gracePeriodSeconds?: number }) // a patch, and DeleteOptions
  assert.equal(doomed?.metadata, { uid: pod.uid, resourceVersion: pod.resourceVersion })
  assert.equal([doomed?.status?.phase, doomed?.status?.conditions[0]?.type, doomed?.status?.conditions[0]?.reason], ['Failed', 'DisruptionTarget', 'HoldfastFenced'])
  assert.equal([deleted?.preconditions, deleted?.gracePeriodSeconds], [{ uid: pod.uid }, 0])
  assert.equal(world.pods(), [])
  assert.equal(world.stored().status.pods.map((fate) => [fate.name, fate.fate]), [['db-0', 'freed']])
  assert.ok(world.said.at(-1)?.note.includes('work/db-0'))
})

test('a pod that is over already is only deleted, under its uid and version', async () => {
  const world = await fenced()
  const pod = world.plantPod('job-1', { status: { phase: 'Succeeded' } })
  assert.ok(await world.do(freeing(world, [pod])))
  assert.equal(podWrites(world).map((write) => [write.method, (write.body as { preconditions: object }).preconditions]), [['DELETE', { uid: pod.uid, resourceVersion: pod.resourceVersion }]]) // DeleteOptions
})

for (const does of faulty) {
  test(`no record, no pod: ${does}`, async () => {
    const world = await fenced()
    const pod = world.plantPod('db-0')
    fault(world, does, '/nodefences/')
    assert.is(await turned(world.clock, world.do(freeing(world, [pod]))), false)
    assert.equal(phases(world), ['db-0 Running'])
  })
}

test('what was doomed and not deleted is buried under its uid and version, also without a proof; another pod of its name is not hit', async () => {
  const world = await fenced()
  const pod = world.plantPod('db-0', { status: { phase: 'Failed' } })
  assert.ok(await world.do({ do: 'bury', node: victim, incident: fence, pods: [pod] }))
  assert.equal(podWrites(world).map((write) => [write.method, (write.body as { preconditions: object }).preconditions]), [['DELETE', { uid: pod.uid, resourceVersion: pod.resourceVersion }]]) // DeleteOptions
  const next = world.plantPod('db-0')
  assert.is(await world.do({ do: 'bury', node: victim, incident: fence, pods: [pod] }), false)
  assert.equal(world.pods().map((one) => one.metadata.uid), [next.uid])
})

test('a leader that is none any more buries nothing', async () => {
  const world = await fenced()
  const pod = world.plantPod('db-0', { status: { phase: 'Failed' } })
  world.term = undefined
  assert.is(await world.do({ do: 'bury', node: victim, incident: fence, pods: [pod] }), false)
  assert.equal(podWrites(world), [])
})

const inUse = ['kubernetes.io/csi/csi.example.com^vol-1', 'kubernetes.io/csi/csi.example.com^vol-2']
const [first, second] = inUse.map((unique) => attachmentOf(unique, victim) ?? '')
const volumeOf = (attachment = first, volume = 'pv-1'): VolumeSeen => ({ attachment: attachment ?? '', uid: 'u', driver: 'csi.example.com', volume, attached: true, deleting: false })
const running = { name: 'c', ready: true, restartCount: 0, image: 'i', imageID: 'i', state: { running: { startedAt: '2026-01-01T00:00:00Z' } } }

/** A node that is said to use two volumes, and a terminating pod on it that is said to run. */
async function using(): Promise<{ world: EdgeWorld; shell: PodSeen; detaching: Extract<Deed, { do: 'detach' }> }> {
  const world = await fenced()
  const there = await world.api.patch<KubeObject>(`/api/v1/nodes/${victim}/status`, 'merge', { status: { volumesInUse: inUse } })
  if (there.ok) world.observation.node(keepNode(there.value))
  world.observation.attachment({ metadata: { name: first ?? '' }, node: victim, seen: volumeOf() })
  const shell = world.plantPod('shell', { metadata: { name: 'shell', namespace: 'work', deletionTimestamp: '2026-01-01T00:05:00Z', deletionGracePeriodSeconds: 30 }, status: { phase: 'Running', containerStatuses: [running] } })
  const volumes = [{ claim: 'work/data', is: 'bound', volume: 'pv-1', driver: 'csi.example.com', provisioner: '', shared: false, local: false }] as const
  world.writes.length = 0
  return { world, shell: { ...shell, terminating: true, volumes }, detaching: { do: 'detach', node: victim, incident: fence, pods: [], volumes: [volumeOf()], proof: proofOf(world) } }
}

const stillUsed = (world: EdgeWorld): unknown => (world.server.peek('nodes')[0] as KubeObject & { status: { volumesInUse: string[] } }).status.volumesInUse // a Node has it

test('the selective release strikes exactly the volumes that it names from what the node is said to use, over that very version', async () => {
  const { world, detaching } = await using()
  assert.ok(await turned(world.clock, world.do(detaching)))
  assert.equal(stillUsed(world), [inUse[1]])
  assert.equal([...world.observation.row(victim)?.inUse ?? []], [second])
  assert.ok(world.stored().status.timeline.some((moment) => moment.what === 'detached' && moment.detail === 'pv-1'))
})

test('a pod that stays is told that nothing of it runs, is not deleted, and its volumes come onto the record', async () => {
  const { world, shell, detaching } = await using()
  assert.ok(await turned(world.clock, world.do({ ...detaching, pods: [shell], volumes: [] })))
  const [pod] = world.pods() as readonly (KubeObject & { status: { phase: string; containerStatuses: { state: { terminated?: { exitCode: number } } }[] } })[] // a Pod has it
  assert.equal([pod?.status.phase, pod?.status.containerStatuses.map((one) => one.state.terminated?.exitCode)], ['Running', [137]])
  assert.ok(readPod(pod ?? world.plantNode()).ended)
  assert.equal(world.stored().status.volumes.map((one) => [one.volume, one.fate]), [['pv-1', 'attached']])
  assert.equal(podWrites(world).map((write) => write.method), ['PATCH'])
})

const unproven: [string, (world: EdgeWorld) => unknown][] = [
  ['its device says on', (world) => world.read('on')],
  ['its reading is older than a second', (world) => world.clock.runFor(1_100)],
  ['the node was heard since', (world) => void world.beats.set(victim, beat({ at: world.clock.now() + 10 }))],
  ['this replica leads no more', (world) => { world.term = undefined }],
]
for (const [why, does] of unproven) test(`nothing is released if ${why}`, async () => {
  const { world, shell, detaching } = await using()
  await does(world)
  assert.not(await turned(world.clock, world.do({ ...detaching, pods: [shell] })))
  assert.equal([stillUsed(world), podWrites(world)], [inUse, []])
})

test('a pod that changed since it was listed is not told anything', async () => {
  const { world, shell, detaching } = await using()
  assert.not(await turned(world.clock, world.do({ ...detaching, pods: [{ ...shell, resourceVersion: '1' }], volumes: [] })))
  assert.equal(podWrites(world), [])
})

test('what was not recorded is given back to the rate', async () => {
  const world = await fenced()
  const pods = Array.from({ length: 25 }, (_, index) => world.plantPod(`p-${index}`))
  fault(world, 'answer 500', '/nodefences/')
  for (let times = 0; times < 12; times += 1) await world.do(freeing(world, pods))
  world.server.faults.clear()
  world.read('off')
  assert.ok(await world.do(freeing(world, pods)))
  assert.equal(world.pods(), [])
})

test('the proof on record is another one, or none: no pod is touched', async () => {
  for (const change of [{ boot: 'boot-9/1' }, { nodeUid: 'another' }, { level: 1 }, { methods: ['pdu'] }]) {
    const world = await fenced()
    const pod = world.plantPod('db-0')
    await world.do(freeing(world, [pod], recall({ ...proofRecord({ nodeUid: world.observation.row(victim)?.uid ?? '', digests: ['d1'] }), ...change })))
    assert.equal(podWrites(world), [])
  }
  const world = await opened({ phase: 'Running' })
  world.read('off')
  const pod = world.plantPod('db-0')
  await world.do(freeing(world, [pod], recall(proofRecord({ nodeUid: world.observation.row(victim)?.uid ?? '' }))))
  assert.equal(podWrites(world), [])
})

test('no pod is touched on a reading older than a second, or that says anything but off', async () => {
  for (const [state, ago] of [['off', 1_001], ['on', 100], ['unknown', 100]] as const) {
    const world = await fenced()
    const pod = world.plantPod('db-0')
    await world.clock.runFor(2_000)
    world.read(state, world.clock.now() - ago)
    assert.is(await world.do(freeing(world, [pod])), false)
    assert.equal(podWrites(world), [])
    assert.equal(world.said.filter((one) => one.reason === 'PodsFreed'), [])
  }
})

test('the record took so long to write that the reading is old by then: no pod is touched', async () => {
  const world = await fenced()
  const pod = world.plantPod('db-0')
  world.server.faults.set([{ does: 'slow', by: 1_500, times: 1 }])
  assert.is(await turned(world.clock, world.do(freeing(world, [pod]))), false)
  assert.equal(podWrites(world), [])
})

/** Ten pods, and something happens as the third is patched. */
async function midway(happens: (world: EdgeWorld) => void): Promise<EdgeWorld> {
  const world = await fenced()
  const pods = Array.from({ length: 20 }, (_, index) => world.plantPod(`p-${String(index).padStart(2, '0')}`))
  let patches = 0
  world.asked = (request) => {
    if (request.method === 'PATCH' && ++patches === 3) happens(world)
  }
  await turned(world.clock, world.do(freeing(world, pods)))
  return world
}

const happenings: Record<string, (world: EdgeWorld) => void> = {
  'the lease is lost': (world) => { world.term = undefined },
  'another term begins here': (world) => { world.term = 4 },
  'its device says on': (world) => world.read('on'),
  'its device does not answer': (world) => world.read('unknown'),
  'the node is heard': (world) => void world.beats.set(victim, beat({ at: world.clock.now() + 1 })),
  'the Node is deleted': (world) => world.observation.nodeGone(victim),
  'another Node bears the name': (world) => world.observation.node(keepNode({ metadata: { name: victim, uid: 'another', resourceVersion: '9999' } })),
  'the proof is off the record': (world) => {
    const incident = world.observation.seen.incidents.get(fence)
    if (incident === undefined) return
    const { proof: _, ...status } = incident.status
    world.observation.incident({ ...incident, resourceVersion: '99999', status })
  },
}

for (const [what, happens] of Object.entries(happenings)) {
  test(`in the middle of a batch ${what}: at most what was under way is finished`, async () => {
    const world = await midway(happens)
    assert.ok(podWrites(world).filter((write) => write.method === 'PATCH').length <= 5, `${podWrites(world).length} writes`)
    assert.ok(phases(world).filter((one) => one.endsWith('Running')).length >= 15)
    const told = world.said.filter((one) => one.reason === 'PodsFreed').flatMap((one) => one.note.split(', '))
    assert.ok(told.length <= 5, 'and only what was freed is told')
  })
}

test('what was doomed is deleted as long as we lead, whatever is heard by then: nobody else ever would', async () => {
  for (const what of ['its device says on', 'the node is heard', 'the proof is off the record']) {
    const world = await midway((on) => happenings[what]?.(on))
    assert.ok(podWrites(world).some((write) => write.method === 'PATCH'))
    assert.equal(phases(world).filter((one) => one.endsWith('Failed')), [], what)
  }
})

test('nothing is deleted after the lease is lost, not even what was doomed just before', async () => {
  const world = await midway((on) => { on.term = undefined })
  const lost = world.story.findIndex((what) => what.startsWith('PATCH p-02'))
  assert.equal(world.story.slice(lost + 1).filter((what) => what.startsWith('DELETE')), [])
})

test('a batch ends before a machine could have booted', async () => {
  const world = await fenced()
  const pods = Array.from({ length: 25 }, (_, index) => world.plantPod(`p-${index}`))
  world.server.faults.set([{ does: 'slow', by: 1_500, strikes: (call) => call.path.includes('/pods/') }])
  const began = world.clock.now()
  await turned(world.clock, world.do(freeing(world, pods)))
  assert.ok(world.clock.now() - began < 8_000)
  assert.ok(phases(world).some((one) => one.endsWith('Running')))
})

test('a pod that is gone, another one of its name, or changed since is left alone, and the others are freed', async () => {
  const world = await fenced()
  const [gone, other, changed, well] = ['gone', 'other', 'changed', 'well'].map((name) => world.plantPod(name)) as [PodSeen, PodSeen, PodSeen, PodSeen]
  const person = world.server.transportFor({ name: 'a person', groups: ['system:masters'] })
  const never = new AbortController().signal
  await person({ method: 'DELETE', path: '/api/v1/namespaces/work/pods/gone', headers: {}, body: '{"gracePeriodSeconds":0}' }, never)
  await person({ method: 'PATCH', path: '/api/v1/namespaces/work/pods/changed', headers: { 'content-type': 'application/merge-patch+json' }, body: '{"metadata":{"labels":{"a":"b"}}}' }, never)
  assert.ok(await world.do(freeing(world, [gone, { ...other, uid: 'another uid' }, changed, well])))
  assert.equal(phases(world).toSorted(), ['changed Running', 'other Running'])
  assert.equal(podWrites(world).filter((write) => write.method === 'DELETE').map((write) => write.path.split('/').at(-1)), ['well'])
})

test('a doom whose answer is lost is followed by no deletion: the next list tells', async () => {
  const world = await fenced()
  const pod = world.plantPod('db-0')
  fault(world, 'lose answer', '/pods/db-0/status')
  assert.is(await turned(world.clock, world.do(freeing(world, [pod]))), false)
  assert.equal(phases(world), ['db-0 Failed'])
  assert.equal(podWrites(world).map((write) => write.method), ['PATCH'])
})

test('after a batch the pods are listed anew', async () => {
  const world = await fenced()
  const pod = world.plantPod('db-0')
  world.observation.listed(victim, { askedAt: 0, listedAt: 0, items: [pod] })
  await world.do(freeing(world, [pod]))
  assert.is(world.observation.row(victim)?.pods, undefined)
})

test('of a batch larger than the rate allows only so many are freed, and only those are recorded', async () => {
  const world = await fenced()
  const pods = Array.from({ length: 160 }, (_, index) => world.plantPod(`p-${index}`))
  await world.do(freeing(world, pods))
  assert.is(world.pods().length, 10)
  assert.is(world.stored().status.pods.length, 150)
})

// ends

test('an incident that is withdrawn is Done, one that is closed is Final with its outcome and without holds', async () => {
  const world = await opened({ phase: 'Running', holds: [{ because: 'not-dead', detail: '', lifts: '', since: '2026-01-01T00:00:00.000Z' }] })
  assert.ok(await world.do({ do: 'withdraw', node: victim, incident: fence, because: 'heard again' }))
  assert.equal([world.stored().status.phase, world.stored().status.step], ['Done', 'recovery'])
  assert.ok(await world.do({ do: 'close', node: victim, incident: fence, outcome: 'Withdrawn', because: 'well' }))
  assert.equal([world.stored().status.phase, world.stored().status.outcome, world.stored().status.holds], ['Final', 'Withdrawn', []])
  assert.equal(world.said.map((one) => one.reason), ['Withdrawn', 'IncidentClosed'])
})

test('the incident of a Node that is gone, or was never seen here, is closed all the same, and that is told', async () => {
  for (const seen of [true, false]) {
    const world = await opened()
    const { nodeUid } = world.stored()
    world.observation.nodeGone(victim)
    if (!seen) {
      world.observation.incidentGone(fence)
      world.observation.incident(world.stored())
    }
    assert.ok(await world.do({ do: 'close', node: victim, incident: fence, outcome: 'NodeDeleted', because: 'gone' }))
    assert.is(world.stored().status.phase, 'Final')
    assert.equal(world.said.map((one) => [one.reason, one.regarding.uid]), [['IncidentClosed', nodeUid]])
  }
})

// what cannot be read

test('a NodeFence that another version wrote, and this one cannot read: nothing at all is done on its node until it can', async () => {
  const world = await fenced()
  const proof = proofOf(world)
  const pod = world.plantPod('db-0')
  const stored = world.server.peek('nodefences.holdfast.dev')[0] as KubeObject & { status: object } // as planted
  takeIncident({ ...stored, status: { ...stored.status, phase: 'Thinking' } } as KubeObject, world.observation, silentLog, 'watch')
  const deeds: Deed[] = [
    off, { ...off, do: 'restore' }, freeing(world, [pod], proof), { do: 'taint', node: victim, incident: fence, outOfService: true, proof }, { do: 'untaint', node: victim, key: quarantineKey, because: 'x', recovers: false },
    { do: 'open', node: victim, name: 'node-2-abc-2', boot, cause: 'silence', policy, evidence: [] }, { do: 'withdraw', node: victim, incident: fence, because: 'x' },
    { do: 'close', node: victim, incident: fence, outcome: 'Withdrawn', because: 'x' }, { do: 'adopt', node: victim, incident: fence }, { do: 'prove', node: victim, incident: fence, proof },
  ]
  for (const deed of deeds) assert.is(await world.do(deed), false, deed.do)
  assert.equal([world.writes, world.runs], [[], []])
  takeIncident(stored, world.observation, silentLog, 'watch')
  assert.ok(await world.do({ do: 'withdraw', node: victim, incident: fence, because: 'x' }))
})

// records

test('what was learned of a node is written whole, and over the version that is known', async () => {
  const world = edgeWorld()
  world.plantNode()
  const { resourceVersion: _, ...facts } = record()
  assert.ok(await world.do({ do: 'record', node: victim, record: facts }))
  assert.is(world.record()?.boot, boot)
  assert.ok(await world.do({ do: 'record', node: victim, record: { ...facts, boot: 'boot-2/900' } }))
  assert.equal(world.writes.map((write) => write.method), ['POST', 'PUT'])
  assert.is(world.observation.row(victim)?.record?.boot, 'boot-2/900')
})

test('another one wrote it first: nothing of ours is written, and what stands there is known from then on', async () => {
  const world = edgeWorld()
  world.plantNode()
  world.plantRecord(record({ machine: 'theirs' }))
  world.observation.record(victim, undefined)
  const { resourceVersion: _, ...facts } = record()
  assert.is(await world.do({ do: 'record', node: victim, record: facts }), false)
  assert.equal([world.record()?.machine, world.observation.row(victim)?.record?.machine], ['theirs', 'theirs'])
})

test('nobody writes a record who does not lead', async () => {
  const world = edgeWorld()
  world.plantNode()
  world.term = undefined
  const { resourceVersion: _, ...facts } = record()
  assert.is(await world.do({ do: 'record', node: victim, record: facts }), false)
  assert.equal(world.writes, [])
})

test.run()
