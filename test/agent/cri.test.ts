// The CRI client against Node's own http2, which shares nothing with it.
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type ServerHttp2Stream } from 'node:http2'
import { createServer as createPlainServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import fc from 'fast-check'
import { askRuntime, listContainers, stopContainer } from '../../agent/cri.ts'
import type { RuntimeAnswer } from '../../agent/host.ts'
import { bytesField, joined, textField, wholeField } from '../../agent/protobuf.ts'
import type { ContainerSeen } from '../../core/mounts.ts'
import { connectUnix } from '../../agent/unix-stream.ts'
import { machineClock } from '../../edge/clock.ts'
import { virtualClock } from '../../sim/clock.ts'

const test = suite('cri')

const patient = 20_000

function label(key: string, value: string): Uint8Array {
  return bytesField(8, joined([textField(1, key), textField(2, value)]))
}

/** Container {1 id, 2 sandbox, 3 metadata, 4 image, 6 state, 7 created, 8 labels}. */
function container(id: string, state: number, pod: string): Uint8Array {
  return bytesField(1, joined([
    textField(1, id), textField(2, 'sandbox'), bytesField(3, textField(1, 'main')), bytesField(4, textField(1, 'image')), wholeField(6, state), wholeField(7, 1_700_000_000_000_000),
    label('io.kubernetes.pod.uid', pod), label('io.kubernetes.pod.name', 'db-0'), label('io.kubernetes.pod.namespace', 'work'),
  ]))
}

/** PodSandbox {1 id, 2 metadata {1 name, 2 uid, 3 namespace}, 3 state}. */
function sandbox(id: string, state: number, pod: string): Uint8Array {
  return bytesField(1, joined([textField(1, id), bytesField(2, joined([textField(1, 'db-0'), textField(2, pod), textField(3, 'work'), wholeField(4, 1)])), wholeField(3, state), wholeField(4, 1_600_000_000_000_000)]))
}

/** As grpc-go does it: a message with its length before it, then the status in trailers; a failure is trailers alone. */
function succeed(stream: ServerHttp2Stream, message: Uint8Array, pieces = 1): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', 'grpc-message': '' }))
  const whole = joined([Uint8Array.of(0, message.length >>> 24, message.length >>> 16, message.length >>> 8, message.length), message])
  const each = Math.ceil(whole.length / pieces)
  for (let at = 0; at < whole.length; at += each) stream.write(whole.subarray(at, at + each))
  stream.end()
}

function fail(stream: ServerHttp2Stream): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '12', 'grpc-message': 'unknown service runtime.v1.RuntimeService' }, { endStream: true })
}

type Answers = Readonly<Record<'ListPodSandbox' | 'ListContainers', (stream: ServerHttp2Stream) => void>>

async function asked(answers: Answers, span = patient): Promise<{ answer: RuntimeAnswer; headers: Record<string, unknown>[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-cri-'))
  const path = join(folder, 'cri.sock')
  const headers: Record<string, unknown>[] = []
  const server = createServer()
  const open = new Set<{ destroy(): void }>()
  server.on('session', (session) => open.add(session))
  server.on('stream', (stream: ServerHttp2Stream, given: Record<string, unknown>) => {
    stream.on('error', () => undefined) // the client has its answer, or not, and goes
    headers.push(given)
    const method = String(given[':path']).split('/').at(-1)
    if (method === 'ListPodSandbox' || method === 'ListContainers') answers[method](stream)
  })
  server.listen(path)
  await once(server, 'listening')
  const answer = await listContainers((within) => connectUnix(path, within), machineClock, span)
  for (const session of open) session.destroy()
  server.close()
  rmSync(folder, { recursive: true })
  return { answer, headers }
}

const nothing = (stream: ServerHttp2Stream) => succeed(stream, new Uint8Array())

test('what is not over is told with its pod, sandbox or container', async () => {
  const { answer, headers } = await asked({
    ListPodSandbox: (stream) => succeed(stream, joined([sandbox('s1', 0, 'u1'), sandbox('s2', 1, 'u2')])),
    ListContainers: (stream) => succeed(stream, joined([container('c0', 0, 'u0'), container('c1', 1, 'u1'), container('c2', 2, 'u2'), container('c3', 3, 'u3')])),
  })
  assert.equal(answer, [
    ...['0', '1', '3'].map((number) => ({ id: `c${number}`, name: 'work/db-0 main', pod: `u${number}`, since: 1_700_000_000 })),
    { id: 's1', name: 'work/db-0', pod: 'u1', sandbox: true, since: 1_600_000_000 },
  ])
  assert.equal(headers.map((of) => [of[':method'], of[':path'], of['content-type'], of['te']]).toSorted(), [
    ['POST', '/runtime.v1.RuntimeService/ListContainers', 'application/grpc', 'trailers'], ['POST', '/runtime.v1.RuntimeService/ListPodSandbox', 'application/grpc', 'trailers'],
  ])
})

function annotated(id: string, pod: string, value: string): Uint8Array {
  const annotation = bytesField(6, joined([textField(1, 'holdfast.dev/tolerate-gate'), textField(2, value)]))
  return bytesField(1, joined([textField(1, id), bytesField(2, joined([textField(1, 'db-0'), textField(2, pod)])), wholeField(3, 0), annotation]))
}

test('containers of a pod that is annotated to pass the gate are told so, and of no other', async () => {
  const { answer } = await asked({
    ListPodSandbox: (stream) => succeed(stream, joined([annotated('s1', 'u1', 'true'), annotated('s2', 'u2', 'yes'), annotated('s3', '', 'true')])),
    ListContainers: (stream) => succeed(stream, joined(['u1', 'u2', ''].map((pod, index) => container(`c${index}`, 1, pod)))),
  })
  assert.equal('failed' in answer ? answer : answer.map(({ id, tolerates = false }) => [id, tolerates]), [['c0', true], ['c1', false], ['c2', false], ['s1', true], ['s2', false], ['s3', true]])
})

test('a runtime that answers the least of questions is well, and one that refuses it is not', async () => {
  for (const [answer, wanted] of [[nothing, undefined], [fail, 'the runtime refused the call']] as const) {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-cri-'))
    const server = createServer()
    const open = new Set<{ destroy(): void }>()
    server.on('session', (session) => open.add(session))
    server.on('stream', (stream: ServerHttp2Stream, given: Record<string, unknown>) => {
      stream.on('error', () => undefined) // the client has its answer, or not, and goes
      if (String(given[':path']) === '/runtime.v1.RuntimeService/Version') answer(stream)
    })
    server.listen(join(folder, 'cri.sock'))
    await once(server, 'listening')
    assert.is(await askRuntime((within) => connectUnix(join(folder, 'cri.sock'), within), machineClock, patient), wanted)
    for (const session of open) session.destroy()
    server.close()
    rmSync(folder, { recursive: true })
  }
})

test('a runtime that has nothing says so, which is an answer', async () => {
  assert.equal((await asked({ ListPodSandbox: nothing, ListContainers: nothing })).answer, [])
})

test('a long list in many pieces is read whole', async () => {
  const all = joined(Array.from({ length: 5_000 }, (_, index) => container(`c${index}`, 1, `u${index}`)))
  assert.ok(all.length > 600_000, 'more than any window that a peer gives unasked')
  const { answer } = await asked({ ListPodSandbox: nothing, ListContainers: (stream) => succeed(stream, all, 97) })
  assert.is('failed' in answer ? answer.failed : answer.length, 5_000)
})

const failures: [string, (stream: ServerHttp2Stream) => void, RegExp][] = [
  ['a runtime that does not know the call', fail, /refused the call/],
  ['a call that is reset', (stream) => stream.close(2), /ended the call/],
  ['a message that ends early', (stream) => {
    stream.respond({ ':status': 200 })
    stream.end(Uint8Array.of(0, 0, 0, 0, 9, 1, 2))
  }, /not whole/],
  ['a message that is compressed', (stream) => {
    stream.respond({ ':status': 200 })
    stream.end(Uint8Array.of(1, 0, 0, 0, 1, 0))
  }, /not whole/],
  ['a message that is none', (stream) => succeed(stream, Uint8Array.of(0xff)), /cannot be read/],
  ['a container without a name', (stream) => succeed(stream, bytesField(1, textField(1, 'c1'))), /cannot be read/],
  ['one that ends the connection', (stream) => stream.session?.destroy(), /goes away|the connection ended/],
  ['one that goes away', (stream) => stream.session?.goaway(), /goes away/],
]

test('whatever is no whole answer of both lists is no answer', async () => {
  for (const [what, answer, wanted] of failures) {
    for (const answers of [{ ListPodSandbox: nothing, ListContainers: answer }, { ListPodSandbox: answer, ListContainers: nothing }]) {
      // A container's shape is no sandbox's either.
      const told = (await asked(answers)).answer
      assert.match('failed' in told ? told.failed : JSON.stringify(told), wanted, what)
    }
  }
})

test('a runtime that hangs is left at the deadline, and one that is not there at once', async () => {
  const told = (await asked({ ListPodSandbox: nothing, ListContainers: () => undefined }, 200)).answer
  assert.match('failed' in told ? told.failed : '', /no answer within/)
  const none = await listContainers((within) => connectUnix('/nowhere/cri.sock', within), machineClock, patient)
  assert.match('failed' in none ? none.failed : '', /ENOENT/)
})

test('what speaks another language on that socket is no runtime', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-cri-'))
  const path = join(folder, 'cri.sock')
  for (const speech of ['HTTP/1.1 400 Bad Request\r\n\r\n', 'SSH-2.0-x\r\n', '']) {
    const server = createPlainServer((socket) => {
      socket.on('error', () => undefined) // it hangs up on us
      socket.resume()
      socket.end(speech)
    })
    server.listen(path)
    await once(server, 'listening')
    const told = await listContainers((within) => connectUnix(path, within), machineClock, patient)
    assert.ok('failed' in told, speech)
    server.close()
    await once(server, 'close')
  }
  rmSync(folder, { recursive: true })
})

test('whatever bytes a runtime sends, the answer is a value, and never a list that was not sent', async () => {
  await fc.assert(fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 120 }), { maxLength: 5 }), async (chunks) => {
    const clock = virtualClock()
    const answer = listContainers(async () => {
      let ears: { bytes(bytes: Uint8Array): void; closed(reason: string): void } | undefined
      return { send() {}, close() {}, listen(given) {
        ears = given
        clock.after(1, () => { for (const chunk of chunks) ears?.bytes(chunk) })
      } }
    }, clock, 1_000)
    await clock.runFor(2_000)
    const told = await answer
    assert.ok('failed' in told || told.length === 0)
  }), { numRuns: 200 })
})

/** What a runtime was asked to stop, and what it makes of it. */
async function stopping(of: ContainerSeen, how: 'stops' | 'refuses' | 'hangs'): Promise<{ fault: string | undefined; requests: string[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-cri-'))
  const path = join(folder, 'cri.sock')
  const requests: string[] = []
  const open = new Set<{ destroy(): void }>()
  const server = createServer()
  server.on('session', (session) => open.add(session))
  server.on('stream', (stream: ServerHttp2Stream, given: Record<string, unknown>) => {
    stream.on('error', () => undefined) // the client has its answer, or not, and goes
    stream.on('data', (request: Buffer) => {
      requests.push(`${String(given[':path'])} ${request.subarray(5).toString('latin1')}`)
      if (how === 'stops') succeed(stream, new Uint8Array())
      if (how === 'refuses') fail(stream)
    })
  })
  server.listen(path)
  await once(server, 'listening')
  const fault = await stopContainer((within) => connectUnix(path, within), machineClock, of, how === 'hangs' ? 200 : patient)
  for (const session of open) session.destroy()
  server.close()
  rmSync(folder, { recursive: true })
  return { fault, requests }
}

test('a container is stopped without a grace, a sandbox as a whole', async () => {
  assert.equal(await stopping({ id: 'c1', name: 'x', pod: 'u' }, 'stops'), { fault: undefined, requests: ['/runtime.v1.RuntimeService/StopContainer \n\u0002c1'] })
  assert.equal(await stopping({ id: 's1', name: 'x', pod: 'u', sandbox: true }, 'stops'), { fault: undefined, requests: ['/runtime.v1.RuntimeService/StopPodSandbox \n\u0002s1'] })
})

test('a runtime that refuses, hangs or is not there has stopped nothing', async () => {
  assert.match((await stopping({ id: 'c1', name: 'x', pod: 'u' }, 'refuses')).fault ?? '', /StopContainer: the runtime refused/)
  assert.match((await stopping({ id: 'c1', name: 'x', pod: 'u' }, 'hangs')).fault ?? '', /no answer within/)
  assert.match(await stopContainer((within) => connectUnix('/nowhere/cri.sock', within), machineClock, { id: 'c1', name: 'x', pod: 'u' }, patient) ?? '', /ENOENT/)
})

test.run()
