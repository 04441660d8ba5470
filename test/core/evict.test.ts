// Before a node that answers is ordered off because a person wants it, its pods are asked to go in good order, where the policy gives
// them time.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Action } from '../../core/action.ts'
import { decide } from '../../core/decide.ts'
import type { Incident, IncidentStatus } from '../../core/incident.ts'
import { evictedKey, type EvictionSeen, type NodeSeen, type PodSeen, type Self } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { evicting, evictionOver, proved, withdrawn } from '../../core/timeline.ts'
import { recall } from '../../core/proof.ts'
import { quarantine } from './states.ts'
import { attempt, beat, dead, incident, now, orderedOff, pod, podsOf, policy, proofRecord, reading, self, silent, three } from './world.ts'

const test = suite('evict')

const patient: Policy = { ...policy, evictWithin: 60_000 }
const well: Partial<NodeSeen> = { beat: beat(), taints: [quarantine], readings: [reading('on', now - 900)] }
const began: Partial<IncidentStatus> = { phase: 'New', eviction: { since: 'then' } }
const since = (at: number): Partial<NodeSeen> => ({ firstSeen: new Map([[evictedKey('node-2-abc-1'), at]]) })
const says = 'The disruption budget web needs 2 healthy pods and has 2 currently'
const noes = (uid: string, askedAt: number, by: 'budget' | 'server' = 'budget'): Partial<NodeSeen> => ({ evictions: new Map<string, EvictionSeen>([[uid, { askedAt, refused: { by, says } }]]) })

function of(node: Partial<NodeSeen>, status: Partial<IncidentStatus> = {}, changes: Partial<Incident> = {}, own: Self = self()): readonly Action[] {
  return decide(three(node, [incident(status, { cause: 'by-hand', policy: patient, ...changes })], own), now, [patient]).filter((action) => action.node === 'node-2')
}
const deeds = (actions: readonly Action[]): readonly string[] => actions.flatMap((action) => {
  if (action.do === 'evict') return [`evict ${action.pods.map(({ name }) => name).join(' ')}`.trim()]
  return ['quarantine', 'taint', 'fence', 'endEviction', 'withdraw', 'prove', 'delete'].includes(action.do) ? [action.do] : []
})
const holds = (actions: readonly Action[]): readonly string[] => actions.flatMap((action) => (action.do === 'hold' ? [action.because] : []))
const because = (actions: readonly Action[]): string => actions.flatMap((action) => (action.do === 'endEviction' ? [action.because] : [])).join()
const sentence = (actions: readonly Action[], reason: string): string => actions.flatMap((action) => (action.do === 'hold' && action.because === reason ? [`${action.detail}. Lifted by: ${action.lifts}`] : [])).join()
const pods = (...items: PodSeen[]): Partial<NodeSeen> => ({ pods: podsOf(items) })

test('first their time begins, then come the quarantine and the list of its pods, then they are asked, and no order is given', () => {
  assert.equal(deeds(of({ ...well, taints: [] })), ['evict', 'taint'])
  assert.equal(deeds(of({ ...well, taints: [] }, began)), ['taint'])
  assert.ok(of(well, began).some((action) => action.do === 'listPods'))
  assert.equal(deeds(of({ ...well, ...pods(pod('web-0'), pod('web-1')) })), ['evict web-0 web-1'])
})

for (const [what, changes, sayings] of [
  ['a quarantine that the API server never takes', { taints: [] }, 'its quarantine does not stand yet, and no pod of node-2 is asked to go. Lifted by: the quarantine, another 60.0 s over, or spec.abort'],
  ['a list of its pods that never comes', {}, 'no fresh list of its pods was received, and no pod of node-2 is asked to go. Lifted by: a list of them, another 60.0 s over, or spec.abort'],
] as const) {
  test(`${what} is a hold, and their time goes on to its end`, () => {
    assert.is(sentence(of({ ...well, ...changes }), 'evicting'), sayings)
    assert.ok(deeds(of({ ...well, ...changes })).includes('evict'), 'it begins')
    const late = of({ ...well, ...changes, ...since(now - 60_000) }, began)
    assert.equal([deeds(late), because(late)], [['endEviction'], 'evictWithin (60.0 s) is over'])
  })
}

for (const [why, changes, status, cause] of [
  ['the policy gives them no time', {}, {}, { policy }],
  ['nobody asked for it: the node is dead', dead, {}, { cause: 'silence' }],
  ['their time is over on the record', {}, { eviction: { since: 'then', over: { at: 'then', because: 'gone' } } }, {}],
  ['there is none to go', pods(pod('agent', { exempt: 'a DaemonSet pod belongs to its node' }), pod('old', { phase: 'Succeeded' })), {}, {}],
] as const) {
  test(`it is ordered off at once: ${why}`, () => {
    assert.equal(deeds(of({ ...well, ...pods(pod('web-0')), ...changes }, status, cause)), ['fence'])
  })
}

test('only what the policy would free is asked, and nobody who would be back at once', () => {
  const items = pods(pod('web-0'), pod('api', { owner: 'ReplicaSet' }), pod('job', { owner: 'Job' }), pod('guest', { tolerates: true }), pod('disk', { volumes: [{ claim: 'default/d', is: 'bound', volume: 'pv', driver: '', provisioner: '', shared: false, local: true }] }))
  assert.equal(deeds(of({ ...well, ...items }, {}, { policy: { ...patient, nodeDownPodDeletionPolicy: 'DeleteStatefulSetPod' } })), ['evict web-0'])
  assert.equal(deeds(of({ ...well, ...items }, {}, { policy: { ...patient, onlyTerminating: true } })), ['evict web-0 api job'], 'evicted, they are terminating')
})

test('no more at once than the rate allows', () => {
  assert.equal(deeds(of({ ...well, ...pods(pod('web-0'), pod('web-1')) }, {}, {}, self({ podBudget: 1 }))), ['evict web-0'])
})

test('a budget that says no is a hold with its reason, and the pod is asked again five seconds later', () => {
  const refused = of({ ...well, ...since(now - 10_000), ...pods(pod('web-0')), ...noes('uid-web-0', now - 4_900) }, began)
  assert.equal([deeds(refused), holds(refused)], [[], ['disruption-budget']])
  assert.is(sentence(refused, 'disruption-budget'), `1 pods may not go yet: default/web-0 (${says}). Lifted by: more of them healthy elsewhere, another budget, 50.0 s more over, the node falling silent, or spec.abort`)
  assert.equal(deeds(of({ ...well, ...since(now - 10_000), ...pods(pod('web-0')), ...noes('uid-web-0', now - 5_000) }, began)), ['evict web-0'])
})

test('what is going is waited for; what an API server refuses for another reason is named', () => {
  const going = of({ ...well, ...since(now - 10_000), ...pods(pod('web-0', { terminating: true })) }, began)
  assert.equal([deeds(going), holds(going)], [[], ['evicting']])
  const odd = of({ ...well, ...since(now - 10_000), ...pods(pod('web-0')), ...noes('uid-web-0', now - 100, 'server') }, began)
  assert.equal([deeds(odd), holds(odd)], [[], ['evicting']])
  assert.match(sentence(odd, 'evicting'), /web-0 \(The disruption budget/)
})

test('once all have gone, or their time is over, that is written, and the next tick orders', () => {
  const gone = of({ ...well, ...since(now - 10_000), ...pods() }, began)
  assert.equal([deeds(gone), because(gone)], [['endEviction'], 'all of its pods that were to go have gone'])
  const late = of({ ...well, ...since(now - 60_000), ...pods(pod('web-0')), ...noes('uid-web-0', now - 1_000) }, began)
  assert.equal([deeds(late), because(late)], [['endEviction'], `evictWithin (60.0 s) is over, and 1 pods are still there: default/web-0 (${says})`])
})

test('a node that falls silent is asked nothing; dead, no budget can be kept, and that is written', () => {
  const quiet = of({ ...well, ...silent, ...since(now - 10_000), ...pods(pod('web-0')) }, began)
  assert.equal([deeds(quiet), holds(quiet)], [[], ['evicting']])
  for (const status of [{}, began]) {
    const over = of({ ...well, ...dead, ...since(now - 10_000), ...pods(pod('web-0')) }, status)
    assert.equal([deeds(over), because(over)], [['endEviction'], 'the node does not answer: a budget cannot be kept by a dead node'])
  }
})

test('of a node that is silent and not dead the time begins all the same, so that it ends', () => {
  assert.equal(deeds(of({ ...well, ...silent, ...pods(pod('web-0')) })), ['evict'])
  assert.equal(deeds(of({ ...well, ...silent, ...since(now - 60_000), ...pods(pod('web-0')) }, began)), ['endEviction'])
})

test('an agent that is ill does not keep pods from going: kubelet ends them', () => {
  const ill: Partial<NodeSeen> = { beat: beat({ at: now - 20_000 }), probe: { askedAt: now - 1_000, answeredAt: now - 900, word: 'answered', spokeAt: now - 900 } }
  assert.equal(deeds(of({ ...well, ...ill, ...pods(pod('web-0')) })), ['evict web-0'])
  assert.equal(deeds(of({ ...well, ...ill, ...pods(pod('web-0')), ready: { status: 'False', postedAt: now - 900, since: now - 5_000, bootId: 'boot-1' } }, {})), ['evict'], 'nobody there would')
})

test('an abort ends it before anything was ordered; what was ordered before is not gone back behind', () => {
  assert.equal(deeds(of({ ...well, ...since(now - 10_000), ...pods(pod('web-0')) }, began, { abort: true })), ['withdraw'])
  assert.ok(!deeds(of({ ...orderedOff, taints: [quarantine], ...pods(pod('web-0')) }, { phase: 'Running', step: 'power-management', attempts: [attempt()] })).some((deed) => deed.startsWith('evict')))
})

test('found off while they go, it is proven, and the record says that their time is over', () => {
  const status = proved(recall(proofRecord({ kind: 'found-off' })), 'now')({ ...incident().status, ...began })
  assert.match(status.eviction?.over?.because ?? '', /proven unable to write: a budget cannot be kept by a dead node/)
  assert.equal(withdrawn('a person aborted it', 'now')({ ...incident().status, ...began }).eviction?.over?.because, 'the incident is withdrawn')
  assert.is(withdrawn('a person aborted it', 'now')(incident().status).eviction, undefined)
})

test('the record names who was asked once, and when their time began', () => {
  const first = evicting([pod('web-0')], 'then')(incident().status)
  assert.equal([first.eviction, first.pods.map(({ name, fate }) => `${name} ${fate}`)], [{ since: 'then' }, ['web-0 evicted']])
  assert.is(evicting([pod('web-0')], 'later')(first), first)
  assert.equal(evictionOver('enough', 'later')(first).eviction, { since: 'then', over: { at: 'later', because: 'enough' } })
})

test.run()
