// The proof that rests on time. Each row changes one thing of a node that is proven, and says what is lacking then.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Action } from '../../core/action.ts'
import { decide } from '../../core/decide.ts'
import type { Incident, IncidentStatus, Revocation } from '../../core/incident.ts'
import type { NodeRecord, NodeSeen, Self } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { borneOut, doubtOf, proveSelfFenced, recall } from '../../core/proof.ts'
import { revokedKey, unfenceable } from '../../core/self-fence.ts'
import { endedWithin, type WatchdogKept } from '../../core/watchdog.ts'
import { beat, boot, dead, foundOffNode, incident, method, newBoot, node, now, pod, podsOf, policy as usual, proofRecord, reading, record, seen, seenProof, self, three } from './world.ts'

const test = suite('self-fence')

const policy: Policy = { ...usual, giveUp: 'watchdog', selfFenced: 'accept' }
const watchdog: WatchdogKept = {
  boot, state: 'armed', identity: 'i6300ESB timer', timeout: 10_000, panic: 0, machine: 'real', epoch: 4, memberships: [{ epoch: 4, agents: ['node-1', 'node-3'], replicas: ['replica-0', 'replica-1'] }],
}
const wait = endedWithin(watchdog)
/** A second more than that ago. */
const longAgo = now - wait - 1_000
const revoked = (changes: Partial<WatchdogKept> = {}, of = boot): Revocation => ({ boot: of, at: 'then', watchdog: { ...watchdog, ...changes } })
const key = revokedKey('node-2-abc-1')

/** Silent since before its permit was taken back, and everything that could speak was asked just now. */
const silentLong: Partial<NodeSeen> = {
  ...dead, beat: beat({ at: longAgo - 20_000 }), ready: { status: 'Unknown', postedAt: longAgo - 30_000, since: longAgo, bootId: 'boot-1' }, readAt: now - 500,
  lease: { askedAt: now - 500, readAt: now - 400, renewTime: 'then', unmovedSince: longAgo - 15_000, moved: false }, path: { levels: [], faults: [] }, record: record({ watchdog }), firstSeen: new Map([[key, longAgo]]),
}
const acks = (at: number | undefined, of = boot): Partial<NodeSeen> => ({ beat: beat(at === undefined ? {} : { revokes: [{ node: 'node-2', boot: of, at }] }) })

interface Scene {
  readonly node?: Partial<NodeSeen>
  readonly status?: Partial<IncidentStatus>
  readonly policy?: Policy
  readonly peers?: readonly [Partial<NodeSeen>, Partial<NodeSeen>]
  readonly self?: Partial<Self>
}

function proven({ node: changes = {}, status = {}, policy: own = policy, peers = [acks(longAgo), acks(longAgo)], self: us = {} }: Scene) {
  const at = node({ ...silentLong, ...changes })
  const of = incident({ phase: 'Running', revoked: revoked(), ...status }, { policy: own })
  const nodes = seen([node({ name: 'node-1', ...peers[0] }), at, node({ name: 'node-3', ...peers[1] })]).nodes
  return proveSelfFenced(of, at, nodes, self({ ledSince: longAgo - 60_000, ...us }), now)
}

test('nobody could permit it for long enough, and nothing speaks of it: it is proven, each term named', () => {
  const result = proven({})
  assert.ok('proof' in result)
  if (!('proof' in result)) return
  const { kind, boot: of, level, methods, evidence } = result.proof
  assert.equal([kind, of, level, methods, evidence.map(({ source }) => source)], ['self-fenced', boot, -1, [], ['watchdog', 'permit', 'membership 4', 'time', 'Ready', 'Lease']])
  assert.match(evidence[0]?.word ?? '', /i6300ESB timer, armed, fires after 10\.0 s/)
})

const two = (one: readonly string[], other: readonly string[]): Partial<IncidentStatus> => ({ revoked: revoked({ memberships: [{ epoch: 4, agents: one, replicas: [] }, { epoch: 5, agents: other, replicas: [] }] }) })

const lacking: readonly (readonly [string, Scene, RegExp])[] = [
  ['a policy that does not accept it', { policy: { ...policy, selfFenced: 'refuse' } }, /policy does not accept/],
  ['a permit that nobody took back', { status: { revoked: revoked({}, newBoot) } }, /was not taken back/],
  ['a watchdog that was not armed', { status: { revoked: revoked({ state: 'unarmed' }) } }, /not armed/],
  ['a virtual machine', { status: { revoked: revoked({ machine: 'virtual' }) } }, /virtual/],
  ['a machine of which nobody knows', { status: { revoked: revoked({ machine: 'unknown' }) } }, /nothing tells whether/],
  ['softdog, and a kernel that stays when it panics', { status: { revoked: revoked({ identity: 'Software Watchdog' }) } }, /kernel\.panic/],
  ['a membership that the node has confirmed and that is not on record', { status: { revoked: revoked({ epoch: 3 }) } }, /by whose word/],
  ['one that has confirmed none', { status: { revoked: revoked({ epoch: 0, memberships: [{ epoch: 0, agents: ['node-1'], replicas: [] }] }) } }, /by whose word/],
  ['half of the members', { peers: [acks(longAgo), acks(undefined)] }, /node-3 of node-1, node-3, replica-0, replica-1 has not/],
  ['members that speak of another boot', { peers: [acks(longAgo), acks(longAgo, newBoot)] }, /node-3 of/],
  ['a replica that is no member of it', { self: { replica: 'replica-9' } }, /fewer than most/],
  ['most of the one membership, and not of the other that it may hold', { status: two(['node-1', 'node-3'], ['node-7', 'node-8', 'node-1']) }, /node-7, node-8 of/],
  ['a member that agreed a second too late', { peers: [acks(longAgo), acks(longAgo + 1_500)] }, /must have reset it in 0\.5 s/],
  ['a revocation that this replica saw a second too late', { node: { firstSeen: new Map([[key, longAgo + 1_500]]) } }, /must have reset it in 0\.5 s/],
  ['a leader that was elected a second too late', { self: { ledSince: longAgo + 1_500 } }, /must have reset it in 0\.5 s/],
  ['hardware that nobody has measured, which may fire at twice its time-out', { status: { revoked: revoked({ identity: 'iTCO_wdt' }) } }, /must have reset it in 29\.\d s/],
  ['a longer time-out', { status: { revoked: revoked({ timeout: 11_000 }) } }, /must have reset it in 2\.\d s/],
  ['a replica that never saw the revocation', { node: { firstSeen: new Map() } }, /has not led since/],
  ['a seal that a witness brought when it must have been reset already', { node: { witnesses: [{ witness: 'node-1', kind: 'agent', askedAt: now - 1_100, answeredAt: now - 1_000, word: 'hears', proven: true }] } }, /a witness has heard it since/],
  ['a beat since', { node: { beat: beat({ at: longAgo + 1 }) } }, /heard after it/],
  ['a port that answered since', { node: { probe: { askedAt: now - 2_000, answeredAt: now - 1_000, word: 'silent', spokeAt: longAgo + 5 } } }, /port has answered/],
  ['Ready that is True', { node: { ready: { status: 'True', postedAt: longAgo - 30_000, since: longAgo - 30_000, bootId: 'boot-1' } } }, /Ready has not left True/],
  ['a Lease that was renewed since', { node: { lease: { askedAt: now - 500, readAt: now - 400, renewTime: 'then', unmovedSince: now - 15_000, moved: true, movedAfter: longAgo + 3 } } }, /renewed its Lease/],
  ['a Node that was not read just now', { node: { readAt: now - 60_000 } }, /was not read just now/],
  ['an earlier one that was shown false', { status: { voided: [{ proof: proofRecord({ kind: 'self-fenced' }), at: 'then', evidence: 'it answered' }] } }, /shown not to have reset/],
]

for (const [what, scene, lacks] of lacking) {
  test(`no proof from ${what}`, () => {
    const result = proven(scene)
    assert.match('lacks' in result ? result.lacks : 'proven', lacks)
  })
}

test('a seal from while it was waited for is no word against it, nor is a bare word', () => {
  for (const [answeredAt, proven_] of [[now - 1_500, true], [now - 100, false]] as const) {
    assert.ok('proof' in proven({ node: { witnesses: [{ witness: 'node-1', kind: 'agent', askedAt: answeredAt - 100, answeredAt, word: 'hears', proven: proven_ }] } }))
  }
})

test('an instant more, and what was too late is proven', () => {
  for (const scene of [{ peers: [acks(longAgo), acks(longAgo + 1_000)] as const }, { node: { firstSeen: new Map([[key, longAgo + 1_000]]) } }, { self: { ledSince: longAgo + 1_000 } }]) assert.ok('proof' in proven(scene))
  assert.ok('proof' in proven({ status: two(['node-1', 'node-3'], ['node-3', 'node-1', 'node-8']) }))
})

test('whose permit is taken back for it at all', () => {
  const { watchdog: _, ...bare } = record({ watchdog })
  const cases: [string, NodeRecord | undefined, RegExp | undefined][] = [
    ['one that can be proven', record({ watchdog }), undefined], ['no record', undefined, /on record/], ['no watchdog on record', bare, /on record/],
    ['one of another boot', record({ watchdog: { ...watchdog, boot: newBoot } }), /on record/], ['one of another Node', record({ watchdog, nodeUid: 'another' }), /on record/],
    ['one that is let go of', record({ watchdog: { ...watchdog, state: 'unarmed' } }), /not armed/], ['one that proves nothing', record({ watchdog: { ...watchdog, machine: 'virtual' } }), /virtual/],
  ]
  for (const [what, of, why] of cases) {
    const told = unfenceable(incident({}, { policy }), of)
    if (why === undefined) assert.is(told, undefined, what)
    else assert.match(told ?? '', why, what)
  }
  assert.match(unfenceable(incident({}, { policy: usual }), record({ watchdog })) ?? '', /does not accept/)
})

/** What is done about it. */
function done(changes: Partial<NodeSeen>, status: Partial<IncidentStatus> = {}, own: Policy = policy, peers: Partial<NodeSeen> = acks(longAgo), others: readonly Incident[] = []): readonly Action[] {
  const of = incident({ phase: 'Running', ...status }, { policy: own })
  const at = node({ ...silentLong, taints: [{ key: 'holdfast.dev/quarantine', value: 'holdfast', effect: 'NoSchedule' }], ...changes })
  return decide(seen([node({ name: 'node-1', ...peers }), at, node({ name: 'node-3', ...peers })], [of, ...others], self({ ledSince: longAgo - 60_000 })), now, [own])
}
const deeds = (actions: readonly Action[]) => actions.flatMap((one) => (one.do === 'revoke' || one.do === 'prove' || one.do === 'fence' || (one.do === 'taint' && one.node === 'node-2') ? [one.do] : []))
const holds = (actions: readonly Action[]) => actions.flatMap((one) => (one.do === 'hold' && one.node === 'node-2' ? [`${one.because}: ${one.detail}`] : []))

test('where no device can prove it off its permit is taken back, under quarantine, and proven in time', () => {
  assert.equal(deeds(done({ taints: [] })), ['taint'])
  assert.equal(deeds(done({})), ['revoke'])
  const waiting = done({ firstSeen: new Map([[key, now - 5_000]]) }, { revoked: revoked() }, policy, acks(now - 5_000))
  assert.equal([deeds(waiting), holds(waiting).filter((one) => one.startsWith('self-fencing')).length], [[], 1])
  assert.equal(deeds(done({}, { revoked: revoked() })), ['prove'])
})

test('and not where a device can, where the policy does not want it, or where a brake keeps orders back', () => {
  const audited: Partial<NodeSeen> = { path: { levels: [[method]], faults: [] }, readings: [reading('on', now - 1_000)] }
  assert.equal(deeds(done(audited)), ['fence'])
  assert.equal(deeds(done({}, {}, { ...policy, selfFenced: 'refuse' })), [])
  assert.equal(deeds(done({}, {}, { ...policy, nodeDownPodDeletionPolicy: 'DoNothing' })), [])
  const refused = done({ record: record({ watchdog: { ...watchdog, machine: 'virtual' } }) })
  assert.equal(deeds(refused), [])
  assert.ok(holds(refused).some((one) => one.startsWith('self-fencing: its watchdog proves nothing: it is a virtual machine')))
  const plane: Partial<NodeSeen> = { controlPlane: true, labels: { 'node-role.kubernetes.io/etcd': '' } }
  assert.equal(deeds(done(plane)), [], 'the control plane would lose its majority')
})

test('a node that is heard again while it is waited for is withdrawn, and one that found its next boot too', () => {
  for (const heard of [beat(), beat({ boot: newBoot })]) {
    const actions = done({ beat: heard }, { revoked: revoked() })
    assert.ok(actions.some((one) => one.do === 'withdraw'), heard.boot)
    assert.equal(deeds(actions), [])
  }
})

const proof = proofRecord({ kind: 'self-fenced', level: -1, methods: [] })
const provenStatus: Partial<IncidentStatus> = { step: 'clear', revoked: revoked(), proof }
const provenAt = now - 5_000
const cleared = (changes: Partial<NodeSeen> = {}): Partial<NodeSeen> => ({ firstSeen: new Map([[key, longAgo], seenProof(provenAt)]), pods: podsOf([pod('db-0')]), ...changes })

const at = (changes: Partial<NodeSeen> = {}): NodeSeen => node({ ...silentLong, ...cleared(), ...changes })

test('each batch follows what was read live a moment ago, and any word of the node stops it', () => {
  const of = incident({ phase: 'Running', ...provenStatus }, { policy })
  assert.is(borneOut(recall(proof), of, at(), now), true)
  assert.is(borneOut(recall(proof), of, at({ readAt: now - 1_500 }), now), false, 'its Node was read too long ago')
  assert.is(borneOut(recall(proof), of, at({ lease: { askedAt: now - 1_500, readAt: now - 1_400, renewTime: 'then', unmovedSince: longAgo, moved: false } }), now), false, 'its Lease was')
  assert.is(doubtOf(recall(proof), of, at(), now), undefined)
  for (const spoken of [{ beat: beat({ at: provenAt + 1 }) }, { bootId: 'boot-2' }, { ready: { status: 'True' as const, postedAt: provenAt + 1, since: provenAt + 1, bootId: 'boot-1' } }]) {
    assert.ok(doubtOf(recall(proof), of, at(spoken), now) !== undefined)
    assert.is(borneOut(recall(proof), of, at(spoken), now), false)
  }
})

test('what is proven is freed, out of service; and the fenced boot that answers shows it false', () => {
  const out = { key: 'node.kubernetes.io/out-of-service', value: 'holdfast', effect: 'NoSchedule' } as const
  const quarantine = { key: 'holdfast.dev/quarantine', value: 'holdfast', effect: 'NoSchedule' } as const
  assert.equal(deeds(done(cleared(), provenStatus)), ['taint'])
  assert.ok(done(cleared({ taints: [quarantine, out] }), provenStatus).some((one) => one.do === 'delete' && one.pods.length === 1))
  const answers = done(cleared({ taints: [quarantine, out], beat: beat({ answered: { issuedAt: now - 300, boot } }) }), provenStatus)
  assert.ok(answers.some((one) => one.do === 'void'))
  assert.not.ok(answers.some((one) => one.do === 'delete'))
})

test('heard once after it, which shows nothing false, and dead by all evidence again: it lapses, and its watchdog proves nothing more, whoever leads', () => {
  const quarantine = { key: 'holdfast.dev/quarantine', value: 'holdfast', effect: 'NoSchedule' } as const
  const since = new Map([[key, longAgo], seenProof(now - 70_000)])
  const again = cleared({ taints: [quarantine], beat: beat({ at: now - 60_000 }), firstSeen: since })
  assert.ok(done(again, provenStatus).some((one) => one.do === 'lapse' && /heard after it/.test(one.evidence)))
  assert.ok(done({ ...again, pods: podsOf([]) }, provenStatus).some((one) => one.do === 'lapse'), 'with nothing left to free as well: what runs nobody else would end')
  const { proof: _, ...without } = provenStatus
  const lapsed: Partial<IncidentStatus> = { ...without, step: 'power-management', voided: [{ proof, how: 'lapsed', at: 'then', evidence: 'the node was heard after it' }] }
  assert.equal(deeds(done(cleared({ taints: [quarantine] }), lapsed)), [], 'who has begun to lead since has not heard it')
})

test('cleared, it is waited for: nobody here switched it off, and nobody switches it on', () => {
  const quarantine = { key: 'holdfast.dev/quarantine', value: 'holdfast', effect: 'NoSchedule' } as const
  const actions = done(cleared({ taints: [quarantine] }), { ...provenStatus, step: 'recovery' })
  assert.not.ok(actions.some((one) => one.do === 'restore' || one.do === 'fence'))
  assert.ok(holds(actions).some((one) => one.startsWith('waiting-for-boot: its watchdog has reset it')))
})

test('a device that is found off proves it sooner, and needs no revocation', () => {
  assert.equal(deeds([...decide(three({ ...foundOffNode, record: record({ watchdog }) }, [incident({ phase: 'New' }, { policy })]), now, [policy])]), ['prove'])
})

test.run()
