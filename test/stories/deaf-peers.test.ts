// A firewall swallows every whisper, so that each peer is deaf to every node, well or not. That is no word on one of them.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { ended, findings, peace, type Play } from './play.ts'

const test = suite('deaf peers')

const orders = async (on: Play): Promise<readonly unknown[]> => (await on.incidents()).flatMap(({ nodeName, status }) => status.attempts.map(({ method, action }) => `${nodeName}: ${method} ${action}`))

for (const swallowed of [true, false]) {
  test(`cut off from the coordinators alone, a node that ${swallowed ? 'no peer can hear because no peer hears anybody' : 'its peers hear'} is not fenced`, async () => {
    const on = await peace({ seed: 171, nodes: 5, policy: { profile: 'fast' } })
    if (swallowed) on.world.partition({ from: ['*'], to: ['*'], planes: ['whisper'] })
    const heal = on.world.partition({ from: ['replica-0', 'replica-1'], to: [on.victim], planes: ['link', 'probe'] })
    // Its kubelet goes on renewing its Lease, which is a word of life once it was read twice.
    await on.run(60_000)
    heal()
    await on.run(60_000)
    assert.equal([await orders(on), findings(on)], [[], []])
  })
}

test('a node that loses its power is fenced all the same: its Lease speaks where no peer can', async () => {
  const on = await peace({ seed: 172, nodes: 5, policy: { profile: 'fast' } })
  on.world.partition({ from: ['*'], to: ['*'], planes: ['whisper'] })
  on.world.freeze(on.victim)
  const incident = await ended(on, 900_000)
  assert.equal([incident.nodeName, incident.status.proof?.kind, incident.status.outcome], [on.victim, 'off', 'Recovered'])
  const opened = incident.status.timeline.find(({ what }) => what === 'opened')
  assert.match(opened?.detail ?? '', /Lease not renewed/)
  assert.not.match(opened?.detail ?? '', /witness node-/)
  assert.equal(findings(on), [])
})

test.run()
