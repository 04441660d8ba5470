// A node without an agent, proven off: what its Lease says against that.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { outOfServiceKey, ownValue, quarantineKey } from '../../core/clear.ts'
import { decide } from '../../core/decide.ts'
import type { IncidentStatus } from '../../core/incident.ts'
import type { LeaseSeen, NodeSeen } from '../../core/model.ts'
import { attempt, incident, node, now, orderedOff, pod, podsOf, policy, proofRecord, record, reading, seenOrder, seenProof, three } from './world.ts'

const test = suite('renewed')

const provenAt = now - 40_000
const cleared: Partial<IncidentStatus> = { phase: 'Running', step: 'clear', attempts: [attempt()], proof: proofRecord({ boot: 'boot-1' }) }

/** Each by when the read before it was asked; the last one was seen a second ago, and its Node was read live since. */
function lease(moves: readonly number[], changes: Partial<LeaseSeen> = {}): LeaseSeen {
  return { askedAt: now - 500, readAt: now - 400, renewTime: 't', unmovedSince: now - 1_000, moved: true, movedAfter: moves.at(-1) ?? 0, moves, ...changes }
}

function proven(changes: Partial<NodeSeen>): Partial<NodeSeen> {
  return {
    ...orderedOff, beat: undefined, record: record({ boot: 'boot-1', paths: [] }), readAt: now - 600, pods: podsOf([]), lease: lease([]), ready: { status: 'Unknown', postedAt: 5_000, since: 5_000, bootId: 'boot-1' },
    firstSeen: new Map([...seenOrder(now - 50_000, now - 45_000), seenProof(provenAt)]), readings: [reading('off', now - 700), reading('off', now - 300)], ...changes,
  }
}

function told(changes: Partial<NodeSeen>, status: Partial<IncidentStatus> = cleared): readonly string[] {
  return decide(three(proven(changes), [incident(status, { boot: 'boot-1' })]), now, [policy]).filter((action) => action.node === 'node-2').flatMap((action) => {
    if (action.do === 'hold') return [`hold ${action.because}: ${action.detail}`]
    return action.do === 'askDevice' ? [] : [action.do]
  })
}

const doubt = 'hold proof-doubted: kubelet on node-2 renewed its Lease after the proof'
const thrice = [now - 31_000, now - 21_000, now - 2_000]

test('its Lease is read live as long as the proof stands, through its recovery too', () => {
  const old = lease([], { askedAt: now - 5_000 })
  assert.ok(told({ lease: old }).includes('readLease'))
  assert.ok(told({ lease: old }, { ...cleared, step: 'recovery' }).includes('readLease'))
  assert.not.ok(told({ lease: lease([], { askedAt: now - 4_900 }) }).includes('readLease'))
})

test('a node with an agent beats, and its Lease is not read', () => {
  const { beat } = node()
  assert.not.ok(told({ beat: { ...beat, at: now - 60_000 } as NonNullable<typeof beat>, lease: lease([], { askedAt: now - 50_000 }) }).includes('readLease'))
})

test('a renewal that was on its way as the machine went off keeps what follows waiting for an interval, and shows nothing', () => {
  assert.equal(told({ lease: lease([provenAt + 1_000]) }), [doubt])
  assert.equal(told({ lease: lease([provenAt + 1_000], { unmovedSince: now - 13_000 }) }).filter((one) => one.startsWith('hold proof-doubted')), [])
})

test('out-of-service comes off with the first renewal: the machine may run', () => {
  const taints = [{ key: quarantineKey, value: ownValue, effect: 'NoSchedule' }, { key: outOfServiceKey, value: ownValue, effect: 'NoSchedule' }] as const
  assert.equal(told({ taints, lease: lease([provenAt + 1_000]) }), ['untaint', doubt])
  assert.not.ok(told({ taints, lease: lease([]), pods: podsOf([pod('web-0')]) }).includes('untaint'))
})

test('what was renewed before the proof was first seen, or between a read before it and one after it, is no word', () => {
  for (const moves of [[provenAt - 9_000], [provenAt - 1]]) assert.not.ok(told({ lease: lease(moves) }).includes(doubt), String(moves))
})

test('by the third renewal, its Node read since and of the same boot, the proof is shown false', () => {
  assert.equal(told({ lease: lease(thrice) }), ['void'])
  assert.equal(told({ lease: lease(thrice) }, { ...cleared, step: 'recovery' }), ['void'])
  assert.equal(told({ lease: lease(thrice.slice(1)) }), [doubt], 'twice: a machine that boots renews it before its kubelet has told of its boot')
  assert.equal(told({ lease: lease(thrice), readAt: now - 1_100 }), [doubt], 'its Node was not read since')
  assert.equal(told({ lease: lease([provenAt - 1, ...thrice.slice(1)]) }), [doubt], 'one of them from before the proof')
})

test('a machine that renews it in its next boot shows nothing false', () => {
  const back = { lease: lease(thrice), bootId: 'boot-2', ready: { status: 'True', postedAt: now - 1_500, since: now - 1_500, bootId: 'boot-2' } } as const
  assert.not.ok(told(back).some((one) => one === 'void' || one === doubt))
})

test.run()
