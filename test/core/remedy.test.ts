// A node that runs and is not well: when a remedy has it told or fenced, and when not.
import fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Action } from '../../core/action.ts'
import { decide } from '../../core/decide.ts'
import type { Incident, IncidentStatus } from '../../core/incident.ts'
import { kubeletsBootKey, remediedKey, type ConditionSeen, type NodeSeen, type Observed } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { ailingSince, crossed, type Remedy, type Threshold } from '../../core/remedy.ts'
import { vitalNames } from '../../core/vitals.ts'
import { quarantine } from './states.ts'
import { attempt, beat, boot, dead, incident, node, now, pod, podsOf, policy, reading, self, seen, silent } from './world.ts'

const test = suite('remedy')

const period = 30_000
const full: Threshold = { name: 'full', vital: { name: 'disk', above: 95 }, period }
const locked: Threshold = { name: 'locked', condition: 'KernelDeadlock', period }
const fence: Remedy = { name: 'disks', nodeLabels: {}, thresholds: [full], does: 'fence', again: 3_600_000 }
const key = 'disks full disk 95'

/** Beyond the threshold for as long as the remedy asks. */
const ailing: Partial<NodeSeen> = { beat: beat({ vitals: { disk: 97 } }), ailing: new Map([[key, now - period]]), readings: [reading('on', now - 900)] }

/** node-2 as told, among ten that are well. */
function world(changes: Partial<NodeSeen>, { remedies = [fence], incidents = [], own = self(), others = [] }: {
  remedies?: readonly Remedy[]; incidents?: readonly Incident[]; own?: Observed['self']; others?: readonly NodeSeen[]
} = {}): Observed {
  const well = ['node-1', 'node-3', 'node-4', 'node-5', 'node-6', 'node-7', 'node-8', 'node-9', 'node-10'].map((name) => others.find((one) => one.name === name) ?? node({ name }))
  return { ...seen([node(changes), ...well], incidents, own), remedies }
}
function of(observed: Observed, policies: readonly Policy[] = [policy]): readonly Action[] {
  return decide(observed, now, policies).filter((action) => action.node === 'node-2')
}
const deeds = (actions: readonly Action[]): readonly string[] => actions.flatMap((action) => (['open', 'taint', 'fence', 'withdraw', 'evict', 'delete'].includes(action.do) ? [action.do] : []))
const holds = (actions: readonly Action[]): readonly string[] => actions.flatMap((action) => (action.do === 'hold' ? [action.because] : []))
const sentence = (actions: readonly Action[]): string => actions.flatMap((action) => (action.do === 'hold' ? [`${action.detail}. Lifted by: ${action.lifts}`] : [])).join()

for (const [what, threshold, changes, says] of [
  ['a vital above it', full, { beat: beat({ vitals: { disk: 96 } }) }, 'disk 96 %, above 95'],
  ['a vital at it', full, { beat: beat({ vitals: { disk: 95 } }) }, undefined],
  ['another vital', full, { beat: beat({ vitals: { inodes: 99 } }) }, undefined],
  ['nothing told: the program that looks failed', full, { beat: beat() }, undefined],
  ['a node never heard', full, { beat: undefined }, undefined],
  ['a beat that is a little late', full, { beat: beat({ at: now - 5_000, vitals: { disk: 96 } }) }, 'disk 96 %, above 95'],
  ['a vital told before a silence', full, { beat: beat({ at: now - 31_000, vitals: { disk: 96 } }) }, undefined],
  ['a node that is gone', full, { gone: true, beat: beat({ vitals: { disk: 96 } }) }, undefined],
  ['a load above it', { name: 'busy', vital: { name: 'load', above: 4 }, period }, { beat: beat({ vitals: { load: 4.1 } }) }, 'load 4.1 a core, above 4'],
  ['a condition that is True', locked, { conditions: new Map([['KernelDeadlock', { heartbeat: 'then', postedAt: now }]]) }, 'KernelDeadlock is True'],
  ['another condition', locked, { conditions: new Map([['DiskPressure', { heartbeat: 'then', postedAt: now }]]) }, undefined],
  ['a condition of a node that is not heard', locked, { conditions: new Map([['KernelDeadlock', { heartbeat: 'then', postedAt: now }]]), beat: beat({ at: now - 31_000 }) }, undefined],
] as const) {
  test(`a threshold and ${what}: ${says ?? 'not crossed'}`, () => {
    assert.is(crossed(threshold, node(changes), now), says)
  })
}

test('since when it is crossed goes on from tick to tick, and begins anew with a break, a stall of ours, another boot or another threshold', () => {
  const since = (changes: Partial<NodeSeen>, remedies = [fence], awakeSince = 0) => ailingSince(node({ ...ailing, ...changes }), remedies, awakeSince, now)?.get(key)
  assert.is(since({ ailing: undefined }), now)
  assert.is(since({}), now - period)
  assert.is(since({}, [fence], now - 700), now - 700)
  assert.is(since({ beat: beat({ since: now - 600, vitals: { disk: 97 } }) }), now - 600)
  assert.is(ailingSince(node({ ...ailing, beat: beat() }), [fence], 0, now), undefined)
  assert.is(ailingSince(node(ailing), [{ ...fence, thresholds: [{ ...full, vital: { name: 'disk', above: 96 } }] }], 0, now)?.get('disks full disk 96'), now)
  assert.is(since({}, [{ ...fence, nodeLabels: { pool: 'db' } }]), undefined)
})

test('crossed for as long as it asks, the node is fenced, with what ails it as evidence', () => {
  const [open] = of(world(ailing))
  assert.is(open?.do, 'open')
  if (open?.do === 'open') assert.equal([open.cause, open.boot, open.evidence], ['remedy', boot, [{ source: 'NodeRemedy disks', word: 'disk 97 %, above 95 for 30.0 s', at: '' }]])
})

for (const [why, changes] of [
  ['crossed for less long', { ailing: new Map([[key, now - period + 1]]) }],
  ['not crossed any more', { beat: beat({ vitals: { disk: 94 } }) }],
  ['not told any more', { beat: beat() }],
  ['known to be crossed, and its agent is late', { beat: beat({ at: now - 1_600, vitals: { disk: 97 } }) }],
  ['silent', { ...silent, beat: beat({ at: now - 4_000, vitals: { disk: 97 } }) }],
] as const) {
  test(`${why}, nothing is done and nothing is said`, () => {
    const actions = of(world({ ...ailing, ...changes }))
    assert.equal([deeds(actions), holds(actions).filter((because) => because === 'ailing')], [[], []])
  })
}

test('a remedy that tells does nothing', () => {
  const actions = of(world(ailing, { remedies: [{ ...fence, does: 'tell' }] }))
  assert.equal([deeds(actions), sentence(actions)], [[], 'disk 97 %, above 95 for 30.0 s: NodeRemedy disks has it told, and nothing done. Lifted by: that over'])
})

const heardBefore = (age: number): Partial<NodeSeen> => ({ ...ailing, beat: beat({ at: now - age, vitals: { disk: 97 } }) })

test('while a beat is a little late nothing is fenced, and what was told stands; of a suspect nothing is told', () => {
  const patient: Policy = { ...policy, profile: 'balanced' }
  assert.equal(deeds(of(world(heardBefore(2_000)), [patient])), [])
  const telling = (age: number) => holds(of(world(heardBefore(age), { remedies: [{ ...fence, does: 'tell' }] }), [patient])).includes('ailing')
  assert.equal([telling(2_000), telling(3_100)], [true, false])
})

const alike = (...names: string[]) => names.map((name) => node({ ...ailing, name, ailing: new Map([[key, now - period]]) }))
const before = incident({ phase: 'Final' }, { cause: 'remedy', name: 'node-2-abc-0' })
for (const [because, observed, policies, says] of [
  ['unselected', world(ailing), [], 'no one policy is in force for it'],
  ['policy-conflict', world(ailing), [policy, { ...policy, name: 'other' }], 'no one policy is in force for it'],
  ['dry-run', world(ailing), [{ ...policy, mode: 'dryRun' }], 'policy all is a dry run'],
  ['pause', world(ailing, { own: self({ pause: { by: 'kim', reason: 'works' } }) }), [policy], 'paused by kim: works'],
  ['maintenance', world({ ...ailing, annotations: { 'holdfast.dev/maintenance': 'disk swap' } }), [policy], 'disk swap'],
  ['kept-off', world({ ...ailing, annotations: { 'holdfast.dev/keep-off': 'true' } }), [policy], 'keep-off stands on node-2'],
  ['remediator', world({ ...ailing, annotations: { 'weave.works/kured-reboot-in-progress': '' } }), [policy], 'kured has node-2 in hand'],
  ['do-nothing', world(ailing), [{ ...policy, nodeDownPodDeletionPolicy: 'DoNothing' }], 'no order is given'],
  ['no-path', world({ ...ailing, path: { levels: [], faults: [] } }), [policy], 'it has no fence path'],
  ['waiting-for-clean', world({ ...ailing, taints: [quarantine] }), [policy], 'it is under quarantine as it is'],
  ['waiting-for-boot', world({ ...ailing, beat: beat({ vitals: { disk: 97 }, goodbye: { at: now - 300, why: 'shutdown' } }) }), [policy], 'it shuts down by itself'],
  ['storm', world(ailing, { others: alike('node-3', 'node-4', 'node-5', 'node-6') }), [policy], '5 of 10 nodes ail alike, more than 40 %'],
  ['storm', world(ailing, { others: ['node-3', 'node-4', 'node-5', 'node-6', 'node-7'].map((name) => node({ name, ...silent })) }), [policy], '5 of 10 nodes in all fell silent'],
  ['foreign-taint', world({ ...ailing, taints: [{ key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoSchedule' }] }), [policy], 'another\'s node.kubernetes.io/out-of-service=nodeshutdown'],
  ['concurrency', world(ailing, { incidents: [incident({}, { nodeName: 'node-3', nodeUid: 'uid-node-3', name: 'node-3-abc-1', cause: 'remedy' })] }), [policy], 'node-3 is fenced by a remedy, and one node at a time'],
  ['repeat-limit', world({ ...ailing, firstSeen: new Map([[remediedKey('node-2-abc-0'), now - 60_000]]) }, { incidents: [before] }), [policy], 'a remedy began on it 60.0 s ago, and it did not help'],
] as const) {
  test(`held, and nothing done: ${because} (${says})`, () => {
    const actions = of(observed, policies)
    assert.equal([deeds(actions), holds(actions).includes(because)], [[], true], JSON.stringify(actions))
    assert.ok(sentence(actions).includes(`disk 97 %, above 95 for 30.0 s: NodeRemedy disks would have it fenced; `) && sentence(actions).includes(says), sentence(actions))
  })
}

const deadlocked: Remedy = { ...fence, name: 'kernels', thresholds: [locked] }
const standing = (posted: Partial<ConditionSeen>, changes: Partial<NodeSeen> = {}): Partial<NodeSeen> => ({
  beat: beat({ since: now - 60_000 }), ailing: new Map([['kernels locked KernelDeadlock', now - period]]), readings: [reading('on', now - 900)],
  conditions: new Map([['KernelDeadlock', { heartbeat: 'then', postedAt: now - 59_000, ...posted }]]), firstSeen: new Map([[kubeletsBootKey, now - 90_000]]), ...changes,
})
for (const [what, changes, counts] of [
  ['posted since its boot was heard', standing({}), true],
  ['posted before its agent was heard, and after its kubelet told of that boot', standing({ postedAt: now - 80_000 }), true],
  ['posted before its boot was heard', standing({ postedAt: now - 91_000 }), false],
  ['posted before its agent was heard, while its kubelet tells of the boot before', standing({ postedAt: now - 80_000 }, { bootId: 'boot-0' }), false],
  ['that stood there when this replica began to watch', standing({ stood: true }), false],
] as const) {
  test(`a condition ${what} ${counts ? 'has it fenced' : 'may be left over from another boot: it is held, and said'}`, () => {
    const actions = of(world(changes, { remedies: [deadlocked] }))
    assert.equal([deeds(actions), holds(actions).filter((because) => because === 'ailing')], counts ? [['open'], []] : [[], ['ailing']])
    if (!counts) assert.is(sentence(actions), 'KernelDeadlock is True for 30.0 s: NodeRemedy kernels would have it fenced; nobody was seen to post it in this boot of node-2. Lifted by: whoever sets it posting it anew, or taking it back')
  })
}

test('the share that ails alike is none of a storm up to its limit, and then one goes at a time', () => {
  const observed = world(ailing, { others: alike('node-3', 'node-4') })
  assert.equal(deeds(of(observed)), ['open'])
  const others = decide(observed, now, [policy]).filter((action) => action.do !== 'askDevice' && action.do !== 'probe' && action.node !== 'node-2')
  assert.equal(others.map((action) => [action.do, action.node, action.do === 'hold' ? action.because : '']), [['hold', 'node-3', 'concurrency'], ['hold', 'node-4', 'concurrency']])
})

test('fenced long enough ago, it may be fenced again', () => {
  assert.equal(deeds(of(world({ ...ailing, firstSeen: new Map([[remediedKey('node-2-abc-0'), now - fence.again]]) }, { incidents: [before] }))), ['open'])
})

const opened = (status: Partial<IncidentStatus> = {}): Incident => incident(status, { cause: 'remedy', policy: { ...policy, evictWithin: 60_000 } })

test('opened, pods go in good order first, and the order comes after them', () => {
  const there = podsOf([pod('web-0')])
  assert.equal(deeds(of(world({ ...ailing, taints: [quarantine], pods: there }, { incidents: [opened()] }))), ['evict'])
  const over = { eviction: { since: 'then', over: { at: 'then', because: 'gone' } } }
  assert.equal(deeds(of(world({ ...ailing, taints: [quarantine], pods: there }, { incidents: [opened(over)] }))), ['fence'])
})

test('before the first order it is withdrawn once nothing ails the node, or nothing is told; afterwards it goes on', () => {
  for (const vitals of [{ disk: 95 }, {}]) {
    assert.equal(deeds(of(world({ ...ailing, beat: beat({ vitals }) }, { incidents: [opened()] }))), ['withdraw'])
    const ordered = opened({ phase: 'Running', attempts: [attempt({ result: 'running' })] })
    assert.not.ok(deeds(of(world({ ...ailing, beat: beat({ vitals }), busy: new Set(['order node-2 bmc-off']) }, { incidents: [ordered] }))).includes('withdraw'))
  }
})

test('a leader that has not read the remedies yet withdraws nothing', () => {
  const { remedies: _, ...unread } = world(ailing, { incidents: [opened()] })
  assert.not.ok(deeds(of(unread)).includes('withdraw'))
})

test('a node that falls silent meanwhile is judged like every other one, and is not ordered off before it is dead', () => {
  const over = opened({ eviction: { since: 'then', over: { at: 'then', because: 'gone' } } })
  const quiet = of(world({ ...ailing, ...silent, taints: [quarantine] }, { incidents: [over] }))
  assert.equal([deeds(quiet), holds(quiet)], [[], ['not-dead']])
  assert.equal(deeds(of(world({ ...ailing, ...dead, taints: [quarantine] }, { incidents: [over] }))), ['fence'])
})

test('whatever is told, a node without a vital beyond a threshold, or without a beat of now, is never fenced for it', () => {
  const vitals = fc.record(Object.fromEntries(vitalNames.map((name) => [name, fc.integer({ min: 0, max: 100 })])), { requiredKeys: [] })
  fc.assert(fc.property(vitals, fc.integer({ min: 0, max: 200_000 }), fc.integer({ min: 0, max: 100 }), fc.constantFrom(...vitalNames), (told, age, above, name) => {
    const remedy: Remedy = { ...fence, thresholds: [{ name: 'any', vital: { name, above }, period: 0 }] }
    const one = node({ beat: beat({ at: now - age, vitals: told }) })
    const since = ailingSince(one, [remedy], 0, now)
    const opens = deeds(of(world({ ...one, ailing: since }, { remedies: [remedy] }))).includes('open')
    // What a node says that is silent is another question, and another cause.
    assert.is(opens, age < 1_500 && (told[name] ?? -1) > above)
  }), { numRuns: 400 })
})

test.run()
