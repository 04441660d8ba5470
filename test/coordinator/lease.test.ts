import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createApi } from '../../coordinator/api.ts'
import { elect, type Elector, type ElectorOptions, type Lease } from '../../coordinator/lease.ts'
import type { Clock } from '../../edge/clock.ts'
import { waitOn } from '../../edge/clock.ts'
import { silentLog } from '../../edge/log.ts'
import { admin, createApiServer } from '../../sim/api-server/server.ts'
import { virtualClock, type VirtualClock } from '../../sim/clock.ts'
import { scriptedServer, type Asked } from './scripted-server.ts'

const test = suite('lease')

/** One Lease behind compare-and-swap; `faults` may take a request away from it, or its answer from whoever asked. */
function leaseServer(clock: VirtualClock) {
  const state = { lease: undefined as Lease | undefined, version: 0, faults: (_asked: Asked): 'lost' | 'unanswered' | undefined => undefined, requests: [] as string[] }
  const serve = (asked: Asked): void => {
    const fault = state.faults(asked)
    if (fault === 'lost') return
    const answer: Asked['answer'] = fault === 'unanswered' ? () => undefined : asked.answer
    const { method, body } = asked.request
    state.requests.push(`${method} ${clock.now()}`)
    if (method !== 'POST' && !state.lease) return answer(404, { reason: 'NotFound' })
    if (method === 'GET') return answer(200, state.lease)
    const sent = JSON.parse(body ?? '') as Lease // the elector's own words
    if (method === 'POST' ? state.lease !== undefined : sent.metadata.resourceVersion !== state.lease?.metadata.resourceVersion) return answer(409, { reason: 'Conflict' })
    state.lease = { ...sent, metadata: { ...sent.metadata, uid: 'u', resourceVersion: String(++state.version) } }
    answer(200, state.lease)
  }
  const server = scriptedServer(serve)
  return { state, api: (own: Clock = clock) => createApi({ transport: server.transport, clock: own }) }
}

interface Replica { readonly elector: Elector; readonly story: string[] }

function stand(server: ReturnType<typeof leaseServer>, clock: Clock, identity: string, more: Partial<ElectorOptions> = {}): Replica {
  const story: string[] = []
  const elector = elect({
    api: server.api(clock), clock, chance: () => 0.5, identity, namespace: 'holdfast', name: 'coordinator', log: silentLog,
    gained: (term) => story.push(`gained ${term} at ${clock.now()}`),
    lost: (reason) => story.push(`lost at ${clock.now()}: ${reason}`),
    ...more,
  })
  return { elector, story }
}

/** A process's own clock, whose timers do not run while the process sleeps; time goes on. */
function sleepy(clock: VirtualClock) {
  let asleep = false
  let held: (() => void)[] = []
  const arm = clock.after
  const own: Clock = {
    ...clock,
    wait: (span, signal) => waitOn(own, span, signal),
    after: (span, run) => arm(span, () => (asleep ? void held.push(run) : run())),
  }
  return {
    own,
    sleep() { asleep = true },
    wake() {
      asleep = false
      const due = held
      held = []
      for (const run of due) run()
    },
  }
}

/** Stops them all; their last calls need time to pass. */
async function end(clock: VirtualClock, ...replicas: Replica[]): Promise<void> {
  const stopped = Promise.all(replicas.map(({ elector }) => elector.stop()))
  await clock.runFor(10_000)
  await stopped
}

const released = (term: number): Lease => ({ metadata: { name: 'coordinator', namespace: 'holdfast', resourceVersion: '7', annotations: { kept: 'yes' } }, spec: { leaseTransitions: term } })

test('where there is no lease, one of two replicas makes it, and one leads after the whole span', async () => {
  const clock = virtualClock()
  const server = leaseServer(clock)
  const [one, two] = [stand(server, clock, 'one'), stand(server, clock, 'two')]
  await clock.runFor(3_900)
  assert.equal([one.elector.leads(), two.elector.leads(), one.elector.holder()], [undefined, undefined, 'nobody yet'])
  await clock.runFor(600)
  assert.is([one, two].filter(({ elector }) => elector.leads() === 1).length, 1)
  await clock.runFor(30_000)
  assert.is([...one.story, ...two.story].length, 1)
  await end(clock, one, two)
  assert.is(clock.pending(), 0)
})

test('a released lease is taken at once, and what others wrote on it stays', async () => {
  const clock = virtualClock()
  const server = leaseServer(clock)
  server.state.lease = released(4)
  const { elector, story } = stand(server, clock, 'one')
  await clock.runFor(0)
  assert.equal(story, ['gained 5 at 0'])
  assert.is(elector.leads(), 5)
  const { metadata, spec } = server.state.lease
  assert.equal(metadata.annotations, { kept: 'yes' })
  assert.equal([spec?.holderIdentity, spec?.leaseTransitions, spec?.leaseDurationSeconds], ['one', 5, 4])
  assert.match(spec?.renewTime ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
  assert.match(spec?.acquireTime ?? '', /\.\d{6}Z$/)
  await end(clock, { elector, story: [] })
})

test('a leader renews each second with one write and no reading', async () => {
  const clock = virtualClock()
  const server = leaseServer(clock)
  server.state.lease = released(0)
  const { elector } = stand(server, clock, 'one')
  await clock.runFor(10_500)
  assert.equal(server.state.requests, ['GET 0', ...Array.from({ length: 11 }, (_, second) => `PUT ${second * 1000}`)])
  assert.is(elector.leads(), 1)
  await end(clock, { elector, story: [] })
})

test('what a leader notes stands on the lease with its next renewal, and whoever takes the lease leaves it there', async () => {
  const clock = virtualClock()
  const server = leaseServer(clock)
  server.state.lease = released(4)
  let note = {}
  const one = stand(server, clock, 'one', { note: () => note })
  await clock.runFor(500)
  note = { turn: '7' }
  await clock.runFor(1_000)
  assert.equal(one.elector.annotations(), { kept: 'yes', turn: '7' })
  await end(clock, one)
  const two = stand(server, clock, 'two', { note: () => (two.elector.leads() === undefined ? { turn: 'of a time when it led before' } : {}) })
  await clock.runFor(500)
  assert.is(two.elector.leads(), 6)
  assert.equal(server.state.lease.metadata.annotations, { kept: 'yes', turn: '7' })
  await end(clock, two)
})

test('a dead leader is followed within five seconds, under the next term', async () => {
  const clock = virtualClock()
  const server = leaseServer(clock)
  server.state.lease = released(0)
  const first = sleepy(clock)
  const one = stand(server, first.own, 'one')
  await clock.runFor(0)
  const two = stand(server, clock, 'two')
  await clock.runFor(20_300)
  first.sleep()
  const died = clock.now()
  await clock.runWhen(() => two.elector.leads() !== undefined, 10_000)
  assert.ok(clock.now() - died < 5_000, `${clock.now() - died} ms`)
  assert.is(two.elector.leads(), 2)
  assert.is(one.elector.leads(), undefined)
  await end(clock, two)
  first.wake()
  await end(clock, one)
})

test('a leader that slept a minute knows at its first look that it leads no more, before anything told it', async () => {
  const clock = virtualClock()
  const server = leaseServer(clock)
  server.state.lease = released(0)
  const first = sleepy(clock)
  const one = stand(server, first.own, 'one')
  await clock.runFor(1_200)
  assert.is(one.elector.leads(), 1)
  first.sleep()
  await clock.runFor(60_000)
  assert.is(one.elector.leads(), undefined)
  assert.is(one.story.length, 1)
  const two = stand(server, clock, 'two')
  await clock.runFor(5_000)
  assert.is(two.elector.leads(), 2)
  first.wake()
  await clock.runFor(3_000)
  assert.is(one.elector.leads(), undefined)
  assert.is(two.elector.leads(), 2)
  assert.match(one.story[1] ?? '', 'lost at 66200')
  await end(clock, one, two)
})

test('a leader that is cut off stops before another can begin', async () => {
  const clock = virtualClock()
  const server = leaseServer(clock)
  server.state.lease = released(0)
  const one = stand(server, clock, 'one')
  await clock.runFor(0)
  let cut = false
  server.state.faults = ({ request }) => (cut && (request.body ?? '').includes('"one"') ? 'lost' : undefined)
  const two = stand(server, clock, 'two')
  await clock.runFor(5_100)
  cut = true
  await clock.runWhen(() => one.elector.leads() === undefined, 10_000)
  const ended = clock.now()
  assert.is(ended, 5_000 + 3_500)
  assert.equal(one.story.at(-1), `lost at ${ended}: not renewed in time`)
  assert.is(two.elector.leads(), undefined)
  await clock.runFor(2_000)
  assert.is(two.elector.leads(), 2)
  await end(clock, one, two)
})

test('a renewal whose answer was lost is found to have happened, and leadership goes on from when it was sent', async () => {
  const clock = virtualClock()
  const server = leaseServer(clock)
  server.state.lease = released(0)
  let puts = 0
  server.state.faults = ({ request }) => (request.method === 'PUT' && ++puts % 2 === 0 ? 'unanswered' : undefined)
  const { elector, story } = stand(server, clock, 'one')
  await clock.runFor(20_000)
  assert.equal(story, ['gained 1 at 0'])
  assert.is(elector.leads(), 1)
  await end(clock, { elector, story: [] })
})

test('a taking whose answer was lost is found to have happened', async () => {
  const clock = virtualClock()
  const server = leaseServer(clock)
  server.state.lease = released(0)
  let puts = 0
  server.state.faults = ({ request }) => (request.method === 'PUT' && ++puts === 1 ? 'unanswered' : undefined)
  const { elector, story } = stand(server, clock, 'one')
  await clock.runFor(1_400)
  assert.is(elector.leads(), undefined)
  await clock.runFor(200)
  assert.equal(story, ['gained 1 at 1500'])
  await end(clock, { elector, story: [] })
})

test('a renewal that takes half a second each time does not cost the leadership', async () => {
  const clock = virtualClock()
  const server = leaseServer(clock)
  server.state.lease = released(0)
  const slow = sleepy(clock)
  const api = server.api()
  const late: typeof api = { ...api, async replace(path, body, options) {
    await clock.wait(500)
    const answer = await api.replace(path, body, options)
    await clock.wait(700)
    return answer as never // the same answer, later
  } }
  const { elector, story } = stand(server, slow.own, 'one', { api: late })
  await clock.runFor(30_000)
  assert.equal(story, ['gained 1 at 1200'])
  await end(clock, { elector, story: [] })
})

test('whoever meets a conflict loses: the lease was taken away by hand', async () => {
  const clock = virtualClock()
  const server = leaseServer(clock)
  server.state.lease = released(0)
  const { elector, story } = stand(server, clock, 'one')
  await clock.runFor(2_500)
  server.state.lease = { ...server.state.lease, metadata: { ...server.state.lease.metadata, resourceVersion: '999' }, spec: { holderIdentity: 'hand', leaseTransitions: 9, renewTime: 'x' } }
  await clock.runFor(600)
  assert.is(elector.leads(), undefined)
  assert.match(story[1] ?? '', 'hand holds the lease')
  await clock.runFor(5_000)
  assert.is(elector.leads(), 10)
  await end(clock, { elector, story: [] })
})

test('a lease deleted under its leader is lost, and comes back only after the whole span, above the highest term', async () => {
  const clock = virtualClock()
  const server = leaseServer(clock)
  server.state.lease = released(6)
  const { elector, story } = stand(server, clock, 'one', { highestTerm: () => 20 })
  await clock.runFor(100)
  assert.is(elector.leads(), 21)
  server.state.lease = undefined
  await clock.runFor(1_000)
  assert.match(story[1] ?? '', 'lost at 1000')
  await clock.runFor(3_800)
  assert.is(elector.leads(), undefined)
  await clock.runFor(1_000)
  assert.is(elector.leads(), 22)
  await end(clock, { elector, story: [] })
})

test('a name that returns is not taken for its earlier self', async () => {
  const clock = virtualClock()
  const server = leaseServer(clock)
  server.state.lease = released(0)
  const before = sleepy(clock)
  const old = stand(server, before.own, 'pod-0')
  await clock.runFor(2_300)
  const young = stand(server, clock, 'pod-0')
  await clock.runFor(10_000)
  assert.equal([old.elector.leads(), young.elector.leads()], [1, undefined])
  before.sleep()
  await clock.runFor(5_000)
  assert.equal([old.elector.leads(), young.elector.leads()], [undefined, 2])
  await end(clock, young)
  before.wake()
  await end(clock, old)
})

test('stop ends the leadership before it releases the lease, and the next one takes it within a look', async () => {
  const clock = virtualClock()
  const server = leaseServer(clock)
  server.state.lease = released(0)
  const one = stand(server, clock, 'one')
  await clock.runFor(0)
  const two = stand(server, clock, 'two')
  await clock.runFor(10_250)
  const stopped = one.elector.stop()
  assert.is(one.elector.leads(), undefined)
  assert.equal(one.story.at(-1), 'lost at 10250: stopped')
  await clock.runFor(0)
  await stopped
  assert.is(server.state.lease.spec?.holderIdentity, null)
  await clock.runFor(600)
  assert.is(two.elector.leads(), 2)
  await end(clock, two)
  assert.is(clock.pending(), 0)
})

test('stop releases nothing that another one holds', async () => {
  const clock = virtualClock()
  const server = leaseServer(clock)
  server.state.lease = released(0)
  const one = stand(server, clock, 'one')
  await clock.runFor(0)
  const two = stand(server, clock, 'two')
  await clock.runFor(1_000)
  const stopping = two.elector.stop()
  await clock.runFor(2_000)
  await stopping
  assert.is(server.state.lease.spec?.holderIdentity, 'one')
  assert.is(one.elector.leads(), 1)
  await end(clock, one)
})

test('an API server that is away for a minute ends the leadership once, and one replica leads again soon after', async () => {
  const clock = virtualClock()
  const server = leaseServer(clock)
  server.state.lease = released(0)
  const [one, two] = [stand(server, clock, 'one'), stand(server, clock, 'two')]
  await clock.runFor(5_000)
  server.state.faults = () => 'lost'
  await clock.runFor(60_000)
  assert.equal([one.elector.leads(), two.elector.leads()], [undefined, undefined])
  server.state.faults = () => undefined
  await clock.runFor(3_000)
  assert.is([one, two].filter(({ elector }) => elector.leads() === 2).length, 1)
  await end(clock, one, two)
})

test('a listener that throws does not end the election', async () => {
  const clock = virtualClock()
  const server = leaseServer(clock)
  server.state.lease = released(0)
  const { elector } = stand(server, clock, 'one', { gained: () => { throw new Error('cannot') } })
  await clock.runFor(20_000)
  assert.is(elector.leads(), 1)
  await end(clock, { elector, story: [] })
})

test('the API server accepts what is written: made, taken, renewed, released, taken again', async () => {
  const clock = virtualClock()
  const server = createApiServer({ clock, chance: () => 0.5 })
  server.plant({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'holdfast' } })
  const api = createApi({ transport: server.transportFor(admin), clock })
  const read = () => server.peek('leases.coordination.k8s.io')[0] as Lease | undefined // the only one there is
  const one = stand({ state: undefined as never, api: () => api }, clock, 'one') // only its api is asked for
  await clock.runFor(6_000)
  assert.is(one.elector.leads(), 1)
  assert.equal([read()?.spec?.holderIdentity, read()?.spec?.leaseTransitions], ['one', 1])
  await end(clock, one)
  assert.is(read()?.spec?.holderIdentity ?? '', '')
  const two = stand({ state: undefined as never, api: () => api }, clock, 'two') // as above
  await clock.runFor(0)
  assert.is(two.elector.leads(), 2)
  await end(clock, two)
})

test.run()
