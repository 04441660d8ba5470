import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createWitness } from '../../agent/witness.ts'
import { whisperOf } from '../../core/frame.ts'

const test = suite('witness')

/** What a peer makes of answers that all bear this nonce. */
const asked = async (nonce: string) => {
  const whispers = { ask: async () => whisperOf({ nonce, boot: 'b007-0001/4711' }), answer: async () => ({ port: 7_000, close: () => undefined }) }
  return await createWitness({ whispers }).ask({ say: 'ask', id: 1, node: 'node-1', address: 'node-1:7000', nonce: 'nonce-1' }, 'replica-a')
}

test('only an answer that brings back the nonce of its question is heard: an older one that comes late is no sign of life', async () => {
  assert.is((await asked('nonce-1'))?.word, 'hears')
  assert.equal(await asked('nonce-0'), { say: 'witness', id: 1, word: 'deaf' })
})

test.run()
