// What is taken for a crash kernel's word, and whose it is.
import { createSocket } from 'node:dgram'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { isDumpWord, listenKdump } from '../../coordinator/kdump.ts'

const test = suite('kdump')
const bytes = (hex: string): Buffer => Buffer.from(hex, 'hex')

test('eight bytes in either order, and nothing else', () => {
  assert.equal(['402a301b01000000', '1b302a4000000001'].map((hex) => isDumpWord(bytes(hex))), [true, true])
  for (const hex of ['', '402a301b', '402a301b0100000000', '402a301b02000000', '402a301b00000001', '412a301b01000000']) assert.is(isDumpWord(bytes(hex)), false, hex)
})

test('its address is told as an IPv4 one, also by a socket of both families', async () => {
  const heard: string[] = []
  const listener = await listenKdump({ bind: '::', port: 0 }, (from) => heard.push(from))
  const sender = createSocket('udp4')
  try {
    for (const hex of ['00', '402a301b01000000']) {
      await new Promise<void>((resolve, reject) => { sender.send(bytes(hex), listener.port, '127.0.0.1', (error) => (error === null ? resolve() : reject(error))) })
    }
    while (heard.length === 0) await new Promise((resolve) => { setTimeout(resolve, 10) })
    assert.equal(heard, ['127.0.0.1'])
  } finally {
    sender.close()
    await listener.close()
  }
})

test('a port that another one holds is a refusal', async () => {
  const first = await listenKdump({ bind: '127.0.0.1', port: 0 }, () => undefined)
  try {
    await listenKdump({ bind: '127.0.0.1', port: first.port }, () => undefined).then(() => assert.unreachable(), (error: unknown) => assert.match(String(error), /EADDRINUSE/))
  } finally {
    await first.close()
  }
})

test.run()
