import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Link } from '../../edge/link.ts'
import { seededChance } from '../../sim/chance.ts'
import { virtualClock } from '../../sim/clock.ts'
import { simulatedDialer, simulatedListener } from '../../sim/links.ts'
import { createNetwork } from '../../sim/network.ts'
import { startProcess } from '../../sim/process.ts'

const test = suite('links')

const bytes = (text: string) => new TextEncoder().encode(text)

async function world() {
  const clock = virtualClock()
  const network = createNetwork(clock, seededChance(1), { delay: [1, 5] })
  const [a, b] = [network.addHost('a', '10.0.0.1'), network.addHost('b', '10.0.0.2')]
  const [dialing, listening] = [startProcess(clock, 'dialing'), startProcess(clock, 'listening')]
  const said: string[] = []
  const hear = (who: string, link: Link) => link.listen({
    frame: (frame) => said.push(`${who} hears ${new TextDecoder().decode(frame)}`),
    closed: (reason) => said.push(`${who} lost it: ${reason}`),
  })
  const accepted: Link[] = []
  const listener = simulatedListener(b, listening, (link) => {
    accepted.push(link)
    hear('b', link)
  })
  const dialer = simulatedDialer(network, a, dialing)
  let link: Link | undefined
  let refused: string | undefined
  const dial = async (span = 3_000) => {
    void dialer.dial(listener.address, span).then((made) => {
      link = made
      hear('a', made)
    }, (error: Error) => { refused = error.message })
    await clock.runFor(span + 100)
  }
  return { clock, network, a, b, dialing, listening, said, listener, dial, link: () => link as Link, far: () => accepted[0] as Link, refused: () => refused }
}

test('frames arrive whole and in order on both sides', async () => {
  const { clock, dial, link, far, said } = await world()
  await dial()
  for (let count = 0; count < 5; count++) link().send(bytes(`beat ${count}`))
  far().send(bytes('permit'))
  await clock.runFor(50)
  assert.equal(said.filter((line) => line.startsWith('b')), [0, 1, 2, 3, 4].map((count) => `b hears beat ${count}`))
  assert.ok(said.includes('a hears permit'))
})

test('a close is told to both ends, and what was sent before it still arrives', async () => {
  const { clock, dial, link, said } = await world()
  await dial()
  link().send(bytes('goodbye'))
  link().close('enough')
  link().close('twice')
  link().send(bytes('too late'))
  await clock.runFor(50)
  assert.equal(said.toSorted(), ['a lost it: enough', 'b hears goodbye', 'b lost it: closed by the other end'])
})

test('a dead process is closed by its kernel, a dead machine says nothing until keepalive gives up', async () => {
  const crash = await world()
  await crash.dial()
  crash.listening.kill()
  await crash.clock.runFor(50)
  assert.equal(crash.said, ['a lost it: reset by the other end'])

  const loss = await world()
  await loss.dial()
  loss.b.kernel = 'down'
  loss.b.boot++
  loss.listening.kill()
  await loss.clock.runFor(10_000)
  assert.equal(loss.said, [])
  await loss.clock.runFor(60_000)
  assert.equal(loss.said, ['a lost it: timed out'])
})

test('a machine that booted again resets a link it does not know', async () => {
  const { clock, dial, link, b, listening, said } = await world()
  await dial()
  b.kernel = 'down'
  listening.kill()
  b.boot++
  b.kernel = 'up'
  link().send(bytes('beat'))
  await clock.runFor(50)
  assert.equal(said, ['a lost it: reset by the other end'])
})

test('a frozen machine hears after its thaw what was sent meanwhile, in order', async () => {
  const { clock, dial, link, b, listening, said } = await world()
  await dial()
  b.kernel = 'frozen'
  listening.pause('freeze', 'standing')
  link().send(bytes('one'))
  link().send(bytes('two'))
  await clock.runFor(10_000)
  assert.equal(said, [])
  b.kernel = 'up'
  listening.resume('freeze')
  await clock.runFor(10_000)
  assert.equal(said, ['b hears one', 'b hears two'])
})

test('a one-way cut lets frames pass the other way, and what was held back arrives after the heal', async () => {
  const { clock, network, dial, link, far, said } = await world()
  await dial()
  const heal = network.rule((from, to) => (from === 'a' && to === 'b' ? 'silent' : 'open'))
  link().send(bytes('beat'))
  far().send(bytes('permit'))
  await clock.runFor(5_000)
  assert.equal(said, ['a hears permit'])
  heal()
  await clock.runFor(10_000)
  assert.equal(said, ['a hears permit', 'b hears beat'])
})

test('a dial that nobody answers fails with a sentence at its deadline, a closed port refuses at once', async () => {
  const silent = await world()
  silent.b.kernel = 'frozen'
  await silent.dial(2_000)
  assert.match(silent.refused() ?? '', 'no answer from 10.0.0.2')

  const refusing = await world()
  await refusing.listener.close()
  await refusing.dial(100)
  assert.match(refusing.refused() ?? '', 'refused the connection')
})

test('a stuck userspace takes the connection and never shakes hands', async () => {
  const { b, dial, refused, network, a, clock } = await world()
  b.kernel = 'stuck'
  await dial(1_000)
  assert.match(refused() ?? '', 'no answer')
  let word: string | undefined
  void network.probe(a, 'b', 32_768, 1_000).then((answer) => { word = answer })
  await clock.runFor(1_100)
  assert.is(word, 'open')
})

test.run()
