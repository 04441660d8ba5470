// Two proofs of some volumes of one node, by different drivers' rules: the later one is joined to the earlier, and each part stands or
// falls by its own.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Action } from '../../core/action.ts'
import { decide } from '../../core/decide.ts'
import type { Incident, IncidentStatus, ProofRecord } from '../../core/incident.ts'
import type { LeaseSeen, Method, NodeSeen, PodSeen, PodVolume, Reading, Self } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { borneOut, doubtOf, extentOf, partsOf, recall, type Proof } from '../../core/proof.ts'
import { proved } from '../../core/timeline.ts'
import { quarantine } from './states.ts'
import { attempt, beat, boot, dead, incident, method as bmc, node, now, pod, podsOf, policy, proofRecord, reading, record, seenOrder, seenProof, self, three, volume } from './world.ts'

const test = suite('joined')

const [fabric, disk, other] = ['csi.example.com', 'disk.example.com', 'other.example.com']
const patient: Policy = { ...policy, powerAfter: 300_000 }
const fc: Method = { name: 'fc-off', agent: 'fc-switch', device: 'fc-1', digest: 'df', orderWithin: 30_000, statusWithin: 10_000, late: 60_000, isolates: [fabric] }
const port = (state: Reading['state'], at: number): Reading => {
  const { machine: _, ...rest } = reading(state, at)
  return { ...rest, method: 'fc-off', digest: 'df' }
}
const cut = attempt({ method: 'fc-off', agent: 'fc-switch', digest: 'df' })
const still: LeaseSeen = { askedAt: now - 500, readAt: now - 450, renewTime: 'x', unmovedSince: now - 60_000, moved: false }
const safe: Self = self({ safeDrivers: [disk, fabric] })

const isolated: ProofRecord = proofRecord({ kind: 'isolated', at: 'first', methods: ['fc-off'], digests: ['df'], evidence: [{ source: `CSIDriver ${fabric}`, word: 'its volumes are out of reach', at: 'first' }] })
const refusing: ProofRecord = proofRecord({ kind: 'safe-detach', at: 'first', level: -1, methods: [], digests: [], evidence: [{ source: `CSIDriver ${disk}`, word: 'refuses to detach what is in use', at: 'first' }] })
const both: ProofRecord = { ...isolated, joined: { kind: 'safe-detach', at: 'then', evidence: refusing.evidence } }
const cutOff: Partial<IncidentStatus> = { phase: 'Running', step: 'isolation', attempts: [cut] }

/** Cut off six seconds ago, read back twice, its power on; its kubelet's word lost, and all of that read just now. */
const silent: Partial<NodeSeen> = {
  ...dead, beat: beat({ at: now - 90_000 }), ready: { status: 'Unknown', postedAt: now - 95_000, since: now - 40_000, bootId: 'boot-1' }, readAt: now - 300, lease: still, taints: [quarantine],
  path: { levels: [[fc], [bmc]], faults: [] }, record: record({ paths: ['fc-off df', 'bmc-off d1'].map((one) => ({ method: one.split(' ')[0] ?? '', digest: one.split(' ')[1] ?? '', boot, state: 'verified', identity: 'proven', at: 'then', evidence: 'on' })) }),
  readings: [port('off', now - 2_300), port('off', now - 900), reading('on', now - 900)], volumes: [volume('pv-f', { driver: fabric }), volume('pv-d', { driver: disk }), volume('pv-o', { driver: other })],
  firstSeen: new Map([...seenOrder(now - 6_000, now - 4_000), seenProof(now - 3_000, 0, 'isolated'), seenProof(now - 2_000, 0, 'safe-detach')]),
}

const of = (changes: Partial<NodeSeen>, status: Partial<IncidentStatus>, own: Self = safe, more: Partial<Incident> = {}): readonly Action[] =>
  decide(three({ ...silent, ...changes }, [incident({ ...cutOff, ...status }, { policy: patient, ...more })], own), now, [patient]).filter((action) => action.node === 'node-2')
const made = (actions: readonly Action[]): readonly Proof[] => actions.flatMap((action) => (action.do === 'prove' ? [action.proof] : []))
const deleted = (actions: readonly Action[]): readonly string[] => actions.flatMap((action) => (action.do === 'delete' ? action.pods.map(({ name }) => name) : []))
const holds = (actions: readonly Action[], reason: string): readonly string[] => actions.flatMap((action) => (action.do === 'hold' && action.because === reason ? [action.detail] : []))
const drivers = (proof: Proof | undefined) => proof && [proof.kind, proof.joined?.kind, extentOf(proof)]
const whole = ['isolated', 'safe-detach', { drivers: [fabric, disk], outOfReach: [fabric] }]

test('a driver that refuses is joined to what is isolated, while its power is left on', () => {
  const [proof] = made(of({}, { step: 'clear', proof: isolated }))
  assert.equal(drivers(proof), whole)
  assert.equal(proof?.evidence, isolated.evidence, 'what stood stays')
})

test('what is isolated is joined to a driver that refuses', () => {
  const [proof] = made(of({}, { step: 'clear', proof: refusing }))
  assert.equal(drivers(proof), whole)
  assert.equal([proof?.methods, proof?.level], [['fc-off'], 0])
})

for (const [why, actions] of [
  ['they are joined already', of({}, { step: 'clear', proof: both })],
  ['every driver that refuses is out of reach already', of({}, { step: 'clear', proof: isolated }, self({ safeDrivers: [fabric] }))],
  ['the node was heard', of({ beat: beat() }, { step: 'clear', proof: isolated })],
  ['its Lease moved', of({ lease: { ...still, moved: true, movedAfter: now - 5_000, unmovedSince: now - 4_000 } }, { step: 'clear', proof: isolated })],
  ['Ready is True', of({ ready: { status: 'True', postedAt: now - 95_000, since: 0, bootId: 'boot-1' } }, { step: 'clear', proof: isolated })],
  ['its power can go now', of({}, { step: 'clear', proof: isolated }, safe, { policy })],
  ['the API server has dropped it just now', of({ unkept: { at: now - 599_000, joined: 'node-2-abc-1' } }, { step: 'clear', proof: isolated })],
] as const) test(`nothing is joined if ${why}`, () => assert.equal(made(actions), []))

test('what the API server has dropped is tried again after a while, and of another incident at once', () => {
  for (const unkept of [{ at: now - 600_000, joined: 'node-2-abc-1' }, { at: now, joined: 'node-2-abc-0' }]) {
    assert.equal(made(of({ unkept }, { step: 'clear', proof: isolated })).map(drivers), [whole])
  }
})

test('a proof of the machine takes the place of both', () => {
  const off = attempt({ id: 'node-2-abc-1.2', level: 1 })
  const readings = [port('off', now - 900), reading('off', now - 2_300), reading('off', now - 900)]
  const [proof] = made(of({ readings, firstSeen: new Map([...silent.firstSeen ?? [], ...seenOrder(now - 4_000, now - 3_000, off.id)]) }, { step: 'clear', proof: both, attempts: [cut, off] }))
  assert.equal(drivers(proof), ['off', undefined, {}])
})

const bound = (name: string, driver: string, changes: Partial<PodVolume> = {}): PodVolume => ({ claim: `default/${name}`, is: 'bound', volume: name, driver, provisioner: '', shared: false, local: false, ...changes })
const onFabric = pod('fabric', { volumes: [bound('pv-f', fabric)] })
const onDisk = pod('disk', { volumes: [bound('pv-d', disk)] })
const onBoth = pod('both', { volumes: [bound('pv-f', fabric), bound('pv-d', disk)] })

const selection: readonly (readonly [string, PodSeen, string | undefined])[] = [
  ['on what is out of reach', onFabric, undefined], ['on what its driver refuses to detach', onDisk, undefined], ['with a volume of each', onBoth, undefined],
  ['with a third driver\'s volume beside', pod('p', { volumes: [bound('pv-f', fabric), bound('pv-o', other)] }), 'pv-o is neither out of the machine\'s reach nor of a driver that refuses to detach what is in use'],
  ['on a ReadWriteMany volume out of reach', pod('p', { volumes: [bound('pv-f', fabric, { shared: true })] }), undefined],
  ['on a ReadWriteMany volume of the driver that refuses', pod('p', { volumes: [bound('pv-d', disk, { shared: true })] }), 'pv-d is ReadWriteMany: others may write beside it'],
  ['on a volume of that driver that is not attached here', pod('p', { volumes: [bound('pv-x', disk)] }), 'pv-x is neither out of the machine\'s reach nor of a driver that refuses to detach what is in use'],
]
for (const [which, one, why] of selection) test(`a pod ${which} is ${why === undefined ? 'freed' : 'left alone'}`, () => {
  const actions = of({ pods: podsOf([one]), volumes: silent.volumes?.filter(({ volume: name }) => name !== 'pv-o') ?? [] }, { step: 'clear', proof: both })
  assert.equal(deleted(actions), why === undefined ? [one.name] : [])
  if (why !== undefined) assert.ok(holds(actions, 'partial').some((detail) => detail.includes(why)), holds(actions, 'partial').join())
})

const longAgo: Partial<NodeSeen> = { firstSeen: new Map([...seenOrder(now - 30_000, now - 28_000), seenProof(now - 25_000, 0, 'isolated'), seenProof(now - 20_000, 0, 'safe-detach')]) }
const trouble: readonly (readonly [string, Partial<NodeSeen>, readonly string[], RegExp])[] = [
  ['the switch reads on', { readings: [port('off', now - 900), port('on', now - 300), reading('on', now - 900)] }, ['disk'], /^nothing more is freed by isolated: fc-off reads on/],
  ['the switch is not configured as it was', { path: { levels: [[{ ...fc, digest: 'new' }], [bmc]], faults: [] } }, ['disk'], /not configured as it was/],
  ['kubelet has renewed its Lease', { ...longAgo, lease: { ...still, moved: true, movedAfter: now - 15_000, unmovedSince: now - 12_000 } }, ['fabric'], /^nothing more is freed by safe-detach: kubelet has renewed its Lease after it/],
  ['the kubelet port has answered', { ...longAgo, probe: { askedAt: now - 1_500, answeredAt: now - 1_400, word: 'silent', spokeAt: now - 12_000 } }, ['fabric'], /kubelet port has answered after it/],
]
for (const [why, changes, freed, says] of trouble) test(`${why}: what that part is of is freed no more, what the other is of is, and nobody with a volume of each`, () => {
  const actions = of({ pods: podsOf([onFabric, onDisk, onBoth]), ...changes }, { step: 'clear', proof: both })
  assert.equal(deleted(actions), freed)
  assert.ok([...holds(actions, 'proof-doubted'), ...holds(actions, 'config-invalid')].some((detail) => says.test(detail)), `${JSON.stringify(actions)}`)
})

test('both in doubt, nothing is freed', () => {
  const actions = of({ pods: podsOf([onFabric, onDisk, onBoth]), ...longAgo, readings: [port('off', now - 900), port('on', now - 300), reading('on', now - 900)], lease: { ...still, moved: true, movedAfter: now - 15_000, unmovedSince: now - 12_000 } }, { step: 'clear', proof: both })
  assert.equal([deleted(actions), holds(actions, 'proof-doubted')], [[], ['nothing more is freed: fc-off reads on; kubelet has renewed its Lease after it']])
})

test('before each batch each part is looked at by its own rule', () => {
  const one = incident({ ...cutOff, step: 'clear', proof: both })
  const bears = (changes: Partial<NodeSeen>) => borneOut(recall(both), one, node({ ...silent, ...changes }), now)
  assert.equal([bears({}), bears({ readings: [port('off', now - 2_300)] }), bears({ readAt: now - 1_500 }), bears({ lease: { ...still, askedAt: now - 1_500 } })], [true, false, false, false])
  const asks = of({ readings: [port('off', now - 3_000), port('off', now - 1_500)], readAt: now - 1_500, lease: { ...still, askedAt: now - 1_500 }, pods: podsOf([onFabric]) }, { step: 'clear', proof: both })
  assert.equal([deleted(asks), ['askDevice', 'readNode', 'readLease'].every((look) => asks.some((action) => action.do === look))], [[], true])
})

test('each part counts what was said since it was first seen, and not since the other was', () => {
  const spoke = node({ ...silent, probe: { askedAt: now - 2_600, answeredAt: now - 2_500, word: 'silent', spokeAt: now - 2_500 } })
  assert.is(doubtOf(recall(both), incident({ ...cutOff, proof: both }), spoke, now), undefined, 'it was said before the driver\'s part was made')
})

test('the parts of it are what was joined, and a proof that was not has one', () => {
  assert.equal(partsOf(recall(both)).map(({ kind, methods }) => [kind, methods]), [['isolated', ['fc-off']], ['safe-detach', []]])
  assert.is(partsOf(recall(isolated)).length, 1)
})

const written = (proof: Proof | undefined, before: ProofRecord) => proof && proved(proof, 'now')({ ...incident().status, proof: before }).proof

test('the record keeps when each part was made', () => {
  const [proof] = made(of({}, { step: 'clear', proof: isolated }))
  const [turned] = made(of({}, { step: 'clear', proof: refusing }))
  assert.equal([written(proof, isolated)?.at, written(proof, isolated)?.joined?.at], ['first', 'now'])
  assert.equal([written(turned, refusing)?.at, written(turned, refusing)?.joined?.at], ['now', 'first'])
})

test('its switch falls silent for good: it lapses whole, and the driver\'s word proves its volumes anew', () => {
  const unknown = [port('unknown', now - 3_000), port('unknown', now - 2_000), port('unknown', now - 900)]
  const mute: Partial<NodeSeen> = { readings: [...unknown, reading('on', now - 900)], firstSeen: new Map([...silent.firstSeen ?? [], ['speechless fc-off df', now - 31_000]]), pods: podsOf([onFabric]) }
  assert.ok(of(mute, { step: 'clear', proof: both }).some((action) => action.do === 'lapse'))
  const after = of({ ...mute, volumes: silent.volumes ?? [] }, { step: 'power-management', voided: [{ proof: both, how: 'lapsed', at: 'then', evidence: 'mute' }], round: 1, phase: 'Error' })
  assert.equal(made(after).map(({ kind, joined }) => [kind, joined]), [['safe-detach', undefined]])
})

test.run()
