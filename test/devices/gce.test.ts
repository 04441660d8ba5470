// Our `gce` and Debian's fence_gce, with Google's own library in it, at a Compute Engine of ours under Google's own names, and the
// machine as the judge of both.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { saysOf, sameClaims, type CloudAtTest } from './cloud-claims.ts'
import { startComputeEngine, type ComputeEngine } from './gce-endpoint.ts'
import { loose, type Feed } from './machine.ts'
import { inRack, type Rack } from './rack.ts'

const test = suite('gce')

function atTest({ front, login, wrong }: ComputeEngine): CloudAtTest {
  return { program: 'gce', front, login, wrong, unknown: { plug: 'node-9' }, others: ['fence_gce', { ...login, retries: '0' }] }
}

sameClaims(test, 'fence_gce', async (rack: Rack, { feed }: { readonly feed: Feed }) => atTest(await startComputeEngine(rack, feed)))

test('suspended, or on its way to be: neither program calls it off', () => inRack(async (rack) => {
  const engine = await startComputeEngine(rack, loose())
  for (const status of ['SUSPENDED', 'SUSPENDING', 'STOPPING']) {
    engine.says = status
    const { ours, theirs } = await saysOf(rack, atTest(engine))
    assert.is(ours, 'unknown', status)
    assert.is.not(theirs, 'off', status)
  }
}))

test.run()
