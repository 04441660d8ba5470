// The bytes of systemd's private socket, written by hand beside what a real one (252) has said.
import type { Socket } from 'node:net'

/** Its answer to ListJobs with two jobs in its queue, and to a method that it does not know. */
export const recorded = {
  two: Buffer.from('6c02010123010000010000003f000000050175000100000007017300180000006f72672e667265656465736b746f702e73797374656d6431000000000000000008016700096128757373736f6f2900001b010000000000000d0000000c000000736c6f772e73657276696365000000000500000073746172740000000700000072756e6e696e6700200000002f6f72672f667265656465736b746f702f73797374656d64312f6a6f622f3133000000002d0000002f6f72672f667265656465736b746f702f73797374656d64312f756e69742f736c6f775f326573657276696365000000000000000c0000000d0000007265626f6f742e7461726765740000000500000073746172740000000700000077616974696e6700200000002f6f72672f667265656465736b746f702f73797374656d64312f6a6f622f3132000000002e0000002f6f72672f667265656465736b746f702f73797374656d64312f756e69742f7265626f6f745f326574617267657400', 'hex'),
  refused: Buffer.from('6c0301014b000000010000006f000000050175000100000004017300280000006f72672e667265656465736b746f702e444275732e4572726f722e556e6b6e6f776e4d6574686f64000000000000000007017300180000006f72672e667265656465736b746f702e73797374656d64310000000000000000080167000173000046000000556e6b6e6f776e206d6574686f64204c6973744a6f627a206f7220696e74657266616365206f72672e667265656465736b746f702e73797374656d64312e4d616e616765722e00', 'hex'),
} as const

/** `a(usssoo)` as D-Bus has it. */
export function jobsBody(jobs: readonly (readonly [unit: string, type: string])[]): Buffer {
  let list = Buffer.alloc(0)
  const pad = (to: number): void => { list = Buffer.concat([list, Buffer.alloc(-list.length & (to - 1))]) }
  jobs.forEach(([unit, type], index) => {
    pad(8)
    list = Buffer.concat([list, whole(index + 1)])
    for (const text of [unit, type, 'waiting', `/org/freedesktop/systemd1/job/${index + 1}`, '/org/freedesktop/systemd1/unit/any']) {
      pad(4)
      list = Buffer.concat([list, whole(text.length), Buffer.from(`${text}\0`)])
    }
  })
  return Buffer.concat([whole(list.length), Buffer.alloc(4), list])
}

function whole(value: number): Buffer {
  return Buffer.from(Uint32Array.of(value).buffer)
}

/** `type`: 2 is an answer, 4 a signal. Its head says nothing that is asked for. */
export function message(type: number, body: Uint8Array): Buffer {
  const head = Buffer.alloc(16)
  head.set([0x6c, type, 1, 1])
  head.writeUInt32LE(body.length, 4)
  return Buffer.concat([head, body])
}

/** Lets anybody in, and answers whatever is asked once the greeting is over. What comes in one piece with the greeting it leaves lying, as systemd does. */
export function answers(socket: Socket, body: Uint8Array): void {
  let greeted = false
  socket.on('error', () => undefined) // whoever asked has gone
  socket.on('data', () => {
    if (greeted) socket.write(message(2, body))
    else socket.write('OK 0123456789abcdef0123456789abcdef\r\n')
    greeted = true
  })
}
