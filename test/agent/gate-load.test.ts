// The gate of the agent's own process, asked faster than any node starts pods. How long an answer takes is the benchmark's business.
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { loadGate } from '../bench/agent/gate.ts'

const test = suite('gate under load')

test('asked about a thousand sandboxes at the pace of thirty thousand a minute, it answers every call: what is exempt passes, all else is refused', async () => {
  const { calls, refused } = await loadGate(join(import.meta.dirname, '../../agent/main.ts'), 30_000, 2)
  assert.equal([refused, calls], [900, 900 + 2 * 100])
})

test.run()
