import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { ApiRequest, ApiResponse } from '../../coordinator/transport.ts'
import { simulatedTransport } from '../../sim/api-path.ts'
import { seededChance } from '../../sim/chance.ts'
import { virtualClock } from '../../sim/clock.ts'
import { createNetwork } from '../../sim/network.ts'
import { startProcess } from '../../sim/process.ts'

const test = suite('api path')

const write: ApiRequest = { method: 'POST', path: '/api/v1/nodes', headers: {}, body: '{}' }
const watch: ApiRequest = { method: 'GET', path: '/api/v1/nodes?watch=1', headers: {} }

function world() {
  const clock = virtualClock()
  const network = createNetwork(clock, seededChance(1))
  const [from, server] = [network.addHost('client', '10.0.0.1'), network.addHost('api', '10.3.0.1')]
  const process = startProcess(clock, 'client')
  const served: string[] = []
  let aborted = 0
  const transport = simulatedTransport(network, from, server, process, async (request, signal) => {
    served.push(request.path)
    signal.addEventListener('abort', () => { aborted++ })
    const pieces = async function* (): AsyncGenerator<string> {
      if (!request.path.includes('watch')) return void (yield '{"ok":true}')
      for (let count = 0; !signal.aborted; count++) {
        yield `event ${count}\n`
        await clock.wait(1_000, signal)
      }
    }
    return { status: 200, headers: {}, body: pieces() }
  })
  const ask = (request: ApiRequest, signal = new AbortController().signal) => {
    const result: { response?: ApiResponse; error?: string; text: string } = { text: '' }
    void (async () => {
      try {
        result.response = await transport(request, signal)
        for await (const text of result.response.body) result.text += text
      } catch (error) {
        result.error = (error as Error).message // the transport throws errors only
      }
    })()
    return result
  }
  return { clock, network, from, process, served, ask, aborted: () => aborted }
}

test('a request passes and its answer comes back', async () => {
  const { clock, ask } = world()
  const result = ask(write)
  await clock.runFor(50)
  assert.equal([result.response?.status, result.text, result.error], [200, '{"ok":true}', undefined])
})

test('on a way that is cut nothing happens, and the caller hears nothing until it gives up', async () => {
  const { clock, network, ask, served } = world()
  network.rule(() => 'silent')
  const stop = new AbortController()
  const result = ask(write, stop.signal)
  await clock.runFor(10_000)
  assert.equal([served.length, result.error], [0, undefined])
  stop.abort()
  await clock.runFor(10)
  assert.is(result.error, 'aborted')
})

test('a write whose answer is lost has happened', async () => {
  const { clock, network, ask, served } = world()
  network.rule((sender) => (sender === 'api' ? 'silent' : 'open'))
  const stop = new AbortController()
  const result = ask(write, stop.signal)
  await clock.runFor(5_000)
  stop.abort()
  await clock.runFor(10)
  assert.equal([served.length, result.error, result.response], [1, 'aborted', undefined])
})

test('a write that was given up may still land once the way is open', async () => {
  const { clock, network, ask, served } = world()
  const heal = network.rule(() => 'silent')
  const stop = new AbortController()
  ask(write, stop.signal)
  await clock.runFor(3_000)
  stop.abort()
  await clock.runFor(3_000)
  heal()
  await clock.runFor(10_000)
  assert.is(served.length, 1)
})

test('a refused way is an error at once', async () => {
  const { clock, network, ask } = world()
  network.rule((sender) => (sender === 'client' ? 'refused' : 'open'))
  const result = ask(write)
  await clock.runFor(50)
  assert.is(result.error, 'connection refused')
})

test('a watch can stall while writes still pass, and goes on afterwards', async () => {
  const { clock, network, ask } = world()
  const result = ask(watch)
  await clock.runFor(2_500)
  const heal = network.rule((_from, _to, plane) => (plane === 'watch' ? 'silent' : 'open'))
  const before = result.text
  const written = ask(write)
  await clock.runFor(5_000)
  assert.is(result.text, before)
  assert.is(written.text, '{"ok":true}')
  heal()
  await clock.runFor(10_000)
  assert.ok(result.text.length > before.length)
  assert.match(result.text, /^event 0\nevent 1\nevent 2\n/)
})

test('a server learns that a watcher left: soon if told, later if its machine died', async () => {
  const told = world()
  const stop = new AbortController()
  told.ask(watch, stop.signal)
  await told.clock.runFor(1_000)
  stop.abort()
  await told.clock.runFor(100)
  assert.is(told.aborted(), 1)

  const lost = world()
  lost.ask(watch)
  await lost.clock.runFor(1_000)
  lost.from.kernel = 'down'
  lost.process.kill()
  await lost.clock.runFor(1_000)
  assert.is(lost.aborted(), 0)
  await lost.clock.runFor(60_000)
  assert.is(lost.aborted(), 1)
})

test('a paused process gets its answer when it goes on, a killed one never', async () => {
  const { clock, process, ask } = world()
  const result = ask(write)
  process.pause('test', 'running')
  await clock.runFor(1_000)
  assert.is(result.response, undefined)
  process.resume('test')
  await clock.runFor(100)
  assert.is(result.text, '{"ok":true}')
  const never = ask(write)
  process.kill()
  await clock.runFor(1_000)
  assert.equal([never.response, never.error], [undefined, undefined])
})

test.run()
