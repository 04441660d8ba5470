import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Action } from '../../core/action.ts'
import { decide } from '../../core/decide.ts'
import { keptOff, othersHands } from '../../core/hands.ts'
import type { Incident } from '../../core/incident.ts'
import { fencedKey, type NodeSeen, type Taint } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import * as states from './states.ts'
import { beat, dead, foundOffNode, incident, node, now, podsOf, policy, three } from './world.ts'

const test = suite('hands')

const marks: readonly (readonly [what: string, changes: Partial<NodeSeen>, because: string, detail: RegExp])[] = [
  ['a person excludes the node', { annotations: { 'holdfast.dev/exclude': 'the storage team has it' } }, 'exclude', /exclude stands on node-2: the storage team has it$/],
  ['a person works on the node', { annotations: { 'holdfast.dev/maintenance': 'true' } }, 'maintenance', /maintenance stands on node-2$/],
  ['kured reboots the node', { annotations: { 'weave.works/kured-reboot-in-progress': 'now' } }, 'remediator', /^kured has node-2 in hand/],
  ...[
    ['remediation.medik8s.io/fence-agents-remediation', 'medik8s'], ['medik8s.io/remediation', 'medik8s'], ['vxflexos.podmon.storage.dell.com', 'Dell CSM'],
    ['drbd.linbit.com/lost-quorum', 'Piraeus'], ['ToBeDeletedByClusterAutoscaler', 'cluster autoscaler'], ['karpenter.sh/disrupted', 'Karpenter'],
  ].map(([key = '', whose = '']) => [`${whose} sets ${key}`, { taints: [{ key, effect: 'NoSchedule' } satisfies Taint] }, 'remediator', new RegExp(`${whose}.* has node-2 in hand: the taint ${key} `)] as const),
]

const nothing: readonly Partial<NodeSeen>[] = [
  {}, { annotations: { 'holdfast.dev/exclude': 'false' } }, { annotations: { 'example.com/exclude': 'true' } },
  { taints: [{ key: 'medik8s.example.com/x', effect: 'NoSchedule' }, { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }] },
]
for (const changes of nothing) test(`nobody else has hands on a node with ${JSON.stringify(changes)}`, () => assert.equal([othersHands(node(changes)), keptOff(node(changes))], [undefined, undefined]))

const wants = (changes: Partial<NodeSeen>, incidents: readonly Incident[] = [], wanted: Partial<Policy> = {}): readonly Action[] => decide(three(changes, incidents), now, [{ ...policy, ...wanted }])
const deeds = (actions: readonly Action[]): string[] => actions.filter((action) => ['open', 'fence', 'restore', 'taint', 'untaint', 'delete', 'detach', 'prove'].includes(action.do)).map((action) => action.do)
const holds = (actions: readonly Action[]): string[] => actions.flatMap((action) => (action.do === 'hold' && action.node === 'node-2' ? [action.because] : []))

for (const [what, changes, because, detail] of marks) {
  test(`${what}: it is named, and no incident is opened`, () => {
    assert.match(othersHands(node(changes))?.detail ?? '', detail)
    const actions = wants({ ...dead, ...changes })
    assert.equal([deeds(actions), holds(actions)], [[], [because]])
  })

  test(`${what} in the middle of an incident: nothing is ordered, proven or freed`, () => {
    for (const state of [states.opened, states.ordered, states.clearing, states.recovering]) {
      const taints = [...state.node.taints ?? [], ...changes.taints ?? []]
      const actions = wants({ ...state.node, ...changes, taints }, [incident(state.status)])
      assert.equal([deeds(actions), holds(actions)], [[], [because]])
    }
  })
}

test('what a boot that is heard needs off comes off all the same', () => {
  const { node: booted } = states.booted
  const actions = wants({ ...booted, taints: [states.quarantine, states.outOfService], annotations: { 'holdfast.dev/exclude': '' } }, [incident(states.clearing.status)])
  assert.equal(deeds(actions), ['untaint'])
})

test('what a machine needs off that was put in another\'s place comes off, and no more before they have done', () => {
  const hands = { machine: 'machine-9', annotations: { 'holdfast.dev/maintenance': 'a new board' } }
  const exchanged = (taints: NodeSeen['taints']) => wants({ ...states.clearing.node, ...hands, taints }, [incident(states.clearing.status)])
  const lifted = exchanged([states.quarantine, states.outOfService])
  assert.equal([lifted.flatMap((action) => (action.do === 'untaint' ? [action.key] : [])), holds(lifted)], [['node.kubernetes.io/out-of-service'], ['maintenance']])
  for (const taints of [[states.quarantine], []]) assert.equal([deeds(exchanged(taints)), holds(exchanged(taints))], [[], ['maintenance']])
})

const off = { annotations: { 'holdfast.dev/keep-off': 'a dimm is out' } }

test('a machine that a person keeps off is cleared, and not switched on', () => {
  assert.equal(deeds(wants({ ...states.clearing.node, ...off }, [incident(states.clearing.status)])), ['delete'])
  const actions = wants({ ...states.recovering.node, ...off }, [incident(states.recovering.status)])
  assert.equal([deeds(actions), holds(actions)], [[], ['kept-off']])
  assert.equal(deeds(wants(states.recovering.node, [incident(states.recovering.status)])), ['restore'], 'and else it is')
})

test('a machine that a person keeps off and that has nothing to free opens no incident', () => {
  const bare = { ...foundOffNode, ...off, pods: podsOf([]) }
  assert.equal(deeds(wants(bare)), [])
  assert.equal(deeds(wants({ ...bare, annotations: {} })), ['open'])
})

const fenced = (...ago: number[]): Partial<NodeSeen> => ({
  ...states.recovering.node, firstSeen: new Map([...states.recovering.node.firstSeen ?? [], ...ago.map((span, index): [string, number] => [fencedKey(`node-2-x-${index}`), now - span])]),
})

test('fenced too often within the window, a node is cleared, and stays off until it is over', () => {
  const brakes = { ...policy.brakes, repeatLimit: 3, repeatWindow: 60_000 }
  const of = (changes: Partial<NodeSeen>, limits = brakes, more: Partial<Incident> = {}) => {
    const actions = wants(changes, [incident(states.recovering.status, { policy: { ...policy, brakes: limits }, ...more })])
    return [deeds(actions), holds(actions)]
  }
  const goesOn = of(fenced(1_000))
  assert.equal(goesOn[0], ['restore'])
  assert.equal(of(fenced(1_000, 20_000, 59_000)), [[], ['repeat-limit']])
  assert.equal(of(fenced(1_000, 20_000, 60_000)), goesOn, 'the first one is no longer within it')
  assert.equal(of(fenced(1_000, 20_000, 59_000), { ...brakes, repeatLimit: 0 }), goesOn, 'no limit')
  assert.equal(of(fenced(1_000, 20_000, 59_000), brakes, { cause: 'by-hand' }), goesOn, 'a person asked for it')
})

const told = (changes: Partial<NodeSeen>, wanted: Partial<Policy> = {}): string => wants(changes, [], { mode: 'dryRun', ...wanted }).flatMap((action) => (action.do === 'hold' ? [action.detail] : [])).join()

test('a dry run tells what would be done', () => {
  assert.match(told(dead), /an incident would be opened \(silence\); bmc-off would be ordered off under quarantine; its pods would be freed as DeleteAllPods has it/)
  assert.match(told(foundOffNode), /opened \(found-off\); its devices prove it off already; its pods would be freed/)
  assert.match(told(dead, { nodeDownPodDeletionPolicy: 'DoNothing' }), /no device would be ordered; nothing would be freed/)
  assert.is(told({ beat: beat() }), '')
})

test.run()
