import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { map, maps, pod, pods, serverWorld } from './server-world.ts'
import type { Watched } from './server-world.ts'

const test = suite('watch')

const types = (watched: Watched) => watched.lines.map((line) => /"type":"(\w+)"/.exec(line)?.[1])
const merge = { type: 'application/merge-patch+json' }

test('bookmarks come by the clock, with the latest version, to whoever asked', async () => {
  const { ask, clock, server, watch } = serverWorld()
  await ask('POST', maps, map('a'))
  const asked = watch(`${maps}?watch=true&allowWatchBookmarks=true&resourceVersion=${server.revision()}`)
  const silent = watch(`${maps}?watch=true&resourceVersion=${server.revision()}`)
  await ask('POST', pods, pod('elsewhere'))
  await clock.runFor(130_000)
  assert.equal(types(asked), ['BOOKMARK', 'BOOKMARK'])
  assert.match(asked.lines[0] ?? '', `"resourceVersion":"${server.revision()}"`)
  assert.equal(types(silent), [])
  asked.stop()
  silent.stop()
})

test('a watch of one node\'s pods is not told of another\'s', async () => {
  const { ask, clock, server, watch } = serverWorld()
  const mine = watch(`/api/v1/pods?watch=true&resourceVersion=${server.revision()}&fieldSelector=spec.nodeName=n1`)
  await clock.runFor(1)
  await ask('POST', pods, pod('a', 'n1'))
  await ask('POST', pods, pod('b', 'n2'))
  await ask('PATCH', `${pods}/a/status`, { status: { phase: 'Running' } }, merge)
  await clock.runFor(1)
  assert.equal(types(mine), ['ADDED', 'MODIFIED'])
  mine.stop()
})

test('a stalled watch is silent while writes work, and tells everything once it is let go', async () => {
  const { ask, clock, server, watch } = serverWorld()
  const watched = watch(`${maps}?watch=true&allowWatchBookmarks=true&resourceVersion=${server.revision()}`)
  await clock.runFor(1)
  server.faults.set([{ does: 'stall watch' }])
  assert.is((await ask('POST', maps, map('a'))).status, 201)
  await clock.runFor(61_000)
  assert.equal(watched.lines, [])
  server.faults.clear()
  await clock.runFor(1)
  assert.equal(types(watched), ['ADDED', 'BOOKMARK'])
  watched.stop()
})

test('a watch opened while watches stall is open and silent', async () => {
  const { ask, clock, server, watch } = serverWorld()
  await ask('POST', maps, map('a'))
  server.faults.set([{ does: 'stall watch' }])
  const watched = watch(`${maps}?watch=true`)
  await clock.runFor(10_000)
  assert.equal(watched.lines, [])
  assert.is(watched.ended, undefined)
  server.faults.clear()
  await clock.runFor(1)
  assert.equal(types(watched), ['ADDED'])
  watched.stop()
})

test('the end of a stalled watch is not seen before it is let go', async () => {
  const { clock, server, watch } = serverWorld()
  const watched = watch(`${maps}?watch=true&resourceVersion=${server.revision()}&timeoutSeconds=5`)
  await clock.runFor(1)
  server.faults.set([{ does: 'stall watch' }])
  await clock.runFor(20_000)
  assert.is(watched.ended, undefined)
  server.faults.clear()
  await clock.runFor(1)
  assert.is(watched.ended, 'politely')
})

test('a broken watch throws, an aborted one too', async () => {
  const { clock, server, watch } = serverWorld()
  const broken = watch(`${maps}?watch=true&resourceVersion=${server.revision()}`)
  const aborted = watch(`${maps}?watch=true&resourceVersion=${server.revision()}`)
  await clock.runFor(1)
  aborted.stop()
  server.faults.breakWatches()
  await clock.runFor(1)
  assert.match(broken.ended ?? '', 'broken off')
  assert.match(aborted.ended ?? '', 'broken off')
})

test('when history is forgotten, open watches end and the old version is answered with 410', async () => {
  const { ask, clock, server, watch } = serverWorld()
  const since = server.revision()
  const first = watch(`${maps}?watch=true&resourceVersion=${since}`)
  await clock.runFor(1)
  await ask('POST', maps, map('a'))
  server.faults.compact()
  await clock.runFor(1)
  assert.is(first.ended, 'politely')
  const second = watch(`${maps}?watch=true&resourceVersion=${since}`)
  await clock.runFor(1)
  assert.equal(types(second), ['ERROR'])
  assert.match(second.lines[0] ?? '', '"code":410')
  assert.is(second.ended, 'politely')
})

test('a reader who does not take what he is sent is let go', async () => {
  const { ask, clock, server } = serverWorld()
  const answer = await server.transportFor({ name: 'slow', groups: [] })({ method: 'GET', path: `${maps}?watch=true&resourceVersion=${server.revision()}`, headers: {} }, new AbortController().signal)
  await ask('POST', maps, map('a'))
  for (let count = 0; count < 100_001; count += 1) await ask('PATCH', `${maps}/a`, { data: { count: String(count) } }, merge)
  let taken = 0
  for await (const line of answer.body) taken += line === '' ? 0 : 1
  assert.ok(taken <= 100_001, `${taken} lines`)
  assert.is(clock.pending(), 0)
})

test('nothing of a watch is left once it has ended', async () => {
  const { clock, server, watch } = serverWorld()
  const before = clock.pending()
  const watched = watch(`${maps}?watch=true&allowWatchBookmarks=true&resourceVersion=${server.revision()}`)
  await clock.runFor(1)
  assert.ok(clock.pending() > before)
  watched.stop()
  await clock.runFor(1)
  assert.is(clock.pending(), before)
})

test.run()
