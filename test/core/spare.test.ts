// Which node a policy's own drill takes, what keeps each other one out, and what ends a drill that was chosen before it begins.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Action } from '../../core/action.ts'
import { decide } from '../../core/decide.ts'
import { openedKey, type Incident } from '../../core/incident.ts'
import type { NodeSeen, Self } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { chooseSpare, type DrillTurn, type SpareChoice } from '../../core/spare.ts'
import { survey } from '../../core/survey.ts'
import { attempt, beat, boot, incident, method, node, now, pod, podsOf, policy, reading, record, seen, self, silent, volume } from './world.ts'

const test = suite('spare')

const drills: Policy = { ...policy, drills: { schedule: '0 3 * * 6', again: 3_600_000 } }
const turn: DrillTurn = { policy: 'all', beganAt: now - 3_000, before: '2026-01-01T00:00:00.000Z' }
const cordon = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' } as const
const [path] = record().paths
const unproven = record({ paths: path === undefined ? [] : [{ ...path, identity: 'unproven' }] })
/** Of a device that tells no UUID. */
const { machine: _, ...told } = reading('on', now - 900, now - 800)
const spare: Partial<NodeSeen> = { taints: [cordon], record: unproven, readings: [told], pods: { ...podsOf([]), askedAt: now - 200 } }

interface Scene {
  readonly target?: Partial<NodeSeen>
  readonly other?: Partial<NodeSeen>
  readonly incidents?: readonly Incident[]
  readonly own?: Partial<Self>
  readonly policies?: readonly Policy[]
}

const observed = ({ target = {}, other = {}, incidents = [], own = {} }: Scene) => {
  const nodes = [node({ name: 'node-1', ...other }), node({ name: 'node-2', ...spare, ...target }), node({ name: 'node-3' })]
  return seen(nodes, incidents, self({ drillTurns: [turn], ...own }))
}
const chosen = (scene: Scene = {}): SpareChoice => chooseSpare(survey(observed(scene), now, scene.policies ?? [drills]), turn)
const decided = (scene: Scene = {}): readonly Action[] => decide(observed(scene), now, scene.policies ?? [drills])
const opens = (actions: readonly Action[]) => actions.flatMap((action) => (action.do === 'open' ? [`${action.node} ${action.cause}`] : []))
const why = (scene: Scene): string => {
  const choice = chosen(scene)
  return choice.is === 'nobody' ? [choice.refused, ...choice.nodes].map(({ because, detail }) => `${because}: ${detail}`).join('; ') : choice.is
}
const drillOf = (status: Partial<Incident['status']>, changes: Partial<Incident> = {}): Incident =>
  incident({ phase: 'Final', timeline: [{ at: '2026-02-01T00:00:00.000Z', what: 'opened', detail: '' }], ...status }, { cause: 'scheduled-drill', ...changes })

test('a node that is cordoned, drained and well, and whose path nothing proves, is chosen', () => {
  const choice = chosen()
  assert.equal(choice.is === 'chosen' && [choice.node.name, choice.boot, choice.policy.name], ['node-2', boot, 'all'])
  assert.equal(opens(decided()), ['node-2 scheduled-drill'])
})

test('without a turn nothing is opened, whatever the policy asks for', () => {
  const { drillTurns, ...own } = self({ drillTurns: [turn] })
  assert.ok(drillTurns)
  assert.equal(opens(decide({ ...observed({}), self: own }, now, [drills])), [])
})

const bound = { is: 'bound', volume: 'one' } as const
for (const [name, scene, reason] of [
  ['its policy asks for none', { policies: [policy] }, /^policy: policy all asks for no drills/],
  ['its policy is gone', { policies: [] }, /^policy: /],
  ['a dry run', { policies: [{ ...drills, mode: 'dryRun' }] }, /^policy: .*dry run/],
  ['a pause of the policy', { policies: [{ ...drills, pause: { by: 'ops', reason: 'upgrade' } }] }, /^policy: paused by ops/],
  ['a pause of the whole', { own: { pause: { by: 'ops', reason: 'upgrade' } } }, /^policy: paused by ops/],
  ['DoNothing', { policies: [{ ...drills, nodeDownPodDeletionPolicy: 'DoNothing' }] }, /unfit: nodeDownPodDeletionPolicy is DoNothing/],
  ['an incident of another node', { incidents: [incident({ phase: 'Running' }, { name: 'node-1-x-1', nodeName: 'node-1', nodeUid: 'uid-node-1' })] }, /^incident: node-1-x-1 of node-1 is open/],
  ['a drill that goes on', { incidents: [incident({ phase: 'Running' }, { name: 'node-1-d-1', nodeName: 'node-1', nodeUid: 'uid-node-1', cause: 'drill' })] }, /^incident: node-1-d-1/],
  ['another node silent', { other: silent }, /^silent: node-1 is silent/],
  ['not cordoned', { target: { taints: [] } }, /^no-spare: no node of policy all is cordoned/],
  ['of another policy', { policies: [drills, { ...drills, name: 'more', priority: 1 }] }, /^no-spare: no node of policy all is cordoned/],
  ['two policies of one priority', { policies: [drills, { ...drills, name: 'more' }] }, /^no-spare: no node of policy all is cordoned/],
  ['of the control plane', { target: { controlPlane: true } }, /control-plane: /],
  ['maintenance by a person', { target: { annotations: { 'holdfast.dev/maintenance': 'new fans' } } }, /hands: .*new fans/],
  ['kept off by a person', { target: { annotations: { 'holdfast.dev/keep-off': 'true' } } }, /hands: .*keep-off/],
  ['the autoscaler\'s', { target: { taints: [cordon, { key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }] } }, /hands: the cluster autoscaler/],
  ['under quarantine', { target: { taints: [cordon, { key: 'holdfast.dev/quarantine', effect: 'NoExecute' }] } }, /hands: it bears holdfast.dev\/quarantine/],
  ['no path', { target: { path: { levels: [], faults: [] } } }, /unfit: no fence path is configured/],
  ['a path that was never audited', { target: { record: record({ paths: [] }), readings: [] } }, /unfit: .*never read on/],
  ['a pod', { target: { pods: { ...podsOf([pod('web-0')]), askedAt: now - 200 } } }, /not-drained: default\/web-0/],
  ['a volume', { target: { volumes: [volume('one')] } }, /not-drained: one is attached/],
  ['proven by its device', { target: { record: record(), readings: [reading('on', now - 900, now - 800)] } }, /proven: every fence path of it is proven/],
] as const satisfies readonly (readonly [string, Scene, RegExp])[]) {
  test(`nobody, and the reason: ${name}`, () => {
    assert.match(why(scene), reason)
    assert.equal(opens(decided(scene)), [])
  })
}

test('pods of DaemonSets and static ones, and those that are over, are no reason', () => {
  assert.is(why({ target: { pods: { ...podsOf([pod('agent', { exempt: 'a DaemonSet' }), pod('over', { phase: 'Succeeded', volumes: [{ ...bound, claim: 'a/b', driver: 'd', provisioner: 'd', shared: false, local: false }] })]), askedAt: now - 200 } } }), 'chosen')
})

test('pods are listed anew in each turn, one node at a time, before anything is opened', () => {
  for (const pods of [undefined, { ...podsOf([]), askedAt: turn.beganAt - 1 }]) {
    const actions = decided({ target: { pods }, other: { ...spare, pods } })
    assert.equal([opens(actions), actions.filter((action) => action.do === 'listPods').length], [[], 1])
  }
})

test('while one is being opened nobody else is chosen', () => {
  assert.is(why({ target: { busy: new Set(['deed node-2']) } }), 'look')
  assert.equal(opens(decided({ target: { taints: [], busy: new Set(['deed node-2']) }, other: spare })), [])
})

const drilledAt = (at: string): Partial<NodeSeen> => ({ record: record({ paths: path === undefined ? [] : [{ ...path, drill: { at, machine: 'machine-2', digests: ['d1'] } }] }) })

test('what ends a machine for good is proven by no drill, and keeps nobody to be drilled again and again', () => {
  const levels = [[method], [{ ...method, name: 'terminate-instance', digest: 'd9', ends: true }]] as const
  assert.match(why({ target: { record: record(), readings: [reading('on', now - 900, now - 800)], path: { levels, faults: [] } } }), /proven: every fence path of it is proven/)
})

test('what a drill has proven is proven again once it is too old, and not before', () => {
  assert.match(why({ target: drilledAt('2026-01-01T00:00:01.000Z') }), /proven: /)
  assert.is(why({ target: drilledAt('2025-12-31T23:59:59.000Z') }), 'chosen')
  assert.match(why({ target: { ...drilledAt('2025-12-31T23:59:59.000Z'), readings: [reading('on', now - 900, now - 800)] } }), /proven: /, 'its device tells the UUID as well')
})

const tried = (name: string, at: string) => drillOf({ outcome: 'Drilled', timeline: [{ at, what: 'opened', detail: '' }] }, { name: `${name}-d-1`, nodeName: name, nodeUid: `uid-${name}` })
const first = (incidents: readonly Incident[]) => {
  const choice = chosen({ other: { ...spare, record: { ...unproven, nodeUid: 'uid-node-1', machine: 'machine-1' } }, incidents })
  return choice.is === 'chosen' ? choice.node.name : choice.is
}

test('of several the one that was tried longest ago is next', () => {
  assert.is(first([]), 'node-1')
  assert.is(first([tried('node-1', '2026-02-01T00:00:00.000Z')]), 'node-2')
  assert.is(first([tried('node-1', '2026-02-01T00:00:00.000Z'), tried('node-2', '2026-02-02T00:00:00.000Z')]), 'node-1')
})

test('one that failed is not switched off again before its path was configured anew, or a person has drilled it', () => {
  const failed = drillOf({ outcome: 'Withdrawn', attempts: [attempt({ digest: 'd1' })] })
  assert.match(why({ incidents: [failed] }), /failed: node-2-abc-1 failed/)
  const other = { ...method, digest: 'd9' }
  const audit = path === undefined ? [] : [{ ...path, digest: 'd9', identity: 'unproven' as const }]
  assert.is(why({ incidents: [failed], target: { path: { levels: [[other]], faults: [] }, record: record({ paths: audit }), readings: [{ ...told, digest: 'd9' }] } }), 'chosen')
  assert.is(why({ incidents: [drillOf({ outcome: 'Withdrawn' })] }), 'chosen', 'nothing was ordered in it')
  assert.is(why({ incidents: [drillOf({ outcome: 'Withdrawn', attempts: [attempt({ digest: 'd1' })], timeline: [{ at: '2025-06-01T00:00:00.000Z', what: 'opened', detail: '' }] })] }), 'chosen', 'too long ago')
  const passed = drillOf({ outcome: 'Drilled', timeline: [{ at: '2026-02-02T00:00:00.000Z', what: 'opened', detail: '' }] }, { name: 'node-2-drill-9', cause: 'drill' })
  assert.is(why({ incidents: [failed, passed] }), 'chosen')
})

const open = (changes: Partial<Incident> = {}): Incident => incident({}, { cause: 'scheduled-drill', policy: drills, ...changes })
const begun = (scene: Scene, own: Incident = open()) => {
  const { drillTurns, ...rest } = self({ drillTurns: [turn] })
  assert.ok(drillTurns)
  const actions = decide({ ...observed({ ...scene, incidents: [own, ...scene.incidents ?? []] }), self: { ...rest, ...scene.own } }, now, scene.policies ?? [drills]).filter((action) => action.node === 'node-2')
  return { orders: actions.filter((action) => action.do === 'fence').length, over: actions.flatMap((action) => (action.do === 'withdraw' ? action.drill?.detail ?? '' : []))[0] }
}

test('what was chosen is ordered off', () => {
  assert.equal(begun({}), { orders: 1, over: undefined })
})

for (const [name, scene, reason] of [
  ['somebody uncordoned it', { target: { taints: [] } }, /not cordoned/],
  ['a pod landed', { target: { pods: { ...podsOf([pod('web-0')]), askedAt: now - 200 } } }, /web-0 is on the node still/],
  ['a volume was attached', { target: { volumes: [volume('one')] } }, /is attached to the node still/],
  ['it booted', { target: { beat: beat({ boot: 'boot-9/1' }) } }, /another boot/],
  ['an incident of another node was opened', { incidents: [incident({ phase: 'Running' }, { name: 'node-1-x-1', nodeName: 'node-1', nodeUid: 'uid-node-1' })] }, /node-1-x-1 of node-1 is open/],
  ['two were opened at once', { incidents: [incident({}, { name: 'node-1-x-1', nodeName: 'node-1', nodeUid: 'uid-node-1', cause: 'scheduled-drill', policy: drills })] }, /node-1-x-1 of node-1 is open/],
  ['another node fell silent', { other: silent }, /node-1 is silent/],
  ['the policy asks for none any more', { policies: [policy] }, /asks for no drills any more/],
  ['it became one of the control plane', { target: { controlPlane: true } }, /control plane/],
  ['its time is over, after a pause or without a leader', { target: { firstSeen: new Map([[openedKey('node-2-abc-1'), now - 200_000]]) } }, /could not be begun in its time/],
] as const satisfies readonly (readonly [string, Scene, RegExp])[]) {
  test(`between the choice and the order ${name}: it ends, and nothing is ordered`, () => {
    const { orders, over } = begun(scene)
    assert.is(orders, 0)
    assert.match(over ?? '', reason)
  })
}

test('of two feeds the second is not ordered off once the node was uncordoned, or a pod landed', () => {
  const feed = { ...method, name: 'feed-b', digest: 'd2' }
  const both: Partial<NodeSeen> = { path: { levels: [[method, feed]], faults: [] }, firstSeen: new Map([['began node-2-abc-1.1', now - 2_000], ['ended node-2-abc-1.1', now - 1_000]]) }
  const half = { ...open(), status: { ...open().status, attempts: [attempt({ digest: 'd1' })] } }
  const follows = (target: Partial<NodeSeen>) => begun({ target: { ...both, ...target } }, half)
  assert.is(follows({}).orders, 1)
  assert.equal(follows({ taints: [] }), { orders: 0, over: 'the node is not cordoned' })
  assert.match(follows({ pods: { ...podsOf([pod('web-0')]), askedAt: now - 200 } }).over ?? '', /web-0/)
  assert.equal(follows({ pods: { ...podsOf([]), askedAt: now - 9_000 } }), { orders: 0, over: undefined }, 'listed anew first')
})

test.run()
