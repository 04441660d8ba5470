import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { runLoop, type Loop } from '../../coordinator/loop.ts'
import { createObservation } from '../../coordinator/observe.ts'
import type { KeptNode } from '../../coordinator/kubernetes.ts'
import type { Action, HoldAction, Look } from '../../core/action.ts'
import type { BeatSeen, Method, Ms, NodeRecord } from '../../core/model.ts'
import { apart } from '../../core/reading.ts'
import { silentLog } from '../../edge/log.ts'
import { virtualClock, type VirtualClock } from '../../sim/clock.ts'
import { close, hand, listPods, times, withdraw } from './loop-hand.ts'

const test = suite('loop')

const boot = '0f0e0d0c-0b0a-4908-8706-050403020100/7'
const method: Method = { name: 'bmc', agent: 'redfish', device: 'bmc-1', digest: 'd', orderWithin: 20_000, statusWithin: 10_000, late: 60_000 }
const deviceTakes: Ms = 330

interface Turning {
  readonly clock: VirtualClock
  readonly loop: Loop
  readonly heardAt: Ms
  readonly asked: { readonly startedAt: Ms; readonly endedAt: Ms }[]
  readonly probedAt: Ms[]
}

/** A replica that leads, a node that beat until now, and a device that answers off. */
function turning(): Turning {
  const clock = virtualClock()
  const heard: BeatSeen = { boot, at: clock.now(), since: clock.now(), kubelet: 'ok' }
  const observation = createObservation(clock, 'replica', { heard: () => heard, forget: () => undefined })
  const asked: { startedAt: Ms; endedAt: Ms }[] = []
  const probedAt: Ms[] = []
  const node: KeptNode = {
    metadata: { name: 'node-1', uid: 'uid' }, taints: [], inUse: [], address: '10.0.0.1', kubeletPort: 10_250, bootId: '', machine: '', ready: { status: 'True', heartbeat: '' },
  }
  const record: NodeRecord = { nodeUid: 'uid', boot, machine: '', paths: [], resourceVersion: '1' }
  observation.node(node)
  observation.record('node-1', record)
  observation.path('node-1', { levels: [[method]], faults: [] })
  const { self } = observation.seen
  const loop = runLoop({
    clock, log: silentLog, observation, policies: () => [],
    refresh() {
      self.term = 1
      self.ledSince = 0
      self.freshAt = clock.now()
      self.apiAnsweredAt = clock.now()
      self.replicas = ['another']
    },
    drained: async () => undefined, deed: async () => undefined, holds: () => undefined, decided: () => undefined,
    async look(look: Look) {
      if (look.do === 'probe') probedAt.push(clock.now())
      if (look.do !== 'askDevice') return await clock.wait(907)
      const startedAt = clock.now()
      await clock.wait(deviceTakes)
      asked.push({ startedAt, endedAt: clock.now() })
      observation.read('node-1', { method: 'bmc', state: 'off', startedAt, endedAt: clock.now(), evidence: '', digest: 'd' })
    },
  })
  return { clock, loop, heardAt: heard.at, asked, probedAt }
}

test('a device is asked again as soon as its second word can count, not at the next usual tick', async () => {
  const { clock, loop, asked } = turning()
  await clock.runFor(10_000)
  loop.stop()
  assert.ok(asked.length >= 3, `asked ${asked.length} times`)
  for (const [index, { startedAt }] of asked.entries()) {
    const before = asked[index - 1]
    if (before === undefined || index === 1) continue // the first was an audit, while the node beat
    assert.ok(startedAt - before.endedAt >= apart, 'not sooner than it counts')
    assert.ok(startedAt - before.endedAt < apart + 50, `${startedAt - before.endedAt} ms after the last word`)
  }
})

test('what a silence makes due is begun as soon as it is long enough, not at the next usual tick', async () => {
  for (const phase of [0, 61, 122, 183, 244]) {
    const { clock, loop, heardAt, probedAt } = turning()
    await clock.runFor(phase)
    loop.wake() // ticks come a quarter of a second after the last one, so this sets their phase
    await clock.runFor(4_000)
    loop.stop()
    const suspectAt = heardAt + 3_000
    const first = probedAt.find((at) => at >= suspectAt) ?? Infinity
    assert.ok(first - suspectAt < 25, `${first - suspectAt} ms after the suspicion, at phase ${phase}`)
  }
})

test('a loop that was stopped turns no more', async () => {
  const { clock, loop, asked } = turning()
  await clock.runFor(4_500)
  loop.stop()
  const before = asked.length
  await clock.runFor(10_000)
  assert.ok(asked.length <= before + 1, 'one may have been under way')
})

test('it is woken by events at once, and by a storm of events no more than fifty times a second', async () => {
  const on = hand()
  await on.clock.runFor(1_100)
  const at = on.clock.now()
  on.loop.wake()
  await on.clock.runFor(5)
  assert.ok((on.decidedAt.at(-1) ?? 0) - at <= 2)
  const before = on.decidedAt.length
  for (let ms = 0; ms < 1_000; ms += 1) {
    on.loop.wake()
    await on.clock.runFor(1)
  }
  assert.ok(on.decidedAt.length - before <= 51, `${on.decidedAt.length - before}`)
})

test('what follows from a decision counts as its cost: of what takes ten milliseconds there are ten a second, however often it is woken', async () => {
  const clock = virtualClock()
  let ahead = 0
  const own = { ...clock, now: () => clock.now() + ahead }
  const observation = createObservation(own, 'replica', { heard: () => undefined, forget: () => undefined })
  const loop = runLoop({
    clock: own, observation, log: silentLog, policies: () => [], refresh: () => undefined, look: async () => true, deed: async () => true, drained: async () => undefined, decide: () => [],
    decided: () => void (ahead += 6), holds: () => void (ahead += 4),
  })
  clock.after(0, function again() {
    loop.wake()
    clock.after(1, again)
  })
  await clock.runFor(10)
  const before = ahead
  await clock.runFor(1_000)
  loop.stop()
  const decided = (ahead - before) / 10
  assert.ok(decided >= 8 && decided <= 12, `${decided}`)
})

test('what is under way is not begun again; when it has ended it may be', async () => {
  const on = hand()
  on.wanted = [withdraw()]
  on.does = async () => await on.clock.wait(3_000)
  await on.clock.runFor(2_900)
  assert.is(on.begun.length, 1)
  assert.equal([...on.observation.row('node-1')?.busy ?? []], ['deed node-1'])
  await on.clock.runFor(200)
  assert.is(on.begun.length, 2)
})

test('two deeds of one node are never under way at once, of two nodes they are', async () => {
  const on = hand()
  on.wanted = [withdraw(), close, withdraw('node-2')]
  on.does = async () => await on.clock.wait(60_000)
  await on.clock.runFor(1_000)
  assert.equal(on.begun.map((one) => one.what), ['withdraw', 'withdraw'])
})

test('an action that ends by a fault of its own is logged, and may be begun again', async () => {
  const on = hand()
  on.wanted = [withdraw()]
  on.does = () => Promise.reject(new Error('a fault of ours'))
  await on.clock.runFor(20)
  assert.ok(on.errors.length > 0)
  on.does = async () => true
  await on.clock.runFor(5_000)
  assert.is(on.observation.row('node-1')?.busy.size, 0)
  assert.ok(times(on, 'withdraw').length > 3)
})

test('what comes to nothing is tried again at once, and then ever more seldom: a server that refuses is not flooded', async () => {
  const on = hand()
  on.wanted = [withdraw()]
  on.does = async () => false
  await on.clock.runFor(60_000)
  const at = times(on, 'withdraw')
  assert.ok((at[1] ?? Infinity) - (at[0] ?? 0) <= 50, 'the first failure may have been a conflict')
  assert.ok(at.length >= 15 && at.length <= 22, `${at.length} in a minute`)
  on.does = async () => true
  await on.clock.runFor(5_000)
  const well = times(on, 'withdraw').length
  await on.clock.runFor(1_000)
  assert.ok(times(on, 'withdraw').length - well > 20, 'once it is well, nothing of that is held against it')
})

test('one node\'s failure keeps nothing of another, and no other deed, back', async () => {
  const on = hand()
  on.wanted = [withdraw()]
  on.does = async (action) => action.node !== 'node-1' || action.do !== 'withdraw'
  await on.clock.runFor(20_000)
  on.wanted = [withdraw(), withdraw('node-2')]
  const at = on.clock.now()
  await on.clock.runFor(300)
  assert.ok(on.begun.some((one) => one.at > at && one.what === 'withdraw'))
  on.wanted = [close]
  const later = on.clock.now()
  await on.clock.runFor(300)
  assert.ok(times(on, 'close').some((one) => one > later))
})

test('a look is begun ten times a second at most, however fast it is answered', async () => {
  const on = hand()
  on.wanted = [listPods]
  await on.clock.runFor(10_000)
  assert.ok(on.begun.length <= 101, `${on.begun.length}`)
  assert.ok(on.begun.length >= 30, `${on.begun.length}`)
})

test('the actions of an incident whose node has no row are begun as well, and not twice at once', async () => {
  const on = hand()
  on.wanted = [withdraw('node-9')]
  on.does = async () => await on.clock.wait(5_000)
  await on.clock.runFor(4_000)
  assert.equal(on.begun.map((one) => one.what), ['withdraw'])
})

test('holds are handed over at each tick, and nothing is begun for them', async () => {
  const on = hand()
  const hold: HoldAction = { do: 'hold', node: 'node-1', because: 'blind', detail: '', lifts: '' }
  on.wanted = [hold, listPods]
  await on.clock.runFor(10)
  assert.equal(on.held[0], [hold])
  assert.equal(on.begun.map((one) => one.what), ['listPods'])
})

test('a tick that comes late is a stall of our own: what arrived meanwhile is taken in first, then every silence begins anew', async () => {
  const clock = virtualClock()
  let ahead = 0
  const own = { ...clock, now: () => clock.now() + ahead }
  const order: string[] = []
  const observation = createObservation(own, 'replica', { heard: () => undefined, forget: () => undefined })
  const loop = runLoop({
    clock: own, observation, log: silentLog, policies: () => [], refresh: () => undefined, look: async () => true, deed: async () => true, holds: () => undefined, decided: () => undefined,
    async drained() {
      order.push('drained')
      await clock.wait(30)
    },
    decide(seen) {
      order.push(`decided ${seen.self.awakeSince === own.now() ? 'awake' : ''}`)
      return []
    },
  })
  await clock.runFor(1_000)
  const before = observation.seen.self.awakeSince
  order.length = 0
  ahead = 499
  await clock.runFor(250)
  assert.is(observation.seen.self.awakeSince, before, 'half a second is no stall')
  order.length = 0
  ahead += 5_000
  await clock.runFor(300)
  assert.equal(order.slice(0, 2), ['drained', 'decided awake'])
  loop.stop()
})

test('a core that fails ends nothing: it is told once, nothing is begun, and the next decision is made', async () => {
  const on = hand()
  await on.clock.runFor(1_000)
  const broken: readonly Action[] = [{ get do(): never { throw new Error('a fault of ours') } } as unknown as Action] // stands for any fault
  on.wanted = broken
  await on.clock.runFor(5_000)
  assert.is(on.errors.length, 1)
  assert.equal(on.begun, [])
  on.wanted = [listPods]
  await on.clock.runFor(1_000)
  assert.ok(on.begun.length > 0)
})

test('sockets that cannot be drained hold up no decision', async () => {
  const clock = virtualClock()
  let ahead = 0
  const own = { ...clock, now: () => clock.now() + ahead }
  let decided = 0
  const observation = createObservation(own, 'replica', { heard: () => undefined, forget: () => undefined })
  const loop = runLoop({
    clock: own, observation, log: silentLog, policies: () => [], refresh: () => undefined, look: async () => true, deed: async () => true, holds: () => undefined, decided: () => undefined,
    drained: () => Promise.reject(new Error('a fault of ours')),
    decide() {
      decided += 1
      return []
    },
  })
  await clock.runFor(1_000)
  ahead = 60_000
  const before = decided
  await clock.runFor(2_000)
  assert.ok(decided - before >= 2)
  loop.stop()
})

test('after the stop no timer is left, whatever ends or wakes it then', async () => {
  const on = hand()
  on.wanted = [withdraw()]
  let end: ((well: boolean) => void) | undefined
  on.does = () => new Promise((resolve) => { end = resolve })
  await on.clock.runFor(1_000)
  on.loop.stop()
  end?.(true)
  on.loop.wake()
  await on.clock.runFor(1)
  assert.is(on.clock.pending(), 0)
})

test.run()
