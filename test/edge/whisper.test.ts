import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { platform } from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { machineClock } from '../../edge/clock.ts'
import { machineWhispers } from '../../edge/whisper.ts'

const test = suite('whisper')

const whispers = machineWhispers(machineClock, '127.0.0.1')
const words = (text: string) => new TextEncoder().encode(text)
const told = (bytes: Uint8Array | undefined) => new TextDecoder().decode(bytes)
/** What the asker knows of the answer, and nobody else before he asked. */
const any = () => true
const yes = (answer: Uint8Array) => told(answer) === 'yes'
const long = 5_000
const short = 100

test('a question is answered by whom it was asked', async () => {
  const ear = await whispers.answer(0, (question, from) => words(`${new TextDecoder().decode(question)} to ${from.split(':')[0]}`))
  const answer = await whispers.ask(`127.0.0.1:${ear.port}`, words('hears'), long, any)
  ear.close()
  assert.is(told(answer), 'hears to 127.0.0.1')
})

test('who says nothing, and who is not there, is silent', async () => {
  const ear = await whispers.answer(0, () => undefined)
  assert.is(await whispers.ask(`127.0.0.1:${ear.port}`, words('hears'), short, any), undefined)
  ear.close()
  assert.is(await whispers.ask(`127.0.0.1:${ear.port}`, words('hears'), short, any), undefined)
})

test('an address that is none is silent at once', async () => {
  for (const address of ['', 'nowhere', '127.0.0.1:0', '127.0.0.1:70000', ':7000']) assert.is(await whispers.ask(address, words('x'), long, any), undefined)
})

test('an answer from somebody else on its machine does not count', async () => {
  const stranger = createSocket('udp4')
  stranger.bind(0, '127.0.0.1')
  await once(stranger, 'listening')
  const ear = await whispers.answer(0, (_, from) => {
    const port = Number(from.split(':')[1])
    stranger.send(words('I am he'), port, '127.0.0.1')
    return undefined
  })
  assert.is(await whispers.ask(`127.0.0.1:${ear.port}`, words('hears'), short * 3, any), undefined)
  ear.close()
  stranger.close()
})

/** Whoever is asked there says all of this at once. */
async function saidBy(answers: readonly string[]): Promise<string> {
  const asked = createSocket('udp4')
  asked.bind(0, '127.0.0.1')
  await once(asked, 'listening')
  asked.on('message', (_, { port }) => {
    for (const answer of answers) asked.send(words(answer), port, '127.0.0.1')
  })
  const answer = await whispers.ask(`127.0.0.1:${asked.address().port}`, words('hears'), long, yes)
  asked.close()
  return answer === undefined ? 'silent' : told(answer)
}

test('what is no answer to this question is waited past, a hundred times at most', async () => {
  assert.is(await saidBy(['no', 'of the question before', 'yes']), 'yes')
  assert.is(await saidBy([...Array.from({ length: 100 }, () => 'no'), 'yes']), 'silent')
})

// A node whose own address, by which its Node is known and its peers ask it, is not the first one of its interface (kubelet's --node-ip): the kernel answers
// from the first. On loopback every 127.x is such a second address.
test('an ear is heard at each address of its machine', async () => {
  if (platform !== 'linux') return
  const all = machineWhispers(machineClock)
  const ear = await all.answer(0, () => words('yes'))
  const heard = await Promise.all(['127.0.0.1', '127.0.0.2'].map((address) => all.ask(`${address}:${ear.port}`, words('hears'), long, yes)))
  ear.close()
  assert.equal(heard.map((answer) => answer && told(answer)), ['yes', 'yes'])
})

test('a question longer than any whisper is not even read', async () => {
  let read = 0
  const ear = await whispers.answer(0, () => {
    read += 1
    return words('yes')
  })
  assert.is(await whispers.ask(`127.0.0.1:${ear.port}`, new Uint8Array(2_000), short, any), undefined)
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
  const answer = await both.ask(`127.0.0.1:${ear.port}`, words('hears'), long, any)
  ear.close()
  assert.is(told(answer), 'yes')
})

test.run()
