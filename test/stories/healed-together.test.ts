// A node cannot be heard, and its device cannot either; then both can. The device answers at once, the agent when it next dials: a machine
// that never was dead is not cut off in between.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { ended, findings, ourTaints, peace } from './play.ts'

const test = suite('story: healed together')

for (const seed of [74, 75]) {
  test(`the cable and the management network come back together (seed ${seed}): nothing is ordered`, async () => {
    const on = await peace({ seed })
    const device = on.world.devices.get(`bmc-${on.victim}`)
    assert.ok(device)
    device.fault = { does: 'hang' }
    const heal = on.world.isolate(on.victim)
    await on.run(45_000)
    assert.ok((await on.incidents())[0]?.status.holds.some(({ because }) => because === 'path-unverified'))
    device.fault = undefined
    heal()
    const incident = await ended(on, 400_000)
    assert.is(incident.status.outcome, 'Withdrawn')
    assert.equal(incident.status.attempts.map(({ action }) => action), [])
    assert.equal([findings(on), ourTaints(on)], [[], []])
  })
}

test.run()
