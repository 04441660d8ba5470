import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { keepNode } from '../../coordinator/kubernetes.ts'
import { holdKeeper, type HoldKeeper } from '../../coordinator/hold.ts'
import { createObservation, type Observation } from '../../coordinator/observe.ts'
import type { Occasion } from '../../coordinator/events.ts'
import type { HoldAction } from '../../core/action.ts'
import type { Hold, IncidentStatus } from '../../core/incident.ts'
import type { Change } from '../../core/timeline.ts'
import { silentLog } from '../../edge/log.ts'
import { virtualClock, type VirtualClock } from '../../sim/clock.ts'
import { incident, volume } from '../core/world.ts'

const test = suite('hold')

const name = 'node-2-abc-1'

interface Small {
  readonly clock: VirtualClock
  readonly observation: Observation
  readonly keeper: HoldKeeper
  readonly said: Occasion[]
  readonly logged: string[]
  readonly writes: string[]
  term: number | undefined
  well: boolean
  /** Ticks four times a second for so long. */
  tick(holds: readonly HoldAction[], span: number): Promise<void>
  onRecord(): readonly Hold[]
}

function small(status: Partial<IncidentStatus> = {}): Small {
  const clock = virtualClock(100_000)
  const observation = createObservation(clock, 'replica-0', { heard: () => undefined, forget: () => undefined })
  observation.node(keepNode({ metadata: { name: 'node-2', uid: 'uid-node-2', resourceVersion: '1' } }))
  observation.incident(incident(status, { resourceVersion: '9' }))
  let version = 9
  const note = (_: object, message: string): void => void on.logged.push(message)
  const on: Small = {
    clock, observation, said: [], logged: [], writes: [], term: 3, well: true,
    keeper: holdKeeper({
      clock, observation, log: { ...silentLog, info: note, warn: note, error: note }, leads: () => on.term, recorder: { say: (occasion) => on.said.push(occasion) },
      incidents: {
        async change(of: string, change: Change) {
          on.writes.push(of)
          const held = observation.seen.incidents.get(of)
          if (!on.well || held === undefined) return false
          version += 1
          observation.incident({ ...held, resourceVersion: String(version), status: change(held.status) }, 'live')
          return true
        },
      },
    }),
    async tick(holds, span) {
      for (let passed = 0; passed < span; passed += 250) {
        on.keeper.now(holds)
        await clock.runFor(250)
      }
    },
    onRecord: () => observation.seen.incidents.get(name)?.status.holds ?? [],
  }
  return on
}

const storm: HoldAction = { do: 'hold', node: 'node-2', incident: name, because: 'storm', detail: '3 of 5 nodes fell silent within 60.0 s', lifts: 'fewer of them' }
const blind: HoldAction = { ...storm, because: 'blind', detail: 'a watch has not been known fresh for 11.0 s', lifts: 'fresh watches' }

test('a hold is told after a second, once: on the record, as an Event, in the log', async () => {
  const on = small()
  await on.tick([storm], 1_000)
  assert.equal([on.onRecord(), on.said, on.logged], [[], [], []])
  await on.tick([storm], 30_000)
  assert.equal(on.onRecord().map((one) => [one.because, one.detail]), [['storm', storm.detail]])
  assert.equal([on.writes.length, on.said.length, on.logged], [1, 1, ['held']])
  assert.ok(on.said[0]?.note.includes(storm.detail) && on.said[0].note.includes(storm.lifts))
})

test('what a driver says of a volume that it does not let go of comes onto the record with the hold, and stays when that is over', async () => {
  const on = small({ volumes: [{ attachment: 'csi-pv-1', volume: 'pv-1', driver: 'csi.example.com', fate: 'attached' }] })
  on.observation.attachment({ metadata: { name: 'csi-pv-1' }, node: 'node-2', seen: volume('pv-1', { error: 'in use by node-2' }) })
  await on.tick([{ ...storm, because: 'waiting-for-volumes' }], 2_000)
  on.observation.attachment({ metadata: { name: 'csi-pv-1' }, node: 'node-2', seen: volume('pv-1') })
  await on.tick([], 2_000)
  assert.equal([on.onRecord(), on.observation.seen.incidents.get(name)?.status.volumes.map(({ reason }) => reason)], [[], ['in use by node-2']])
})

test('a hold of less than a second is the ordinary course of things', async () => {
  const on = small()
  await on.tick([storm], 750)
  await on.tick([], 10_000)
  assert.equal([on.writes, on.said, on.logged], [[], [], []])
})

test('that a hold is over is written, and logged with how long it lasted', async () => {
  const on = small()
  await on.tick([storm], 5_000)
  await on.tick([], 5_000)
  assert.equal(on.onRecord(), [])
  assert.equal([on.writes.length, on.logged], [2, ['held', 'hold over']])
})

test('numbers that count on are not written again and again', async () => {
  const on = small()
  for (let second = 0; second < 60; second += 1) await on.tick([{ ...storm, detail: `3 of 5 nodes fell silent within ${second}.5 s` }], 1_000)
  assert.is(on.writes.length, 1)
})

test('another sentence under the same reason comes onto the record, unhurriedly, and the hold keeps its beginning', async () => {
  const on = small()
  await on.tick([storm], 5_000)
  const since = on.onRecord()[0]?.since
  const other = { ...storm, detail: 'all of zone b fell silent', lifts: 'kubectl holdfast resume' }
  await on.tick([other], 15_000)
  assert.equal(on.onRecord().map((one) => [one.detail, one.lifts, one.since]), [[other.detail, other.lifts, since]])
  assert.is(on.said.length, 1)
})

test('a sentence that changes with every tick costs a write in ten seconds', async () => {
  const on = small()
  for (let tick = 0; tick < 240; tick += 1) await on.tick([{ ...storm, detail: tick % 2 === 0 ? 'one' : 'the other' }], 250)
  assert.ok(on.writes.length <= 7, `${on.writes.length} writes in a minute`)
})

test('reasons that come and go cost one write a second', async () => {
  const on = small()
  await on.tick([storm, blind], 2_000)
  const before = on.writes.length
  for (let tick = 0; tick < 40; tick += 1) await on.tick(tick % 2 === 0 ? [storm] : [storm, blind], 250)
  assert.ok(on.writes.length - before <= 11, `${on.writes.length - before} writes in ten seconds`)
})

test('two holds of one incident stand side by side', async () => {
  const on = small()
  await on.tick([storm, blind], 3_000)
  assert.equal(on.onRecord().map((one) => one.because).toSorted(), ['blind', 'storm'])
})

test('a hold of no incident is told as an Event and in the log, and on no record', async () => {
  const on = small()
  const { incident: _, ...unselected } = { ...storm, because: 'unselected' as const }
  await on.tick([unselected], 3_000)
  assert.equal([on.writes, on.said.length, on.logged], [[], 1, ['held']])
})

test('a write that failed is made again', async () => {
  const on = small()
  on.well = false
  await on.tick([storm], 4_000)
  assert.equal(on.onRecord(), [])
  on.well = true
  await on.tick([storm], 2_000)
  assert.is(on.onRecord().length, 1)
})

test('holds are not written while a deed of the node is under way: its own write is next', async () => {
  const on = small()
  on.observation.row('node-2')?.busy.add('deed node-2')
  await on.tick([storm], 5_000)
  assert.equal(on.writes, [])
  on.observation.row('node-2')?.busy.delete('deed node-2')
  await on.tick([storm], 1_000)
  assert.is(on.writes.length, 1)
})

test('who does not lead writes nothing and says nothing', async () => {
  const on = small()
  on.term = undefined
  await on.tick([storm], 5_000)
  assert.equal([on.writes, on.said], [[], []])
})

test('a new leader writes again only what the record does not say', async () => {
  const on = small({ holds: [{ because: 'storm', detail: storm.detail, lifts: storm.lifts, since: '2026-01-01T00:00:00.000Z' }] })
  await on.tick([storm], 15_000)
  assert.is(on.onRecord()[0]?.since, '2026-01-01T00:00:00.000Z')
})

test('an incident that has ended is left as it ended', async () => {
  const on = small({ phase: 'Final' })
  await on.tick([storm], 5_000)
  assert.equal(on.writes, [])
})

test('a fault of ours in writing one hold ends nothing', async () => {
  const on = small()
  const keeper = holdKeeper({
    clock: on.clock, observation: on.observation, leads: () => 3, recorder: { say: () => undefined },
    log: { ...silentLog, error: (_, message) => void on.logged.push(message) }, incidents: { change: () => Promise.reject(new Error('a fault of ours')) },
  })
  for (let tick = 0; tick < 12; tick += 1) {
    keeper.now([storm])
    await on.clock.runFor(250)
  }
  assert.ok(on.logged.includes('the holds of an incident could not be written'))
  assert.is(keeper.standing().length, 1)
})

const strange = { name: 'node-2-xyz-1', node: 'node-2', faults: 'spec.weather: not known' }

test('a NodeFence that cannot be read is a hold on its node: an Event, a log line, and among those that stand, until it can be or is gone', async () => {
  const on = small()
  on.observation.incidentUnreadable(strange)
  await on.tick([], 2_000)
  assert.equal(on.keeper.standing().map(({ node, because }) => [node, because]), [['node-2', 'unreadable']])
  assert.equal([on.said.map(({ reason, regarding, type }) => [reason, regarding.name, type]), on.logged, on.writes], [[['Held', 'node-2', 'Warning']], ['held'], []])
  for (const word of ['node-2-xyz-1', 'spec.weather: not known', 'mends or deletes it']) assert.ok(on.said[0]?.note.includes(word), word)
  on.observation.incidentGone('node-2-xyz-1')
  await on.tick([], 1_000)
  assert.equal([on.keeper.standing(), on.logged], [[], ['held', 'hold over']])
})

test('one of a Node that is not known stands all the same', async () => {
  const on = small()
  on.observation.incidentUnreadable({ ...strange, node: 'node-9' })
  await on.tick([], 2_000)
  assert.equal([on.keeper.standing().map(({ node }) => node), on.said, on.logged], [['node-9'], [], ['held']])
})

test('a hold that stood before this replica led is an Event once it leads, and in the log once', async () => {
  const on = small()
  on.term = undefined
  await on.tick([storm], 5_000)
  assert.equal([on.logged.length, on.said.length], [1, 0])
  on.term = 4
  await on.tick([storm], 5_000)
  assert.equal([on.logged.length, on.said.map(({ reason }) => reason)], [1, ['Held']])
})

test.run()
