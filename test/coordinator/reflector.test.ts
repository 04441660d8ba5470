import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createApi, type KubeObject } from '../../coordinator/api.ts'
import { reflect, type ReflectorOptions } from '../../coordinator/reflector.ts'
import { compareVersions } from '../../coordinator/reflector-store.ts'
import { silentLog, type Log } from '../../edge/log.ts'
import { virtualClock } from '../../sim/clock.ts'
import { scriptedServer, type Asked } from './scripted-server.ts'

const test = suite('reflector')

const node = (name: string, version: number | string, uid = `uid-${name}`): KubeObject => ({ metadata: { name, uid, resourceVersion: String(version) } })
const bookmark = (version: number, end = false) => ({ metadata: { resourceVersion: String(version), ...(end ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}) } })
const listOf = (version: number, items: KubeObject[], more?: string) => ({ metadata: { resourceVersion: String(version), ...(more ? { continue: more } : {}) }, items })
const no = (code: number, reason: string) => ({ kind: 'Status', code, reason, message: reason })

const isList = ({ query }: Asked) => query.get('watch') === null
const isStreamedList = ({ query }: Asked) => query.get('sendInitialEvents') === 'true'

function world(options: Partial<ReflectorOptions<KubeObject>> = {}, react?: (asked: Asked) => void) {
  const clock = virtualClock()
  const server = scriptedServer(react)
  const api = createApi({ transport: server.transport, clock })
  const told: string[] = []
  const logged: string[] = []
  const log: Log = { ...silentLog, warn: (_facts, message) => logged.push(message), error: (_facts, message) => logged.push(message), info: (_facts, message) => logged.push(message) }
  const reflector = reflect<KubeObject>({
    api, clock, log, chance: () => 0.5, path: '/api/v1/nodes',
    changed: ({ type, key, object }) => told.push(`${type} ${key} ${object.metadata.uid}@${object.metadata.resourceVersion}`),
    ...options,
  })
  return { clock, server, told, logged, reflector }
}

/** Answers streamed lists with the objects given, and leaves watches to the test. */
async function synced(version: number, items: KubeObject[], options: Partial<ReflectorOptions<KubeObject>> = {}) {
  const here = world(options)
  await here.clock.runFor(0)
  const stream = here.server.last().stream()
  for (const item of items) stream.say('ADDED', item)
  stream.say('BOOKMARK', bookmark(version, true))
  await here.clock.runFor(0)
  return { ...here, watch: here.server.last().stream() }
}

test('a full read comes as a stream and is told object by object, then watched from its end', async () => {
  const { server, told, reflector, clock } = await synced(10, [node('one', 5), node('two', 7)])
  assert.ok(isStreamedList(server.asked[0] as Asked))
  assert.equal(told, ['added one uid-one@5', 'added two uid-two@7'])
  assert.equal([...reflector.items.keys()], ['one', 'two'])
  assert.ok(reflector.synced)
  assert.is(reflector.freshAt(), 0)
  const { query } = server.last()
  assert.equal([query.get('watch'), query.get('resourceVersion'), query.get('allowWatchBookmarks')], ['1', '10', 'true'])
  const seconds = Number(query.get('timeoutSeconds'))
  assert.ok(seconds >= 300 && seconds <= 600)
  assert.ok(server.asked[0]?.signal.aborted) // the list's own stream is let go
  reflector.stop()
  await clock.runFor(0)
})

test('before the first full read is whole nothing is told and nothing is fresh', async () => {
  const { clock, server, told, reflector } = world()
  await clock.runFor(0)
  const stream = server.last().stream()
  stream.say('ADDED', node('one', 5))
  await clock.runFor(100)
  assert.equal(told, [])
  assert.not(reflector.synced)
  assert.is(reflector.freshAt(), undefined)
  reflector.stop()
})

for (const [name, refuse] of [
  ['refuses it as bad', (asked: Asked) => asked.answer(400, no(400, 'BadRequest'))],
  ['refuses it as invalid', (asked: Asked) => asked.answer(422, no(422, 'Invalid'))],
  ['never ends it', (asked: Asked) => asked.stream().say('ADDED', node('one', 5))],
  ['answers with news', (asked: Asked) => asked.stream().say('MODIFIED', node('one', 5))],
] as const) {
  test(`where the server knows no streamed list and ${name}, it is read in pages, from then on`, async () => {
    const { clock, server, told, reflector } = world({}, (asked) => {
      if (isStreamedList(asked)) refuse(asked)
      else if (isList(asked) && !asked.query.get('continue')) asked.answer(200, listOf(10, [node('one', 5)], 'more'))
      else if (isList(asked)) asked.answer(200, listOf(10, [node('two', 6)]))
      else asked.answer(410, no(410, 'Expired'))
    })
    await clock.runFor(15_000)
    assert.equal(told, ['added one uid-one@5', 'added two uid-two@6'])
    assert.is(server.asked.filter(isStreamedList).length, 1)
    assert.ok(server.asked.filter(isList).length >= 4)
    assert.ok(server.asked.filter(isList).every(({ query }) => query.get('limit') === '500' && query.get('resourceVersion') === null))
    reflector.stop()
    await clock.runFor(0)
    assert.is(clock.pending(), 0)
  })
}

test('a list that expires between its pages is begun again, and not half of it is told', async () => {
  let expired = 0
  const { clock, told, reflector } = world({}, (asked) => {
    if (isStreamedList(asked)) asked.answer(422, no(422, 'Invalid'))
    else if (!isList(asked)) asked.stream()
    else if (!asked.query.get('continue')) asked.answer(200, expired === 0 ? listOf(10, [node('one', 5), node('old', 6)], 'more') : listOf(20, [node('one', 5)], 'more'))
    else if (expired++ === 0) asked.answer(410, no(410, 'Expired'))
    else asked.answer(200, listOf(20, [node('two', 12)]))
  })
  await clock.runFor(0)
  assert.equal(told, ['added one uid-one@5', 'added two uid-two@12'])
  reflector.stop()
})

test('events change the copy, and each makes it fresh', async () => {
  const { clock, watch, told, reflector } = await synced(10, [node('one', 5)])
  told.length = 0
  await clock.runFor(1000)
  watch.say('MODIFIED', node('one', 11))
  watch.say('ADDED', node('two', 12))
  await clock.runFor(0)
  assert.is(reflector.freshAt(), 1000)
  await clock.runFor(500)
  watch.say('DELETED', node('one', 13))
  await clock.runFor(0)
  assert.equal(told, ['modified one uid-one@11', 'added two uid-two@12', 'deleted one uid-one@11'])
  assert.equal([...reflector.items.keys()], ['two'])
  assert.is(reflector.freshAt(), 1500)
  reflector.stop()
})

test('an object made again under its name is told as gone and as new, whichever way it was seen', async () => {
  const { clock, server, watch, told, reflector } = await synced(10, [node('one', 5, 'a'), node('two', 6, 'a')])
  told.length = 0
  watch.say('MODIFIED', node('one', 12, 'b'))
  await clock.runFor(0)
  assert.equal(told, ['deleted one a@5', 'added one b@12'])
  watch.say('DELETED', node('one', 13, 'a')) // the end of the old one, heard late, does not touch the new one
  await clock.runFor(0)
  assert.ok(reflector.items.has('one'))
  told.length = 0
  watch.say('ERROR', no(410, 'Expired'))
  await clock.runFor(1000)
  const list = server.last().stream()
  list.say('ADDED', node('one', 12, 'b'))
  list.say('ADDED', node('two', 15, 'b'))
  list.say('BOOKMARK', bookmark(20, true))
  await clock.runFor(0)
  assert.equal(told, ['deleted two a@6', 'added two b@15'])
  assert.is(reflector.generation, 2)
  reflector.stop()
})

test('after 410 the new list tells only what differs', async () => {
  const { clock, server, watch, told, reflector } = await synced(10, [node('same', 5), node('gone', 6), node('changed', 7)])
  told.length = 0
  watch.say('ERROR', no(410, 'Expired'))
  await clock.runFor(1000)
  const list = server.last().stream()
  for (const item of [node('same', 5), node('changed', 15), node('new', 16)]) list.say('ADDED', item)
  list.say('BOOKMARK', bookmark(20, true))
  await clock.runFor(0)
  assert.equal(told, ['deleted gone uid-gone@6', 'modified changed uid-changed@15', 'added new uid-new@16'])
  reflector.stop()
})

test('a watch that breaks goes on from the last bookmark, without a new list', async () => {
  const { clock, server, watch, reflector } = await synced(10, [])
  watch.say('BOOKMARK', bookmark(44))
  await clock.runFor(0)
  watch.breakOff()
  await clock.runFor(1000)
  assert.is(server.last().query.get('resourceVersion'), '44')
  assert.is(server.asked.filter(isStreamedList).length, 1)
  reflector.stop()
})

test('a watch on which nothing comes is dropped at its idle deadline and resumed', async () => {
  const { clock, server, reflector } = await synced(10, [], { idle: 90_000 })
  await clock.runFor(89_000)
  assert.is(server.asked.length, 2)
  await clock.runFor(2_000)
  assert.is(server.asked.length, 3)
  assert.is(server.last().query.get('resourceVersion'), '10')
  assert.ok(server.asked[1]?.signal.aborted)
  reflector.stop()
})

test('an orderly end is followed by the next watch at once, and is no trouble', async () => {
  const { clock, server, watch, reflector } = await synced(10, [])
  await clock.runFor(80_000)
  watch.say('BOOKMARK', bookmark(20))
  watch.end()
  await clock.runFor(0)
  assert.is(server.asked.length, 3)
  assert.is(reflector.trouble, undefined)
  reflector.stop()
})

test('a server in trouble is asked ever more rarely, not in a spin, and the wait has a limit', async () => {
  const { clock, server, reflector, logged } = world({}, (asked) => asked.answer(503, no(503, 'ServiceUnavailable')))
  await clock.runFor(60_000)
  const early = server.asked.length
  assert.ok(early >= 6 && early <= 20, `${early} requests`)
  await clock.runFor(60_000)
  assert.ok(server.asked.length - early >= 6)
  assert.equal(logged, ['the copy of a collection is no longer kept up to date'])
  reflector.stop()
})

for (const [name, react] of [
  ['ends each watch as soon as it began', (asked: Asked) => asked.stream().end()],
  ['answers each watch with 410', (asked: Asked) => asked.answer(410, no(410, 'Expired'))],
] as const) {
  test(`a server that ${name} is not asked in a spin`, async () => {
    const { clock, server, reflector } = world({}, (asked) => {
      if (isStreamedList(asked)) asked.stream().say('BOOKMARK', bookmark(10, true))
      else react(asked)
    })
    await clock.runFor(60_000)
    assert.ok(server.asked.length < 40, `${server.asked.length} requests`)
    reflector.stop()
  })
}

test('a throttled watch comes again not sooner than it was told to', async () => {
  const { clock, server, watch, reflector } = await synced(10, [])
  watch.breakOff()
  await clock.runFor(1_000)
  server.last().answer(429, no(429, 'TooManyRequests'), { 'retry-after': '20' })
  await clock.runFor(19_000)
  assert.is(server.asked.length, 3)
  await clock.runFor(2_000)
  assert.is(server.asked.length, 4)
  reflector.stop()
})

test('a list out of the past is not taken in and is not fresh; after a minute of insisting it is', async () => {
  const past = (asked: Asked) => {
    const stream = asked.stream()
    if (!isStreamedList(asked)) return
    stream.say('ADDED', node('old', 3))
    stream.say('BOOKMARK', bookmark(5, true))
  }
  let turned = false
  const here = world({}, (asked) => {
    if (turned) past(asked)
  })
  const { clock, server, told, reflector, logged } = here
  await clock.runFor(0)
  const list = server.last().stream()
  list.say('ADDED', node('one', 8))
  list.say('BOOKMARK', bookmark(10, true))
  await clock.runFor(0)
  turned = true
  server.last().stream().say('ERROR', no(410, 'Expired'))
  await clock.runFor(30_000)
  assert.equal(told, ['added one uid-one@8'])
  assert.is(reflector.freshAt(), 0)
  assert.match(reflector.trouble ?? '', 'version 5')
  await clock.runFor(60_000)
  assert.equal(told, ['added one uid-one@8', 'deleted one uid-one@8', 'added old uid-old@3'])
  assert.ok(logged.includes('the server has gone back in time and insists; it is believed now'))
  reflector.stop()
})

test('a watch that goes back in time is left, and what it said is not believed', async () => {
  const { clock, server, watch, told, reflector } = await synced(10, [node('one', 8)])
  told.length = 0
  watch.say('MODIFIED', node('one', 15))
  watch.say('MODIFIED', node('one', 12))
  await clock.runFor(0)
  assert.equal(told, ['modified one uid-one@15'])
  await clock.runFor(1000)
  assert.ok(isStreamedList(server.last()))
  reflector.stop()
})

test('a repeated event is told once', async () => {
  const { clock, watch, told, reflector } = await synced(10, [node('one', 8)])
  watch.say('MODIFIED', node('one', 12))
  watch.say('MODIFIED', node('one', 12))
  await clock.runFor(0)
  assert.equal(told, ['added one uid-one@8', 'modified one uid-one@12'])
  reflector.stop()
})

test('after stop nothing is told, though a list was under way, or a watch had more to say', async () => {
  const early = world()
  await early.clock.runFor(0)
  const list = early.server.last().stream()
  list.say('ADDED', node('one', 5))
  await early.clock.runFor(0)
  early.reflector.stop()
  list.say('BOOKMARK', bookmark(10, true))
  await early.clock.runFor(60_000)
  assert.equal(early.told, [])
  assert.is(early.server.asked.length, 1)
  assert.is(early.clock.pending(), 0)

  const late = await synced(10, [])
  late.watch.say('ADDED', node('one', 11))
  late.watch.say('ADDED', node('two', 12))
  late.reflector.stop()
  await late.clock.runFor(60_000)
  assert.equal(late.told, [])
  assert.is(late.clock.pending(), 0)
})

test('a handler that stops its reflector hears nothing more', async () => {
  const told: string[] = []
  const here = world({ changed: ({ key }) => { told.push(key); here.reflector.stop() } })
  await here.clock.runFor(0)
  const list = here.server.last().stream()
  for (const name of ['one', 'two', 'three']) list.say('ADDED', node(name, 5))
  list.say('BOOKMARK', bookmark(10, true))
  await here.clock.runFor(60_000)
  assert.equal(told, ['one'])
  assert.not(here.reflector.synced)
})

test('a handler that throws costs only its own key, which is told later as what is true then', async () => {
  const told: string[] = []
  let broken = true
  const { clock, watch, reflector, logged } = await synced(10, [node('ill', 5), node('well', 6)], {
    changed: ({ type, key, object }) => {
      if (key === 'ill' && broken) throw new Error('cannot')
      told.push(`${type} ${key}@${object.metadata.resourceVersion}`)
    },
  })
  assert.equal([...reflector.quarantined], ['ill'])
  watch.say('MODIFIED', node('ill', 11))
  watch.say('MODIFIED', node('well', 12))
  await clock.runFor(5000)
  broken = false
  await clock.runFor(6000)
  assert.equal(told, ['added well@6', 'modified well@12', 'added ill@11'])
  assert.is(reflector.quarantined.size, 0)
  assert.ok(logged.includes('a change could not be taken in; its key is left alone for a while'))
  reflector.stop()
})

test('an object that cannot be read stays as it was, and the others go on', async () => {
  const { clock, watch, told, reflector, server } = await synced(10, [node('one', 5)], {
    project: (object) => {
      if (object.metadata.labels?.['odd']) throw new Error('odd')
      return { metadata: object.metadata }
    },
  })
  const odd = node('one', 11)
  odd.metadata.labels = { odd: 'yes' }
  watch.say('MODIFIED', odd)
  watch.say('ADDED', node('two', 12))
  await clock.runFor(0)
  watch.say('ERROR', no(410, 'Expired'))
  await clock.runFor(1000)
  const list = server.last().stream()
  for (const item of [odd, node('two', 12)]) list.say('ADDED', item)
  list.say('BOOKMARK', bookmark(20, true))
  await clock.runFor(0)
  assert.equal(told, ['added one uid-one@5', 'added two uid-two@12'])
  assert.is(reflector.items.get('one')?.metadata.resourceVersion, '5')
  reflector.stop()
})

test('a reflector that must be fresh within seconds asks for short watches, and each orderly end makes it fresh', async () => {
  const { clock, server, watch, reflector } = await synced(10, [], { freshWithin: 5_000 })
  assert.is(server.last().query.get('timeoutSeconds'), '5')
  await clock.runFor(5_000)
  watch.end()
  await clock.runFor(0)
  assert.is(reflector.freshAt(), 5_000)
  assert.is(server.asked.length, 3)
  reflector.stop()
})

test('a stalled watch, while the server answers all else, is noticed and cured within eight seconds', async () => {
  const { clock, server, told, reflector } = await synced(10, [node('one', 8)], { freshWithin: 5_000 })
  told.length = 0
  await clock.runFor(8_500) // the first watch says nothing at all, not even its end
  assert.is(reflector.freshAt(), 0)
  assert.ok(server.asked[1]?.signal.aborted)
  const next = server.last()
  assert.is(next.query.get('resourceVersion'), '10')
  next.stream().say('MODIFIED', node('one', 11))
  await clock.runFor(0)
  assert.equal(told, ['modified one uid-one@11'])
  assert.is(reflector.freshAt(), 8_500)
  reflector.stop()
})

test('where the whole server stalls, nothing looks fresh', async () => {
  const { clock, reflector } = await synced(10, [node('one', 8)], { freshWithin: 5_000 })
  await clock.runFor(120_000)
  assert.is(reflector.freshAt(), 0)
  reflector.stop()
})

test('an early end of a short watch proves nothing', async () => {
  const { clock, watch, reflector } = await synced(10, [], { freshWithin: 5_000 })
  await clock.runFor(2_000)
  watch.end()
  await clock.runFor(0)
  assert.is(reflector.freshAt(), 0)
  reflector.stop()
})

test('words that no server should say cost a new list, and not the reflector', async () => {
  for (const nonsense of [{ type: 'ADDED', object: {} }, { type: 'ADDED' }, { type: 'BOOKMARK', object: 'x' }]) {
    const { clock, server, watch, told, reflector } = await synced(10, [])
    watch.say(nonsense.type, nonsense.object as object) // nonsense on purpose
    await clock.runFor(1_000)
    const list = server.last().stream()
    list.say('ADDED', node('one', 12))
    list.say('BOOKMARK', bookmark(20, true))
    await clock.runFor(0)
    assert.equal(told, ['added one uid-one@12'])
    reflector.stop()
  }
  const { clock, server, reflector } = world({}, (asked) => asked.answer(isStreamedList(asked) ? 422 : 200, {}))
  await clock.runFor(10_000)
  assert.ok(server.asked.length > 2 && server.asked.length < 20)
  assert.not(reflector.synced)
  reflector.stop()
})

test('selectors go with every request', async () => {
  const { server, reflector } = await synced(10, [], { query: { labelSelector: 'a=b' } })
  assert.ok(server.asked.every(({ query }) => query.get('labelSelector') === 'a=b'))
  reflector.stop()
})

test('versions are compared as numbers of any length, or not at all', () => {
  assert.ok((compareVersions('9', '10') ?? 0) < 0)
  assert.ok((compareVersions('90071992547409930', '90071992547409929') ?? 0) > 0)
  assert.is(compareVersions('7', '7'), 0)
  assert.is(compareVersions('abc', '7'), undefined)
  assert.is(compareVersions(undefined, '7'), undefined)
})

test.run()
