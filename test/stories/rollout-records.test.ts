// The coordinators are rolled over where watchdogs are wanted: each new replica is a member of every node under another name.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readRecord } from '../../coordinator/node-record.ts'
import { ourTaints, peace, theIncident, type Play } from './play.ts'

const test = suite('rollout and records')

const rounds = 4

/** Writes of each NodeRecord, by when they came. */
function writes(on: Play): ReadonlyMap<string, readonly number[]> {
  const seen = new Map<string, number[]>()
  on.world.server?.faults.set([{
    does: 'unreachable',
    strikes({ method, path }) {
      const name = /\/noderecords\/(.+)$/.exec(path)?.[1]
      if (method !== 'GET' && name !== undefined) seen.set(name, [...seen.get(name) ?? [], on.world.clock.now()])
      return false
    },
  }])
  return seen
}

test('replicas that come and go under new names cost each NodeRecord a write every half minute at most, and each node knows its members in the end', async () => {
  const on = await peace({ seed: 260, nodes: 5, policy: { profile: 'fast', giveUp: 'watchdog' }, watchdog: { identity: 'i6300ESB timer', timeout: 30_000, fires: 'at once' } })
  await on.run(90_000)
  const seen = writes(on)
  const beganAt = on.world.clock.now()
  for (let round = 0; round < rounds; round += 1) for (const number of [0, 1]) {
    on.world.stopReplica(number)
    await on.run(6_000)
    on.world.startReplica(number)
    await on.run(10_000)
  }
  await on.run(60_000)
  const span = on.world.clock.now() - beganAt
  assert.is(seen.size, 5, 'new names are put on every record')
  // Each new leader is another process, and has written none of them itself: its first write may come at once.
  const most = Math.ceil(span / 30_000) + 2 * rounds
  for (const [name, at] of seen) assert.ok(at.length <= most, `${name}: ${at.length} writes in ${span} ms`)
  const replicas = [...on.coordinators.values()].map(({ seen: { self } }) => self.replica).toSorted()
  const held = on.world.server?.peek('noderecords.holdfast.dev').map((object) => {
    const read = readRecord(object)
    const watchdog = read.ok ? read.record.watchdog : undefined
    return watchdog?.memberships.find(({ epoch }) => epoch === watchdog.epoch)?.replicas
  })
  assert.equal(held, Array.from({ length: 5 }, () => replicas), 'what each node has confirmed')
  assert.equal([await theIncident(on), ourTaints(on)], [undefined, []])
})

test.run()
