// A crash kernel's word was taken for a proof, and then the node itself is heard: by others, its seal on an answer to our own nonce, or by a beat
// that came while the proof was being written down.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decide } from '../../core/decide.ts'
import type { NodeSeen, WitnessSeen } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { outOfService, quarantine } from './states.ts'
import { beat, dead, incident, method, now, pod, podsOf, policy as usual, proofRecord, reading, seenProof, three } from './world.ts'

const test = suite('proven, and heard')

const policy: Policy = { ...usual, kdump: 'accept' }
const provenAt = now - 4_000

/** Proven, and its pods are being freed. */
function wants(witnesses: readonly Partial<WitnessSeen>[], own: Partial<NodeSeen> = {}): readonly string[] {
  const changes = {
    ...dead, beat: beat({ at: now - 60_000 }), path: { levels: [[method]], faults: [], dumpsWithin: 300_000 }, readings: [reading('on', now - 1_000)], dump: { since: now - 50_000, at: now - 5_000, from: '10.0.0.2' },
    probe: { askedAt: now - 900, answeredAt: now - 890, word: 'refused' as const, spokeAt: now - 890, fell: { at: now - 58_000, until: now - 52_000, spokeAt: now - 70_000 } },
    ready: { status: 'Unknown' as const, postedAt: now - 65_000, since: now - 15_000, bootId: 'boot-1' }, readAt: now - 500,
    lease: { askedAt: now - 500, readAt: now - 400, renewTime: 'then', unmovedSince: now - 57_000, moved: false },
    witnesses: witnesses.map((one) => ({ witness: 'replica-1', kind: 'replica' as const, askedAt: now - 1_100, answeredAt: now - 1_000, word: 'hears' as const, proven: true, ...one })),
    firstSeen: new Map([seenProof(provenAt, 0, 'kdump')]), pods: podsOf([pod('db-0')]), taints: [quarantine, outOfService], ...own,
  }
  const open = incident({ phase: 'Running', step: 'clear', dump: { at: 'then', by: 'replica-0', from: '10.0.0.2', afterSilence: true }, proof: proofRecord({ kind: 'kdump', level: -1, methods: [] }) }, { policy })
  return decide(three(changes, [open]), now, [policy]).flatMap((action) => (action.node !== 'node-2' ? [] : action.do === 'hold' ? [action.detail] : action.do === 'untaint' ? [`untaint ${action.key}`] : [action.do]))
}

test('its seal after the proof ends what is being freed, and out-of-service comes off', () => {
  const said = wants([{}])
  assert.not.ok(said.includes('delete'), said.join('; '))
  assert.ok(said.includes(`untaint ${outOfService.key}`) && said.includes('nothing more is freed: replica-1 has heard the node itself after it'), said.join('; '))
})

test('one from before it, a bare word, and one that is deaf end nothing', () => {
  assert.ok(wants([{ askedAt: provenAt - 200, answeredAt: provenAt }, { witness: 'node-1', proven: false }, { witness: 'node-3', word: 'deaf', proven: false }]).includes('delete'))
})

test('a beat that came while it was being written down ends it as well: the node is asked at once', () => {
  const said = wants([], { beat: beat({ at: now - 600 }), firstSeen: new Map([seenProof(now - 300, 0, 'kdump')]) })
  assert.not.ok(said.includes('delete'), said.join('; '))
  assert.ok(said.includes('challenge'), said.join('; '))
})

test.run()
