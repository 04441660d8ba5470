// The Node object is deleted and made again in the middle of its fence, as `kubectl replace --force` does. The machine knows nothing
// of it, and it is dark through us: nobody else would switch it on.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { settled } from '../../sim/stage.ts'
import { findings, happened, ourTaints, peace, theIncident, workloadRuns, type Play } from './play.ts'

const test = suite('made anew')

/** `apart`: so long the name is nobody's. */
async function madeAnew(on: Play, apart: number): Promise<void> {
  const path = `/api/v1/nodes/${on.victim}`
  const was = await settled(on.world, on.world.api.get<KubeObject>(path))
  assert.ok(was.ok)
  const { metadata: { name, labels = {} } } = was.value
  assert.ok((await settled(on.world, on.world.api.remove(path))).ok)
  if (apart > 0) await on.run(apart)
  assert.ok((await settled(on.world, on.world.api.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name, labels } }))).ok)
}

const moments: readonly (readonly [string, (on: Play) => Promise<boolean>])[] = [
  ['it is ordered off', async (on) => (await theIncident(on))?.status.attempts.some(({ action, result }) => action === 'off' && result === 'off') === true],
  ['it is proven off', async (on) => (await theIncident(on))?.status.proof !== undefined],
  ['it is cleared', async (on) => (await theIncident(on))?.status.step === 'recovery'],
]
for (const apart of [0, 2_000]) {
  for (const [index, [what, so]] of moments.entries()) {
    test(`once ${what}, ${apart === 0 ? 'in one go' : 'with a pause between'}: the machine boots, and everything ends`, async () => {
      const on = await peace({ seed: 140 + index })
      on.world.freeze(on.victim)
      await on.until(what, () => so(on), 60_000)
      await madeAnew(on, apart)
      await on.until('the machine runs', () => on.world.nodes.get(on.victim)?.machine.state() === 'running', 300_000)
      await on.until('every incident is over', async () => (await on.incidents()).every(({ status }) => status.phase === 'Final'), 400_000)
      await on.until('the workload runs', () => workloadRuns(on), 120_000)
      assert.is(happened(on, 'machine booted').length, 1)
      assert.equal([findings(on), ourTaints(on)], [[], []])
    })
  }
}

test.run()
