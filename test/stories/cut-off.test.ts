// A boot that follows one which was cut off: Kubernetes sees nothing but another boot id, and goes on as before.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startAgent } from '../../agent/agent.ts'
import { happened, ourTaints, peace, workloadRuns, findings, type Play } from './play.ts'

const test = suite('cut off')

/** A second without power and two to boot: no profile suspects so soon. */
const brief = { policy: { profile: 'conservative' }, bootTime: [1_500, 2_000] } as const

const quarantined = async (on: Play) => ourTaints(on).includes(`${on.victim} holdfast.dev/quarantine`)

test('a machine that was off for a second is quarantined in its new boot until it was found clean, and no incident is made of it', async () => {
  const on = await peace({ seed: 92, ...brief })
  on.world.reboot(on.victim, 1_000)
  await on.until('the node is quarantined', () => quarantined(on), 30_000)
  await on.until('the quarantine is lifted', async () => !await quarantined(on), 120_000)
  await on.run(60_000)
  assert.equal(ourTaints(on), [], 'it is not put on again')
  assert.equal([await on.incidents(), findings(on)], [[], []])
  assert.ok(workloadRuns(on))
})

test('one that was shut down in good order is not', async () => {
  const on = await peace({ seed: 92, ...brief })
  on.world.shutDown(on.victim, 'reboot')
  let seen = false
  await on.until('the agent runs again', async () => {
    seen ||= await quarantined(on)
    return happened(on, 'agent runs').some(({ node }) => node === on.victim)
  }, 60_000)
  for (let look = 0; look < 40; look += 1) {
    await on.run(500)
    seen ||= await quarantined(on)
  }
  assert.is(seen, false)
})

test('the mark of an older boot does not stand for one whose disk took none, and which was cut off', async () => {
  const starts = new Map<string, number>()
  const on = await peace({
    seed: 92, ...brief, startAgent: (host, { node }) => {
      const start = (starts.get(node) ?? 0) + 1
      starts.set(node, start)
      const disk = start === 2 ? { ...host.disk, save: async () => Promise.reject(new Error('ENOSPC: no space left on device')) } : host.disk
      return startAgent({ ...host, disk }, { version: 'test', kubeletRoot: '/var/lib/kubelet', whisperPort: 7_416, exemptNamespaces: ['holdfast-system'] })
    },
  })
  const recorded = () => [...on.coordinators.values()].map(({ seen }) => seen.nodes.get(on.victim)?.record?.boot)
  const first = recorded()
  on.world.shutDown(on.victim, 'reboot')
  await on.until('its next boot is on record', () => recorded().every((boot, index) => boot !== first[index]), 180_000)
  assert.equal(ourTaints(on), [], 'it was shut down in good order')
  on.world.reboot(on.victim, 1_000)
  await on.until('the node is quarantined', () => quarantined(on), 30_000)
  await on.until('the quarantine is lifted', async () => !await quarantined(on), 120_000)
  assert.equal([starts.get(on.victim), await on.incidents(), findings(on)], [3, [], []])
})

test('a leader that is killed in between is followed by one that finds the same facts', async () => {
  const on = await peace({ seed: 93, ...brief })
  on.world.reboot(on.victim, 1_000)
  await on.until('the node is quarantined', () => quarantined(on), 30_000)
  const leader = on.leader()
  assert.ok(leader !== undefined)
  on.world.replicas.kill(leader)
  await on.until('the quarantine is lifted', async () => !await quarantined(on), 120_000)
  await on.run(30_000)
  assert.equal([ourTaints(on), await on.incidents()], [[], []])
})

test.run()
