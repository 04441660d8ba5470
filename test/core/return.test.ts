import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { outOfServiceKey, quarantineKey } from '../../core/clear.ts'
import type { IncidentStatus } from '../../core/incident.ts'
import type { BeatSeen, NodeSeen } from '../../core/model.ts'
import { awaiting } from '../../core/return.ts'
import { attempt, beat, boot, incident, newBoot, node, now, proofRecord, seenOrder, seenProof, volume } from './world.ts'

const test = suite('return')

const quarantine = { key: quarantineKey, effect: 'NoSchedule' } as const
const proof: Partial<IncidentStatus> = { proof: proofRecord(), volumes: [{ attachment: 'csi-pv-1', volume: 'pv-1', driver: 'csi.example.com', fate: 'attached' }] }
const firstSeen = new Map([seenProof(now - 60_000), ...seenOrder(now - 70_000, now - 65_000), [`gone ${outOfServiceKey}`, now - 31_000] as [string, number]])
const booted = (changes: Partial<BeatSeen> = {}): BeatSeen => beat({ boot: newBoot, since: now - 20_000, clean: { at: now - 2_000, report: { state: 'clean' } }, ...changes })
const ready = { status: 'True', postedAt: now - 19_000, since: now - 19_000, bootId: 'boot-2' } as const

/** node-2 in a new boot, everything as it should be. */
const back: Partial<NodeSeen> = { beat: booted(), ready, taints: [quarantine], firstSeen }

const waits = (changes: Partial<NodeSeen> = {}, status: Partial<IncidentStatus> = proof) => awaiting(incident(status), node({ ...back, ...changes }), now)

function waitsFor(because: string, what: RegExp, changes: Partial<NodeSeen>, status: Partial<IncidentStatus> = proof): void {
  const brake = waits(changes, status)
  assert.is(brake?.because, because, JSON.stringify(brake))
  assert.match(brake?.detail ?? '', what)
  assert.ok((brake?.lifts ?? '').length > 3)
}

test('a node in a new boot, Ready in it and clean, waits for nothing', () => {
  assert.is(waits(), undefined)
})

const conditions: [string, string, RegExp, Partial<NodeSeen>][] = [
  ['was not heard', 'waiting-for-boot', /not been heard/, { beat: undefined }],
  ['is silent', 'waiting-for-boot', /silent for 3\.1 s/, { beat: booted({ at: now - 3_100 }) }],
  ['is not Ready', 'waiting-for-kubelet', /Ready/, { ready: { ...ready, status: 'False' } }],
  ['is Ready by a status of the boot that was fenced', 'waiting-for-kubelet', /Ready/, { ready: { ...ready, bootId: 'boot-1' } }],
  ['has not said whether it is clean', 'waiting-for-clean', /cannot tell/, { beat: { boot: newBoot, since: now - 20_000, at: now - 200, kubelet: 'ok' } }],
  ['said it was clean in an earlier boot only', 'waiting-for-clean', /cannot tell/, { beat: booted({ clean: { at: now - 21_000, report: { state: 'clean' } } }) }],
  ['cannot tell whether it is clean', 'waiting-for-clean', /hung disk/, { beat: booted({ clean: { at: now - 2_000, report: { state: 'unknown', reason: 'hung disk' } } }) }],
  ['has a mount left over', 'waiting-for-clean', /1 left over.*\/var\/lib\/x/, { beat: booted({ clean: { at: now - 2_000, report: { state: 'dirty', leftovers: [{ kind: 'mount', path: '/var/lib/x' }] } } }) }],
  ['has one of which more is known', 'waiting-for-clean', /: mount \/x of disk\.example since 2026-11-19T20:00:00Z \(target is busy\)$/, { beat: booted({ clean: { at: now - 2_000, report: { state: 'dirty', leftovers: [{ kind: 'mount', path: '/x', driver: 'disk.example', since: Date.UTC(2026, 10, 19, 20), fault: 'target is busy' }] } } }) }],
  ['has a freed volume still being detached', 'waiting-for-volumes', /1 freed/, { volumes: [volume('pv-1', { deleting: true })] }],
  ['bears another\'s out-of-service', 'foreign-taint', /nodeshutdown/, { taints: [quarantine, { key: outOfServiceKey, value: 'nodeshutdown', effect: 'NoExecute' }] }],
  ['bears Kubernetes\' own not-ready', 'waiting-for-controllers', /not-ready/, { taints: [quarantine, { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }] }],
  ['bears Kubernetes\' own unreachable', 'waiting-for-controllers', /unreachable/, { taints: [quarantine, { key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' }] }],
  ['is out of service', 'waiting-for-controllers', /still on/, { taints: [quarantine, { key: outOfServiceKey, value: 'holdfast', effect: 'NoSchedule' }] }],
  ['was out of service until less than thirty seconds ago', 'waiting-for-controllers', /29\.0 s of 30\.0 s/, { firstSeen: new Map([...firstSeen, [`gone ${outOfServiceKey}`, now - 29_000]]) }],
]
for (const [how, because, what, changes] of conditions) test(`a node that ${how} keeps its quarantine`, () => waitsFor(because, what, changes))

test('a volume attached anew, or one that nobody freed, holds nobody back', () => {
  assert.is(waits({ volumes: [volume('pv-1')] }), undefined)
  assert.is(waits({ volumes: [volume('pv-9', { deleting: true })] }), undefined)
})

test('thirty seconds after out-of-service is gone nothing waits for it any more', () => {
  assert.is(waits({ firstSeen: new Map([...firstSeen, [`gone ${outOfServiceKey}`, now - 30_000]]) }), undefined)
})

/** It never had an agent; its kubelet is back in a new boot for longer than one would take to be heard. */
const bare = (() => {
  const { beat: _, record: __, ...rest } = { ...node(back), bootId: 'boot-2', ready: { ...ready, since: now - 121_000 }, firstSeen: new Map([...firstSeen, seenProof(now - 200_000)]) }
  return rest
})()
const alone = (changes: Partial<NodeSeen> = {}, status: Partial<IncidentStatus> = proof) => awaiting(incident(status), { ...bare, ...changes }, now)

test('a node without an agent comes back by its kubelet\'s word, in a new boot', () => {
  assert.is(alone(), undefined)
  const lacking: readonly (readonly [Partial<NodeSeen>, string, RegExp])[] = [
    [{ ready: { ...bare.ready, status: 'Unknown' } }, 'waiting-for-kubelet', /Ready/],
    [{ ready: { ...bare.ready, since: now - 60_000 } }, 'waiting-for-boot', /for another 60\.0 s one may come/],
    [{ volumes: [volume('pv-1', { deleting: true })] }, 'waiting-for-volumes', /1 freed/],
    [{ inUse: new Set(['csi-pv-1']) }, 'waiting-for-volumes', /uses 1 volumes that were freed/],
    [{ taints: [quarantine, { key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' }] }, 'waiting-for-controllers', /unreachable/],
    [{ bootId: 'boot-1', ready: { ...bare.ready, bootId: 'boot-1' } }, 'waiting-for-boot', /in its old boot nobody can tell/],
  ]
  for (const [changes, because, what] of lacking) {
    const brake = alone(changes)
    assert.equal([brake?.because, what.test(brake?.detail ?? '')], [because, true], brake?.detail)
  }
  assert.is(alone({ inUse: new Set(['csi-pv-1']), volumes: [volume('pv-1')] }), undefined, 'attached anew')
  assert.is(alone({ bootId: 'boot-1', ready: { ...bare.ready, bootId: 'boot-1' } }, {}), undefined, 'nothing was freed')
  assert.match(awaiting(undefined, bare, now)?.lifts ?? '', /a person/)
})

// Machines in containers share the kernel's boot id: there the id cannot tell an old status from a new one.

const shared: Partial<NodeSeen> = { beat: booted({ boot: 'boot-1/900' }), ready: { ...ready, bootId: 'boot-1' } }

test('where machines share a boot id, Ready counts if it was posted after the proof', () => {
  assert.is(waits(shared), undefined)
  waitsFor('waiting-for-kubelet', /Ready/, { ...shared, ready: { ...ready, bootId: 'boot-1', postedAt: now - 60_500 } })
})

test('where machines share a boot id and nothing was proven, Ready counts if it was posted in the boot', () => {
  const withdrawn = { phase: 'Done' } as const
  assert.is(waits({ ...shared, ready: { ...ready, bootId: 'boot-1', postedAt: now - 19_000 } }, withdrawn), undefined)
  waitsFor('waiting-for-kubelet', /Ready/, { ...shared, ready: { ...ready, bootId: 'boot-1', postedAt: now - 20_500 } }, withdrawn)
})

// In the same boot: withdrawn, or its proof shown false.

const same: Partial<NodeSeen> = { beat: beat({ clean: { at: now - 2_000, report: { state: 'clean' } } }), ready: { ...ready, bootId: 'boot-1' } }
const voided: Partial<IncidentStatus> = { phase: 'Done', voided: [{ proof: proofRecord(), at: '', evidence: '' }], attempts: [attempt()] }

test('a node heard again in its old boot waits for nothing once its kubelet is well and it is clean', () => {
  assert.is(waits(same, { phase: 'Done' }), undefined)
  assert.is(waits(same, voided), undefined)
})

test('in its old boot Ready may be a word from before: the agent must hear the kubelet', () => {
  waitsFor('waiting-for-kubelet', /Ready/, { ...same, beat: beat({ kubelet: 'ill' }) }, { phase: 'Done' })
  waitsFor('waiting-for-kubelet', /Ready/, { ...same, beat: beat({ kubelet: 'unknown' }) }, { phase: 'Done' })
})

test('a clean report from before the proof says nothing of what was freed since', () => {
  waitsFor('waiting-for-clean', /cannot tell/, { ...same, beat: beat({ clean: { at: now - 60_500, report: { state: 'clean' } } }) }, voided)
})

test('an answer to a list of before the proof says nothing of what was freed since, however late it comes', () => {
  waitsFor('waiting-for-clean', /cannot tell/, { ...same, beat: beat({ clean: { at: now - 2_000, asOf: now - 60_500, report: { state: 'clean' } } }) }, voided)
})

test('a clean report from before out-of-service was removed says nothing of pods freed until then', () => {
  waitsFor('waiting-for-clean', /cannot tell/, { ...same, beat: beat({ clean: { at: now - 31_500, report: { state: 'clean' } } }) }, voided)
})

test('a clean report from before the end of the last order says nothing', () => {
  const later = new Map([...firstSeen, ...seenOrder(now - 6_000, now - 1_500)])
  waitsFor('waiting-for-clean', /cannot tell/, { ...same, firstSeen: later }, { phase: 'Done', attempts: [attempt({ result: 'failed' })] })
})

test('a node whose proof was shown false waits for controllers\' caches as well', () => {
  waitsFor('waiting-for-controllers', /29\.0 s/, { ...same, firstSeen: new Map([...firstSeen, [`gone ${outOfServiceKey}`, now - 29_000]]) }, voided)
})

// No incident is known any more.

test('a quarantine whose incident nobody remembers is lifted from a node that is well', () => {
  assert.is(awaiting(undefined, node({ ...same, firstSeen }), now), undefined)
  assert.is(awaiting(undefined, node({ ...same, beat: beat({ kubelet: 'ill' }), firstSeen }), now)?.because, 'waiting-for-kubelet')
  assert.is(awaiting(undefined, node({ ...same, firstSeen, ready: { ...ready, bootId: 'boot-1', status: 'Unknown' } }), now)?.because, 'waiting-for-kubelet')
})

test('a boot that this replica heard only in part is judged by what it heard', () => {
  assert.is(waits({ ...back, beat: booted({ boot }) })?.because, 'waiting-for-kubelet')
})

test.run()
