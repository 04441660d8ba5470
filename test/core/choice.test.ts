// The table of the document on pods of a down node, cell by cell, and what stands beside it.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { choose, freesEverything, freesNothing, type Choice } from '../../core/choice.ts'
import { terminatingKey, type PodSeen, type PodVolume } from '../../core/model.ts'
import type { DeletionPolicy, Policy } from '../../core/policy.ts'
import { node, now, pod, policy } from './world.ts'

const test = suite('choice')

const owners: readonly PodSeen['owner'][] = ['StatefulSet', 'ReplicaSet', 'Job', 'other', 'none']
const table: Readonly<Record<DeletionPolicy, readonly Choice['is'][]>> = {
  DoNothing: ['left', 'left', 'left', 'left', 'left'],
  DeleteStatefulSetPod: ['free', 'left', 'left', 'left', 'left'],
  DeleteDeploymentPod: ['left', 'free', 'left', 'left', 'left'],
  DeleteBothStatefulsetAndDeploymentPod: ['free', 'free', 'left', 'left', 'left'],
  DeleteAllPods: ['free', 'free', 'free', 'free', 'free'],
}

export function bound(volume: string, changes: Partial<PodVolume> = {}): PodVolume {
  return { claim: `default/${volume}`, is: 'bound', volume, driver: 'driver.longhorn.io', provisioner: 'driver.longhorn.io', shared: false, local: false, ...changes }
}

const of = (one: PodSeen, changes: Partial<Policy>, since?: number): Choice => choose(one, { ...policy, ...changes }, node({ firstSeen: new Map(since === undefined ? [] : [[terminatingKey(one.uid), since]]) }), now)

for (const [name, row] of Object.entries(table)) for (const [index, owner] of owners.entries()) {
  test(`${name}, a pod of ${owner}: ${row[index]}`, () => {
    const nodeDownPodDeletionPolicy = name as DeletionPolicy // a key of the table
    const ended = { terminating: true, grace: 0, volumes: [bound('pv-1')] }
    assert.is(of(pod('p', { owner, ...ended }), { nodeDownPodDeletionPolicy }, now - 1).is, row[index])
    assert.is(of(pod('p', { owner, ...ended }), { nodeDownPodDeletionPolicy, onlyTerminating: true, provisioners: ['driver.longhorn.io'] }, now - 1).is, row[index], 'to the letter')
  })
}

test('what belongs to its node is never chosen', () => {
  for (const nodeDownPodDeletionPolicy of Object.keys(table) as DeletionPolicy[]) { // they are its keys
    for (const owner of owners) assert.is(of(pod('p', { owner, exempt: 'a static pod' }), { nodeDownPodDeletionPolicy }).is, 'left')
  }
})

const grace: [string, Partial<PodSeen>, number | undefined, Choice['is']][] = [
  ['that runs', {}, undefined, 'later'],
  ['terminating for less than its grace', { terminating: true, grace: 30_000 }, now - 29_999, 'later'],
  ['terminating for its grace', { terminating: true, grace: 30_000 }, now - 30_000, 'free'],
  ['never seen terminating before', { terminating: true, grace: 30_000 }, undefined, 'later'],
]
for (const [what, changes, since, is] of grace) test(`onlyTerminating: a pod ${what} is ${is}`, () => assert.is(of(pod('p', changes), { onlyTerminating: true }, since).is, is))

const provisioned: [string, readonly PodVolume[], Choice['is']][] = [
  ['no volume', [], 'left'],
  ['one of another driver', [bound('pv-1', { driver: 'ebs.csi.aws.com', provisioner: '' })], 'left'],
  ['one of that driver', [bound('pv-1', { provisioner: '' })], 'free'],
  ['one of that provisioner, made in-tree', [bound('pv-1', { driver: '' })], 'free'],
  ['one of that driver beside another', [bound('pv-1', { driver: 'x', provisioner: 'x' }), bound('pv-2')], 'free'],
  ['one that nobody could read', [bound('', { is: 'unread', driver: '', provisioner: '' })], 'later'],
]
for (const [what, volumes, is] of provisioned) test(`provisioners: a pod with ${what} is ${is}`, () => assert.is(of(pod('p', { volumes }), { provisioners: ['driver.longhorn.io'] }).is, is))

test('a pod whose volume cannot leave the node is left alone, and its volume named', () => {
  const choice = of(pod('p', { volumes: [bound('pv-1'), bound('pv-local', { local: true })] }), {})
  assert.equal(choice, { is: 'left', because: 'pv-local can be used on this node alone: nothing is gained by another pod' })
})

const shell = (changes: Partial<PodSeen> = {}): PodSeen => pod('shell', { owner: 'ReplicaSet', volumes: [bound('vol1')], terminating: true, grace: 30_000, ...changes })
const recovery: [string, PodSeen, number, Record<'never' | 'wait' | 'immediate', Choice['is']>][] = [
  ['that runs', shell({ terminating: false }), now, { never: 'left', wait: 'later', immediate: 'later' }],
  ['just terminating', shell(), now - 1_000, { never: 'left', wait: 'later', immediate: 'release' }],
  ['whose grace is over', shell(), now - 30_000, { never: 'left', wait: 'release', immediate: 'release' }],
  ['of which nothing runs any more', shell({ ended: true }), now - 30_000, { never: 'left', wait: 'left', immediate: 'left' }],
  ['without a volume', shell({ volumes: [] }), now - 30_000, { never: 'left', wait: 'left', immediate: 'left' }],
  ['of a StatefulSet', shell({ owner: 'StatefulSet' }), now - 30_000, { never: 'left', wait: 'left', immediate: 'left' }],
]
for (const [what, one, since, row] of recovery) for (const volumeAttachmentRecovery of ['never', 'wait', 'immediate'] as const) {
  test(`volumeAttachmentRecovery ${volumeAttachmentRecovery}: a spared pod ${what}: ${row[volumeAttachmentRecovery]}`, () => {
    assert.is(of(one, { nodeDownPodDeletionPolicy: 'DoNothing', volumeAttachmentRecovery }, since).is, row[volumeAttachmentRecovery])
  })
}

test('a ReplicaSet pod that the policy deletes is deleted, whatever the recovery policy', () => {
  for (const volumeAttachmentRecovery of ['never', 'wait', 'immediate'] as const) {
    assert.is(of(shell(), { nodeDownPodDeletionPolicy: 'DeleteDeploymentPod', volumeAttachmentRecovery }, now).is, 'free')
  }
})

const all = (changes: Partial<Policy>): boolean[] => [freesEverything({ ...policy, ...changes }), freesNothing({ ...policy, ...changes })]

test('only a policy that spares nobody frees everything, and only DoNothing without recovery frees nothing', () => {
  assert.equal(all({}), [true, false])
  assert.equal(all({ onlyTerminating: true }), [false, false])
  assert.equal(all({ provisioners: ['x'] }), [false, false])
  assert.equal(all({ nodeDownPodDeletionPolicy: 'DeleteBothStatefulsetAndDeploymentPod' }), [false, false])
  assert.equal(all({ nodeDownPodDeletionPolicy: 'DoNothing' }), [false, true])
  assert.equal(all({ nodeDownPodDeletionPolicy: 'DoNothing', volumeAttachmentRecovery: 'wait' }), [false, false])
})

test.run()
