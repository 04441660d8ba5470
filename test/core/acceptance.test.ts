import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { acceptance, isShut, tolerating } from '../../core/acceptance.ts'
import { quarantineKey } from '../../core/clear.ts'
import { decide } from '../../core/decide.ts'
import type { NodeSeen } from '../../core/model.ts'
import { beat, boot, incident, newBoot, node, now, pod, podsOf, policy, seen, self, three } from './world.ts'

const test = suite('acceptance')

const quarantine = { key: quarantineKey, value: 'holdfast', effect: 'NoSchedule' } as const
const accepted = { accepted: true, reason: '' }

test('the boot of a node that nothing is held against is accepted', () => {
  assert.equal(acceptance(node(), boot, undefined, [policy], now), accepted)
  assert.equal(acceptance(node({ taints: [{ key: 'example.com/gpu', effect: 'NoSchedule' }] }), boot, undefined, [policy], now), accepted)
})

test('under quarantine it is not, and the reason is what the quarantine waits for', () => {
  const dirty = beat({ clean: { at: now - 1_000, report: { state: 'dirty', leftovers: [{ kind: 'mount', path: '/x' }] } } })
  const word = acceptance(node({ taints: [quarantine], beat: dirty }), boot, undefined, [policy], now)
  assert.equal(word, { accepted: false, reason: '1 left over on node-2: mount /x' })
})

test('under a quarantine that waits for nothing any more it is not either, until the taint is off', () => {
  const firstSeen = new Map([['gone node.kubernetes.io/out-of-service', now - 60_000]])
  assert.is(acceptance(node({ taints: [quarantine], firstSeen }), boot, undefined, [policy], now).accepted, false)
})

test('while the incident of an earlier boot is open the new one is not accepted, quarantined or not', () => {
  assert.match(acceptance(node(), newBoot, incident(), [policy], now).reason, /node-2-abc-1 of an earlier boot is not over/)
})

test('an incident of this very boot in which nothing was cut holds no pod back: it is about to be withdrawn', () => {
  assert.equal(acceptance(node(), boot, incident(), [policy], now), accepted)
})

test('a boot that follows one that was cut off is not accepted before somebody has looked, where a policy guards the node', () => {
  const cut = node({ beat: beat({ boot: newBoot, gate: 'shut', before: 'cut off' }) })
  assert.match(acceptance(cut, newBoot, undefined, [policy], now).reason, /was cut off/)
  for (const policies of [[], [{ ...policy, mode: 'dryRun' as const }], [{ ...policy, nodeLabels: { other: 'yes' } }]]) assert.equal(acceptance(cut, newBoot, undefined, policies, now), accepted)
})

test('a node that others have in hand is not quarantined for it, and its gate does not wait for that either', () => {
  const cut = node({ beat: beat({ boot: newBoot, gate: 'shut', before: 'cut off' }), annotations: { 'holdfast.dev/maintenance': 'new memory' } })
  assert.equal(acceptance(cut, newBoot, undefined, [policy], now), accepted)
  assert.match(acceptance(cut, newBoot, incident(), [policy], now).reason, /of an earlier boot is not over/)
})

test('a pod that tolerates is named as its runtime knows it', () => {
  const items = [pod('db-0'), pod('csi', { tolerates: true }), pod('proxy', { tolerates: true, folder: 'hash' })]
  assert.equal(tolerating(podsOf(items)), ['uid-csi', 'hash'])
  assert.equal(tolerating(undefined), [])
})

const shut = (changes: Partial<NodeSeen> = {}): Partial<NodeSeen> => ({ beat: beat({ gate: 'shut', clean: { at: now - 100, report: { state: 'unknown', reason: 'no list' } } }), ...changes })
const asks = (changes: Partial<NodeSeen>) => decide(three(changes), now, [policy]).filter((action) => action.do === 'askClean')

test('an agent whose gate is shut is told at once what belongs on its node, and again every five seconds', () => {
  assert.equal(asks(shut()), [{ do: 'askClean', node: 'node-2' }])
  assert.equal(asks(shut({ pods: podsOf([], now - 4_000) })), [])
  assert.is(asks(shut({ pods: podsOf([], now - 6_000), beat: beat({ gate: 'shut', clean: { at: now - 5_000, report: { state: 'unknown', reason: '' } } }) })).length, 1)
  assert.is(asks(shut({ pods: podsOf([], 1_000) })).length, 1)
})

const lists = (changes: Partial<NodeSeen>, own = self()) => decide(three(shut({ taints: [quarantine], ...changes }), [], own), now, [policy]).filter((action) => action.do === 'listPods')

test('the pods of a quarantined node whose gate is shut are listed every five seconds, also while somebody has paused it', () => {
  for (const own of [self(), self({ pause: { reason: 'a look', by: 'ops' } })]) {
    assert.equal(lists({}, own), [{ do: 'listPods', node: 'node-2' }])
    assert.equal(lists({ pods: podsOf([], now - 4_900) }, own), [])
    assert.is(lists({ pods: podsOf([], now - 5_000) }, own).length, 1)
  }
  assert.equal(lists({ beat: beat({ gate: 'open' }) }), [])
})

test('nobody is told whose gate is open, off or absent, who is silent, or who is asked already', () => {
  for (const gate of ['open', 'off', 'absent'] as const) assert.equal(asks({ beat: beat({ gate }) }), [], gate)
  assert.equal(asks({ beat: beat() }), [])
  assert.is(isShut(beat({ gate: 'shut', at: now - 1_500 }), now), false)
  assert.equal(asks(shut({ busy: new Set(['askClean node-2']) })), [])
})

test('a cluster that starts as a whole is asked sixteen nodes at once', () => {
  const nodes = Array.from({ length: 40 }, (_, index) => node({ name: `node-${index}`, ...shut(index < 10 ? { busy: new Set([`askClean node-${index}`]) } : {}) }))
  assert.is(decide(seen(nodes), now, [policy]).filter((action) => action.do === 'askClean').length, 6)
})

test.run()
