import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createApi, mayHaveHappened, type ApiError, type WatchEvent, type WatchStatus } from '../../coordinator/api.ts'
import type { ApiRequest, ApiResponse, Transport } from '../../coordinator/transport.ts'
import { virtualClock } from '../../sim/clock.ts'

const test = suite('api')

async function* textOf(...parts: string[]): AsyncGenerator<string> {
  yield* parts
}

/** Says some, then nothing more for ever, and does not listen to anybody. */
async function* halfDead(...parts: string[]): AsyncGenerator<string> {
  yield* parts
  await new Promise(() => undefined)
}

function answering(status: number, body: unknown, headers: Record<string, string> = {}): Transport {
  return async () => ({ status, headers, body: textOf(typeof body === 'string' ? body : JSON.stringify(body)) })
}

function words(code: number, reason: string, more: object = {}) {
  return { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message: `it is ${reason}`, ...more }
}

async function errorOf(transport: Transport): Promise<ApiError> {
  const clock = virtualClock()
  const asked = createApi({ transport, clock }).get('/api/v1/nodes/n1')
  await clock.runFor(60_000)
  const answer = await asked
  if (answer.ok) throw new Error('it was answered')
  return answer.error
}

async function collect(events: AsyncIterable<WatchEvent>, into: WatchEvent[] = []): Promise<WatchEvent[]> {
  for await (const event of events) into.push(event)
  return into
}

for (const [code, reason, kind] of [
  [400, 'BadRequest', 'refused'], [401, 'Unauthorized', 'unauthorized'], [403, 'Forbidden', 'forbidden'], [404, 'NotFound', 'notFound'],
  [409, 'Conflict', 'conflict'], [409, 'AlreadyExists', 'conflict'], [410, 'Expired', 'gone'], [415, 'UnsupportedMediaType', 'refused'],
  [422, 'Invalid', 'invalid'], [429, 'TooManyRequests', 'throttled'], [500, 'InternalError', 'server'], [503, 'ServiceUnavailable', 'server'],
] as const) {
  test(`${code} ${reason} is ${kind}, and keeps its reason`, async () => {
    const error = await errorOf(answering(code, words(code, reason)))
    assert.is(error.kind, kind)
    assert.is(error.reason, reason)
    assert.is(error.status, code)
    assert.match(error.message, `it is ${reason}`)
  })
}

test('what was invalid is said field by field', async () => {
  const causes = [{ reason: 'FieldValueInvalid', field: 'spec.mode', message: 'unknown' }, { reason: 'FieldValueRequired', field: 'spec.x', message: 'Required value' }]
  const error = await errorOf(answering(422, words(422, 'Invalid', { details: { causes } })))
  assert.equal(error.causes, causes)
})

test('a throttled answer says when to come again, by header or by its details', async () => {
  assert.is((await errorOf(answering(429, words(429, 'TooManyRequests'), { 'retry-after': '7' }))).retryAfter, 7000)
  assert.is((await errorOf(answering(429, words(429, 'TooManyRequests', { details: { retryAfterSeconds: 3 } })))).retryAfter, 3000)
  assert.is((await errorOf(answering(503, 'busy', { 'retry-after': 'Wed, 21 Oct 2026 07:28:00 GMT' }))).retryAfter, undefined)
})

test('a proxy that answers in HTML is read as far as it goes', async () => {
  const error = await errorOf(answering(502, '<html>bad gateway</html>'))
  assert.is(error.kind, 'server')
  assert.match(error.message, 'bad gateway')
})

test('a write is sent as what it is', async () => {
  const seen: ApiRequest[] = []
  const transport: Transport = async (request) => {
    seen.push(request)
    return { status: 200, headers: {}, body: textOf('{}') }
  }
  const api = createApi({ transport, clock: virtualClock(), userAgent: 'holdfast-test' })
  await api.create('/x', { a: 1 })
  await api.patch('/x/1', 'json', [])
  await api.patch('/x/1', 'merge', {})
  await api.patch('/x/1', 'strategic', {})
  await api.remove('/x/1', { preconditions: { uid: 'u', resourceVersion: '7' } })
  await api.remove('/x/1')
  assert.equal(seen.map(({ method, headers, body }) => [method, headers['content-type'], body]), [
    ['POST', 'application/json', '{"a":1}'],
    ['PATCH', 'application/json-patch+json', '[]'],
    ['PATCH', 'application/merge-patch+json', '{}'],
    ['PATCH', 'application/strategic-merge-patch+json', '{}'],
    ['DELETE', 'application/json', '{"preconditions":{"uid":"u","resourceVersion":"7"}}'],
    ['DELETE', undefined, undefined],
  ])
  assert.ok(seen.every(({ headers }) => headers['user-agent'] === 'holdfast-test'))
})

test('a connection that never was, or broke in the body, leaves open whether it happened', async () => {
  const refused = await errorOf(async () => { throw new Error('ECONNREFUSED') })
  const broken = await errorOf(async () => ({ status: 201, headers: {}, body: (async function* () { yield '{"kind"'; throw new Error('ECONNRESET') })() }))
  const cut = await errorOf(answering(201, '{"kind":"Pod"'))
  for (const error of [refused, broken, cut]) {
    assert.is(error.kind, 'unreachable')
    assert.ok(mayHaveHappened(error))
  }
  assert.not(mayHaveHappened(await errorOf(answering(409, words(409, 'Conflict')))))
  assert.ok(mayHaveHappened(await errorOf(answering(504, words(504, 'Timeout')))))
})

test('a path that is half dead is late at the deadline, in the status line or in the body', async () => {
  for (const transport of [() => new Promise<never>(() => undefined), async () => ({ status: 200, headers: {}, body: halfDead('{"a"') })] as Transport[]) {
    const clock = virtualClock()
    let error: ApiError | undefined
    void createApi({ transport, clock }).get('/x', { deadline: 3000 }).then((answer) => { error = answer.ok ? undefined : answer.error })
    await clock.runFor(2999)
    assert.is(error, undefined)
    await clock.runFor(1)
    assert.is(error?.kind, 'late')
    assert.is(clock.pending(), 0)
  }
})

test('an answer longer than its limit is not held in memory', async () => {
  let pieces = 0
  const endless = async function* () { for (;;) { pieces++; yield 'x'.repeat(1024 * 1024) } }
  const error = await errorOf(async () => ({ status: 200, headers: {}, body: endless() }))
  assert.is(error.kind, 'unreachable')
  assert.ok(pieces < 70)
})

test('the caller may give up, before it is sent or while it waits', async () => {
  let sent = 0
  const clock = virtualClock()
  const api = createApi({ transport: () => (sent++, new Promise(() => undefined)), clock })
  const before = await api.get('/x', { signal: AbortSignal.abort() })
  assert.is(before.ok ? '' : before.error.kind, 'unreachable')
  assert.is(sent, 0)
  const stop = new AbortController()
  const asked = api.get('/x', { signal: stop.signal })
  await clock.runFor(10)
  stop.abort()
  const after = await asked
  assert.is(after.ok ? '' : after.error.kind, 'unreachable')
  assert.is(clock.pending(), 0)
})

test('more calls than the rate allows wait their turn; the urgent one does not', async () => {
  const clock = virtualClock()
  const at: number[] = []
  const api = createApi({ transport: async () => (at.push(clock.now()), { status: 200, headers: {}, body: textOf('{}') }), clock, rate: { perSecond: 10, burst: 2 } })
  const all = [1, 2, 3, 4].map(() => api.get('/x'))
  const urgent = api.get('/lease', { urgent: true })
  await clock.runFor(1000)
  await Promise.all([...all, urgent])
  assert.equal(at, [0, 0, 0, 100, 200])
})

test('a call whose turn comes after its deadline is refused at once, and nothing was sent', async () => {
  const clock = virtualClock()
  const api = createApi({ transport: () => new Promise(() => undefined), clock, rate: { perSecond: 1, burst: 1 } })
  void api.get('/x')
  const answer = await api.get('/x', { deadline: 500 })
  assert.is(answer.ok ? '' : answer.error.kind, 'throttled')
  assert.is(answer.ok ? 0 : answer.error.status, undefined)
})

test('any word of the API server itself counts as an answer; a gateway in front of a dead one does not', async () => {
  const heard: number[] = []
  const clock = virtualClock()
  for (const code of [200, 404, 503]) {
    await createApi({ transport: answering(code, '{}'), clock, onAnswer: () => heard.push(code) }).get('/x')
  }
  assert.equal(heard, [200, 404])
})

test('calls are counted by verb and status, lost ones as 0', async () => {
  const seen: unknown[] = []
  const clock = virtualClock()
  const observe = (verb: string, code: number, span: number) => seen.push([verb, code, span])
  await createApi({ transport: answering(404, '{}'), clock, observe }).get('/x')
  const lost = createApi({ transport: () => new Promise(() => undefined), clock, observe }).create('/x', {})
  await clock.runFor(10_000)
  await lost
  assert.equal(seen, [['get', 404, 0], ['create', 0, 10_000]])
})

function line(type: string, name: string): string {
  return `${JSON.stringify({ type, object: { metadata: { name } } })}\n`
}

function watching(response: ApiResponse | Promise<ApiResponse>, idle = 30_000) {
  const clock = virtualClock()
  const stop = new AbortController()
  const events: WatchEvent[] = []
  let done = false
  void collect(createApi({ transport: async () => await response, clock }).watch('/api/v1/nodes?watch=1', idle, stop.signal), events).then(() => { done = true })
  const last = () => events.at(-1)?.object as WatchStatus | undefined // an ERROR's object, where the test expects one
  return { clock, stop, events, last, done: () => done }
}

test('events come out whole, however the stream was cut', async () => {
  const text = line('ADDED', 'one') + line('MODIFIED', 'zwölf') + line('BOOKMARK', '')
  const { clock, events, done } = watching({ status: 200, headers: {}, body: textOf(...text.match(/[^]{1,7}/g) ?? []) })
  await clock.runFor(0)
  assert.equal(events.map(({ type, object }) => `${type} ${object.metadata.name}`), ['ADDED one', 'MODIFIED zwölf', 'BOOKMARK '])
  assert.ok(done())
  assert.is(clock.pending(), 0)
})

test('an ERROR event is handed on as it is, and is the last', async () => {
  const gone = { type: 'ERROR', object: words(410, 'Expired') }
  const { clock, events } = watching({ status: 200, headers: {}, body: textOf(line('ADDED', 'one'), `${JSON.stringify(gone)}\n`, line('ADDED', 'two')) })
  await clock.runFor(0)
  assert.is(events.length, 2)
  assert.equal(events[1], gone)
})

test('a refused watch is an ERROR event with the status of the refusal', async () => {
  const { clock, last, done } = watching({ status: 429, headers: { 'retry-after': '2' }, body: textOf(JSON.stringify(words(429, 'TooManyRequests'))) })
  await clock.runFor(0)
  assert.is(last()?.code, 429)
  assert.is(last()?.retryAfter, 2000)
  assert.ok(done())
})

test('a watch on which nothing comes ends itself, also before its status line', async () => {
  const silent = watching({ status: 200, headers: {}, body: halfDead(line('ADDED', 'one')) }, 30_000)
  await silent.clock.runFor(29_999)
  assert.is(silent.events.length, 1)
  await silent.clock.runFor(1)
  assert.is(silent.last()?.reason, 'Idle')
  assert.ok(silent.done())

  const unanswered = watching(new Promise<ApiResponse>(() => undefined), 30_000)
  await unanswered.clock.runFor(10_000)
  assert.is(unanswered.last()?.reason, 'Idle')
  assert.is(unanswered.clock.pending(), 0)
})

test('a watch ends at once and silently when told to, even on a half-dead path', async () => {
  const { clock, stop, events, done } = watching({ status: 200, headers: {}, body: halfDead(line('ADDED', 'one')) })
  await clock.runFor(5)
  stop.abort()
  await clock.runFor(0)
  assert.ok(done())
  assert.is(events.length, 1)
  assert.is(clock.pending(), 0)
})

test('a stream that breaks, sends no JSON, or a line without end, says so', async () => {
  const broken = watching({ status: 200, headers: {}, body: (async function* () { yield line('ADDED', 'one'); throw new Error('ECONNRESET') })() })
  await broken.clock.runFor(0)
  assert.equal([broken.events.length, broken.last()?.reason, broken.last()?.code], [2, 'Unreachable', 0])
  const noise = watching({ status: 200, headers: {}, body: textOf('<html>\n') })
  await noise.clock.runFor(0)
  assert.is(noise.last()?.reason, 'Malformed')
  const endless = watching({ status: 200, headers: {}, body: (async function* () { for (;;) yield 'x'.repeat(1024 * 1024) })() })
  await endless.clock.runFor(0)
  assert.is(endless.last()?.reason, 'TooLong')
})

test.run()
