import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { foreignTaint, goesOutOfService, hasOurs, hasTaint, left, nothingLeft, outOfServiceKey, quarantineKey, unburied, volumesOf, type Left } from '../../core/clear.ts'
import type { PodFate } from '../../core/incident.ts'
import type { NodeSeen, PodSeen } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { incident, node, now, pod, podsOf, policy, volume } from './world.ts'

const test = suite('clear')

const provenAt = now - 3_000
const fate = (name: string, uid: string): PodFate => ({ namespace: 'default', name, uid, fate: 'freed' })

function of(pods: readonly PodSeen[], changes: Partial<NodeSeen> = {}, fates: readonly PodFate[] = [], budget = 150): Left {
  const rest = left(incident({ pods: fates }), node({ pods: podsOf(pods), ...changes }), budget, provenAt, now)
  if (rest === undefined) return assert.unreachable('the pods were to be listed first') as never
  return rest
}

const names = (pods: readonly PodSeen[]): string[] => pods.map((one) => one.name)

test('all pods of the node are to be freed', () => {
  assert.equal(names(of([pod('web-0'), pod('web-1')]).batch), ['web-0', 'web-1'])
})

test('mirror pods, DaemonSet pods and ours are left alone', () => {
  const rest = of([pod('kube-proxy', { exempt: 'DaemonSet' }), pod('etcd', { exempt: 'mirror' })])
  assert.equal([rest.batch, rest.waiting, nothingLeft(rest)], [[], 0, true])
})

test('under DoNothing nothing is to be freed', () => {
  const rest = left(incident({}, { policy: { ...policy, nodeDownPodDeletionPolicy: 'DoNothing' } }), node({ pods: podsOf([pod('web-0')]), volumes: [volume('pv-1')] }), 150, provenAt, now)
  assert.ok(rest !== undefined && rest.batch.length === 0 && nothingLeft(rest))
})

const stale: [string, Partial<NodeSeen>][] = [
  ['there is none', {}],
  ['it was asked for before the proof', { pods: { askedAt: provenAt - 1, listedAt: now - 100, items: [] } }],
  ['it is older than two seconds', { pods: { askedAt: now - 2_500, listedAt: now - 2_001, items: [] } }],
]
for (const [why, changes] of stale) test(`nothing follows from a list of pods if ${why}`, () => {
  assert.is(left(incident(), node(changes), 150, provenAt, now), undefined)
})

test('priority goes first, then StatefulSets, then the rest by name', () => {
  const pods = [pod('b', { owner: 'ReplicaSet' }), pod('a', { owner: 'ReplicaSet' }), pod('z', { owner: 'StatefulSet' }), pod('urgent', { owner: 'Job', priority: 1_000 })]
  assert.equal(names(of(pods).batch), ['urgent', 'z', 'a', 'b'])
})

const many = Array.from({ length: 60 }, (_, index) => pod(`web-${String(index).padStart(2, '0')}`))

test('a batch is small enough to end before a machine could boot', () => {
  const rest = of(many)
  assert.equal([rest.batch.length, rest.waiting], [25, 35])
})

test('a batch is no larger than the rate allows', () => {
  const rest = of(many, {}, [], 7)
  assert.equal([rest.batch.length, rest.waiting], [7, 53])
})

test('a node whose pods wait for the rate is not cleared', () => {
  for (const budget of [0, -3]) {
    const rest = of([pod('web-0')], {}, [], budget)
    assert.equal([rest.batch.length, rest.waiting, nothingLeft(rest)], [0, 1, false])
  }
})

test('what was freed but is there still is freed again, unless a finalizer keeps it', () => {
  assert.equal(names(of([pod('web-0')], {}, [fate('web-0', 'uid-web-0')]).batch), ['web-0'])
  const kept = of([pod('web-0', { finalizers: ['x/y'], terminating: true })], {}, [fate('web-0', 'uid-web-0')])
  assert.equal([names(kept.batch), names(kept.kept), nothingLeft(kept)], [[], ['web-0'], false])
})

test('a finalizer alone keeps nothing from being freed', () => {
  assert.equal(names(of([pod('web-0', { finalizers: ['x/y'] })]).batch), ['web-0'])
  assert.equal(names(of([pod('web-0', { finalizers: ['x/y'] })], {}, [fate('web-0', 'uid-web-0')]).batch), ['web-0'])
})

const freedBefore = (count: number) => of([pod('web-0', { uid: 'new' })], {}, Array.from({ length: count }, (_, index) => fate('web-0', `uid-${index}`)))

test('a successor that the scheduler sends back is freed three times, then named', () => {
  for (const count of [1, 2, 3]) assert.equal(names(freedBefore(count).batch), ['web-0'], `the pod and ${count - 1} successors`)
  const rest = freedBefore(4)
  assert.equal([names(rest.batch), names(rest.returning), rest.waiting, nothingLeft(rest)], [[], ['web-0'], 0, true])
})

test('a ReplicaSet whose pods come back under new names is not freed for ever', () => {
  const fates = Array.from({ length: 300 }, (_, index) => fate(`api-5d4f-${index + 10_000}`, `uid-${index}`))
  const rest = of([pod('api-5d4f-abcde', { owner: 'ReplicaSet' }), pod('api-77aa-abcde', { owner: 'ReplicaSet' })], {}, fates)
  assert.equal([names(rest.batch), names(rest.returning)], [['api-77aa-abcde'], ['api-5d4f-abcde']])
})

test('a node is cleared only when no volume is left', () => {
  assert.not(nothingLeft(of([], { volumes: [volume('pv-1')] })))
  assert.ok(nothingLeft(of([])))
})

test('a taint is told by its key', () => {
  const tainted = node({ taints: [{ key: outOfServiceKey, effect: 'NoExecute' }] })
  assert.ok(hasTaint(tainted, outOfServiceKey))
  assert.not(hasTaint(node(), outOfServiceKey))
})

const bears = (key: string, value?: string) => hasOurs(node({ taints: [{ key, effect: 'NoSchedule', ...(value === undefined ? {} : { value }) }] }), key)

test('out-of-service is ours by its value, quarantine by its key', () => {
  assert.equal([bears(outOfServiceKey, 'holdfast'), bears(outOfServiceKey, 'nodeshutdown'), bears(outOfServiceKey)], [true, false, false])
  assert.equal([bears(quarantineKey, 'holdfast'), bears(quarantineKey)], [true, true])
  assert.is(hasOurs(node(), outOfServiceKey), false)
})

test('another\'s out-of-service is named by its value and effect, beside ours too', () => {
  const ours = { key: outOfServiceKey, value: 'holdfast', effect: 'NoSchedule' } as const
  const others = { key: outOfServiceKey, value: 'nodeshutdown', effect: 'NoExecute' } as const
  assert.is(foreignTaint(node({ taints: [ours] })), undefined)
  assert.is(foreignTaint(node()), undefined)
  for (const taints of [[others], [ours, others]]) assert.match(foreignTaint(node({ taints }))?.detail ?? '', /out-of-service=nodeshutdown:NoExecute/)
  assert.match(foreignTaint(node({ taints: [{ key: outOfServiceKey, effect: 'NoSchedule' }] }))?.detail ?? '', /out-of-service:NoSchedule/)
})

const both: Partial<Policy> = { nodeDownPodDeletionPolicy: 'DeleteBothStatefulsetAndDeploymentPod' }
const holding = (name: string, volumes: readonly string[], changes: Partial<PodSeen> = {}): PodSeen =>
  pod(name, { volumes: volumes.map((one) => ({ claim: `default/${one}`, is: 'bound', volume: one, driver: 'csi.example.com', provisioner: '', shared: false, local: false })), ...changes })
const attached = (name: string) => ({ attachment: `csi-${name}`, volume: name, driver: 'csi.example.com', fate: 'attached' } as const)

function selective(pods: readonly PodSeen[], freedVolumes: readonly string[], changes: Partial<NodeSeen> = {}, wanted: Partial<Policy> = both): Left {
  const volumes = ['pv-1', 'pv-2', 'pv-3'].map((name) => volume(name))
  const rest = left(
    incident({ volumes: freedVolumes.map(attached) }, { policy: { ...policy, ...wanted } }),
    node({ pods: podsOf(pods), volumes, inUse: new Set(volumes.map(({ attachment }) => attachment)), ...changes }), 150, provenAt, now,
  )
  if (rest === undefined) return assert.unreachable('the pods were to be listed first') as never
  return rest
}

const struck = (rest: Left): string[][] => [rest.volumes, rest.strike].map((some) => some.map((one) => one.volume))

test('of a spared kind nothing is freed and no volume is waited for, and each pod is named with the reason', () => {
  const rest = selective([holding('web-0', ['pv-1']), holding('job', ['pv-2'], { owner: 'Job' })], [])
  assert.equal(names(rest.batch), ['web-0'])
  assert.equal(rest.alone.map((one) => [one.pod.name, one.because]), [['job', 'nodeDownPodDeletionPolicy is DeleteBothStatefulsetAndDeploymentPod: a pod of Job is left alone']])
  assert.equal(struck(rest), [[], []])
})

test('exactly the volumes of freed pods are struck, once the pods are gone', () => {
  assert.equal(struck(selective([holding('job', ['pv-2'], { owner: 'Job' })], ['pv-1'])), [['pv-1'], ['pv-1']])
  assert.equal(struck(selective([holding('web-0', ['pv-1'])], ['pv-1'])), [['pv-1'], []], 'while the pod stands it is in use')
  assert.equal(struck(selective([holding('web-0', ['pv-1'], { phase: 'Failed' })], ['pv-1'])), [['pv-1'], ['pv-1']], 'one that is over uses nothing')
})

test('a volume that a spared pod shares with a freed one stays with it, and keeps nothing waiting', () => {
  const rest = selective([holding('job', ['pv-1'], { owner: 'Job' })], ['pv-1'])
  assert.equal([struck(rest), nothingLeft(rest)], [[[], []], true])
})

test('what kubelet is not said to use, or is being detached, is not struck again', () => {
  assert.equal(struck(selective([], ['pv-1'], { inUse: new Set() })), [['pv-1'], []])
  assert.equal(struck(selective([], ['pv-1'], { volumes: [volume('pv-1', { deleting: true })] })), [['pv-1'], []])
})

test('under DeleteAllPods without out-of-service every volume of the node is struck but those of pods that belong to it', () => {
  const rest = selective([holding('store', ['pv-3'], { exempt: 'a DaemonSet pod' })], [], {}, { release: 'selective' })
  assert.equal(struck(rest), [['pv-1', 'pv-2'], ['pv-1', 'pv-2']])
})

test('a replaced pod that stays lets go of its volumes only once nothing of it is said to run', () => {
  const wanted: Partial<Policy> = { nodeDownPodDeletionPolicy: 'DoNothing', volumeAttachmentRecovery: 'immediate' }
  const shell = holding('shell', ['pv-1'], { owner: 'ReplicaSet', terminating: true })
  const before = selective([shell], [], {}, wanted)
  assert.equal([names(before.release), struck(before), nothingLeft(before)], [['shell'], [[], []], false])
  const after = selective([{ ...shell, ended: true }], ['pv-1'], {}, wanted)
  assert.equal([names(after.release), struck(after)], [[], [['pv-1'], ['pv-1']]])
})

test('a pod that is not due keeps the node from being cleared', () => {
  const rest = selective([holding('web-0', ['pv-1'])], [], {}, { onlyTerminating: true })
  assert.equal([names(rest.batch), rest.later.map((one) => one.pod.name), nothingLeft(rest)], [[], ['web-0'], false])
})

test('the volumes of freed pods come onto the record, and where everything is freed those of the node', () => {
  const one = node({ volumes: [volume('pv-1'), volume('pv-2')] })
  const told = (changes: Partial<Policy>) => volumesOf(incident({}, { policy: { ...policy, ...changes } }), one, [holding('web-0', ['pv-1'])]).map((seen) => seen.volume)
  assert.equal([told(both), told({})], [['pv-1'], ['pv-1', 'pv-2']])
})

const goes = (changes: Partial<Policy>): boolean => goesOutOfService(incident({}, { policy: { ...policy, ...changes } }), { kind: 'off' })

test('out-of-service takes a proof of the machine, a policy that spares nobody, and leave', () => {
  assert.equal([goes({}), goes(both), goes({ onlyTerminating: true }), goes({ provisioners: ['x'] }), goes({ release: 'selective' })], [true, false, false, false, false])
})

const litter = (pods: readonly PodSeen[]) => unburied(incident({ pods: [fate('web-0', 'uid-web-0')] }), node({ pods: podsOf(pods) }))?.map((one) => one.name)
const doomed = { uid: 'uid-web-0', phase: 'Failed' }

test('what was doomed and never deleted is left to bury', () => assert.equal(litter([pod('web-0', doomed)]), ['web-0']))

const living: [string, PodSeen][] = [
  ['another pod that failed', pod('web-0', { uid: 'another', phase: 'Failed' })],
  ['a pod on the record that was never touched', pod('web-0', { uid: 'uid-web-0', phase: 'Running' })],
  ['one that is being deleted', pod('web-0', { ...doomed, terminating: true })],
]
for (const [what, one] of living) test(`not to bury: ${what}`, () => assert.equal(litter([one]), []))

test('nothing is listed for an incident that doomed nobody', () => assert.equal(unburied(incident(), node({})), []))

test('pods that were not listed are to be listed first', () => assert.is(unburied(incident({ pods: [fate('web-0', 'uid-web-0')] }), node({})), undefined))

test.run()
