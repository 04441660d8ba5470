import { createSocket } from 'node:dgram'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { machineClock } from '../../edge/clock.ts'
import { machineWhispers } from '../../edge/whisper.ts'

const test = suite('whisper')
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const text = (answer: Uint8Array | undefined): string | undefined => (answer === undefined ? undefined : new TextDecoder().decode(answer))

test('a question is answered by who is there', async () => {
  const whispers = machineWhispers(machineClock, '127.0.0.1')
  const ear = await whispers.answer(0, (question, from) => bytes(`${text(question)} from ${from.split(':')[0]}`))
  assert.is(text(await whispers.ask(`127.0.0.1:${ear.port}`, bytes('are you there?'), 2_000)), 'are you there? from 127.0.0.1')
  ear.close()
})

test('nobody there, or somebody who says nothing: silence, not an error', async () => {
  const whispers = machineWhispers(machineClock, '127.0.0.1')
  const mute = await whispers.answer(0, () => undefined)
  assert.is(await whispers.ask(`127.0.0.1:${mute.port}`, bytes('?'), 50), undefined)
  mute.close()
  assert.is(await whispers.ask(`127.0.0.1:${mute.port}`, bytes('?'), 50), undefined)
  assert.is(await whispers.ask('no address', bytes('?'), 50), undefined)
})

test('an answer from elsewhere is not taken', async () => {
  const other = createSocket('udp4')
  const asked = createSocket('udp4')
  asked.on('message', (_, from) => other.send('mine', from.port, from.address))
  await new Promise<void>((resolve) => { asked.bind(0, '127.0.0.1', resolve) })
  const whispers = machineWhispers(machineClock)
  assert.is(await whispers.ask(`127.0.0.1:${asked.address().port}`, bytes('?'), 100), undefined)
  asked.close()
  other.close()
})

test('a whisper that is too long is no whisper', async () => {
  const whispers = machineWhispers(machineClock, '127.0.0.1')
  const ear = await whispers.answer(0, () => bytes('heard'))
  assert.is(await whispers.ask(`127.0.0.1:${ear.port}`, new Uint8Array(2_000), 100), undefined)
  ear.close()
})

test.run()
