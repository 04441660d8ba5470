import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { seededChance } from '../../sim/chance.ts'
import { virtualClock } from '../../sim/clock.ts'
import { createNetwork } from '../../sim/network.ts'
import { startProcess } from '../../sim/process.ts'
import { simulatedWhispers, type WhisperPorts } from '../../sim/whispers.ts'

const test = suite('network')

function world() {
  const clock = virtualClock()
  const network = createNetwork(clock, seededChance(1), { delay: [1, 5] })
  const [a, b] = [network.addHost('a', '10.0.0.1'), network.addHost('b', '10.0.0.2')]
  const probe = async (port = 10_250, span = 1_000) => {
    let word: string | undefined
    void network.probe(a, '10.0.0.2', port, span).then((answer) => { word = answer })
    await clock.runFor(span + 1)
    return word
  }
  return { clock, network, a, b, probe }
}

test('a probe tells an answer, a reset and silence apart', async () => {
  const { b, probe } = world()
  assert.is(await probe(), 'refused')
  b.ports.set(10_250, { serves: 'answers' })
  assert.is(await probe(), 'answered')
  b.ports.set(10_250, { serves: 'drops' })
  assert.is(await probe(), 'silent')
  b.ports.set(10_250, { serves: 'answers' })
  for (const kernel of ['frozen', 'down'] as const) {
    b.kernel = kernel
    assert.is(await probe(), 'silent')
  }
})

test('a machine whose userspace is stuck accepts and says nothing: the port is open at the end of the span', async () => {
  const { b, network, a, clock, probe } = world()
  b.ports.set(10_250, { serves: 'answers' })
  b.kernel = 'stuck'
  let word: string | undefined
  void network.probe(a, '10.0.0.2', 10_250, 1_000).then((answer) => { word = answer })
  await clock.runFor(990)
  assert.is(word, undefined)
  await clock.runFor(11)
  assert.is(word, 'open')
  b.ports.delete(10_250)
  assert.is(await probe(), 'refused', 'nobody listens there')
})

test('a cut in either direction silences a probe, and a middlebox may reset it', async () => {
  const { b, network, probe } = world()
  b.ports.set(10_250, { serves: 'answers' })
  for (const order of [['a', 'b'], ['b', 'a']]) {
    const heal = network.rule((from, to) => (from === order[0] && to === order[1] ? 'silent' : 'open'))
    assert.is(await probe(), 'silent')
    heal()
  }
  network.rule((_from, to) => (to === 'b' ? 'refused' : 'open'))
  assert.is(await probe(), 'refused')
})

test('a rule for one plane leaves the others alone, and the worst word wins', () => {
  const { a, b, network } = world()
  network.rule((_from, _to, plane) => (plane === 'link' ? 'refused' : 'open'))
  network.rule((_from, _to, plane) => (plane === 'link' ? 'silent' : 'open'))
  assert.is(network.reach(a, b, 'link'), 'silent')
  assert.is(network.reach(a, b, 'api'), 'open')
  assert.is(network.reach(a, a, 'link'), 'open')
})

test('a whisper is answered, or lost without a word', async () => {
  const { clock, network, a, b } = world()
  const ports: WhisperPorts = new Map()
  const [asker, answerer] = [startProcess(clock, 'asker'), startProcess(clock, 'answerer')]
  const answering = await simulatedWhispers(network, ports, b, answerer).answer(0, (question, from) => {
    assert.is(from, '10.0.0.1')
    return Uint8Array.from(question, (byte) => byte + 1)
  })
  const ask = async () => {
    let answer: Uint8Array | undefined | 'waiting' = 'waiting'
    void simulatedWhispers(network, ports, a, asker).ask(`10.0.0.2:${answering.port}`, Uint8Array.of(1), 500, () => true).then((word) => { answer = word })
    await clock.runFor(600)
    return answer as Uint8Array | undefined | 'waiting'
  }
  assert.equal(await ask(), Uint8Array.of(2))
  network.weather.loss = 1
  assert.is(await ask(), undefined)
  network.weather.loss = 0
  answerer.kill()
  assert.is(await ask(), undefined)
})

test.run()
