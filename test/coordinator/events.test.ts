import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createApi, type KubeObject } from '../../coordinator/api.ts'
import { recorder, type Occasion } from '../../coordinator/events.ts'
import { silentLog } from '../../edge/log.ts'
import { admin, createApiServer } from '../../sim/api-server/server.ts'
import { virtualClock } from '../../sim/clock.ts'

const test = suite('events')

interface Event extends KubeObject {
  note: string
  reason: string
  action: string
  type: string
  eventTime: string
  reportingController: string
  reportingInstance: string
  regarding: { kind: string; name: string }
  series?: { count: number; lastObservedTime: string }
}

function world() {
  const clock = virtualClock()
  const server = createApiServer({ clock, chance: () => 0.5 })
  const api = createApi({ transport: server.transportFor(admin), clock })
  const { say, close: stop } = recorder({ api, clock, log: silentLog, identity: 'replica-1' })
  const read = async (): Promise<Event[]> => {
    const answer = await api.get<{ items: Event[] }>('/apis/events.k8s.io/v1/events')
    if (!answer.ok) throw new Error(answer.error.message)
    return answer.value.items
  }
  /** What is still to be written needs time to pass. */
  const close = async () => {
    const closing = stop()
    await clock.runFor(3_000)
    await closing
  }
  return { clock, server, say, close, stop, read }
}

const node = { apiVersion: 'v1', kind: 'Node', name: 'node-2', uid: 'u-2' }
const held: Occasion = { regarding: node, reason: 'Held', action: 'Fence', note: 'the storm brake holds', type: 'Warning' }

test('an event about a node stands in default, with six digits of a second and our name on it', async () => {
  const { clock, say, read, close } = world()
  say(held)
  await clock.runFor(0)
  const [event, ...more] = await read()
  assert.is(more.length, 0)
  assert.equal([event?.metadata.namespace, event?.reason, event?.action, event?.note, event?.type], ['default', 'Held', 'Fence', 'the storm brake holds', 'Warning'])
  assert.equal([event?.reportingController, event?.reportingInstance], ['holdfast.dev/coordinator', 'replica-1'])
  assert.equal([event?.regarding.kind, event?.regarding.name], ['Node', 'node-2'])
  assert.match(event?.eventTime ?? '', /\.\d{6}Z$/)
  assert.ok(event?.metadata.name.startsWith('node-2.'))
  await close()
})

test('an event about a pod stands beside it', async () => {
  const { clock, server, say, read, close } = world()
  server.plant({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } })
  say({ ...held, regarding: { apiVersion: 'v1', kind: 'Pod', name: 'db-0', uid: 'p', namespace: 'shop' }, related: node })
  await clock.runFor(0)
  assert.is((await read())[0]?.metadata.namespace, 'shop')
  await close()
})

test('what is said again is counted on the same event, at most once a minute; the last count is written, too', async () => {
  const { clock, server, say, read, close } = world()
  const before = server.revision()
  for (let second = 0; second < 300; second++) {
    say(held)
    await clock.runFor(1_000)
  }
  const writes = server.revision() - before
  assert.ok(writes >= 4 && writes <= 7, `${writes} writes`)
  await clock.runFor(60_000)
  const events = await read()
  assert.is(events.length, 1)
  assert.is(events[0]?.series?.count, 300)
  assert.match(events[0]?.series?.lastObservedTime ?? '', /\.\d{6}Z$/)
  await close()
})

test('another note, another reason, another object or another type is another event', async () => {
  const { clock, say, read, close } = world()
  for (const occasion of [held, { ...held, note: 'another' }, { ...held, reason: 'Other' }, { ...held, type: 'Normal' as const }, { ...held, regarding: { ...node, uid: 'u-3' } }]) say(occasion)
  await clock.runFor(0)
  assert.is((await read()).length, 5)
  await close()
})

test('what was silent for long is a new event', async () => {
  const { clock, say, read, close } = world()
  say(held)
  await clock.runFor(11 * 60_000)
  say(held)
  await clock.runFor(0)
  assert.is((await read()).length, 2)
  await close()
})

test('a note too long for the server is cut at a whole letter', async () => {
  const { clock, say, read, close } = world()
  say({ ...held, note: 'ü'.repeat(2000) })
  await clock.runFor(0)
  const note = (await read())[0]?.note ?? ''
  assert.ok(Buffer.byteLength(note) <= 1024 && Buffer.byteLength(note) > 1000)
  assert.match(note, /^ü+…$/)
  await close()
})

test('an answer that was lost does not make two events of one', async () => {
  const { clock, server, say, read, close } = world()
  server.faults.set([{ does: 'lose answer', times: 1 }])
  say(held)
  await clock.runFor(5_000)
  assert.is((await read()).length, 1)
  await close()
})

test('an event that the server forgot begins anew', async () => {
  const { clock, server, say, read, close } = world()
  say(held)
  await clock.runFor(0)
  const [event] = await read()
  const api = createApi({ transport: server.transportFor(admin), clock })
  assert.ok((await api.remove(`/apis/events.k8s.io/v1/namespaces/default/events/${event?.metadata.name}`)).ok)
  await clock.runFor(61_000)
  say(held)
  await clock.runFor(1_000)
  const [anew] = await read()
  assert.ok(anew !== undefined && anew.metadata.name !== event?.metadata.name)
  await close()
})

test('a server that is away costs events and nothing else: nothing throws, nothing grows, nothing spins', async () => {
  const { clock, server, say, read, close } = world()
  let calls = 0
  server.faults.set([{ does: 'unreachable', strikes: () => (calls++, true) }])
  for (let index = 0; index < 5_000; index++) say({ ...held, note: `${index}` })
  await clock.runFor(60_000)
  assert.ok(calls < 60, `${calls} calls in a minute`)
  server.faults.clear()
  await clock.runFor(120_000)
  const kept = (await read()).length
  assert.ok(kept > 0 && kept <= 501, `${kept} events`)
  await close()
})

test('close writes what was said, does not wait for long, and nothing is written after', async () => {
  const well = world()
  well.say(held)
  await well.close()
  assert.is((await well.read()).length, 1)
  well.say({ ...held, note: 'late' })
  await well.clock.runFor(1_000)
  assert.is((await well.read()).length, 1)
  assert.is(well.clock.pending(), 0)

  const away = world()
  away.server.faults.set([{ does: 'unreachable' }])
  away.say(held)
  let closed = false
  void away.stop().then(() => { closed = true })
  await away.clock.runFor(2_000)
  assert.ok(closed)
  assert.is(away.clock.pending(), 0)
})

test.run()
