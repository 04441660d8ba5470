// A machine that was cut off from its storage alone, and its neighbour on the same switch: when either is let in again, and what is freed no more
// once that was ordered.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Action } from '../../core/action.ts'
import { decide } from '../../core/decide.ts'
import { proofKey, type Incident, type IncidentStatus, type ProofRecord } from '../../core/incident.ts'
import type { Method, NodeSeen, PathAudit, Reading } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { quarantine } from './states.ts'
import { attempt, beat, boot, dead, incident, method as bmc, node, now, pod, podsOf, policy, proofRecord, reading, record, seen, seenOrder, seenProof } from './world.ts'

const test = suite('let in')

const driver = 'csi.example.com'
const fc: Method = { name: 'fc-off', agent: 'fc-switch', device: 'fc-1', digest: 'df', orderWithin: 30_000, statusWithin: 10_000, late: 60_000, backAt: 1_000, isolates: [driver] }
const path = (isolates: Method = fc): NodeSeen['path'] => ({ levels: [[isolates], [bmc]], faults: [] })
const paths = (identity: PathAudit['identity']): readonly PathAudit[] => [['fc-off', 'df', identity], ['bmc-off', 'd1', 'proven']]
  .map(([method, digest, known]) => ({ method, digest, boot, state: 'verified', identity: known, at: 'then', evidence: 'on' }) as PathAudit)
/** It tells no machine. */
const port = (state: Reading['state'], at: number): Reading => {
  const { machine: _, ...rest } = reading(state, at)
  return { ...rest, method: 'fc-off', digest: 'df' }
}

/** Cut off, read off twice since, proven; its policy leaves its power on, and nothing tells whose port it is. */
const patient: Policy = { ...policy, powerAfter: 300_000 }
const cut = attempt({ method: 'fc-off', agent: 'fc-switch', digest: 'df' })
const isolated: ProofRecord = proofRecord({ kind: 'isolated', methods: ['fc-off'], digests: ['df'], evidence: [{ source: `CSIDriver ${driver}`, word: 'its volumes are out of reach', at: 'then' }] })
const proven: Partial<IncidentStatus> = { phase: 'Running', step: 'clear', attempts: [cut], proof: isolated }
const isCut: Partial<NodeSeen> = {
  ...dead, path: path(), record: record({ paths: paths('unproven') }), beat: beat({ at: now - 10_000 }), taints: [quarantine], pods: podsOf([]),
  readings: [port('on', now - 8_000), port('off', now - 2_300), port('off', now - 900), reading('on', now - 900)],
  firstSeen: new Map([...seenOrder(now - 6_000, now - 4_000), seenProof(now - 800, 0, 'isolated')]),
}
const clean = (at: number): Partial<NodeSeen> => ({ beat: beat({ clean: { at, report: { state: 'clean' } } }) })
const dirty: Partial<NodeSeen> = { beat: beat({ clean: { at: now - 300, report: { state: 'dirty', leftovers: [{ kind: 'mount', path: '/var/lib/kubelet/x' }] } } }) }
const held: Partial<NodeSeen> = { pods: podsOf([pod('p', { volumes: [{ claim: 'default/pv-1', is: 'bound', volume: 'pv-1', driver, provisioner: '', shared: false, local: false }] })]) }

/** node-1, on the same switch. */
const known = (identity: PathAudit['identity']) => record({ paths: paths(identity), nodeUid: 'uid-node-1', machine: 'machine-1' })
const beside = (changes: Partial<NodeSeen>, status: Partial<IncidentStatus> = {}): readonly [NodeSeen, Incident] => [
  node({ ...isCut, name: 'node-1', record: known('unproven'), firstSeen: new Map([...seenOrder(now - 6_000, now - 4_000, 'node-1-abc-1.1'), [proofKey('node-1-abc-1', 0, isolated), now - 800]]), ...changes }),
  incident({ ...proven, attempts: [{ ...cut, id: 'node-1-abc-1.1' }], proof: { ...isolated, nodeUid: 'uid-node-1' }, ...status }, { name: 'node-1-abc-1', nodeName: 'node-1', nodeUid: 'uid-node-1', machine: 'machine-1', policy: patient }),
]
const both = (changes: Partial<NodeSeen>, [other, its]: readonly [NodeSeen, Incident], status: Partial<IncidentStatus> = {}): readonly Action[] =>
  decide(seen([node({ ...isCut, ...changes }), other, node({ name: 'node-3' })], [incident({ ...proven, ...status }, { policy: patient }), its]), now, [patient])
const letIn = (actions: readonly Action[]): string[] => actions.flatMap((action) => (action.do === 'restore' ? [action.node] : [])).toSorted()

test('two that were cut off by one switch do not wait for each other: heard and clean, each is let in, and neither before the other is so', () => {
  const back = clean(now - 300)
  assert.equal(letIn(both(back, beside(back))), ['node-1', 'node-2'])
  for (const [what, other] of [['silent', {}], ['not clean', dirty], ['clean before it was proven', clean(now - 900)]] as const) {
    const waits = both(back, beside(other))
    assert.equal([letIn(waits), waits.flatMap((action) => (action.do === 'hold' && action.node === 'node-2' && action.because === 'concurrency' ? [action.lifts] : []))],
      [[], ['its last volume freed, a clean report of its agent, or its next boot']], what)
  }
})

const freed = (actions: readonly Action[]): readonly unknown[] => [
  actions.some((action) => action.do === 'delete' && action.node === 'node-2'),
  actions.flatMap((action) => (action.do === 'hold' && action.node === 'node-2' && action.because === 'proof-doubted' ? [action.detail] : [])),
]

const onAgain = attempt({ ...cut, id: 'node-2-abc-1.2', action: 'on' })
const alone = { ...clean(now - 300), record: known('proven') }
const ownOn = (result: 'running' | 'failed' | 'on', began: number, changes: Partial<NodeSeen> = {}) => freed(both({
  ...held, firstSeen: new Map([...seenOrder(began - 9_000, began - 8_000), seenProof(began - 7_000, 0, 'isolated'), ...seenOrder(began, began + 2_000, onAgain.id)]), ...changes,
}, beside(alone), { step: 'recovery', attempts: [cut, { ...onAgain, result }] }))

test('silent again after it was ordered on, nothing more is freed of it until that can land no more and its port was read off since', () => {
  const doubt = [false, ['nothing more is freed: fc-off was ordered on since, which may still land']]
  assert.equal(ownOn('failed', now - 20_000), doubt)
  assert.equal(ownOn('running', now - 20_000, { busy: new Set(['order node-2 fc-off']) }), doubt)
  assert.equal(ownOn('failed', now - 90_500), doubt, 'it can land no more, and nobody has read it since')
  assert.equal(ownOn('failed', now - 92_000), [true, []])
  assert.equal(ownOn('on', now - 2_500), doubt, 'it was read off before it was on')
})

test('nor after a neighbour was ordered on by a port that may be its own', () => {
  const asked = { ...clean(now - 300), firstSeen: new Map([...seenOrder(now - 9_000, now - 8_000, 'node-1-abc-1.1'), ...seenOrder(now - 3_000, now - 2_000, 'node-1-abc-1.2')]) }
  const given = { step: 'recovery', attempts: [{ ...cut, id: 'node-1-abc-1.1' }, { ...onAgain, id: 'node-1-abc-1.2', result: 'on' }] } as const
  const doubt = [false, ['nothing more is freed: fc-off of node-1 was ordered on since, and nothing proves that it does not let node-2 in']]
  assert.equal(freed(both(held, beside(asked, given))), doubt)
  assert.equal(freed(both(held, beside(asked, { ...given, phase: 'Final', outcome: 'Recovered' }))), doubt, 'its incident is over')
  assert.equal(freed(both(held, beside({ ...asked, busy: new Set(['order node-1 fc-off']) }, { attempts: given.attempts.slice(0, 1) }))), doubt, 'the order is being written down')
  assert.equal(freed(both(held, beside({ ...asked, uid: 'of the next one' }, { ...given, phase: 'Done' }))), doubt, 'its Node was made anew, for which it was given')
  for (const [what, changes, other] of [
    ['its own port is known', { record: record({ paths: paths('proven') }) }, beside(asked, given)],
    ['the neighbour\'s is', {}, beside({ ...asked, record: known('proven') }, given)],
    ['it was given before this one was cut off', {}, beside({ ...asked, firstSeen: new Map(seenOrder(now - 20_000, now - 19_000, 'node-1-abc-1.2')) }, given)],
    ['it hangs on another switch', {}, beside({ ...asked, path: path({ ...fc, device: 'fc-9' }) }, given)],
    ['no order was given yet', {}, beside(asked)],
  ] as const) assert.equal(freed(both({ ...held, ...changes }, other)), [true, []], what)
})

test.run()
