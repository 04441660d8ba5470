// "Node Failure Recovery with ForceEviction Taint": its three scenarios as far as the core goes, and what the word is worth.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { cloudShutdownKey, doubtOfWord, evictedByKey, forceEvictionKey } from '../../core/acknowledge.ts'
import type { Action } from '../../core/action.ts'
import { decide } from '../../core/decide.ts'
import type { Incident, IncidentStatus } from '../../core/incident.ts'
import { evictionKey, type NodeSeen, type PodSeen, type Taint } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { quarantine } from './states.ts'
import { beat, boot, dead, incident, newBoot, node, now, pod, podsOf, policy, proofRecord, reading, seenProof, silent, three, volume } from './world.ts'

const test = suite('force-eviction')

const evicted: Taint = { key: forceEvictionKey, effect: 'NoSchedule' }
const shut: Taint = { key: cloudShutdownKey, effect: 'NoSchedule' }
const saidAt = now - 20_000
const lost = { status: 'Unknown', postedAt: now - 95_000, since: now - 40_000, bootId: 'boot-1' } as const

/** Silent for long, its devices answer nothing, and somebody says by the taint that it is off. */
const sworn: Partial<NodeSeen> = {
  ...dead, beat: beat({ at: now - 90_000 }), ready: lost, taints: [evicted], annotations: { [evictedByKey]: 'ada' }, firstSeen: new Map([[evictionKey, saidAt]]),
  readings: [reading('unknown', now - 1_000)], readAt: now - 500, lease: { askedAt: now - 500, readAt: now - 450, renewTime: 'x', unmovedSince: now - 60_000, moved: false },
}

const of = (changes: Partial<NodeSeen>, incidents: readonly Incident[] = [], wanted: Partial<Policy> = {}): readonly Action[] =>
  decide(three({ ...sworn, ...changes }, incidents), now, [{ ...policy, ...wanted }]).filter((action) => action.node === 'node-2')
const within = (changes: Partial<NodeSeen> = {}, status: Partial<IncidentStatus> = {}, more: Partial<Incident> = {}): readonly Action[] => of(changes, [incident(status, more)])
const proofs = (actions: readonly Action[]) => actions.flatMap((action) => (action.do === 'prove' ? [action.proof] : []))
const lifted = (actions: readonly Action[]): string[] => actions.flatMap((action) => (action.do === 'untaint' ? [action.key] : []))
const why = (actions: readonly Action[]): string => actions.flatMap((action) => (action.do === 'hold' && action.because === 'unvouched' ? [action.detail] : [])).join()
const ends = (actions: readonly Action[]): string[] => actions.flatMap((action) => (action.do === 'untaint' ? [action.key] : action.do === 'close' ? [action.outcome] : []))
const opens = (actions: readonly Action[]): string[] => actions.flatMap((action) => (action.do === 'open' ? [action.cause] : []))

test('a silent node that somebody says is off gets an incident, before anything else calls it dead', () => {
  const { probe: _probe, witnesses: _witnesses, ...suspected } = { ...sworn, witnesses: [] }
  assert.equal(opens(decide(three({ ...suspected, beat: beat({ at: now - 20_000 }), lease: { askedAt: now - 500, readAt: now - 450, renewTime: 'x', unmovedSince: now - 5_000, moved: false } }), now, [policy])), ['by-word'])
  assert.equal(opens(of({})), ['silence'])
})

test('scenario 1: Ready is lost and nothing was heard since: the word is a proof with a name on it', () => {
  const [proof] = proofs(within())
  assert.equal([proof?.kind, proof?.boot, proof?.evidence[0]?.source], ['vouched', boot, `${forceEvictionKey} by ada`])
})

const refused: readonly (readonly [string, Partial<NodeSeen>, RegExp])[] = [
  ['of nobody', { annotations: {} }, /nobody is named who set holdfast\.dev\/force-eviction/],
  ['that a device contradicts', { readings: [reading('on', now - 1_000)] }, /bmc-off says on/],
  ['while Ready is True from before it', { ready: { ...lost, status: 'True' } }, /Ready has not left True/],
  ['after which its Lease was renewed', { lease: { askedAt: now - 500, readAt: now - 450, renewTime: 'y', unmovedSince: now - 15_000, moved: true, movedAfter: saidAt } }, /renewed its Lease|silent/],
  ['that stood there when this replica began', { firstSeen: new Map([[evictionKey, -Infinity]]) }, /nobody here knows what was heard after it/],
  ['while the Node was not read live', { readAt: now - 6_000 }, /not read just now/],
]
for (const [which, changes, says] of refused) test(`a word ${which} is no proof, and says why; the taint stays`, () => {
  const actions = within(changes)
  assert.equal([proofs(actions), lifted(actions)], [[], []])
  assert.match(why(actions), says)
})

test('scenario 3: Ready was posted after the taint and before anything was freed: the taint is taken off, within an incident and without', () => {
  const ready = { ready: { status: 'True', postedAt: saidAt + 1, since: saidAt + 1, bootId: 'boot-1' } } as const
  assert.equal(lifted(within(ready)), [forceEvictionKey])
  assert.equal(lifted(of({ ...ready, beat: beat() })), [forceEvictionKey], 'the node beats, and no incident is open')
  assert.equal(lifted(of({ beat: beat() })), [], 'its agent beats, and its kubelet is lost')
  const before = { ready: { ...lost, status: 'True' } } as const
  assert.equal(lifted(of({ ...before, beat: beat() })), [forceEvictionKey], 'a beat after it is enough')
  assert.equal(lifted(of({ ...before, beat: beat({ at: now - 1_000 }), firstSeen: new Map([[evictionKey, now - 900]]) })), [], 'it may have died just before')
})

const proof = proofRecord({ kind: 'vouched', level: -1, methods: [], evidence: [{ source: `${forceEvictionKey} by ada`, word: 'off', at: 'then' }] })
const clearing = { phase: 'Running', step: 'clear', proof } as const
const pods = [pod('db-0'), pod('tolerant', { toleratesEviction: true })]
const cleared: Partial<NodeSeen> = { taints: [evicted, quarantine], pods: podsOf(pods), volumes: [volume('pv-1')], firstSeen: new Map([[evictionKey, saidAt], seenProof(now - 2_000)]) }

test('pods that do not tolerate the taint are freed, without out-of-service, which would sweep the others', () => {
  const actions = within(cleared, clearing)
  assert.equal(actions.flatMap((action) => (action.do === 'delete' ? action.pods.map((one: PodSeen) => one.name) : [])), ['db-0'])
  assert.equal(actions.filter((action) => action.do === 'taint'), [])
})

test('while pods are being freed the taint is never taken off, whatever Ready says: nothing more is freed, that is all', () => {
  const actions = within({ ...cleared, ready: { status: 'True', postedAt: now - 500, since: now - 500, bootId: 'boot-1' } }, { ...clearing, pods: [{ namespace: 'default', name: 'db-0', uid: 'uid-db-0', fate: 'freed' }] })
  assert.equal([lifted(actions), actions.filter((action) => action.do === 'delete')], [[], []])
})

test('nor once that proof has lapsed, since something was freed by it', () => {
  const ready = { status: 'True', postedAt: now - 10_000, since: now - 10_000, bootId: 'boot-1' } as const
  const lapsed: Partial<IncidentStatus> = { phase: 'Running', step: 'power-management', voided: [{ proof, how: 'lapsed', at: 'then', evidence: 'Ready has not left True' }] }
  assert.equal(lifted(within({ ...cleared, ready, beat: beat({ at: now - 90_000 }) }, lapsed)), [])
})

test('a word that is taken back in the middle stops the clear', () => {
  const actions = within({ ...cleared, taints: [quarantine] }, clearing)
  assert.equal(actions.filter((action) => action.do === 'delete'), [])
  assert.match(actions.flatMap((action) => (action.do === 'hold' ? [action.detail] : [])).join(), /nobody says any more that the machine is off/)
})

test('scenario 1 and 2, the end: once the node is back and clean the taint goes, and only then the quarantine', () => {
  const back: Partial<NodeSeen> = {
    beat: beat({ boot: newBoot, since: now - 10_000, clean: { at: now - 1_000, report: { state: 'clean' } } }), bootId: 'boot-2', ready: { status: 'True', postedAt: now - 9_000, since: now - 9_000, bootId: 'boot-2' },
    pods: podsOf([]), readings: [], firstSeen: new Map([[evictionKey, saidAt], seenProof(now - 60_000), ['gone node.kubernetes.io/out-of-service', now - 90_000]]),
  }
  assert.equal(lifted(within({ ...back, taints: [evicted, quarantine] }, { ...clearing, step: 'recovery' })), [forceEvictionKey])
  assert.equal(lifted(within({ ...back, taints: [quarantine] }, { ...clearing, step: 'recovery' })), [quarantine.key])
  const dirty = { ...back, beat: beat({ boot: newBoot, since: now - 10_000, clean: { at: now - 1_000, report: { state: 'dirty', leftovers: [{ kind: 'mount', path: '/x' }] } } }) } as Partial<NodeSeen>
  assert.equal(lifted(within({ ...dirty, taints: [evicted, quarantine] }, { ...clearing, step: 'recovery' })), [], 'not before it is clean')
})

test('its next boot was heard and is dead as well: the word goes before the next incident, of which it says nothing; one that was said since stays', () => {
  const fell: Partial<NodeSeen> = { taints: [evicted, quarantine], bootId: 'boot-2', beat: beat({ boot: newBoot, since: now - 40_000, at: now - 30_000 }), ready: { ...lost, postedAt: now - 31_000, bootId: 'boot-2' } }
  const since = (at: number) => ({ ...fell, firstSeen: new Map([[evictionKey, at], seenProof(now - 80_000)]) })
  const ended: readonly (readonly [Partial<IncidentStatus>, string])[] = [[{ ...clearing, step: 'recovery' }, 'Recovered'], [{ phase: 'Done', step: 'recovery' }, 'Withdrawn']]
  for (const [status, outcome] of ended) {
    assert.equal(ends(within(since(now - 90_000), status)), [forceEvictionKey])
    assert.equal(ends(within(since(now - 20_000), status)), [outcome])
    assert.equal(ends(within({ ...since(now - 90_000), taints: [quarantine] }, status)), [outcome])
  }
})

test('the cloud provider\'s taint counts where the policy trusts it and a device agrees', () => {
  const trusting: Partial<Incident> = { policy: { ...policy, cloudShutdown: 'trust' } }
  const off = { taints: [shut], readings: [reading('off', now - 1_000)] }
  assert.is(proofs(within(off, {}, trusting))[0]?.evidence[0]?.source, `${cloudShutdownKey} by the cloud controller`)
  assert.match(why(within({ ...off, readings: [reading('unknown', now - 1_000)] }, {}, trusting)), /no device of the node says off too/)
  const stood = node({ ...sworn, ...off, beat: undefined, firstSeen: new Map([[evictionKey, -Infinity]]) })
  assert.is(doubtOfWord(incident({}, trusting), stood, now), undefined, 'its device says so now, whoever began when')
  assert.equal([proofs(within(off)), why(within(off))], [[], ''], 'not by itself')
})

test('on a node that is merely silent for a moment nothing follows from a cloud provider\'s taint', () => {
  assert.equal(opens(of({ ...silent, taints: [shut], witnesses: [], probe: { askedAt: 0, answeredAt: 0, word: 'silent' } })), [])
})

test.run()
