import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { machineClock } from '../../edge/clock.ts'
import { machineWhispers } from '../../edge/whisper.ts'

const test = suite('whisper')

const whispers = machineWhispers(machineClock, '127.0.0.1')
const words = (text: string) => new TextEncoder().encode(text)
const long = 5_000
const short = 100

test('a question is answered by whom it was asked', async () => {
  const ear = await whispers.answer(0, (question, from) => words(`${new TextDecoder().decode(question)} to ${from.split(':')[0]}`))
  const answer = await whispers.ask(`127.0.0.1:${ear.port}`, words('hears'), long)
  ear.close()
  assert.is(new TextDecoder().decode(answer), 'hears to 127.0.0.1')
})

test('who says nothing, and who is not there, is silent', async () => {
  const ear = await whispers.answer(0, () => undefined)
  assert.is(await whispers.ask(`127.0.0.1:${ear.port}`, words('hears'), short), undefined)
  ear.close()
  assert.is(await whispers.ask(`127.0.0.1:${ear.port}`, words('hears'), short), undefined)
})

test('an address that is none is silent at once', async () => {
  for (const address of ['', 'nowhere', '127.0.0.1:0', '127.0.0.1:70000', ':7000']) assert.is(await whispers.ask(address, words('x'), long), undefined)
})

test('an answer from somebody else does not count', async () => {
  const stranger = createSocket('udp4')
  stranger.bind(0, '127.0.0.1')
  await once(stranger, 'listening')
  const ear = await whispers.answer(0, (_, from) => {
    const port = Number(from.split(':')[1])
    stranger.send(words('I am he'), port, '127.0.0.1')
    return undefined
  })
  assert.is(await whispers.ask(`127.0.0.1:${ear.port}`, words('hears'), short * 3), undefined)
  ear.close()
  stranger.close()
})

test('a question longer than any whisper is not even read', async () => {
  let read = 0
  const ear = await whispers.answer(0, () => {
    read += 1
    return words('yes')
  })
  assert.is(await whispers.ask(`127.0.0.1:${ear.port}`, new Uint8Array(2_000), short), undefined)
  ear.close()
  assert.is(read, 0)
})

test('a port that is taken is refused with a reason', async () => {
  const ear = await whispers.answer(0, () => undefined)
  const refused = await whispers.answer(ear.port, () => undefined).then(() => '', String)
  ear.close()
  assert.match(refused, /EADDRINUSE/)
})

test('an ear for both families hears IPv4', async () => {
  const both = machineWhispers(machineClock)
  const ear = await both.answer(0, () => words('yes'))
  const answer = await both.ask(`127.0.0.1:${ear.port}`, words('hears'), long)
  ear.close()
  assert.is(new TextDecoder().decode(answer), 'yes')
})

test.run()
