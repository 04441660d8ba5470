import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Api, KubeObject } from '../../coordinator/api.ts'
import type { Occasion } from '../../coordinator/events.ts'
import { keepPolicies } from '../../coordinator/policies.ts'
import { machineClock, type Clock } from '../../edge/clock.ts'
import { silentLog } from '../../edge/log.ts'
import { virtualClock } from '../../sim/clock.ts'

const test = suite('policies')

function policy(spec: object, status: object = {}, generation = 1): KubeObject {
  // A kind of ours as the API server would send it; spec and status are no part of the common type.
  return { apiVersion: 'holdfast.dev/v1alpha1', kind: 'HoldfastPolicy', metadata: { name: 'all', uid: 'u', resourceVersion: `${generation}`, generation }, spec, status } as KubeObject
}

const faulty = { profile: 'quick', brakes: { stormPercent: 140 }, selektor: {} }

function keeper(leads: () => number | undefined = () => 3, clock: Clock = machineClock) {
  const said: Occasion[] = []
  const written: unknown[] = []
  const warned: object[] = []
  const api = { replace: async (_path: string, body: unknown) => { written.push(body); return { ok: true, value: body } } } as unknown as Api // only this call is made
  const policies = keepPolicies({
    api, clock, log: { ...silentLog, warn: (facts) => warned.push(facts) }, recorder: { say: (occasion) => said.push(occasion), close: async () => undefined },
    leads, changed: () => undefined,
  })
  return { policies, said, written, warned }
}

test('a faulty policy never takes a good one\'s place, and every fault is told with its path in one Event and one log line', () => {
  const { policies, said, warned } = keeper()
  policies.seen(policy({ profile: 'fast' }))
  policies.seen(policy(faulty, {}, 2))
  assert.equal(policies.inForce().map((one) => one.profile), ['fast'])
  assert.is(said.length, 1)
  assert.is(warned.length, 1)
  for (const path of ['spec.profile', 'spec.brakes.stormPercent', 'spec.selektor']) assert.ok(said[0]?.note.includes(path), `${path} in: ${said[0]?.note}`)
})

test('a pause ends at its hour by itself, and nobody has to take it off', async () => {
  const clock = virtualClock(0)
  const { policies } = keeper(() => 3, clock)
  const until = new Date(clock.wall() + 60_000).toISOString()
  policies.seen(policy({ pause: { reason: 'new switches', by: 'ops', until } }))
  const paused = () => policies.inForce().map(({ pause }) => pause?.until)
  assert.equal(paused(), [until])
  await clock.runFor(59_000)
  assert.equal(paused(), [until])
  await clock.runFor(2_000)
  assert.equal(paused(), [undefined])
  policies.seen(policy({ pause: { reason: 'new switches', by: 'ops', until } }))
  assert.equal(paused(), [undefined], 'seen again after a restart it is over as well')
})

test('seen again unchanged, its faults are not told again', () => {
  const { policies, said } = keeper()
  policies.seen(policy(faulty))
  policies.seen(policy(faulty))
  assert.is(said.length, 1)
})

test('faults that were read while another led are said once in each term of our own', () => {
  let term: number | undefined
  const { policies, said, warned } = keeper(() => term)
  policies.seen(policy(faulty))
  assert.equal([said.length, warned.length], [0, 1])
  for (const next of [4, undefined, 6]) {
    term = next
    for (let times = 0; times < 2; times += 1) policies.settle()
  }
  assert.equal([said.length, warned.length], [2, 1])
})

test('that the last good one stays in force is said only where there is one', () => {
  const { policies, said, warned } = keeper()
  policies.seen(policy(faulty))
  policies.gone('all')
  policies.seen(policy({ profile: 'fast' }))
  policies.seen(policy(faulty, {}, 2))
  const holds = ['this policy is not in force', 'the last good policy stays in force']
  assert.equal(warned.map((facts) => Object(facts).holds), holds)
  assert.equal(said.map(({ note }) => note.split(':')[0]), holds)
})

test('after a restart the last good one is taken from status.inForce', () => {
  const { policies } = keeper()
  policies.seen(policy(faulty, { inForce: { profile: 'conservative' } }))
  assert.equal(policies.inForce().map((one) => one.profile), ['conservative'])
})

test('a faulty policy without a good one before it is not in force at all', () => {
  const { policies } = keeper()
  policies.seen(policy(faulty))
  assert.equal(policies.inForce(), [])
})

test('what is in force is written on the object, once for each generation', () => {
  const { policies, written } = keeper()
  policies.seen(policy({ profile: 'fast' }))
  policies.seen(policy({ profile: 'fast' }))
  policies.seen(policy({ profile: 'fast' }, {}, 2))
  assert.is(written.length, 2)
})

test('a status that could not be written is written again after a while, also when nothing changes', async () => {
  const clock = virtualClock()
  let refused = 3
  let writes = 0
  const api = {
    async replace(_path: string, body: unknown) {
      writes += 1
      refused -= 1
      return refused >= 0 ? { ok: false, error: { kind: 'throttled', message: 'x' } } : { ok: true, value: body }
    },
  } as unknown as Api // only this call is made
  const policies = keepPolicies({ api, clock, log: silentLog, recorder: { say: () => undefined, close: async () => undefined }, leads: () => 3, changed: () => undefined })
  policies.seen(policy({ profile: 'fast' }))
  for (let tick = 0; tick < 400; tick += 1) {
    policies.settle()
    await clock.runFor(250)
  }
  assert.is(writes, 4)
})

test('who does not lead writes no status; the next leader does', () => {
  let term: number | undefined
  const written: unknown[] = []
  const api = { replace: async (_path: string, body: unknown) => { written.push(body); return { ok: true, value: body } } } as unknown as Api // likewise
  const policies = keepPolicies({ api, clock: machineClock, log: silentLog, recorder: { say: () => undefined, close: async () => undefined }, leads: () => term, changed: () => undefined })
  policies.seen(policy({ profile: 'fast' }))
  policies.settle()
  assert.equal(written, [])
  term = 3
  policies.settle()
  policies.settle()
  assert.is(written.length, 1)
})

test.run()
