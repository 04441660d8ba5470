import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { nodeUser } from '../../../sim/api-server/server.ts'
import { map, maps, serverWorld } from './server-world.ts'

const test = suite('faults')

const refusalOf = (work: Promise<unknown>) => work.then(() => 'no refusal', (cause: unknown) => (cause instanceof Error ? cause.message : String(cause)))

test('unreachable: no status line comes, and nothing is done', async () => {
  const { ask, server } = serverWorld()
  server.faults.set([{ does: 'unreachable' }])
  assert.match(await refusalOf(ask('POST', maps, map('a'))), 'cannot be reached')
  server.faults.clear()
  assert.is((await ask('GET', `${maps}/a`)).status, 404)
})

test('a fault strikes whom it names and nobody else', async () => {
  const { ask, server } = serverWorld()
  server.faults.set([{ does: 'unreachable', strikes: ({ user, method }) => user.name === 'system:node:n1' && method === 'GET' }])
  assert.match(await refusalOf(ask('GET', '/api/v1/nodes/n1', undefined, { user: nodeUser('n1') })), 'cannot be reached')
  assert.is((await ask('GET', '/api/v1/nodes/n2', undefined, { user: nodeUser('n2') })).status, 404)
})

test('a fault that strikes so often is then spent', async () => {
  const { ask, server } = serverWorld()
  server.faults.set([{ does: 'answer', status: 500, times: 2 }])
  const seen = [await ask('GET', maps), await ask('GET', maps), await ask('GET', maps)].map(({ status }) => status)
  assert.equal(seen, [500, 500, 200])
})

test('slow: the answer takes as long as it is told', async () => {
  const { ask, clock, server } = serverWorld()
  server.faults.set([{ does: 'slow', by: 2_000 }])
  let answered = false
  const asked = ask('GET', maps).then(() => { answered = true })
  await clock.runFor(1_999)
  assert.not(answered)
  await clock.runFor(1)
  await asked
  assert.ok(answered)
})

test('a server that lags: what it streams is as old as that, also a list, and news come as late; what is read of the store is right', async () => {
  const { ask, watch, clock, server } = serverWorld()
  await ask('POST', maps, map('a'))
  await clock.runFor(20_000)
  await ask('POST', maps, map('b'))
  await clock.runFor(1_000)
  server.faults.set([{ does: 'lag', by: 10_000 }])
  const listed = watch(`${maps}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`)
  const names = () => listed.lines.flatMap((line) => /"type":"ADDED".*?"name":"(\w+)"/.exec(line)?.[1] ?? [])
  await clock.runFor(100)
  assert.equal(names(), ['a'])
  assert.is(((await ask('GET', maps)).body['items'] as readonly object[]).length, 2)
  await clock.runFor(8_800)
  assert.equal(names(), ['a'])
  await clock.runFor(200)
  assert.equal(names(), ['a', 'b'])
  await ask('POST', maps, map('c'))
  await clock.runFor(9_900)
  assert.equal(names(), ['a', 'b'])
  await clock.runFor(200)
  assert.equal(names(), ['a', 'b', 'c'])
  listed.stop()
})

test('429 says when to come again', async () => {
  const { server } = serverWorld()
  server.faults.set([{ does: 'answer', status: 429, retryAfterSeconds: 7 }])
  const answer = await server.transportFor({ name: 'a', groups: [] })({ method: 'GET', path: maps, headers: {} }, new AbortController().signal)
  assert.is(answer.status, 429)
  assert.is(answer.headers['retry-after'], '7')
})

test('a lost answer: the write is done, its writer does not hear of it', async () => {
  const { ask, server } = serverWorld()
  server.faults.set([{ does: 'lose answer', strikes: ({ method }) => method === 'POST' }])
  assert.match(await refusalOf(ask('POST', maps, map('a'))), 'before the answer came')
  assert.is((await ask('GET', `${maps}/a`)).status, 200)
})

for (const status of [403, 409, 410, 500, 502, 503, 504] as const) {
  test(`${status} is answered in the real server's words`, async () => {
    const { ask, server } = serverWorld()
    server.faults.set([{ does: 'answer', status }])
    const answer = await ask('GET', maps)
    assert.is(answer.status, status)
    assert.is(answer.body['kind'], 'Status')
    assert.is(answer.body['code'], status)
  })
}

test('a request aborted while it is slow is given up and does nothing', async () => {
  const { ask, clock, server } = serverWorld()
  server.faults.set([{ does: 'slow', by: 1_000 }])
  const stop = new AbortController()
  const asked = server.handle({ method: 'POST', path: maps, headers: {}, body: JSON.stringify(map('a')) }, { name: 'a', groups: [] }, stop.signal)
  stop.abort()
  assert.match(await refusalOf(asked), 'aborted')
  server.faults.clear()
  await clock.runFor(2_000)
  assert.is((await ask('GET', `${maps}/a`)).status, 404)
})

test.run()
