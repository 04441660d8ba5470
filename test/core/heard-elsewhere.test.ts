// A proof stands, and others bring the seal of the fenced boot, on a challenge of after it.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { WitnessSeen } from '../../core/model.ts'
import { clearing, ordered, recovering, seenLongAgo, switchedOn } from './states.ts'
import { inState, looks, wants } from './wishes.ts'
import { beat, boot, newBoot, now, proofRecord, seenProof } from './world.ts'

const test = suite('heard elsewhere')

const provenAt = now - 500
const witness = (changes: Partial<WitnessSeen> = {}): WitnessSeen => ({
  witness: 'replica-1', kind: 'replica', askedAt: provenAt + 100, answeredAt: provenAt + 300, word: 'hears', proven: true, boot, ...changes,
})

const asks = (state: typeof clearing, askedAt: number): boolean => looks(inState(state, { witnesses: [witness({ word: 'deaf', proven: false, askedAt })] })).includes('askWitnesses')

for (const kind of ['replica', 'agent'] as const) {
  test(`by ${kind === 'agent' ? 'a peer that whispers' : 'another replica'}: the proof is void, while it is cleared and after`, () => {
    for (const state of [clearing, recovering]) assert.equal(wants(inState(state, { witnesses: [witness({ kind })] })), ['void'])
  })
}

test('a proof that has lapsed is shown false by it too', () => {
  const lapsed = { step: 'power-management' as const, voided: [{ proof: proofRecord(), how: 'lapsed' as const, at: '', evidence: '' }] }
  assert.equal(wants(inState(ordered, { witnesses: [witness()], firstSeen: new Map([...seenLongAgo, seenProof(provenAt)]) }, lapsed)), ['void'])
})

const harmless: [string, Partial<WitnessSeen>][] = [
  ['a seal on a challenge of before the proof', { askedAt: provenAt - 100 }],
  ['a seal of another boot', { boot: newBoot }],
  ['a word without a seal', { proven: false }],
  ['one that is deaf', { word: 'deaf', proven: false }],
]
for (const [what, changes] of harmless) test(`${what} shows no proof false`, () => assert.not.ok(wants(inState(clearing, { witnesses: [witness(changes)] })).includes('void')))

test('while it is cleared they are asked every other second, and then seldom; whoever hears it asks it', () => {
  const longProven = { ...clearing, node: { ...clearing.node, firstSeen: seenLongAgo } }
  assert.ok(asks(clearing, provenAt - 1_000), 'at once')
  assert.equal([now - 1_500, now - 2_500].map((at) => asks(longProven, at)), [false, true])
  assert.equal([now - 8_000, now - 11_000].map((at) => asks(switchedOn, at)), [false, true])
  assert.not.ok(looks(inState(clearing, { beat: beat(), witnesses: [] })).includes('askWitnesses'))
})

test.run()
