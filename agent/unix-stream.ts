// A byte stream to a socket in the file system of this machine.
import { connect, type Socket } from 'node:net'
import type { Ms } from '../core/model.ts'
import { machineClock } from '../edge/clock.ts'
import type { ByteStream } from './host.ts'

/** Rejects with a sentence where nobody lets us in within the span. */
export function connectUnix(path: string, span: Ms): Promise<ByteStream> {
  return new Promise((resolve, reject) => {
    const socket = connect(path)
    const late = machineClock.after(span, () => socket.destroy(new Error(`nobody lets us in within ${span} ms`)))
    socket.on('connect', () => {
      late()
      resolve(streamOf(socket))
    })
    socket.on('error', (error) => reject(new Error(`${path}: ${error.message}`)))
    socket.on('close', late)
  })
}

/** Of one that is open already. */
export function streamOf(socket: Socket): ByteStream {
  let ears: Parameters<ByteStream['listen']>[0] | undefined
  let reason = 'the other end closed it'
  socket.on('error', (error) => { reason = error.message })
  // A half that is closed is of no use to either protocol spoken here.
  socket.on('end', () => socket.destroy())
  socket.on('close', () => ears?.closed(reason))
  return {
    send: (bytes) => void (socket.writable ? socket.write(bytes) : undefined),
    listen(given) {
      ears = given
      socket.on('data', (bytes: Buffer) => given.bytes(bytes))
    },
    close: () => socket.destroy(),
  }
}
