// "Non graceful node shutdown": which pods are chosen where nothing but the driver's own refusal keeps two writers apart, and how the
// node comes back.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Action } from '../../core/action.ts'
import { decide } from '../../core/decide.ts'
import type { Incident, IncidentStatus } from '../../core/incident.ts'
import type { NodeSeen, PodSeen, PodVolume, Self } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { quarantine } from './states.ts'
import { beat, dead, incident, node, now, orderedOff, pod, podsOf, policy, proofRecord, seen, seenProof, self, three, volume } from './world.ts'

const test = suite('safe-detach')

const driver = 'csi.example.com'
const safe: Self = self({ safeDrivers: [driver] })
const attached = [volume('pv-1'), volume('pv-2', { driver: 'other.example.com' })]

/** Dead by all evidence, no fence path, its kubelet's word lost, and all of that read just now. */
const mute: Partial<NodeSeen> = {
  ...dead, beat: beat({ at: now - 90_000 }), ready: { status: 'Unknown', postedAt: now - 95_000, since: now - 40_000, bootId: 'boot-1' }, path: { levels: [], faults: [] }, readings: [],
  readAt: now - 500, lease: { askedAt: now - 500, readAt: now - 450, renewTime: 'x', unmovedSince: now - 60_000, moved: false }, volumes: attached,
}

const of = (changes: Partial<NodeSeen> = {}, status: Partial<IncidentStatus> = {}, own: Self = safe, more: Partial<Incident> = {}): readonly Action[] =>
  decide(three({ ...mute, ...changes }, [incident(status, more)], own), now, [policy]).filter((action) => action.node === 'node-2')
const proofs = (actions: readonly Action[]) => actions.flatMap((action) => (action.do === 'prove' ? [action.proof] : []))
const holds = (actions: readonly Action[]): string[] => actions.flatMap((action) => (action.do === 'hold' ? [action.because] : []))
const does = (actions: readonly Action[], what: Action['do']): readonly Action[] => actions.filter((action) => action.do === what)

test('of a dead node that nothing proves off, a driver that refuses to detach what is in use is a proof of its volumes', () => {
  const [proof] = proofs(of())
  assert.equal([proof?.kind, proof?.methods], ['safe-detach', []])
  assert.equal(proof?.evidence.map(({ source, word }) => `${source}: ${word}`), [`CSIDriver ${driver}: refuses to detach what is in use`, 'Ready: Unknown', 'Lease: not renewed for a whole interval'])
  assert.equal(proofs(of({}, {}, self(), { policy: { ...policy, safeDetach: [driver] } })).length, 1, 'the policy may name it instead')
})

const none: readonly (readonly [string, readonly Action[]])[] = [
  ['no driver is known to refuse', of({}, {}, self())],
  ['no volume of such a driver is attached', of({ volumes: attached.slice(1) })],
  ['Ready is True', of({ ready: { status: 'True', postedAt: now - 95_000, since: 0, bootId: 'boot-1' } })],
  ['its Lease moved', of({ lease: { askedAt: now - 500, readAt: now - 450, renewTime: 'y', unmovedSince: now - 5_000, moved: true, movedAfter: now - 6_000 } })],
  ['its Node tells of another boot', of({ bootId: 'boot-7' })],
  ['it was not read live', of({ readAt: now - 6_000 })],
  ['a device can be ordered, which proves more', of({ ...orderedOff, path: node().path })],
]
for (const [why, actions] of none) test(`no such proof if ${why}`, () => assert.equal(proofs(actions).filter(({ kind }) => kind === 'safe-detach'), []))

test('no such proof in a storm: what fell silent together may be well', () => {
  const others = ['node-1', 'node-3', 'node-4'].map((name) => node({ ...mute, name, volumes: [] }))
  const actions = decide(seen([...others, node(mute), node({ name: 'node-5' })], [incident()], safe), now, [policy])
  assert.equal([proofs(actions), actions.some((action) => action.do === 'hold' && action.because === 'storm')], [[], true])
})

const bound = (name: string, changes: Partial<PodVolume> = {}): PodVolume => ({ claim: `default/${name}`, is: 'bound', volume: name, driver, provisioner: '', shared: false, local: false, ...changes })
const proof = proofRecord({ kind: 'safe-detach', level: -1, methods: [], evidence: [{ source: `CSIDriver ${driver}`, word: 'refuses', at: 'then' }] })
const running: Partial<IncidentStatus> = { phase: 'Running', step: 'clear', proof }
const proven: Partial<NodeSeen> = { taints: [quarantine], firstSeen: new Map([seenProof(now - 20_000, 0, 'safe-detach')]), readAt: now - 300 }

const selection: readonly (readonly [string, PodSeen, boolean])[] = [
  ['all of whose volumes are of such a driver', pod('p', { volumes: [bound('pv-1')] }), true],
  ['with another volume beside', pod('p', { volumes: [bound('pv-1'), bound('pv-2', { driver: 'other.example.com' })] }), false],
  ['without a volume', pod('p'), false],
  ['on a ReadWriteMany volume', pod('p', { volumes: [bound('pv-1', { shared: true })] }), false],
  ['with a network volume of its own beside', pod('p', { volumes: [bound('pv-1')], beside: 'nfs' }), false],
  ['whose volume is not attached here', pod('p', { volumes: [bound('pv-9')] }), false],
  ['whose volume could not be read', pod('p', { volumes: [bound('', { is: 'unread', driver: '' })] }), false],
]
for (const [which, one, chosen] of selection) test(`a pod ${which} is ${chosen ? 'freed' : 'left alone'}`, () => {
  const actions = of({ ...proven, pods: podsOf([one]) }, running)
  assert.is(does(actions, 'delete').length, chosen ? 1 : 0)
  assert.equal(holds(actions).includes('partial'), !chosen)
})

test('the quarantine stands before the first pod goes, and out-of-service never does', () => {
  const actions = of({ ...proven, taints: [], pods: podsOf([pod('p', { volumes: [bound('pv-1')] })]) }, running)
  const taints = actions.flatMap((action) => (action.do === 'taint' ? [action.outOfService] : []))
  assert.equal([taints, does(actions, 'delete')], [[false], []])
})

test('then exactly the freed volumes are struck, and none of another driver, whatever the record says', () => {
  const fates = attached.map(({ attachment, volume: name, driver: of_ }) => ({ attachment, volume: name, driver: of_, fate: 'attached' as const }))
  const actions = of({ ...proven, pods: podsOf([]), inUse: new Set(attached.map((one) => one.attachment)) }, { ...running, volumes: fates })
  assert.equal(actions.flatMap((action) => (action.do === 'detach' ? action.volumes.map((one) => one.volume) : [])), ['pv-1'])
})

test('a driver that refuses keeps its volume, and the hold quotes it', () => {
  const refusing = [volume('pv-1', { deleting: true, error: 'volume is in use by node-2' })]
  const actions = of({ ...proven, pods: podsOf([]), volumes: refusing }, { ...running, volumes: [{ attachment: 'csi-pv-1', volume: 'pv-1', driver, fate: 'attached' }] })
  assert.match(actions.flatMap((action) => (action.do === 'hold' && action.because === 'waiting-for-volumes' ? [action.detail] : [])).join(), /pv-1 \(volume is in use by node-2\)/)
})

test('nothing is switched on, and the incident waits for the node or for more proof', () => {
  const actions = of({ ...proven, pods: podsOf([]), volumes: [] }, running)
  assert.equal([does(actions, 'untaint'), does(actions, 'restore'), holds(actions).includes('partial')], [[], [], true])
})

test('a proof of the whole machine takes its place once there is one', () => {
  const actions = of({ ...orderedOff, taints: [quarantine], pods: podsOf([]), path: node().path, firstSeen: new Map([...orderedOff.firstSeen ?? [], seenProof(now - 20_000, 0, 'safe-detach')]) },
    { ...running, attempts: [{ id: 'node-2-abc-1.1', round: 1, level: 0, method: 'bmc-off', agent: 'redfish', action: 'off', replica: 'r', term: 3, startedAt: 'then', endedAt: 'then', within: 30_000, late: 60_000, result: 'off' }] })
  assert.equal(proofs(actions).map(({ kind }) => kind), ['off'])
})

const back = (changes: Partial<NodeSeen> = {}): Partial<NodeSeen> => ({
  ...proven, beat: beat({ clean: { at: now - 1_000, report: { state: 'clean' } } }), ready: { status: 'True', postedAt: now - 500, since: now - 500, bootId: 'boot-1' }, pods: podsOf([]), volumes: [],
  firstSeen: new Map([seenProof(now - 20_000, 0, 'safe-detach'), ['gone node.kubernetes.io/out-of-service', now - 90_000]]), ...changes,
})
const freedOne: Partial<IncidentStatus> = { ...running, volumes: [{ attachment: 'csi-pv-1', volume: 'pv-1', driver, fate: 'attached' }] }
const lifted = (actions: readonly Action[]): string[] => actions.flatMap((action) => (action.do === 'untaint' ? [action.key] : []))

test('a partitioned node comes back in the same boot: nothing is shown false, and the quarantine goes once it is clean and detached', () => {
  const still = of(back({ volumes: [volume('pv-1', { deleting: true })] }), freedOne)
  assert.equal([does(still, 'void'), does(still, 'challenge'), lifted(still), holds(still)], [[], [], [], ['waiting-for-volumes']])
  const dirty = of(back({ beat: beat({ clean: { at: now - 1_000, report: { state: 'dirty', leftovers: [{ kind: 'mount', path: '/var/lib/kubelet/x' }] } } }) }), freedOne)
  assert.equal([lifted(dirty), holds(dirty)], [[], ['waiting-for-clean']])
  assert.equal(lifted(of(back(), freedOne)), [quarantine.key])
})

test('while it is silent, and its port answers, nothing more is freed', () => {
  const actions = of({ ...proven, pods: podsOf([pod('p', { volumes: [bound('pv-1')] })]), probe: { askedAt: now - 20_000, answeredAt: now - 19_000, word: 'silent', spokeAt: now - 19_000 } }, running)
  assert.equal([does(actions, 'delete'), holds(actions).includes('proof-doubted')], [[], true])
})

test('heard after it, and dead by all evidence again: that is another silence, and another proof; with nothing left to free nobody needs one', () => {
  const back_ = { beat: beat({ at: now - 60_000 }), firstSeen: new Map([seenProof(now - 70_000, 0, 'safe-detach')]), ready: { status: 'Unknown', postedAt: now - 95_000, since: now - 40_000, bootId: 'boot-1' } } as const
  const left = { ...proven, ...back_, pods: podsOf([pod('p', { volumes: [bound('pv-1')] })]) }
  const actions = of(left, running)
  assert.equal([does(actions, 'delete'), does(actions, 'lapse').length], [[], 1])
  const freedAll = of({ ...left, pods: podsOf([]), volumes: [] }, running)
  assert.equal([does(freedAll, 'lapse'), holds(freedAll).includes('partial')], [[], true])
  const lapsed: Partial<IncidentStatus> = { phase: 'Running', step: 'power-management', voided: [{ proof, how: 'lapsed', at: 'then', evidence: 'heard' }] }
  assert.equal(proofs(of(left, lapsed)).map(({ kind }) => kind), ['safe-detach'])
})

test('a driver that nobody calls safe to detach any more frees nothing more, and what the others refuse is proven anew', () => {
  const own = pod('p', { volumes: [bound('pv-1')] })
  const other = pod('q', { volumes: [bound('pv-2', { driver: 'other.example.com' })] })
  const taken = of({ ...proven, pods: podsOf([own]) }, running, self())
  assert.equal([does(taken, 'delete'), does(taken, 'lapse').length], [[], 1])
  const left = { ...safe, safeDrivers: ['other.example.com'] }
  const both = proofRecord({ ...proof, evidence: [driver, 'other.example.com'].map((name) => ({ source: `CSIDriver ${name}`, word: 'refuses', at: 'then' })) })
  assert.equal(does(of({ ...proven, pods: podsOf([own, other]) }, { ...running, proof: both }, left), 'delete'), [])
  const [anew] = proofs(of({ ...proven, pods: podsOf([own, other]) }, { phase: 'Running', step: 'power-management', voided: [{ proof: both, how: 'lapsed', at: 'then', evidence: '' }] }, left))
  assert.equal(anew?.evidence.map(({ source }) => source).slice(0, 1), ['CSIDriver other.example.com'])
})

const doNothing: Policy = { ...policy, nodeDownPodDeletionPolicy: 'DoNothing', volumeAttachmentRecovery: 'immediate' }
test('under DoNothing no pod is deleted, and a replaced one lets go of its volumes', () => {
  const shell = pod('shell', { owner: 'ReplicaSet', terminating: true, volumes: [bound('pv-1')] })
  const actions = of({ ...proven, pods: podsOf([shell, pod('db-0', { volumes: [bound('pv-1')] })]) }, running, safe, { policy: doNothing })
  assert.equal([does(actions, 'delete'), actions.flatMap((action) => (action.do === 'detach' ? action.pods.map((one) => one.name) : []))], [[], ['shell']])
})

test.run()
